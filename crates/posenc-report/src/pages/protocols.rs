//! The reference of protocols, from their documentation and their examples.

use minijinja::{Value, context};
use posenc_experiments::schema::Kinds;
use posenc_experiments::schema::protocol::Kind;

use crate::template::safe;

/// What the page shows.
pub fn page(kinds: &Kinds) -> Value {
    let kind = |kind: &&'static Kind| {
        let description = kind.description();
        let purpose = description.lines().next().unwrap_or_default().to_owned();
        context! {
            name => kind.name,
            purpose => safe(purpose),
            description => safe(description.trim_end()),
            requirements => safe(requirements(kind)),
            example => safe(kind.example.trim_end()),
        }
    };
    context! { kinds => kinds.all.iter().map(kind).collect::<Vec<_>>() }
}

/// Requirements of groups with this protocol, and how their units run.
fn requirements(kind: &Kind) -> String {
    let repeats = kind
        .repeats_key
        .map(|key| format!("`{key}` is the number of runs; the group's `seeds` must be 1."));
    let sentences = [
        kind.needs_embedder.then_some("Every variant needs an `embedder`."),
        kind.takes_held_out.then_some("With a set of images, the group needs `data.held_out`."),
        kind.takes_weights.then_some("The group may name `data.weights`."),
        repeats.as_deref(),
        kind.emits_as_batch.then_some("The units of a job are computed together."),
        kind.reads_published.then_some("Results depend on the published values of the paper."),
    ];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}
