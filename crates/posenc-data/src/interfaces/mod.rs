//! User interfaces: screens as trees or lists of boxes, with words.
//!
//! - [`ViewHierarchy`]: a screen of RICO (Deka et al. 2017), a file `combined/<screen>.json`;
//! - [`WidgetCaptions`]: captions that people wrote for the widgets of these screens (Li et al. 2020), `widget_captions.csv` and
//!   `split/{train,dev,test}.txt`;
//! - [`WidgetScreens`]: both with the pixels of widgets, read screen by screen;
//! - [`WordVectors`]: GloVe (Pennington et al. 2014), `glove.6B.300d.txt`, for a [`CaptionVocabulary`];
//! - [`LabelledScreens`]: boxes of icons and what they mean, RICO Semantics (Sunkara et al. 2022), `val.json`.
//!
//! All boxes are [`Corners`] on 0 … 99. The readers follow the public code of widget captioning (google-research, `widget_caption`);
//! comments state the differences. Damage is an error that names file and entry; skipped entries are counted.

mod captions;
mod hierarchy;
mod screens;
mod semantics;
mod words;
mod write;

use std::path::Path;

use serde::de::DeserializeOwned;

pub use captions::{
    CaptionReport, CaptionSplit, CaptionedWidget, Skipped, SplitReport, WIDGET_CAPTIONS,
    WidgetCaptions,
};
pub use hierarchy::{ViewHierarchy, ViewNode};
pub use posenc_math::detection::boxes::Corners;
pub use screens::{WidgetScreen, WidgetScreens};
pub use semantics::{LABELLED_SCREENS, LabelledBox, LabelledScreen, LabelledScreens};
pub use words::{
    CaptionVocabulary, END, LABEL_WORDS, PADDING, START, UNKNOWN, WordVectors, resource_words,
    text_words,
};
pub use write::write_widget_screens;

use crate::error::DataError;
use crate::files::read_whole;

/// Coordinate of the right and lower borders of a screen; the left and upper ones are at 0. The public code truncates coordinates to
/// integers; here they stay real.
pub const BORDER: f64 = 99.0;

/// Converts a box with coordinates from 0 to 1, or returns what is wrong with it.
fn from_unit(unit: Corners) -> Result<Corners, String> {
    let [left, top, right, bottom] = unit;
    let is_inside = unit.iter().all(|v| (0.0..=1.0).contains(v));
    if !is_inside || left >= right || top >= bottom {
        return Err(format!(
            "left {left}, top {top}, right {right}, bottom {bottom} do not form a box; allowed: numbers from 0 to 1 with left < \
             right and top < bottom"
        ));
    }
    Ok(unit.map(|v| v * BORDER))
}

/// Text in UTF-8 without a byte order mark.
fn as_text<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, DataError> {
    let text = str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let message = "not UTF-8; fetch the file again, or convert it: iconv -t UTF-8";
        DataError::at_line(path, posenc_files::line_at(bytes, before.len()), message)
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// As [`crate::files::from_json`], with a hint for files that are cut short or nested too deep.
fn from_json<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, DataError> {
    crate::files::from_json(path, bytes, |error| match error.classify() {
        serde_json::error::Category::Eof => "; the download may be incomplete".to_owned(),
        _ if error.to_string().starts_with("recursion limit") => {
            format!("; objects and lists may be nested at most {} deep", hierarchy::MAX_LEVELS)
        }
        _ => String::new(),
    })
}
