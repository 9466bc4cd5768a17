//! The mathematics of training, written to be read, in double precision.
