//! Means of methods over the abscissa.

use std::collections::BTreeMap;

use super::Unjudged;
use super::clusters::Clusters;
use super::points::{Context, places, points};
use super::statistics::mean_interval;
use crate::schema::claim::Select;

pub(super) struct Curve {
    pub method: String,
    /// Place and mean over the repetitions, in which rows of one repetition count once.
    pub points: Vec<(f64, f64)>,
    /// Means by repetition, in the order of `points`.
    pub by_cluster: Vec<BTreeMap<String, f64>>,
}

/// A curve for each method of a selection. Values without an abscissa are left out.
pub(super) fn curves(
    select: &Select,
    clusters: Clusters,
    context: Context<'_>,
) -> Result<Vec<Curve>, Unjudged> {
    let mut all: Vec<Curve> = Vec::new();
    for place in places(&points(select, context)?)? {
        let Some(x) = place.x else { continue };
        if all.last().is_none_or(|curve| curve.method != place.method) {
            let method = place.method.to_owned();
            all.push(Curve { method, points: Vec::new(), by_cluster: Vec::new() });
        }
        if let Some(curve) = all.last_mut() {
            let by_cluster = clusters.by_cluster(place.points.iter().map(|p| (*p, p.value)));
            let means: Vec<f64> = by_cluster.values().copied().collect();
            curve.points.push((x, mean_interval(&means).mean));
            curve.by_cluster.push(by_cluster);
        }
    }
    Ok(all)
}
