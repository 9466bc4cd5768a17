//! The record as an RO-Crate: `ro-crate-metadata.json` lists its files, their subjects, and the runs that produced
//! them.
//!
//! Format: RO-Crate 1.1, <https://w3id.org/ro/crate/1.1>.

use std::collections::BTreeSet;

use anyhow::Result;
use posenc_experiments::schema::paper::Paper;
use serde_json::{Value, json};

use crate::Inputs;
use crate::markdown::{bare, slug};
use crate::pages::places;
use crate::view::Views;

/// The file, below the report's directory.
pub const FILE: &str = "ro-crate-metadata.json";
/// When the record was published; `CITATION.cff` has the same date.
pub const PUBLISHED: &str = "2026-11-23";

const AUTHORS: &str = "#authors";
const SOFTWARE: &str = "#posenc";
/// Licenses of the record: identifier and name.
const LICENSES: [(&str, &str); 2] = [
    ("https://spdx.org/licenses/MIT", "MIT License"),
    ("https://spdx.org/licenses/Apache-2.0", "Apache License 2.0"),
];

/// The metadata of the record that is next to the report; `None` if the report is elsewhere.
pub fn render(inputs: &Inputs<'_>, views: &Views<'_>) -> Result<Option<Vec<u8>>> {
    let Some(record) = inputs.record else { return Ok(None) };
    let record = record.trim_end_matches('/');
    let mut graph = Vec::new();
    let mut parts = vec![
        "README.md".to_owned(),
        super::claims::FILE.to_owned(),
        super::claims::SCHEMA_FILE.to_owned(),
    ];
    let mut actions = Vec::new();
    graph.push(file("README.md", "Reproducibility summary", "text/markdown"));
    graph.push(file(super::claims::FILE, "Claims with their verdicts", "application/json"));
    graph.push(file(
        super::claims::SCHEMA_FILE,
        "JSON Schema of the claims",
        "application/schema+json",
    ));
    for paper in &inputs.catalog.papers {
        graph.extend(article(paper));
        for item in &paper.items {
            let Some(view) = views.get(&paper.key, &item.item) else { continue };
            let Some(run) = view.sides.first().and_then(|side| side.run.as_ref()) else { continue };
            let stem = format!("{record}/{}/{}", paper.key, item.item);
            let name = format!("{} of {}", bare(&item.name), bare(&paper.title));
            let files = [
                (format!("{stem}/units.csv"), format!("Units of {name}"), "text/csv"),
                (format!("{stem}/values.csv"), format!("Numbers of {name}"), "text/csv"),
                (
                    format!("{stem}/provenance.json"),
                    format!("Provenance of {name}"),
                    "application/json",
                ),
            ];
            let results: Vec<Value> = files.iter().map(|(path, ..)| id(path)).collect();
            for (path, name, format) in files {
                let mut entity = file(&path, &name, format);
                entity["about"] = id(&article_id(paper));
                graph.push(entity);
                parts.push(path);
            }
            let page = places::item(&paper.key, &item.item);
            let mut entity = file(&page, &name, "text/markdown");
            entity["description"] = json!(bare(&item.title));
            entity["about"] = id(&article_id(paper));
            graph.push(entity);
            parts.push(page);
            let p = &run.provenance;
            let earlier: BTreeSet<&str> =
                p.commits.values().map(String::as_str).filter(|c| !c.is_empty()).collect();
            let earlier = match earlier.is_empty() {
                true => String::new(),
                false => format!(
                    ", other rows at {}",
                    earlier.into_iter().collect::<Vec<_>>().join(", ")
                ),
            };
            let action = format!("#run-{}-{}", slug(&paper.key), slug(&item.item));
            graph.push(json!({
                "@id": action,
                "@type": "CreateAction",
                "name": format!("Run of {name}"),
                "description": format!(
                    "{} units at commit {}{earlier}; command to repeat: cargo xtask reproduce --from report/record {}/{}",
                    p.units, p.commit, paper.key, item.item
                ),
                "agent": id(AUTHORS),
                "instrument": id(SOFTWARE),
                "result": results,
            }));
            actions.push(action);
        }
    }
    parts.sort();
    // Papers share authors.
    let mut seen = BTreeSet::new();
    graph.retain(|entity: &Value| seen.insert(entity["@id"].to_string()));
    let licenses = LICENSES.iter().map(|(license, name)| {
        json!({ "@id": license, "@type": "CreativeWork", "name": name, "identifier": license })
    });
    graph.extend(licenses);
    graph.extend([
        json!({ "@id": AUTHORS, "@type": "Organization", "name": "the posenc authors" }),
        json!({
            "@id": SOFTWARE,
            "@type": "SoftwareSourceCode",
            "name": "posenc",
            "version": env!("CARGO_PKG_VERSION"),
            "programmingLanguage": "Rust",
            "description": "Reproduction harness for papers on position encoding",
        }),
        json!({
            "@id": "./",
            "@type": "Dataset",
            "name": "posenc: reproduction record of papers on position encoding",
            "description": "Measured numbers, their provenance, claims of the papers with verdicts, and the report rendered from them.",
            "datePublished": PUBLISHED,
            "license": LICENSES.iter().map(|(license, _)| id(license)).collect::<Vec<_>>(),
            "author": id(AUTHORS),
            "publisher": id(AUTHORS),
            "hasPart": parts.iter().map(|part| id(part)).collect::<Vec<_>>(),
            "mentions": actions.iter().map(|action| id(action)).collect::<Vec<_>>(),
        }),
        json!({
            "@id": FILE,
            "@type": "CreativeWork",
            "about": id("./"),
            "conformsTo": id("https://w3id.org/ro/crate/1.1"),
        }),
    ]);
    let crate_ = json!({ "@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph });
    super::bytes(&crate_).map(Some)
}

fn id(id: &str) -> Value {
    json!({ "@id": id })
}

fn file(path: &str, name: &str, format: &str) -> Value {
    json!({ "@id": path, "@type": "File", "name": name, "encodingFormat": format })
}

fn article_id(paper: &Paper) -> String {
    match &paper.arxiv {
        Some(arxiv) => format!("https://arxiv.org/abs/{arxiv}"),
        None => format!("#paper-{}", slug(&paper.key)),
    }
}

fn article(paper: &Paper) -> Vec<Value> {
    let person = |name: &String| format!("#person-{}", slug(name));
    let names: BTreeSet<&String> = paper.authors.iter().collect();
    let mut entities: Vec<Value> = names
        .into_iter()
        .map(|name| json!({ "@id": person(name), "@type": "Person", "name": name }))
        .collect();
    entities.push(json!({
        "@id": article_id(paper),
        "@type": "ScholarlyArticle",
        "name": bare(&paper.title),
        "author": paper.authors.iter().map(|name| id(&person(name))).collect::<Vec<_>>(),
        "datePublished": paper.year.to_string(),
    }));
    entities
}
