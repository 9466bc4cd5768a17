//! Writes generated screens in the formats of RICO and of widget captioning.

use std::path::Path;

use image::{Rgb, RgbImage};
use serde_json::{Value, json};

use super::captions::{CaptionSplit, WIDGET_CAPTIONS};
use super::hierarchy::CANVAS;
use super::{BORDER, Corners};
use crate::error::DataError;
use crate::generate::{Screen, ScreenNode, caption_text, context_token};
use crate::write::write_jpeg;

/// Columns and rows of a screenshot, a tenth of the canvas.
const SCREENSHOT: [u32; 2] = [144, 256];

/// Class, parent class, resource name and color of each kind of node: text, icon, button, field, image, check box, switch, container.
const KINDS: [(&str, &str, &str, [u8; 3]); crate::generate::NODE_KINDS] = [
    ("TextView", "View", "label", [90, 90, 110]),
    ("ImageView", "View", "icon", [40, 120, 200]),
    ("Button", "TextView", "button", [200, 80, 60]),
    ("EditText", "TextView", "inputField", [240, 240, 250]),
    ("ImageView", "View", "picture", [60, 160, 90]),
    ("CheckBox", "CompoundButton", "check_box", [230, 190, 40]),
    ("Switch", "CompoundButton", "switch", [130, 70, 170]),
    ("FrameLayout", "ViewGroup", "content", [205, 205, 210]),
];

const GROUND: [u8; 3] = [225, 225, 230];

const BORDER_COLOR: [u8; 3] = [20, 20, 25];

/// A node with its place in the tree.
struct Placed<'a> {
    node: &'a ScreenNode,
    children: Vec<usize>,
}

/// Writes the screens of each split in the formats of RICO and of widget captioning: trees and screenshots in `combined/`,
/// `widget_captions.csv`, `split/`. Screens are numbered from 1, split by split. The parent of a node is the smallest box around its center
/// that has a smaller depth.
pub fn write_widget_screens(folder: &Path, splits: [&[Screen]; 3]) -> Result<(), DataError> {
    let unwritable = DataError::unwritable;
    let combined = folder.join("combined");
    for folder in [&combined, &folder.join("split")] {
        posenc_files::make_folder(folder).map_err(|e| unwritable(folder, e))?;
    }
    let write = |path: &Path, bytes: &[u8]| {
        posenc_files::write_atomically(path, bytes).map_err(|e| unwritable(path, e))
    };
    let mut table = String::from("screenId,nodeId,captions,datasetId\n");
    let mut number = 0;
    for (split, screens) in CaptionSplit::ALL.into_iter().zip(splits) {
        let mut names = String::new();
        for screen in screens {
            number += 1;
            names.push_str(&format!("{number}\n"));
            let tree = tree(&screen.nodes);
            let mut ids = vec![String::new(); tree.len()];
            let root = of_node(&tree, tree.len() - 1, "0".to_owned(), &mut ids);
            let path = combined.join(format!("{number}.json"));
            let text = json!({ "activity_name": "generated", "activity": { "root": root } });
            write(&path, text.to_string().as_bytes())?;
            write_jpeg(&combined.join(format!("{number}.jpg")), &drawn(&screen.nodes), 90)?;
            for widget in &screen.widgets {
                let captions: Vec<String> =
                    widget.references.iter().map(|caption| caption_text(caption)).collect();
                let id = &ids[widget.node];
                table.push_str(&format!("{number},{id},{},g\n", captions.join("|")));
            }
        }
        write(&folder.join(format!("split/{}.txt", split.name())), names.as_bytes())?;
    }
    write(&folder.join(WIDGET_CAPTIONS), table.as_bytes())
}

fn area([left, top, right, bottom]: Corners) -> f64 {
    (right - left) * (bottom - top)
}

/// The nodes in their order, and the root after them.
fn tree(nodes: &[ScreenNode]) -> Vec<Placed<'_>> {
    static ROOT: ScreenNode = ScreenNode {
        kind: crate::generate::NODE_KINDS - 1,
        is_clickable: false,
        depth: 0,
        word: 0,
        bounds: [0.0, 0.0, BORDER, BORDER],
    };
    let all = nodes.iter().chain([&ROOT]);
    let mut tree: Vec<Placed<'_>> = all.map(|node| Placed { node, children: Vec::new() }).collect();
    for (i, node) in nodes.iter().enumerate() {
        let [left, top, right, bottom] = node.bounds;
        let center = [(left + right) / 2.0, (top + bottom) / 2.0];
        let holds = |other: &ScreenNode| {
            let [left, top, right, bottom] = other.bounds;
            other.depth < node.depth
                && (left..=right).contains(&center[0])
                && (top..=bottom).contains(&center[1])
        };
        let around = (0..nodes.len()).filter(|&j| holds(&nodes[j]));
        let smallest =
            around.min_by(|&a, &b| area(nodes[a].bounds).total_cmp(&area(nodes[b].bounds)));
        tree[smallest.unwrap_or(nodes.len())].children.push(i);
    }
    tree
}

/// A node in RICO's format. The first child of a node with children is `null`, as it occurs in RICO. Adds the identifiers of the node and its
/// descendants to `ids`: indices among the children on the path from the root.
fn of_node(tree: &[Placed<'_>], at: usize, id: String, ids: &mut [String]) -> Value {
    let Placed { node, children } = &tree[at];
    let (class, ancestor, name, _) = KINDS[node.kind.min(KINDS.len() - 1)];
    let bounds = [0, 1, 2, 3].map(|i| (node.bounds[i] / BORDER * CANVAS[i % 2]).round());
    let mut value = json!({
        "class": format!("android.widget.{class}"),
        "ancestors": [format!("android.widget.{ancestor}"), "android.view.View", "java.lang.Object"],
        "bounds": bounds,
        "clickable": node.is_clickable,
        "visibility": "visible",
        "visible-to-user": true,
        "content-desc": [Value::Null],
        "resource-id": format!("org.generated:id/{name}"),
    });
    if node.word > 0 {
        value["text"] = caption_text(&[context_token(node.word)]).into();
    }
    if !children.is_empty() {
        let below = children.iter().zip(1..);
        let below = below.map(|(&child, i)| of_node(tree, child, format!("{id}.{i}"), ids));
        value["children"] = std::iter::once(Value::Null).chain(below).collect();
    }
    ids[at] = id;
    value
}

/// Paints a screenshot: boxes in the color of their kind, the largest first.
fn drawn(nodes: &[ScreenNode]) -> RgbImage {
    let [width, height] = SCREENSHOT;
    let mut image = RgbImage::from_pixel(width, height, Rgb(GROUND));
    let mut order: Vec<&ScreenNode> = nodes.iter().collect();
    order.sort_by(|a, b| area(b.bounds).total_cmp(&area(a.bounds)));
    for node in order {
        let (_, _, _, color) = KINDS[node.kind.min(KINDS.len() - 1)];
        let at = |i: usize| {
            let side = SCREENSHOT[i % 2];
            ((node.bounds[i] / BORDER * f64::from(side)) as u32).min(side)
        };
        let [left, top, right, bottom] = [at(0), at(1), at(2), at(3)];
        for y in top..bottom {
            for x in left..right {
                let is_border = y == top || x == left || y + 1 == bottom || x + 1 == right;
                image.put_pixel(x, y, Rgb(if is_border { BORDER_COLOR } else { color }));
            }
        }
    }
    image
}
