//! The stages.

use hopmap_model::{Context, Error, Inputs, LaunchFile, Mapping, Outcome, Outputs, Port, Stage};

use hopmap_launchers::{
    Launch, TorchStart, cray_rank_order, hostfile, launch_file, machinefile, rankfile, runs, same_short_name,
    slurm_hostfile, torch_file,
};

use crate::params::{FileParams, MachinefileParams, NoParams, RankfileParams, SlurmParams, TorchParams};

/// A stage that writes a mapping as one file: its parameters, its name, its revision, its port, and the writer.
macro_rules! launch_stage {
    (
        $(#[$meta:meta])* $stage:ident($stage_params:ty), $name:literal, $revision:literal: $port:literal, $summary:literal;
        |$params:ident, $mapping:ident, $digest:ident, $cx:ident| $file:expr
    ) => {
        $(#[$meta])*
        pub struct $stage;

        impl Stage for $stage {
            type Params = $stage_params;
            const KIND: &'static str = concat!("launch/", $name);
            const SUMMARY: &'static str = $summary;
            const REVISION: u32 = $revision;

            fn ports() -> &'static [Port] {
                const { &[Port::input::<Mapping>("mapping"), Port::output::<LaunchFile>($port)] }
            }

            fn run($params: Self::Params, inputs: Inputs, $cx: &Context<'_>) -> Result<Outcome, Error> {
                let input = inputs.one::<Mapping>("mapping")?;
                let ($mapping, $digest) = (&input.value, &input.digest);
                Ok(Outcome::Done(Outputs::new().with($port, $file?)))
            }
        }
    };
}

launch_stage! {
    /// `launch/machinefile`: one host per rank, for MPICH and Intel MPI.
    Machinefile(MachinefileParams), "machinefile", 2: "machinefile", "Write a machine file for MPICH or Intel MPI: the host of every rank";
    |params, mapping, digest, cx| {
        warn_of_proxies(mapping, cx);
        machinefile(mapping, digest, params.style, params.bind)
    }
}

/// Warns of hosts whose ranks do not follow each other.
fn warn_of_proxies(mapping: &Mapping, cx: &Context<'_>) {
    let (runs, hosts) = runs(mapping);
    if runs > hosts {
        cx.log(format!(
            "{hosts} hosts occur in {runs} places of the file: Hydra starts a proxy for each place, and MPICH uses \
             shared memory only inside one"
        ));
    }
}

launch_stage! {
    /// `launch/file`: the file of the launcher that a parameter names.
    File(FileParams), "file", 2: "launch", "Write a launch file for Open MPI, MPICH, Intel MPI, Slurm or HPE Cray MPICH";
    |params, mapping, digest, cx| {
        if params.launch == Launch::Mpich {
            warn_of_proxies(mapping, cx);
        }
        launch_file(mapping, digest, params.launch, params.bind)
    }
}

launch_stage! {
    /// `launch/rankfile`: host and core of every rank, for Open MPI.
    Rankfile(RankfileParams), "rankfile", 1: "rankfile", "Write a rank file for Open MPI: host and core of every rank";
    |params, mapping, digest, _cx| rankfile(mapping, digest, params.open_mpi)
}

launch_stage! {
    /// `launch/hostfile`: one host per rank, for Open MPI's sequential mapper.
    Hostfile(NoParams), "hostfile", 1: "hostfile", "Write a host file for Open MPI's sequential mapper: the host of every rank";
    |_params, mapping, digest, _cx| hostfile(mapping, digest)
}

launch_stage! {
    /// `launch/slurm`: one host per rank, for `srun -m arbitrary`.
    Slurm(SlurmParams), "slurm", 1: "slurm", "Write a host file for srun -m arbitrary: the host of every rank";
    |params, mapping, digest, _cx| slurm_hostfile(mapping, digest, params.bind)
}

launch_stage! {
    /// `launch/cray`: the ranks in slot order, for HPE Cray MPICH.
    Cray(NoParams), "cray", 2: "cray", "Write MPICH_RANK_ORDER for HPE Cray MPICH: the ranks in slot order";
    |_params, mapping, digest, _cx| cray_rank_order(mapping, digest)
}

launch_stage! {
    /// `launch/torch`: the node rank of every host, for `torchrun`.
    Torch(TorchParams), "torch", 2: "torch", "Write the order of hosts for torchrun: node ranks, a host file for srun, or a table for pods";
    |params, mapping, digest, cx| {
        let hosts: Vec<&str> = mapping.hosts.iter().map(|host| host.host.as_str()).collect();
        if let Some((one, other)) = same_short_name(&hosts).filter(|_| params.start == TorchStart::NodeRanks) {
            cx.log(format!(
                "`{one}` and `{other}` differ after the first dot: `hostname -f` must print these names there"
            ));
        }
        torch_file(mapping, digest, params.start)
    }
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
            S::ports().iter().filter(|port| port.direction == Direction::Out).map(|port| port.name).collect();
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
}
