//! Tests on the published data in the directory that `POSENC_DATA` names, if available.

use std::path::Path;
use std::time::Duration;

use posenc_data::{DataDirectory, DataSet, DataSource, Download, Fetcher, Kind, Manifest, Origin};
use posenc_files::testing::{Need, skip};

use crate::support::{loaded, real};

// Catches a wrong checksum, key or path in the manifest, and a decoder that changes pixels.
#[test]
fn the_published_data_have_the_checksums_of_the_manifest() {
    let Some(data) = real(".") else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = Manifest::read(&root.join("data/manifest.yaml")).unwrap();
    let source = DataSource::new(manifest, DataDirectory::resolve(Some(&data), &root).unwrap());
    // Clips have a separate test, because only some builds read them.
    let of_images = |set: &&DataSet| set.kind == Kind::Images && set.layout.is_some();
    for set in source.manifest().sets().iter().filter(of_images) {
        let (loaded, signals) = loaded(&source, &set.id, 0);
        if loaded.origin == Origin::Embedded {
            skip(Need::Data, format!("{} has no {}", data.display(), set.id));
            continue;
        }
        assert_eq!(loaded.origin, Origin::Published, "{:?}", loaded.warnings);
        assert_eq!(signals.len(), set.count);
        let shape = (set.size as usize, set.size as usize, set.channels.count());
        assert!(
            signals.iter().all(|image| (image.width(), image.height(), image.channels) == shape)
        );
    }
}

// Catches a file to download whose path, size or checksum in the manifest is not that of the published file.
#[test]
fn files_to_download_are_the_published_ones() {
    let Some(data) = real(".") else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = Manifest::read(&root.join("data/manifest.yaml")).unwrap();
    let directory = &DataDirectory::resolve(Some(&data), &root).unwrap();
    let fetcher = Fetcher { directory, mirror: None, patience: Duration::from_secs(1) };
    let signals = manifest.sets().iter().map(|set| (&set.id, set.download()));
    let all = signals.chain(manifest.file_sets().iter().map(|set| (&set.id, set.download())));
    let with_files: Vec<(&String, Download)> =
        all.filter(|(_, download)| !download.files.is_empty()).collect();
    for (id, download) in &with_files {
        // Only existing files are compared.
        fetcher.missing(&download.files).unwrap_or_else(|error| panic!("{id}: {error}"));
        for file in &download.files {
            if let Ok(found) = std::fs::metadata(data.join(&file.path)) {
                assert_eq!(found.len(), file.bytes, "{}", file.path.display());
            }
        }
    }
    assert!(with_files.len() > 10, "{with_files:?}");
}
