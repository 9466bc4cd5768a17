//! The published data, where a person has them: in the directory that `POSENC_DATA` names.

use std::path::Path;

use posenc_data::{DataDirectory, DataSet, DataSource, Kind, Layout, Manifest, Origin};
use posenc_testing::{Need, skip};

use crate::support::real;

// Catches a wrong checksum, key or path in the manifest, and a decoder that changes pixels.
#[test]
fn the_published_data_have_the_checksums_of_the_manifest() {
    let Some(data) = real(".") else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = Manifest::read(&root.join("data/manifest.yaml")).unwrap();
    let source = DataSource::new(manifest, DataDirectory::resolve(Some(&data), &root).unwrap());
    // Clips have a test of their own, since only some builds read them.
    let of_images = |set: &&DataSet| set.kind == Kind::Images && set.layout != Layout::Generated;
    for set in source.manifest().sets().iter().filter(of_images) {
        let loaded = source.load(&set.id, 0, None).unwrap();
        if loaded.origin == Origin::Embedded {
            skip(Need::Data, format!("{} has no {}", data.display(), set.id));
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
