use std::collections::BTreeMap;

use hopmap_random::{Draw, Pcg64, SeedableRng};

use super::Shares;

/// The rates of flows, given by penalty and links, by water-filling from scratch.
fn expected(capacities: &[f64], flows: &[(f64, Vec<u32>)]) -> Vec<f64> {
    let mut rates = vec![None; flows.len()];
    while rates.contains(&None) {
        let level = |link: u32| {
            let on_link = || flows.iter().zip(&rates).filter(|(flow, _)| flow.1.contains(&link));
            let used: f64 = on_link().filter_map(|(_, rate)| *rate).sum();
            let open: f64 =
                on_link().filter(|(_, rate)| rate.is_none()).map(|(flow, _)| flow.0.recip()).sum();
            (open > 0.0).then(|| (capacities[link as usize] - used) / open)
        };
        let levels = (0..capacities.len() as u32).filter_map(|link| Some((level(link)?, link)));
        let (level, link) = levels.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        for (flow, rate) in flows.iter().zip(&mut rates) {
            if rate.is_none() && flow.1.contains(&link) {
                *rate = Some(level / flow.0);
            }
        }
    }
    rates.into_iter().flatten().collect()
}

fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected, "{found} instead of {expected}");
}

fn rates(capacities: &[f64], flows: &[(f64, &[u32])]) -> Vec<f64> {
    let mut shares = Shares::new(capacities.iter().copied());
    let flows: Vec<u32> =
        flows.iter().map(|(penalty, links)| shares.add(*penalty, links.iter().copied())).collect();
    shares.solve(0.0, &mut Vec::new());
    flows.into_iter().map(|flow| shares.rate(flow)).collect()
}

/// The systems of SimGrid's `maxmin_test.cpp` whose flows use a link once.
#[test]
fn systems_have_the_shares_that_simgrid_expects() {
    assert_eq!(rates(&[3.0], &[(1.0, &[0]), (2.0, &[0])]), [2.0, 1.0]);
    assert_eq!(rates(&[8.0], &[(1.0, &[0]), (2.0, &[0]), (2.0, &[0])]), [4.0, 2.0, 2.0]);
    assert_eq!(rates(&[10.0], &[(1.0, &[0])]), [10.0]);
    assert_eq!(rates(&[20.0, 60.0], &[(1.0, &[0, 1]), (1.0, &[0]), (1.0, &[1])]), [10.0, 10.0, 50.0]);
}

#[test]
fn a_flow_gets_what_slower_flows_leave() {
    let flows: [(f64, &[u32]); 3] = [(1.0, &[0, 1]), (1.0, &[1]), (1.0, &[0])];
    assert_eq!(rates(&[1.0, 10.0], &flows), [0.5, 9.5, 0.5]);
}

/// Casanova and Marchal, and `cm02-set-lat-bw` of SimGrid: two flows of 1000 bytes over a link of 1000 B/s; after
/// a second, the penalty of one grows from 20.537 to 40.537 or 41.074.
#[test]
fn a_new_penalty_changes_the_remaining_time_as_in_simgrid() {
    for (penalty, end) in [(20.0 + 20.537, 1.753_312), (2.0 * 20.537, 1.75)] {
        let mut shares = Shares::new([1000.0]);
        let flows = [20.537; 2].map(|penalty| shares.add(penalty, [0]));
        let mut changed = Vec::new();
        shares.solve(0.0, &mut changed);
        flows.into_iter().for_each(|flow| assert_close(shares.rate(flow), 500.0));
        shares.remove(flows[1]);
        shares.add(penalty, [0]);
        shares.solve(1.0, &mut changed);
        assert!((1.0 + 500.0 / shares.rate(flows[0]) - end).abs() < 1e-6);
    }
}

#[test]
fn the_time_at_capacity_ends_with_the_last_flow_that_fills_a_link() {
    let mut shares = Shares::new([1.0, 10.0]);
    let mut changed = Vec::new();
    let flow = shares.add(1.0, [0, 1]);
    shares.solve(1.0, &mut changed);
    assert_eq!(changed, [flow]);
    assert_eq!((shares.saturated_s(0, 3.0), shares.saturated_s(1, 3.0)), (2.0, 0.0));
    shares.remove(flow);
    shares.solve(4.0, &mut changed);
    assert_eq!((shares.saturated_s(0, 9.0), changed.len()), (3.0, 0));
}

/// Thousands of changes of random systems, several at a time: all rates equal those of a solution from scratch.
#[test]
fn changes_give_the_rates_of_a_solution_from_scratch() {
    let mut random = Pcg64::seed_from_u64(33);
    for case in 0..300 {
        let links = 1 + random.below(12);
        let spread = [1.0, 1e3][random.below(2)];
        let capacities: Vec<f64> = (0..links).map(|_| 1.0 + spread * random.unit()).collect();
        let mut shares = Shares::new(capacities.iter().copied());
        let mut flows: Vec<(u32, f64, Vec<u32>)> = Vec::new();
        let (mut changed, mut before) = (Vec::new(), BTreeMap::new());
        for _ in 0..40 {
            for _ in 0..random.below(6) {
                match random.below(3) {
                    0 if !flows.is_empty() => {
                        let (flow, ..) = flows.swap_remove(random.below(flows.len()));
                        shares.remove(flow);
                        if flows.iter().all(|(other, ..)| *other != flow) {
                            before.remove(&flow);
                        }
                    }
                    1 if !flows.is_empty() => {
                        let same = flows[random.below(flows.len())].clone();
                        shares.join(same.0);
                        flows.push(same);
                    }
                    _ => {
                        let all: Vec<u32> = (0..links as u32).collect();
                        let hops = 1 + random.below(4);
                        let route = random.choose(&all, hops);
                        let penalty = if case % 3 == 0 { 1.0 } else { 1e-6 + random.unit() };
                        flows.push((shares.add(penalty, route.iter().copied()), penalty, route));
                    }
                }
            }
            shares.solve(0.0, &mut changed);
            let system: Vec<_> = flows.iter().map(|(_, penalty, route)| (*penalty, route.clone())).collect();
            for ((flow, ..), expected) in flows.iter().zip(expected(&capacities, &system)) {
                let rate = shares.rate(*flow);
                assert_close(rate, expected);
                assert!(before.get(flow) == Some(&rate.to_bits()) || changed.contains(flow));
            }
            before = flows.iter().map(|(flow, ..)| (*flow, shares.rate(*flow).to_bits())).collect();
        }
    }
}

/// Whether every flow has a saturated link on which no flow has a higher level, and no link carries too much.
fn assert_fair(capacities: &[f64], flows: &[(u32, f64, Vec<u32>)], shares: &Shares) {
    let mut used = vec![0.0; capacities.len()];
    let mut highest = vec![0.0_f64; capacities.len()];
    for (flow, penalty, route) in flows {
        for &link in route {
            used[link as usize] += shares.rate(*flow);
            highest[link as usize] = highest[link as usize].max(shares.rate(*flow) * penalty);
        }
    }
    for (flow, penalty, route) in flows {
        let level = shares.rate(*flow) * penalty;
        let is_bottleneck = |link: &u32| {
            let link = *link as usize;
            used[link] >= capacities[link] * (1.0 - 1e-9) && level >= highest[link] * (1.0 - 1e-9)
        };
        assert!(route.iter().any(is_bottleneck), "flow {flow} of level {level} has no bottleneck");
    }
    assert!(used.iter().zip(capacities).all(|(used, capacity)| *used <= capacity * (1.0 + 1e-9)));
}

/// Systems as large as those of hundreds of ranks, with thousands of changes: rounding errors do not add up.
#[test]
fn large_systems_stay_fair_however_long_they_change() {
    let mut random = Pcg64::seed_from_u64(7);
    for spread in [0.0, 1e3] {
        let capacities: Vec<f64> = (0..80).map(|_| 1.0 + spread * random.unit()).collect();
        let mut shares = Shares::new(capacities.iter().copied());
        let mut flows: Vec<(u32, f64, Vec<u32>)> = Vec::new();
        let all: Vec<u32> = (0..80).collect();
        for step in 0..2000 {
            while flows.len() > 200 || (!flows.is_empty() && random.below(2) == 0) {
                let (flow, ..) = flows.swap_remove(random.below(flows.len()));
                shares.remove(flow);
            }
            for _ in 0..=random.below(3) {
                let hops = 1 + random.below(6);
                let route = random.choose(&all, hops);
                let penalty = if step % 2 == 0 { 1.0 } else { 1e-6 + 1e-3 * random.unit() };
                flows.push((shares.add(penalty, route.iter().copied()), penalty, route));
            }
            shares.solve(0.0, &mut Vec::new());
            if step % 20 == 0 {
                assert_fair(&capacities, &flows, &shares);
            }
        }
    }
}
