//! Deltas of a series of checkpoints, with CPU time and memory: `delta SERIES [position|address] [BLOCK …]
//! [optimum]`.
#![allow(clippy::print_stdout)]

use std::path::PathBuf;
use std::process::ExitCode;

use hopmap_checkpoint::delta::{Settings, WriteCost, deltas};
use hopmap_checkpoint::series::find;
use hopmap_checkpoint::{Align, Matching};
use hopmap_model::{Context, DeltaRule};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(series) = arguments.next().map(PathBuf::from) else { return usage() };
    let align = match arguments.next().as_deref() {
        None | Some("position") => Align::Position,
        Some("address") => Align::Address,
        Some(_) => return usage(),
    };
    let (words, blocks): (Vec<String>, Vec<String>) = arguments.partition(|argument| argument == "optimum");
    let optimum = !words.is_empty();
    let Ok(mut blocks) = blocks.iter().map(|block| block.parse()).collect::<Result<Vec<u32>, _>>() else {
        return usage();
    };
    if blocks.is_empty() {
        blocks.push(4096);
    }
    let rules = DeltaRule::ALL.into_iter().filter(|&rule| optimum || rule != DeltaRule::Optimum).collect();
    let cost = WriteCost::default();
    let matching = Matching::Address;
    let settings = Settings { blocks, rules, epsilon: 0.2, align, matching, block_overhead: 24, cost };
    let begin = std::time::Instant::now();
    let found =
        find(&series).map_err(Into::into).and_then(|series| deltas(&series, &settings, &Context::detached()));
    match found {
        Ok((deltas, _)) => {
            let mut bytes = 0;
            for rule in &deltas.rules {
                bytes = rule.full_bytes;
                let megabytes = rule.stored_bytes as f64 / 1e6;
                let name = rule.rule.name();
                println!(
                    "{:6} {name:15} {megabytes:8.1} MB depth {:2} b {:?}",
                    rule.block, rule.depth, rule.bases
                );
            }
            let seconds = begin.elapsed().as_secs_f64();
            println!("{:.0} MB, {:.2} GB/s", bytes as f64 / 1e6, bytes as f64 / 1e9 / seconds);
            std::fs::read_to_string("/proc/self/status").ok().and_then(|status| {
                let peak = status.lines().find(|line| line.starts_with("VmHWM"))?.to_owned();
                println!("{peak}");
                Some(())
            });
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{:?}", miette::Report::new(error));
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    println!("delta SERIES [position|address] [BLOCK …] [optimum]");
    ExitCode::FAILURE
}
