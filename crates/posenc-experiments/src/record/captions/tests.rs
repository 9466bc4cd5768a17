use super::*;
use crate::text::without_checksum;

fn layout(word: &str) -> Layout {
    let node = |kind, bounds, word: Option<&str>| LayoutNode {
        kind,
        bounds,
        word: word.map(str::to_owned),
    };
    Layout {
        nodes: vec![
            node(BoxKind::Icon, [2.5, 3.0, 9.1, 8.0], None),
            node(BoxKind::Text, [12.0, 3.0, 40.0, 8.0], Some(word)),
            node(BoxKind::Switch, [80.0, 3.0, 99.0, 8.0], None),
        ],
        widgets: vec![2, 0],
    }
}

fn described(said: &str, is_right: bool) -> Described {
    let references = ["go back", "go up", "back \"arrow\""].map(str::to_owned).to_vec();
    Described { references, said: said.into(), is_right }
}

/// Two screens with two widgets each, and a widget of a screen that is not kept.
fn captions() -> UnitCaptions {
    UnitCaptions {
        layouts: vec![layout("music"), layout("news")],
        widgets: vec![
            described("go up", true),
            described("", false),
            described("return to the earlier screen", true),
            described("dial zero", false),
            described("go back", true),
        ],
    }
}

fn method(id: &str, captions: UnitCaptions) -> CaptionedMethod {
    CaptionedMethod {
        group: "learned".into(),
        method: id.into(),
        seed: 0,
        profile: Profile::Quick,
        device: "cpu".into(),
        data: "-".into(),
        captions: captions.of_layouts(),
    }
}

/// Catches a unit's file that loses or mixes up data, and bytes that depend on more than its content.
#[test]
fn the_captions_of_a_unit_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a-captions.json");
    let bytes = captions().bytes().unwrap();
    assert_eq!(bytes, captions().bytes().unwrap());
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(UnitCaptions::read(&file).unwrap(), captions());
    assert_eq!(captions().of_layouts().widgets, captions().widgets[..4]);
    // Some units store no screens.
    let plain = UnitCaptions { layouts: Vec::new(), ..captions() };
    std::fs::write(&file, plain.bytes().unwrap()).unwrap();
    assert_eq!(UnitCaptions::read(&file).unwrap(), plain);
}

/// Catches a damaged file that is accepted, or reported without file or entry.
#[test]
fn damage_of_a_units_file_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a-captions.json");
    let text = String::from_utf8(captions().bytes().unwrap()).unwrap();
    for (from, to, needles) in [
        ("\"widgets\":[2,0]", "\"widgets\":[3,0]", ["layouts[0].widgets[0]", "3 nodes"]),
        ("\"widgets\":[2,0]", "\"widgets\":[0,0]", ["layouts[0].widgets[1]", "appears twice"]),
        ("[2.5,3.0,9.1,8.0]", "[9.5,3.0,9.1,8.0]", ["layouts[0].nodes[0].bounds", "left ≤ right"]),
        ("[2.5,3.0,9.1,8.0]", "[2.5,3.0,9.1,100.0]", ["layouts[0].nodes[0].bounds", "99"]),
        ("\"icon\"", "\"icn\"", ["layouts[0].nodes[0].kind", "icon"]),
        ("\"wrong\":[1,3]", "\"wrong\":[1,5]", ["wrong[1]", "5 widgets"]),
        ("\"wrong\":[1,3]", "\"wrong\":[0,3]", ["said[0]", "`go up` is marked as wrong"]),
        ("\"said\":[", "\"said\":[77,", ["references", "`said` has 6"]),
        ("\"references\":[[", "\"references\":[[90,", ["references[0][0]", "phrases"]),
        ("\"said\":[", "\"sad\":[", ["sad", "damaged"]),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let message = UnitCaptions::read(&file).unwrap_err().to_string();
        assert!(message.contains("a-captions.json"), "{message}");
        for needle in needles {
            assert!(message.contains(needle), "{to}: no `{needle}` in {message}");
        }
    }
    std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    assert!(UnitCaptions::read(&file).unwrap_err().to_string().contains("damaged"));
    std::fs::write(&file, format!("{text}]")).unwrap();
    assert!(UnitCaptions::read(&file).unwrap_err().to_string().contains("trailing"));
    let mut wrong = captions();
    wrong.layouts[1].nodes[0].bounds[0] = f64::NAN;
    assert!(wrong.bytes().unwrap_err().contains("layouts[1].nodes[0].bounds"));
}

/// Catches small files that fill the memory: a long phrase that many widgets name, screens that many methods share, and many sets
/// that are each below the limit.
#[test]
fn small_files_cannot_fill_the_memory() {
    let phrase = "x".repeat(100_000);
    let zeros = vec!["0"; 20_000].join(",");
    let empty = vec!["[]"; 20_000].join(",");
    let unit = format!(
        "{{\"phrases\":[\"{phrase}\"],\"said\":[{zeros}],\"wrong\":[],\"references\":[{empty}]}}"
    );
    let file = Path::new("captions.json");
    let message = UnitCaptions::parse(file, &unit).unwrap_err().to_string();
    assert!(message.contains("captions.json: `references`: 2000480000 bytes"), "{message}");
    let said = r#"{"group":"g","method":"m","seed":0,"profile":"quick","device":"c","data":"-","said":[]}"#;
    let items = |nodes: usize, methods: usize, sets: usize| {
        let node = r#"{"kind":"text","bounds":[0,0,1,1]}"#;
        let set = format!(
            "{{\"layouts\":[{{\"nodes\":[{}],\"widgets\":[]}}],\"references\":[],\"methods\":[{}]}}",
            vec![node; nodes].join(","),
            vec![said; methods].join(",")
        );
        format!("{{\"paper\":\"p\",\"item\":\"i\",\"sets\":[{}]}}", vec![set; sets].join(","))
    };
    let item = |nodes, methods| items(nodes, methods, 1);
    for (text, expected) in [
        (item(20_000, 2000), "`sets[0].methods`: 3200160000 bytes"),
        (items(10_000, 500, 3), "`sets[2].methods`: 1200120000 bytes"),
    ] {
        let message = CaptionRecord::parse(file, &text, "p", "i").unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(CaptionRecord::parse(file, &item(3, 2), "p", "i").unwrap().methods.len(), 2);
}

/// Catches screens that are stored once per method, methods that are assigned to other screens, and a second write that changes bytes.
#[test]
fn an_items_file_stores_screens_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let mut other = captions();
    for (widget, said) in other.widgets.iter_mut().zip(["go", "go up", "<&>", "|", ""]) {
        *widget = described(said, said == "go up");
    }
    let mut elsewhere = captions();
    elsewhere.layouts[1] = layout("city");
    let record = CaptionRecord {
        methods: vec![
            method("A-4/1", captions()),
            method("B", other),
            method("on other screens", elsewhere),
        ],
    };
    assert!(record.write(root, "p", "i").unwrap());
    assert!(!record.write(root, "p", "i").unwrap(), "nothing changed");
    assert_eq!(CaptionRecord::read(root, "p", "i").unwrap(), record);
    let lots: Vec<usize> = record.lots().iter().map(Vec::len).collect();
    assert_eq!(lots, [2, 1]);
    let file = CaptionRecord::file_of(root, "p", "i");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(["music", "news", "city"].map(|word| text.matches(word).count()), [2, 1, 1]);
    assert!(CaptionRecord::default().write(root, "p", "i").unwrap());
    assert!(!root.join("p/i").exists());
    assert_eq!(CaptionRecord::read(root, "p", "i").unwrap(), CaptionRecord::default());
}

/// Catches a damaged file of an item that is accepted, or reported without file or entry.
#[test]
fn damage_of_an_items_file_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let record = CaptionRecord { methods: vec![method("A", captions()), method("B", captions())] };
    record.write(root, "p", "i").unwrap();
    let file = CaptionRecord::file_of(root, "p", "i");
    let text = without_checksum(&std::fs::read_to_string(&file).unwrap());
    let message = || CaptionRecord::read(root, "p", "i").unwrap_err().to_string();
    for (from, to, needles) in [
        (
            "[\"dial zero\",false]]}\n]",
            "[\"dial zero\"]]}\n]",
            ["sets[0].methods[1].said[3]", "damaged"],
        ),
        (",[\"dial zero\",false]]}\n]", "]}\n]", ["sets[0].methods[1].said", "of 3 widgets"]),
        (
            "[\"go up\",true]",
            "[\"go up\",false]",
            ["sets[0].methods[0].said[0]", "marked as wrong"],
        ),
        (
            "\"widgets\":[2,0]",
            "\"widgets\":[2,7]",
            ["sets[0].layouts[0].widgets[1]", "git checkout"],
        ),
        ("\"quick\"", "\"quik\"", ["sets[0].methods[0].profile", "quik"]),
        ("\"item\":\"i\"", "\"item\":\"j\"", ["`p/j` in the record of p/i", "captions.json"]),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        for needle in needles {
            assert!(message().contains(needle), "{to}: no `{needle}` in {}", message());
        }
        assert!(message().contains("captions.json"), "{}", message());
    }
    std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    assert!(message().contains("captions.json:") && message().contains("damaged"), "{}", message());
}
