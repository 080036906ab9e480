//! Observations of the machine, repeated until its changes are confirmed.

use std::collections::HashSet;

use hopmap_changes::{Change, Machine, Missing, Thresholds, confirmed, keep_down, keep_times};
use miette::Report;

use super::RefreshError;
use super::publication::differences;

/// Observes the machine once.
pub(crate) type Look<'a> = dyn FnMut() -> Result<Machine, Report> + 'a;

/// How to observe the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LookSettings {
    /// Tolerances below which numbers count as equal.
    pub(crate) thresholds: Thresholds,
    /// State of hosts that are missing from the source.
    pub(crate) missing: Missing,
    /// Whether to ignore hosts that go down or come back.
    pub(crate) ignore_down: bool,
    /// Number of further observations to confirm changes of a measured machine.
    pub(crate) confirm: u32,
    /// Fraction of the hosts that were up that must still be up; the number that may be lost is rounded up.
    pub(crate) min_coverage: f64,
}

/// The observed machine.
#[derive(Debug)]
pub(super) struct Seen {
    /// The machine, in which hosts that are down keep their data.
    pub(super) machine: Machine,
    /// Changes since the published machine.
    pub(super) changes: Vec<Change>,
    /// Number of further observations.
    pub(super) confirmations: u32,
}

impl LookSettings {
    /// The current machine, compared with the published one. A measured machine is observed again while it has changes, and only changes
    /// of all observations count.
    pub(super) fn look(
        &self,
        published: Option<&Machine>,
        baseline: Option<&Machine>,
        look: &mut Look<'_>,
    ) -> Result<Seen, Report> {
        let mut seen = self.once(published, baseline, look)?;
        while seen.machine.measurements.is_some()
            && published.is_some()
            && !seen.changes.is_empty()
            && seen.confirmations < self.confirm
        {
            let mut again = self.once(published, baseline, look)?;
            let changes = confirmed(&seen.changes, again.changes.clone());
            if let Some(published) = published {
                forget_passing(published, &mut again, &changes);
            }
            let confirmations = seen.confirmations + 1;
            seen = Seen { changes, machine: again.machine, confirmations };
        }
        Ok(seen)
    }

    fn once(
        &self,
        published: Option<&Machine>,
        baseline: Option<&Machine>,
        look: &mut Look<'_>,
    ) -> Result<Seen, Report> {
        let found = look()?;
        if found.snapshot().hosts().0.is_empty() && baseline.is_none() {
            return Err(RefreshError::NoHosts.into());
        }
        if let Some(baseline) = baseline {
            self.check_coverage(baseline, &found)?;
        }
        let (machine, changes) = match published {
            Some(published) => {
                let kept = keep_down(&published.snapshot(), &found.snapshot(), self.missing);
                let changes = self.changes(published, &kept);
                (kept, changes)
            }
            None => (found, Vec::new()),
        };
        Ok(Seen { machine, changes, confirmations: 0 })
    }

    /// The changes; none if only the states of hosts changed and `LookSettings` ignores them.
    pub(super) fn changes(&self, before: &Machine, after: &Machine) -> Vec<Change> {
        let changes = differences(before, after, &self.thresholds);
        if self.ignore_down && changes.iter().all(Change::is_about_state) { Vec::new() } else { changes }
    }

    /// Rejects a machine that has lost too many of the hosts that were up. The number that may be lost is rounded up: on a cluster of
    /// eight, 5 % is one host, because otherwise a single dead host would prevent any publication.
    pub(super) fn check_coverage(&self, baseline: &Machine, found: &Machine) -> Result<(), RefreshError> {
        let known = baseline.snapshot();
        let (hosts, _) = known.hosts();
        let seen = found.snapshot();
        let up: HashSet<&str> = seen.hosts().0.into_iter().collect();
        let missing: Vec<&str> = hosts.iter().filter(|host| !up.contains(**host)).copied().collect();
        // Rounding errors of a product such as 0.05 · 40 must not lead to the next integer.
        let may_be_lost = ((1.0 - self.min_coverage) * hosts.len() as f64 - 1e-9).ceil();
        if missing.len() as f64 <= may_be_lost {
            return Ok(());
        }
        Err(RefreshError::Coverage {
            up: hosts.len() - missing.len(),
            hosts: hosts.len(),
            missing: hopmap_changes::host_list(missing),
        })
    }
}

/// Pairs of hosts whose drift was not confirmed keep their published times: a temporary drift must not be published, or it would drift
/// back.
fn forget_passing(published: &Machine, seen: &mut Seen, changes: &[Change]) {
    let known: HashSet<_> = changes.iter().filter_map(Change::drifted).collect();
    let passing: HashSet<(&str, &str)> =
        seen.changes.iter().filter_map(Change::drifted).filter(|pair| !known.contains(pair)).collect();
    let is_passing = |a: &str, b: &str| passing.contains(&(a.min(b), a.max(b)));
    if let (Some(before), Some(after)) = (&published.measurements, &mut seen.machine.measurements) {
        keep_times(before, after, is_passing);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use hopmap_model::{
        CostModel, Endpoint, Levels, Measurements, Node, NodeState, ProbePhase, Sample, Slot, SystemGraph,
    };

    /// Three hosts; messages from the first to the second and to the third take these many µs, all others 100 µs.
    pub(in super::super) fn machine(micros: [f64; 2]) -> Machine {
        let hosts = 0..3_u32;
        let system = SystemGraph {
            routing: hopmap_model::Routing::default(),
            nodes: hosts.clone().map(|host| Node::host(format!("h{host}"))).collect(),
            links: Vec::new(),
            slots: hosts.clone().map(|host| Slot { host, core: 0 }).collect(),
            cost: CostModel::Levels(Levels { costs: vec![1.0], groups: vec![vec![0; 3]] }),
            calibration: Vec::new(),
        };
        let endpoint = |host| Endpoint { host: format!("h{host}"), core: 0, state: NodeState::Up };
        let sample = |(source, destination)| {
            let time = if source == 0 { micros[destination as usize - 1] * 2e-6 } else { 200e-6 };
            Sample {
                source,
                destination,
                phase: ProbePhase::Latency,
                bytes: 1,
                messages: 100,
                minimum_s: time,
                first_decile_s: time,
                median_s: time,
                ninth_decile_s: time,
                maximum_s: time,
            }
        };
        let measurements = Measurements {
            endpoints: hosts.map(endpoint).collect(),
            samples: [(0, 1), (0, 2), (1, 2)].map(sample).to_vec(),
            ..Measurements::default()
        };
        Machine { system, measurements: Some(measurements) }
    }

    fn seen(looks: &[f64], confirm: u32) -> (Vec<String>, u32, usize) {
        let settings = LookSettings {
            thresholds: Thresholds::default(),
            missing: Missing::Down,
            ignore_down: false,
            confirm,
            min_coverage: 0.5,
        };
        let before = machine([100.0; 2]);
        let mut looked = 0;
        let mut look = || {
            looked += 1;
            Ok(machine([looks[looked - 1], 100.0]))
        };
        let seen = settings.look(Some(&before), Some(&before), &mut look).unwrap();
        (seen.changes.iter().map(ToString::to_string).collect(), seen.confirmations, looked)
    }

    #[test]
    fn a_single_host_may_be_lost_however_small_the_machine() {
        let hosts = |up: u32, all: u32| {
            let nodes = (0..all).map(|host| Node {
                state: if host < up { NodeState::Up } else { NodeState::Down },
                ..Node::host(format!("h{host}"))
            });
            let system = SystemGraph { nodes: nodes.collect(), ..machine([1.0; 2]).system };
            Machine { system, measurements: None }
        };
        let lost = |up, all, min_coverage| {
            let settings = LookSettings {
                thresholds: Thresholds::default(),
                missing: Missing::Down,
                ignore_down: false,
                confirm: 2,
                min_coverage,
            };
            settings.check_coverage(&hosts(all, all), &hosts(up, all)).is_ok()
        };
        assert!(lost(7, 8, 0.95) && lost(15, 16, 0.95) && lost(19, 20, 0.95) && lost(38, 40, 0.95));
        assert!(!lost(6, 8, 0.95) && !lost(37, 40, 0.95) && !lost(7, 8, 1.0));
    }

    #[test]
    fn drift_counts_when_it_is_seen_every_time_in_the_same_direction() {
        assert_eq!(seen(&[100.0], 2), (vec![], 0, 1));
        let drifted = vec!["h0 – h1: 210 µs, was 100 µs (+110 %)".to_owned()];
        assert_eq!(seen(&[200.0, 190.0, 210.0], 2), (drifted, 2, 3));
        assert_eq!(seen(&[200.0, 110.0], 2), (vec![], 1, 2));
        assert_eq!(seen(&[200.0, 200.0, 50.0], 2), (vec![], 2, 3));
        assert_eq!(seen(&[50.0], 0).0, ["h0 – h1: 50 µs, was 100 µs (-50 %)"]);
    }
}
