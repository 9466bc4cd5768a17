//! Parses selectors of the command line and matches them against names from files.

use posenc_experiments::selector::Selectors;

use super::text;

/// All lines but the last are selectors; the last is a path, whose method may contain anything.
pub fn selectors(bytes: &[u8]) -> usize {
    let Some((selectors, path)) = text(bytes).and_then(|text| text.rsplit_once('\n')) else {
        return 0;
    };
    let texts: Vec<String> = selectors.lines().map(str::to_owned).collect();
    let Ok(selectors) = Selectors::parse(&texts) else { return 0 };
    let mut parts = path.splitn(4, '/').chain(std::iter::repeat(""));
    let mut part = || parts.next().unwrap_or_default();
    let candidate = (part(), part(), part(), part());
    selectors.matches(candidate.0, candidate.1, candidate.2, candidate.3);
    1 + selectors.unmatched(&[candidate]).len()
}
