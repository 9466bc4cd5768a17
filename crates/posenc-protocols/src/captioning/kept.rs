//! Captions of all widgets and layouts of the first screens, which are stored with a record.

use anyhow::{Result, ensure};
use posenc_data::generate::{Screen, caption_text, context_token};
use posenc_experiments::record::UnitCaptions;
use posenc_experiments::record::captions::{BoxKind, Described, Layout, LayoutNode};

/// Stored coordinates are rounded to 1/10 of their unit (a hundredth of the screen), which is at most a pixel of the report.
const TENTHS: f64 = 10.0;

/// The captions `said` of all widgets of `screens`, with the layouts of the first `shown` screens.
pub fn captions(screens: &[Screen], said: &[Vec<usize>], shown: usize) -> Result<UnitCaptions> {
    let widgets: Vec<_> = screens.iter().flat_map(|screen| &screen.widgets).collect();
    ensure!(widgets.len() == said.len(), "{} captions of {} widgets", said.len(), widgets.len());
    let described = widgets.iter().zip(said).map(|(widget, said)| Described {
        references: widget.references.iter().map(|caption| caption_text(caption)).collect(),
        said: caption_text(said),
        is_right: widget.right.contains(said),
    });
    Ok(UnitCaptions {
        layouts: screens.iter().take(shown).map(layout).collect(),
        widgets: described.collect(),
    })
}

fn layout(screen: &Screen) -> Layout {
    let nodes = screen.nodes.iter().map(|node| LayoutNode {
        // Generated nodes have no other kinds.
        kind: BoxKind::ALL.get(node.kind).copied().unwrap_or(BoxKind::Container),
        bounds: node.bounds.map(|v| (TENTHS * v).round() / TENTHS),
        word: (node.word > 0).then(|| caption_text(&[context_token(node.word)])),
    });
    let widgets = screen.widgets.iter().map(|widget| widget.node);
    Layout { nodes: nodes.collect(), widgets: widgets.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posenc_data::generate::{NODE_KINDS, ScreenGrammar};
    use posenc_math::random::stream;

    /// Catches captions of another widget, wrong kinds of boxes, and boxes that the record refuses.
    #[test]
    fn captions_and_layouts_match_their_screens() {
        assert_eq!(BoxKind::ALL.len(), NODE_KINDS);
        let mut rng = stream(1, "screens");
        let screens: Vec<Screen> =
            (0..200).map(|_| ScreenGrammar::new(2.0).draw(&mut rng)).collect();
        let widgets: Vec<_> = screens.iter().flat_map(|screen| &screen.widgets).collect();
        let mut said: Vec<_> = widgets.iter().map(|widget| widget.right[0].clone()).collect();
        said[1] = Vec::new();
        let kept = captions(&screens, &said, 200).unwrap();
        kept.bytes().unwrap();
        assert_eq!(captions(&screens, &said, 3).unwrap().layouts, kept.layouts[..3]);
        assert_eq!(captions(&screens, &said, 0).unwrap().layouts, []);
        for (i, (own, widget)) in kept.widgets.iter().zip(&widgets).enumerate() {
            assert_eq!(own.is_right, i != 1);
            assert_eq!(own.references[2], caption_text(&widget.references[2]));
            assert_eq!(own.said, caption_text(&said[i]));
        }
        for (layout, screen) in kept.layouts.iter().zip(&screens) {
            for (own, node) in layout.nodes.iter().zip(&screen.nodes) {
                // Only texts have words, and only texts and containers are not clickable.
                assert_eq!(own.word.is_some(), own.kind == BoxKind::Text);
                if !node.is_clickable {
                    assert!(matches!(own.kind, BoxKind::Text | BoxKind::Container));
                }
                assert!((0..4).all(|i| (own.bounds[i] - node.bounds[i]).abs() <= 0.05 + 1e-9));
            }
            assert_eq!(layout.widgets.len(), screen.widgets.len());
        }
        // The widget that navigates back is an icon.
        let back = kept.layouts.iter().zip(&screens).find_map(|(layout, screen)| {
            let widget = screen.widgets.iter().find(|widget| widget.kind == 0)?;
            Some(layout.nodes[widget.node].kind)
        });
        assert_eq!(back, Some(BoxKind::Icon));
        assert!(captions(&screens, &said[1..], 0).is_err());
    }
}
