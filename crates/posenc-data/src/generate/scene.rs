//! Scenes of the generated images: palettes and mixtures of shapes.
//!
//! Colors are 8-bit sRGB triples, 0xRR_GG_BB; lengths are in pixels of a 512 × 512 image and scale with its
//! side.

/// A color as stored in image files.
pub(super) type Color = u32;

#[derive(Debug)]
pub(super) struct Scene {
    /// The sky above the horizon, if any: shapes then lie on a plain that recedes to the horizon.
    pub sky: Option<Sky>,
    pub ground: Color,
    pub palette: [Color; 6],
    /// Relative frequencies of ellipses, leaves and boxes.
    pub mixture: [f32; 3],
    /// Range of width / length.
    pub slimness: [f32; 2],
    /// Whether the shapes are upright instead of turned at random.
    pub upright: bool,
    /// Fraction of the shapes with veins, bands or windows.
    pub patterned: f32,
    /// Fraction of the large shapes that become rosettes of petals.
    pub rosettes: f32,
    /// How round surfaces look: darkening towards the outline.
    pub roundness: f32,
    /// Standard deviation of the surface noise, relative to the brightness.
    pub grain: f32,
    /// Factor between the amplitudes of neighboring octaves of the noise.
    pub roughness: f32,
    pub radii: [f32; 2],
    pub n_shapes: usize,
}

#[derive(Debug)]
pub(super) struct Sky {
    /// Color at the top edge.
    pub top: Color,
    /// Color at the horizon; distant shapes fade to it.
    pub bottom: Color,
    pub cloud: Color,
    /// Color of the hills without haze.
    pub hill: Color,
    /// Height of the horizon, as a share of the image's side from the top.
    pub horizon: f32,
}

/// Shapes turned at random, without a sky.
const PLAIN: Scene = Scene {
    sky: None,
    ground: 0,
    palette: [0; 6],
    mixture: [0.0; 3],
    slimness: [1.0; 2],
    upright: false,
    patterned: 0.0,
    rosettes: 0.0,
    roundness: 0.0,
    grain: 0.0,
    roughness: 0.85,
    radii: [1.0; 2],
    n_shapes: 0,
};

/// The scenes, taken in turn by the images of a set.
pub(super) const SCENES: [Scene; 8] = [
    // Summer leaves.
    Scene {
        ground: 0x12_1a_10,
        palette: [0x3a_5e_26, 0x60_84_34, 0x22_42_28, 0x88_9e_4a, 0x4a_6a_42, 0xb6_b2_5c],
        mixture: [0.15, 0.85, 0.0],
        slimness: [0.28, 0.55],
        patterned: 0.7,
        roundness: 0.25,
        grain: 0.10,
        radii: [5.0, 150.0],
        n_shapes: 5200,
        ..PLAIN
    },
    // Pebbles on a beach.
    Scene {
        ground: 0x2e_2a_28,
        palette: [0x80_7c_76, 0xac_a2_92, 0x5c_58_5a, 0xc6_be_b2, 0x8c_6c_58, 0x6c_76_7c],
        mixture: [1.0, 0.0, 0.0],
        slimness: [0.55, 0.95],
        patterned: 0.25,
        roundness: 0.55,
        grain: 0.12,
        roughness: 0.9,
        radii: [4.0, 110.0],
        n_shapes: 5600,
        ..PLAIN
    },
    // A town under an evening sky.
    Scene {
        sky: Some(Sky {
            top: 0x54_76_ac,
            bottom: 0xec_ce_b2,
            cloud: 0xf6_e8_de,
            hill: 0x68_60_7a,
            horizon: 0.36,
        }),
        ground: 0x48_42_3e,
        palette: [0xc4_a4_84, 0xa4_5c_46, 0xda_cc_b8, 0x7a_70_6c, 0x92_82_70, 0x5c_54_5c],
        mixture: [0.05, 0.0, 0.95],
        slimness: [0.35, 0.9],
        upright: true,
        patterned: 0.75,
        roundness: 0.05,
        grain: 0.06,
        radii: [6.0, 120.0],
        n_shapes: 2600,
        ..PLAIN
    },
    // Blossoms in a meadow.
    Scene {
        ground: 0x18_24_14,
        palette: [0xce_48_60, 0xe8_ac_3a, 0x54_7a_36, 0xde_ce_d6, 0x8e_54_a4, 0x70_92_48],
        mixture: [0.5, 0.5, 0.0],
        slimness: [0.35, 0.8],
        patterned: 0.4,
        rosettes: 0.6,
        roundness: 0.25,
        grain: 0.08,
        radii: [5.0, 100.0],
        n_shapes: 3600,
        ..PLAIN
    },
    // Rocks under a wide blue sky.
    Scene {
        sky: Some(Sky {
            top: 0x2e_62_a8,
            bottom: 0xc4_d8_e6,
            cloud: 0xfa_fa_fa,
            hill: 0x3e_56_5c,
            horizon: 0.45,
        }),
        ground: 0x68_5c_42,
        palette: [0x96_80_5c, 0x74_78_4a, 0xb2_a0_7a, 0x5c_54_46, 0x86_8c_5c, 0x46_56_3c],
        mixture: [0.9, 0.1, 0.0],
        slimness: [0.3, 0.75],
        upright: true,
        patterned: 0.15,
        roundness: 0.4,
        grain: 0.13,
        roughness: 0.92,
        radii: [4.0, 120.0],
        n_shapes: 4200,
        ..PLAIN
    },
    // Autumn on the ground.
    Scene {
        ground: 0x22_16_10,
        palette: [0xba_5c_22, 0xd29432, 0x84_34_20, 0x9a_74_3e, 0x62_46_2c, 0xc4_b0_70],
        mixture: [0.25, 0.75, 0.0],
        slimness: [0.35, 0.75],
        patterned: 0.8,
        roundness: 0.2,
        grain: 0.13,
        roughness: 0.88,
        radii: [6.0, 130.0],
        n_shapes: 4400,
        ..PLAIN
    },
    // A reef.
    Scene {
        ground: 0x08_22_34,
        palette: [0x24_6c_86, 0xe2_7e_5c, 0x18_42_62, 0x70_aa_a8, 0xe8_c4_8a, 0x96_48_68],
        mixture: [0.75, 0.25, 0.0],
        slimness: [0.4, 0.95],
        patterned: 0.5,
        rosettes: 0.25,
        roundness: 0.5,
        grain: 0.11,
        roughness: 0.9,
        radii: [4.0, 140.0],
        n_shapes: 4600,
        ..PLAIN
    },
    // Crates and tools in a workshop.
    Scene {
        ground: 0x1e_1c_1e,
        palette: [0x98_76_4e, 0x60_6c_7a, 0xba_b4_aa, 0x40_3c_40, 0xa8_3e_30, 0xce_aa_54],
        mixture: [0.3, 0.0, 0.7],
        slimness: [0.15, 0.9],
        patterned: 0.45,
        roundness: 0.2,
        grain: 0.08,
        radii: [5.0, 160.0],
        n_shapes: 4200,
        ..PLAIN
    },
];
