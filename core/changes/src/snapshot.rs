//! A machine at one moment.

use hopmap_model::{Measurements, SystemGraph};

/// A machine at one moment, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// Its hosts, links and costs.
    pub system: &'a SystemGraph,
    /// What probing measured, if it was probed.
    pub measurements: Option<&'a Measurements>,
}

/// A machine at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Its hosts, links and costs.
    pub system: SystemGraph,
    /// What probing measured, if it was probed.
    pub measurements: Option<Measurements>,
}

impl Machine {
    /// The same, borrowed.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { system: &self.system, measurements: self.measurements.as_ref() }
    }
}

impl Snapshot<'_> {
    /// A copy of its own.
    #[must_use]
    pub fn to_machine(&self) -> Machine {
        Machine { system: self.system.clone(), measurements: self.measurements.cloned() }
    }

    /// Names of the hosts that are up, and of those that are down, each in alphabetical order.
    #[must_use]
    pub fn hosts(&self) -> (Vec<&str>, Vec<&str>) {
        let (up, down): (Vec<_>, Vec<_>) =
            crate::view::hosts(self).into_iter().partition(|(_, host)| host.up);
        let names = |hosts: Vec<(_, _)>| hosts.into_iter().map(|(name, _)| name).collect();
        (names(up), names(down))
    }

    /// The largest ratio between the latency of two hosts and what it was before, whichever is larger; 1 where nothing was
    /// measured both times.
    #[must_use]
    pub fn largest_ratio(&self, before: &Snapshot<'_>) -> f64 {
        let (Some(old), Some(new)) = (before.measurements, self.measurements) else { return 1.0 };
        let old = crate::drift::of_hosts(old);
        let ratio = |(pair, new): (_, crate::drift::Latency)| {
            let old = old.get(&pair)?;
            let (least, most) = (old.seconds.min(new.seconds), old.seconds.max(new.seconds));
            (least > 0.0).then_some(most / least)
        };
        crate::drift::of_hosts(new).into_iter().filter_map(ratio).fold(1.0, f64::max)
    }
}
