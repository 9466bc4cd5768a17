//! Screens of RICO with captioned widgets and their pixels, read one by one.
//!
//! One folder contains everything: `combined/<screen>.json` and `combined/<screen>.jpg` (or `.png`), `widget_captions.csv`,
//! `split/{train,dev,test}.txt`. Pixels are prepared as in the public code: a node's box is cropped from the screenshot, whatever its size,
//! at whole pixels, resized with a cubic filter, then converted to gray. Nodes whose pixels the public code does not use are black. A
//! screen without a screenshot is an error, as in the public code.

use std::path::{Path, PathBuf};

use image::RgbImage;
use image::imageops::{self, FilterType};

use super::captions::{CaptionSplit, CaptionedWidget, WidgetCaptions};
use super::hierarchy::{ViewHierarchy, ViewNode};
use super::words::CaptionVocabulary;
use super::{BORDER, Corners};
use crate::error::DataError;
use crate::image::picture::Picture;

/// Weights of red, green and blue in gray, as in TensorFlow.
const GRAY: [f32; 3] = [0.2989, 0.5870, 0.1140];

const ENDINGS: [&str; 2] = ["jpg", "png"];

/// Maximum number of screens without a screenshot that a message lists.
const LISTED: usize = 3;

/// Screens with captioned widgets; trees and pixels are read on demand.
#[derive(Debug, Clone)]
pub struct WidgetScreens {
    folder: PathBuf,
    captions: WidgetCaptions,
    vocabulary: CaptionVocabulary,
    trained: Vec<Corners>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WidgetScreen {
    pub nodes: Vec<ViewNode>,
    /// Captioned nodes, each with the gray levels of its pixels, row by row.
    pub widgets: Vec<(CaptionedWidget, Vec<u8>)>,
}

impl WidgetScreens {
    /// Reads the captions with the trees of their screens. The vocabulary has `size` numbers, for the most frequent words of captions,
    /// texts and resource names on the training screens. (The public code counts the words of all splits.)
    pub fn open(folder: &Path, size: usize) -> Result<Self, DataError> {
        let (mut texts, mut trained) = (Vec::new(), Vec::new());
        let captions = WidgetCaptions::read(folder, |split, ViewHierarchy { nodes }, own| {
            if split == CaptionSplit::Training {
                trained.extend(own.iter().filter_map(|w| Some(nodes.get(w.node)?.corners)));
                let words = |node: ViewNode| node.text.into_iter().chain(node.resource);
                texts.extend(nodes.into_iter().flat_map(words));
            }
        })?;
        let said = captions.screens(CaptionSplit::Training).iter().flatten();
        let said = said.flat_map(|widget| &widget.captions).flatten().map(String::as_str);
        let vocabulary = CaptionVocabulary::new(texts.iter().map(String::as_str).chain(said), size);
        let screens = WidgetScreens { folder: folder.to_owned(), captions, vocabulary, trained };
        screens.check_screenshots()?;
        Ok(screens)
    }

    fn check_screenshots(&self) -> Result<(), DataError> {
        let widgets =
            || CaptionSplit::ALL.into_iter().flat_map(|split| self.captions.screens(split));
        let screens = || widgets().filter_map(|own| Some(&own.first()?.screen));
        let all = screens().count();
        let missing = screens().filter(|screen| self.screenshot(screen).is_none());
        let mut missing: Vec<_> = missing.map(|name| format!("combined/{name}.jpg")).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let count = missing.len();
        missing.truncate(LISTED);
        let mut names = missing.join(", ");
        if count > LISTED {
            names += &format!(" and {} more", count - LISTED);
        }
        let hint = format!(
            "{count} of {all} screens with captions have no screenshot; RICO's are JPEG files next to the trees: unpack \
             them there, or remove the screens from split/*.txt"
        );
        Err(DataError::missing(&self.folder, names, hint))
    }

    fn screenshot(&self, screen: &str) -> Option<PathBuf> {
        let path = |ending: &&str| self.folder.join("combined").join(format!("{screen}.{ending}"));
        ENDINGS.iter().map(path).find(|path| path.is_file())
    }

    /// Screens of a split that have captioned widgets.
    pub fn count(&self, split: CaptionSplit) -> usize {
        self.captions.screens(split).len()
    }

    pub fn report(&self) -> String {
        self.captions.report.to_string()
    }

    pub fn vocabulary(&self) -> &CaptionVocabulary {
        &self.vocabulary
    }

    pub fn trained(&self) -> &[Corners] {
        &self.trained
    }

    /// Reads a screen by its index in the split; pictures of widgets have `side` rows and columns.
    pub fn read(
        &self,
        split: CaptionSplit,
        screen: usize,
        side: usize,
    ) -> Result<WidgetScreen, DataError> {
        let widgets = &self.captions.screens(split)[screen];
        let name = &widgets[0].screen;
        let nodes = ViewHierarchy::of_screen(&self.folder, name)?.nodes;
        if let Some(lost) = widgets.iter().find(|widget| widget.node >= nodes.len()) {
            let file = self.folder.join(format!("combined/{name}.json"));
            let message = format!("node {} is gone: the file has changed; run again", lost.node);
            return Err(DataError::at(&file, message));
        }
        // The screenshot existed when the set was opened. If it is gone, reading it fails with its name.
        let path = self.screenshot(name);
        let path = path.unwrap_or_else(|| self.folder.join(format!("combined/{name}.jpg")));
        let screenshot = Picture::read(&path)?.into_rgb();
        let own = |widget: &CaptionedWidget| {
            let node = &nodes[widget.node];
            let is_shown = node.shows_pixels();
            let pixels = is_shown.then(|| cut_out(&screenshot, node.corners, side)).flatten();
            (widget.clone(), pixels.unwrap_or_else(|| vec![0; side * side]))
        };
        let widgets = widgets.iter().map(own).collect();
        Ok(WidgetScreen { nodes, widgets })
    }
}

/// Gray levels of a box on 0 … 99, `side` rows and columns; `None` if the box contains no pixel.
fn cut_out(screenshot: &RgbImage, corners: Corners, side: usize) -> Option<Vec<u8>> {
    let sides = [screenshot.width(), screenshot.height()];
    // Corners come from whole pixels of the canvas; rounding errors must not lose a pixel.
    let at = |i: usize| (corners[i] / BORDER * f64::from(sides[i % 2]) + 1e-6) as u32;
    let [left, top, right, bottom] = [at(0), at(1), at(2).min(sides[0]), at(3).min(sides[1])];
    if right <= left || bottom <= top {
        return None;
    }
    let (width, height) = (right - left, bottom - top);
    let window = imageops::crop_imm(screenshot, left, top, width, height);
    let side = side as u32;
    let small = imageops::resize(&*window, side, side, FilterType::CatmullRom);
    let gray = small.pixels().map(|pixel| {
        let sum: f32 =
            pixel.0.iter().zip(GRAY).map(|(&level, share)| f32::from(level) * share).sum();
        // The cast truncates, as in the public code.
        sum as u8
    });
    Some(gray.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    /// Catches boxes that lose or gain a pixel, swapped axes, wrong gray weights, and boxes without pixels that cause a panic or get other
    /// pixels.
    #[test]
    fn boxes_are_cut_out_at_whole_pixels() {
        // Twelve columns, sixteen rows: one pixel for 120 × 160 of the canvas.
        let mut screenshot = RgbImage::from_pixel(12, 16, Rgb([255, 255, 255]));
        for y in 4..8 {
            for x in 3..9 {
                screenshot.put_pixel(x, y, Rgb([0, 200, 0]));
            }
        }
        let on_canvas = |bounds: [f64; 4]| {
            let sides = [1440.0, 2560.0, 1440.0, 2560.0];
            [0, 1, 2, 3].map(|i| bounds[i] * BORDER / sides[i])
        };
        let green = (200.0f32 * 0.5870) as u8;
        let cut_out = |corners, side| cut_out(&screenshot, corners, side);
        let inside = cut_out(on_canvas([360.0, 640.0, 1080.0, 1280.0]), 4);
        assert_eq!(inside, Some(vec![green; 16]));
        // One row and one column more of the white around it.
        let more = cut_out(on_canvas([240.0, 640.0, 1080.0, 1440.0]), 8).unwrap();
        assert!(more[0] > 200 && more[7] <= green + 20 && more[63] > 200);
        let whole = cut_out([0.0, 0.0, BORDER, BORDER], 4).unwrap();
        assert!(whole.contains(&254) && whole.iter().any(|&v| v < 200));
        for nothing in [[360.0, 640.0, 360.0, 1280.0], [1080.0, 640.0, 360.0, 1280.0]] {
            assert_eq!(cut_out(on_canvas(nothing), 4), None);
        }
        assert_eq!(cut_out([BORDER; 4], 4), None);
    }
}
