//! Clipping to the frame, in shares of the axes: the visible part is the unit square.

type Point = (f64, f64);

/// The parts of a polyline inside the unit square. `None` interrupts it.
pub fn line(points: &[Option<Point>]) -> Vec<Vec<Point>> {
    let mut parts: Vec<Vec<Point>> = Vec::new();
    let mut open: Vec<Point> = Vec::new();
    for pair in points.windows(2) {
        let piece = match pair {
            [Some(a), Some(b)] => segment(*a, *b),
            _ => None,
        };
        match piece {
            Some((from, to)) => {
                if open.last() != Some(&from) {
                    if open.len() > 1 {
                        parts.push(std::mem::take(&mut open));
                    }
                    open = vec![from];
                }
                open.push(to);
            }
            None if open.len() > 1 => parts.push(std::mem::take(&mut open)),
            None => open.clear(),
        }
    }
    if open.len() > 1 {
        parts.push(open);
    }
    parts
}

/// Liang and Barsky's clipping of a segment.
fn segment(a: Point, b: Point) -> Option<(Point, Point)> {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (mut from, mut to) = (0.0f64, 1.0f64);
    for (step, room) in [(-dx, a.0), (dx, 1.0 - a.0), (-dy, a.1), (dy, 1.0 - a.1)] {
        if step == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if step < 0.0 {
            from = from.max(room / step);
        } else {
            to = to.min(room / step);
        }
    }
    if from > to || from.is_nan() || to.is_nan() {
        return None;
    }
    let at = |t: f64| match t {
        0.0 => a,
        1.0 => b,
        t => (a.0 + t * dx, a.1 + t * dy),
    };
    Some((at(from), at(to)))
}

/// The part of a polygon inside the unit square (Sutherland and Hodgman).
pub fn polygon(points: &[Point]) -> Vec<Point> {
    let mut points = points.to_vec();
    for side in 0..4 {
        let inside = |p: &Point| match side {
            0 => p.0,
            1 => 1.0 - p.0,
            2 => p.1,
            _ => 1.0 - p.1,
        };
        let mut kept = Vec::with_capacity(points.len() + 4);
        for (i, p) in points.iter().enumerate() {
            let before = &points[(i + points.len() - 1) % points.len()];
            let (d0, d1) = (inside(before), inside(p));
            if (d0 >= 0.0) != (d1 >= 0.0) {
                let t = d0 / (d0 - d1);
                kept.push((before.0 + t * (p.0 - before.0), before.1 + t * (p.1 - before.1)));
            }
            if d1 >= 0.0 {
                kept.push(*p);
            }
        }
        points = kept;
    }
    points
}

/// Whether a point lies in the unit square, its edges included.
pub fn contains((x, y): Point) -> bool {
    let range = -1e-9..=1.0 + 1e-9;
    range.contains(&x) && range.contains(&y)
}
