//! Parameters of the stages.

use hopmap_launchers::Launch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `launch/machinefile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MachinefileParams {
    /// Syntax of the file: `mpich` has one line per rank, `intel` one line `host:count` for consecutive ranks
    /// of a host.
    pub style: MachinefileStyle,
    /// Also bind every rank to its core of the mapping, as rank files and HPE Cray MPICH always do. The launcher has to take one
    /// list of cores for all hosts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bind: bool,
}

/// Syntax of a machine file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MachinefileStyle {
    /// One host per line and rank, for MPICH.
    #[default]
    Mpich,
    /// `host:count` for consecutive ranks, for Intel MPI.
    Intel,
}

/// Parameters of `launch/rankfile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RankfileParams {
    /// Major version of Open MPI, 4 or 5. The file is the same; the command differs.
    #[serde(default = "hopmap_model::number::<4, u32>")]
    pub open_mpi: u32,
}

/// Parameters of `launch/file`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FileParams {
    /// Launcher of the program.
    pub launch: Launch,
    /// Also bind every rank to its core of the mapping, as rank files and HPE Cray MPICH always do. The launcher has to take one
    /// list of cores for all hosts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bind: bool,
}

/// Parameters of `launch/slurm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SlurmParams {
    /// Also bind every rank to its core of the mapping, as rank files and HPE Cray MPICH always do. The launcher has to take one
    /// list of cores for all hosts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bind: bool,
}

/// A stage without parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_a_default() {
        assert_eq!(serde_json::from_str::<MachinefileParams>("{}").unwrap(), MachinefileParams::default());
        assert_eq!(serde_json::from_str::<NoParams>("{}").unwrap(), NoParams {});
    }

    #[test]
    fn unknown_parameters_are_rejected() {
        assert!(serde_json::from_str::<NoParams>(r#"{"x": 1}"#).is_err());
        assert!(serde_json::from_str::<MachinefileParams>(r#"{"style": "lam"}"#).is_err());
    }
}
