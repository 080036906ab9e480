//! The timeline of a prediction as Chrome trace events, for ui.perfetto.dev: a process per host, a track per rank.

use hopmap_model::{Activity, Mapping, Prediction};
use serde_json::{Value, json};

/// The trace events. Times are in microseconds.
pub(crate) fn write(prediction: &Prediction, mapping: &Mapping) -> String {
    let mut events: Vec<Value> = Vec::new();
    let hosts = (0..).zip(&mapping.hosts);
    events.extend(hosts.map(|(host, name)| {
        json!({ "ph": "M", "name": "process_name", "pid": host, "args": { "name": name.host } })
    }));
    let host = |rank: u32| mapping.ranks.get(rank as usize).map_or(0, |placement| placement.host);
    events.extend((0..prediction.ranks.len() as u32).map(|rank| {
        let name = format!("rank {rank}");
        json!({ "ph": "M", "name": "thread_name", "pid": host(rank), "tid": rank, "args": { "name": name } })
    }));
    events.extend(prediction.intervals.iter().map(|interval| {
        let name = match interval.activity {
            Activity::Computing => "computing",
            Activity::Sending => "sending",
            Activity::Waiting => "waiting",
        };
        let args = interval.peer.map_or_else(|| json!({}), |peer| json!({ "peer": peer }));
        json!({
            "ph": "X", "name": name, "pid": host(interval.rank), "tid": interval.rank, "ts": interval.start_s * 1e6,
            "dur": (interval.finish_s - interval.start_s) * 1e6, "args": args,
        })
    }));
    json!({ "traceEvents": events, "displayTimeUnit": "ns" }).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hopmap_model::{HostSlots, Interval, Placement, RankTimes, Weight};

    use super::*;

    #[test]
    fn every_host_is_a_process_and_every_rank_a_track() {
        let interval =
            Interval { rank: 1, start_s: 0.5, finish_s: 1.5, activity: Activity::Waiting, peer: Some(0) };
        let prediction = Prediction {
            ranks: vec![RankTimes::default(); 2],
            intervals: vec![interval],
            ..Prediction::default()
        };
        let host = |(first_slot, host): (u32, &str)| HostSlots { host: host.into(), first_slot, slots: 1 };
        let mapping = Mapping {
            ranks: vec![0, 1].into_iter().map(|slot| Placement { slot, host: slot, core: None }).collect(),
            hosts: (0..).zip(["a", "b"]).map(host).collect(),
            weight: Weight::Bytes,
            metrics: BTreeMap::new(),
            convergence: Vec::new(),
            complete: true,
        };
        let document: Value = serde_json::from_str(&write(&prediction, &mapping)).unwrap();
        let events = document["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 5);
        let waiting = &events[4];
        assert_eq!(
            (&waiting["name"], &waiting["pid"], &waiting["tid"]),
            (&json!("waiting"), &json!(1), &json!(1))
        );
        assert_eq!(
            (&waiting["ts"], &waiting["dur"], &waiting["args"]["peer"]),
            (&json!(5e5), &json!(1e6), &json!(0))
        );
    }
}
