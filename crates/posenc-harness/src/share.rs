//! Shares of a plan, which run in processes of their own, usually on other machines (`--share`).

use crate::options::Share;
use crate::plan::PlannedJob;
use crate::timings::Timings;

/// Keeps only the jobs of a share.
pub fn keep(planned: &mut Vec<PlannedJob<'_>>, timings: &Timings, share: Share) {
    let mut dealt = deal(planned, timings, share.count).into_iter();
    planned.retain(|_| dealt.next() == Some(share.index));
}

/// The share of each job, from 1. With `timings` of the reference record alone, all processes agree while records appear.
///
/// Jobs stay whole, because their units share an embedding and a checkpoint.
pub fn deal(planned: &[PlannedJob<'_>], timings: &Timings, count: usize) -> Vec<usize> {
    deal_jobs(&planned.iter().map(|p| timings.rank(p)).collect::<Vec<_>>(), count)
}

/// Deals jobs, given by their costs: the most expensive first, each to the share with the least cost.
fn deal_jobs(jobs: &[f64], count: usize) -> Vec<usize> {
    let mut sums = vec![0.0_f64; count];
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by(|&a, &b| jobs[b].total_cmp(&jobs[a]));
    let mut shares = vec![count; jobs.len()];
    for job in order {
        let least = sums.iter_mut().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
        if let Some((share, sum)) = least {
            // A minimum keeps jobs without cost from all going to one share.
            *sum += jobs[job].max(1e-3);
            shares[job] = share + 1;
        }
    }
    shares
}

/// Checksum of the keys of all units, which shows whether two machines have the same plan.
pub fn checksum(planned: &[PlannedJob<'_>]) -> String {
    let mut hasher = blake3::Hasher::new();
    for unit in planned.iter().flat_map(|p| &p.to_run) {
        hasher.update(unit.parts.key().as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches jobs that run nowhere, and shares of very different cost.
    #[test]
    fn shares_are_similar() {
        let jobs: Vec<f64> = (0..97).map(|i| f64::from(i * 37 % 101)).collect();
        for count in [1, 2, 3, 8, 200] {
            let shares = deal_jobs(&jobs, count);
            assert_eq!(shares.len(), jobs.len());
            assert!(shares.iter().all(|share| (1..=count).contains(share)));
            let sum = |own: usize| -> f64 {
                shares.iter().zip(&jobs).filter(|(share, _)| **share == own).map(|(_, j)| j).sum()
            };
            let sums: Vec<f64> = (1..=count).map(sum).collect();
            let (least, most) = sums
                .iter()
                .fold((f64::MAX, 0.0_f64), |(least, most), &sum| (least.min(sum), most.max(sum)));
            assert!(count > 8 || most - least <= 100.0, "{count}: {sums:?}");
        }
        // Free jobs are spread.
        assert_eq!(deal_jobs(&[0.0; 10], 2).iter().filter(|share| **share == 2).count(), 5);
    }
}
