use posenc_data::{State, check, list};

use crate::support::{Data, assert_says, manifest};

#[test]
fn listing_reads_nothing_and_checking_reads_everything() {
    let data = Data::with_trio(3);
    let manifest = data.manifest();
    let listed = list(&manifest, &data.directory());
    assert!(matches!(listed[0].state, State::Present));
    assert!(matches!(listed[1].state, State::Absent));
    let checked = check(&manifest, &data.directory());
    assert!(matches!(checked[0].state, State::Published) && !checked[0].needs_attention());

    // Damage shows only when the file is read.
    std::fs::write(data.path("trio/second.npz"), "PK").unwrap();
    assert!(matches!(list(&manifest, &data.directory())[0].state, State::Present));
    let checked = check(&manifest, &data.directory());
    assert!(matches!(checked[0].state, State::Unusable(_)) && checked[0].needs_attention());
    assert_says(&checked[0], &["unusable", "second.npz", "fetch the file again"]);
}

#[test]
fn other_data_are_distinguished_from_the_published_ones() {
    let data = Data::with_trio(3);
    let checked = check(&manifest(&"e".repeat(64)), &data.directory());
    assert!(matches!(&checked[0].state, State::Other { sha256 } if *sha256 == data.sha256));
    assert!(checked[0].needs_attention());
}

#[test]
fn a_status_shows_stand_in_license_and_users() {
    let data = Data::empty();
    let absent = &list(&data.manifest(), &data.directory())[0];
    let path = data.path("trio/first.npz").display().to_string();
    assert_says(
        absent,
        &[
            "trio: This is trio",
            "absent",
            &path,
            "embedded:dead-leaves",
            "license    none",
            "paper/fig1",
        ],
    );
}
