//! Machines as text that other programs read.

mod distances;
mod dot;
mod error;
mod graph_csv;
mod graph_json;
mod kahip;
mod logical_tree;
#[cfg(test)]
mod mappers_tests;
mod params;
mod regular;
mod scotch;
mod simgrid;
mod slurm;
mod stage;

pub use error::ExportError;
pub use params::{ExportFormat, ExportParams};
pub use stage::Export;

use hopmap_model::{NodeTraits, SystemGraph, TextFile};

/// A machine as text, and one line for each thing that the text does not hold.
pub fn write(system: &SystemGraph, params: &ExportParams) -> Result<(TextFile, Vec<String>), ExportError> {
    let (name, (text, mut lost)) = match params.to {
        ExportFormat::SlurmConf => ("topology.conf", slurm::conf(system, params)?),
        ExportFormat::SlurmYaml => ("topology.yaml", slurm::yaml(system, params)?),
        ExportFormat::Simgrid => ("platform.xml", simgrid::write(system, params)?),
        ExportFormat::Scotch => ("machine.tgt", scotch::write(system, params)?),
        ExportFormat::Kahip => ("hierarchy.txt", kahip::write(system, params)?),
        ExportFormat::Distances => ("distances.csv", distances::write(system, params)?),
        ExportFormat::Dot => ("machine.dot", dot::write(system)),
        ExportFormat::Svg => ("machine.svg", dot::svg(system)),
        ExportFormat::GraphCsv => ("machine.csv", graph_csv::write(system, params)?),
        ExportFormat::GraphJson => ("machine.json", graph_json::write(system, params)?),
    };
    let has_traits = system.nodes.iter().any(|node| node.traits != NodeTraits::default());
    if has_traits && params.to != ExportFormat::GraphJson {
        lost.push("performance, capabilities and devices of hosts, and types of switches".to_owned());
    }
    Ok((TextFile { name: name.to_owned(), text }, lost))
}
