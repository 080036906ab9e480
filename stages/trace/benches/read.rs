//! How fast traces are read.
//!
//! `HOPMAP_TRACE=PATH cargo bench -p hopmap-trace` reads another archive as well. Events are counted by its log.
//! Archives in OTF 1 are written first: a ring of 16 processes in 16 streams, 1,200,000 events.

use std::fmt::Write;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use flate2::{Compress, Compression, FlushCompress};
use hopmap_model::{Context, InputPath, Inputs, Stage};
use hopmap_trace::{Csv, CsvParams, Otf, Otf2, Otf2Params, OtfParams};

fn main() {
    divan::main();
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

fn read_archive(bencher: Bencher<'_, '_>, path: &Path) {
    let params = Otf2Params { archive: InputPath::new(path) };
    bencher.counter(size(&Otf2::reads(&params).expect("an archive"))).bench(|| {
        black_box(Otf2::run(params.clone(), Inputs::new(), &Context::detached())).expect("a graph")
    });
}

#[divan::bench(args = ["lammps-melt-16", "rows-columns-16"])]
fn otf2_sample(bencher: Bencher<'_, '_>, name: &str) {
    read_archive(bencher, &sample(name));
}

#[divan::bench(sample_count = 5)]
fn otf2_given(bencher: Bencher<'_, '_>) {
    if let Some(path) = std::env::var_os("HOPMAP_TRACE") {
        read_archive(bencher, Path::new(&path));
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

/// As libotf compresses: flushed, but not finished.
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
    let params = OtfParams { archive: InputPath::new(folder.path()) };
    bencher
        .counter(size(&Otf::reads(&params).expect("an archive")))
        .counter(ItemsCount::new(16 * 6 * ROUNDS))
        .bench(|| black_box(Otf::run(params.clone(), Inputs::new(), &Context::detached())).expect("a graph"));
}

#[divan::bench]
fn csv(bencher: Bencher<'_, '_>) {
    let params = CsvParams { file: InputPath::new(sample("rows-columns-16.expected.csv")), ranks: None };
    bencher
        .counter(size(&Csv::reads(&params).expect("a file")))
        .bench(|| black_box(Csv::run(params.clone(), Inputs::new(), &Context::detached())).expect("a graph"));
}
