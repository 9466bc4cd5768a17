//! All claims with their verdicts as JSON.

use posenc_experiments::schema::claim::{Claim, Select, Source};
use posenc_experiments::verdict::{Evidence, Numbers};
use serde_json::{Value, json};

use crate::Inputs;
use crate::markdown::bare;
use crate::pages::links;
use crate::view::{JudgedClaim, SideView, View, Views};

/// The file, below the report's directory.
pub const FILE: &str = "claims.json";
pub const SCHEMA_FILE: &str = "claims.schema.json";
pub const SCHEMA: &str = include_str!("../templates/claims.schema.json");

/// Renders all claims with their verdicts on the reference.
pub fn render(inputs: &Inputs<'_>, views: &Views<'_>, moved: &links::Moved) -> Vec<u8> {
    let mut claims = Vec::new();
    for paper in &inputs.catalog.papers {
        for (item, judged) in views.judged(paper) {
            let JudgedClaim { view, side, claim, judgement, holm } = judged;
            let mut own_links = json!({ "page": moved.link(&judged.page()) });
            let record = links::values(inputs, &paper.key, &item.item);
            if let Some(record) = record.filter(|_| side.run.is_some()) {
                own_links["record"] = json!(record);
            }
            claims.push(json!({
                "id": format!("{}/{}#{}", paper.key, item.item, claim.id),
                "paper": paper.key,
                "item": item.item,
                "item_name": bare(&item.name),
                "source": claim.source,
                "statement": claim.says,
                "checks": claim.checks.iter().map(|own| own.check.kind()).collect::<Vec<_>>(),
                "evidence": judgement.evidence.map(Evidence::name),
                "condition": judgement.condition,
                "verdict": judgement.verdict.name(),
                "measured": judgement.measured,
                "statistics": judgement.statistics,
                "reason": judgement.reason,
                "numbers": numbers(view, side, claim),
                "p": judgement.p(),
                "p_holm": holm,
                "erratum": claim.erratum.as_ref().map(|erratum| erratum.id.clone()),
                "links": own_links,
            }));
        }
    }
    // One claim per line, so that a change of a claim is one line of a diff.
    let lines = claims.iter().map(ToString::to_string).collect::<Vec<_>>().join(",\n");
    format!("{{\"$schema\":\"{SCHEMA_FILE}\",\"claims\":[\n{lines}\n]}}\n").into_bytes()
}

/// The numbers of each selection of a claim's check.
fn numbers(view: &View<'_>, side: &SideView, claim: &Claim) -> Vec<Value> {
    let finite = |value: f64| value.is_finite().then_some(value);
    let numbers = Numbers::of(claim, view.context(side));
    let number = |(index, select): (usize, &Select)| {
        let own = numbers.mean(index);
        let interval = own.as_ref().and_then(|of| {
            let half = of.half_width?;
            Some([finite(of.mean - half)?, finite(of.mean + half)?])
        });
        json!({
            "group": select.group,
            "method": select.method,
            "metric": select.metric_text(),
            "from": if select.from == Source::Published { "published" } else { "measured" },
            "mean": own.as_ref().and_then(|of| finite(of.mean)),
            "interval": interval,
            "n": own.map_or(0, |of| of.n),
            "unit": numbers.unit(index),
            "published": numbers.published(index).and_then(finite),
        })
    };
    numbers.selects().enumerate().map(number).collect()
}
