//! Referring expressions on screens of RICO (Bai et al. 2021, "UIBert"): `dev.jsonl`, one screen per line.

use std::path::{Path, PathBuf};

use posenc_math::detection::boxes::overlap;
use serde::Deserialize;

use super::words::{resource_words, text_words};
use super::{Corners, as_text, from_json, from_unit, read_whole};
use crate::error::DataError;
use crate::files::file_name;

/// Maximum file size in bytes: the development set has 2.4 · 10⁶. A word takes about 50 bytes of memory, even one of one letter.
const MAX_BYTES: u64 = 1 << 25;
/// Minimum overlap (intersection over union) of two boxes of the same object.
pub const SAME_BOX: f64 = 0.5;

/// Name of the file in its folder.
pub const REFERRING_SCREENS: &str = "dev.jsonl";
/// Words for positions and ordinals. Some are ambiguous (`next`, `second`, `right`); their meaning is not checked.
pub const SPATIAL_WORDS: [&str; 58] = [
    "above",
    "adjacent",
    "after",
    "before",
    "behind",
    "below",
    "beneath",
    "beside",
    "between",
    "bottom",
    "bottommost",
    "center",
    "centre",
    "column",
    "corner",
    "down",
    "eighth",
    "end",
    "fifth",
    "first",
    "fourth",
    "inside",
    "last",
    "left",
    "leftmost",
    "line",
    "lower",
    "middle",
    "near",
    "nearby",
    "next",
    "ninth",
    "outside",
    "over",
    "right",
    "rightmost",
    "row",
    "second",
    "seventh",
    "side",
    "sixth",
    "tenth",
    "third",
    "top",
    "topmost",
    "under",
    "underneath",
    "up",
    "upper",
    "1st",
    "2nd",
    "3rd",
    "4th",
    "5th",
    "6th",
    "7th",
    "8th",
    "9th",
];

/// Screens with one expression each.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferringScreens {
    file: PathBuf,
    /// In the order of the file.
    pub screens: Vec<ReferringScreen>,
}

/// A screen and an expression that refers to one of its boxes.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferringScreen {
    /// Name of the screen.
    pub screen: String,
    /// The expression as a person wrote it.
    pub expression: String,
    /// Its words, as split by [`text_words`].
    pub words: Vec<String>,
    /// Boxes that the annotators chose from, found by a detector.
    pub objects: Vec<Corners>,
    /// Index in `objects` of the target.
    pub object: usize,
    /// The leaves of the screen's view hierarchy.
    pub candidates: Vec<Candidate>,
    /// The candidate that overlaps the target most, the first of equal ones; `None` if none overlaps it.
    pub referred: Option<usize>,
    /// Intersection over union of `object` and `referred`, 0 to 1; 0 without a referred candidate.
    pub overlap: f64,
}

/// A leaf of a view hierarchy.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// On 0 … 99, with positive sides.
    pub corners: Corners,
    /// Name of its class as in the file: one of UIBert's (`TEXT_VIEW`), or the app's own.
    pub class: String,
    /// All words of its text, or else of its description, as split by [`text_words`].
    pub text: Vec<String>,
    /// All words of its resource name, as split by [`resource_words`].
    pub resource: Vec<String>,
}

#[derive(Deserialize)]
struct WireScreen {
    image_id: String,
    ref_exp: String,
    ref_label: usize,
    objects_xyxy: Vec<Corners>,
    nodes: Vec<WireNode>,
}

#[derive(Deserialize)]
struct WireNode {
    xyxy: Corners,
    class: String,
    text: String,
    description: String,
    id: String,
}

impl ReferringScreens {
    /// Reads a file of lines `{ image_id, ref_exp, ref_label, objects_xyxy: [[left, top, right, bottom]], nodes: [{ xyxy, class, text,
    /// description, id }] }`, coordinates on 0 … 1; `ref_label` is an index into `objects_xyxy`.
    ///
    /// # Errors
    /// When the file is missing, has more than 32 MiB or is not UTF-8; when a line is truncated, lacks a key, or has a value of the wrong
    /// type, an invalid box, an expression without words or a label without object; when there are no screens. The message names line and
    /// entry.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let bytes = read_whole(path, "the file of expressions", MAX_BYTES)?;
        let mut screens = Vec::new();
        for (i, line) in as_text(path, &bytes)?.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let entry = format!("line {}: ", i + 1);
            let wire: WireScreen = from_json(path, &entry, line.as_bytes())?;
            let screen = ReferringScreen::new(wire).map_err(|(place, reason)| {
                DataError::in_entry(path, &format!("{entry}{place}: "), reason)
            })?;
            screens.push(screen);
        }
        if screens.is_empty() {
            return Err(DataError::in_entry(path, "", "the file has no screens"));
        }
        Ok(ReferringScreens { file: path.to_owned(), screens })
    }

    /// A sentence about targets without a matching candidate; `None` if every target has one.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        let none = self.screens.iter().filter(|screen| screen.referred.is_none()).count();
        let poor = self.screens.iter().filter(|screen| screen.overlap < SAME_BOX).count();
        (poor > 0).then(|| {
            format!(
                "{}: of {} screens, {poor} have no node with an IoU of at least {SAME_BOX} with the target box, and {none} have no \
                 node that overlaps it",
                file_name(&self.file),
                self.screens.len()
            )
        })
    }
}

impl ReferringScreen {
    /// Whether a word, or a part of a compound such as `top-left`, is one of [`SPATIAL_WORDS`].
    #[must_use]
    pub fn is_spatial(&self) -> bool {
        let mut parts = self.words.iter().flat_map(|word| word.split(['-', '/']));
        parts.any(|part| SPATIAL_WORDS.contains(&part))
    }

    /// Converts a line. An error consists of its place and the reason.
    fn new(wire: WireScreen) -> Result<Self, (String, String)> {
        let objects = wire.objects_xyxy.iter().enumerate();
        let objects: Result<Vec<Corners>, _> = objects
            .map(|(i, unit)| from_unit(*unit).map_err(|e| (format!("objects_xyxy[{i}]"), e)))
            .collect();
        let objects = objects?;
        let object = wire.ref_label;
        let Some(meant) = objects.get(object).copied() else {
            let reason =
                format!("{object} is not allowed; objects_xyxy has {} boxes", objects.len());
            return Err(("ref_label".to_owned(), reason));
        };
        let words = text_words(&wire.ref_exp);
        if words.is_empty() {
            return Err(("ref_exp".to_owned(), format!("`{}` has no words", wire.ref_exp)));
        }
        let mut candidates = Vec::with_capacity(wire.nodes.len());
        let (mut referred, mut most) = (None, 0.0);
        for (i, node) in wire.nodes.into_iter().enumerate() {
            let corners = from_unit(node.xyxy).map_err(|e| (format!("nodes[{i}].xyxy"), e))?;
            let own = overlap(meant, corners);
            if own > most {
                (referred, most) = (Some(i), own);
            }
            let mut text = text_words(&node.text);
            if text.is_empty() {
                text = text_words(&node.description);
            }
            let resource = resource_words(&node.id);
            candidates.push(Candidate { corners, class: node.class, text, resource });
        }
        Ok(ReferringScreen {
            screen: wire.image_id,
            expression: wire.ref_exp,
            words,
            objects,
            object,
            candidates,
            referred,
            overlap: most,
        })
    }
}
