//! Metrics that all protocols with attention models record.

use posenc_attention::{Module, parameters};
use posenc_experiments::record::Value;
use posenc_harness::machine;
use posenc_math::lff::learned::FrequencyStatistics;
use posenc_math::lff::similarity::FourierFeatures;

/// Number of steps that a point of the loss curve averages.
const POINT: usize = 25;

/// Number of last steps that the final loss averages.
const LAST: usize = 50;

pub fn with_unit((metric, value, unit): (&str, f64, &str)) -> Value {
    Value::new(metric, value).unit(unit)
}

/// Records the number of parameters of a model and of its position encoding.
pub fn record_params<M: Module>(model: &M, encoding_params: usize, values: &mut Vec<Value>) {
    let numbers = [
        ("params", parameters::count(model) as f64, "count"),
        ("encoding_params", encoding_params as f64, "count"),
    ];
    values.extend(numbers.map(with_unit));
}

/// Records statistics of frequencies `rows` with the prefix `when`. `unit` is that of the length scale; the residual is that over
/// `displacements`, if there are any.
pub fn record_frequencies(
    when: &str,
    (rows, coordinates): (&[f64], usize),
    unit: &str,
    displacements: &[[f64; 2]],
    values: &mut Vec<Value>,
) {
    let displacements = if coordinates == 2 { displacements.as_flattened() } else { &[] };
    let Some(statistics) = FrequencyStatistics::new(rows, coordinates, displacements) else {
        return;
    };
    let mut add = |metric: &str, value: f64, unit: &str| {
        values.push(Value::new(format!("{when}_{metric}"), value).unit(unit));
    };
    add("length", statistics.length, unit);
    add("anisotropy", statistics.anisotropy, "");
    if coordinates == 2 {
        add("correlation", statistics.correlation(0, 1), "");
    }
    if !displacements.is_empty() {
        add("gaussian_residual", statistics.gaussian_residual, "");
    }
}

/// Records the similarity over displacements, if these have two coordinates; `axes` are the coordinates of x and of y.
pub fn record_similarities(
    when: &str,
    (rows, coordinates): (&[f64], usize),
    displacements: &[[f64; 2]],
    axes: [usize; 2],
    values: &mut Vec<Value>,
) {
    let Ok(features) = FourierFeatures::from_weights(rows.to_vec(), coordinates) else {
        return;
    };
    for delta in displacements.iter().filter(|_| coordinates == 2) {
        let h = six_digits(2.0 * features.kernel(delta));
        let [x, y] = axes.map(|axis| delta[axis]);
        values.push(Value::new(format!("{when}_similarity"), h).at(x).and(y));
    }
}

/// All pairs of multiples of `step` from −`largest` to `largest`; the last varies fastest.
pub fn displacements(largest: usize, step: usize) -> Vec<[f64; 2]> {
    let (largest, step) = (largest as i64, step as i64);
    let side = || (-largest..=largest).filter(move |at| at % step == 0);
    side().flat_map(|a| side().map(move |b| [a as f64, b as f64])).collect()
}

/// Rounds to six decimal places, which suffice for a map; full precision would triple the size of the record.
pub fn six_digits(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

pub fn mean(losses: &[f64], from: usize, to: usize) -> f64 {
    let own = losses.iter().take(to).skip(from);
    let (sum, count) = own.fold((0.0, 0usize), |(sum, count), loss| (sum + loss, count + 1));
    sum / count as f64
}

/// Records the loss over the step, as means over `every` steps.
pub fn record_curve(losses: &[f64], every: usize, unit: &str, values: &mut Vec<Value>) {
    let steps = losses.len();
    for from in (0..steps).step_by(every) {
        let to = (from + every).min(steps);
        let loss = Value::new("training_curve", mean(losses, from, to)).unit(unit);
        values.push(loss.at(to as f64));
    }
}

/// Records the loss over the step, as means over 25 steps, and the mean of the last 50 steps.
pub fn record_losses(losses: &[f64], unit: &str, values: &mut Vec<Value>) {
    record_curve(losses, POINT, unit, values);
    let steps = losses.len();
    let last = mean(losses, steps.saturating_sub(LAST), steps);
    values.push(Value::new("training_loss", last).unit(unit));
}

/// Records time, rate and peak memory of a unit. `seconds` and `work` (operations) are those of this run; `earlier` are the seconds of
/// interrupted runs, which count for the time only.
pub fn record_cost(seconds: f64, earlier: f64, work: f64, values: &mut Vec<Value>) {
    values.push(Value::new("time", seconds + earlier).unit("s"));
    values.push(Value::new("rate", work / seconds / 1e9).unit("GFLOP/s"));
    record_peak_memory(values);
}

/// Records the peak memory of this process, if the system reports it.
pub fn record_peak_memory(values: &mut Vec<Value>) {
    let bytes = machine::peak_memory();
    values.extend(bytes.map(|bytes| Value::new("peak_memory", bytes as f64 / 1e6).unit("MB")));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches means over the wrong steps.
    #[test]
    fn losses_are_means_of_steps() {
        let losses: Vec<f64> = (0..60).map(f64::from).collect();
        let mut values = Vec::new();
        record_losses(&losses, "nats", &mut values);
        let found: Vec<_> = values.iter().map(|v| (v.metric.as_str(), v.x, v.value)).collect();
        let curve = "training_curve";
        let wanted = [
            (curve, Some(25.0), 12.0),
            (curve, Some(50.0), 37.0),
            (curve, Some(60.0), 54.5),
            ("training_loss", None, 34.5),
        ];
        assert_eq!(found, wanted);
    }
}
