//! Metrics that all protocols with attention models record.

use posenc_experiments::record::Value;
use posenc_harness::machine;

/// Number of steps that a point of the loss curve averages.
const POINT: usize = 25;

/// Number of last steps that the final loss averages.
const LAST: usize = 50;

pub fn with_unit((metric, value, unit): (&str, f64, &str)) -> Value {
    Value::new(metric, value).unit(unit)
}

/// Rounds to six decimal places, which suffice for a map; full precision would triple the size of the record.
pub fn six_digits(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Mean over the steps `from..to`.
fn mean(losses: &[f64], from: usize, to: usize) -> f64 {
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
