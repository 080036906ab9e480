//! Threads of running cells: each cell has its own, and none of them ever works for another cell.

use std::sync::{Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

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
