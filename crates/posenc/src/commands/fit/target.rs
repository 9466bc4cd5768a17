//! The output path of the reconstruction.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use posenc_data::Signal;

/// Checks before the input is read that the parent exists and that the input is not overwritten.
pub fn check_path(from: &Path, out: &Path) -> Result<()> {
    let shown = out.display();
    let is_same =
        matches!((from.canonicalize(), out.canonicalize()), (Ok(from), Ok(out)) if from == out);
    ensure!(!is_same, "--out {shown}: is the input itself; choose another file");
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
        bail!("--out {shown}: folder {} does not exist; create it first", parent.display());
    }
    Ok(())
}

/// Checks before the fit that the format suits the signal: PNG for a picture, npz or a folder of frames for a clip.
pub fn check_format(out: &Path, signal: &Signal) -> Result<()> {
    match (extension(out).as_deref(), signal.sides.len()) {
        (Some("png"), 2) | (None | Some("npz"), 3) => Ok(()),
        (None | Some("npz"), 2) => {
            bail!("a picture is written as .png; name such a file with --out")
        }
        (Some("png"), _) => {
            bail!("a clip is written as .npz or into a folder of frames; name one with --out")
        }
        (other, _) => bail!(
            "--out {}: .{} is not supported; allowed: .png for a picture, .npz or a folder for a clip",
            out.display(),
            other.unwrap_or_default()
        ),
    }
}

fn extension(out: &Path) -> Option<String> {
    out.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase)
}

/// Writes values at the positions of a signal to a checked path.
pub fn write(out: &Path, signal: &Signal, values: Vec<f64>) -> Result<()> {
    let signal =
        Signal { name: signal.name.clone(), sides: signal.sides.clone(), values, ..*signal };
    match (signal.sides.len(), extension(out)) {
        (2, _) => signal.write_png(out)?,
        (_, Some(_)) => signal.write_npz(out)?,
        (_, None) => signal.write_frames(out)?,
    }
    Ok(())
}
