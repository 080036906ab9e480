//! Errors of host selection.

use std::path::PathBuf;

use hopmap_formats::host_list::HostListError;
use hopmap_formats::sinfo::SinfoError;
use miette::Diagnostic;

/// Hosts cannot be chosen.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SelectError {
    /// The parameters, the host list or the machine topology rule out any choice.
    #[error("{problem}")]
    #[diagnostic(code(select::invalid))]
    Invalid {
        /// What is wrong.
        problem: String,
        /// How to fix it.
        #[help]
        help: String,
    },
    /// The costs cannot be stored.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Costs(#[from] hopmap_model::CostsError),
    /// The machine topology is inconsistent.
    #[error(transparent)]
    #[diagnostic(transparent)]
    System(#[from] hopmap_model::SystemGraphError),
    /// A host list is invalid.
    #[error("`{parameter}`: {list}")]
    #[diagnostic(code(select::host_list), forward(list))]
    HostList {
        /// The parameter that holds the list.
        parameter: String,
        /// The error in the list.
        list: Box<HostListError>,
    },
    /// A file of free hosts is not valid sinfo output.
    #[error("`{}`: {sinfo}", path.display())]
    #[diagnostic(code(select::sinfo), forward(sinfo))]
    Sinfo {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        sinfo: Box<SinfoError>,
    },
    /// A file cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Read(#[from] hopmap_text::FileError),
}

impl SelectError {
    #[cold]
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Invalid { problem: problem.into(), help: help.into() }
    }

    /// Fewer hosts, or slots on them, are free than requested.
    pub(crate) fn too_few(wanted: u64, what: &str, hosts: usize, free: u64) -> Self {
        let problem = format!("{wanted} {what} requested, but the {hosts} free hosts have {free}");
        Self::new(problem, "request fewer, wait until more are free, or exclude fewer hosts")
    }

    pub(crate) fn no_links(criterion: &str) -> Self {
        let problem = format!("criterion `{criterion}` needs links, but the machine topology has none");
        Self::new(problem, COSTS_ONLY)
    }

    /// Links that are not there cannot have rates.
    pub(crate) fn without_links() -> Self {
        Self::new(
            "the machine topology has no links between hosts, whose latency and bandwidth could be set",
            "import the network of the hosts, such as Slurm's topology.conf, rather than hosts alone",
        )
    }

    /// The links do not form a tree.
    pub(crate) fn no_tree(links: usize, nodes: usize) -> Self {
        let problem = format!(
            "criterion `switches` needs a tree with one link in each direction, but the {links} links of {nodes} nodes do not form one"
        );
        Self::new(problem, COSTS_ONLY)
    }

    /// The network is disconnected.
    pub(crate) fn in_pieces(wanted: usize) -> Self {
        let problem = format!("fewer than {wanted} free hosts are connected to each other");
        Self::new(problem, "request fewer hosts, or choose by `total-distance`")
    }
}

const COSTS_ONLY: &str = "choose by `total-distance` or `cut`, which need no links";

/// Rejects an explicit zero.
pub(crate) fn check_not_zero(parameter: &str, value: Option<u32>) -> Result<(), SelectError> {
    match value {
        Some(0) => {
            let help = format!("request at least one, or omit `{parameter}`");
            Err(SelectError::new(format!("{parameter} is 0"), help))
        }
        _ => Ok(()),
    }
}

/// Rejects more than one of several mutually exclusive parameters.
pub(crate) fn check_one_of(parameters: &[(&str, bool)]) -> Result<(), SelectError> {
    let mut given = parameters.iter().filter(|parameter| parameter.1).map(|parameter| parameter.0);
    match (given.next(), given.next()) {
        (Some(first), Some(second)) => Err(SelectError::new(
            format!("`{first}` and `{second}` are mutually exclusive"),
            "give only one of them",
        )),
        _ => Ok(()),
    }
}
