//! The output path of the reconstruction.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use posenc_data::{Clip, Image};
use posenc_protocols::reconstruction::Signal;

/// A PNG file, an npz file or a folder, depending on the extension.
pub enum OutputPath<'a> {
    Png(&'a Path),
    Npz(&'a Path),
    Folder(&'a Path),
}

impl<'a> OutputPath<'a> {
    /// Checks that the parent exists and that the input is not overwritten.
    pub fn new(from: &Path, out: &'a Path) -> Result<Self> {
        let same = |a: &Path, b: &Path| matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
        ensure!(
            !same(from, out),
            "--out {}: is the input itself; choose another file",
            out.display()
        );
        let parent = out.parent().filter(|p| !p.as_os_str().is_empty());
        if let Some(parent) = parent {
            ensure!(
                parent.is_dir(),
                "--out {}: folder {} does not exist; create it first",
                out.display(),
                parent.display()
            );
        }
        Ok(match out.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("png") => OutputPath::Png(out),
            Some("npz") => OutputPath::Npz(out),
            None => OutputPath::Folder(out),
            Some(other) => bail!(
                "--out {}: .{other} is not supported; allowed: .png for a picture, .npz or a folder for a clip",
                out.display()
            ),
        })
    }

    pub fn path(&self) -> &Path {
        match self {
            OutputPath::Png(path) | OutputPath::Npz(path) | OutputPath::Folder(path) => path,
        }
    }

    /// Checks before the fit that the format suits the signal: PNG for a picture, npz or frames for a clip.
    pub fn check(&self, signal: &Signal) -> Result<()> {
        match (self, signal.sides.len()) {
            (OutputPath::Png(_), 2) | (OutputPath::Npz(_) | OutputPath::Folder(_), 3) => Ok(()),
            (_, 2) => bail!("a picture is written as .png; name such a file with --out"),
            _ => bail!("a clip is written as .npz or into a folder of frames; name one with --out"),
        }
    }

    /// Writes the values, in which channels vary fastest.
    pub fn write(&self, signal: &Signal, values: Vec<f64>) -> Result<()> {
        let (name, channels) = (signal.name.clone(), signal.channels);
        match (self, &signal.sides[..]) {
            (OutputPath::Png(path), &[height, width]) => {
                Image { name, width, height, channels, pixels: values }.write_png(path)?;
            }
            (OutputPath::Npz(path) | OutputPath::Folder(path), &[frames, height, width]) => {
                let voxels = values.iter().map(|&v| v as f32).collect();
                let clip = Clip { name, frames, height, width, channels, voxels };
                match self {
                    OutputPath::Npz(_) => clip.write_npz(path)?,
                    _ => clip.write_frames(path)?,
                }
            }
            _ => {}
        }
        Ok(())
    }
}
