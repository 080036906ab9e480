//! Links that can wait for each other in a circle.
//!
//! A packet holds a link while it waits for the next one of its route. The channel dependency graph has the links as nodes and an
//! edge from a link to each that some route takes right after it; if it has a cycle, all its links may wait for ever (Dally and
//! Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", 1987).

use std::collections::BTreeSet;

/// Links each of which can wait for the next, and the last for the first; the same ones whatever the order of the routes. Empty if there
/// are none.
#[must_use]
pub fn cycle<'a>(links: usize, routes: impl IntoIterator<Item = &'a [u32]>) -> Vec<u32> {
    let mut waits: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); links];
    for route in routes {
        for pair in route.windows(2) {
            waits[pair[0] as usize].insert(pair[1]);
        }
    }
    // Depth first; a link that is met again on the way here closes a cycle.
    let mut state = vec![State::New; links];
    for first in 0..links as u32 {
        if state[first as usize] != State::New {
            continue;
        }
        let mut way = vec![(first, waits[first as usize].iter())];
        state[first as usize] = State::OnTheWay;
        while let Some((link, next)) = way.last_mut() {
            let link = *link;
            match next.next() {
                None => {
                    state[link as usize] = State::Done;
                    way.pop();
                }
                Some(&after) => match state[after as usize] {
                    State::Done => {}
                    State::New => {
                        state[after as usize] = State::OnTheWay;
                        way.push((after, waits[after as usize].iter()));
                    }
                    State::OnTheWay => {
                        let begin = way.iter().position(|(link, _)| *link == after).unwrap_or_default();
                        return way[begin..].iter().map(|(link, _)| *link).collect();
                    }
                },
            }
        }
    }
    Vec::new()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    OnTheWay,
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_routes_waits_for_itself() {
        let ring: Vec<Vec<u32>> = (0..5).map(|link| vec![link, (link + 1) % 5]).collect();
        assert_eq!(cycle(5, ring.iter().map(Vec::as_slice)), [0, 1, 2, 3, 4]);
        assert!(cycle(5, ring[..4].iter().map(Vec::as_slice)).is_empty());
        assert!(cycle(0, []).is_empty());
    }

    #[test]
    fn the_cycle_leaves_out_what_leads_to_it() {
        let routes: [&[u32]; 3] = [&[0, 1, 2], &[2, 3], &[3, 1]];
        assert_eq!(cycle(4, routes), [1, 2, 3]);
    }
}
