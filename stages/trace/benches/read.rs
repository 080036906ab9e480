//! Throughput of the trace readers: `cargo bench -p hopmap-trace`.
//!
//! Generates traces of 10 million events, with 64 ranks that have few receivers each and with 1024 ranks
//! that send to all others once, and reads them natively and with libotf2. Items are events.
//! `ci/bench-trace.sh` compares with other readers. Writes archives in OTF 1 first: a ring of 16 processes
//! in 16 streams, 1,200,000 events. `HOPMAP_TRACE=PATH` also reads another archive.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use flate2::{Compress, Compression, FlushCompress};
use hopmap_model::{Context, InputPath, Inputs, Observer, Outcome, Stage, TraceArchive};
use hopmap_trace::{
    Collectives, Format, Generate, GenerateParams, Import, ImportParams, Otf, Otf2, Otf2Params, OtfParams,
    Pattern, Reader,
};

/// The generated archives by number of ranks, created on first use.
static GENERATED: Mutex<BTreeMap<u32, TraceArchive>> = Mutex::new(BTreeMap::new());

fn main() {
    divan::main();
    // Removes their files.
    drop(GENERATED.lock().map(|mut archives| std::mem::take(&mut *archives)));
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces").join(name)
}

/// Bytes of the files behind a parameter.
fn size(files: &[InputPath]) -> BytesCount {
    let bytes =
        files.iter().filter_map(|file| std::fs::metadata(file.path()).ok()).map(|metadata| metadata.len());
    BytesCount::new(bytes.sum::<u64>())
}

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

fn read_archive(bencher: Bencher<'_, '_>, path: &Path, reader: Reader, threads: usize) {
    let collectives = Collectives::Ignore;
    let params = Otf2Params { reader, collectives, ..Otf2Params::new(InputPath::new(path)) };
    let events = Events::default();
    Otf2::run(params.clone(), Inputs::new(), &Context::new(threads, None, &events)).expect("a graph");
    let count = *events.0.lock().expect("no panic while locked");
    bencher
        .counter(ItemsCount::new(count))
        .counter(size(&Otf2::reads(&params).expect("an archive")))
        .bench_local(|| {
            let cx = Context::new(threads, None, &events);
            black_box(Otf2::run(params.clone(), Inputs::new(), &cx)).expect("a graph")
        });
}

fn generated(pattern: Pattern, ranks: u32) -> PathBuf {
    let mut archives = GENERATED.lock().expect("no panic while locked");
    let archive = archives.entry(ranks).or_insert_with(|| {
        let params = GenerateParams { pattern, ranks, events: 10_000_000, seed: 1 };
        let outcome = Generate::run(params, Inputs::new(), &Context::detached()).expect("an archive");
        let Outcome::Done(outputs) = outcome else { panic!("{outcome:?}") };
        let archive = outputs.get("archive").and_then(|value| value.downcast_ref::<TraceArchive>());
        archive.expect("an archive").clone()
    });
    archive.file("traces.otf2").expect("an anchor file").to_owned()
}

const READERS: [Reader; 2] = [Reader::Native, Reader::Libotf2];

#[divan::bench(args = READERS, consts = [1, 2], sample_count = 10)]
fn otf2_ten_million<const THREADS: usize>(bencher: Bencher<'_, '_>, reader: Reader) {
    read_archive(bencher, &generated(Pattern::Rows, 64), reader, THREADS);
}

#[divan::bench(args = READERS, sample_count = 5)]
fn otf2_million_pairs(bencher: Bencher<'_, '_>, reader: Reader) {
    read_archive(bencher, &generated(Pattern::AllToAll, 1024), reader, 1);
}

#[divan::bench(args = ["lammps-melt-16", "rows-columns-16"])]
fn otf2_sample(bencher: Bencher<'_, '_>, name: &str) {
    read_archive(bencher, &sample(name), Reader::Native, 1);
}

#[divan::bench(args = READERS, sample_count = 5)]
fn otf2_given(bencher: Bencher<'_, '_>, reader: Reader) {
    if let Some(path) = std::env::var_os("HOPMAP_TRACE") {
        read_archive(bencher, Path::new(&path), reader, 1);
    }
}

/// Rounds of the ring: each is 6 events of a process.
const ROUNDS: u64 = 12_500;

/// The events of a process of the ring, as `VampirTrace` writes them.
fn ring(process: u64) -> String {
    let mut text = String::new();
    for round in 0..ROUNDS {
        let time = 1_000_000_000 + 1000 * round;
        let (next, last) = (process % 16 + 1, (process + 14) % 16 + 1);
        let records = [
            "E2".into(),
            format!("S{next:x}L2000T7C3b9aca01"),
            "E3".into(),
            format!("R{last:x}L2000T7C3b9aca01"),
        ];
        for (step, record) in (0..).zip(records.into_iter().chain(["L3\nL2".into()])) {
            let _ = writeln!(text, "{:x}\n*{process:x}\n{record}", time + 100 * step);
        }
    }
    text
}

/// Compresses like libotf: flushed, but not finished.
fn compressed(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut compress = Compress::new(Compression::new(6), true);
    compress.compress_vec(text.as_bytes(), &mut bytes, FlushCompress::Full).expect("it compresses");
    bytes
}

#[divan::bench(args = ["plain", "compressed"], sample_count = 20)]
fn otf(bencher: Bencher<'_, '_>, kind: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).expect("a file");
    let (mut master, mut definitions) =
        (String::new(), String::from("DTR3b9aca00\nDF2G1NM\"main\"\nDF3G1NM\"MPI_Recv\"\n"));
    for process in 1..=16 {
        let _ = writeln!(master, "{process:x}:{process:x}");
        let _ = writeln!(definitions, "DP{process:x}");
        let text = ring(process);
        match kind {
            "plain" => write(&format!("ring.{process:x}.events"), text.as_bytes()),
            _ => write(&format!("ring.{process:x}.events.z"), &compressed(&text)),
        }
    }
    write("ring.otf", master.as_bytes());
    write("ring.0.def", definitions.as_bytes());
    let params = OtfParams::new(InputPath::new(folder.path()));
    bencher
        .counter(size(&Otf::reads(&params).expect("an archive")))
        .counter(ItemsCount::new(16 * 6 * ROUNDS))
        .bench(|| black_box(Otf::run(params.clone(), Inputs::new(), &Context::detached())).expect("a graph"));
}

#[divan::bench]
fn csv(bencher: Bencher<'_, '_>) {
    let path = InputPath::new(sample("rows-columns-16.expected.csv"));
    let params = ImportParams { format: Format::Csv, ..ImportParams::new(path) };
    bencher.counter(size(&Import::reads(&params).expect("a file"))).bench(|| {
        black_box(Import::run(params.clone(), Inputs::new(), &Context::detached())).expect("a graph")
    });
}
