//! `metrics`: table `placements`, one column per metric.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Metrics, PlacementMetrics, PlacementOrigin};

use crate::{ArtifactError, Codec, Contents, Folder, Table};

impl Codec for Metrics {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let names: BTreeSet<&String> = self.placements.iter().flat_map(|row| row.values.keys()).collect();
        let table = Table::new("placements")
            .text("placement", self.placements.iter().map(|row| row.origin.name()))
            .u32("sample", self.placements.iter().map(|row| row.sample));
        let table = names.into_iter().fold(table, |table, name| {
            table.optional_f64(name, self.placements.iter().map(|row| row.values.get(name).copied()))
        });
        Contents::new().table(table).metrics(&self.summary)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let table = folder.table("placements")?;
        let origin = |name: String| {
            let origin = PlacementOrigin::ALL.into_iter().find(|origin| origin.name() == name);
            origin
                .ok_or_else(|| table.error("placement", format!("holds `{name}`, which is not a placement")))
        };
        let origins: Vec<PlacementOrigin> =
            table.text("placement")?.into_iter().map(origin).collect::<Result<_, _>>()?;
        let mut placements: Vec<PlacementMetrics> = origins
            .into_iter()
            .zip(table.u32("sample")?)
            .map(|(origin, sample)| PlacementMetrics { origin, sample, values: BTreeMap::new() })
            .collect();
        for name in table.names().into_iter().filter(|name| name != "placement" && name != "sample") {
            for (row, value) in placements.iter_mut().zip(table.optional_f64(&name)?) {
                row.values.extend(value.map(|value| (name.clone(), value)));
            }
        }
        Ok(Self { placements, summary: folder.description().metrics.clone() })
    }
}
