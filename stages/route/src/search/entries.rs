//! How many entries of tables the routes to a host need at least.

use super::model::Model;

/// Counts entries; keeps its memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Entries {
    /// Switches that routes begin at: links from there to the destination, the switch, and the host if it has a table for its port.
    firsts: Vec<(u16, usize, u32)>,
}

impl Entries {
    /// Entries that routes from other hosts to a host of a class need at least, with the kinds of the streams. Every route passes a
    /// switch at each distance from the destination below that of its first one.
    pub(super) fn least(
        &mut self,
        model: &Model<'_>,
        to: usize,
        sources: impl Iterator<Item = (u32, usize)>,
    ) -> u32 {
        self.firsts.clear();
        let (mut top, mut alone, mut passes_top) = (0, 0, false);
        for (source, kind) in sources {
            let from = model.class_of[source as usize];
            let class = &model.classes[from];
            let level = model.distance(0, from, to).saturating_sub(1);
            alone = alone.max(model.distance(kind, from, to).saturating_sub(1));
            let is_one = class.spot != class.hosts[0] as usize;
            if level > top || (level == top && !is_one) {
                passes_top = !is_one;
            }
            top = top.max(level);
            if is_one && level > 0 {
                let host = if class.is_type_two { source } else { u32::MAX };
                self.firsts.push((level, class.spot, host));
            }
        }
        self.firsts.sort_unstable();
        self.firsts.dedup();
        // At a distance where only switches with a table for every port are begun at, a route from farther needs one more.
        let mut shared = 0;
        let mut last = 0;
        for (level, ..) in self.firsts.iter().filter(|(.., host)| *host == u32::MAX) {
            shared += u32::from(*level != last);
            last = *level;
        }
        let passed = u32::from(top) - u32::from(top > 0 && !passes_top);
        let is_shared_top = last == top && top > 0;
        let begun_below = shared - u32::from(is_shared_top && !passes_top);
        let more = passed - begun_below.min(passed);
        (self.firsts.len() as u32 + more).max(u32::from(alone))
    }
}
