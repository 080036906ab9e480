//! How far a probing is, and how long it will take.

use std::time::Instant;

use hopmap_model::Context;

use super::plan::Part;

/// Counts the steps of all parts, each as heavy as its sizes are many and large.
pub(crate) struct Steps<'a> {
    cx: &'a Context<'a>,
    /// Steps that are left of every part with the weight of one.
    left: std::collections::VecDeque<(u64, u64)>,
    done: u64,
    total: u64,
    begin: Instant,
    announced: bool,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(parts: &[Part], cx: &'a Context<'a>) -> Self {
        let left: std::collections::VecDeque<(u64, u64)> =
            parts.iter().map(|part| (part.count_steps(), weight(part))).collect();
        let total = left.iter().map(|(steps, weight)| steps * weight).sum();
        Self { cx, left, done: 0, total, begin: Instant::now(), announced: false }
    }

    /// One more step is done.
    pub(crate) fn done(&mut self) {
        while self.left.front().is_some_and(|(steps, _)| *steps == 0) {
            self.left.pop_front();
        }
        if let Some((steps, weight)) = self.left.front_mut() {
            *steps -= 1;
            self.done += *weight;
        }
        self.cx.progress(self.done, self.total);
        let spent = self.begin.elapsed().as_secs_f64();
        // Once, when enough is known to say how long it takes.
        if !self.announced && spent > 2.0 {
            self.announced = true;
            let left = spent * (self.total - self.done) as f64 / self.done.max(1) as f64;
            if left > 5.0 {
                self.cx.log(format!("about {left:.0} s left"));
            }
        }
    }
}

/// What a step of a part takes, in units of a small message size.
fn weight(part: &Part) -> u64 {
    let large = part.sampling.sizes.iter().filter(|&&bytes| bytes > 1 << 16).count() as u64;
    part.sampling.sizes.len() as u64 + 4 * large
}
