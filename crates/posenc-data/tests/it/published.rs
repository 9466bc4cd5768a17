//! The published data, where a person has them: in the directory that `POSENC_DATA` names.

use std::path::Path;

use posenc_data::{
    DataDirectory, DataSet, DataSource, ENVIRONMENT_VARIABLE, Kind, Layout, Manifest, Origin,
};

// Catches a wrong checksum, key or path in the manifest, and a decoder that changes pixels.
#[test]
fn the_published_data_have_the_checksums_of_the_manifest() {
    if std::env::var_os(ENVIRONMENT_VARIABLE).is_none_or(|value| value.is_empty()) {
        eprintln!("skipped: set {ENVIRONMENT_VARIABLE} to a directory with the published data");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = Manifest::read(&root.join("data/manifest.yaml")).unwrap();
    let source = DataSource::new(manifest, DataDirectory::resolve(None, &root).unwrap());
    // Clips have a test of their own, since only some builds read them.
    let of_images = |set: &&DataSet| set.kind == Kind::Images && set.layout != Layout::Generated;
    for set in source.manifest().sets().iter().filter(of_images) {
        let loaded = source.load(&set.id, 0, None).unwrap();
        if loaded.origin == Origin::Embedded {
            eprintln!("skipped: {} is not there", set.id);
            continue;
        }
        assert_eq!(loaded.origin, Origin::Published, "{:?}", loaded.warnings);
        assert_eq!(loaded.signals.len(), set.count);
        let shape = (set.size as usize, set.size as usize, set.channels.count());
        assert!(
            loaded.signals.iter().all(|image| (image.width, image.height, image.channels) == shape)
        );
    }
}
