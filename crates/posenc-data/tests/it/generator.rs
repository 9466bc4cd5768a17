use posenc_data::generate::{
    GrayLeaves, Lengths, ObjectScene, ScreenGrammar, Translation, caption_kinds, dead_leaves,
    moving_dead_leaves, screen_vocabulary,
};
use posenc_data::{Channels, Signal};
use posenc_math::random::stream;

use crate::support::sha256;

fn image(seed: u64, set: &str, index: usize, size: usize) -> Signal {
    dead_leaves(seed, set, index, size, Channels::Rgb)
}

fn bytes(image: &Signal) -> Vec<u8> {
    image.values.iter().map(|value| (value * 255.0).round() as u8).collect()
}

#[test]
fn images_depend_on_seed_set_and_index_only() {
    let first = image(0, "one", 0, 32);
    assert_eq!(first, image(0, "one", 0, 32));
    for other in [image(1, "one", 0, 32), image(0, "two", 0, 32), image(0, "one", 8, 32)] {
        assert_ne!(bytes(&first), bytes(&other));
    }
}

#[test]
fn every_size_can_be_generated() {
    for (frames, size) in [(1, 1), (2, 3), (300, 2)] {
        assert_eq!(clip(0, "small", 0, frames, size).values.len(), 3 * frames * size * size);
    }
    for size in [1, 2, 7, 33] {
        for index in 0..8 {
            assert_eq!(image(0, "small", index, size).values.len(), 3 * size * size);
        }
    }
}

// Pins the bytes of all scenes. After an intended change, increase the version in `generated` of `sets/source.rs`, so that records of the
// old images are not mistaken for new ones. If this fails on one machine only, that machine rounds differently and generates other images
// than the reference run.
#[test]
fn signals_are_the_same_on_every_machine() {
    let all: Vec<u8> = (0..8).flat_map(|index| bytes(&image(0, "golden", index, 48))).collect();
    assert_eq!(sha256(&all), "0ecdf3ad2a06bc12f121257fac1dadd87b7112a7603dcda8beb7642c4af83287");
    let clips = (0..6).flat_map(|index| clip(0, "golden", index, 12, 32).values);
    let all: Vec<u8> = clips.map(|value| (value * 255.0).round() as u8).collect();
    assert_eq!(sha256(&all), "b37f34fe240dbdd7b2fc3ae394f4ccd9830119a84f3fda48b419ffd2657f4f5a");
}

/// Catches any change of the scenes, sentences and screens of the other generators, which have no version: records of protocols contain
/// results on them.
#[test]
fn the_other_generators_never_change() {
    let mut rng = stream(7, "leaves");
    let images: Vec<_> = (0..8).map(|_| GrayLeaves::new(32, 16).image(&mut rng)).collect();
    let leaves = format!("{images:?}");

    let mut rng = stream(7, "objects");
    let whole: Vec<_> = (0..20).map(|_| ObjectScene::draw(&mut rng).whole(32, &mut rng)).collect();
    let training = [&[32][..], &[24, 32, 40]].map(|sides| {
        let image = |_| ObjectScene::training_image(sides, &mut rng);
        (0..20).map(image).collect::<Vec<_>>()
    });
    let objects = format!("{whole:?}{training:?}");

    let pairs = [Lengths::LogNormal, Lengths::Constant, Lengths::Uniform].map(|lengths| {
        let mut rng = stream(7, "translation");
        let languages = Translation::new(50, lengths, 40, &mut rng);
        (0..50).map(|_| languages.pair(&mut rng)).collect::<Vec<_>>()
    });

    let screens = [0.0, 1.1, 2.0]
        .map(|jitter| ScreenGrammar::new(jitter).screens(100, &mut stream(7, "screens")));
    let tables = format!("{:?}{:?}", screen_vocabulary(), caption_kinds());
    let screens = format!("{screens:?}{tables}");
    let pinned = [
        "5f8c36bdd7d5e2b798e2f79ed122b3c4bbe5b18cea0088e3e601d18b9744337a",
        "6d68647b254a0808c152e9883c86e8a010ba7d005166fa57509fe21128923d6f",
        "f6c8142ba9b19c17269287e9b363ebcb921ca0d823b7ef8e395e42b78df72db1",
        "cd145050a1eefccb3dc23b1f02de99e002e52b8425c540c76f2a1738319f63f5",
    ];
    let found = [leaves, objects, format!("{pairs:?}"), screens];
    assert_eq!(found.map(|text| sha256(text.as_bytes())), pinned);
}

fn clip(seed: u64, set: &str, index: usize, frames: usize, size: usize) -> Signal {
    moving_dead_leaves(seed, set, index, frames, size, Channels::Rgb)
}

// If the length changed the random numbers, quick and full runs would use different clips.
#[test]
fn a_shorter_clip_is_the_beginning_of_a_longer_one() {
    let (short, long) = (clip(0, "one", 0, 3, 32), clip(0, "one", 0, 7, 32));
    assert_eq!(short.values, long.values[..short.values.len()]);
    for other in [clip(1, "one", 0, 3, 32), clip(0, "two", 0, 3, 32), clip(0, "one", 6, 3, 32)] {
        assert_ne!(short.values, other.values);
    }
}
