//! Screens of user interfaces, their captions, and word vectors.

mod words;

use std::path::{Path, PathBuf};

use posenc_data::DataError;
use posenc_data::interfaces::{
    CaptionSplit, CaptionedWidget, LabelledScreens, Skipped, SplitReport, ViewHierarchy,
    WidgetCaptions,
};
use serde_json::{Value, json};

use crate::support::{assert_refused, assert_says, real};

fn write(path: &Path, text: impl AsRef<[u8]>) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    path.to_owned()
}

fn node(class: &str, bounds: [i64; 4], children: Value) -> Value {
    json!({ "class": format!("android.widget.{class}"), "bounds": bounds, "clickable": false, "enabled": true,
            "visibility": "visible", "visible-to-user": true, "text": null, "content-desc": [null],
            "ancestors": ["android.view.ViewGroup", "java.lang.Object"], "children": children, "pointer": "ab" })
}

/// The root with a list of three nodes, one of them missing, and a button across the border; the last node is invisible.
fn screen() -> Value {
    let mut button = node("Button", [-100, 2304, 1440, 2700], json!([]));
    button["clickable"] = json!(true);
    button["text"] = json!("  ");
    button["content-desc"] = json!([null, "…", "Don't stop, PLAY (3,000) ünïcode x! e.g. --"]);
    button["resource-id"] = json!("com.example:id/playHTMLView_bigURL2");
    let mut picture = node("Fancy$Thing", [0, 0, 720, 1280], Value::Null);
    picture["ancestors"] = json!(["com.example.ImageView", "android.view.View"]);
    picture["text"] = json!("1 2 3 4 5 6 7 8 9 10 11 12");
    let mut gone = node("RadioButton", [0, 0, 7, 12], json!([]));
    gone["visibility"] = json!("gone");
    let list = node("View", [0, 0, 1440, 2560], json!([null, picture, button]));
    let root = node("FrameLayout", [0, 0, 1440, 2560], json!([list, gone]));
    json!({ "activity_name": "com.example/.Main", "is_keyboard_deployed": false, "request_id": "3",
            "activity": { "root": root, "added_fragments": [] } })
}

/// Catches boxes that are not clipped or scaled, absent children that shift their siblings, wrong orders or depths, types of the wrong
/// ancestor, and words that are split differently from the public code.
#[test]
fn a_screen_is_a_tree_of_nodes() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("combined/12.json"), screen().to_string());
    let screen = ViewHierarchy::of_screen(folder.path(), "12").unwrap();
    let of = |id: &str| screen.find(id).map(|at| &screen.nodes[at]);
    let order = |id: &str| {
        let (at, node) = (screen.find(id).unwrap(), of(id).unwrap());
        [node.depth, at + 1, node.post_order]
    };
    assert_eq!(order("0"), [1, 1, 5]);
    assert_eq!(order("0.0"), [2, 2, 3]);
    assert_eq!(order("0.0.1"), [3, 3, 1]);
    assert_eq!(order("0.0.2"), [3, 4, 2]);
    assert_eq!(order("0.1"), [2, 5, 4]);
    for absent in [
        "0.0.0",
        "0.0.3",
        "0.1.0",
        "0.2",
        "0.x",
        "",
        "0.0.",
        "x.0",
        "0.-1",
        "0.99999999999999999999",
    ] {
        assert_eq!(screen.find(absent), None, "{absent}");
    }
    assert_eq!(screen.nodes[1].children, [None, Some(2), Some(3)]);
    let leaves: Vec<bool> = screen.nodes.iter().map(|node| node.children.is_empty()).collect();
    assert_eq!(leaves, [false, false, true, true, true]);
    let visible: Vec<bool> = screen.nodes.iter().map(|node| node.is_visible).collect();
    assert_eq!(visible, [true, true, true, true, false]);
    // Another class, a view, the ancestor ImageView, a button, a radio button.
    let kinds: Vec<usize> = screen.nodes.iter().map(|node| node.kind).collect();
    assert_eq!(kinds, [11, 4, 1, 2, 7]);

    let picture = of("0.0.1").unwrap();
    assert_eq!(picture.corners, [0.0, 0.0, 49.5, 49.5]);
    assert_eq!(picture.text, ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]);
    let button = of("0.0.2").unwrap();
    assert!(button.is_clickable && !picture.is_clickable);
    assert_eq!(button.corners, [0.0, 2304.0 * 99.0 / 2560.0, 99.0, 99.0]);
    assert_eq!(button.text, ["do", "n't", "stop", "play", "3,000", "ncode", "x", "e.g."]);
    assert_eq!(button.resource, ["play", "html", "view", "big", "ur"]);
    let shown: Vec<bool> = screen.nodes.iter().map(|node| node.shows_pixels()).collect();
    assert_eq!(shown, [true, true, true, true, false]);

    let nothing = write(&folder.path().join("combined/13.json"), "{\"activity\": null}");
    assert!(ViewHierarchy::read(&nothing).unwrap().nodes.is_empty());
}

/// Catches a screen that is partly read, a missing key that gets a default, and a message without file and entry.
#[test]
fn damaged_screens_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("12.json");
    let error = |text: &[u8]| ViewHierarchy::read(&write(&path, text)).unwrap_err();
    let changed = |pointer: &str, value: Value| {
        let mut all = screen();
        *all.pointer_mut(pointer).unwrap() = value;
        error(all.to_string().as_bytes())
    };
    let list = "/activity/root/children/0/children";
    let place = "activity.root.children[0].children[2]";
    for (key, value, reason) in [
        ("bounds", json!([1, 2, 3]), "length 3"),
        ("bounds", json!([1, 2, "3", 4]), "invalid type: string"),
        ("bounds", json!("[0,0][1,1]"), "invalid type: string"),
        ("clickable", json!("yes"), "expected a boolean"),
        ("class", Value::Null, "expected a string"),
        ("children", json!({}), "expected a sequence"),
        ("content-desc", json!(7), "WireDescription"),
    ] {
        let message = changed(&format!("{list}/2/{key}"), value);
        assert_says(&message, &["12.json", place, reason, "fetch the file again"]);
    }
    assert_says(&changed("/activity", json!({})), &["12.json: activity: missing field `root`"]);
    assert_says(&error(b"{}"), &["missing field `activity`"]);
    for key in ["bounds", "class", "clickable"] {
        let mut all = screen();
        let node = all.pointer_mut(&format!("{list}/2")).unwrap();
        node.as_object_mut().unwrap().remove(key);
        let missing = format!("missing field `{key}`");
        assert_says(&error(all.to_string().as_bytes()), &["12.json", place, &missing]);
    }
    let text = screen().to_string();
    assert_says(
        &error(&text.as_bytes()[..text.len() / 2]),
        &["12.json", "EOF", "may be incomplete"],
    );
    assert_says(&error(b""), &["12.json", "EOF"]);
    assert_says(&error(format!("{text} x").as_bytes()), &["12.json", "trailing characters"]);
    let bytes = text.replace("e.g.", "\u{1}").into_bytes();
    let bytes: Vec<u8> = bytes.into_iter().map(|b| if b == 1 { 0xff } else { b }).collect();
    assert_says(&error(&bytes), &["12.json", "line 1"]);
    assert_says(&error(text.replace("2700", "1e999").as_bytes()), &["12.json", "out of range"]);
    let missing = ViewHierarchy::read(Path::new("13.json")).unwrap_err();
    assert_says(&missing, &["13.json", "file not found"]);
    let large = std::fs::File::create(&path).unwrap();
    large.set_len((1 << 26) + 1).unwrap();
    let error = ViewHierarchy::read(&path).unwrap_err();
    assert_says(&error, &["12.json", "the screen: 67108865 bytes", "67108864 allowed"]);
}

/// Catches a stack overflow on a very deep tree, a limit that rejects real screens, and a message whose length grows with the depth.
#[test]
fn deep_trees_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.json");
    let read = |levels: usize| {
        let own = r#"{"bounds":[0,0,9,9],"class":"a","clickable":true,"children":["#;
        let end = format!("{}}}}}", "]}".repeat(levels));
        write(&path, format!("{{\"activity\":{{\"root\":{}{end}", own.repeat(levels)));
        ViewHierarchy::read(&path)
    };
    // The program's own threads have a much larger stack.
    let (deepest, errors) = std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(1 << 19);
        let run = || (read(62).unwrap(), [63, 64, 5000, 100_000].map(|n| read(n).unwrap_err()));
        small.spawn_scoped(scope, run).unwrap().join().unwrap()
    });
    assert_eq!(deepest.nodes.last().unwrap().depth, 62);
    assert_eq!(deepest.find(&["0"; 62].join(".")), Some(61));
    assert_eq!(deepest.find(&["0"; 63].join(".")), None);
    for error in errors {
        assert_says(
            &error,
            &["deep.json", "activity.root.children[0]", "recursion limit", "127 deep"],
        );
        assert!(error.to_string().len() < 500, "{error}");
    }
    // The depth of unknown keys does not count.
    let mut wide = screen();
    wide["activity"]["root"]["other"] = json!("?");
    let text =
        wide.to_string().replace("\"?\"", &format!("{}{}", "[".repeat(9999), "]".repeat(9999)));
    assert_eq!(ViewHierarchy::read(&write(&path, text)).unwrap().nodes.len(), 5);
}

const HEADER: &str = "datasetId,screenId,nodeId,captions";

/// Three screens, one of them without tree, and splits that name two more.
fn captioned(folder: &Path) {
    for screen_id in ["12", "20"] {
        write(&folder.join(format!("combined/{screen_id}.json")), screen().to_string());
    }
    write(&folder.join("combined/30.json"), "{\"activity\": {\"root\": null}}");
    write(&folder.join("split/train.txt"), "30\n20\n20\n\n");
    write(&folder.join("split/dev.txt"), "99\r\n");
    write(&folder.join("split/test.txt"), "12\n98");
    let rows = [
        "rico,20,0.0.2,play|start the music|",
        "nr,abc/../x,?,secret",
        "rico,12,0.0.1,\"a \"\"big\"\" Picture, really||one|two|three|four\"",
        "rico,12,0.0.2,replaced",
        "rico,12,0.0.0,nobody",
        "rico,12,0.7,nobody",
        "rico,12,0.1,invisible",
        "rico,12,0.0.2,1 2 3 4 5 6 7 8 9 10 11 12",
        "rico,30,0.1,no tree",
        "rico,99,0.1,no file",
        "rico,99,0.2,no file",
        "rico,77,0.2,no split",
        "nr,12,0.0.2,secret",
        "rico,12,0.0,| |",
    ];
    write(&folder.join("widget_captions.csv"), format!("{HEADER}\n{}\n", rows.join("\n")));
}

fn read(folder: &Path) -> Result<WidgetCaptions, DataError> {
    WidgetCaptions::read(folder, |_, _, _| {})
}

fn widget(screen: &str, node: usize, captions: &[&str]) -> CaptionedWidget {
    let words = |caption: &&str| caption.split(' ').map(str::to_owned).collect();
    CaptionedWidget {
        screen: screen.to_owned(),
        node,
        captions: captions.iter().map(words).collect(),
    }
}

/// Catches captions at another node or in another split, rows that are skipped without being counted, and more captions or words than
/// allowed.
#[test]
fn captions_are_joined_and_skipped_rows_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    captioned(folder.path());
    let all = read(folder.path()).unwrap();
    let expected = [widget("20", 3, &["play", "start the music"])];
    assert_eq!(all.screens(CaptionSplit::Training), [expected]);
    assert!(all.screens(CaptionSplit::Development).is_empty());
    let picture = ["a \"big\" picture, really", "one", "two", "three"];
    let expected = [widget("12", 2, &picture), widget("12", 3, &["1 2 3 4 5 6 7 8 9 10"])];
    assert_eq!(all.screens(CaptionSplit::Test), [expected]);
    let [training, development, test] = &all.report.splits;
    assert_eq!((all.report.rows, all.report.unreleased, all.report.in_no_split), (14, 2, 1));
    assert_eq!((training.screens, training.widgets, training.captions), (2, 1, 2));
    assert_eq!((test.screens, test.widgets, test.captions), (2, 2, 5));
    assert_eq!(training.skipped[Skipped::ScreenEmpty as usize], 1);
    assert_eq!(development.skipped[Skipped::ScreenMissing as usize], 2);
    assert_eq!(test.skipped, [0, 0, 2, 1, 1, 1]);
    let left = |own: &SplitReport| own.widgets + own.skipped.iter().sum::<usize>();
    let splits: usize = all.report.splits.iter().map(left).sum();
    assert_eq!(splits + all.report.unreleased + all.report.in_no_split, all.report.rows);
    assert_says(
        &all.report,
        &[
            "14 rows (2 about screens that were never released, 1 about screens in no split)",
            "train: 1 widgets with 2 captions on 2 screens",
            "2 about screens without a file",
            "2 whose node is missing, 1 whose node is invisible, 1 without words, 1 replaced",
        ],
    );
}

/// Catches damaged captions and splits that are misread, names that lead out of the folder, and messages without file and line.
#[test]
fn damaged_captions_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_refused(read(folder), &["train.txt", "file not found"]);
    captioned(folder);
    let file = folder.join("widget_captions.csv");
    let good = std::fs::read(&file).unwrap();
    for (text, parts) in [
        ("", ["widget_captions.csv:1", "empty"]),
        ("screenId,captions,datasetId\n", ["widget_captions.csv:1", "no column `nodeId`"]),
        ("rico,20,0\n", [":2", "3 fields, but the header has 4"]),
        ("rico,20,0.2,a,b\n", [":2", "a comma is outside of quotes"]),
        ("rico,20,0.0.2,a\n\"rico\",\"20\",\"0.1\",\"cut\n\n sho", [":3", "may be incomplete"]),
        ("rico,20,\"0.1\"x,a\n", [":2", "`x` after a closing quote"]),
        ("rico,20,0.a,a\n", [":2", "`0.a` is not a node of screen 20"]),
        ("rico,20,,a\n", [":2", "`` is not a node"]),
        ("rico,../20,0.1,a\n", [":2", "`../20` is not the name of a screen"]),
        ("rico,,0.1,a\n", [":2", "`` is not the name of a screen"]),
        ("rico,77,0.1,a\n", ["no caption has its screen in", "1 about screens in no split"]),
    ] {
        let whole = text.is_empty() || text.starts_with("screenId");
        let header = if whole { String::new() } else { format!("{HEADER}\n") };
        write(&file, format!("{header}{text}"));
        assert_refused(read(folder), &[&["widget_captions.csv"], &parts[..]].concat());
    }
    write(&file, [HEADER.as_bytes(), b"\nrico,20,0.1,\xff\n"].concat());
    assert_refused(read(folder), &["widget_captions.csv:2", "not UTF-8"]);
    // A byte order mark before the header is ignored.
    write(&file, [b"\xef\xbb\xbf", &good[..]].concat());
    assert_eq!(read(folder).unwrap().report.rows, 14);
    let split = folder.join("split/test.txt");
    write(&split, "12\n20\n");
    let says = ["test.txt:2", "screen 20 is also in", "train.txt:2"];
    assert_refused(read(folder), &says);
    write(&split, "12\n/etc/passwd\n");
    assert_refused(read(folder), &["test.txt:2", "is not the name of a screen"]);
    write(&split, b"12\n\xff\n");
    assert_refused(read(folder), &["test.txt:2", "not UTF-8"]);
    write(&split, "12\n");
    write(&folder.join("combined/12.json"), "{\"activity\": {");
    assert_refused(read(folder), &["12.json", "EOF"]);
    std::fs::remove_dir_all(folder.join("combined")).unwrap();
    assert_refused(read(folder), &["no folder combined", "12.json"]);
}

/// Catches boxes with the wrong range, labels that are mixed up, and damage that is ignored.
#[test]
fn labelled_boxes_are_read_and_damage_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("val.json");
    let own = |label: &str| json!({ "xmin": 0.0, "ymin": 0.25, "xmax": 0.5, "ymax": 1.0, "label": label });
    let good = json!([
        { "screen_id": "7", "screen_elements": [own("ICON_X:CLOSE"), own("ICON_PLAY:PLAY")] },
        { "screen_id": "5", "screen_elements": [] },
    ]);
    let read = |value: &Value| LabelledScreens::read(&write(&path, value.to_string()));
    let all = read(&good).unwrap();
    assert_eq!(all.labels, ["ICON_PLAY:PLAY", "ICON_X:CLOSE"]);
    let first = &all.screens[0];
    assert_eq!(first.boxes.iter().map(|b| b.label).collect::<Vec<_>>(), [1, 0]);
    assert_eq!((first.screen.as_str(), first.boxes[0].corners), ("7", [0.0, 24.75, 49.5, 99.0]));
    assert!(all.screens[1].boxes.is_empty());
    let element = "[0] (screen_id 7).screen_elements[1]";
    for (pointer, value, parts) in [
        ("/0/screen_elements/1/xmax", json!(1.5), [element, "numbers from 0 to 1"]),
        ("/0/screen_elements/1/xmin", json!(0.5), [element, "left < right"]),
        ("/0/screen_elements/1/ymax", json!(0.1), [element, "top < bottom"]),
        ("/0/screen_elements/1/ymin", json!("0"), ["[0].screen_elements[1].ymin", "invalid type"]),
        ("/0/screen_elements/1/label", json!(""), [element, "the label is empty"]),
        ("/0/screen_elements/1", json!({}), ["[0].screen_elements[1]", "missing field `xmin`"]),
        ("/1", json!({ "screen_id": "7" }), ["[1]", "missing field `screen_elements`"]),
        ("/1/screen_id", json!("7"), ["[1] (screen_id 7)", "[0] is the same screen"]),
        ("/1/screen_id", json!(7), ["[1].screen_id", "invalid type"]),
        ("", json!([]), ["val.json", "the file has no screens"]),
    ] {
        let mut all = good.clone();
        *all.pointer_mut(pointer).unwrap() = value;
        assert_refused(read(&all), &[&["val.json"], &parts[..]].concat());
    }
    let text = good.to_string();
    let cut = LabelledScreens::read(&write(&path, &text[..text.len() - 9])).unwrap_err();
    assert_says(&cut, &["val.json", "EOF", "may be incomplete"]);
    let nested = LabelledScreens::read(&write(&path, "[".repeat(100_000))).unwrap_err();
    assert_says(&nested, &["val.json: [0]"]);
}

/// Catches a reader that rejects real files or skips parts of them.
#[test]
fn real_labelled_boxes_are_read() {
    let Some(data) = real("rico_semantics/val.json") else { return };
    let all = LabelledScreens::read(&data.join("rico_semantics/val.json")).unwrap();
    let boxes: usize = all.screens.iter().map(|screen| screen.boxes.len()).sum();
    assert_eq!((all.screens.len(), boxes, all.labels.len()), (4212, 7816, 36));
}
