//! `routes`: tables `routes`, `streams`, `hops` and `cycle`; `tables`: table `entries`; `diagnosis`: table `causes`; `failures`: table
//! `failures`.

use hopmap_model::{Cause, Diagnosis, Failure, Failures, Part, Route, Routes, TableEntry, Tables, to_u32};

use crate::codec::{Codec, Contents};
use crate::error::ArtifactError;
use crate::folder::Folder;
use crate::form::TableForm;
use crate::rows::Rows;

impl Codec for Routes {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str = "The path of every stream through a network of switches.";
    const TABLES: &'static [TableForm] =
        &[RouteRow::TABLE, StreamOfRoute::TABLE, HopOfRoute::TABLE, CycleLink::TABLE];
    const METRICS: &'static [(&'static str, &'static str)] = &[
        ("objective", "value of the objective function"),
        ("bound", "no solution has a smaller objective"),
        ("proven", "1 if the solution is proven optimal, else 0"),
        ("longest", "links of the longest route"),
        ("hops", "links of all routes together"),
        ("entries", "entries of all tables"),
        ("deadlock_free", "1 if no links can wait for each other in a cycle, else 0"),
        ("largest_link_utilisation", "largest fraction of a link's bandwidth that is used"),
        ("least_bandwidth_slack", "smallest bandwidth that a link has left"),
        ("least_bandwidth_slack_share", "smallest fraction of a link's bandwidth that is left"),
        ("least_performance_slack_share", "smallest fraction of a host's performance that is left"),
        ("largest_switch_load", "bandwidth that arrives at the busiest switch"),
        ("largest_link_load", "bandwidth that the busiest link carries"),
        ("largest_link_load_bound", "no routes leave the busiest link with less"),
    ];

    fn encode(&self) -> Contents {
        let route = |route: &Route| RouteRow {
            source: route.source,
            destination: route.destination,
            bandwidth_bytes_per_s: route.bandwidth_bytes_per_s,
            hops: to_u32(route.links.len()),
        };
        let numbered = || (0..).zip(&self.routes);
        let streams = numbered().flat_map(|(id, route)| {
            route.streams.iter().map(move |&stream| StreamOfRoute { route: id, stream })
        });
        let hops = numbered().flat_map(|(route, links)| {
            (0..).zip(&links.links).map(move |(hop, &link)| HopOfRoute { route, hop, link })
        });
        Contents::new()
            .table(RouteRow::table(self.routes.iter().map(route)))
            .table(StreamOfRoute::table(streams))
            .table(HopOfRoute::table(hops))
            .table(CycleLink::table(self.cycle.iter().map(|&link| CycleLink { link })))
            .metrics(&self.metrics)
            .attribute("counting", serde_json::to_value(self.counting).unwrap_or_default())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let route = |row| {
            let RouteRow { source, destination, bandwidth_bytes_per_s, .. } = row;
            Route { source, destination, bandwidth_bytes_per_s, ..Route::default() }
        };
        let mut routes: Vec<Route> = folder.rows()?.into_iter().map(route).collect();
        for StreamOfRoute { route, stream } in folder.rows()? {
            folder.owner::<StreamOfRoute, _>(&mut routes, route)?.streams.push(stream);
        }
        let table = folder.table("hops")?;
        for HopOfRoute { route, hop, link } in HopOfRoute::read(&table)? {
            let links = &mut folder.owner::<HopOfRoute, _>(&mut routes, route)?.links;
            if links.len() != hop as usize {
                let reason = format!("does not number the hops of route {route} consecutively");
                return Err(table.error("hop", reason));
            }
            links.push(link);
        }
        Ok(Self {
            routes,
            counting: folder.attribute("counting")?,
            cycle: folder.rows()?.into_iter().map(|CycleLink { link }| link).collect(),
            metrics: folder.description().metrics.clone(),
        })
    }
}

table_rows!("routes": struct RouteRow [route = "route, from 0"] {
    source: u32 = "host that sends",
    destination: u32 = "host that receives",
    bandwidth_bytes_per_s: f64 = "bandwidth that it occupies on every link",
    hops: u32 = "number of links",
});

table_rows!("streams": struct StreamOfRoute { route: u32 = "route", stream: u32 = "stream that takes it" });

table_rows!("hops": struct HopOfRoute {
    route: u32 = "route",
    hop: u32 = "position on the route, from 0",
    link: u32 = "link of the machine",
});

table_rows!("cycle": struct CycleLink { link: u32 = "links that can deadlock, each waiting for the next" });

impl Codec for Tables {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str = "The forwarding tables of all switches.";
    const TABLES: &'static [TableForm] = &[TableEntry::TABLE];
    const METRICS: &'static [(&'static str, &'static str)] = &[
        ("entries", "number of entries; with the metrics of `routes`"),
        (
            "busiest_all_to_all",
            "`route/fabric`: pairs of hosts over the busiest link between switches, of all pairs",
        ),
        ("busiest_shift", "the same of the worst shift: every host sends to the one some places further"),
        ("mean_busiest_shift", "the same in the mean of all shifts"),
        (
            "busiest_bit_reversal",
            "the same if every host sends to the one whose number has its bits in reverse",
        ),
        ("busiest_bound", "no tables have a smaller `busiest_all_to_all`"),
        (
            "busiest_program_bytes",
            "`route/fabric` with a program: its bytes over the busiest link between switches",
        ),
    ];

    fn encode(&self) -> Contents {
        Contents::new().table(TableEntry::table(&self.entries)).metrics(&self.metrics)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let tables = Self { entries: folder.rows()?, metrics: folder.description().metrics.clone() };
        tables.check().map_err(|error| folder.invalid(error))?;
        Ok(tables)
    }
}

table_rows!("entries": TableEntry {
    switch: u32 = "switch",
    input_port: Option<u32> = "input port of the table; missing for a table of all ports",
    destination: u32 = "host that a packet is for",
    output_port: u32 = "port through which it leaves",
});

value_names!(Part = &Part::NAMES);
value_names!(Option<bool>: Some(true) => "yes", Some(false) => "no", None => "unknown");

impl Codec for Diagnosis {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str = "Why a problem is infeasible, and which changes would make it feasible.";
    const TABLES: &'static [TableForm] = &[Cause::TABLE];
    const METRICS: &'static [(&'static str, &'static str)] =
        &[("infeasible", "1 where `allow_infeasible` made this a result")];

    fn encode(&self) -> Contents {
        Contents::new().table(Cause::table(&self.causes)).metrics(&self.metrics)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        Ok(Self { causes: folder.rows()?, metrics: folder.description().metrics.clone() })
    }
}

table_rows!("causes": Cause {
    remedy: u32 = "remedy that the cause belongs to; any one remedy is enough",
    part: Part = "`link`, `switch`, `host`, `process` or `stream`",
    name: String = "name of the part",
    there: Option<f64> = "amount that is available",
    needed: Option<f64> = "amount that is required",
    words: String = "the cause in a sentence",
});

impl Codec for Failures {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str = "The effect of every single failure of a link, switch or host.";
    const TABLES: &'static [TableForm] = &[Failure::TABLE];
    const METRICS: &'static [(&'static str, &'static str)] = &[
        ("failures", "number of failures examined"),
        ("survived", "of these, those that the program survives"),
        ("lost", "of these, those that it does not survive"),
        ("unknown", "of these, those for which the limits left no answer"),
        ("worst_objective", "largest objective after a failure that it survives"),
        ("most_moved", "largest number of processes that a failure moves"),
        ("proven", "1 if every answer is proven, else 0"),
    ];

    fn encode(&self) -> Contents {
        Contents::new().table(Failure::table(&self.failures)).metrics(&self.metrics)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        Ok(Self { failures: folder.rows()?, metrics: folder.description().metrics.clone() })
    }
}

table_rows!("failures": Failure {
    part: Part = "kind of the part that fails",
    name: String = "its name",
    survived: Option<bool> = "`yes`, `no` or `unknown`",
    objective: Option<f64> = "objective after the failure",
    longest: Option<u32> = "links of the longest route after it",
    moved: u32 = "processes that move to another host",
    rerouted: u32 = "streams that take another route",
    changed_entries: u32 = "table entries that change",
    shortage: String = "what is missing, if the program does not survive",
});
