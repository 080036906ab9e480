//! What can be wrong with a choice of hosts.

use std::path::PathBuf;

use hopmap_formats::host_list::HostListError;
use hopmap_formats::sinfo::SinfoError;
use miette::Diagnostic;

/// Hosts that cannot be chosen.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SelectError {
    /// Parameters, a list of hosts or a machine with which no hosts can be chosen.
    #[error("{problem}")]
    Invalid {
        /// What is wrong.
        problem: String,
        /// What to do about it.
        #[help]
        help: String,
    },
    /// The costs cannot be written down.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Costs(#[from] hopmap_model::CostsError),
    /// The machine contradicts itself.
    #[error(transparent)]
    #[diagnostic(transparent)]
    System(#[from] hopmap_model::SystemGraphError),
    /// A list of hosts cannot be read.
    #[error("`{parameter}`: {list}")]
    #[diagnostic(forward(list))]
    HostList {
        /// Where the list stands.
        parameter: String,
        /// What is wrong with it.
        list: Box<HostListError>,
    },
    /// A file with free hosts is no output of sinfo after all.
    #[error("`{}`: {sinfo}", path.display())]
    #[diagnostic(forward(sinfo))]
    Sinfo {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        sinfo: Box<SinfoError>,
    },
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

impl SelectError {
    #[cold]
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Invalid { problem: problem.into(), help: help.into() }
    }

    /// There are fewer free hosts, or slots on them, than asked for.
    pub(crate) fn too_few(wanted: u64, what: &str, hosts: usize, free: u64) -> Self {
        let problem = format!("{wanted} {what} are asked for, but the {hosts} free hosts have {free}");
        Self::new(problem, "ask for fewer, wait until more are free, or leave fewer out with `exclude`")
    }

    /// The machine has no links.
    pub(crate) fn no_links(criterion: &str) -> Self {
        let problem = format!("criterion `{criterion}` needs links, and this machine has none");
        Self::new(problem, COSTS_ONLY)
    }

    /// The links form no tree.
    pub(crate) fn no_tree(links: usize, nodes: usize) -> Self {
        let problem = format!(
            "criterion `switches` needs links that form a tree: the {links} links of {nodes} nodes do not form a tree with one link each way"
        );
        Self::new(problem, COSTS_ONLY)
    }

    /// The network is in pieces.
    pub(crate) fn in_pieces(wanted: usize) -> Self {
        let problem = format!("no {wanted} free hosts are joined by links");
        Self::new(problem, "ask for fewer hosts, or choose by `total-distance`")
    }
}

const COSTS_ONLY: &str = "choose by `total-distance` or `cut`, which need costs only";

/// Refuses a number that is asked for and zero.
pub(crate) fn check_not_zero(parameter: &str, value: Option<u32>) -> Result<(), SelectError> {
    match value {
        Some(0) => {
            let help = format!("ask for one or more, or leave `{parameter}` out");
            Err(SelectError::new(format!("{parameter} is 0"), help))
        }
        _ => Ok(()),
    }
}

/// Refuses parameters of which more than one is given and that say the same thing.
pub(crate) fn check_one_of(parameters: &[(&str, bool)]) -> Result<(), SelectError> {
    let mut given = parameters.iter().filter(|parameter| parameter.1).map(|parameter| parameter.0);
    match (given.next(), given.next()) {
        (Some(first), Some(second)) => {
            Err(SelectError::new(format!("`{first}` and `{second}` are both given"), "give one of them"))
        }
        _ => Ok(()),
    }
}
