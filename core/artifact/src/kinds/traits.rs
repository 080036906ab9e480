//! Traits of nodes and demands of processes: optional tables of `system-graph` and `task-graph`.

use hopmap_model::{Demands, Node, NodeTraits, ProcessDemand, Stream, SwitchType};

use crate::codec::Contents;
use crate::error::ArtifactError;
use crate::folder::Folder;
use crate::rows::Rows;

table_rows!("traits" if "where nodes have traits (`route/*`)": NodeTraits [node = "node"] {
    performance: Option<f64> = "performance of a host",
    switch_type: Option<SwitchType> = "1: one table for the switch; 2: one for each port",
} other capabilities devices);

table_rows!("capabilities" if "where nodes have traits": pub(super) struct Capability {
    node: u32 = "host",
    capability: String = "a capability of it",
});

table_rows!("devices" if "where nodes have traits": pub(super) struct DeviceOfNode {
    node: u32 = "host",
    device: String = "kind of device",
    count: u32 = "number of devices",
});

table_rows!("demands" if "where processes have demands (`route/*`)": ProcessDemand [rank = "process"] {
    name: String = "its name",
    performance: f64 = "performance that it requires",
    host: Option<String> = "host on which it must run",
} other capabilities devices);

table_rows!("demanded_capabilities" if "where processes have demands": pub(super) struct DemandedCapability {
    rank: u32 = "process",
    capability: String = "capability that its host must have",
});

table_rows!("demanded_devices" if "where processes have demands": pub(super) struct DemandedDevice {
    rank: u32 = "process",
    device: String = "kind of device",
    count: u32 = "number of devices that it occupies",
});

table_rows!("streams" if "where a program has streams": Stream [stream = "stream, from 0"] {
    source: u32 = "process that sends",
    destination: u32 = "process that receives",
    bandwidth_bytes_per_s: f64 = "bandwidth, in the unit of the links",
});

/// Adds those of the tables `traits`, `capabilities` and `devices` that have rows.
pub(super) fn encode_traits(contents: Contents, nodes: &[Node]) -> Contents {
    let traits = || nodes.iter().map(|node| &node.traits);
    let has_any = |traits: &NodeTraits| traits.performance.is_some() || traits.switch_type.is_some();
    let contents = match traits().any(has_any) {
        true => contents.table(NodeTraits::table(traits())),
        false => contents,
    };
    let numbered = || (0..).zip(traits());
    let capabilities = numbered().flat_map(|(node, of)| {
        of.capabilities.iter().cloned().map(move |capability| Capability { node, capability })
    });
    let devices = numbered().flat_map(|(node, of)| {
        of.devices.iter().map(move |(device, &count)| DeviceOfNode { node, device: device.clone(), count })
    });
    contents.given(Capability::table(capabilities)).given(DeviceOfNode::table(devices))
}

pub(super) fn decode_traits(folder: &Folder, nodes: &mut [Node]) -> Result<(), ArtifactError> {
    if let Some(table) = folder.optional_table(NodeTraits::TABLE.name)? {
        if table.rows() != nodes.len() {
            return Err(table.error("node", "does not number the nodes consecutively"));
        }
        for (node, traits) in nodes.iter_mut().zip(NodeTraits::read(&table)?) {
            node.traits = traits;
        }
    }
    for Capability { node, capability } in folder.given_rows()? {
        folder.owner::<Capability, _>(nodes, node)?.traits.capabilities.push(capability);
    }
    for DeviceOfNode { node, device, count } in folder.given_rows()? {
        folder.owner::<DeviceOfNode, _>(nodes, node)?.traits.devices.insert(device, count);
    }
    Ok(())
}

/// Adds those of the tables `demands`, `demanded_capabilities`, `demanded_devices` and `streams` that have
/// rows.
pub(super) fn encode_demands(contents: Contents, demands: &Demands) -> Contents {
    let numbered = || (0..).zip(&demands.processes);
    let capabilities = numbered().flat_map(|(rank, of)| {
        of.capabilities.iter().cloned().map(move |capability| DemandedCapability { rank, capability })
    });
    let devices = numbered().flat_map(|(rank, of)| {
        of.devices.iter().map(move |(device, &count)| DemandedDevice { rank, device: device.clone(), count })
    });
    contents
        .given(ProcessDemand::table(&demands.processes))
        .given(DemandedCapability::table(capabilities))
        .given(DemandedDevice::table(devices))
        .given(Stream::table(&demands.streams))
}

pub(super) fn decode_demands(folder: &Folder) -> Result<Demands, ArtifactError> {
    let mut processes: Vec<ProcessDemand> = folder.given_rows()?;
    for DemandedCapability { rank, capability } in folder.given_rows()? {
        folder.owner::<DemandedCapability, _>(&mut processes, rank)?.capabilities.push(capability);
    }
    for DemandedDevice { rank, device, count } in folder.given_rows()? {
        folder.owner::<DemandedDevice, _>(&mut processes, rank)?.devices.insert(device, count);
    }
    Ok(Demands { processes, streams: folder.given_rows()? })
}
