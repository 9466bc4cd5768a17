//! Training along a schedule of measurements.
