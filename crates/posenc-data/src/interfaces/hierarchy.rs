//! View hierarchies of RICO (Deka et al. 2017): a screen as a tree of nodes, read as the public code of widget captioning
//! (Li et al. 2020) reads them.

use std::path::Path;

use posenc_files::limits::MAX_SCREEN_BYTES;
use serde::Deserialize;

use super::words::{LABEL_WORDS, resource_words, text_words};
use super::{BORDER, Corners, from_json, read_whole};
use crate::error::DataError;

/// Columns and rows of the canvas of every screen, whatever the size of its screenshot.
pub(super) const CANVAS: [f64; 2] = [1440.0, 2560.0];
/// Maximum nesting of JSON, the parser's own limit. Each level of the tree takes two levels of JSON.
pub(super) const MAX_LEVELS: usize = 127;
/// Fraction of the canvas that a side of a node must exceed for its pixels to be used.
const SMALLEST_SHARE: f64 = 0.005;

/// Classes of the public code, with numbers from 1. All descend from a view, a rectangle; 0 is padding, and the last number is for others.
const CLASSES: [&str; 10] = [
    "ImageView",
    "Button",
    "ImageButton",
    "View",
    "CompoundButton",
    "CheckBox",
    "RadioButton",
    "FloatingActionButton",
    "ToggleButton",
    "Switch",
];

/// The number of the class, else of the nearest ancestor that has one. Only the part of a name after its last period counts, without case.
fn number_of<'a>(class: &'a str, ancestors: &'a [String]) -> usize {
    let mut names = std::iter::once(class).chain(ancestors.iter().map(String::as_str));
    let found = names.find_map(|class| {
        let name = class.rsplit('.').next().unwrap_or(class);
        CLASSES.iter().position(|known| known.eq_ignore_ascii_case(name))
    });
    found.unwrap_or(CLASSES.len()) + 1
}

#[derive(Debug, Clone, PartialEq)]
pub struct ViewNode {
    /// Its box on 0 … 99, clipped to the canvas. Otherwise as in the file: a side may have length 0, or right may be less than left.
    pub corners: Corners,
    /// Number of its class, from 1 to 11.
    pub kind: usize,
    pub is_clickable: bool,
    /// Whether it is visible itself and to the user.
    pub is_visible: bool,
    /// Words of its text or else of its description, as split by [`text_words`], at most [`LABEL_WORDS`].
    pub text: Vec<String>,
    /// Words of its resource name, as split by [`resource_words`], at most [`LABEL_WORDS`].
    pub resource: Vec<String>,
    /// Number of nodes on the path from the root to this one, including both.
    pub depth: usize,
    /// Position in post-order, from 1. The public code intends this, but its loop yields `nodes − index`.
    pub post_order: usize,
    /// The children; `None` where the file has `null`.
    pub children: Vec<Option<usize>>,
}

impl ViewNode {
    /// Whether the public code uses its pixels: it is visible, and a side is longer than 0.005 of the screen's.
    pub fn shows_pixels(&self) -> bool {
        let [left, top, right, bottom] = self.corners;
        let least = SMALLEST_SHARE * BORDER;
        self.is_visible && (right - left > least || bottom - top > least)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ViewHierarchy {
    /// All nodes, including invisible ones, because the public code uses all as context. They are in pre-order. Empty if the
    /// file has `null` instead of a tree.
    pub nodes: Vec<ViewNode>,
}

#[derive(Deserialize)]
struct WireScreen {
    // With an explicit function, `null` is accepted and a missing key is an error.
    #[serde(deserialize_with = "Option::deserialize")]
    activity: Option<WireActivity>,
}

#[derive(Deserialize)]
struct WireActivity {
    #[serde(deserialize_with = "Option::deserialize")]
    root: Option<WireNode>,
}

#[derive(Deserialize)]
struct WireNode {
    bounds: [f64; 4],
    class: String,
    ancestors: Option<Vec<String>>,
    clickable: bool,
    visibility: Option<String>,
    #[serde(rename = "visible-to-user")]
    visible_to_user: Option<bool>,
    text: Option<String>,
    #[serde(rename = "content-desc")]
    description: Option<WireDescription>,
    #[serde(rename = "resource-id")]
    resource: Option<String>,
    // Boxed, so that a list of `null` does not take the memory of nodes.
    children: Option<Vec<Option<Box<WireNode>>>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WireDescription {
    One(String),
    Many(Vec<Option<String>>),
}

impl ViewHierarchy {
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let bytes = read_whole(path, "the screen", MAX_SCREEN_BYTES)?;
        let wire: Option<WireScreen> = from_json(path, &bytes)?;
        let root = wire.and_then(|screen| screen.activity).and_then(|activity| activity.root);
        let mut nodes = Nodes::default();
        if let Some(root) = root {
            nodes.add(root, 1);
        }
        Ok(ViewHierarchy { nodes: nodes.nodes })
    }

    pub fn of_screen(folder: &Path, screen: &str) -> Result<Self, DataError> {
        Self::read(&folder.join("combined").join(format!("{screen}.json")))
    }

    /// The node with an identifier such as `0.2.1`: the first number is the root, each further one an index among the children, absent ones
    /// counted. `None` if the identifier is invalid or has no node.
    pub fn find(&self, id: &str) -> Option<usize> {
        let mut places = id.split('.');
        places.next()?.parse::<usize>().ok()?;
        let mut at = 0;
        for place in places {
            let children = &self.nodes.get(at)?.children;
            at = (*children.get(place.parse::<usize>().ok()?)?)?;
        }
        (at < self.nodes.len()).then_some(at)
    }
}

#[derive(Default)]
struct Nodes {
    nodes: Vec<ViewNode>,
    /// Number of nodes that have their post-order.
    closed: usize,
}

impl Nodes {
    /// Adds a node and its descendants. The JSON parser limits the depth of the recursion.
    fn add(&mut self, node: WireNode, depth: usize) -> usize {
        let at = self.nodes.len();
        let sides = [CANVAS[0], CANVAS[1], CANVAS[0], CANVAS[1]];
        let corner = |i: usize| node.bounds[i].clamp(0.0, sides[i]) * BORDER / sides[i];
        let children = node.children.unwrap_or_default();
        let resource = node.resource.as_deref().map(resource_words).unwrap_or_default();
        self.nodes.push(ViewNode {
            corners: [corner(0), corner(1), corner(2), corner(3)],
            kind: number_of(&node.class, node.ancestors.as_deref().unwrap_or_default()),
            is_clickable: node.clickable,
            is_visible: node.visibility.as_deref() == Some("visible")
                && node.visible_to_user == Some(true),
            text: label(node.text, node.description),
            resource: resource.into_iter().take(LABEL_WORDS).collect(),
            depth,
            post_order: 0,
            children: Vec::new(),
        });
        let below = children.into_iter();
        let below = below.map(|child| child.map(|child| self.add(*child, depth + 1)));
        let below = below.collect();
        self.closed += 1;
        self.nodes[at].children = below;
        self.nodes[at].post_order = self.closed;
        at
    }
}

/// Words of the first of a node's texts that has words.
fn label(text: Option<String>, description: Option<WireDescription>) -> Vec<String> {
    let description = match description {
        None => Vec::new(),
        Some(WireDescription::One(text)) => vec![Some(text)],
        Some(WireDescription::Many(texts)) => texts,
    };
    let texts = std::iter::once(text).chain(description).flatten();
    let words = texts.map(|text| text_words(&text)).find(|words| !words.is_empty());
    words.unwrap_or_default().into_iter().take(LABEL_WORDS).collect()
}
