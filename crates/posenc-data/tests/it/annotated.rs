//! Photographs with boxes in COCO's format.

use std::path::Path;

use image::{DynamicImage, GrayImage, Luma};
use posenc_data::{AnnotatedBox, AnnotatedImages, DataError, Split, write_annotated};
use serde_json::{Value, json};

use crate::support::{assert_refused, assert_says, real, save_rgb};

fn open(folder: &Path) -> Result<AnnotatedImages, DataError> {
    AnnotatedImages::open(folder, Split::Training)
}

/// Two photographs, one of them gray, of 40 rows and 60 columns.
fn photographs(folder: &Path) {
    let images = folder.join("images");
    std::fs::create_dir_all(&images).unwrap();
    save_rgb(&images.join("a.jpg"), 60, 40);
    let gray = GrayImage::from_fn(60, 40, |x, _| Luma([(4 * x) as u8]));
    DynamicImage::ImageLuma8(gray).save(images.join("b.jpg")).unwrap();
}

fn annotations() -> Value {
    let one = |id: u64, image_id: u64, bbox: [f64; 4], iscrowd: u8| {
        json!({ "id": id, "image_id": image_id, "category_id": 7, "bbox": bbox, "area": 12.5,
                "iscrowd": iscrowd, "segmentation": [[1.0, 2.0, 3.0]] })
    };
    json!({
        "info": { "year": 2017 },
        "images": [
            { "id": 11, "file_name": "a.jpg", "height": 40, "width": 60, "license": 4 },
            { "id": 5, "file_name": "b.jpg", "height": 40, "width": 60 },
        ],
        "annotations": [
            one(1, 5, [1.0, 2.0, 3.0, 4.0], 0),
            one(2, 11, [50.0, 30.0, 20.0, 20.0], 0),
            one(3, 11, [10.0, 10.0, 0.0, 5.0], 0),
            one(4, 11, [70.0, 10.0, 5.0, 5.0], 0),
            one(5, 11, [0.0, 0.0, 60.0, 40.0], 1),
        ],
        "categories": [{ "id": 7, "name": "train", "supercategory": "vehicle" }],
    })
}

fn write(folder: &Path, annotations: &Value) {
    std::fs::write(folder.join("instances_two.json"), annotations.to_string()).unwrap();
}

/// Catches boxes of the wrong photograph or with wrong corners, boxes that are not clipped, empty boxes that are kept, crowds that are
/// lost, and gray that is not repeated.
#[test]
fn boxes_are_clipped_counted_and_joined_to_their_photograph() {
    let folder = tempfile::tempdir().unwrap();
    photographs(folder.path());
    write(folder.path(), &annotations());
    let images = open(folder.path()).unwrap();
    assert_eq!(images.categories()[&7], "train");
    let [first, second] = images.images() else { panic!("two photographs") };
    assert_eq!((first.id, first.size, second.id), (11, [40, 60], 5));
    let own = |corners, is_crowd| AnnotatedBox { category: 7, corners, area: 12.5, is_crowd };
    let corners = [[50.0, 30.0, 60.0, 40.0], [0.0, 0.0, 60.0, 40.0]];
    assert_eq!(first.boxes, [own(corners[0], false), own(corners[1], true)]);
    assert_eq!(second.boxes, [own([1.0, 2.0, 4.0, 6.0], false)]);
    let remark = images.remark().unwrap();
    assert!(remark.contains("skipped 2 boxes without area, clipped 1"), "{remark}");
    assert!(remark.contains("1 crowds"), "{remark}");
    let gray = images.photograph(second).unwrap().pixels();
    assert_eq!(gray.len(), 3 * 40 * 60);
    assert!(gray.as_chunks::<3>().0.iter().all(|p| p[0] == p[1] && p[1] == p[2]));
    // The layout of COCO itself.
    let whole = tempfile::tempdir().unwrap();
    std::fs::create_dir(whole.path().join("annotations")).unwrap();
    std::fs::rename(folder.path().join("images"), whole.path().join("val2017")).unwrap();
    let file = whole.path().join("annotations/instances_val2017.json");
    std::fs::write(file, annotations().to_string()).unwrap();
    let found = AnnotatedImages::open(whole.path(), Split::Validation).unwrap();
    assert_eq!(found.images()[1].boxes, second.boxes);
    assert_refused(open(whole.path()), &["instances_train2017.json", "train2017/"]);
}

/// Catches an invalid entry that is skipped or misread, and a message that does not name it.
#[test]
fn damaged_annotations_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    assert_refused(open(path), &["instances*.json", "images/"]);
    photographs(path);
    let changed = |pointer: &str, value: Value| {
        let mut all = annotations();
        *all.pointer_mut(pointer).unwrap() = value;
        write(path, &all);
        open(path).unwrap_err()
    };
    for (pointer, value, parts) in [
        ("/annotations/1/image_id", json!(12), ["annotations[1] (id 2)", "no image has the id 12"]),
        ("/annotations/0/category_id", json!(8), ["annotations[0]", "no category has the id 8"]),
        ("/annotations/2/bbox", json!([1, 2, 3]), ["annotations[2].bbox", "length 3"]),
        ("/annotations/4", json!({ "id": 5 }), ["annotations[4]", "missing field `image_id`"]),
        ("/images/1/file_name", json!("c.jpg"), ["images[1] (id 5)", "c.jpg not found"]),
        (
            "/images/1/file_name",
            json!("../images/b.jpg"),
            ["images[1]", "may lead out of the folder"],
        ),
        ("/images/1/file_name", json!("/etc/passwd"), ["images[1]", "may lead out of the folder"]),
        (
            "/images/1/file_name",
            json!("a\\..\\..\\b.jpg"),
            ["images[1]", "may lead out of the folder"],
        ),
        ("/images/1/file_name", json!("C:b.jpg"), ["images[1]", "may lead out of the folder"]),
        ("/images/1/file_name", json!("b\0.jpg"), ["images[1]", "may lead out of the folder"]),
        ("/images/1/id", json!(11), ["images[1] (id 11)", "appears twice"]),
        ("/images/0/width", json!(0), ["images[0] (id 11)", "1 to 32768"]),
        ("/images", json!([]), ["annotations[0]", "no image has the id 5"]),
        ("/categories", json!({}), ["categories", "expected a sequence"]),
        (
            "",
            json!({ "images": [], "annotations": [], "categories": [] }),
            ["the file has no images", "fetch the file again"],
        ),
    ] {
        assert_says(&changed(pointer, value), &[&["instances_two.json"], &parts[..]].concat());
    }
    // A truncated file, then two files.
    let text = annotations().to_string();
    std::fs::write(path.join("instances_two.json"), &text[..text.len() / 2]).unwrap();
    assert_refused(open(path), &["instances_two.json", "EOF", "may be incomplete"]);
    std::fs::write(path.join("instances_one.json"), &text).unwrap();
    assert_refused(open(path), &["there are 2", "remove all but one"]);
}

/// Catches photographs of another size than the annotations state, and truncated photographs.
#[test]
fn damaged_photographs_are_named() {
    let folder = tempfile::tempdir().unwrap();
    photographs(folder.path());
    write(folder.path(), &annotations());
    let images = open(folder.path()).unwrap();
    let path = folder.path().join("images/a.jpg");
    let read = || images.photograph(&images.images()[0]).unwrap_err();
    save_rgb(&path, 40, 60);
    assert_says(&read(), &["a.jpg", "60 × 40 pixels", "40 × 60", "image 11"]);
    let bytes = std::fs::read(&path).unwrap();
    for part in [bytes.len() / 3, bytes.len() * 9 / 10, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..part]).unwrap();
        assert_says(&read(), &["a.jpg", "not a readable image"]);
    }
    std::fs::write(&path, "no picture").unwrap();
    assert_says(&read(), &["a.jpg", "not a readable image"]);
}

/// Catches a writer whose files the reader reads differently.
#[test]
fn written_annotations_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let own =
        AnnotatedBox { category: 2, corners: [1.25, 2.5, 8.0, 9.0], area: 40.0, is_crowd: false };
    let pixels: Vec<u8> = (0..20 * 30).flat_map(|i| [(i % 30 * 8) as u8, 90, 40]).collect();
    let images = [(pixels.clone(), [20, 30], vec![own]), (pixels.clone(), [20, 30], vec![])];
    write_annotated(folder.path(), &["one", "two"], &images).unwrap();
    let read = open(folder.path()).unwrap();
    assert_eq!(read.images().len(), 2);
    assert_eq!(read.images()[0].boxes, [own]);
    assert_eq!(read.remark(), None);
    let found = read.photograph(&read.images()[0]).unwrap().pixels();
    assert!(found.iter().zip(&pixels).all(|(a, b)| (a - f32::from(*b) / 255.0).abs() < 0.09));
    let error = write_annotated(folder.path(), &[], &[(vec![0; 5], [2, 2], vec![])]).unwrap_err();
    assert_says(&error, &["5 bytes do not make 2 × 2 pixels"]);
}

/// Catches a reader that rejects real annotations.
#[test]
fn real_annotations_are_read() {
    let Some(data) = real("coco33") else { return };
    let images = open(&data.join("coco33")).unwrap();
    let boxes = || images.images().iter().flat_map(|image| &image.boxes);
    assert_eq!((images.images().len(), boxes().count(), images.categories().len()), (33, 246, 80));
    assert_eq!(boxes().filter(|own| own.is_crowd).count(), 3);
    for image in images.images() {
        let photograph = images.photograph(image).unwrap();
        assert_eq!(photograph.size(), image.size, "{}", image.path.display());
    }
}
