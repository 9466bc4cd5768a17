//! Outlines of leaves as signed distances: negative inside, positive outside, in pixels.

/// Kinds of outlines. `a` is half the length along the first axis, `b ≤ a` half the width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Outline {
    /// An ellipse with half axes a and b.
    Ellipse,
    /// The lens between two circular arcs that meet at (±a, 0) and reach (0, ±b).
    Leaf,
    /// A rectangle with corners rounded by 0.12 b.
    Box,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub outline: Outline,
    pub a: f32,
    pub b: f32,
}

impl Shape {
    /// Radius of a circle around the center that contains the shape.
    pub(super) fn reach(&self) -> f32 {
        match self.outline {
            Outline::Box => (self.a * self.a + self.b * self.b).sqrt(),
            Outline::Ellipse | Outline::Leaf => self.a,
        }
    }

    /// Signed distance of the point (u, v) in the shape's own axes. For the ellipse it is the first-order approximation g/|∇g|, which is
    /// accurate near the outline, where it matters.
    #[inline]
    pub(super) fn signed_distance(&self, u: f32, v: f32) -> f32 {
        let (a, b) = (self.a, self.b);
        match self.outline {
            Outline::Ellipse => {
                let (p, q) = (u / a, v / b);
                let level = (p * p + q * q).sqrt();
                let slope = ((p / a) * (p / a) + (q / b) * (q / b)).sqrt();
                if slope < 1e-6 { -b } else { (level - 1.0) * level / slope }
            }
            Outline::Leaf => {
                let radius = (a * a + b * b) / (2.0 * b);
                let w = v.abs() + radius - b;
                (u * u + w * w).sqrt() - radius
            }
            Outline::Box => {
                let corner = 0.12 * b;
                let (p, q) = (u.abs() - a + corner, v.abs() - b + corner);
                let (outside_p, outside_q) = (p.max(0.0), q.max(0.0));
                p.max(q).min(0.0) + (outside_p * outside_p + outside_q * outside_q).sqrt() - corner
            }
        }
    }
}
