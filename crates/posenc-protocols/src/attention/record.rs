//! What trainings of attention models record alike.

use posenc_experiments::record::Value;
use posenc_harness::machine;

/// Steps over which a point of the curve of the loss is a mean.
const POINT: usize = 25;

/// Steps over which the loss at the end is.
const LAST: usize = 50;

/// A number with its unit.
pub fn with_unit((metric, value, unit): (&str, f64, &str)) -> Value {
    Value::new(metric, value).unit(unit)
}

/// Rounded to six digits, which draw a map; full precision would triple the record.
pub fn six_digits(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Mean over some steps of all runs.
fn mean(runs: &[Vec<f64>], from: usize, to: usize) -> f64 {
    let own = runs.iter().flat_map(|losses| losses.iter().take(to).skip(from));
    let (sum, count) = own.fold((0.0, 0usize), |(sum, count), loss| (sum + loss, count + 1));
    sum / count as f64
}

/// The loss over steps, mean of `every` each and of all runs.
pub fn record_curve(runs: &[Vec<f64>], every: usize, unit: &str, values: &mut Vec<Value>) {
    let steps = runs.iter().map(Vec::len).max().unwrap_or(0);
    for from in (0..steps).step_by(every) {
        let to = (from + every).min(steps);
        let loss = Value::new("training_curve", mean(runs, from, to)).unit(unit);
        values.push(loss.at(to as f64));
    }
}

/// The loss over steps, mean of 25 each and of all runs, and the mean of the last 50 steps.
pub fn record_losses(runs: &[Vec<f64>], unit: &str, values: &mut Vec<Value>) {
    record_curve(runs, POINT, unit, values);
    let steps = runs.iter().map(Vec::len).max().unwrap_or(0);
    let last = mean(runs, steps.saturating_sub(LAST), steps);
    values.push(Value::new("training_loss", last).unit(unit));
}

/// What a unit cost: seconds with and without those of killed runs, operations of this run.
pub fn record_cost(seconds: f64, earlier: f64, work: f64, values: &mut Vec<Value>) {
    values.push(Value::new("time", seconds + earlier).unit("s"));
    values.push(Value::new("rate", work / seconds / 1e9).unit("GFLOP/s"));
    record_peak_memory(values);
}

/// The most memory that this process has held, where the system reports it.
pub fn record_peak_memory(values: &mut Vec<Value>) {
    let bytes = machine::peak_memory();
    values.extend(bytes.map(|bytes| Value::new("peak_memory", bytes as f64 / 1e6).unit("MB")));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Would catch means over the wrong steps or runs.
    #[test]
    fn losses_are_means_of_steps_and_runs() {
        let runs: Vec<Vec<f64>> =
            [0.0, 1.0].map(|run| (0..60).map(|i| run + f64::from(i)).collect()).to_vec();
        let mut values = Vec::new();
        record_losses(&runs, "nats", &mut values);
        let found: Vec<_> = values.iter().map(|v| (v.metric.as_str(), v.x, v.value)).collect();
        let curve = "training_curve";
        let wanted = [
            (curve, Some(25.0), 12.5),
            (curve, Some(50.0), 37.5),
            (curve, Some(60.0), 55.0),
            ("training_loss", None, 35.0),
        ];
        assert_eq!(found, wanted);
    }
}
