//! Grids of recorded pictures.

use schemars::JsonSchema;
use serde::Deserialize;

use super::check_names;
use crate::record::Row;
use crate::record::picture::NAMES;
use crate::schema::group::Group;
use crate::yaml::{FileError, YamlPath};

/// Pictures side by side: the first signal with pictures, and the methods' reconstructions of it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureGrid {
    /// Unique in the file. Allowed: a key.
    pub id: String,
    /// Title above the pictures, followed by what was reduced and by the data. Allowed: Markdown.
    pub title: String,
    /// Groups, in order.
    pub groups: Vec<String>,
    /// Pictures of the signal, in order. Allowed: names below.
    #[serde(default = "truth_and_reconstruction")]
    pub show: Vec<String>,
    /// Metric below a reconstruction, of its unit and signal, without abscissa. Default: the PSNR of the picture itself.
    pub caption: Option<String>,
    /// `grid`: a column for the signal and one per method, a row per group and kind of picture. `strip`: a row for the
    /// signal and one per method, for wide pictures. Default: `grid`.
    #[serde(default)]
    pub kind: Layout,
}

fn truth_and_reconstruction() -> Vec<String> {
    vec!["truth".into(), "reconstruction".into()]
}

/// How pictures are laid out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// A column per method, after the signal itself; a row per group and kind of picture.
    #[default]
    Grid,
    /// A row per method, below the signal itself: for wide pictures, such as frames of a video.
    Strip,
}

impl PictureGrid {
    /// Which of these pictures the grid shows.
    pub fn selection<'a>(&'a self, pictures: &[Row]) -> impl Fn(&Row) -> bool + use<'a> {
        let is_own = |p: &Row| self.groups.contains(&p.group) && self.show.contains(&p.metric);
        let first = pictures.iter().find(|p| is_own(p)).map(|p| p.signal.clone());
        move |p| is_own(p) && first.as_ref() == Some(&p.signal)
    }

    pub(super) fn check(&self, place: &YamlPath<'_>, groups: &[Group]) -> Result<(), FileError> {
        for (key, list) in [("groups", &self.groups), ("show", &self.show)] {
            if list.is_empty() {
                return Err(place.error(key, "empty"));
            }
        }
        let ids: Vec<_> = groups.iter().map(|g| g.id.as_str()).collect();
        check_names(&place.key("groups"), "group", &self.groups, &ids)?;
        let names: Vec<_> = NAMES.iter().map(|n| n.name).collect();
        check_names(&place.key("show"), "picture", &self.show, &names)?;
        let own = |group: &&Group| self.groups.contains(&group.id);
        let problem =
            |metric: &String| groups.iter().filter(own).find_map(|g| g.metric_problem(metric));
        if let Some(problem) = self.caption.as_ref().and_then(problem) {
            return Err(place.error("caption", problem));
        }
        for (j, shown) in self.show.iter().enumerate() {
            if self.show[..j].contains(shown) {
                return Err(place.entry("show", j).error("", format!("`{shown}` appears twice")));
            }
        }
        Ok(())
    }
}
