use image::{DynamicImage, GrayImage, RgbImage};
use posenc_data::generate::dead_leaves;
use posenc_data::{
    Channels, Origin, Signal, State, check, list, load_clip_file, load_picture_file,
    load_signal_file,
};

use crate::support::{
    Data, assert_refused, assert_says, header, loaded, npy, pixels, save_rgb, write_npz,
};

/// `n` frames of `width` × `height` pixels whose gray value is ten times the frame's number, in files whose names sort wrongly as text.
fn save_frames(data: &Data, folder: &str, n: u8, width: u32, height: u32) {
    std::fs::create_dir_all(data.path(folder)).unwrap();
    for t in 0..n {
        let frame = RgbImage::from_pixel(width, height, image::Rgb([10 * t; 3]));
        frame.save(data.path(folder).join(format!("f{t}.png"))).unwrap();
    }
}

/// First value of each frame as a byte.
fn levels(clip: &Signal) -> Vec<u8> {
    let frames = clip.values.chunks(clip.values.len() / clip.sides[0]);
    frames.map(|frame| (frame[0] * 255.0).round() as u8).collect()
}

fn names(clips: &[Signal]) -> Vec<&str> {
    clips.iter().map(|clip| clip.name.as_str()).collect()
}

/// Saves an array as the only clip of the set `folder`.
fn save_array(data: &Data, header: &str, bytes: &[u8]) {
    std::fs::create_dir_all(data.path("footage")).unwrap();
    write_npz(&data.path("footage/clip.npz"), &[("test", npy(header, bytes))]);
}

#[test]
fn an_array_of_the_right_size_is_used_unchanged() {
    let data = Data::empty();
    let load = || loaded(&data.source(), "folder", 0);
    let bytes = pixels(4, 8);
    save_array(&data, &header("|u1", "4, 8, 8, 3"), &bytes);
    let (set, signals) = load();
    assert_eq!((set.label.as_str(), set.origin), ("other:folder", Origin::Other));
    assert_eq!(names(&signals), ["clip.npz"]);
    let clip = &signals[0];
    assert_eq!((&clip.sides[..], clip.channels), (&[4, 8, 8][..], 3));
    let values: Vec<f32> = bytes.iter().map(|&byte| f32::from(byte) / 255.0).collect();
    assert!(clip.values.iter().zip(&values).all(|(a, b)| *a == f64::from(*b)));
    for (descr, to_bytes) in
        [("<f4", f32::to_le_bytes as fn(f32) -> [u8; 4]), (">f4", f32::to_be_bytes)]
    {
        let bytes: Vec<u8> = values.iter().flat_map(|value| to_bytes(*value)).collect();
        save_array(&data, &header(descr, "4, 8, 8, 3"), &bytes);
        let floats = load();
        assert_eq!(floats.1, signals, "{descr}");
        assert_ne!(floats.0.sha256, set.sha256);
    }
}

#[test]
fn floats_are_refused_outside_of_their_range() {
    let data = Data::empty();
    for value in [255.0, -0.1, f32::NAN] {
        let bytes = f32::to_le_bytes(value).repeat(4 * 8 * 8 * 3);
        save_array(&data, &header("<f4", "4, 8, 8, 3"), &bytes);
        let error = data.source().load("folder", 0).unwrap_err();
        assert_says(&error, &["clip.npz", "'test'", &value.to_string(), "[0, 1]", "clip(x"]);
    }
}

#[test]
fn an_array_without_a_clip_is_refused() {
    let data = Data::empty();
    for (descr, shape, n_bytes, parts) in [
        ("|u1", "4, 8, 8", 256, &["(4, 8, 8)", "(frames, height, width, 3)"][..]),
        ("|u1", "4, 8, 8, 2", 512, &["(4, 8, 8, 2)", "gray"]),
        ("|u1", "0, 8, 8, 3", 0, &["(0, 8, 8, 3)"]),
        ("<f8", "4, 8, 8, 1", 2048, &["<f8", "'<f4'", "0, 1).astype('float32')"]),
        ("|u1", "3, 8, 8, 3", 576, &["clip.npz", "3 frames", "at least 4", "longer"]),
        ("|u1", "4, 8, 7, 3", 672, &["7×8", "at least 8×8", "never enlarged"]),
    ] {
        save_array(&data, &header(descr, shape), &vec![0; n_bytes]);
        assert_refused(data.source().load("folder", 0), parts);
    }
}

#[test]
fn larger_clips_are_cropped_and_surplus_is_named() {
    let data = Data::empty();
    save_frames(&data, "footage/b", 11, 20, 20);
    save_frames(&data, "footage/a", 5, 8, 12);
    save_frames(&data, "footage/c", 4, 8, 8);
    let (set, signals) = loaded(&data.source(), "folder", 0);
    assert_eq!((set.label.as_str(), set.origin), ("other:folder", Origin::Other));
    assert_eq!(names(&signals), ["a", "b"]);
    // The middle four of the first eight of eleven frames; f10 sorts after f9.
    assert_eq!(levels(&signals[1]), [20, 30, 40, 50]);
    assert_eq!(levels(&signals[0]), [0, 10, 20, 30]);
    let warnings = set.warnings.join("\n");
    assert_says(&warnings, &["3 clips, the first 2"]);
}

#[test]
fn files_with_the_checksum_are_a_substitute_and_not_the_papers_own() {
    let data = Data::empty();
    save_frames(&data, "footage/only", 8, 16, 16);
    let unknown = data.source().identity("folder", 0).unwrap();
    let data = Data { sha256: unknown.sha256, ..data };
    let set = data.source().identity("folder", 0).unwrap();
    assert_eq!((set.label.as_str(), set.origin), ("substitute:folder", Origin::Substitute));
    assert_says(&set.warnings.join("\n"), &["films nobody has", "not compared"]);
    assert_eq!(set.warnings.len(), 1);
    let checked = &check(&data.manifest(), &data.directory())[2];
    assert!(matches!(checked.state, State::Substitute) && !checked.needs_attention());
    assert_says(checked, &["used instead of the paper's", "2 clips of 4 frames of 8×8"]);
}

#[test]
fn the_identity_matches_the_loaded_signals() {
    let data = Data::empty();
    save_frames(&data, "footage/a", 4, 8, 8);
    let source = data.source();
    for id in ["folder", "always"] {
        let identity = source.identity(id, 3).unwrap();
        assert_eq!(identity.signals, names(&source.load(id, 3).unwrap()), "{id}");
    }
    // A changed frame changes the identity.
    let before = source.identity("folder", 3).unwrap();
    save_rgb(&data.path("footage/a/f3.png"), 8, 8);
    assert_ne!(source.identity("folder", 3).unwrap().sha256, before.sha256);
}

#[test]
fn clips_are_no_images() {
    let source = Data::empty().source();
    let error = source.check_images("always").unwrap_err();
    assert_says(&error, &["'always' contains clips", "images are expected", "data list"]);
    source.check_images("single").unwrap();
}

#[test]
fn absent_sets_are_generated_with_a_warning_unless_they_always_are() {
    let data = Data::empty();
    let (set, signals) = loaded(&data.source(), "folder", 7);
    assert_eq!((set.label.as_str(), set.origin), ("embedded:moving-dead-leaves", Origin::Embedded));
    assert_eq!(signals.len(), 2);
    assert_says(
        &set.warnings.join("\n"),
        &["not found", "footage", "using generated clips instead"],
    );
    let always = data.source().identity("always", 7).unwrap();
    assert_eq!(always.warnings, [""; 0]);
    assert_eq!(always.origin, Origin::Embedded);
    assert_ne!(always.sha256, set.sha256);
    let listed = &list(&data.manifest(), &data.directory())[3];
    assert!(matches!(listed.state, State::Generated) && !listed.needs_attention());
    assert_says(listed, &["generated  always, as embedded:moving-dead-leaves"]);
}

#[test]
fn frames_of_another_size_and_folders_without_clips_are_named() {
    let data = Data::empty();
    save_frames(&data, "footage/a", 8, 16, 16);
    save_rgb(&data.path("footage/a/f6.png"), 16, 18);
    let error = data.source().load("folder", 0).unwrap_err();
    assert_says(&error, &["footage/a", "frame 6 is 16×18 RGB", "16×16 RGB", "alike"]);
    let gray = GrayImage::new(16, 16);
    DynamicImage::ImageLuma8(gray).save(data.path("footage/a/f6.png")).unwrap();
    assert_refused(data.source().load("folder", 0), &["frame 6 is 16×16 gray"]);
    std::fs::write(data.path("footage/a/f2.png"), "no picture").unwrap();
    assert_refused(data.source().load("folder", 0), &["f2.png", "readable"]);
    std::fs::create_dir(data.path("empty")).unwrap();
    let error = data.source().use_images("folder", &data.path("empty")).unwrap_err();
    assert_says(&error, &["empty", "contains no clips", "mp4", "folders of frames"]);
}

// A build with FFmpeg reads the file; see `videos`.
#[cfg(not(feature = "video"))]
#[test]
fn videos_without_video_support_are_replaced_with_a_warning() {
    let data = Data::empty();
    std::fs::create_dir(data.path("footage")).unwrap();
    std::fs::write(data.path("footage/film.mp4"), "whatever").unwrap();
    let mut source = data.source();
    let set = source.identity("folder", 0).unwrap();
    assert_eq!(set.origin, Origin::Embedded);
    let parts =
        ["footage contains video files", "using generated clips", "apt-get install", "cargo xtask"];
    assert_says(&set.warnings.join("\n"), &parts);
    assert_eq!(set.warnings.len(), 1);
    for statuses in
        [list(source.manifest(), &data.directory()), check(source.manifest(), &data.directory())]
    {
        assert!(matches!(statuses[2].state, State::NeedsVideo));
    }
    // Files that the user names are not replaced.
    let error = source.use_images("folder", &data.path("footage")).unwrap_err();
    assert_says(&error, &["film.mp4", "apt-get install", "folder of frames"]);
    assert_refused(load_clip_file(&data.path("footage"), None), &["apt-get install"]);
}

#[test]
fn one_clip_is_read_whole_or_as_a_cube_and_written_again() {
    let data = Data::empty();
    save_frames(&data, "film", 9, 14, 11);
    let whole = load_clip_file(&data.path("film"), None).unwrap();
    let clip = &whole.signal;
    assert_eq!((&clip.sides[..], clip.channels), (&[8, 10, 14][..], 3));
    assert_says(&whole.warnings.join("\n"), &["9 frames of 14×11", "8 of 14×10"]);
    let cube = load_clip_file(&data.path("film"), Some(6)).unwrap();
    assert_eq!(cube.signal.sides, [6, 6, 6]);
    for size in [10, 12] {
        assert_refused(load_clip_file(&data.path("film"), Some(size)), &["film"]);
    }

    // An array beside frames is something else.
    std::fs::write(data.path("film/cameras.npz"), "not a clip").unwrap();
    assert_eq!(&load_clip_file(&data.path("film"), None).unwrap().signal, clip);
    clip.write_npz(&data.path("out.npz")).unwrap();
    let again = load_clip_file(&data.path("out.npz"), None).unwrap();
    assert_eq!((&again.signal.values, again.warnings.len()), (&clip.values, 0));
    clip.write_frames(&data.path("frames/of/out")).unwrap();
    let again = load_clip_file(&data.path("frames/of/out"), None).unwrap();
    // 8-bit frames survive 8-bit files.
    assert_eq!(again.signal.values, clip.values);
    let error = clip.write_frames(&data.path("frames/of/out")).unwrap_err();
    assert_says(&error, &["already contains images", "another folder"]);
    let error = clip.write_npz(&data.path("nowhere/out.npz")).unwrap_err();
    assert_says(&error, &["nowhere/out.npz", "cannot be written", "folder exists"]);
}

#[test]
fn several_clips_or_arrays_are_refused_as_one_clip() {
    let data = Data::empty();
    save_frames(&data, "films/a", 4, 8, 8);
    save_frames(&data, "films/b", 4, 8, 8);
    let error = load_clip_file(&data.path("films"), None).unwrap_err();
    assert_says(&error, &["2 clips (a, b)", "one is expected", "name the file"]);
    let array = npy(&header("|u1", "1, 1, 1, 1"), &[0]);
    write_npz(&data.path("two.npz"), &[("x", array.clone()), ("y", array)]);
    let error = load_clip_file(&data.path("two.npz"), None).unwrap_err();
    assert_says(&error, &["two.npz", "x, y", "numpy.savez"]);
}

#[test]
fn one_picture_is_read_whole_or_as_a_square() {
    let data = Data::empty();
    let path = data.path("a.png");
    save_rgb(&path, 21, 15);
    let whole = load_picture_file(&path, None).unwrap();
    assert_eq!((whole.signal.width(), whole.signal.height()), (20, 14));
    assert_says(&whole.warnings.join("\n"), &["21×15", "column and row", "20×14"]);
    let square = load_picture_file(&path, Some(12)).unwrap();
    assert_eq!((square.signal.width(), square.signal.height()), (12, 12));
    assert_refused(load_picture_file(&path, Some(16)), &["21×15", "the requested size"]);
    // Even sizes are unchanged, without a warning.
    save_rgb(&path, 20, 14);
    assert_eq!(load_picture_file(&path, None).unwrap().warnings, [""; 0]);
    let deep = image::ImageBuffer::from_fn(4, 4, |_, _| image::Luma([13107u16]));
    DynamicImage::ImageLuma16(deep).save(&path).unwrap();
    let deep = load_picture_file(&path, None).unwrap();
    assert_eq!((deep.signal.channels, deep.signal.values[0]), (1, 0.2));
    assert_says(&deep.warnings.join("\n"), &["16 bits", "gray"]);
}

#[test]
fn a_written_picture_is_read_again() {
    let data = Data::empty();
    let path = data.path("a.png");
    for channels in [Channels::Rgb, Channels::Gray] {
        let image = dead_leaves(0, "set", 1, 24, channels);
        image.write_png(&path).unwrap();
        let again = load_picture_file(&path, None).unwrap().signal;
        assert_eq!(again.channels, channels.count());
        let pairs = again.values.iter().zip(&image.values);
        let largest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(largest <= 0.5 / 255.0 + 1e-12, "{largest}");
    }
    let broken = Signal { channels: 2, ..dead_leaves(0, "s", 0, 2, Channels::Rgb) };
    assert_refused(broken.write_png(&path), &["2 channels", "1 or 3"]);
}

#[test]
fn pictures_and_clips_are_distinguished_by_content() {
    let data = Data::empty();
    save_frames(&data, "film", 4, 8, 8);
    let is_clip =
        |path: &str| load_signal_file(&data.path(path), None).unwrap().signal.sides.len() == 3;
    assert!(is_clip("film"));
    assert!(!is_clip("film/f2.png"));
    // A picture that is broken is not mistaken for a video.
    std::fs::write(data.path("a.png"), "no picture").unwrap();
    assert_refused(load_signal_file(&data.path("a.png"), None), &["not a readable image"]);
    let error = load_signal_file(&data.path("nothing.mp4"), None).unwrap_err();
    assert_says(&error, &["nothing.mp4", "file not found"]);
}

/// Catches an array with a frame that takes gigabytes as numbers.
#[test]
fn arrays_of_too_large_frames_are_refused() {
    let file = tempfile::NamedTempFile::with_suffix(".npz").unwrap();
    // One row more than 36 · 2²⁰ pixels.
    for (columns, parts) in [(6144, &["1 frames", "at least 2"][..]), (6145, &["each frame"])] {
        let shape = format!("1, 6144, {columns}, 1");
        let frame = npy(&header("|u1", &shape), &vec![0; 6144 * columns]);
        write_npz(file.path(), &[("a", frame)]);
        assert_refused(load_clip_file(file.path(), Some(2)), parts);
    }
}

/// Catches pictures whose decoded bytes are within the limit but whose double-precision values take eight times as much.
#[test]
fn large_pictures_are_refused_if_used_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.png");
    GrayImage::new(11_600, 11_600).save(&file).unwrap();
    let error = load_picture_file(&file, None).unwrap_err();
    assert_says(&error, &["a.png", "11600×11600", "1076480000", "1073741824"]);
    assert_refused(load_clip_file(folder.path(), Some(1)), &["the frame", "11600×11600"]);
}
