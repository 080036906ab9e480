//! How fast traces are read: `cargo bench -p hopmap-trace`.
//!
//! A trace of 10 million events of 64 ranks is generated for it, and read natively and with libotf2. Items are events.
//! `HOPMAP_TRACE=PATH` reads another archive as well.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use hopmap_model::{Context, InputPath, Inputs, Observer, Outcome, Stage, TraceArchive};
use hopmap_trace::{Csv, CsvParams, Generate, GenerateParams, Otf2, Otf2Params, Pattern, Reader};

/// The generated archive, once it is needed.
static GENERATED: Mutex<Option<TraceArchive>> = Mutex::new(None);

fn main() {
    divan::main();
    // Its files go with it.
    drop(GENERATED.lock().map(|mut archive| archive.take()));
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces").join(name)
}

/// Bytes in the files behind a parameter.
fn size(files: &[InputPath]) -> BytesCount {
    let bytes =
        files.iter().filter_map(|file| std::fs::metadata(file.path()).ok()).map(|metadata| metadata.len());
    BytesCount::new(bytes.sum::<u64>())
}

/// Learns from the log how many events there are.
#[derive(Default)]
struct Events(Mutex<u64>);

impl Observer for Events {
    fn progress(&self, _: u64, _: u64) {}

    fn log(&self, line: &str) {
        let mut words = line.split(' ').rev();
        if let Some(count) = words.find(|word| *word == "events,").and_then(|_| words.next()?.parse().ok()) {
            *self.0.lock().expect("nobody panics with it") = count;
        }
    }

    fn cancelled(&self) -> bool {
        false
    }
}

fn read_archive(bencher: Bencher<'_, '_>, path: &Path, reader: Reader, threads: usize) {
    let params = Otf2Params { archive: InputPath::new(path), reader };
    let events = Events::default();
    Otf2::run(params.clone(), Inputs::new(), &Context::new(threads, None, &events)).expect("a graph");
    let count = *events.0.lock().expect("nobody panics with it");
    bencher
        .counter(ItemsCount::new(count))
        .counter(size(&Otf2::reads(&params).expect("an archive")))
        .bench_local(|| {
            let cx = Context::new(threads, None, &events);
            black_box(Otf2::run(params.clone(), Inputs::new(), &cx)).expect("a graph")
        });
}

fn generated() -> PathBuf {
    let mut archive = GENERATED.lock().expect("nobody panics with it");
    let archive = archive.get_or_insert_with(|| {
        let params = GenerateParams { pattern: Pattern::Rows, ranks: 64, events: 10_000_000, seed: 1 };
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
    read_archive(bencher, &generated(), reader, THREADS);
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

#[divan::bench]
fn csv(bencher: Bencher<'_, '_>) {
    let params = CsvParams { file: InputPath::new(sample("rows-columns-16.expected.csv")), ranks: None };
    bencher
        .counter(size(&Csv::reads(&params).expect("a file")))
        .bench(|| black_box(Csv::run(params.clone(), Inputs::new(), &Context::detached())).expect("a graph"));
}
