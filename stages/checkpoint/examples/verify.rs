//! Measures the time of verifying, computing statistics and pruning.
//!
//! `cargo run --release -p hopmap-checkpoint --example verify -- SERIES… [--threads N]`: each SERIES is a
//! folder of checkpoint folders. Times are CPU seconds of this process, user and system, with everything in
//! the page cache; speeds refer to the total size of all checkpoints.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hopmap_checkpoint::store::{AddOptions, Keep, Settings, Source, Store};
use hopmap_model::Context;
use rustix::time::{ClockId, clock_gettime};

type Error = Box<dyn std::error::Error>;

#[expect(clippy::print_stdout, reason = "prints measurements")]
fn main() -> Result<(), Error> {
    let mut threads = 1;
    let mut series = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--threads" => threads = arguments.next().ok_or("--threads N")?.parse()?,
            _ => series.push(PathBuf::from(argument)),
        }
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    println!(
        "| series | MB | stored MB | verify s | verify --deep s | deep MB/s | stats s | prune to the last s | stored then MB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    series.iter().try_for_each(|series| measure(series))
}

#[expect(clippy::print_stdout, reason = "prints measurements")]
fn measure(series: &Path) -> Result<(), Error> {
    let mut checkpoints: Vec<PathBuf> =
        std::fs::read_dir(series)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    checkpoints.retain(|path| path.is_dir());
    checkpoints.sort();
    let folder = tempfile::tempdir_in(std::env::var("HOPMAP_SCRATCH").unwrap_or_else(|_| "/tmp".into()))?;
    let store = Store::init(&folder.path().join("store"), Settings::default())?;
    for checkpoint in &checkpoints {
        let lock = store.lock("verify", Duration::ZERO)?;
        store.add(&lock, Source::Folder(checkpoint), &AddOptions::default(), &Context::detached())?;
    }
    let verify = |deep: bool| -> Result<f64, Error> {
        let lock = store.read_lock(Duration::ZERO)?;
        let before = cpu();
        let found = store.verify(&lock, deep, None, &Context::detached())?;
        let seconds = cpu() - before;
        if found.problems.is_empty() { Ok(seconds) } else { Err("the store is damaged".into()) }
    };
    let best = |deep: bool| -> Result<f64, Error> { Ok(verify(deep)?.min(verify(deep)?).min(verify(deep)?)) };
    let (shallow, deep) = (best(false)?, best(true)?);
    let count = || -> Result<_, Error> {
        let lock = store.read_lock(Duration::ZERO)?;
        let before = cpu();
        let statistics = store.statistics(&lock)?;
        Ok((cpu() - before, statistics.bytes, statistics.packs + statistics.manifests))
    };
    let (counting, bytes, stored) = count()?;
    let lock = store.lock("verify", Duration::ZERO)?;
    let before = cpu();
    store.prune(&lock, &Keep { last: Some(1), ..Keep::default() }, false, &Context::detached())?;
    let pruning = cpu() - before;
    drop(lock);
    // Rewritten blocks are verified as well.
    verify(true)?;
    let (_, _, left) = count()?;
    let name = series.file_name().unwrap_or_default().display();
    let mega = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "| {name} | {:.0} | {:.1} | {shallow:.3} | {deep:.3} | {:.0} | {counting:.3} | {pruning:.3} | {:.1} |",
        mega(bytes),
        mega(stored),
        mega(bytes) / deep,
        mega(left),
    );
    Ok(())
}

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
