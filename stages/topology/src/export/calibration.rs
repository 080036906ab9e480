//! Costs of messages as options of simulators: SMPI of SimGrid, and LogGOPSim.

use std::fmt::Write;

use hopmap_model::{CostName, Paths, SystemGraph};
use hopmap_statistics::lower_median;

use super::ExportError;
use crate::params::Written;

/// The options of SMPI that correspond to costs, with and without seconds per byte.
const SMPI: [(&str, CostName, bool); 5] = [
    ("smpi/os", CostName::Send, true),
    ("smpi/ois", CostName::Isend, true),
    ("smpi/or", CostName::Recv, true),
    ("smpi/lat-factor", CostName::LatencyFactor, false),
    ("smpi/bw-factor", CostName::BandwidthFactor, false),
];

/// Options of `smpirun`, one per line. The model is that of the replay with `sharing = "rtt"`.
pub(super) fn smpi(system: &SystemGraph) -> Written {
    require(system, "options of SMPI")?;
    let mut text = String::from(
        "--cfg=network/model:SMPI\n--cfg=network/crosstraffic:0\n--cfg=network/weight-S:0\n--cfg=network/TCP-gamma:0\n",
    );
    for (option, cost, has_slope) in SMPI {
        let rows = system.calibration.iter().filter(|row| row.cost == cost);
        let segment = |row: &hopmap_model::CalibratedCost| match has_slope {
            true => format!("{}:{:e}:{:e}", row.above_bytes, row.value, row.per_byte),
            false => format!("{}:{}", row.above_bytes, row.value),
        };
        let segments: Vec<String> = rows.map(segment).collect();
        if !segments.is_empty() {
            let _ = writeln!(text, "--cfg={option}:{}", segments.join(";"));
        }
    }
    if let Some(bytes) = value(system, CostName::EagerLimit) {
        let _ = writeln!(
            text,
            "--cfg=smpi/async-small-thresh:{bytes}\n--cfg=smpi/send-is-detached-thresh:{bytes}"
        );
    }
    let memory = [CostName::MemoryLatency, CostName::MemoryBandwidth];
    let mut lost = vec!["equal shares of links: those of SimGrid depend on the latency of routes".to_owned()];
    if memory.into_iter().any(|cost| value(system, cost).is_some()) {
        lost.push("rates within hosts: SimGrid takes them from the platform".to_owned());
    }
    Ok((text, lost))
}

/// L, o, g, G, O and S in nanoseconds and bytes. All pairs are equally far apart in LogGOPSim: L and G are
/// medians over the pairs of hosts.
pub(super) fn loggopsim(system: &SystemGraph) -> Written {
    const FORMAT: &str = "options of LogGOPSim";
    require(system, FORMAT)?;
    let (latency, bandwidth) = median_route(system).ok_or_else(|| {
        let help = "measure several hosts with topology/probe";
        ExportError::impossible(FORMAT, "no two hosts have a route with latency and bandwidth", help)
    })?;
    let of = |cost, per_byte: bool| {
        let row = system.calibration.iter().find(|row| row.cost == cost);
        row.map_or(0.0, |row| if per_byte { row.per_byte } else { row.value })
    };
    let mean = |per_byte| f64::midpoint(of(CostName::Send, per_byte), of(CostName::Recv, per_byte));
    let nanoseconds = |seconds: f64| (seconds * 1e9).round().max(0.0) as u64;
    let (overhead, factor) = (mean(false), value(system, CostName::BandwidthFactor).unwrap_or(1.0));
    let latency = latency * value(system, CostName::LatencyFactor).unwrap_or(1.0);
    let eager = value(system, CostName::EagerLimit).map_or(65536, |bytes| bytes as u64);
    let text = format!(
        "-L {} -o {} -g {} -G {} -O {} -S {eager}\n",
        nanoseconds(latency),
        nanoseconds(overhead),
        nanoseconds(overhead),
        nanoseconds(1.0 / (bandwidth * factor)),
        nanoseconds(mean(true)),
    );
    let lost = [
        "distances of hosts and shared links: L and G are medians over pairs of hosts",
        "costs by size: those of the smallest messages, rounded to nanoseconds",
    ];
    Ok((text, lost.map(str::to_owned).into()))
}

fn require(system: &SystemGraph, format: &'static str) -> Result<(), ExportError> {
    match system.calibration.is_empty() {
        true => {
            let help = "measure it with topology/probe; machines that are given have no costs of messages";
            Err(ExportError::impossible(format, "it is not calibrated", help))
        }
        false => Ok(()),
    }
}

/// The value of the first row of a cost.
fn value(system: &SystemGraph, cost: CostName) -> Option<f64> {
    system.calibration.iter().find(|row| row.cost == cost).map(|row| row.value)
}

/// Medians of latency and bandwidth over pairs of hosts.
fn median_route(system: &SystemGraph) -> Option<(f64, f64)> {
    let paths = Paths::new(system)?;
    let hosts: Vec<u32> = system.hosts().map(|(node, ..)| node).collect();
    let (mut latencies, mut bandwidths) = (Vec::new(), Vec::new());
    for (index, &from) in hosts.iter().enumerate() {
        for &to in &hosts[index + 1..] {
            let links = paths.path(from, to).unwrap_or_default();
            let links = links.iter().map(|&link| &system.links[link as usize]);
            latencies.extend(links.clone().map(|link| link.latency_s).sum::<Option<f64>>());
            let narrowest = links.map(|link| link.bandwidth_bytes_per_s).collect::<Option<Vec<f64>>>();
            bandwidths.extend(narrowest.into_iter().flatten().reduce(f64::min));
        }
    }
    Some((lower_median(latencies)?, lower_median(bandwidths)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{CalibratedCost, CostModel, Levels, Link, Node, Routing, Slot};

    fn machine() -> SystemGraph {
        let link = |(source, destination)| Link {
            latency_s: Some(1e-6),
            bandwidth_bytes_per_s: Some(1e9),
            ..Link::new(source, destination)
        };
        let row = |cost, above_bytes, value, per_byte| CalibratedCost { cost, above_bytes, value, per_byte };
        SystemGraph {
            nodes: vec![Node::host("a"), Node::host("b")],
            links: [(0, 1), (1, 0)].map(link).into(),
            slots: vec![Slot { host: 0, core: 0 }, Slot { host: 1, core: 0 }],
            cost: CostModel::Levels(Levels { costs: vec![1.0], groups: vec![vec![0, 0]] }),
            routing: Routing::default(),
            calibration: vec![
                row(CostName::Send, 0, 2e-6, 1e-9),
                row(CostName::Send, 1023, 3e-6, 0.0),
                row(CostName::Recv, 0, 4e-6, 3e-9),
                row(CostName::LatencyFactor, 0, 1.5, 0.0),
                row(CostName::BandwidthFactor, 0, 0.5, 0.0),
                row(CostName::EagerLimit, 0, 4096.0, 0.0),
            ],
        }
    }

    #[test]
    fn costs_are_options_of_both_simulators() {
        let (text, _) = smpi(&machine()).unwrap();
        let options: Vec<&str> = text.lines().skip(4).collect();
        let expected = [
            "--cfg=smpi/os:0:2e-6:1e-9;1023:3e-6:0e0",
            "--cfg=smpi/or:0:4e-6:3e-9",
            "--cfg=smpi/lat-factor:0:1.5",
            "--cfg=smpi/bw-factor:0:0.5",
            "--cfg=smpi/async-small-thresh:4096",
            "--cfg=smpi/send-is-detached-thresh:4096",
        ];
        assert_eq!(options, expected);
        let (text, lost) = loggopsim(&machine()).unwrap();
        assert_eq!(text, "-L 1500 -o 3000 -g 3000 -G 2 -O 2 -S 4096\n");
        assert_eq!(lost.len(), 2);
    }

    #[test]
    fn a_machine_without_calibration_is_refused() {
        let machine = SystemGraph { calibration: Vec::new(), ..machine() };
        assert!(smpi(&machine).unwrap_err().to_string().contains("it is not calibrated"));
        assert!(loggopsim(&machine).unwrap_err().to_string().contains("it is not calibrated"));
    }
}
