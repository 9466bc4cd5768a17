//! Screens in RICO's format with captions and pixels: written screens are read back.

use posenc_data::generate::{Screen, ScreenGrammar, caption_text, context_token};
use posenc_data::interfaces::{
    CaptionSplit, ViewNode, WidgetScreens, text_words, write_widget_screens,
};
use posenc_math::random::stream;

fn screens(count: usize) -> Vec<Screen> {
    ScreenGrammar::new(1.1).screens(count, &mut stream(5, "screens"))
}

/// Catches boxes that move by more than a pixel of the canvas, captions or words of another node, screens of another split, and pictures
/// that are all identical.
#[test]
fn written_screens_are_read_back() {
    let all = screens(9);
    let folder = tempfile::tempdir().unwrap();
    write_widget_screens(folder.path(), [&all[..5], &all[5..6], &all[6..]]).unwrap();
    let read = WidgetScreens::open(folder.path(), 10_000).unwrap();
    let splits = [
        (CaptionSplit::Training, &all[..5]),
        (CaptionSplit::Development, &all[5..6]),
        (CaptionSplit::Test, &all[6..]),
    ];
    let mut pictures = Vec::new();
    for (split, screens) in splits {
        assert_eq!(read.count(split), screens.len());
        for (place, screen) in screens.iter().enumerate() {
            let own = read.read(split, place, 16).unwrap();
            // Including the root.
            assert_eq!(own.nodes.len(), screen.nodes.len() + 1);
            assert_eq!(own.widgets.len(), screen.widgets.len());
            for ((widget, pixels), drawn) in own.widgets.iter().zip(&screen.widgets) {
                let (node, written) = (&own.nodes[widget.node], &screen.nodes[drawn.node]);
                let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= 0.5 * 99.0 / 1440.0 + 1e-9;
                assert!(node.corners.iter().zip(&written.bounds).all(is_near));
                assert_eq!(node.is_clickable, written.is_clickable);
                let captions: Vec<String> =
                    widget.captions.iter().map(|caption| caption.join(" ")).collect();
                let told: Vec<String> = drawn.references.iter().map(|c| caption_text(c)).collect();
                assert_eq!(captions, told);
                assert_eq!(pixels.len(), 256);
                pictures.push(pixels.clone());
            }
            let words = |nodes: &[ViewNode]| -> usize { nodes.iter().map(|n| n.text.len()).sum() };
            let told = screen.nodes.iter().filter(|node| node.word > 0);
            let told =
                told.map(|node| text_words(&caption_text(&[context_token(node.word)])).len());
            assert_eq!(words(&own.nodes), told.sum::<usize>());
        }
    }
    pictures.sort();
    pictures.dedup();
    assert!(pictures.len() > 5, "{}", pictures.len());
    let trained: usize = all[..5].iter().map(|screen| screen.widgets.len()).sum();
    assert_eq!(read.trained().len(), trained);
    // The vocabulary contains words of the training screens; a smaller one drops the rarest.
    let known = read.vocabulary().size();
    let names = ["button", "icon", "label"];
    assert!(names.iter().any(|name| read.vocabulary().number(name).is_some()));
    let fewer = WidgetScreens::open(folder.path(), 20).unwrap();
    assert!(known > 20 && fewer.vocabulary().size() == 20);
}

/// Catches missing screenshots that are noticed only during training, wrong counts, and a node that is taken from the next screen.
#[test]
fn missing_screenshots_are_counted_and_png_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let all = screens(6);
    write_widget_screens(folder.path(), [&all[..4], &all[4..5], &all[5..]]).unwrap();
    let path = |name: &str| folder.path().join("combined").join(name);
    // A file's content, not its name, determines the format.
    std::fs::rename(path("2.jpg"), path("2.png")).unwrap();
    let read = WidgetScreens::open(folder.path(), 100).unwrap();
    read.read(CaptionSplit::Training, 1, 8).unwrap();
    // A tree that became shorter after the set was opened lacks the node of a widget.
    let tree = std::fs::read_to_string(path("1.json")).unwrap();
    let mut shorter: serde_json::Value = serde_json::from_str(&tree).unwrap();
    shorter["activity"]["root"]["children"] = serde_json::json!([]);
    std::fs::write(path("1.json"), shorter.to_string()).unwrap();
    let error = read.read(CaptionSplit::Training, 0, 8).map(drop).unwrap_err().to_string();
    assert!(error.contains("combined/1.json: ") && error.contains("is gone"), "{error}");
    std::fs::write(path("1.json"), tree).unwrap();
    for screen in 1..=5 {
        let _ = std::fs::remove_file(path(&format!("{screen}.jpg")));
    }
    let error = WidgetScreens::open(folder.path(), 100).unwrap_err().to_string();
    for needle in ["combined/1.jpg", "combined/3.jpg", "and 1 more", "4 of 6 screens"] {
        assert!(error.contains(needle), "{needle}: {error}");
    }
}
