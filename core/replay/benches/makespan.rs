//! One evaluation of a placement of 1024 ranks with 1000 segments each, which receive one message or up to four before every
//! segment; and the time to compile these programs.

use divan::Bencher;
use divan::counter::ItemsCount;
use hopmap_model::{DelayModel, TaskDag};
use hopmap_replay::{Linear, Machine, MakespanEvaluator, ReplayProblem};

use hopmap_test_support::traced::{Stencil, exchanges, tree};

fn main() {
    divan::main();
}

fn dag(messages: u32) -> TaskDag {
    match messages {
        1 => exchanges(32, 32, 1000),
        _ => Stencil {
            width: 32,
            height: 32,
            iterations: 1000,
            bytes: [100_000, 20_000],
            sums: Some(50),
            imbalance: 0.5,
            scramble: true,
        }
        .dag(),
    }
}

fn problem(dag: &TaskDag, model: DelayModel) -> Option<ReplayProblem> {
    let system = tree(&[16, 4, 17], &[1.0, 8.0, 24.0]);
    let machine = Machine::of_system(&system, None, Linear::new(0.5e-6, 20e9).ok()?, None).ok()?;
    ReplayProblem::new(dag, &machine, model).ok()
}

#[divan::bench(args = [1, 4], sample_count = 20, sample_size = 1)]
fn overlap(bencher: Bencher<'_, '_>, messages: u32) {
    evaluate(bencher, messages, DelayModel::Overlap);
}

#[divan::bench(args = [1, 4], sample_count = 20, sample_size = 1)]
fn receive(bencher: Bencher<'_, '_>, messages: u32) {
    evaluate(bencher, messages, DelayModel::Receive);
}

fn evaluate(bencher: Bencher<'_, '_>, messages: u32, model: DelayModel) {
    let Some(problem) = problem(&dag(messages), model) else { return };
    let mut evaluator = MakespanEvaluator::new(&problem);
    let slots: Vec<u32> = (0..1024).rev().collect();
    bencher.counter(ItemsCount::new(problem.program().nodes())).bench_local(|| evaluator.makespan(&slots));
}

#[divan::bench(sample_count = 2, sample_size = 1)]
fn compile(bencher: Bencher<'_, '_>) {
    let dag = dag(1);
    bencher.bench_local(|| problem(&dag, DelayModel::Overlap));
}
