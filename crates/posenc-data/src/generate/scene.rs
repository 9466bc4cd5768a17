//! What the generated images show: palettes and mixtures of shapes.
//!
//! Colors are 8-bit sRGB triples; lengths are in pixels of a 512 × 512 image and scale with its
//! side.

/// A color as stored in image files.
pub(super) type Color = [u8; 3];

/// One kind of picture.
#[derive(Debug)]
pub(super) struct Scene {
    /// The sky above the horizon, where there is one: shapes then lie on a plain that recedes to
    /// it.
    pub sky: Option<Sky>,
    /// What shows through between the shapes.
    pub ground: Color,
    /// Colors of the shapes.
    pub palette: [Color; 6],
    /// Relative frequencies of ellipses, leaves and boxes.
    pub mixture: [f32; 3],
    /// Range of width / length.
    pub slimness: [f32; 2],
    /// Whether the shapes stand upright instead of being turned at random.
    pub upright: bool,
    /// Share of the shapes that carry veins, bands or windows.
    pub patterned: f32,
    /// Share of the large shapes that become rosettes of petals.
    pub rosettes: f32,
    /// How round surfaces look: darkening towards the outline.
    pub roundness: f32,
    /// Standard deviation of the surface noise, relative to the brightness.
    pub grain: f32,
    /// Factor between the amplitudes of neighboring octaves of the noise.
    pub roughness: f32,
    /// Range of the radii.
    pub radii: [f32; 2],
    /// Number of shapes.
    pub n_shapes: usize,
}

/// A sky with clouds.
#[derive(Debug)]
pub(super) struct Sky {
    /// Color at the top edge.
    pub top: Color,
    /// Color at the horizon; distant shapes fade to it.
    pub bottom: Color,
    /// Color of the clouds.
    pub cloud: Color,
    /// Color of the hills without the air between.
    pub hill: Color,
    /// Height of the horizon, as a share of the image's side from the top.
    pub horizon: f32,
}

/// The scenes, taken in turn by the images of a set.
pub(super) const SCENES: [Scene; 8] = [
    // Summer leaves.
    Scene {
        sky: None,
        ground: [18, 26, 16],
        palette: [
            [58, 94, 38],
            [96, 132, 52],
            [34, 66, 40],
            [136, 158, 74],
            [74, 106, 66],
            [182, 178, 92],
        ],
        mixture: [0.15, 0.85, 0.0],
        slimness: [0.28, 0.55],
        upright: false,
        patterned: 0.7,
        rosettes: 0.0,
        roundness: 0.25,
        grain: 0.10,
        roughness: 0.85,
        radii: [5.0, 150.0],
        n_shapes: 5200,
    },
    // Pebbles on a beach.
    Scene {
        sky: None,
        ground: [46, 42, 40],
        palette: [
            [128, 124, 118],
            [172, 162, 146],
            [92, 88, 90],
            [198, 190, 178],
            [140, 108, 88],
            [108, 118, 124],
        ],
        mixture: [1.0, 0.0, 0.0],
        slimness: [0.55, 0.95],
        upright: false,
        patterned: 0.25,
        rosettes: 0.0,
        roundness: 0.55,
        grain: 0.12,
        roughness: 0.9,
        radii: [4.0, 110.0],
        n_shapes: 5600,
    },
    // A town under an evening sky.
    Scene {
        sky: Some(Sky {
            top: [84, 118, 172],
            bottom: [236, 206, 178],
            cloud: [246, 232, 222],
            hill: [104, 96, 122],
            horizon: 0.36,
        }),
        ground: [72, 66, 62],
        palette: [
            [196, 164, 132],
            [164, 92, 70],
            [218, 204, 184],
            [122, 112, 108],
            [146, 130, 112],
            [92, 84, 92],
        ],
        mixture: [0.05, 0.0, 0.95],
        slimness: [0.35, 0.9],
        upright: true,
        patterned: 0.75,
        rosettes: 0.0,
        roundness: 0.05,
        grain: 0.06,
        roughness: 0.85,
        radii: [6.0, 120.0],
        n_shapes: 2600,
    },
    // Blossoms in a meadow.
    Scene {
        sky: None,
        ground: [24, 36, 20],
        palette: [
            [206, 72, 96],
            [232, 172, 58],
            [84, 122, 54],
            [222, 206, 214],
            [142, 84, 164],
            [112, 146, 72],
        ],
        mixture: [0.5, 0.5, 0.0],
        slimness: [0.35, 0.8],
        upright: false,
        patterned: 0.4,
        rosettes: 0.6,
        roundness: 0.25,
        grain: 0.08,
        roughness: 0.85,
        radii: [5.0, 100.0],
        n_shapes: 3600,
    },
    // Rocks under a wide blue sky.
    Scene {
        sky: Some(Sky {
            top: [46, 98, 168],
            bottom: [196, 216, 230],
            cloud: [250, 250, 250],
            hill: [62, 86, 92],
            horizon: 0.45,
        }),
        ground: [104, 92, 66],
        palette: [
            [150, 128, 92],
            [116, 120, 74],
            [178, 160, 122],
            [92, 84, 70],
            [134, 140, 92],
            [70, 86, 60],
        ],
        mixture: [0.9, 0.1, 0.0],
        slimness: [0.3, 0.75],
        upright: true,
        patterned: 0.15,
        rosettes: 0.0,
        roundness: 0.4,
        grain: 0.13,
        roughness: 0.92,
        radii: [4.0, 120.0],
        n_shapes: 4200,
    },
    // Autumn on the ground.
    Scene {
        sky: None,
        ground: [34, 22, 16],
        palette: [
            [186, 92, 34],
            [210, 148, 50],
            [132, 52, 32],
            [154, 116, 62],
            [98, 70, 44],
            [196, 176, 112],
        ],
        mixture: [0.25, 0.75, 0.0],
        slimness: [0.35, 0.75],
        upright: false,
        patterned: 0.8,
        rosettes: 0.0,
        roundness: 0.2,
        grain: 0.13,
        roughness: 0.88,
        radii: [6.0, 130.0],
        n_shapes: 4400,
    },
    // A reef.
    Scene {
        sky: None,
        ground: [8, 34, 52],
        palette: [
            [36, 108, 134],
            [226, 126, 92],
            [24, 66, 98],
            [112, 170, 168],
            [232, 196, 138],
            [150, 72, 104],
        ],
        mixture: [0.75, 0.25, 0.0],
        slimness: [0.4, 0.95],
        upright: false,
        patterned: 0.5,
        rosettes: 0.25,
        roundness: 0.5,
        grain: 0.11,
        roughness: 0.9,
        radii: [4.0, 140.0],
        n_shapes: 4600,
    },
    // Crates and tools in a workshop.
    Scene {
        sky: None,
        ground: [30, 28, 30],
        palette: [
            [152, 118, 78],
            [96, 108, 122],
            [186, 180, 170],
            [64, 60, 64],
            [168, 62, 48],
            [206, 170, 84],
        ],
        mixture: [0.3, 0.0, 0.7],
        slimness: [0.15, 0.9],
        upright: false,
        patterned: 0.45,
        rosettes: 0.0,
        roundness: 0.2,
        grain: 0.08,
        roughness: 0.85,
        radii: [5.0, 160.0],
        n_shapes: 4200,
    },
];
