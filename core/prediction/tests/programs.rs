//! Random programs that end without a deadlock, whatever waits for whatever.

use hopmap_model::{Envelope, Program, ProgramBuilder};
use hopmap_random::{Draw, Pcg64};

/// The shape of random programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) ranks: u32,
    pub(crate) phases: usize,
    /// Messages have at most 2 to this power bytes.
    pub(crate) log2_bytes: usize,
    pub(crate) tests: bool,
    /// Factor by which computation is longer.
    pub(crate) scale: f64,
}

/// Phases of blocking messages in one order at all ranks, or of nonblocking messages whose requests are all completed.
/// All messages of a pair have different tags.
pub(crate) fn program(shape: Shape, random: &mut Pcg64) -> Program {
    let mut program = ProgramBuilder::new(shape.ranks);
    let mut tag = 0;
    for _ in 0..shape.phases {
        for rank in 0..shape.ranks {
            if random.below(3) == 0 {
                program.compute(rank, 0.5 * shape.scale * random.unit());
            }
        }
        match random.below(2) {
            0 => blocking(shape, &mut program, &mut tag, random),
            _ => nonblocking(shape, &mut program, &mut tag, random),
        }
    }
    program.finish().unwrap()
}

fn bytes(shape: Shape, random: &mut Pcg64) -> u64 {
    let most = 1 << random.below(shape.log2_bytes + 1);
    random.below(most) as u64
}

fn pair(shape: Shape, random: &mut Pcg64) -> (u32, u32) {
    let source = random.below(shape.ranks as usize) as u32;
    let distance = 1 + random.below(shape.ranks as usize - 1) as u32;
    (source, (source + distance) % shape.ranks)
}

fn blocking(shape: Shape, program: &mut ProgramBuilder, tag: &mut u32, random: &mut Pcg64) {
    for _ in 0..=random.below(4) {
        let (source, destination) = pair(shape, random);
        let bytes = bytes(shape, random);
        *tag += 1;
        program.send(source, Envelope { peer: destination, tag: *tag, communicator: 0 }, bytes);
        program.recv(destination, Envelope { peer: source, tag: *tag, communicator: 0 }, bytes);
    }
}

fn nonblocking(shape: Shape, program: &mut ProgramBuilder, tag: &mut u32, random: &mut Pcg64) {
    let mut requests = vec![Vec::new(); shape.ranks as usize];
    for _ in 0..=random.below(3 * shape.ranks as usize) {
        let (source, destination) = pair(shape, random);
        let bytes = bytes(shape, random);
        *tag += 1;
        let send = Envelope { peer: destination, tag: *tag, communicator: 0 };
        let receive = Envelope { peer: source, tag: *tag, communicator: 0 };
        requests[destination as usize].push(program.irecv(destination, receive, bytes));
        requests[source as usize].push(program.isend(source, send, bytes));
    }
    for (rank, mut requests) in (0..).zip(requests) {
        program.compute(rank, 0.1 * shape.scale * random.unit());
        random.shuffle(&mut requests);
        match random.below(2) {
            0 => program.waitall(rank),
            _ => {
                for request in requests {
                    if shape.tests && random.below(4) == 0 {
                        program.test(rank, request);
                        program.compute(rank, 0.1 * shape.scale * random.unit());
                    }
                    program.wait(rank, request);
                }
            }
        }
    }
}
