//! All claims with their verdicts as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use posenc_experiments::schema::claim::{Claim, ClaimName, Select, Source, Statistic};
use posenc_experiments::text::MAX_RECORD_BYTES;
use posenc_experiments::verdict::{Evidence, Numbers, Verdict};
use serde_json::{Value, json};

use crate::Inputs;
use crate::links;
use crate::markdown::bare;
use crate::records::Side;
use crate::view::{JudgedClaim, SideView, View, Views};

/// The file, below the report's directory.
pub const FILE: &str = "claims.json";
pub const SCHEMA_FILE: &str = "claims.schema.json";
pub const SCHEMA: &str = include_str!("../templates/claims.schema.json");

/// Key of the verdict on the run of this machine.
const LOCAL: &str = "verdict_here";

/// The verdicts in the report in a directory by id: those of this machine if `is_local`, else those of the reference; none without
/// a report.
pub fn verdicts(directory: &Path, is_local: bool) -> BTreeMap<String, Verdict> {
    let bytes = posenc_files::read(&directory.join(FILE), MAX_RECORD_BYTES).unwrap_or_default();
    let claims: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let key = if is_local { LOCAL } else { "verdict" };
    let verdict = |claim: &Value| {
        let name = claim.get(key)?.as_str()?;
        let verdict = Verdict::ALL.into_iter().find(|verdict| verdict.name() == name)?;
        Some((claim.get("id")?.as_str()?.to_owned(), verdict))
    };
    let claims = claims.get("claims").and_then(Value::as_array);
    claims.into_iter().flatten().filter_map(verdict).collect()
}

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
            let mut entry = json!({
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
            });
            // The report of a machine has its verdicts, too.
            let name = ClaimName {
                paper: paper.key.clone(),
                item: item.item.clone(),
                claim: claim.id.clone(),
            };
            if let Some(local) = views.claim(Side::Local, &name) {
                entry[LOCAL] = json!(local.judgement.verdict.name());
            }
            claims.push(entry);
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
        let is_deviation = select.statistic == Statistic::Deviation;
        let n = if is_deviation { numbers.count(index) } else { own.as_ref().map(|of| of.n) };
        let mut entry = json!({
            "group": select.group,
            "method": select.method,
            "metric": select.metric_text(),
            "from": if select.from == Source::Published { "published" } else { "measured" },
            "mean": own.as_ref().and_then(|of| finite(of.mean)),
            "interval": interval,
            "n": n.unwrap_or(0),
            "unit": numbers.unit(index),
            "published": numbers.published(index).and_then(finite),
        });
        if let Some(x) = &select.x {
            entry["x"] = json!(x);
        }
        if is_deviation {
            entry["statistic"] = json!(select.statistic);
        }
        entry
    };
    numbers.selects().enumerate().map(number).collect()
}
