//! What one of several processes hears from the engine and tells it.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hopmap_model::Observer;

use super::task::{Message, is_stopped};

/// Time between two looks at the folder, and between two reports of progress.
const INTERVAL: Duration = Duration::from_millis(100);

/// Watches for the file that stops the task; only the first process talks.
pub(crate) struct RankObserver<'a> {
    folder: &'a Path,
    say: Option<&'a (dyn Fn(&str) + Sync)>,
    stopped: AtomicBool,
    looked: Every,
    told: Every,
}

impl<'a> RankObserver<'a> {
    pub(crate) fn new(folder: &'a Path, say: Option<&'a (dyn Fn(&str) + Sync)>) -> Self {
        let (looked, told) = (Every::default(), Every::default());
        Self { folder, say, stopped: AtomicBool::new(false), looked, told }
    }
}

impl Observer for RankObserver<'_> {
    fn progress(&self, done: u64, total: u64) {
        if let Some(say) = self.say.filter(|_| done == total || self.told.is_due()) {
            say(&Message::Progress(done, total).line());
        }
    }

    fn log(&self, line: &str) {
        if let Some(say) = self.say {
            say(&Message::Log(line.to_owned()).line());
        }
    }

    fn cancelled(&self) -> bool {
        if !self.stopped.load(Ordering::Relaxed) && self.looked.is_due() && is_stopped(self.folder) {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Something that is done at most once in an interval, by whichever thread comes first.
#[derive(Default)]
struct Every(Mutex<Option<Instant>>);

impl Every {
    fn is_due(&self) -> bool {
        // Another thread is at it.
        let Ok(mut last) = self.0.try_lock() else { return false };
        let is_due = last.is_none_or(|last| last.elapsed() >= INTERVAL);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_heard_and_only_the_first_process_talks() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("task.json"), "").unwrap();
        let heard = Mutex::new(Vec::new());
        let say = |line: &str| heard.lock().unwrap().push(line.to_owned());
        let first = RankObserver::new(folder.path(), Some(&say));
        let other = RankObserver::new(folder.path(), None);
        for observer in [&first, &other] {
            assert!(!observer.cancelled());
            observer.log("hello");
            observer.progress(7, 7);
        }
        assert_eq!(*heard.lock().unwrap(), ["hopmap-ranks: log hello", "hopmap-ranks: progress 7 7"]);
        super::super::stop(folder.path()).unwrap();
        for observer in [&first, &other] {
            while !observer.cancelled() {
                std::thread::yield_now();
            }
        }
    }
}
