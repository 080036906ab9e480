//! Generated instances, for tests and benchmarks.

use std::fmt::Write;
use std::path::Path;

use hopmap_text::FileError;

use hopmap_route::Instance;

/// A mesh of switches with hosts at each, and a program of random streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mesh {
    /// Rows of switches.
    pub(crate) rows: usize,
    /// Columns of switches.
    pub(crate) columns: usize,
    /// Hosts at every switch; one process fits on each.
    pub(crate) hosts: usize,
    /// Processes, no more than there are hosts.
    pub(crate) processes: usize,
    /// Streams between different processes, at most one per ordered pair.
    pub(crate) streams: usize,
    /// Bandwidth of links between switches; links of hosts have twice that, streams take 10 to 40.
    pub(crate) bandwidth: usize,
    /// Type of the switches.
    pub(crate) switch_type: usize,
    /// Random seed of the streams.
    pub(crate) seed: u64,
}

impl std::fmt::Display for Mesh {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rows, columns, processes, streams, switch_type, .. } = self;
        write!(formatter, "{rows} × {columns}, {processes} processes, {streams} streams, type {switch_type}")
    }
}

impl Mesh {
    /// The instance, with process `i` on host `i` if it is `mapped`.
    pub(crate) fn instance(&self, mapped: bool) -> Result<Instance, FileError> {
        let mut text = String::new();
        let switches = self.rows * self.columns;
        let all = |count: usize, what: &dyn Fn(usize) -> String| {
            (0..count).map(what).collect::<Vec<_>>().join(", ")
        };
        let hosts = all(switches * self.hosts, &|i| format!("{{ name = \"h{i}\", performance = 1 }}"));
        let kind = self.switch_type;
        let names = all(switches, &|i| format!("{{ name = \"s{i}\", type = {kind} }}"));
        let processes = all(self.processes, &|i| format!("{{ name = \"p{i}\", requires = 1 }}"));
        let _ = writeln!(text, "hosts = [{hosts}]\nswitches = [{names}]\nprocesses = [{processes}]");
        let _ = writeln!(text, "links = [{}]", self.links().join(", "));
        let _ = writeln!(text, "streams = [{}]", self.streams().join(", "));
        if mapped {
            let _ =
                writeln!(text, "mapping = {{ {} }}", all(self.processes, &|i| format!("p{i} = \"h{i}\"")));
        }
        Instance::parse(text.as_bytes(), Path::new("mesh"))
    }

    fn links(&self) -> Vec<String> {
        let mut links = Vec::new();
        let mut join = |a: String, b: String, bandwidth: usize| {
            links.push(format!("{{ a = \"{a}\", b = \"{b}\", bandwidth = {bandwidth} }}"));
        };
        for switch in 0..self.rows * self.columns {
            let (row, column) = (switch / self.columns, switch % self.columns);
            if column + 1 < self.columns {
                join(format!("s{switch}"), format!("s{}", switch + 1), self.bandwidth);
            }
            if row + 1 < self.rows {
                join(format!("s{switch}"), format!("s{}", switch + self.columns), self.bandwidth);
            }
            for host in switch * self.hosts..(switch + 1) * self.hosts {
                join(format!("s{switch}"), format!("h{host}"), 2 * self.bandwidth);
            }
        }
        links
    }

    fn streams(&self) -> Vec<String> {
        let mut state = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut pairs = std::collections::BTreeSet::new();
        let mut streams = Vec::new();
        let most = self.processes * self.processes.saturating_sub(1);
        while streams.len() < self.streams.min(most) {
            let (from, to) = (random(self.processes), random(self.processes));
            if from != to && pairs.insert((from, to)) {
                let bandwidth = 10 * (1 + random(4));
                streams.push(format!("{{ from = \"p{from}\", to = \"p{to}\", bandwidth = {bandwidth} }}"));
            }
        }
        streams
    }
}
