//! Intervals of time: begin and end.

/// Sorted and disjoint intervals.
pub(crate) fn merged(mut spans: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    spans.dedup_by(|next, kept| {
        let overlaps = next.0 <= kept.1;
        if overlaps {
            kept.1 = kept.1.max(next.1);
        }
        overlaps
    });
    spans
}

/// What sorted and disjoint intervals have outside of others.
pub(crate) fn without(spans: Vec<(f64, f64)>, others: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut rest = Vec::new();
    let mut next = 0;
    for (mut begin, end) in spans {
        while next < others.len() && others[next].1 <= begin {
            next += 1;
        }
        let mut place = next;
        while place < others.len() && others[place].0 < end {
            if others[place].0 > begin {
                rest.push((begin, others[place].0));
            }
            begin = begin.max(others[place].1);
            place += 1;
        }
        if begin < end {
            rest.push((begin, end));
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_merged_and_cut() {
        let spans = merged(vec![(4.0, 6.0), (0.0, 1.0), (5.0, 9.0), (1.0, 2.0)]);
        assert_eq!(spans, [(0.0, 2.0), (4.0, 9.0)]);
        let rest = without(spans, &[(1.0, 5.0), (6.0, 7.0), (8.0, 20.0)]);
        assert_eq!(rest, [(0.0, 1.0), (5.0, 6.0), (7.0, 8.0)]);
        assert_eq!(without(vec![(0.0, 1.0), (2.0, 3.0)], &[(0.5, 2.5)]), [(0.0, 0.5), (2.5, 3.0)]);
    }
}
