//! Pareto fronts.

/// Which points no other one beats: one that is as good in both and better in one.
pub(crate) fn front(points: &[(f64, f64)]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| {
        points[a].0.total_cmp(&points[b].0).then_with(|| points[a].1.total_cmp(&points[b].1))
    });
    let mut is_on_front = vec![false; points.len()];
    let mut best: Option<(f64, f64)> = None;
    for index in order {
        let point = points[index];
        let is_beaten = best.is_some_and(|best| best.1 <= point.1 && best != point);
        if !is_beaten && point.0.is_finite() && point.1.is_finite() {
            is_on_front[index] = true;
            best = Some(point);
        }
    }
    is_on_front
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_front_is_what_nothing_beats(points in prop::collection::vec((0_u8..20, 0_u8..20), 0..40)) {
            let points: Vec<(f64, f64)> = points.into_iter().map(|(x, y)| (f64::from(x), f64::from(y))).collect();
            let beats = |a: (f64, f64), b: (f64, f64)| a.0 <= b.0 && a.1 <= b.1 && a != b;
            let expected: Vec<bool> =
                points.iter().map(|&point| !points.iter().any(|&other| beats(other, point))).collect();
            prop_assert_eq!(front(&points), expected);
        }
    }
}
