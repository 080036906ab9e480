//! `mapping`: tables `ranks`, `hosts` and `convergence`.

use std::collections::BTreeMap;

use hopmap_model::{ConvergencePoint, HostSlots, Mapping, Placement};

use crate::{ArtifactError, Codec, Contents, Folder, Table};

impl Codec for Mapping {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let ranks = Table::new("ranks")
            .u32("rank", 0..self.ranks.len() as u32)
            .u32("slot", self.ranks.iter().map(|placement| placement.slot))
            .text("host", (0..self.ranks.len()).map(|rank| self.host_of(rank)))
            .optional_u32("core", self.ranks.iter().map(|placement| placement.core));
        let hosts = Table::new("hosts")
            .text("host", self.hosts.iter().map(|host| &host.host))
            .u32("first_slot", self.hosts.iter().map(|host| host.first_slot))
            .u32("slots", self.hosts.iter().map(|host| host.slots));
        Contents::new()
            .table(ranks)
            .table(hosts)
            .table(encode_convergence(&self.convergence))
            .metrics(&self.metrics)
            .attribute("weight", serde_json::to_value(self.weight).unwrap_or_default())
            .attribute("complete", self.complete.into())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let hosts = folder.table("hosts")?;
        let (names, first, counts) = (hosts.text("host")?, hosts.u32("first_slot")?, hosts.u32("slots")?);
        let hosts: Vec<HostSlots> = names
            .into_iter()
            .zip(first.into_iter().zip(counts))
            .map(|(host, (first_slot, slots))| HostSlots { host, first_slot, slots })
            .collect();
        let index: BTreeMap<&str, u32> =
            hosts.iter().enumerate().map(|(index, host)| (host.host.as_str(), index as u32)).collect();
        let table = folder.table("ranks")?;
        table.index("rank")?;
        let (slots, names, cores) = (table.u32("slot")?, table.text("host")?, table.optional_u32("core")?);
        let placement = |((slot, name), core): ((u32, String), Option<u32>)| match index.get(name.as_str()) {
            Some(&host) => Ok(Placement { slot, host, core }),
            None => Err(table.error("host", format!("names `{name}`, which the table `hosts` lacks"))),
        };
        let ranks = slots.into_iter().zip(names).zip(cores).map(placement).collect::<Result<_, _>>()?;
        let mapping = Self {
            ranks,
            weight: folder.attribute("weight")?,
            metrics: folder.description().metrics.clone(),
            convergence: decode_convergence(folder)?,
            complete: folder.attribute("complete")?,
            hosts,
        };
        mapping.check().map_err(|error| folder.invalid(error))?;
        Ok(mapping)
    }
}

pub(super) fn encode_convergence(points: &[ConvergencePoint]) -> Table {
    Table::new("convergence")
        .u32("island", points.iter().map(|point| point.island))
        .u64("evaluations", points.iter().map(|point| point.evaluations))
        .f64("cost", points.iter().map(|point| point.cost))
}

pub(super) fn decode_convergence(folder: &Folder) -> Result<Vec<ConvergencePoint>, ArtifactError> {
    let table = folder.table("convergence")?;
    let (island, evaluations, cost) = (table.u32("island")?, table.u64("evaluations")?, table.f64("cost")?);
    let point =
        |row: usize| ConvergencePoint { island: island[row], evaluations: evaluations[row], cost: cost[row] };
    Ok((0..table.rows()).map(point).collect())
}
