//! Programs of the tests: the patterns of parallel applications.

use hopmap_model::{Envelope, Program, ProgramBuilder};

fn envelope(peer: u32) -> Envelope {
    Envelope { peer, tag: 0, communicator: 0 }
}

/// Each rank receives from and sends to its partners, and waits for all.
pub(super) fn exchange(builder: &mut ProgramBuilder, messages: &[(u32, u32)], bytes: u64) {
    for rank in 0..builder.ranks() {
        messages.iter().filter(|message| message.1 == rank).for_each(|message| {
            builder.irecv(rank, envelope(message.0), bytes);
        });
        messages.iter().filter(|message| message.0 == rank).for_each(|message| {
            builder.isend(rank, envelope(message.1), bytes);
        });
        builder.waitall(rank);
    }
}

/// A message between ranks that do nothing else meanwhile.
pub(super) fn message(builder: &mut ProgramBuilder, source: u32, destination: u32, bytes: u64) {
    builder.send(source, envelope(destination), bytes);
    builder.recv(destination, envelope(source), bytes);
}

fn compute(builder: &mut ProgramBuilder, seconds: f64) {
    (0..builder.ranks()).for_each(|rank| builder.compute(rank, seconds));
}

fn repeat(ranks: u32, iterations: usize, mut body: impl FnMut(&mut ProgramBuilder)) -> Program {
    let mut builder = ProgramBuilder::new(ranks);
    (0..iterations).for_each(|_| body(&mut builder));
    builder.finish().unwrap()
}

/// Exchange with the neighbours in a grid.
pub(super) fn halo(side: u32, is_periodic: bool, bytes: u64, seconds: f64, iterations: usize) -> Program {
    let mut messages = Vec::new();
    for x in 0..side {
        for y in 0..side {
            for (to_x, to_y) in [(x + 1, y), (x, y + 1)] {
                if is_periodic || (to_x < side && to_y < side) {
                    let (from, to) = (x * side + y, to_x % side * side + to_y % side);
                    messages.extend([(from, to), (to, from)]);
                }
            }
        }
    }
    repeat(side * side, iterations, |builder| {
        compute(builder, seconds);
        exchange(builder, &messages, bytes);
    })
}

/// All-to-all in groups of neighbouring ranks.
pub(super) fn all_to_all(ranks: u32, group: u32, bytes: u64, seconds: f64, iterations: usize) -> Program {
    let all = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
    let messages: Vec<_> = all.filter(|(from, to)| from != to && from / group == to / group).collect();
    repeat(ranks, iterations, |builder| {
        compute(builder, seconds);
        exchange(builder, &messages, bytes);
    })
}

/// Sweeps through a grid from one corner to the opposite one, and back.
pub(super) fn wavefront(side: u32, bytes: u64, seconds: f64, iterations: usize) -> Program {
    repeat(side * side, iterations, |builder| {
        for forwards in [true, false] {
            for x in 0..side {
                for y in 0..side {
                    let rank = |x: u32, y: u32| {
                        if forwards { x * side + y } else { (side - 1 - x) * side + side - 1 - y }
                    };
                    let own = rank(x, y);
                    let [before_x, before_y] =
                        [(x > 0).then(|| rank(x - 1, y)), (y > 0).then(|| rank(x, y - 1))];
                    for peer in [before_x, before_y].into_iter().flatten() {
                        builder.recv(own, envelope(peer), bytes);
                    }
                    builder.compute(own, seconds);
                    let [after_x, after_y] =
                        [(x + 1 < side).then(|| rank(x + 1, y)), (y + 1 < side).then(|| rank(x, y + 1))];
                    for peer in [after_x, after_y].into_iter().flatten() {
                        builder.send(own, envelope(peer), bytes);
                    }
                }
            }
        }
    })
}

/// Exchange with rank XOR 2^i in round i, as recursive doubling.
pub(super) fn butterfly(ranks: u32, bytes: u64, seconds: f64, iterations: usize) -> Program {
    repeat(ranks, iterations, |builder| {
        compute(builder, seconds);
        for round in 0..ranks.ilog2() {
            let messages: Vec<_> = (0..ranks).map(|rank| (rank, rank ^ 1 << round)).collect();
            exchange(builder, &messages, bytes);
        }
    })
}

/// Shift to the next rank.
pub(super) fn ring(ranks: u32, bytes: u64, seconds: f64, iterations: usize) -> Program {
    let messages: Vec<_> = (0..ranks).map(|rank| (rank, (rank + 1) % ranks)).collect();
    repeat(ranks, iterations, |builder| {
        compute(builder, seconds);
        exchange(builder, &messages, bytes);
    })
}

/// All send to rank 0, which answers.
pub(super) fn many_to_one(ranks: u32, bytes: u64, seconds: f64, iterations: usize) -> Program {
    let messages: Vec<_> = (1..ranks).map(|rank| (rank, 0)).collect();
    let answers: Vec<_> = (1..ranks).map(|rank| (0, rank)).collect();
    repeat(ranks, iterations, |builder| {
        compute(builder, seconds);
        exchange(builder, &messages, bytes);
        exchange(builder, &answers, 8);
    })
}

/// All-to-all in the rows of a grid, then in its columns, as a two-dimensional Fourier transform.
pub(super) fn rows_and_columns(side: u32, bytes: u64, seconds: f64, iterations: usize) -> Program {
    let all = |is_row: bool| -> Vec<(u32, u32)> {
        let pairs = (0..side * side).flat_map(|from| (0..side * side).map(move |to| (from, to)));
        let meet = |a: u32, b: u32| if is_row { a / side == b / side } else { a % side == b % side };
        pairs.filter(|&(from, to)| from != to && meet(from, to)).collect()
    };
    let (rows, columns) = (all(true), all(false));
    repeat(side * side, iterations, |builder| {
        compute(builder, seconds);
        exchange(builder, &rows, bytes);
        exchange(builder, &columns, bytes);
    })
}
