//! Telling who was turned away, without letting strangers fill a log.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many are told of ...
const MOST: u64 = 5;
/// ... in such a span.
const SPAN: Duration = Duration::from_secs(10);

/// Tells of refusals, the first few of every span one by one, the others by number.
pub(super) struct Refusals {
    told: Mutex<Told>,
    tell: Box<dyn Fn(&str) + Send + Sync>,
}

struct Told {
    since: Instant,
    count: u64,
}

impl Refusals {
    pub(super) fn new(tell: Box<dyn Fn(&str) + Send + Sync>) -> Self {
        Self { told: Mutex::new(Told { since: Instant::now(), count: 0 }), tell }
    }

    /// Tells of a refusal, unless there were many just now.
    pub(super) fn tell(&self, refusal: &str) {
        let (silent, is_told) = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            let silent = if told.since.elapsed() > SPAN { told.restart() } else { 0 };
            told.count += 1;
            (silent, told.count <= MOST)
        };
        self.tell_number(silent);
        if is_told {
            (self.tell)(refusal);
        }
    }

    /// Tells how many were not told of.
    pub(super) fn tell_rest(&self) {
        let silent = self.told.lock().unwrap_or_else(PoisonError::into_inner).restart();
        self.tell_number(silent);
    }

    fn tell_number(&self, silent: u64) {
        if silent > 0 {
            (self.tell)(&format!("refused {silent} more"));
        }
    }
}

impl Told {
    /// Begins a new span; how many were not told of in the last one.
    fn restart(&mut self) -> u64 {
        let silent = self.count.saturating_sub(MOST);
        *self = Self { since: Instant::now(), count: 0 };
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn many_refusals_are_told_of_by_number() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        let refusals = Refusals::new(Box::new(move |line| seen.lock().unwrap().push(line.to_owned())));
        (0..100).for_each(|number| refusals.tell(&format!("refused {number}")));
        refusals.tell_rest();
        refusals.tell_rest();
        let lines = lines.lock().unwrap();
        assert_eq!(lines[..2], ["refused 0", "refused 1"]);
        assert_eq!(lines[5..], ["refused 95 more"]);
    }
}
