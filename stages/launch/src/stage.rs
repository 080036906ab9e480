//! The stages.

use hopmap_launchers::{Launch, launch_file, runs};
use hopmap_model::{Context, Error, Inputs, LaunchFile, Mapping, OutOfRange, Outcome, Outputs, Port, Stage};

use crate::params::{FileParams, MachinefileParams, MachinefileStyle, NoParams, RankfileParams, SlurmParams};

/// Stages that write a mapping as one file: name, parameters, kind, revision, port and summary; then what the parameters choose.
macro_rules! launch_stages {
    ($(
        $(#[$meta:meta])*
        $stage:ident($stage_params:ty), $name:literal, $revision:literal, $port:literal, $summary:literal,
        |$params:ident| $choice:expr;
    )*) => {$(
        $(#[$meta])*
        pub struct $stage;

        impl Stage for $stage {
            type Params = $stage_params;
            const KIND: &'static str = concat!("launch/", $name);
            const SUMMARY: &'static str = $summary;
            const REVISION: u32 = $revision;
            const PORTS: &'static [Port] = &[Port::input::<Mapping>("mapping"), Port::output::<LaunchFile>($port)];

            fn check($params: &Self::Params) -> Result<(), Error> {
                let choice: Result<_, Error> = $choice;
                choice.map(drop)
            }

            fn run($params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
                let choice: Result<_, Error> = $choice;
                let mapping = inputs.one::<Mapping>("mapping")?;
                let file = write(choice?, &mapping.value, &mapping.digest, cx)?;
                Ok(Outcome::Done(Outputs::new().with($port, file)))
            }
        }
    )*};
}

launch_stages! {
    /// `launch/file`: the file of the launcher that a parameter names.
    File(FileParams), "file", 2, "launch", "Write the launch file of any launcher: Open MPI, MPICH, Slurm, Flux, and others",
    |params| Ok((params.launch, params.bind));

    /// `launch/machinefile`: one host per rank, for MPICH and Intel MPI.
    Machinefile(MachinefileParams), "machinefile", 2, "machinefile", "Write a machine file for MPICH or Intel MPI: the host of every rank",
    |params| match params.style {
        MachinefileStyle::Mpich => Ok((Launch::Mpich, params.bind)),
        MachinefileStyle::Intel => Ok((Launch::IntelMpi, params.bind)),
    };

    /// `launch/rankfile`: host and core of every rank, for Open MPI.
    Rankfile(RankfileParams), "rankfile", 1, "rankfile", "Write a rank file for Open MPI: host and core of every rank",
    |params| match params.open_mpi {
        4 => Ok((Launch::OpenMpi4, false)),
        5 => Ok((Launch::OpenMpi5, false)),
        other => Err(Error::from(OutOfRange::new("open_mpi", other, "4 or 5"))),
    };

    /// `launch/hostfile`: one host per rank, for Open MPI's sequential mapper.
    Hostfile(NoParams), "hostfile", 1, "hostfile", "Write a host file for Open MPI's sequential mapper: the host of every rank",
    |_params| Ok((Launch::OpenMpiHosts, false));

    /// `launch/slurm`: one host per rank, for `srun -m arbitrary`.
    Slurm(SlurmParams), "slurm", 1, "slurm", "Write a host file for srun -m arbitrary: the host of every rank",
    |params| Ok((Launch::Slurm, params.bind));

    /// `launch/cray`: the ranks in slot order, for HPE Cray MPICH.
    Cray(NoParams), "cray", 2, "cray", "Write MPICH_RANK_ORDER for HPE Cray MPICH: the ranks in slot order",
    |_params| Ok((Launch::CraySlurm, false));
}

/// The file of a launcher of MPI. Warns of hosts whose ranks do not follow each other.
fn write(
    (launch, binds): (Launch, bool),
    mapping: &Mapping,
    digest: &str,
    cx: &Context<'_>,
) -> Result<LaunchFile, Error> {
    let (runs, hosts) = runs(mapping);
    if launch == Launch::Mpich && runs > hosts {
        cx.log(format!(
            "{hosts} hosts occur in {runs} places of the file: Hydra starts a proxy for each place, and MPICH uses \
             shared memory only inside one"
        ));
    }
    Ok(launch_file(mapping, digest, launch, binds)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{Direction, HostSlots, Placement, Value, Weight};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn run<S: Stage>(port: &str) -> LaunchFile {
        let mut inputs = Inputs::new();
        let host = |(name, first_slot): (&str, u32)| HostSlots { host: name.into(), first_slot, slots: 2 };
        let placement = |slot| Placement { slot, host: slot / 2, core: Some(slot % 2) };
        let mapping: Value = Arc::new(Mapping {
            ranks: [3, 0, 2, 1].map(placement).into(),
            hosts: [("a", 0), ("b", 2)].map(host).into(),
            weight: Weight::Bytes,
            metrics: BTreeMap::new(),
            convergence: Vec::new(),
            complete: true,
        });
        inputs.connect("mapping", mapping, "0123".into(), "placement".into());
        let params = serde_json::from_str("{}").unwrap();
        let Outcome::Done(outputs) = S::run(params, inputs, &Context::detached()).unwrap() else {
            panic!("not done");
        };
        outputs.get(port).unwrap().downcast_ref::<LaunchFile>().unwrap().clone()
    }

    fn check<S: Stage>(name: &str) {
        let outputs: Vec<_> =
            S::PORTS.iter().filter(|port| port.direction == Direction::Out).map(|port| port.name).collect();
        assert_eq!(outputs, [name]);
        let file = run::<S>(name);
        assert!(file.text.starts_with("# hopmap mapping 0123\n"), "{}", file.text);
        assert!(file.text.ends_with('\n'));
        assert!(file.command.contains("{file}") && file.command.ends_with(" {program}"), "{}", file.command);
    }

    #[test]
    fn every_stage_names_the_mapping_and_gives_a_command() {
        check::<Machinefile>("machinefile");
        check::<Rankfile>("rankfile");
        check::<Hostfile>("hostfile");
        check::<Slurm>("slurm");
        check::<Cray>("cray");
        check::<File>("launch");
    }

    #[test]
    fn the_version_of_open_mpi_is_4_or_5() {
        let params = |text| serde_json::from_str::<RankfileParams>(text).unwrap();
        assert_eq!(serde_json::to_string(&params("{}")).unwrap(), r#"{"open_mpi":4}"#);
        assert!(Rankfile::check(&params(r#"{"open_mpi": 5}"#)).is_ok());
        let error = Rankfile::check(&params(r#"{"open_mpi": 3}"#)).unwrap_err();
        assert!(error.to_string().contains("open_mpi"), "{error}");
    }
}
