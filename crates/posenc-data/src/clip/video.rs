//! Video files, decoded by FFmpeg through video-rs if the build has the feature `video`.
//!
//! Frames are decoded one at a time; a video is never in memory as a whole. FFmpeg only converts them to 8-bit RGB, and this module turns
//! them as the file demands. FFmpeg's versions round the conversion differently, by about one level, so a video is identified by the bytes of its file.

use std::path::Path;

use crate::error::{DataError, VIDEO_CURE};

pub const fn video_support() -> bool {
    cfg!(feature = "video")
}

/// Error for a video file in a build without video support.
pub(crate) fn no_support(path: &Path) -> DataError {
    let message = format!(
        "this build cannot read video files; {VIDEO_CURE}; or give a folder of frames or an npz array"
    );
    DataError::at(path, message)
}

#[cfg(not(feature = "video"))]
mod backend {
    pub(crate) fn frames(
        path: &std::path::Path,
    ) -> Result<crate::clip::frame::Frames<'static>, super::DataError> {
        Err(super::no_support(path))
    }

    pub fn ffmpeg_version() -> Option<String> {
        None
    }
}

#[cfg(feature = "video")]
mod backend {
    use std::collections::HashMap;
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;

    use image::metadata::Orientation;
    use image::{DynamicImage, RgbImage};
    use video_rs::ffmpeg::codec::packet::side_data::Type;
    use video_rs::ffmpeg::format::Pixel;
    use video_rs::{Decoder, DecoderBuilder, Error, Options, ReaderBuilder, ffmpeg};

    use crate::clip::frame::{Frame, Frames, Values, check_size};
    use crate::error::DataError;
    use crate::files;

    /// Formats that contain their frames themselves, by their FFmpeg names: no playlists, no patterns of file names. Audio formats are
    /// included for the error that they have no video stream.
    const FORMATS: &str = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,mpegvideo,m4v,h264,hevc,ivf,ogg,asf,flv,\
                           yuv4mpegpipe,gif,wav,mp3,aac,flac";

    pub(crate) fn frames(path: &Path) -> Result<Frames<'static>, DataError> {
        drop(files::open(path)?);
        initialize();
        // A playlist is a text file that names others, on this machine or across the network.
        let allowed = [("protocol_whitelist", "file"), ("format_whitelist", FORMATS)];
        let allowed = allowed.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let options: Options = HashMap::from(allowed).into();
        let unreadable = |error: Error| {
            let message = format!(
                "not a readable video ({}); allowed: formats that this machine's FFmpeg decodes, such as mp4 with H.264: \
                 check that the file is complete, or convert it with: ffmpeg -i FILE -pix_fmt yuv420p OUT.mp4",
                why(&error)
            );
            DataError::at(path, message)
        };
        let reader = ReaderBuilder::new(path).with_options(&options).build().map_err(unreadable)?;
        let index = reader.best_video_stream_index().map_err(unreadable)?;
        let stream = reader.input.stream(index);
        let mut data = stream.iter().flat_map(|stream| stream.side_data());
        let orientation = match data.find(|data| data.kind() == Type::DisplayMatrix) {
            None => Orientation::NoTransforms,
            Some(matrix) => orientation(matrix.data()).ok_or_else(|| {
                let message = "the frames are shown turned by an angle that is no multiple of 90°; convert the video with: \
                               ffmpeg -i FILE -pix_fmt yuv420p OUT.mp4";
                DataError::at(path, message)
            })?,
        };
        let decoder =
            DecoderBuilder::new(path).with_options(&options).build().map_err(unreadable)?;
        let (width, height) = decoder.size();
        check_size(path, "each frame", [width, height].map(|side| side as usize), 3)?;
        let announced = decoder.frames().ok().filter(|&n| n > 0);
        let path = path.to_owned();
        let mut reader =
            Reader { path, decoder, orientation, announced, n_decoded: 0, ended: false };
        Ok(Box::new(std::iter::from_fn(move || reader.next_frame().transpose())))
    }

    /// The FFmpeg that reads video files, such as "FFmpeg 5 (libavcodec 59.37.100)"; `None` if this build reads none.
    pub fn ffmpeg_version() -> Option<String> {
        let parts = |version: u32| (version >> 16, version >> 8 & 0xff, version & 0xff);
        let (major, minor, micro) = parts(ffmpeg::codec::version());
        // The major version of libavcodec is that of the FFmpeg release plus 54.
        let release = major.saturating_sub(54);
        Some(format!("FFmpeg {release} (libavcodec {major}.{minor}.{micro})"))
    }

    /// Initializes FFmpeg once per process and turns its own messages off.
    fn initialize() {
        static DONE: OnceLock<()> = OnceLock::new();
        DONE.get_or_init(|| {
            // Errors are ignored: this only registers what newer versions of FFmpeg register themselves.
            let _ = video_rs::init();
        });
    }

    struct Reader {
        path: PathBuf,
        decoder: Decoder,
        orientation: Orientation,
        /// Frames that the file's header announces.
        announced: Option<u64>,
        n_decoded: usize,
        ended: bool,
    }

    impl Reader {
        fn next_frame(&mut self) -> Result<Option<Frame>, DataError> {
            if self.ended {
                return Ok(None);
            }
            let raw = match self.decoder.decode_raw() {
                Ok(raw) => raw,
                Err(Error::ReadExhausted | Error::DecodeExhausted) => return self.end(),
                // The scaler refuses a frame of another size than the first.
                Err(Error::BackendError(
                    ffmpeg::Error::InputChanged | ffmpeg::Error::OutputChanged,
                )) => return Err(self.damaged("the size of the frames changes here")),
                Err(error) => return Err(self.damaged(&why(&error))),
            };
            if raw.is_corrupt() {
                return Err(self.damaged("the decoder marks the next frame as corrupt"));
            }
            let (width, height) = (raw.width() as usize, raw.height() as usize);
            if raw.format() != Pixel::RGB24 || raw.planes() != 1 {
                return Err(self.damaged("a frame has another pixel format than the first"));
            }
            let (row, stride, data) = (3 * width, raw.stride(0), raw.data(0));
            let rows = (0..height).map(|y| data.get(y * stride..y * stride + row));
            let bytes = rows.collect::<Option<Vec<_>>>().map(|rows| rows.concat());
            let image = bytes.and_then(|b| RgbImage::from_raw(raw.width(), raw.height(), b));
            let Some(mut image) = image.map(DynamicImage::from) else {
                return Err(self.damaged("a frame has fewer rows than it announces"));
            };
            image.apply_orientation(self.orientation);
            self.n_decoded += 1;
            let (width, height) = (image.width() as usize, image.height() as usize);
            Ok(Some(Frame {
                width,
                height,
                channels: 3,
                values: Values::Bytes(image.into_bytes()),
            }))
        }

        /// Handles the end of the file. FFmpeg does not report a file that was cut between two packets, so the number of frames is compared
        /// with the header. Two frames, or one in ten, may be missing: edit lists leave frames out, and some encoders' last frame is never
        /// shown.
        fn end(&mut self) -> Result<Option<Frame>, DataError> {
            self.ended = true;
            let n_decoded = self.n_decoded as u64;
            match self.announced {
                Some(announced) if n_decoded + (announced / 10).max(2) < announced => {
                    Err(self.damaged("the file ends here"))
                }
                _ => Ok(None),
            }
        }

        fn damaged(&mut self, reason: &str) -> DataError {
            self.ended = true;
            let announced = self.announced.map(|n| format!(" of {n}")).unwrap_or_default();
            let message = format!(
                "damaged after {} frames{announced} ({reason}); the download or copy may be incomplete: \
                 fetch the file again",
                self.n_decoded
            );
            DataError::at(&self.path, message)
        }
    }

    /// How a matrix of 3 × 3 numbers turns and flips a frame: (x, y) becomes (a x + c y, b x + d y), apart from shifts and scales. `None` for
    /// other angles.
    fn orientation(matrix: &[u8]) -> Option<Orientation> {
        /// Signs of a, b, c, d in the order of Exif's numbers.
        const SIGNS: [[i32; 4]; 8] = [
            [1, 0, 0, 1],
            [-1, 0, 0, 1],
            [-1, 0, 0, -1],
            [1, 0, 0, -1],
            [0, 1, 1, 0],
            [0, 1, -1, 0],
            [0, -1, -1, 0],
            [0, -1, 1, 0],
        ];
        let sign = |i: usize| Some(i32::from_ne_bytes(*matrix.as_chunks().0.get(i)?).signum());
        let signs = [sign(0)?, sign(1)?, sign(3)?, sign(4)?];
        // Some programs write zeros.
        let at = SIGNS.iter().position(|known| *known == signs || signs == [0; 4])?;
        Orientation::from_exif(at as u8 + 1)
    }

    fn why(error: &Error) -> String {
        match error {
            Error::BackendError(ffmpeg::Error::StreamNotFound) => {
                "it has no video stream".to_owned()
            }
            Error::BackendError(ffmpeg::Error::DecoderNotFound) => {
                "this machine's FFmpeg has no decoder for its codec".to_owned()
            }
            Error::MissingCodecParameters => {
                "its codec or the size of its frames is unknown".to_owned()
            }
            other => other.to_string(),
        }
    }
}

pub use backend::ffmpeg_version;
pub(crate) use backend::frames;
