//! Export of machine topologies to text formats of other programs.

mod calibration;
mod dot;
mod graph;
mod logical_tree;
mod mappers;
mod simgrid;
mod slurm;

use hopmap_model::{
    Artifact, Context, Error, Inputs, NodeTraits, Outcome, Outputs, Port, Stage, SystemGraph, TextFile,
};

pub use crate::params::{ExportError, ExportFormat, ExportParams};

/// A machine topology as text, and one line for each property that the text does not represent.
pub fn write(system: &SystemGraph, params: &ExportParams) -> Result<(TextFile, Vec<String>), ExportError> {
    let (name, (text, mut lost)) = match params.format {
        ExportFormat::SlurmConf => ("topology.conf", slurm::conf(system)?),
        ExportFormat::SlurmYaml => ("topology.yaml", slurm::yaml(system)?),
        ExportFormat::Simgrid => ("platform.xml", simgrid::write(system)?),
        ExportFormat::Scotch => ("machine.tgt", mappers::write(system)?),
        ExportFormat::Kahip => ("hierarchy.txt", mappers::write_hierarchy(system)?),
        ExportFormat::Distances => ("distances.csv", graph::write_distances(system)?),
        ExportFormat::Dot => ("machine.dot", dot::write(system)),
        ExportFormat::Svg => ("machine.svg", dot::svg(system)),
        ExportFormat::GraphCsv => ("machine.csv", graph::write(system)?),
        ExportFormat::GraphJson => ("machine.json", graph::write_json(system)?),
        ExportFormat::Smpi => ("smpi.options", calibration::smpi(system)?),
        ExportFormat::Loggopsim => ("loggopsim.options", calibration::loggopsim(system)?),
    };
    let has_no_nodes = matches!(params.format, ExportFormat::Smpi | ExportFormat::Loggopsim);
    let has_traits = !has_no_nodes && system.nodes.iter().any(|node| node.traits != NodeTraits::default());
    if has_traits && params.format != ExportFormat::GraphJson {
        lost.push("performance, capabilities and devices of hosts, and types of switches".to_owned());
    }
    Ok((TextFile { name: name.to_owned(), text }, lost))
}

/// `topology/export`: writes a machine topology as a text file for other tools.
///
/// A comment names the artifact of the machine, if the format has comments that all readers skip. The log
/// lists what the format cannot represent.
#[derive(Debug)]
pub struct Export;

impl Stage for Export {
    type Params = ExportParams;
    const KIND: &'static str = "topology/export";
    const SUMMARY: &'static str = "Write a machine topology as a text file for other tools";
    const REVISION: u32 = 3;
    const PORTS: &'static [Port] = &[Port::input::<SystemGraph>("system"), Port::output::<TextFile>("file")];

    fn run(params: ExportParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let system = inputs.one::<SystemGraph>("system")?;
        let (mut file, lost) = write(&system.value, &params)?;
        file.text = with_origin(file.text, params.format, &system.digest);
        lost.iter().for_each(|lost| cx.log(format_args!("warning: not represented in the file: {lost}")));
        Ok(Outcome::Done(Outputs::new().with("file", file)))
    }
}

/// Adds a comment that names the source artifact.
fn with_origin(text: String, format: ExportFormat, digest: &str) -> String {
    let origin = format!("hopmap {} {digest}", SystemGraph::KIND);
    match format {
        ExportFormat::SlurmConf | ExportFormat::SlurmYaml => format!("# {origin}\n{text}"),
        ExportFormat::Dot => format!("// {origin}\n{text}"),
        // The declaration must be the first line.
        ExportFormat::Simgrid => text.replacen('\n', &format!("\n<!-- {origin} -->\n"), 1),
        ExportFormat::Scotch
        | ExportFormat::Kahip
        | ExportFormat::Distances
        | ExportFormat::Svg
        | ExportFormat::GraphCsv
        | ExportFormat::GraphJson
        | ExportFormat::Smpi
        | ExportFormat::Loggopsim => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_placed_where_the_format_allows_it() {
        let with = |format| with_origin("<?xml version='1.0'?>\n<x/>\n".to_owned(), format, "d");
        assert_eq!(
            with(ExportFormat::Simgrid),
            "<?xml version='1.0'?>\n<!-- hopmap system-graph d -->\n<x/>\n"
        );
        assert!(with(ExportFormat::SlurmYaml).starts_with("# hopmap system-graph d\n<?xml"));
        assert!(with(ExportFormat::Dot).starts_with("// hopmap system-graph d\n<?xml"));
        assert!(with(ExportFormat::Kahip).starts_with("<?xml"));
    }
}
