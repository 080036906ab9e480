//! How fast traces are read.
//!
//! `HOPMAP_TRACE=PATH cargo bench -p hopmap-trace` reads another archive as well. Events are counted by its log.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use divan::Bencher;
use divan::counter::BytesCount;
use hopmap_model::{Context, InputPath, Inputs, Stage};
use hopmap_trace::{Csv, CsvParams, Otf2, Otf2Params, Reader};

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
    let params = Otf2Params { archive: InputPath::new(path), reader: Reader::Auto };
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

#[divan::bench]
fn csv(bencher: Bencher<'_, '_>) {
    let params = CsvParams { file: InputPath::new(sample("rows-columns-16.expected.csv")), ranks: None };
    bencher
        .counter(size(&Csv::reads(&params).expect("a file")))
        .bench(|| black_box(Csv::run(params.clone(), Inputs::new(), &Context::detached())).expect("a graph"));
}
