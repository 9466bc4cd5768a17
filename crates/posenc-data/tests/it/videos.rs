//! Tests on video files that they encode themselves, and on real ones if available.

#[cfg(not(feature = "video"))]
#[test]
fn video_files_are_read() {
    // Represents all tests of this file.
    posenc_files::testing::skip(
        posenc_files::testing::Need::Ffmpeg,
        "this build reads no video files",
    );
}

#[cfg(feature = "video")]
mod with_ffmpeg {
    use std::path::Path;

    use posenc_data::{
        DataDirectory, DataError, DataSource, Manifest, Origin, Signal, State, check,
        ffmpeg_version, load_clip_file, load_signal_file,
    };
    use posenc_files::testing::{Need, skip};
    use video_rs::encode::Settings;
    use video_rs::frame::{PixelFormat, RawFrame};
    use video_rs::{EncoderBuilder, Options};

    use crate::support::{Data, assert_refused, assert_says, loaded};

    #[derive(Clone, Copy)]
    struct Film {
        /// Levels by which pixels differ at random, which makes the file longer than its header.
        noise: u32,
        frames: usize,
        width: u32,
        height: u32,
        pixels: PixelFormat,
    }

    const FILM: Film =
        Film { noise: 0, frames: 40, width: 48, height: 32, pixels: PixelFormat::YUV420P };

    impl Film {
        /// Frame t has the gray level 6 t, its left half 10 more, its upper quarter 30 more. `None` if this machine's FFmpeg has no H.264
        /// encoder.
        fn write(&self, path: &Path) -> Option<()> {
            let settings = Settings::preset_h264_custom(
                self.width as usize,
                self.height as usize,
                self.pixels,
                Options::preset_h264(),
            );
            // Keeps the encoder's messages off the screen.
            let _ = video_rs::init();
            let Ok(mut encoder) = EncoderBuilder::new(path, settings).build() else {
                skip(Need::Ffmpeg, "this FFmpeg has no H.264 encoder");
                return None;
            };
            let mut random = 1u32;
            // Writes one frame more: these packets have no duration, so the edit list of an mp4 ends with the beginning of the last frame,
            // which is then left out.
            for t in 0..=self.frames {
                let mut frame = RawFrame::new(PixelFormat::RGB24, self.width, self.height);
                let (stride, half) = (frame.stride(0), self.width as usize / 2);
                for (y, row) in frame.data_mut(0).chunks_mut(stride).enumerate() {
                    let upper = if 4 * y < self.height as usize { 30 } else { 0 };
                    for (i, value) in row.iter_mut().enumerate() {
                        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let noise = if self.noise > 0 { (random >> 8) % self.noise } else { 0 };
                        let lighter = if i / 3 < half { 10 } else { 0 };
                        *value = (6 * t as u32 % 240 + lighter + upper + noise).min(255) as u8;
                    }
                }
                let base = encoder.time_base();
                let ticks = i64::from(base.denominator()) / i64::from(base.numerator());
                frame.set_pts(Some(t as i64 * ticks / 25));
                encoder.encode_raw(frame).unwrap();
            }
            encoder.finish().unwrap();
            Some(())
        }
    }

    /// A data directory with the folder of a set of videos.
    fn data() -> Data {
        let data = Data::empty();
        std::fs::create_dir(data.path("footage")).unwrap();
        data
    }

    fn refused(data: &Data) -> DataError {
        data.source().load("folder", 0).unwrap_err()
    }

    /// Red value at the right end of the middle row of each frame, from 0 to 255.
    fn levels(clip: &Signal) -> Vec<f64> {
        let frame = clip.height() * clip.width() * clip.channels;
        let at = ((clip.height() / 2) * clip.width() + clip.width() - 1) * clip.channels;
        clip.values.chunks_exact(frame).map(|voxels| voxels[at] * 255.0).collect()
    }

    #[test]
    fn a_video_is_decoded_resized_and_cut() {
        let data = data();
        let Some(()) = FILM.write(&data.path("footage/film.mp4")) else { return };
        let (set, signals) = loaded(&data.source(), "folder", 0);
        assert_eq!((set.label.as_str(), set.origin), ("other:folder", Origin::Other));
        let clip = &signals[0];
        assert_eq!(clip.name, "film.mp4");
        assert_eq!((&clip.sides[..], clip.channels), (&[4, 8, 8][..], 3));
        // Frames 2 to 5 of the first eight, up to the error of the codec.
        for (level, expected) in levels(clip).iter().zip([12.0, 18.0, 24.0, 30.0]) {
            assert!((level - expected).abs() < 5.0, "{level} is far from {expected}");
        }
        assert!(clip.values[0] > clip.values[21] + 0.02, "left is not lighter than right");
    }

    /// Catches a text file that makes FFmpeg read others, here or elsewhere.
    #[test]
    fn playlists_are_refused() {
        let data = data();
        let Some(()) = FILM.write(&data.path("film.mp4")) else { return };
        let list = data.path("list.mp4");
        for text in [
            "ffconcat version 1.0\nfile 'film.mp4'\n".to_owned(),
            "ffconcat version 1.0\nfile /etc/passwd\n".to_owned(),
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nfilm.mp4\n#EXT-X-ENDLIST\n".to_owned(),
            format!("#EXTM3U\n#EXTINF:2,\nfile://{}\n", data.path("film.mp4").display()),
        ] {
            std::fs::write(&list, &text).unwrap();
            let error = load_clip_file(&list, None).unwrap_err();
            assert_says(&error, &["list.mp4", "not a readable video"]);
        }
    }

    #[test]
    fn a_whole_video_is_read_frame_by_frame() {
        let data = data();
        let path = data.path("film.mp4");
        let Some(()) = FILM.write(&path) else { return };
        let loaded = load_signal_file(&path, None).unwrap();
        let clip = loaded.signal;
        assert_eq!(clip.sides, [40, 32, 48]);
        assert_eq!(loaded.warnings, [""; 0]);
        for (t, level) in levels(&clip).iter().enumerate() {
            assert!((level - 6.0 * t as f64).abs() < 6.0, "frame {t} has level {level}");
        }
        let cube = load_clip_file(&path, Some(10)).unwrap();
        assert_eq!(cube.signal.sides, [10, 10, 10]);
        // Means of four frames.
        assert!((levels(&cube.signal)[5] - 6.0 * 21.5).abs() < 6.0);
        assert!(ffmpeg_version().unwrap().starts_with("FFmpeg "));
    }

    #[test]
    fn odd_sizes_are_read_and_the_last_row_and_column_left_out() {
        let data = data();
        let film = Film { width: 21, height: 17, pixels: PixelFormat::YUV444P, ..FILM };
        let Some(()) = film.write(&data.path("footage/odd.mp4")) else { return };
        assert_eq!(data.source().load("folder", 0).unwrap().len(), 1);
        let loaded = load_clip_file(&data.path("footage/odd.mp4"), None).unwrap();
        assert_eq!((loaded.signal.height(), loaded.signal.width()), (16, 20));
        assert_says(&loaded.warnings.join("\n"), &["40 frames of 21×17", "40 of 20×16"]);
    }

    #[test]
    fn a_truncated_video_is_recognized_wherever_it_was_cut() {
        let data = data();
        let path = data.path("footage/film.mp4");
        let film = Film { noise: 100, width: 64, ..FILM };
        let Some(()) = film.write(&path) else { return };
        assert_eq!(load_clip_file(&path, None).unwrap().signal.sides[0], 40);
        let whole = header_first(&std::fs::read(&path).unwrap());
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(load_clip_file(&path, None).unwrap().signal.sides[0], 40);
        for percent in [1, 30, 60, 85] {
            let cut = &whole[..whole.len() * percent / 100];
            std::fs::write(&path, cut).unwrap();
            let message = load_clip_file(&path, None).unwrap_err();
            let reason = if percent > 1 { "of 41 (" } else { "not a readable video" };
            assert_says(&message, &["film.mp4", reason]);
        }
        assert!(load_clip_file(&path, Some(8)).is_err());
    }

    /// The byte range of the box of this kind. Its length precedes its name.
    fn find_box(bytes: &[u8], kind: &[u8; 4]) -> std::ops::Range<usize> {
        let start = bytes.windows(4).rposition(|window| window == kind).unwrap() - 4;
        let length = u32::from_be_bytes(bytes[start..start + 4].try_into().unwrap());
        start..start + length as usize
    }

    /// An mp4 with its index at the front, as for streaming. A truncated file with its index at the end cannot be opened at all.
    fn header_first(bytes: &[u8]) -> Vec<u8> {
        let mut index = bytes[find_box(bytes, b"moov")].to_vec();
        let n = index.len() as u32;
        // Places of the frames in the file: version, number of entries, 32-bit entries.
        let table = find_box(&index, b"stco");
        for entry in index[table][16..].chunks_exact_mut(4) {
            let place = u32::from_be_bytes(entry.try_into().unwrap());
            entry.copy_from_slice(&(place + n).to_be_bytes());
        }
        let first = u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
        let rest = &bytes[first..find_box(bytes, b"moov").start];
        [&bytes[..first], &index, rest].concat()
    }

    /// Catches frames that stay as the camera stored them, although the file demands to turn or flip them.
    #[test]
    fn frames_are_turned_as_the_file_demands() {
        let data = data();
        let path = data.path("film.mp4");
        let Some(()) = FILM.write(&path) else { return };
        let bytes = std::fs::read(&path).unwrap();
        let at = find_box(&bytes, b"tkhd").start + 48;
        // The corners of the stored frame, first row first, are a, b, c and d.
        for ([a, b, c, d], corners) in [
            ([1, 0, 0, 1], "abcd"),
            ([0, 1, -1, 0], "cadb"),
            ([-1, 0, 0, -1], "dcba"),
            ([0, -1, 1, 0], "bdac"),
            ([-1, 0, 0, 1], "badc"),
            ([1, 0, 0, -1], "cdab"),
            ([0, 1, 1, 0], "acbd"),
            ([0, -1, -1, 0], "dbca"),
            ([1, 1, -1, 1], "no multiple of 90°"),
        ] {
            let mut turned = bytes.clone();
            for (i, number) in [(0, a), (1, b), (3, c), (4, d)] {
                turned[at + 4 * i..][..4].copy_from_slice(&i32::to_be_bytes(number << 16));
            }
            std::fs::write(&path, turned).unwrap();
            let clip = match load_clip_file(&path, None) {
                Ok(loaded) => loaded.signal,
                Err(error) => {
                    assert_says(&error, &["film.mp4", corners]);
                    continue;
                }
            };
            assert_eq!((clip.width(), clip.height()), if a == 0 { (32, 48) } else { (48, 32) });
            let row = clip.width() * 3;
            let last = (clip.height() - 1) * row;
            // From the lightest to the darkest.
            let mut order = [0, 1, 2, 3];
            order.sort_by(|i, j| {
                let level = |i: usize| clip.values[[0, row - 3, last, last + row - 3][i]];
                level(*j).total_cmp(&level(*i))
            });
            let found = order.map(|place| corners.as_bytes()[place]);
            assert_eq!(&found, b"abcd", "{corners}");
        }
    }

    #[test]
    fn files_that_are_no_videos_are_refused() {
        let data = data();
        let path = data.path("footage/film.mp4");
        for content in ["only words", "", "#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n"] {
            std::fs::write(&path, content).unwrap();
            assert_says(&refused(&data), &["film.mp4", "not a readable video", "mp4 with H.264"]);
        }
        std::fs::write(&path, wav()).unwrap();
        assert_says(&refused(&data), &["film.mp4", "no video stream"]);
    }

    fn wav() -> Vec<u8> {
        let (rate, n_bytes) = (8_000u32, 16_000u32);
        let mut bytes = b"RIFF".to_vec();
        bytes.extend((36 + n_bytes).to_le_bytes());
        bytes.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
        bytes.extend(rate.to_le_bytes());
        bytes.extend((2 * rate).to_le_bytes());
        bytes.extend(b"\x02\0\x10\0data");
        bytes.extend(n_bytes.to_le_bytes());
        bytes.resize(44 + n_bytes as usize, 0);
        bytes
    }

    #[test]
    fn an_unknown_codec_is_named_as_the_reason() {
        let data = data();
        let path = data.path("footage/film.mp4");
        let Some(()) = FILM.write(&path) else { return };
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(4).position(|window| window == b"avc1");
        // The first may be among the file's brands; that of the track comes last.
        let last = bytes.windows(4).rposition(|window| window == b"avc1").or(at).unwrap();
        bytes[last..last + 4].copy_from_slice(b"zz99");
        std::fs::write(&path, bytes).unwrap();
        assert_says(&refused(&data), &["film.mp4", "codec", "ffmpeg -i"]);
    }

    #[test]
    fn frames_that_change_their_size_are_refused() {
        let data = data();
        let (first, second) = (data.path("a.ts"), data.path("b.ts"));
        let Some(()) = FILM.write(&first) else { return };
        let Some(()) = (Film { width: 64, height: 64, ..FILM }).write(&second) else { return };
        // A transport stream continues after another without any header.
        let mut bytes = std::fs::read(&first).unwrap();
        bytes.extend(std::fs::read(&second).unwrap());
        std::fs::write(data.path("both.ts"), bytes).unwrap();
        assert_refused(load_clip_file(&data.path("both.ts"), None), &["both.ts", "size"]);
    }

    #[test]
    fn a_video_is_identified_by_its_bytes() {
        let data = data();
        let path = data.path("footage/film.mp4");
        let Some(()) = FILM.write(&path) else { return };
        let before = data.source().identity("folder", 0).unwrap();
        assert_eq!(before.signals, ["film.mp4"]);
        // What sha256sum prints for the folder.
        let line =
            format!("{}  film.mp4\n", crate::support::sha256(&std::fs::read(&path).unwrap()));
        assert_eq!(before.sha256, crate::support::sha256(line.as_bytes()));
        let Some(()) = (Film { frames: 39, ..FILM }).write(&path) else { return };
        assert_ne!(data.source().identity("folder", 0).unwrap().sha256, before.sha256);
    }

    /// Catches clips that decode incorrectly, and a wrong checksum in the manifest.
    #[test]
    fn the_five_real_clips_are_read() {
        let Some(data) = crate::support::real("video") else { return };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/manifest.yaml");
        let manifest = Manifest::read(&path).unwrap();
        let directory = DataDirectory::resolve(Some(&data), Path::new("/")).unwrap();
        let source = DataSource::new(manifest.clone(), directory.clone());
        let (set, signals) = loaded(&source, "video-clips", 0);
        assert_eq!(
            (set.label.as_str(), set.origin),
            ("substitute:video-clips", Origin::Substitute)
        );
        assert_eq!(set.warnings.len(), 1, "{:?}", set.warnings);
        let names: Vec<&str> = signals.iter().map(|clip| clip.name.as_str()).collect();
        let expected = [
            "intel_car.mp4",
            "mdn_crystal.mp4",
            "mdn_pig.mp4",
            "mdn_rabbit.mp4",
            "mdnie_flower.mp4",
        ];
        assert_eq!(names, expected);
        for clip in &signals {
            assert_eq!((&clip.sides[..], clip.channels), (&[128, 128, 128][..], 3));
            let n = clip.values.len() as f64;
            let mean = clip.values.iter().sum::<f64>() / n;
            let variance = clip.values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
            assert!(
                (0.05..0.95).contains(&mean) && variance > 1e-3,
                "{}: {mean} {variance}",
                clip.name
            );
            // Consecutive frames are similar: their difference is small compared with their contrast.
            let frame = 128 * 128 * 3;
            let step = clip.values.iter().zip(&clip.values[frame..]);
            let motion = step.map(|(a, b)| (a - b).powi(2)).sum::<f64>() / n;
            assert!(motion < 0.5 * variance, "{}: {motion} against {variance}", clip.name);
        }
        let statuses = check(&manifest, &directory);
        let status = statuses.iter().find(|status| status.id == "video-clips").unwrap();
        assert!(matches!(status.state, State::Substitute), "{status}");
    }
}
