//! What this machine has for us: memory, and the threads of running cells. Each cell has its own, and none of them ever works for
//! another cell.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// Bytes of memory that processes here may use: those of the machine, or of the control group we are in if it has a limit.
#[must_use]
pub fn memory() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(|line| limits(Path::new("/sys/fs/cgroup"), line));
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| in_all(&text));
    limits.chain(machine).min()
}

/// `MemTotal` of /proc/meminfo in bytes.
fn in_all(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The limits of a control group and of those it is in; `line` is one of /proc/self/cgroup: `0::/a/b`, or `4:memory:/a/b`.
fn limits(root: &Path, line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (top, file) = match controllers {
        "" => (root.to_owned(), "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            (root.join("memory"), "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let group = top.join(path.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|group| group.starts_with(&top));
    let limit = |group: &Path| fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
    groups.filter_map(limit).collect()
}

/// Pools of threads that no cell has now. One is used again by the next cell that is given as many cores.
#[derive(Default)]
pub(super) struct Cores {
    idle: Mutex<Vec<ThreadPool>>,
}

impl Cores {
    /// Does some work in a pool of exactly so many threads, which nobody else has meanwhile. The thread that calls waits.
    pub(super) fn lend<R: Send>(
        &self,
        threads: usize,
        work: impl FnOnce() -> R + Send,
    ) -> Result<R, ThreadPoolBuildError> {
        let pool = match self.take(threads) {
            Some(pool) => pool,
            None => ThreadPoolBuilder::new().num_threads(threads).build()?,
        };
        let result = pool.install(work);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(pool);
        Ok(result)
    }

    /// An idle pool of that size. Where there is none the others go, so that there are never many threads that do nothing.
    fn take(&self, threads: usize) -> Option<ThreadPool> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = idle.iter().position(|pool| pool.current_num_threads() == threads);
        match fits {
            Some(index) => Some(idle.swap_remove(index)),
            None => {
                idle.clear();
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_machine_is_known() {
        assert!(memory().unwrap() > 1 << 20);
        assert_eq!(in_all("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16384 * 1024));
    }

    #[test]
    fn every_control_group_around_us_may_have_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("slice/job")).unwrap();
        fs::create_dir_all(root.join("memory/slice")).unwrap();
        fs::write(root.join("slice/memory.max"), "4096\n").unwrap();
        fs::write(root.join("slice/job/memory.max"), "max\n").unwrap();
        fs::write(root.join("memory/slice/memory.limit_in_bytes"), "8192\n").unwrap();
        assert_eq!(limits(root, "0::/slice/job"), [4096]);
        assert_eq!(limits(root, "4:cpu,memory:/slice"), [8192]);
        assert_eq!(limits(root, "5:cpu:/slice"), [] as [u64; 0]);
        assert_eq!(limits(root, "nonsense"), [] as [u64; 0]);
    }
}
