//! Where the data of a set come from, which decides what results on them may be compared with.

/// Source of a set of signals, which decides what its results may be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The paper's own data: the checksum is the manifest's.
    Published,
    /// The manifest's files with the manifest's checksum, which replace data of the paper that is unavailable. They are real
    /// and the same everywhere, but results do not compare with published values.
    Substitute,
    /// Found at the path of the paper's data, but with another checksum.
    Other,
    Embedded,
    User,
}

/// Label and origin of the data found for a set, from its checksum and the manifest's. `own` is the data that the set replaces; `what`
/// describes the data found.
pub(crate) fn compared(
    id: &str,
    own: Option<&str>,
    what: &str,
    sha256: &str,
    published: &str,
    warnings: &mut Vec<String>,
) -> (String, Origin) {
    match (own, sha256 == published) {
        (None, true) => (id.to_owned(), Origin::Published),
        (Some(own), true) => {
            warnings.push(format!(
                "{id}: used instead of {own}; results are labeled substitute:{id} and not compared with published \
                 values"
            ));
            (format!("substitute:{id}"), Origin::Substitute)
        }
        (_, false) => {
            warnings.push(format!(
                "{id}: {what} have SHA-256 {sha256}, the published ones {published}; results on them are labeled \
                 other:{id} and not compared with published values"
            ));
            (format!("other:{id}"), Origin::Other)
        }
    }
}
