//! Measures the size of a series of checkpoints in a store, and the time of adding and restoring.
//!
//! `cargo run --release -p hopmap-checkpoint --example measure -- SERIES… [--threads N] [--depth N]
//! [--whole-every N] [--each]`: each SERIES is a folder of checkpoint folders. Times are CPU seconds of this
//! process, user and system; sizes are on disk.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hopmap_checkpoint::store::{AddOptions, RestoreOptions, Settings, Source, Store};
use hopmap_model::Context;
use rustix::time::{ClockId, clock_gettime};

type Error = Box<dyn std::error::Error>;

#[expect(clippy::print_stdout, reason = "prints measurements")]
fn main() -> Result<(), Error> {
    let mut threads = 1;
    let mut settings = Settings::default();
    let mut each = false;
    let mut series = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--threads" => threads = arguments.next().ok_or("--threads N")?.parse()?,
            "--depth" => settings.depth = arguments.next().ok_or("--depth N")?.parse()?,
            "--whole-every" => settings.whole_every = arguments.next().ok_or("--whole-every N")?.parse()?,
            "--each" => each = true,
            _ => series.push(PathBuf::from(argument)),
        }
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    println!(
        "| series | MB | stored MB | first MB | add first MB/s | add others MB/s | add unchanged MB/s | restore MB/s (first, middle, last) | peak MB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for series in series {
        measure(&series, &settings, each)?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "prints measurements")]
fn measure(series: &Path, settings: &Settings, each: bool) -> Result<(), Error> {
    let mut checkpoints: Vec<PathBuf> =
        std::fs::read_dir(series)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    checkpoints.retain(|path| path.is_dir());
    checkpoints.sort();
    let folder = tempfile::tempdir_in(std::env::var("HOPMAP_SCRATCH").unwrap_or_else(|_| "/tmp".into()))?;
    let place = folder.path().join("store");
    Store::init(&place, settings.clone())?;
    let add = |checkpoint: &Path| -> Result<(f64, u64, u64), Error> {
        let store = Store::open(&place)?;
        let lock = store.lock("measure", Duration::ZERO)?;
        let before = cpu();
        let added =
            store.add(&lock, Source::Folder(checkpoint), &AddOptions::default(), &Context::detached())?;
        Ok((cpu() - before, added.manifest.figures.bytes, added.pack_bytes + added.manifest_bytes))
    };
    let mut results = Vec::new();
    for checkpoint in &checkpoints {
        let (seconds, bytes, stored) = add(checkpoint)?;
        if each {
            println!("{}: {bytes} bytes, {stored} stored, {seconds:.3} s", checkpoint.display());
        }
        results.push((seconds, bytes, stored));
    }
    let unchanged = match checkpoints.last() {
        Some(last) => add(last)?,
        None => return Ok(()),
    };
    let rate = |results: &[(f64, u64, u64)]| {
        let seconds: f64 = results.iter().map(|result| result.0).sum();
        results.iter().map(|result| result.1 as f64).sum::<f64>() / 1e6 / seconds
    };
    let mut restores = Vec::new();
    for number in [1, checkpoints.len() as u32 / 2 + 1, checkpoints.len() as u32] {
        let store = Store::open(&place)?;
        let lock = store.read_lock(Duration::ZERO)?;
        let to = folder.path().join("back");
        let before = cpu();
        let options = RestoreOptions { unsynced: true };
        let back = store.restore(&lock, number, &to, options, &Context::detached())?;
        restores.push(format!("{:.0}", back.bytes as f64 / 1e6 / (cpu() - before)));
        std::fs::remove_dir_all(&to)?;
    }
    let mega = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "| {} | {:.0} | {:.1} | {:.1} | {:.0} | {:.0} | {:.0} | {} | {:.0} |",
        series.file_name().unwrap_or_default().display(),
        mega(results.iter().map(|result| result.1).sum()),
        mega(results.iter().map(|result| result.2).sum()),
        mega(results[0].2),
        rate(&results[..1]),
        rate(&results[1..]),
        rate(&[unchanged]),
        restores.join(", "),
        peak(),
    );
    Ok(())
}

/// CPU seconds of this process, user and system.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Peak memory of this process, in MB.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse::<f64>().ok()).unwrap_or(0.0) / 1e3
}
