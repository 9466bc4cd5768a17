//! RICO Semantics (Sunkara et al. 2022): boxes of icons on RICO's screens, labelled with shape and meaning.

use std::collections::BTreeMap;
use std::path::Path;

use posenc_files::limits::MAX_SCREEN_BYTES;
use serde::Deserialize;

use super::{Corners, from_json, from_unit, read_whole};
use crate::error::DataError;

/// Name of the file in its folder.
pub const LABELLED_SCREENS: &str = "val.json";

#[derive(Debug, Clone, PartialEq)]
pub struct LabelledScreens {
    /// In the order of the file; some have no boxes.
    pub screens: Vec<LabelledScreen>,
    /// All labels in alphabetical order, such as `ICON_X:CLOSE` (shape and meaning).
    pub labels: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LabelledScreen {
    pub screen: String,
    pub boxes: Vec<LabelledBox>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelledBox {
    /// On 0 … 99, with positive sides.
    pub corners: Corners,
    /// Index in [`LabelledScreens::labels`].
    pub label: usize,
}

#[derive(Deserialize)]
struct WireScreen {
    screen_id: String,
    screen_elements: Vec<WireElement>,
}

#[derive(Deserialize)]
struct WireElement {
    xmin: f64,
    ymin: f64,
    xmax: f64,
    ymax: f64,
    label: String,
}

impl LabelledScreens {
    /// Reads a file such as `val.json`: a list of `{ screen_id, screen_elements: [{ xmin, ymin, xmax, ymax, label }] }`,
    /// coordinates on 0 … 1.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let bytes = read_whole(path, "the file of labelled boxes", MAX_SCREEN_BYTES)?;
        let wire: Vec<WireScreen> = from_json(path, &bytes)?;
        let wrong = |entry: String, reason: String| {
            DataError::in_entry(path, &format!("{entry}: "), reason)
        };
        if wire.is_empty() {
            return Err(DataError::in_entry(path, "", "the file has no screens"));
        }
        let all = wire.iter().flat_map(|screen| &screen.screen_elements);
        let mut numbers: BTreeMap<String, usize> = all.map(|e| (e.label.clone(), 0)).collect();
        for (n, number) in numbers.values_mut().enumerate() {
            *number = n;
        }
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut screens = Vec::with_capacity(wire.len());
        for (i, screen) in wire.into_iter().enumerate() {
            let name = screen.screen_id;
            let entry = || format!("[{i}] (screen_id {name})");
            if let Some(other) = seen.insert(name.clone(), i) {
                return Err(wrong(entry(), format!("[{other}] is the same screen")));
            }
            let mut boxes = Vec::with_capacity(screen.screen_elements.len());
            for (j, element) in screen.screen_elements.iter().enumerate() {
                let entry = || format!("{}.screen_elements[{j}]", entry());
                if element.label.is_empty() {
                    return Err(wrong(entry(), "the label is empty".to_owned()));
                }
                let unit = [element.xmin, element.ymin, element.xmax, element.ymax];
                let corners = from_unit(unit).map_err(|reason| wrong(entry(), reason))?;
                boxes.push(LabelledBox { corners, label: numbers[&element.label] });
            }
            screens.push(LabelledScreen { screen: name, boxes });
        }
        Ok(LabelledScreens { screens, labels: numbers.into_keys().collect() })
    }
}
