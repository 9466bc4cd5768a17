//! Learnable Fourier features (Li et al., NeurIPS 2021): similarity of positions, parameter counts.
//!
//! [`similarity`] evaluates the two encodings of Figure 2 on a grid; [`parameters`] rebuilds the
//! models of Tables 3 to 5 module by module and compares the sums with the printed sizes.

pub mod detr;
pub mod divergence;
pub mod encoding;
pub mod image_model;
pub mod learned;
pub mod parameters;

pub mod schedule;
pub mod similarity;
pub mod table;
pub mod widget;

/// The key of an invalid setting, and the reason with the allowed values.
pub type Fault = (&'static str, String);

/// Refuses the first value outside of its range; `values` are (key, value, least, most), both ends included.
fn check_ranges(
    values: impl IntoIterator<Item = (&'static str, usize, usize, usize)>,
) -> Result<(), Fault> {
    match values.into_iter().find(|(_, value, least, most)| !(least..=most).contains(&value)) {
        Some((key, value, least, most)) => {
            Err((key, format!("{value} is not allowed; allowed: {least} to {most}")))
        }
        None => Ok(()),
    }
}

/// Refuses the first share outside of [0, 1).
fn check_shares(shares: &[(&'static str, f64)]) -> Result<(), Fault> {
    match shares.iter().find(|(_, share)| !(0.0..1.0).contains(share)) {
        Some((key, share)) => Err((key, format!("{share} is not allowed; allowed: 0 to below 1"))),
        None => Ok(()),
    }
}
