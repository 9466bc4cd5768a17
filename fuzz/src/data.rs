//! Third-party data: archives, pictures, annotations, text, weights.
//!
//! The readers of these data take paths, so the bytes are written into a temporary folder, in memory if `/dev/shm` exists.

use std::io::{Cursor, Write as _};
use std::path::Path;

use posenc_data::interfaces::{
    CaptionVocabulary, LabelledScreens, ViewHierarchy, WidgetCaptions, WordVectors,
};
use posenc_data::{
    AnnotatedImages, DownsampledImages, ParallelText, Picture, Split, Vocabulary, WeightFile,
    load_clip_file, load_picture_file, npz as archives,
};
use tempfile::TempDir;
use zip::write::{SimpleFileOptions, ZipWriter};

/// A screen with two nodes that captions can describe.
const SCREEN: &str = r#"{"activity":{"root":{"bounds":[0,0,1440,2560],"class":"View","clickable":false,
"visibility":"visible","visible-to-user":true,"children":[{"bounds":[0,0,720,80],"class":"Button","clickable":true,
"visibility":"visible","visible-to-user":true,"text":"go back"}]}}}"#;

/// A temporary folder for an input, with the other files that its readers need.
fn folder() -> std::io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory)?,
        false => tempfile::tempdir()?,
    };
    let path = |name: &str| folder.path().join(name);
    for inner in ["split", "combined", "images"] {
        std::fs::create_dir(path(inner))?;
    }
    std::fs::write(path("split/train.txt"), "0\n1\n")?;
    std::fs::write(path("split/dev.txt"), "2\n")?;
    std::fs::write(path("split/test.txt"), "")?;
    std::fs::write(path("combined/0.json"), SCREEN)?;
    std::fs::write(path("images/a.png"), "")?;
    Ok(folder)
}

thread_local! {
    static FOLDER: Option<TempDir> = folder().ok();
}

/// Runs `read` on a folder that contains the bytes under these names.
fn with(bytes: &[u8], names: &[&str], read: impl Fn(&Path) -> usize) -> usize {
    FOLDER.with(|folder| {
        let Some(folder) = folder.as_ref().map(TempDir::path) else { return 0 };
        let is_written = names.iter().all(|name| std::fs::write(folder.join(name), bytes).is_ok());
        if is_written { read(folder) } else { 0 }
    })
}

/// Reads an npz archive: array names, arrays, a clip, downsampled images. The bytes are also read as the only array of a valid archive,
/// since a fuzzer would not guess its checksums.
pub fn npz(bytes: &[u8]) -> usize {
    let archive = with(bytes, &["val_data.npz"], read_archive);
    let packed = packed(bytes);
    archive + packed.map_or(0, |bytes| with(&bytes, &["val_data.npz"], read_archive))
}

fn packed(array: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file("data.npy", SimpleFileOptions::default())?;
    archive.write_all(array)?;
    Ok(archive.finish()?.into_inner())
}

fn read_archive(folder: &Path) -> usize {
    let path = folder.join("val_data.npz");
    let names = archives::array_names(&path).unwrap_or_default();
    let arrays =
        names.iter().take(3).filter(|name| archives::read_array(&path, name).is_ok()).count();
    let clips =
        [None, Some(2)].into_iter().filter(|size| load_clip_file(&path, *size).is_ok()).count();
    let images = DownsampledImages::open(folder, 2, Split::Validation);
    arrays + clips + usize::from(images.is_ok_and(|images| images.first(3).is_ok()))
}

/// Reads COCO annotations, RICO view hierarchies and RICO Semantics.
pub fn json_data(bytes: &[u8]) -> usize {
    with(bytes, &["instances.json"], |folder| {
        let path = folder.join("instances.json");
        let annotated = AnnotatedImages::open(folder, Split::Training);
        let hierarchy = ViewHierarchy::read(&path);
        let read = [
            LabelledScreens::read(&path).is_ok(),
            hierarchy
                .is_ok_and(|screen| screen.find("0.1.0").is_none_or(|at| at < screen.nodes.len())),
            annotated.is_ok_and(|images| images.remark().is_none_or(|r| !r.is_empty())),
        ];
        read.into_iter().filter(|accepted| *accepted).count()
    })
}

/// Reads widget captions, word vectors, and parallel text, plain and compressed.
pub fn csv_data(bytes: &[u8]) -> usize {
    let names = ["widget_captions.csv", "vectors.txt", "a.en", "a.de", "b.en.gz", "b.de.gz"];
    with(bytes, &names, |folder| {
        let root = folder;
        let vocabulary = CaptionVocabulary::new(["go", "back", "the"], 10);
        let vectors = WordVectors::read(&folder.join("vectors.txt"), &vocabulary, 3);
        let texts = ["a", "b"].map(|split| ParallelText::read(root, split, ["en", "de"]));
        let read = [WidgetCaptions::read(root, |_, _, _| {}).is_ok(), vectors.is_ok()];
        let texts = texts.into_iter().flatten();
        let texts = texts
            .filter(|text| Vocabulary::new(text, 10).number(text).target_entropy(11, 5) >= 0.0);
        read.into_iter().filter(|accepted| *accepted).count() + texts.count()
    })
}

/// Reads a picture (PNG, JPEG, TIFF): as a picture, as a frame of a clip, and as a picture of a record.
pub fn picture(bytes: &[u8]) -> usize {
    let own = posenc_experiments::record::Picture::from_png("truth", "a", bytes).is_ok();
    let Ok(picture) = Picture::parse(Path::new("a.png"), bytes) else { return usize::from(own) };
    let _ = picture.pixels_sha256();
    let files = with(bytes, &["images/a.png"], |folder| {
        let file = folder.join("images/a.png");
        let pictures = [None, Some(2)].map(|size| load_picture_file(&file, size).is_ok());
        let clip = load_clip_file(&folder.join("images"), Some(1)).is_ok();
        pictures.into_iter().chain([clip]).filter(|accepted| *accepted).count()
    });
    1 + usize::from(own) + files
}

/// Reads weights: safetensors and PyTorch files, zipped and not.
pub fn weights(bytes: &[u8]) -> usize {
    with(bytes, &["weights.pt"], |folder| {
        let Ok(file) = WeightFile::open(&folder.join("weights.pt")) else { return 0 };
        let arrays = ["a", "b.weight"].map(|name| {
            let shapes = [&[][..], &[2], &[2, 3]].into_iter();
            shapes.filter(|shape| file.has(name) && file.array(name, shape).is_ok()).count()
        });
        1 + arrays.into_iter().sum::<usize>()
    })
}
