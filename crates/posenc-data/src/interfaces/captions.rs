//! Captions of the widgets on RICO's screens (Li et al. 2020, "Widget Captioning").
//!
//! A row of `widget_captions.csv` names a screen (`screenId`), a node of it (`nodeId`) and captions, with `|` between.
//! `split/{train,dev,test}.txt` name a screen in each line. Rows of the data set `nr` are about screens that were never
//! released.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use posenc_files::csv::{Record, Records};

use super::hierarchy::ViewHierarchy;
use super::words::LABEL_WORDS;
use super::{as_text, read_whole};
use crate::error::DataError;
use posenc_files::limits::MAX_SCREEN_BYTES;

pub const WIDGET_CAPTIONS: &str = "widget_captions.csv";
/// Maximum number of captions per widget; further ones are dropped.
const MAX_CAPTIONS: usize = 4;
/// Maximum length of a screen's name in bytes.
const MAX_NAME: usize = 64;
/// The data set whose screens were never released.
const UNRELEASED: &str = "nr";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaptionSplit {
    Training,
    Development,
    Test,
}

impl CaptionSplit {
    pub const ALL: [Self; 3] = [Self::Training, Self::Development, Self::Test];

    /// Name of its file, without `.txt`.
    pub fn name(self) -> &'static str {
        match self {
            CaptionSplit::Training => "train",
            CaptionSplit::Development => "dev",
            CaptionSplit::Test => "test",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptionedWidget {
    /// Name of the screen, for [`ViewHierarchy::of_screen`].
    pub screen: String,
    /// Its index in [`ViewHierarchy::nodes`].
    pub node: usize,
    /// One to four captions of one to [`LABEL_WORDS`] words.
    pub captions: Vec<Vec<String>>,
}

/// Widgets of all splits on the available screens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WidgetCaptions {
    /// For each split of [`CaptionSplit::ALL`], the widgets of each screen that has some, in the order of the split's screens, then of
    /// the rows.
    screens: [Vec<Vec<CaptionedWidget>>; 3],
    pub report: CaptionReport,
}

/// Counts of read and skipped rows, which can be displayed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptionReport {
    pub rows: usize,
    /// Rows about screens that were never released.
    pub unreleased: usize,
    /// Other rows about screens that no split names.
    pub in_no_split: usize,
    /// The splits, in the order of [`CaptionSplit::ALL`].
    pub splits: [SplitReport; 3],
}

/// Why a row about a screen of a split is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skipped {
    ScreenMissing,
    /// The file of the screen contains `null` instead of a tree.
    ScreenEmpty,
    NodeMissing,
    Invisible,
    WithoutWords,
    /// A later row is about the same node.
    Replaced,
}

/// What a report says about rows skipped for each reason, in the order of [`Skipped`].
const REASONS: [&str; 6] = [
    "about screens without a file",
    "about screens without a tree",
    "whose node is missing",
    "whose node is invisible",
    "without words",
    "replaced by a later row",
];

/// Counts for a split.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SplitReport {
    pub screens: usize,
    pub widgets: usize,
    pub captions: usize,
    /// Skipped rows, by reason.
    pub skipped: [usize; REASONS.len()],
}

impl SplitReport {
    fn skip(&mut self, reason: Skipped, rows: usize) {
        self.skipped[reason as usize] += rows;
    }
}

impl fmt::Display for CaptionReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{WIDGET_CAPTIONS}: {} rows ({} about screens that were never released, {} about screens in no \
             split)",
            self.rows, self.unreleased, self.in_no_split
        )?;
        for (split, own) in CaptionSplit::ALL.into_iter().zip(&self.splits) {
            let SplitReport { screens, widgets, captions, skipped } = own;
            let skipped = skipped.iter().zip(REASONS).map(|(rows, why)| format!("{rows} {why}"));
            write!(
                out,
                "\n{}: {widgets} widgets with {captions} captions on {screens} screens; skipped rows: {}",
                split.name(),
                skipped.collect::<Vec<_>>().join(", ")
            )?;
        }
        Ok(())
    }
}

/// A row to be joined with its screen.
struct Row {
    node: String,
    captions: Vec<Vec<String>>,
}

impl WidgetCaptions {
    /// Reads the captions in a folder and finds their nodes in its screens `combined/*.json`. This reads every screen once and keeps none
    /// of them: `take` receives the split, the tree and the widgets of each screen that has some.
    pub fn read(
        folder: &Path,
        mut take: impl FnMut(CaptionSplit, ViewHierarchy, &[CaptionedWidget]),
    ) -> Result<Self, DataError> {
        let splits = read_splits(folder)?;
        let combined = folder.join("combined");
        if !combined.is_dir() {
            let hint = "RICO's view hierarchies are expected in combined/, one file for each screen: 12.json";
            return Err(DataError::missing(folder, "folder combined", hint));
        }
        let mut report = CaptionReport::default();
        let mut rows: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        let file = folder.join(WIDGET_CAPTIONS);
        read_rows(&file, &splits, &mut report, &mut rows)?;
        let mut screens = [const { Vec::new() }; 3];
        // Screens split by split, in line order.
        let mut in_order: Vec<_> = splits.iter().map(|(screen, place)| (*place, screen)).collect();
        in_order.sort_unstable();
        for ((split, _), screen) in in_order {
            let own = &mut report.splits[split as usize];
            own.screens += 1;
            let Some(rows) = rows.remove(screen) else { continue };
            let hierarchy = match ViewHierarchy::of_screen(folder, screen) {
                Ok(hierarchy) => hierarchy,
                Err(DataError::NotFound { .. }) => {
                    own.skip(Skipped::ScreenMissing, rows.len());
                    continue;
                }
                Err(other) => return Err(other),
            };
            let found = join(screen, &hierarchy, rows, own);
            own.widgets += found.len();
            own.captions += found.iter().map(|widget| widget.captions.len()).sum::<usize>();
            if !found.is_empty() {
                take(split, hierarchy, &found);
                screens[split as usize].push(found);
            }
        }
        if screens.iter().all(Vec::is_empty) {
            let reason = format!("no caption has its screen in {}: {report}", combined.display());
            return Err(DataError::in_entry(&file, "", reason));
        }
        Ok(WidgetCaptions { screens, report })
    }

    /// The widgets of each screen of a split that has some.
    pub fn screens(&self, split: CaptionSplit) -> &[Vec<CaptionedWidget>] {
        &self.screens[split as usize]
    }
}

/// Split of each screen, and its line in the file of the split.
type Splits = BTreeMap<String, (CaptionSplit, usize)>;

fn split_file(folder: &Path, split: CaptionSplit) -> PathBuf {
    folder.join("split").join(format!("{}.txt", split.name()))
}

/// Reads the split of every screen. A screen that appears twice in one split counts once.
fn read_splits(folder: &Path) -> Result<Splits, DataError> {
    let mut splits = Splits::new();
    for split in CaptionSplit::ALL {
        let path = split_file(folder, split);
        let bytes = read_whole(&path, "the split", MAX_SCREEN_BYTES)?;
        for (i, line) in as_text(&path, &bytes)?.lines().enumerate() {
            let wrong = |reason: String| DataError::at_line(&path, i + 1, reason);
            let screen = line.trim();
            if screen.is_empty() {
                continue;
            }
            check_screen(screen).map_err(wrong)?;
            if let Some((other, line)) = splits.get(screen)
                && *other != split
            {
                return Err(wrong(format!(
                    "screen {screen} is also in {}:{line}; a screen belongs to one split: remove it from the others",
                    split_file(folder, *other).display()
                )));
            }
            splits.entry(screen.to_owned()).or_insert((split, i + 1));
        }
    }
    Ok(splits)
}

/// Checks the name of a screen, which becomes a file name: only letters, digits, `_` and `-`.
fn check_screen(name: &str) -> Result<(), String> {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_letter) {
        return Ok(());
    }
    let shown: String = name.chars().take(MAX_NAME).collect();
    Err(format!(
        "`{shown}` is not the name of a screen; allowed: a number such as 12, or up to {MAX_NAME} letters, digits, `_`, `-`"
    ))
}

/// The rows about screens of the splits, by screen.
fn read_rows(
    path: &Path,
    splits: &Splits,
    report: &mut CaptionReport,
    rows: &mut BTreeMap<String, Vec<Row>>,
) -> Result<(), DataError> {
    let bytes = read_whole(path, "the file of captions", MAX_SCREEN_BYTES)?;
    let wrong = |(line, reason): (usize, String)| DataError::at_line(path, line, reason);
    let mut records = Records::new(as_text(path, &bytes)?);
    let header = records.header().map_err(wrong)?;
    let header =
        header.ok_or_else(|| wrong((1, "the file is empty; fetch it again".to_owned())))?;
    let (number, columns) = (header.fields.len(), columns(&header).map_err(wrong)?);
    while let Some(record) = records.next_record().map_err(wrong)? {
        let damaged = |reason: String| wrong((record.line, reason));
        if record.fields.len() != number {
            return Err(damaged(format!(
                "{} fields, but the header has {number}; the download may be incomplete, or a comma is outside of \
                 quotes",
                record.fields.len()
            )));
        }
        report.rows += 1;
        let [screen, node, captions, data_set] = columns.map(|column| &record.fields[column]);
        if data_set == UNRELEASED {
            report.unreleased += 1;
            continue;
        }
        check_screen(screen).map_err(damaged)?;
        if node.split('.').any(|place| place.parse::<u32>().is_err()) {
            return Err(damaged(format!(
                "`{node}` is not a node of screen {screen}; allowed: whole numbers with periods between, such as 0.2.1"
            )));
        }
        if !splits.contains_key(screen.as_ref()) {
            report.in_no_split += 1;
            continue;
        }
        let captions = captions_of(captions);
        rows.entry(screen.to_string()).or_default().push(Row { node: node.to_string(), captions });
    }
    Ok(())
}

/// Splits captions at `|` and words at spaces, as the public code does. The published captions have neither capitals nor punctuation.
fn captions_of(field: &str) -> Vec<Vec<String>> {
    let words = |caption: &str| -> Vec<String> {
        caption.split_whitespace().take(LABEL_WORDS).map(str::to_lowercase).collect()
    };
    let captions = field.split('|').map(words).filter(|words| !words.is_empty());
    captions.take(MAX_CAPTIONS).collect()
}

/// Widgets of the rows whose nodes exist and are visible, in row order.
fn join(
    screen: &str,
    hierarchy: &ViewHierarchy,
    rows: Vec<Row>,
    report: &mut SplitReport,
) -> Vec<CaptionedWidget> {
    if hierarchy.nodes.is_empty() {
        report.skip(Skipped::ScreenEmpty, rows.len());
        return Vec::new();
    }
    let mut found: Vec<CaptionedWidget> = Vec::new();
    let mut places: BTreeMap<usize, usize> = BTreeMap::new();
    for Row { node, captions } in rows {
        let Some(node) = hierarchy.find(&node) else {
            report.skip(Skipped::NodeMissing, 1);
            continue;
        };
        if !hierarchy.nodes[node].is_visible {
            report.skip(Skipped::Invisible, 1);
            continue;
        }
        if captions.is_empty() {
            report.skip(Skipped::WithoutWords, 1);
            continue;
        }
        // The last row about a node counts, as in the public code.
        if let Some(place) = places.get(&node) {
            report.skip(Skipped::Replaced, 1);
            found[*place].captions = captions;
            continue;
        }
        places.insert(node, found.len());
        found.push(CaptionedWidget { screen: screen.to_owned(), node, captions });
    }
    found
}

/// Where the columns of screens, nodes, captions and data sets are.
fn columns(header: &Record<'_>) -> Result<[usize; 4], (usize, String)> {
    let mut columns = [0; 4];
    for (column, name) in columns.iter_mut().zip(["screenId", "nodeId", "captions", "datasetId"]) {
        let found = header.fields.iter().position(|field| field.trim() == name);
        *column = found.ok_or_else(|| {
            let present: Vec<&str> =
                header.fields.iter().take(10).map(|field| field.trim()).collect();
            let reason = format!(
                "no column `{name}`; the header must name screenId, nodeId, captions and datasetId, and it has `{}`",
                present.join(", ")
            );
            (header.line, reason)
        })?;
    }
    Ok(columns)
}
