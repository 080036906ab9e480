//! Reads or generates an OTF2 archive; `ci/bench-trace.sh` compares it with other readers.
//!
//! ```text
//! otf2_matrix read native|libotf2 THREADS ARCHIVE
//! otf2_matrix generate PATTERN RANKS EVENTS FOLDER
//! ```

#![allow(clippy::print_stdout, reason = "the output is the result")]

use std::error::Error;
use std::path::Path;
use std::sync::Mutex;

use hopmap_model::{Context, InputPath, Inputs, Observer, Outcome, Stage, TaskGraph, TraceArchive};
use hopmap_trace::{Collectives, Generate, GenerateParams, Otf2, Otf2Params, Pattern, Reader};

const USAGE: &str =
    "usage: otf2_matrix read native|libotf2 THREADS ARCHIVE | generate PATTERN RANKS EVENTS FOLDER";

/// Takes the number of events from the log.
#[derive(Default)]
struct Events(Mutex<u64>);

impl Observer for Events {
    fn progress(&self, _: u64, _: u64) {}

    fn log(&self, line: &str) {
        let mut words = line.split(' ').rev();
        if let Some(count) = words.find(|word| *word == "events,").and_then(|_| words.next()?.parse().ok()) {
            *self.0.lock().expect("no panic while locked") = count;
        }
    }

    fn cancelled(&self) -> bool {
        false
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["read", reader, threads, archive] => read(reader, threads.parse()?, Path::new(archive)),
        ["generate", pattern, ranks, events, folder] => {
            generate(pattern, ranks.parse()?, events.parse()?, Path::new(folder))
        }
        _ => Err(USAGE.into()),
    }
}

fn read(reader: &str, threads: usize, archive: &Path) -> Result<(), Box<dyn Error>> {
    let reader = match reader {
        "native" => Reader::Native,
        "libotf2" => Reader::Libotf2,
        _ => return Err(USAGE.into()),
    };
    let collectives = Collectives::Ignore;
    let params = Otf2Params { reader, collectives, ..Otf2Params::new(InputPath::new(archive)) };
    let events = Events::default();
    let outcome = Otf2::run(params, Inputs::new(), &Context::new(threads, None, &events))?;
    let Outcome::Done(outputs) = &outcome else { return Err("no graph".into()) };
    let graph = outputs.get("task-graph").and_then(|value| value.downcast_ref::<TaskGraph>());
    let graph = graph.ok_or("no graph")?;
    println!(
        "{} events, {} messages, {} bytes, {} pairs",
        events.0.lock().expect("no panic while locked"),
        graph.messages(),
        graph.bytes(),
        graph.edges.len()
    );
    Ok(())
}

fn generate(pattern: &str, ranks: u32, events: u64, folder: &Path) -> Result<(), Box<dyn Error>> {
    let named = |known: &Pattern| format!("{known:?}").eq_ignore_ascii_case(pattern);
    let pattern = Pattern::ALL.into_iter().find(named).ok_or(USAGE)?;
    let params = GenerateParams { pattern, ranks, events, seed: 1 };
    let observer = Events::default();
    let scratch = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let outcome =
        Generate::run(params, Inputs::new(), &Context::new(1, None, &observer).with_scratch(scratch))?;
    let Outcome::Done(outputs) = &outcome else { return Err("no archive".into()) };
    let archive = outputs.get("archive").and_then(|value| value.downcast_ref::<TraceArchive>());
    let anchor = archive.and_then(|archive| archive.file("traces.otf2")).ok_or("no archive")?;
    std::fs::rename(anchor.parent().ok_or("no folder")?, folder)?;
    Ok(())
}
