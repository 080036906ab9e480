//! Levels and divisions of known machines.

use super::super::tests::machines;
use super::Machine;
use crate::network::Rate;

fn levels(machine: &Machine) -> Vec<(usize, usize, u32)> {
    let level = |level: &super::Level| (level.ball, level.group, (level.latency_s * 1e6).round() as u32);
    machine.levels.iter().map(level).collect()
}

fn divisions(machine: &Machine) -> Vec<(usize, usize, f64, f64)> {
    machine.divisions.iter().map(|of| (of.level, of.slots, of.total, of.most_out)).collect()
}

#[test]
fn a_tree_is_divided_by_its_switches() {
    let system = machines::tree(&[2, 2, 2], 2, (1e-5, 100.0));
    let machine = Machine::new(&system, Rate::MEMORY, None);
    assert_eq!(levels(&machine), [(1, 1, 1), (2, 2, 20), (4, 4, 40), (8, 8, 60)]);
    assert_eq!(divisions(&machine), [(1, 2, 800.0, 100.0), (2, 4, 400.0, 100.0), (3, 8, 200.0, 100.0)]);
    assert_eq!(machine.inner_links, 12);
    assert!((machine.levels[3].inner_seconds_per_byte - 0.04).abs() < 1e-12);
}

#[test]
fn a_torus_has_balls_but_only_hosts_are_groups() {
    let machine = Machine::new(&machines::torus((4, 4), 1, (1e-5, 100.0)), Rate::MEMORY, None);
    assert_eq!(levels(&machine), [(1, 1, 30), (5, 16, 40), (11, 16, 50), (15, 16, 60)]);
    assert_eq!(divisions(&machine), [(0, 1, 1600.0, 100.0)]);
    assert_eq!(machine.inner_links, 64);
}

#[test]
fn links_of_a_group_are_those_that_leave_the_switches_of_its_routes() {
    let machine = Machine::new(&machines::fat_tree(2, 3, 2, 1, (1e-5, 100.0)), Rate::MEMORY, None);
    assert_eq!(levels(&machine), [(1, 1, 20), (3, 3, 40)]);
    assert_eq!(divisions(&machine), [(0, 1, 600.0, 100.0), (1, 3, 400.0, 200.0)]);
}

#[test]
fn hosts_that_forward_are_no_groups_of_several() {
    let machine = Machine::new(&machines::ring_of_hosts(5, 2, (1e-5, 100.0)), Rate::MEMORY, None);
    assert_eq!(levels(&machine), [(1, 1, 1), (2, 2, 10), (6, 10, 20)]);
    assert_eq!(divisions(&machine), [(1, 2, 1000.0, 200.0)]);
}

#[test]
fn slow_memory_is_no_reason_to_pay_more_than_the_network_asks() {
    let memory = Rate { latency_s: 1.0, bandwidth_bytes_per_s: 1.0 };
    let machine = Machine::new(&machines::tree(&[2], 2, (1e-5, 100.0)), memory, None);
    assert_eq!(levels(&machine), [(1, 1, 20), (2, 2, 20)]);
    assert!((machine.levels[0].seconds_per_byte - 0.01).abs() < 1e-12);
}

#[test]
fn rates_between_slots_are_levels_without_links() {
    let rate = |latency_s| Rate { latency_s, bandwidth_bytes_per_s: 10.0 };
    let (system, options) = super::super::tests::pairs(4, [1e-6, 1e-5, 1e-4].map(rate).to_vec());
    let machine = Machine::new(&system, options.memory, options.pairs.as_ref());
    assert_eq!(levels(&machine), [(1, 1, 1), (2, 2, 10), (4, 4, 100)]);
    assert!(divisions(&machine).iter().all(|of| of.2.is_infinite()), "{machine:?}");
}
