//! Blocks of ranks stay on one host, and are mapped as well as any blocks can be.

use hopmap_map::{
    AutoGoal, AutoParams, AutoStage, BOUND, BlockName, Blocks, ExactParams, ExactStage, LinearParams,
    LinearStage, Pin, RoundRobinStage,
};
use hopmap_model::{Context, CostModel, Mapping, Paths, Stage, SystemGraph, TaskGraph, Weight};
use hopmap_objective::{Objective, Quality};
use proptest::prelude::*;

use crate::common::{graph, grid, inputs, run, switches, tree};

fn listed(blocks: &[&[u32]]) -> Blocks {
    Blocks::Listed(blocks.iter().map(|block| block.to_vec()).collect())
}

/// Six hosts of two slots under two switches; three blocks of five ranks, in an order of their own.
const BLOCKS: [&[u32]; 3] = [&[4, 0], &[1, 3], &[2]];

/// The slot of every rank if the blocks are on these hosts.
fn expanded(hosts: &[u32]) -> Vec<u32> {
    let mut slots = vec![0; 5];
    for (block, host) in BLOCKS.iter().zip(hosts) {
        (2 * host..).zip(*block).for_each(|(slot, &rank)| slots[rank as usize] = slot);
    }
    slots
}

/// The minimum over all hosts of the blocks.
fn best(objective: &Objective, graph: &TaskGraph, system: &SystemGraph) -> f64 {
    let hosts = || 0..6u32;
    let all = hosts().flat_map(|a| hosts().flat_map(move |b| hosts().map(move |c| [a, b, c])));
    let distinct = all.filter(|[a, b, c]| a != b && b != c && a != c);
    let value = |hosts: [u32; 3]| {
        let paths = Paths::new(system);
        let slots = expanded(&hosts);
        let quality = Quality::new(graph, system, paths.as_ref(), &slots, Weight::Bytes).unwrap();
        objective.of_metrics(&quality.metrics()).unwrap()
    };
    distinct.map(value).fold(f64::INFINITY, f64::min)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_optimum_of_blocks_equals_that_of_all_their_hosts(
        edges in prop::collection::vec((0u32..5, 0u32..5, 1u64..1000), 0..20),
        objective in prop::sample::select(vec![
            Objective::F, Objective::HOP_BYTES, Objective::MAX_LINK_LOAD, Objective { max_link_load: 2.0, ..Objective::F },
        ]),
    ) {
        let (graph, system) = (graph(5, edges), switches(&[2, 3, 2]));
        let blocks = Some(listed(&BLOCKS));
        let params = AutoParams {
            objective: objective.into(), blocks: blocks.clone(), evaluations: Some(3000), weight: Weight::Bytes.into(),
            ..AutoParams::default()
        };
        let mapping = run::<AutoStage>(params, &graph, &system);
        let slots = mapping.slots();
        let hosts = BLOCKS.map(|block| slots[block[0] as usize] / 2);
        prop_assert_eq!(slots, expanded(&hosts));
        let (found, least) = (objective.of_metrics(&mapping.metrics).unwrap(), best(&objective, &graph, &system));
        prop_assert!((found - least).abs() <= 1e-9 * least, "{} and not {}", found, least);
        let last = mapping.convergence.iter().map(|point| point.cost).fold(f64::INFINITY, f64::min);
        prop_assert!(mapping.convergence.is_empty() || (last - found).abs() <= 1e-6 * found);
        let exact = ExactParams { blocks, weight: Weight::Bytes.into(), ..ExactParams::default() };
        let exact = run::<ExactStage>(exact, &graph, &system);
        let least = best(&Objective::F, &graph, &system);
        let [f, bound] = ["F", BOUND.name].map(|name| exact.metrics[name]);
        prop_assert!((f - least).abs() <= 1e-9 * least && (bound - least).abs() <= 1e-9 * least);
    }
}

fn linear(params: LinearParams, graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    run::<LinearStage>(params, graph, system)
}

#[test]
fn ranks_of_a_recorded_host_stay_together_whatever_hosts_are_left() {
    let (mut graph, system) = (grid(3, 2), switches(&[2, 5]));
    for (rank, process) in graph.processes.iter_mut().enumerate() {
        process.host = Some(["a", "b", "c"][rank % 3].to_owned());
    }
    let blocks = Some(Blocks::Named(BlockName::Host));
    // Two of five hosts are spare: one is forbidden, and the block of rank 4 is pinned.
    let params = LinearParams {
        blocks,
        forbidden: vec!["host1".to_owned()],
        pinned: vec![Pin { rank: 4, slot: None, host: Some("host4".to_owned()) }],
        ..LinearParams::default()
    };
    assert_eq!(linear(params, &graph, &system).slots(), [0, 8, 4, 1, 9, 5]);
}

#[test]
fn hosts_with_too_few_slots_for_a_block_stay_free() {
    let (graph, mut system) = (graph(4, [(0, 2, 8)]), tree(&[2, 4]));
    // The first host has one slot.
    system.slots.remove(0);
    let CostModel::Levels(levels) = &mut system.cost else { panic!("a tree has levels") };
    levels.groups.iter_mut().for_each(|groups| *groups = groups.split_off(1));
    let blocks = Some(listed(&[&[0, 1], &[3, 2]]));
    let mapping = linear(LinearParams { blocks, ..LinearParams::default() }, &graph, &system);
    assert_eq!(mapping.slots(), [1, 2, 4, 3]);
}

#[test]
fn what_blocks_cannot_honour_is_refused() {
    let (graph, system) = (graph(5, [(0, 2, 8)]), switches(&[2, 3, 2]));
    let message = |params: LinearParams, system: &SystemGraph| {
        let run = || LinearStage::run(params.clone(), inputs(&graph, system), &Context::detached());
        LinearStage::check(&params).and_then(|()| run().map(drop)).unwrap_err().to_string()
    };
    let refused = |blocks: Blocks, system: &SystemGraph| {
        message(LinearParams { blocks: Some(blocks), ..LinearParams::default() }, system)
    };
    let named = Blocks::Named(BlockName::Host);
    assert_eq!(refused(named, &system), "the host of rank 0 was not recorded");
    assert_eq!(refused(listed(&[&[0, 1], &[1]]), &system), "rank 1 is twice in `blocks`");
    assert_eq!(refused(listed(&[&[0, 1], &[2, 3]]), &system), "rank 4 is in no block");
    assert_eq!(
        refused(listed(&[&[0, 1], &[2, 7]]), &system),
        "`blocks` has rank 7, but the program has 5 ranks"
    );
    assert_eq!(
        refused(listed(&[&[0, 1, 2], &[3, 4]]), &system),
        "2 blocks of up to 3 ranks do not fit on the 0 hosts with enough slots"
    );
    let pin = Pin { rank: 1, slot: Some(4), host: None };
    let pinned = |pins: &[Pin], blocks| {
        let params = LinearParams { blocks: Some(blocks), pinned: pins.to_vec(), ..LinearParams::default() };
        message(params, &system)
    };
    let error = pinned(&[pin], listed(&[&[0, 1], &[2, 3], &[4]]));
    assert!(error.starts_with("rank 1 cannot be where it is pinned: it is number 1 of a block"), "{error}");
    let hosts =
        [(0, "host0"), (1, "host2")].map(|(rank, host)| Pin { rank, slot: None, host: Some(host.into()) });
    assert_eq!(
        pinned(&hosts, listed(&[&[0, 1], &[2, 3], &[4]])),
        "the block of rank 1 is pinned to hosts `host0` and `host2`"
    );
    // The first slots of two hosts are nearer to each other than to the second ones.
    let mut split = tree(&[2, 3]);
    let CostModel::Levels(levels) = &mut split.cost else { panic!("a tree has levels") };
    levels.groups[0] = vec![0, 1, 0, 2, 3, 3];
    let error = refused(listed(&[&[0, 1], &[2, 3], &[4]]), &split);
    assert_eq!(
        error,
        "the slots of host `host2` differ in their costs to other hosts, or from those of other hosts"
    );
    let blocks = Some(listed(&BLOCKS));
    let params = LinearParams { blocks: blocks.clone(), ..LinearParams::default() };
    let round_robin = RoundRobinStage::check(&params).unwrap_err().to_string();
    assert_eq!(round_robin, "map/round-robin deals the ranks of a block or group to different hosts");
    let auto = |objective: AutoGoal| {
        let params = AutoParams { objective, blocks: blocks.clone(), ..AutoParams::default() };
        AutoStage::check(&params).unwrap_err().to_string()
    };
    assert_eq!(auto(AutoGoal::Makespan), "the objective `makespan` exchanges single ranks");
    assert_eq!(
        auto(Objective::T.into()),
        "blocks are mapped as a whole, which hides the contribution of a rank to F"
    );
}

#[test]
fn blocks_are_a_name_or_lists() {
    let read = |text: &str| serde_json::from_str::<LinearParams>(text).map(|params| params.blocks);
    assert_eq!(read(r#"{"blocks": "host"}"#).unwrap(), Some(Blocks::Named(BlockName::Host)));
    assert_eq!(read(r#"{"blocks": [[4, 0], [1]]}"#).unwrap(), Some(listed(&[&[4, 0], &[1]])));
    assert_eq!(read("{}").unwrap(), None);
    let refused = read(r#"{"blocks": "socket"}"#).unwrap_err().to_string();
    assert!(refused.starts_with("`host`, or a list of blocks, each a list of ranks"), "{refused}");
}
