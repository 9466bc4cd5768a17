//! Features of points on grids and of waves, by their definitions. Other tests compare trainings on these inputs with trainings on
//! their dense matrices.

use crate::common::{self, noise, waves};

use posenc_nets::Input;

/// Catches axes that vary in the wrong order.
#[test]
fn the_last_axis_of_a_grid_varies_fastest() {
    let grid = Input::grid(vec![waves(2, 3), noise(1, 4, "axis"), waves(3, 5)]).unwrap();
    assert_eq!((grid.points(), grid.dimension()), (60, 6));
    let (first, middle, last) = (waves(2, 3), noise(1, 4, "axis"), waves(3, 5));
    for point in 0..60 {
        let (i, j, k) = (point / 20, point / 5 % 4, point % 5);
        let expected = [
            first[(0, i)],
            first[(1, i)],
            middle[(0, j)],
            last[(0, k)],
            last[(1, k)],
            last[(2, k)],
        ];
        let found: Vec<f32> = (0..6).map(|feature| grid.at(feature, point)).collect();
        assert_eq!(found, expected, "point {point}");
    }
}

/// Catches wrong sums of phases, cosines before sines, and a scale that is missing or applied once per axis.
#[test]
fn joint_waves_are_sines_and_cosines_of_sums() {
    for axes in [&[30][..], &[17, 19], &[5, 6, 7]] {
        let (input, phases) = common::joint_waves(40, 100, axes);
        assert_eq!((input.dimension(), input.points()), (80, 100));
        let mut worst: f64 = 0.0;
        for i in 0..100 {
            for k in 0..40 {
                let (sine, cosine) = (std::f64::consts::TAU * phases[(k, i)]).sin_cos();
                worst = worst.max((f64::from(input.at(k, i)) - 0.25 * sine).abs());
                worst = worst.max((f64::from(input.at(40 + k, i)) - 0.25 * cosine).abs());
            }
        }
        println!("{axes:?}: {worst:.1e}");
        assert!(worst < 1e-7, "{axes:?}: {worst:e}");
    }
}
