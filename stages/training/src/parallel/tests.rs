use std::collections::BTreeSet;

use super::messages::Pattern;
use super::*;
use hopmap_collectives::Operation;
use proptest::prelude::*;

fn sizes(tp: u32, cp: u32, ep: u32, dp: u32, pp: u32) -> GroupSizes {
    GroupSizes { tp, cp, ep, dp, pp, etp: None }
}

fn params(sizes: GroupSizes, bytes: GroupBytes) -> ParallelParams {
    ParallelParams {
        sizes,
        order: "tp-cp-ep-dp-pp".to_owned(),
        gpus_per_host: 8,
        bytes: Some(bytes),
        model: None,
        algorithms: GroupAlgorithms::default(),
    }
}

fn message(params: &ParallelParams) -> String {
    training_step(params).unwrap_err().to_string()
}

/// Groups by enumeration: the coordinates of all ranks in nested loops, the slowest dimension outside, and the ranks
/// with equal coordinates in all but some dimensions.
fn enumerated(order: &[(&str, u32)], varying: &[&str]) -> BTreeSet<Vec<u32>> {
    let mut all: Vec<BTreeMap<&str, u32>> = vec![BTreeMap::new()];
    for &(name, size) in order.iter().rev() {
        let mut next = Vec::new();
        for coordinates in &all {
            for value in 0..size {
                let mut coordinates = coordinates.clone();
                coordinates.insert(name, value);
                next.push(coordinates);
            }
        }
        all = next;
    }
    let mut groups: BTreeMap<BTreeMap<&str, u32>, Vec<u32>> = BTreeMap::new();
    for (rank, mut coordinates) in (0..).zip(all) {
        coordinates.retain(|name, _| !varying.contains(name));
        groups.entry(coordinates).or_default().push(rank);
    }
    groups.into_values().collect()
}

proptest! {
    #[test]
    fn groups_are_those_of_an_enumeration(
        tp in 1u32..4, cp in 1u32..3, ep in 1u32..5, edp in 1u32..4, pp in 1u32..4, etp in 1u32..4,
        order in Just(["tp", "cp", "ep", "dp", "pp"]).prop_shuffle(),
    ) {
        // Replicas of the dense layers, if the ranks of the experts divide so.
        let ranks = etp * ep * edp * pp;
        let dp = ranks / (tp * cp * pp);
        prop_assume!(dp * tp * cp * pp == ranks);
        let given = GroupSizes { tp, cp, ep, dp, pp, etp: Some(etp) };
        let of = |values: [(&'static str, u32); 5]| {
            order.map(|name| *values.iter().find(|value| value.0 == name).unwrap())
        };
        let dense = of([("tp", tp), ("cp", cp), ("ep", 1), ("dp", dp), ("pp", pp)]);
        let expert = of([("tp", etp), ("cp", 1), ("ep", ep), ("dp", edp), ("pp", pp)]);
        let same_pipelines = enumerated(&dense, &["pp"]) == enumerated(&expert, &["pp"]);
        match RankOrder::new(&given, &order.join("-")) {
            Err(error) => {
                prop_assert!(!same_pipelines && error.to_string().contains("different pipelines"), "{}", error);
            }
            Ok(found) => {
                prop_assert!(same_pipelines || ep == 1);
                let groups = |kind: &str| found.groups(kind).into_iter().collect::<BTreeSet<_>>();
                prop_assert_eq!(groups("tp"), enumerated(&dense, &["tp"]));
                prop_assert_eq!(groups("cp"), enumerated(&dense, &["cp"]));
                prop_assert_eq!(groups("dp"), enumerated(&dense, &["cp", "dp"]));
                prop_assert_eq!(groups("pp"), enumerated(&dense, &["pp"]));
                prop_assert_eq!(groups("ep"), enumerated(&expert, &["ep"]));
                prop_assert_eq!(groups("edp"), enumerated(&expert, &["dp"]));
            }
        }
    }

    /// NCCL's trees: half of the vector goes up and down each.
    #[test]
    fn double_trees_move_two_vectors_per_member(members in 2u32..80) {
        let rounds = Pattern::Collective(Operation::AllReduce, GroupAlgorithm::Tree).rounds(members, 1001).unwrap();
        let mut sent = vec![0; members as usize];
        let mut received = vec![0; members as usize];
        for transfer in &rounds[0] {
            sent[transfer.source as usize] += transfer.bytes;
            received[transfer.destination as usize] += transfer.bytes;
        }
        prop_assert_eq!(sent.iter().sum::<u64>(), 2 * u64::from(members - 1) * 1001);
        prop_assert_eq!(&sent, &received);
        // At most two children in one tree and a parent in both: 3 + 1 halves.
        prop_assert!(sent.iter().all(|bytes| *bytes <= 4 * 501), "{sent:?}");
    }
}

#[test]
fn the_example_of_megatron_has_its_groups() {
    // The documentation of `initialize_model_parallel`: 16 GPUs, tp 2, pp 4, so dp 2.
    let order = RankOrder::new(&sizes(2, 1, 1, 2, 4), "tp-cp-ep-dp-pp").unwrap();
    assert_eq!(order.groups("dp")[..4], [vec![0, 2], vec![1, 3], vec![4, 6], vec![5, 7]]);
    assert_eq!(order.groups("tp")[..3], [vec![0, 1], vec![2, 3], vec![4, 5]]);
    assert_eq!(order.groups("pp"), [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]);
    // That of context parallelism: tp 4, cp 2 on 8 GPUs.
    let order = RankOrder::new(&sizes(4, 2, 1, 1, 1), "tp-cp-ep-dp-pp").unwrap();
    assert_eq!(order.groups("cp"), [[0, 4], [1, 5], [2, 6], [3, 7]]);
    // `tp-pp-dp` of the documentation of the groups: size 2-2-2.
    let order = RankOrder::new(&sizes(2, 1, 1, 2, 2), "tp-pp-dp").unwrap();
    assert_eq!(order.groups("dp"), [[0, 4], [1, 5], [2, 6], [3, 7]]);
}

#[test]
fn every_operation_has_the_bytes_of_its_formula() {
    let edges = |kind: GroupBytes, of: GroupSizes| {
        let step = training_step(&params(of, kind)).unwrap();
        step.graph.check().unwrap();
        let [phase] = &step.graph.phases[..] else { panic!("{} phases", step.graph.phases.len()) };
        assert_eq!(phase.edges, step.graph.edges);
        let totals = step.program.totals();
        assert_eq!(totals.bytes, step.graph.bytes());
        step.graph
            .edges
            .into_iter()
            .map(|edge| (edge.source, edge.destination, edge.messages, edge.bytes))
            .collect::<Vec<_>>()
    };
    // A ring all-reduce moves 2 (n - 1) / n of the vector over each link: 2 * 3 * 1000.
    let ring = edges(GroupBytes { dp: 4000, ..GroupBytes::default() }, sizes(1, 1, 1, 4, 1));
    assert_eq!(ring, [(0, 1, 6, 6000), (1, 2, 6, 6000), (2, 3, 6, 6000), (3, 0, 6, 6000)]);
    let gather = edges(GroupBytes { cp: 4000, ..GroupBytes::default() }, sizes(1, 4, 1, 1, 1));
    assert_eq!(gather[0], (0, 1, 3, 3000));
    let experts = edges(GroupBytes { ep: 4000, ..GroupBytes::default() }, sizes(1, 1, 4, 4, 1));
    assert_eq!(experts.len(), 12);
    assert!(experts.iter().all(|edge| (edge.2, edge.3) == (1, 1000)), "{experts:?}");
    let stages = edges(GroupBytes { pp: 4000, ..GroupBytes::default() }, sizes(1, 1, 1, 1, 3));
    assert_eq!(stages, [(0, 1, 1, 4000), (1, 0, 1, 4000), (1, 2, 1, 4000), (2, 1, 1, 4000)]);
}

#[test]
fn the_bytes_of_a_model_are_those_of_the_papers() {
    let model = ModelSize {
        layers: 96,
        hidden: 12_288,
        sequence: 2048,
        micro_batches: 12,
        micro_batch_size: 1,
        kv_hidden: None,
        feed_forward: None,
        experts: 0,
        top_k: 1,
        interleaving: 1,
        precision_bytes: 2,
        gradient_bytes: 2,
        zero: 0,
        sequence_parallel: true,
    };
    let given = |model| ParallelParams {
        bytes: None,
        model: Some(model),
        ..params(sizes(8, 1, 1, 4, 8), GroupBytes::default())
    };
    let step = training_step(&given(model)).unwrap();
    let phase = |step: &TrainingStep, name: &str| {
        step.graph.phases.iter().find(|phase| phase.name.as_deref() == Some(name)).unwrap().clone()
    };
    let sent = |phase: &Phase, rank| -> u64 {
        phase.edges.iter().filter(|edge| edge.source == rank).map(|edge| edge.bytes).sum()
    };
    // Narayanan et al. 2021, section 3.2: 8 b s h (t - 1) / t elements per layer and micro-batch.
    let tensor = 8 * 2048 * 12_288 * 7 / 8 * 2 * (96 / 8) * 12;
    assert_eq!(sent(&phase(&step, "tp"), 0), tensor);
    // Section 4.1: b s h / t elements to the next stage per micro-batch; the last stage sends only backward.
    assert_eq!(sent(&phase(&step, "pp"), 255), 2048 * 12_288 / 8 * 2 * 12);
    // Rajbhandari et al. 2020, section 7: 2 (n - 1) / n of the gradients, of 12 h² parameters per layer.
    let parameters = 12 * 12_288 * 12_288 * (96 / 8) / 8;
    assert_eq!(sent(&phase(&step, "dp"), 0), 2 * 3 * parameters * 2 / 4);
    let zero = training_step(&given(ModelSize { zero: 1, ..model })).unwrap();
    assert_eq!(sent(&phase(&zero, "dp"), 0), 2 * 3 * parameters * 2 / 4);
    let fsdp = training_step(&given(ModelSize { zero: 3, micro_batches: 1, ..model })).unwrap();
    assert_eq!(sent(&phase(&fsdp, "dp"), 0), 3 * 3 * parameters * 2 / 4);
    // 4 all-to-alls of the tokens of a rank to two experts each, of which 3 of 4 are elsewhere.
    let experts = ModelSize { experts: 8, top_k: 2, ..model };
    let mixture = ParallelParams { sizes: sizes(8, 1, 4, 4, 8), ..given(experts) };
    let step = training_step(&mixture).unwrap();
    assert_eq!(sent(&phase(&step, "ep"), 0), 4 * 2 * (2048 / 8) * 12_288 * 2 * 3 / 4 * (96 / 8) * 12);
    // One replica of every expert: nothing to reduce.
    assert!(step.graph.phases.iter().all(|phase| phase.name.as_deref() != Some("edp")));
}

#[test]
fn ranks_of_a_host_follow_each_other() {
    let given = params(sizes(4, 1, 1, 4, 1), GroupBytes { tp: 4000, ..GroupBytes::default() });
    let step = training_step(&given).unwrap();
    let hosts: Vec<_> = step.graph.processes.iter().map(|process| process.host.clone().unwrap()).collect();
    assert_eq!((hosts[7].as_str(), hosts[8].as_str()), ("node0", "node1"));
}

#[test]
fn what_is_no_training_job_is_one_message() {
    let bytes = GroupBytes { dp: 4000, ..GroupBytes::default() };
    let wrong = |given| message(&params(given, bytes));
    assert_eq!(wrong(sizes(8, 1, 1, 0, 1)), "the size of `dp` is 0");
    assert_eq!(wrong(sizes(8, 1, 3, 4, 1)), "32 ranks are not divisible by etp 8 × ep 3 × pp 1 = 24");
    assert_eq!(
        wrong(sizes(u32::MAX, u32::MAX, 1, u32::MAX, 1)),
        "tp 4294967295 × cp 4294967295 × dp 4294967295 × pp 1 are more than 1048576 ranks"
    );
    assert_eq!(
        wrong(sizes(8, 1, u32::MAX, 4, 1)),
        "32 ranks are not divisible by etp 8 × ep 4294967295 × pp 1 = 34359738360"
    );
    assert_eq!(wrong(sizes(4, 1, 1, 3, 1)), "12 ranks do not fill hosts of 8 GPUs");
    let ordered =
        |order: &str| message(&ParallelParams { order: order.into(), ..params(sizes(2, 1, 1, 4, 1), bytes) });
    assert_eq!(ordered("tp-pp"), "order `tp-pp` lacks `dp`, whose size is 4");
    assert_eq!(ordered("tp-dp-tp"), "order `tp-dp-tp` has `tp` twice");
    assert_eq!(ordered("tp-dq"), "`dq` in order `tp-dq` is none of tp, cp, ep, dp and pp");
    let neither = ParallelParams { bytes: None, ..params(sizes(2, 1, 1, 4, 1), bytes) };
    assert_eq!(message(&neither), "the bytes of groups are given by either `bytes` or `model`");
    let huge = params(sizes(1, 1, 1, 8, 1), GroupBytes { dp: u64::MAX, ..GroupBytes::default() });
    assert_eq!(message(&huge), "the bytes of a step exceed 64 bits");
    let small = params(sizes(1, 1, 1, 8, 1), GroupBytes { dp: 8, ..GroupBytes::default() });
    assert!(message(&small).contains("8 bytes on 8 processes"), "{}", message(&small));
    let negative = serde_json::from_str::<ParallelParams>(r#"{"sizes": {"tp": -8}}"#).unwrap_err();
    assert!(negative.to_string().contains("`-8`"), "{negative}");
}
