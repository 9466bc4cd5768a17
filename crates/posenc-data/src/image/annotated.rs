//! Photographs with boxes in COCO's format (Lin et al. 2014; cocodataset.org/#format-data).
//!
//! A folder is laid out in one of two ways:
//!
//! - as COCO 2017 is: `annotations/instances_train2017.json` and `annotations/instances_val2017.json`, photographs in
//!   `train2017/` and `val2017/`;
//! - or in small: one file `instances*.json`, photographs in `images/`, which serve for both training and evaluation.
//!
//! Boxes are clipped to their photograph. Boxes without area after that are skipped, as in DETR, and counted. Crowds are not trained on,
//! and evaluation ignores their regions. Any other defect is an error that names the file and the entry.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use image::RgbImage;
use posenc_files::limits::MAX_ARRAY_BYTES;
use serde::{Deserialize, Serialize};

use crate::directory::{file_name, inside};
use crate::error::DataError;
use crate::files::{from_json, only_file, read_whole};
use crate::image::MAX_SIDE;
use crate::image::augment::{AnnotatedBox, Photograph};
use crate::image::downsampled::Split;
use crate::image::picture::Picture;
use crate::write::{unwritable_signal, write_jpeg};

/// The photographs of a split and their annotations; pixels are read on demand.
#[derive(Debug, Clone)]
pub struct AnnotatedImages {
    file: PathBuf,
    images: Vec<AnnotatedImage>,
    categories: BTreeMap<usize, String>,
    empty: usize,
    cut: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AnnotatedImage {
    pub id: u64,
    pub path: PathBuf,
    pub size: [usize; 2],
    pub boxes: Vec<AnnotatedBox>,
}

#[derive(Deserialize, Serialize)]
struct WireFile {
    images: Vec<WireImage>,
    annotations: Vec<WireAnnotation>,
    categories: Vec<WireCategory>,
}

#[derive(Deserialize, Serialize)]
struct WireImage {
    id: u64,
    file_name: String,
    height: usize,
    width: usize,
}

#[derive(Deserialize, Serialize)]
struct WireAnnotation {
    id: u64,
    image_id: u64,
    category_id: usize,
    bbox: [f64; 4],
    #[serde(default)]
    area: Option<f64>,
    #[serde(default)]
    iscrowd: u8,
}

#[derive(Deserialize, Serialize)]
struct WireCategory {
    id: usize,
    name: String,
}

impl AnnotatedImages {
    /// Reads the annotations of a split in `folder`, and checks that all photographs exist.
    pub fn open(folder: &Path, split: Split) -> Result<Self, DataError> {
        let (file, pictures) = locate(folder, split)?;
        let text = read_whole(&file, "the file of annotations", MAX_ARRAY_BYTES)?;
        let wire = from_json(&file, &text, |_| "; the download may be incomplete".to_owned())?;
        Self::new(file, &pictures, wire)
    }

    fn new(file: PathBuf, pictures: &Path, wire: WireFile) -> Result<Self, DataError> {
        let wrong = |entry: String, reason: String| {
            DataError::in_entry(&file, &format!("{entry}: "), reason)
        };
        let categories: BTreeMap<usize, String> =
            wire.categories.into_iter().map(|c| (c.id, c.name)).collect();
        let mut images = Vec::with_capacity(wire.images.len());
        let mut places = BTreeMap::new();
        for (i, image) in wire.images.into_iter().enumerate() {
            let entry = || format!("images[{i}] (id {})", image.id);
            let name = inside(&image.file_name)
                .map_err(|reason| wrong(entry(), format!("file_name: {reason}")))?;
            let path = pictures.join(name);
            let most = MAX_SIDE as usize;
            if ![image.height, image.width].iter().all(|side| (1..=most).contains(side)) {
                let reason = format!(
                    "{} × {} pixels are not allowed; allowed: 1 to {most} rows and columns",
                    image.height, image.width
                );
                return Err(wrong(entry(), reason));
            }
            if places.insert(image.id, i).is_some() {
                return Err(wrong(entry(), "the id appears twice".to_owned()));
            }
            if !path.is_file() {
                return Err(wrong(entry(), format!("photograph {} not found", path.display())));
            }
            let size = [image.height, image.width];
            images.push(AnnotatedImage { id: image.id, path, size, boxes: Vec::new() });
        }
        let (mut empty, mut cut) = (0, 0);
        for (i, annotation) in wire.annotations.into_iter().enumerate() {
            let entry = || format!("annotations[{i}] (id {})", annotation.id);
            let Some(image) = places.get(&annotation.image_id).and_then(|&at| images.get_mut(at))
            else {
                return Err(wrong(entry(), format!("no image has the id {}", annotation.image_id)));
            };
            let category = annotation.category_id;
            if !categories.contains_key(&category) {
                return Err(wrong(entry(), format!("no category has the id {category}")));
            }
            let [left, top, width, height] = annotation.bbox;
            let [rows, columns] = image.size;
            let whole = [left, top, left + width, top + height];
            let corners = [0, 1, 2, 3].map(|i| whole[i].clamp(0.0, [columns, rows][i % 2] as f64));
            if corners[2] <= corners[0] || corners[3] <= corners[1] {
                empty += 1;
                continue;
            }
            // Published boxes exceed the border slightly because of rounding.
            cut += usize::from(corners.iter().zip(whole).any(|(a, b)| (a - b).abs() > 0.5));
            let area = annotation.area.unwrap_or(width * height);
            let is_crowd = annotation.iscrowd != 0;
            image.boxes.push(AnnotatedBox { category, corners, area, is_crowd });
        }
        if images.is_empty() {
            return Err(DataError::in_entry(&file, "", "the file has no images"));
        }
        Ok(AnnotatedImages { file, images, categories, empty, cut })
    }

    /// The photographs, in the order of the file.
    pub fn images(&self) -> &[AnnotatedImage] {
        &self.images
    }

    pub fn categories(&self) -> &BTreeMap<usize, String> {
        &self.categories
    }

    /// A sentence about skipped and clipped boxes and crowds; `None` if there are none.
    pub fn remark(&self) -> Option<String> {
        let crowds = self.images.iter().flat_map(|image| &image.boxes).filter(|b| b.is_crowd);
        let crowds = crowds.count();
        if crowds + self.empty + self.cut == 0 {
            return None;
        }
        Some(format!(
            "{}: skipped {} boxes without area, clipped {} at the border; {crowds} crowds are excluded from training and \
             ignored in evaluation",
            file_name(&self.file),
            self.empty,
            self.cut
        ))
    }

    /// Reads a photograph; gray values are repeated.
    pub fn photograph(&self, image: &AnnotatedImage) -> Result<Photograph, DataError> {
        let picture = Picture::read(&image.path)?;
        let [rows, columns] = image.size;
        if (picture.height() as usize, picture.width() as usize) != (rows, columns) {
            let message = format!(
                "{} × {} pixels, but {rows} × {columns} (rows × columns) according to {} for image {}; fetch \
                 the file again or remove it",
                picture.height(),
                picture.width(),
                self.file.display(),
                image.id
            );
            return Err(DataError::at(&image.path, message));
        }
        Ok(Photograph { image: picture.into_rgb(), boxes: image.boxes.clone() })
    }
}

/// The annotation file of a split, and the folder of its photographs.
fn locate(folder: &Path, split: Split) -> Result<(PathBuf, PathBuf), DataError> {
    let name = match split {
        Split::Training => "train2017",
        Split::Validation => "val2017",
    };
    let file = folder.join(format!("annotations/instances_{name}.json"));
    if file.is_file() {
        return Ok((file, folder.join(name)));
    }
    let what = format!("annotations/instances_{name}.json or instances*.json");
    let hint = "COCO's annotations are expected in annotations/ with photographs in train2017/ and val2017/, or one file \
                instances*.json with photographs in images/";
    let fits = |name: &str| name.starts_with("instances") && name.ends_with(".json");
    Ok((only_file(folder, &what, hint, fits)?, folder.join("images")))
}

/// Writes photographs as JPEG files and their boxes in COCO's format: `instances.json` and `images/` in `folder`.
pub fn write_annotated(
    folder: &Path,
    categories: &[&str],
    images: &[(Vec<u8>, [usize; 2], Vec<AnnotatedBox>)],
) -> Result<(), DataError> {
    let unwritable = DataError::unwritable;
    let pictures = folder.join("images");
    posenc_files::make_folder(&pictures).map_err(|e| unwritable(&pictures, e))?;
    let categories = categories.iter().enumerate();
    let mut wire = WireFile {
        images: Vec::new(),
        annotations: Vec::new(),
        categories: categories
            .map(|(i, name)| WireCategory { id: i + 1, name: (*name).to_owned() })
            .collect(),
    };
    for (i, (pixels, [height, width], boxes)) in images.iter().enumerate() {
        let file_name = format!("{:012}.jpg", i + 1);
        let path = pictures.join(&file_name);
        let picture = RgbImage::from_raw(*width as u32, *height as u32, pixels.clone());
        let picture = picture.ok_or_else(|| {
            let bytes = pixels.len();
            unwritable_signal(
                &file_name,
                format!("{bytes} bytes do not make {height} × {width} pixels"),
            )
        })?;
        write_jpeg(&path, &picture, 95)?;
        let id = i as u64 + 1;
        wire.images.push(WireImage { id, file_name, height: *height, width: *width });
        for own in boxes {
            let [left, top, right, bottom] = own.corners;
            wire.annotations.push(WireAnnotation {
                id: wire.annotations.len() as u64 + 1,
                image_id: id,
                category_id: own.category,
                bbox: [left, top, right - left, bottom - top],
                area: Some(own.area),
                iscrowd: u8::from(own.is_crowd),
            });
        }
    }
    let path = folder.join("instances.json");
    let text = serde_json::to_vec(&wire).map_err(std::io::Error::from);
    text.and_then(|text| posenc_files::write_atomically(&path, &text))
        .map_err(|e| unwritable(&path, e))
}
