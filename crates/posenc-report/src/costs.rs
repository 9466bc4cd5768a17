//! Cost estimates of the runner. They depend only on definitions and records, so a page of costs has the same bytes on
//! any machine.

use posenc_experiments::Profile;

/// Estimated costs of all items at a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// The profile.
    pub profile: Profile,
    /// Cores per machine or node.
    pub cores: usize,
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Assumed sustained rate of a GPU, in floating-point operations per second.
    pub gpu_rate: f64,
    /// The items, in the order of the catalog.
    pub items: Vec<ItemCosts>,
}

/// Estimated costs of an item.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ItemCosts {
    /// Paper key.
    pub paper: String,
    /// Item key.
    pub item: String,
    /// Its name, such as `Figure 3`.
    pub name: String,
    /// Number of units.
    pub units: usize,
    /// Seconds on one core.
    pub seconds: f64,
    /// Part of `seconds` that a GPU would take over.
    pub on_device: f64,
    /// Floating-point operations of training.
    pub operations: f64,
    /// Part of `operations` that a GPU would take over.
    pub device_operations: f64,
    /// Seconds on one core of the longest job, which more nodes do not shorten.
    pub longest: f64,
    /// Seconds on one core of the longest job that stays on the CPU.
    pub longest_on_cpu: f64,
    /// Recorded and estimated times; `None` without a record, or if the record does not list its units.
    pub check: Option<Check>,
    /// Mean recorded training rate in floating-point operations per second; `None` if no unit records one.
    pub rate: Option<f64>,
    /// Groups that do not run at the profile, and why.
    pub refused: Vec<(String, String)>,
    /// Groups that run only if a set of files is available, and the name of the set.
    pub needs: Vec<(String, String)>,
}

/// Recorded and estimated times of the same units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Check {
    /// Number of units.
    pub units: usize,
    /// Sum of the recorded times, in seconds.
    pub measured: f64,
    /// Sum of the estimated times, in seconds.
    pub estimated: f64,
}

impl Check {
    /// Measured seconds per estimated second.
    pub fn ratio(&self) -> f64 {
        self.measured / self.estimated.max(1e-9)
    }
}

/// Sums over items.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    /// Number of units.
    pub units: usize,
    /// Floating-point operations.
    pub operations: f64,
    /// Seconds on a machine.
    pub machine: f64,
    /// Seconds on a machine with a GPU.
    pub with_gpu: f64,
    /// Seconds on the cluster.
    pub cluster: f64,
}

impl Costs {
    /// Sums over `items`. No time is below that of the longest job.
    pub fn sums<'a>(&self, items: impl IntoIterator<Item = &'a ItemCosts>) -> Sums {
        let (mut sums, mut longest, mut seconds) = (Sums::default(), 0.0f64, 0.0);
        let (mut on_cpu, mut longest_on_cpu, mut on_device) = (0.0, 0.0f64, 0.0);
        for item in items {
            sums.units += item.units;
            sums.operations += item.operations;
            seconds += item.seconds;
            on_cpu += item.seconds - item.on_device;
            longest_on_cpu = longest_on_cpu.max(item.longest_on_cpu);
            on_device += item.device_operations / self.gpu_rate;
            longest = longest.max(item.longest);
        }
        // The CPU and the GPU work at the same time, so the longer part determines the time.
        sums.with_gpu = (on_cpu / self.cores as f64).max(longest_on_cpu).max(on_device);
        let over = |cores: usize| (seconds / cores as f64).max(longest);
        sums.machine = over(self.cores);
        sums.cluster = over(self.cores * self.nodes);
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(seconds: f64, longest: f64, operations: f64) -> ItemCosts {
        ItemCosts {
            units: 1,
            seconds,
            longest,
            longest_on_cpu: if operations > 0.0 { 0.0 } else { longest },
            operations,
            device_operations: operations,
            on_device: if operations > 0.0 { seconds } else { 0.0 },
            ..ItemCosts::default()
        }
    }

    /// Catches a cluster time below that of the longest job, cores that are counted twice, and CPU work that costs
    /// nothing on a machine with a GPU.
    #[test]
    fn no_time_is_below_that_of_the_longest_job() {
        let items = vec![item(100.0, 60.0, 1e12), item(300.0, 10.0, 0.0)];
        let costs = Costs { profile: Profile::Paper, cores: 2, nodes: 4, gpu_rate: 1e11, items };
        let sums = costs.sums(&costs.items);
        assert_eq!((sums.units, sums.operations), (2, 1e12));
        assert_eq!((sums.machine, sums.cluster), (200.0, 60.0));
        // Ten seconds on the GPU next to 150 on the cores.
        assert_eq!(sums.with_gpu, 150.0);
        assert_eq!(costs.sums([&costs.items[1]]).cluster, 37.5);
    }
}
