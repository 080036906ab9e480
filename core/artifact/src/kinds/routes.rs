//! `routes`: tables `routes`, `streams`, `hops` and `cycle`; `tables`: table `entries`; `diagnosis`: table `causes`; `failures`: table
//! `failures`.

use hopmap_model::{Cause, Diagnosis, Failure, Failures, Part, Route, Routes, TableEntry, Tables, to_u32};

use crate::{ArtifactError, Codec, Columns, Contents, Folder, Table};

impl Codec for Routes {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let numbered = || (0..).zip(&self.routes);
        let streams =
            || numbered().flat_map(|(id, route)| route.streams.iter().map(move |&stream| (id, stream)));
        let hops = || {
            numbered()
                .flat_map(|(id, route)| (0..).zip(&route.links).map(move |(hop, &link)| (id, hop, link)))
        };
        Contents::new()
            .table(
                Table::new("routes")
                    .u32("route", 0..to_u32(self.routes.len()))
                    .u32("source", self.routes.iter().map(|route| route.source))
                    .u32("destination", self.routes.iter().map(|route| route.destination))
                    .f64("bandwidth_bytes_per_s", self.routes.iter().map(|route| route.bandwidth_bytes_per_s))
                    .u32("hops", self.routes.iter().map(|route| to_u32(route.links.len()))),
            )
            .table(
                Table::new("streams")
                    .u32("route", streams().map(|row| row.0))
                    .u32("stream", streams().map(|row| row.1)),
            )
            .table(
                Table::new("hops")
                    .u32("route", hops().map(|row: (u32, u32, u32)| row.0))
                    .u32("hop", hops().map(|row| row.1))
                    .u32("link", hops().map(|row| row.2)),
            )
            .table(Table::new("cycle").u32("link", self.cycle.iter().copied()))
            .metrics(&self.metrics)
            .attribute("counting", serde_json::to_value(self.counting).unwrap_or_default())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let table = folder.table("routes")?;
        table.index("route")?;
        let ends = table.u32("source")?.into_iter().zip(table.u32("destination")?);
        let route = |((source, destination), bandwidth_bytes_per_s)| Route {
            source,
            destination,
            bandwidth_bytes_per_s,
            ..Route::default()
        };
        let mut routes: Vec<Route> = ends.zip(table.f64("bandwidth_bytes_per_s")?).map(route).collect();
        let table = folder.table("streams")?;
        for (id, stream) in table.u32("route")?.into_iter().zip(table.u32("stream")?) {
            let route = routes.get_mut(id as usize).ok_or_else(|| missing(&table, id))?;
            route.streams.push(stream);
        }
        let table = folder.table("hops")?;
        for ((id, hop), link) in
            table.u32("route")?.into_iter().zip(table.u32("hop")?).zip(table.u32("link")?)
        {
            let route = routes.get_mut(id as usize).ok_or_else(|| missing(&table, id))?;
            if route.links.len() != hop as usize {
                return Err(
                    table.error("hop", format!("does not number the hops of route {id} consecutively"))
                );
            }
            route.links.push(link);
        }
        Ok(Self {
            routes,
            counting: folder.attribute("counting")?,
            cycle: folder.table("cycle")?.u32("link")?,
            metrics: folder.description().metrics.clone(),
        })
    }
}

fn missing(table: &Columns, route: u32) -> ArtifactError {
    table.error("route", format!("names route {route}, which does not exist"))
}

impl Codec for Tables {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        Contents::new().table(encode_entries(Table::new("entries"), &self.entries)).metrics(&self.metrics)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let tables = Self {
            entries: decode_entries(&folder.table("entries")?)?,
            metrics: folder.description().metrics.clone(),
        };
        tables.check().map_err(|error| folder.invalid(error))?;
        Ok(tables)
    }
}

rows!(encode_entries, decode_entries: TableEntry {
    u32 switch,
    optional_u32 input_port,
    u32 destination,
    u32 output_port,
});

const PARTS: [(Part, &str); 5] = [
    (Part::Link, "link"),
    (Part::Switch, "switch"),
    (Part::Host, "host"),
    (Part::Process, "process"),
    (Part::Stream, "stream"),
];
const SURVIVED: [(Option<bool>, &str); 3] = [(Some(true), "yes"), (Some(false), "no"), (None, "unknown")];

impl Codec for Diagnosis {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        Contents::new().table(encode_causes(Table::new("causes"), &self.causes)).metrics(&self.metrics)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let causes = decode_causes(&folder.table("causes")?)?;
        Ok(Self { causes, metrics: folder.description().metrics.clone() })
    }
}

rows!(encode_causes, decode_causes: Cause {
    u32 remedy,
    text part in PARTS,
    text name,
    optional_f64 there,
    optional_f64 needed,
    text words,
});

impl Codec for Failures {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        Contents::new().table(encode_failures(Table::new("failures"), &self.failures)).metrics(&self.metrics)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let failures = decode_failures(&folder.table("failures")?)?;
        Ok(Self { failures, metrics: folder.description().metrics.clone() })
    }
}

rows!(encode_failures, decode_failures: Failure {
    text part in PARTS,
    text name,
    text survived in SURVIVED,
    optional_f64 objective,
    optional_u32 longest,
    u32 moved,
    u32 rerouted,
    u32 changed_entries,
    text shortage,
});
