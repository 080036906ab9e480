//! `routes`: tables `routes`, `streams`, `hops` and `cycle`; `tables`: table `entries`.

use hopmap_model::{Route, Routes, TableEntry, Tables};

use crate::{ArtifactError, Codec, Contents, Folder, Table};

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
                    .u32("route", 0..self.routes.len() as u32)
                    .u32("source", self.routes.iter().map(|route| route.source))
                    .u32("destination", self.routes.iter().map(|route| route.destination))
                    .f64("bandwidth_bytes_per_s", self.routes.iter().map(|route| route.bandwidth_bytes_per_s))
                    .u32("hops", self.routes.iter().map(|route| route.links.len() as u32)),
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
                return Err(table.error("hop", format!("does not count the hops of route {id}")));
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

fn missing(table: &crate::Columns, route: u32) -> ArtifactError {
    table.error("route", format!("names route {route}, which does not exist"))
}

impl Codec for Tables {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        Contents::new()
            .table(
                Table::new("entries")
                    .u32("switch", self.entries.iter().map(|entry| entry.switch))
                    .optional_u32("input_port", self.entries.iter().map(|entry| entry.input_port))
                    .u32("destination", self.entries.iter().map(|entry| entry.destination))
                    .u32("output_port", self.entries.iter().map(|entry| entry.output_port)),
            )
            .metrics(&self.metrics)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let table = folder.table("entries")?;
        let (switches, inputs) = (table.u32("switch")?, table.optional_u32("input_port")?);
        let (destinations, outputs) = (table.u32("destination")?, table.u32("output_port")?);
        let entry = |row: usize| TableEntry {
            switch: switches[row],
            input_port: inputs[row],
            destination: destinations[row],
            output_port: outputs[row],
        };
        let tables = Self {
            entries: (0..table.rows()).map(entry).collect(),
            metrics: folder.description().metrics.clone(),
        };
        tables.check().map_err(|error| folder.invalid(error))?;
        Ok(tables)
    }
}
