//! Expansions against hand-written ones, against an independent simulation of the blocks, and against
//! formulas.

use proptest::prelude::*;

use super::checker::{
    assert_all_gathered, assert_exchanged, assert_gathered, assert_gathered_in_ring, bytes, calls, messages,
    single, spread, uniform,
};
use super::*;

const ALL: [Operation; 17] = Operation::ALL;

fn by_hand(operation: Operation, processes: usize, root: u32, bytes: u64) -> Vec<(u32, u32, u64)> {
    single(&uniform(operation, processes, root, bytes))
}

fn rooted(operation: Operation, root: u32, sent: &[u64], received: &[u64]) -> Vec<(u32, u32, u64)> {
    single(&with_sizes(operation, root, Convention::Arguments, sent, received))
}

fn with_sizes(
    operation: Operation,
    root: u32,
    convention: Convention,
    sent: &[u64],
    received: &[u64],
) -> Vec<Edge> {
    calls(&Collective { operation, root: Some(root), convention, sent, received })
}

fn log2_up(processes: u64) -> u64 {
    u64::from(processes.next_power_of_two().ilog2())
}

#[test]
fn one_process_sends_nothing() {
    for operation in ALL {
        assert_eq!(uniform(operation, 1, 0, 1 << 20), []);
    }
}

#[test]
fn empty_operations_send_nothing_except_barriers() {
    for operation in ALL {
        let calls = uniform(operation, 9, 3, 0);
        assert_eq!(calls.is_empty(), operation != Operation::Barrier, "{operation:?}");
    }
}

#[test]
fn barriers_double_the_distance() {
    assert_eq!(by_hand(Operation::Barrier, 2, 0, 0), [(0, 1, 0), (1, 0, 0)]);
    let three = [(0, 1, 0), (1, 2, 0), (2, 0, 0), (0, 2, 0), (1, 0, 0), (2, 1, 0)];
    assert_eq!(by_hand(Operation::Barrier, 3, 0, 0), three);
}

#[test]
fn short_broadcasts_follow_a_binomial_tree() {
    assert_eq!(by_hand(Operation::Broadcast, 3, 0, 5), [(0, 1, 5), (0, 2, 5)]);
    assert_eq!(by_hand(Operation::Broadcast, 5, 3, 7), [(3, 4, 7), (3, 0, 7), (0, 1, 7), (3, 2, 7)]);
    let eight = [(0, 1), (0, 2), (2, 3), (0, 4), (4, 5), (4, 6), (6, 7)];
    assert_eq!(by_hand(Operation::Broadcast, 8, 0, 12_288), eight.map(|(from, to)| (from, to, 12_288)));
}

#[test]
fn medium_broadcasts_scatter_and_double() {
    // 12289 bytes in 8 pieces of 1537, the last one of 1530.
    let calls = by_hand(Operation::Broadcast, 8, 6, 12_289);
    let scatter =
        [(6, 7, 1537), (6, 0, 3074), (0, 1, 1537), (6, 2, 6141), (2, 3, 1537), (2, 4, 3067), (4, 5, 1530)];
    assert_eq!(calls[..7], scatter);
    assert_eq!(calls[7..11], [(6, 7, 1537), (7, 6, 1537), (0, 1, 1537), (1, 0, 1537)]);
    assert_eq!(calls[13..15], [(4, 5, 1537), (5, 4, 1530)]);
    assert_eq!(calls[15..17], [(6, 0, 3074), (7, 1, 3074)]);
    assert_eq!(calls[27..], [(2, 6, 6141), (3, 7, 6141), (4, 0, 6141), (5, 1, 6141)]);
}

#[test]
fn long_broadcasts_scatter_and_use_a_ring() {
    let calls = uniform(Operation::Broadcast, 8, 0, 524_296);
    assert_eq!(calls[7], Edge { source: 0, destination: 1, messages: 7, bytes: 7 * 65_537 });
    assert_eq!((calls.len(), messages(&calls)), (15, 7 + 56));
    let odd = uniform(Operation::Broadcast, 9, 0, 12_289);
    assert_eq!((odd.len(), messages(&odd)), (17, 8 + 72));
}

#[test]
fn gathers_and_scatters_forward_subtrees() {
    let gather = [(4, 0, 10), (3, 2, 10), (2, 0, 20), (1, 0, 10)];
    assert_eq!(by_hand(Operation::Gather, 5, 0, 10), gather);
    let scatter = [(1, 2, 10), (1, 3, 20), (3, 0, 10)];
    assert_eq!(by_hand(Operation::Scatter, 4, 1, 10), scatter);
}

#[test]
fn gatherv_and_scatterv_send_directly() {
    let gather = rooted(Operation::GatherV, 1, &[5, 6, 7, 0], &[18; 4]);
    assert_eq!(gather, [(2, 1, 7), (0, 1, 5)]);
    let scatter = rooted(Operation::ScatterV, 2, &[18; 3], &[5, 6, 7]);
    assert_eq!(scatter, [(2, 0, 5), (2, 1, 6)]);
}

#[test]
fn allgathers_use_recursive_doubling() {
    let four = [(0, 1), (1, 0), (2, 3), (3, 2)].map(|(from, to)| (from, to, 3));
    let calls = by_hand(Operation::AllGather, 4, 0, 3);
    assert_eq!(calls[..4], four);
    assert_eq!(calls[4..], [(0, 2), (1, 3), (2, 0), (3, 1)].map(|(from, to)| (from, to, 6)));
    let three = [(0, 2), (1, 0), (2, 1), (0, 1), (1, 2), (2, 0)].map(|(from, to)| (from, to, 3));
    assert_eq!(by_hand(Operation::AllGather, 3, 0, 3), three);
    let five = by_hand(Operation::AllGather, 5, 0, 3);
    assert_eq!((five[0], five[5], five[10]), ((0, 4, 3), (0, 3, 6), (0, 1, 3)));
}

#[test]
fn short_alltoalls_share_messages() {
    // Of the distances 1 … 8, four have bit 0 set, four bit 1, four bit 2 and one bit 3.
    let calls = by_hand(Operation::AllToAll, 9, 0, 256);
    let sizes: Vec<u64> = calls.iter().step_by(9).map(|call| call.2 / 256).collect();
    assert_eq!(sizes, [4, 4, 4, 1]);
    assert_eq!((calls[0], calls[9]), ((0, 1, 1024), (0, 2, 1024)));
    assert_eq!(by_hand(Operation::AllToAll, 8, 0, 257).len(), 56);
    let three = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)].map(|(from, to)| (from, to, 4));
    assert_eq!(by_hand(Operation::AllToAll, 3, 0, 4), three);
}

#[test]
fn alltoallv_shares_are_proportional() {
    // 0 sends 10 bytes: 2, 3 and 5 tenths go to 0, 1 and 2.
    let calls = rooted(Operation::AllToAllV, 0, &[10, 10, 20], &[8, 12, 20]);
    assert_eq!(calls, [(0, 1, 3), (0, 2, 5), (1, 0, 2), (1, 2, 5), (2, 0, 4), (2, 1, 6)]);
    let contradictory = rooted(Operation::AllToAllW, 0, &[4, 0], &[0, 0]);
    assert_eq!(contradictory, [(0, 1, 2)]);
}

#[test]
fn short_allreduces_exchange_unsplit_vectors() {
    let three = [(0, 1), (1, 2), (2, 1), (1, 0)].map(|(from, to)| (from, to, 8));
    assert_eq!(by_hand(Operation::AllReduce, 3, 0, 8), three);
    let four = [(0, 1), (1, 0), (2, 3), (3, 2), (0, 2), (1, 3), (2, 0), (3, 1)];
    assert_eq!(by_hand(Operation::AllReduce, 4, 0, 2048), four.map(|(from, to)| (from, to, 2048)));
}

#[test]
fn long_allreduces_halve_and_double() {
    // 2050 bytes in pieces of 513, 513, 512 and 512. 0 keeps the first, 1 the third, 2 the second, 3 the last.
    let calls = by_hand(Operation::AllReduce, 4, 0, 2050);
    assert_eq!(calls[..4], [(0, 1, 1024), (1, 0, 1026), (2, 3, 1024), (3, 2, 1026)]);
    assert_eq!(calls[4..8], [(0, 2, 513), (1, 3, 512), (2, 0, 513), (3, 1, 512)]);
    assert_eq!(calls[8..12], [(0, 2, 513), (1, 3, 512), (2, 0, 513), (3, 1, 512)]);
    assert_eq!(calls[12..], [(0, 1, 1026), (1, 0, 1024), (2, 3, 1026), (3, 2, 1024)]);
    let five = by_hand(Operation::AllReduce, 5, 0, 4000);
    assert_eq!(five[..3], [(0, 1, 4000), (1, 2, 2000), (2, 1, 2000)]);
    assert_eq!(five[17], (1, 0, 4000));
}

#[test]
fn reductions_of_less_than_an_element_each_are_not_split() {
    assert_eq!(by_hand(Operation::AllReduce, 512, 0, 4095).len(), 512 * 9);
    assert_eq!(by_hand(Operation::AllReduce, 512, 0, 4096).len(), 512 * 18);
}

#[test]
fn short_reductions_follow_a_binomial_tree() {
    let calls = by_hand(Operation::Reduce, 5, 2, 9);
    assert_eq!(calls, [(1, 2, 9), (0, 4, 9), (4, 2, 9), (3, 2, 9)]);
}

#[test]
fn long_reductions_halve_and_gather() {
    let four = by_hand(Operation::Reduce, 4, 2, 4000);
    assert_eq!(four[..4], [(0, 1, 2000), (1, 0, 2000), (2, 3, 2000), (3, 2, 2000)]);
    assert_eq!(four[8..], [(0, 2, 1000), (1, 3, 1000), (3, 2, 2000)]);
}

#[test]
fn a_root_that_drops_out_replaces_process_0() {
    // 1 gives its vector to 0; 0, 2, 3 and 4 reduce; 0 gives its piece to 1.
    let five = by_hand(Operation::Reduce, 5, 1, 4000);
    assert_eq!(five[..3], [(1, 0, 4000), (0, 2, 2000), (2, 0, 2000)]);
    assert_eq!(five[9..], [(0, 1, 1000), (3, 1, 1000), (4, 2, 1000), (2, 1, 2000)]);
}

#[test]
fn reduce_scatters_halve_from_far_to_near() {
    let four = by_hand(Operation::ReduceScatterBlock, 4, 0, 10);
    assert_eq!(four[..4], [(0, 2, 20), (1, 3, 20), (2, 0, 20), (3, 1, 20)]);
    assert_eq!(four[4..], [(0, 1, 10), (1, 0, 10), (2, 3, 10), (3, 2, 10)]);
    // 1 represents 0 and itself, 2 only itself.
    let sizes = [3, 6, 9];
    let three = single(&with_sizes(Operation::ReduceScatter, 0, Convention::Totals, &[6; 3], &sizes));
    assert_eq!(three, [(0, 1, 6), (1, 2, 3), (2, 1, 3), (1, 0, 1)]);
}

#[test]
fn long_reduce_scatters_exchange_every_block() {
    let calls = by_hand(Operation::ReduceScatterBlock, 4, 0, 131_072);
    assert_eq!((calls.len(), calls[3]), (12, (1, 0, 131_072)));
}

#[test]
fn scans_exchange_with_partners_that_exist() {
    let five = [(0, 1), (1, 0), (2, 3), (3, 2), (0, 2), (1, 3), (2, 0), (3, 1), (0, 4), (4, 0)];
    assert_eq!(by_hand(Operation::Scan, 5, 0, 6), five.map(|(from, to)| (from, to, 6)));
}

/// Records of Score-P and EZTrace of operations of 100 bytes, or 10, 11 and 12, by 3 processes with root 1.
#[test]
fn records_of_both_tools_give_the_same_messages() {
    use Operation::{
        AllGather, AllGatherV, AllReduce, AllToAll, Broadcast, Gather, GatherV, Reduce, Scatter, ScatterV,
    };
    type Sizes = ([u64; 3], [u64; 3]);
    let cases: [(Operation, Sizes, Sizes); 10] = [
        (Broadcast, ([0, 300, 0], [100; 3]), ([100; 3], [100; 3])),
        (Gather, ([100; 3], [0, 300, 0]), ([100; 3], [100; 3])),
        (GatherV, ([10, 11, 12], [0, 33, 0]), ([10, 11, 12], [33; 3])),
        (Scatter, ([0, 300, 0], [100; 3]), ([100; 3], [100; 3])),
        (ScatterV, ([0, 33, 0], [10, 11, 12]), ([33; 3], [10, 11, 12])),
        (Reduce, ([100; 3], [0, 300, 0]), ([100; 3], [100; 3])),
        (AllGather, ([300; 3], [300; 3]), ([100; 3], [100; 3])),
        (AllToAll, ([300; 3], [300; 3]), ([100; 3], [100; 3])),
        (AllReduce, ([300; 3], [300; 3]), ([100; 3], [100; 3])),
        (AllGatherV, ([30, 33, 36], [33; 3]), ([10, 11, 12], [33; 3])),
    ];
    for (operation, scorep, eztrace) in cases {
        let scorep = with_sizes(operation, 1, Convention::Totals, &scorep.0, &scorep.1);
        let eztrace = with_sizes(operation, 1, Convention::Arguments, &eztrace.0, &eztrace.1);
        assert_eq!(scorep, eztrace, "{operation:?}");
    }
}

#[test]
fn archives_name_the_tool_that_wrote_them() {
    assert_eq!(Convention::of_creator("Score-P 7.1"), Convention::Totals);
    assert_eq!(Convention::of_creator(""), Convention::Arguments);
}

#[test]
fn in_place_sizes_are_detected() {
    // Score-P counts two of three blocks; EZTrace counts no sent bytes.
    let three = [(0, 2), (1, 0), (2, 1), (0, 1), (1, 2), (2, 0)].map(|(from, to)| (from, to, 100));
    let totals = |operation, sent: &[u64], received: &[u64]| {
        single(&with_sizes(operation, 0, Convention::Totals, sent, received))
    };
    assert_eq!(totals(Operation::AllGather, &[200; 3], &[200; 3]), three);
    assert_eq!(rooted(Operation::AllGather, 0, &[0; 3], &[100; 3]), three);
    assert_eq!(rooted(Operation::AllGatherV, 0, &[0; 3], &[300; 3]), three);
    let unequal = totals(Operation::AllGatherV, &[20, 22, 24], &[23, 22, 21]);
    assert_eq!(unequal, rooted(Operation::AllGatherV, 0, &[10, 11, 12], &[33; 3]));
    assert_eq!(rooted(Operation::Gather, 1, &[7, 0], &[7, 7]), [(0, 1, 7)]);
    assert_eq!(
        totals(Operation::Scan, &[10, 5, 0], &[0, 5, 10]),
        totals(Operation::Scan, &[15, 10, 5], &[5, 10, 15])
    );
}

#[test]
fn the_alltoall_of_ft_and_the_alltoallv_of_is() {
    // EZTrace, 16 processes: FT.W sends 32768 bytes per pair; IS.W 262144 bytes, a sixteenth of it to
    // itself.
    let ft = uniform(Operation::AllToAll, 16, 0, 32_768);
    assert_eq!((messages(&ft), bytes(&ft)), (240, 240 * 32_768));
    let is = uniform(Operation::AllToAllV, 16, 0, 262_144);
    assert_eq!((messages(&is), bytes(&is)), (240, 240 * 16_384));
}

#[test]
fn inconsistent_calls_are_rejected() {
    let collective = Collective {
        operation: Operation::Broadcast,
        root: Some(0),
        convention: Convention::Totals,
        sent: &[1, 2],
        received: &[1, 2],
    };
    let refuse =
        |collective: &Collective| expand(collective, &Algorithms::default(), |_| unreachable!()).unwrap_err();
    let short = Collective { sent: &[1], ..collective };
    assert_eq!(refuse(&short), CollectiveError::Processes { sent: 1, received: 2 });
    assert_eq!(refuse(&Collective { root: None, ..collective }), CollectiveError::NoRoot);
    let error = refuse(&Collective { root: Some(2), ..collective });
    assert_eq!(error, CollectiveError::Root { root: 2, processes: 2 });
    assert_eq!(error.to_string(), "the root is rank 2, but there are only 2 processes");
    assert_eq!(
        expand(
            &Collective { operation: Operation::Barrier, root: None, ..collective },
            &Algorithms::default(),
            |_| ()
        ),
        Ok(())
    );
}

#[test]
fn many_processes_and_huge_sizes_do_not_overflow() {
    let sizes = vec![u64::MAX; 65_536];
    let quadratic = [Operation::AllToAll, Operation::AllToAllV, Operation::AllToAllW];
    let reduce_scatters = [Operation::ReduceScatter, Operation::ReduceScatterBlock];
    for operation in ALL {
        let few = quadratic.contains(&operation) || reduce_scatters.contains(&operation);
        let sizes = &sizes[..if few { 300 } else { sizes.len() }];
        for convention in [Convention::Arguments, Convention::Totals] {
            let collective =
                Collective { operation, root: Some(255), convention, sent: sizes, received: sizes };
            let mut largest = 0;
            expand(&collective, &Algorithms::default(), |edge| largest = largest.max(edge.bytes)).unwrap();
            assert_eq!(largest == 0, operation == Operation::Barrier);
        }
    }
}

/// A number of processes and one of them.
fn group(most: u32) -> impl Strategy<Value = (u32, u32)> {
    (1..=most).prop_flat_map(|processes| (Just(processes), 0..processes))
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![1..300u64, 1..100_000u64, 1..2_000_000u64]
}

proptest! {
    #[test]
    fn nobody_sends_to_itself_or_to_strangers(
        operation in prop::sample::select(ALL.to_vec()),
        (processes, root) in group(40),
        totals: bool,
        sizes in prop::collection::vec((any::<u64>(), any::<u64>()), 40),
        shift in 0..64u32,
    ) {
        let (sent, received): (Vec<u64>, Vec<u64>) =
            sizes[..processes as usize].iter().map(|&(sent, received)| (sent >> shift, received >> shift)).unzip();
        let convention = if totals { Convention::Totals } else { Convention::Arguments };
        let calls = with_sizes(operation, root, convention, &sent, &received);
        for edge in &calls {
            prop_assert!(edge.source != edge.destination, "{:?}", edge);
            prop_assert!(edge.source.max(edge.destination) < processes);
            prop_assert!(edge.messages > 0);
            prop_assert!((edge.bytes == 0) == (operation == Operation::Barrier));
        }
        prop_assert_eq!(calls, with_sizes(operation, root, convention, &sent, &received));
    }

    #[test]
    fn trees_and_rounds_have_as_many_messages_as_their_formulas((processes, root) in group(70), size in size()) {
        let of = |operation, size| messages(&uniform(operation, processes as usize, root, size));
        let p = u64::from(processes);
        let (power, rounds) = (1 << p.ilog2(), u64::from(p.ilog2()));
        let fold = 2 * (p - power);
        prop_assert_eq!(of(Operation::Barrier, 0), p * log2_up(p));
        for operation in [Operation::Gather, Operation::GatherV, Operation::Scatter, Operation::ScatterV] {
            prop_assert_eq!(of(operation, size), p - 1);
        }
        let short = size % 2048 + 1;
        prop_assert_eq!(of(Operation::Broadcast, short), p - 1);
        prop_assert_eq!(of(Operation::Reduce, short), p - 1);
        prop_assert_eq!(of(Operation::AllReduce, short), power * rounds + fold);
        prop_assert_eq!(of(Operation::AllReduce, short + 2048), 2 * power * rounds + fold);
        let replaced = u64::from(u64::from(root) < fold && root % 2 == 1);
        let pieces = power * rounds + power - 1 + fold / 2 + replaced;
        prop_assert_eq!(of(Operation::Reduce, short + 2048), pieces);
        let gathered = if p * size < if p == power { 524_288 } else { 81_920 } { log2_up(p) } else { p - 1 };
        prop_assert_eq!(of(Operation::AllGather, size), p * gathered);
        let together = p >= 8 && size <= 256;
        prop_assert_eq!(of(Operation::AllToAll, size), p * if together { log2_up(p) } else { p - 1 });
        let halved = p * size < 524_288;
        let scattered = if halved { power * rounds + fold } else { p * (p - 1) };
        prop_assert_eq!(of(Operation::ReduceScatterBlock, size), scattered);
    }

    #[test]
    fn data_reach_everybody_or_the_root((processes, root) in group(60), size in 1..2048u64) {
        let own = || (0..processes).map(|rank| 1 << rank).collect();
        let all = (1 << processes) - 1;
        let of = |operation| uniform(operation, processes as usize, root, size);

        let mut origin = vec![0; processes as usize];
        origin[root as usize] = 1;
        prop_assert!(spread(&of(Operation::Broadcast), origin).iter().all(|&held| held == 1));
        prop_assert_eq!(spread(&of(Operation::Reduce), own())[root as usize], all);
        prop_assert!(spread(&of(Operation::Barrier), own()).iter().all(|&held| held == all));
        prop_assert!(spread(&of(Operation::AllReduce), own()).iter().all(|&held| held == all));
        for (rank, held) in spread(&of(Operation::Scan), own()).into_iter().enumerate() {
            prop_assert_eq!(held & ((2 << rank) - 1), (2 << rank) - 1, "every process has all previous vectors");
        }

        assert_gathered(&of(Operation::Gather), processes, root, size);
        assert_gathered(&of(Operation::GatherV), processes, root, size);
        for operation in [Operation::Scatter, Operation::ScatterV] {
            // A scatter backwards is a gather.
            let backwards = of(operation).into_iter().rev();
            let turned =
                backwards.map(|edge| Edge { source: edge.destination, destination: edge.source, ..edge });
            assert_gathered(&turned.collect::<Vec<_>>(), processes, root, size);
        }
    }

    #[test]
    fn allgathers_bring_every_block_to_every_process_once(processes in 1..16u32, unit in 1..3u64) {
        let blocks: Vec<u64> = (0..processes).map(|rank| unit << rank).collect();
        let all = vec![blocks.iter().sum(); processes as usize];
        let calls = with_sizes(Operation::AllGatherV, 0, Convention::Arguments, &blocks, &all);
        assert_all_gathered(&calls, processes, unit);
    }

    #[test]
    fn rings_bring_every_block_to_every_process_once(processes in 2..16u32) {
        let unit = 524_288;
        let blocks: Vec<u64> = (0..processes).map(|rank| unit << rank).collect();
        let all = vec![blocks.iter().sum(); processes as usize];
        let calls = with_sizes(Operation::AllGatherV, 0, Convention::Arguments, &blocks, &all);
        assert_gathered_in_ring(&calls, processes, unit);
    }

    #[test]
    fn alltoalls_bring_every_block_to_its_destination(processes in 1..30u32, block in 200..300u64) {
        let calls = uniform(Operation::AllToAll, processes as usize, 0, block);
        assert_exchanged(&calls, processes, block);
    }

    #[test]
    fn broadcasts_in_pieces_bring_all_bytes_to_everybody((processes, root) in group(40), extra in 1..1_000_000u64) {
        prop_assume!(processes >= 8);
        let size = 12_288 + extra;
        let mut got = vec![0; processes as usize];
        let calls = uniform(Operation::Broadcast, processes as usize, root, size);
        let (scatter, gather) = calls.split_at(processes as usize - 1);
        for edge in gather {
            got[edge.destination as usize] += edge.bytes;
        }
        for (rank, got) in (0..).zip(got) {
            let place = u64::from((rank + processes - root) % processes);
            let piece = size.div_ceil(u64::from(processes));
            let own = size.min((place + 1) * piece) - size.min(place * piece);
            prop_assert_eq!(got + own, size);
            let scattered = |end: fn(&Edge) -> u32| {
                scatter.iter().filter(|edge| end(edge) == rank).map(|edge| edge.bytes).sum::<u64>()
            };
            let start = if rank == root { size } else { scattered(|edge| edge.destination) };
            prop_assert_eq!(start - scattered(|edge| edge.source), own);
        }
    }

    #[test]
    fn reductions_in_pieces_move_as_many_bytes_as_their_formulas((processes, root) in group(60), part in 64..1000u64) {
        let p = u64::from(processes);
        let (power, rounds) = (1 << p.ilog2(), u64::from(p.ilog2()));
        let (excess, size) = (p - power, part * power);
        prop_assume!(size > 2048);
        let of = |operation, size| bytes(&uniform(operation, processes as usize, root, size));
        prop_assert_eq!(of(Operation::AllReduce, size), 2 * (power - 1) * size + 2 * excess * size);
        let replaced = u64::from(u64::from(root) < 2 * excess && root % 2 == 1);
        let reduced = (power - 1) * size + rounds * size / 2 + excess * size + replaced * part;
        prop_assert_eq!(of(Operation::Reduce, size), reduced);
        prop_assume!(part * p < 524_288);
        let halved = (power - 1) * part * p + excess * (part * p + part);
        prop_assert_eq!(of(Operation::ReduceScatterBlock, part), halved);
    }

    #[test]
    fn shares_add_up_to_what_was_sent(
        sizes in prop::collection::vec((0..u64::MAX >> 7, 0..u64::MAX >> 7), 2..30),
    ) {
        let (sent, received): (Vec<u64>, Vec<u64>) = sizes.into_iter().unzip();
        let calls = with_sizes(Operation::AllToAllV, 0, Convention::Totals, &sent, &received);
        let total: u128 = received.iter().copied().map(u128::from).sum();
        for (rank, &sent) in (0..).zip(&sent) {
            let others: u64 = calls.iter().filter(|edge| edge.source == rank).map(|edge| edge.bytes).sum();
            let own = u128::from(sent) * u128::from(received[rank as usize]) / total.max(1);
            prop_assert!((u128::from(sent - others)).abs_diff(own) <= 1 || total >= 1 << 64 || total == 0);
            prop_assert!(others <= sent);
        }
    }
}

#[test]
fn every_process_has_its_own_block() {
    let of = |operation, sent: [u64; 3], received: [u64; 3]| {
        let convention = Convention::Arguments;
        let collective =
            Collective { operation, root: Some(1), convention, sent: &sent, received: &received };
        blocks(&collective).unwrap()
    };
    assert_eq!(of(Operation::Broadcast, [0, 8, 0], [8, 0, 8]), [8, 8, 8]);
    assert_eq!(of(Operation::AllReduce, [8; 3], [8; 3]), [8, 8, 8]);
    assert_eq!(of(Operation::Barrier, [0; 3], [0; 3]), [0, 0, 0]);
    assert_eq!(of(Operation::GatherV, [1, 2, 3], [0, 6, 0]), [1, 2, 3]);
    assert_eq!(of(Operation::ScatterV, [0, 6, 0], [1, 2, 3]), [1, 2, 3]);
    assert_eq!(of(Operation::AllGatherV, [1, 2, 3], [6; 3]), [1, 2, 3]);
    assert_eq!(of(Operation::AllToAllV, [3, 7, 0], [1, 2, 3]), [1, 3, 0]);
}
