//! Files of trained weights: safetensors, or what PyTorch's `torch.save` writes.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use pytorch_reader::{DType, PytorchReader};
use safetensors::tensor::Metadata;
use safetensors::{Dtype, SafeTensors};

use crate::error::DataError;
use crate::files::{self, has_ending, only_file, read_whole};
use posenc_files::limits::MAX_WEIGHT_BYTES;

const ENDINGS: [&str; 3] = ["safetensors", "pth", "pt"];

/// A file of weights; arrays are read on demand.
pub struct WeightFile {
    path: PathBuf,
    content: Content,
}

enum Content {
    /// The whole file, its parsed header, and the offset of its arrays. A header may have 100 MB, so it is parsed only once.
    SafeTensors(Vec<u8>, Metadata, usize),
    /// The reader, and the prefix of every name.
    PyTorch(PytorchReader, &'static str),
}

impl std::fmt::Debug for WeightFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WeightFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl WeightFile {
    /// Opens the one file of weights in a folder.
    pub fn in_folder(folder: &Path) -> Result<Self, DataError> {
        let hint = "one file of weights is expected, .safetensors, .pth or .pt";
        let fits = |name: &str| has_ending(Path::new(name), &ENDINGS);
        Self::open(&only_file(folder, "file of weights", hint, fits)?)
    }

    /// Opens a file; its content, not its name, determines the format.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let path = path.to_owned();
        let damaged = |reason: String| {
            let message =
                format!("not a readable file of weights ({reason}); fetch the file again");
            DataError::at(&path, message)
        };
        // A safetensors file begins with the length of its header, which is JSON.
        let unreadable = |error| DataError::io(&path, "file", error);
        let (mut start, file) = (Vec::new(), files::open(&path)?);
        let bytes = file.metadata().map_err(unreadable)?.len();
        if bytes > MAX_WEIGHT_BYTES {
            return Err(DataError::too_large(
                &path,
                "the file of weights",
                bytes,
                MAX_WEIGHT_BYTES,
            ));
        }
        file.take(9).read_to_end(&mut start).map_err(unreadable)?;
        if start.get(8) == Some(&b'{') {
            let text = read_whole(&path, "the file of weights", MAX_WEIGHT_BYTES)?;
            let (header, metadata) =
                SafeTensors::read_metadata(&text).map_err(|e| damaged(e.to_string()))?;
            // The length of the header takes eight bytes itself.
            let content = Content::SafeTensors(text, metadata, header + 8);
            return Ok(WeightFile { path, content });
        }
        let reader = PytorchReader::new(&path).map_err(|e| damaged(e.to_string()))?;
        // Checkpoints keep weights next to other things.
        let holds = |prefix: &&str| reader.keys().iter().any(|key| key.starts_with(*prefix));
        let prefix = ["model.", "state_dict."].into_iter().find(holds).unwrap_or("");
        Ok(WeightFile { path, content: Content::PyTorch(reader, prefix) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn has(&self, name: &str) -> bool {
        match &self.content {
            Content::SafeTensors(_, metadata, _) => metadata.info(name).is_some(),
            Content::PyTorch(reader, prefix) => reader.get(&format!("{prefix}{name}")).is_some(),
        }
    }

    /// Reads an array, row by row. It must have this shape and 32-bit numbers.
    pub fn array(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, DataError> {
        let wrong = |reason: String| DataError::at(&self.path, reason);
        let missing = || wrong(format!("no array `{name}`; are these the weights of this model?"));
        // Checked before reading: a view may announce gigabytes that a small file does not have.
        let check = |found: &[usize], is_single: bool| {
            if found == shape && is_single {
                return Ok(());
            }
            Err(wrong(format!(
                "array `{name}` has shape {found:?}{}; required: {shape:?}, 32-bit numbers",
                if is_single { "" } else { " and another type of numbers" }
            )))
        };
        let bytes = match &self.content {
            Content::SafeTensors(bytes, metadata, start) => {
                let array = metadata.info(name).ok_or_else(missing)?;
                check(&array.shape, array.dtype == Dtype::F32)?;
                let (from, to) = array.data_offsets;
                let data = bytes.get(*start..).and_then(|all| all.get(from..to));
                data.ok_or_else(|| wrong(format!("array `{name}` is cut short")))?.to_vec()
            }
            Content::PyTorch(reader, prefix) => {
                let array = reader.get(&format!("{prefix}{name}")).ok_or_else(missing)?;
                check(array.shape(), array.dtype() == DType::F32)?;
                array.read().map_err(|e| wrong(format!("array `{name}` is damaged: {e}")))?
            }
        };
        Ok(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
    }
}
