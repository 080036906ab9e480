//! The stages.

use hopmap_model::{Context, Error, Inputs, LaunchFile, Mapping, Outcome, Outputs, Port, Stage};

use crate::{
    LaunchError, MachinefileParams, NoParams, RankfileParams, cray_rank_order, files::runs, hostfile,
    machinefile, rankfile, slurm_hostfile,
};

/// A stage that writes a mapping as one file: its parameters, its name (also that of the port), and the
/// writer.
macro_rules! launch_stage {
    (
        $(#[$meta:meta])* $stage:ident($stage_params:ty), $name:literal, $summary:literal;
        |$params:ident, $mapping:ident, $digest:ident, $cx:ident| $file:expr
    ) => {
        $(#[$meta])*
        pub struct $stage;

        impl Stage for $stage {
            type Params = $stage_params;
            const KIND: &'static str = concat!("launch/", $name);
            const SUMMARY: &'static str = $summary;
            const REVISION: u32 = 1;

            fn ports() -> &'static [Port] {
                const { &[Port::input::<Mapping>("mapping"), Port::output::<LaunchFile>($name)] }
            }

            fn run($params: Self::Params, inputs: Inputs, $cx: &Context<'_>) -> Result<Outcome, Error> {
                let input = inputs.one::<Mapping>("mapping")?;
                let ($mapping, $digest) = (&input.value, &input.digest);
                Ok(Outcome::Done(Outputs::new().with($name, $file?)))
            }
        }
    };
}

launch_stage! {
    /// `launch/machinefile`: one host per rank, for MPICH and Intel MPI.
    Machinefile(MachinefileParams), "machinefile", "Machine file for MPICH or Intel MPI: the host of every rank";
    |params, mapping, digest, cx| {
        let file = machinefile(mapping, digest, params.style)?;
        let (runs, hosts) = runs(mapping);
        if runs > hosts {
            cx.log(format!(
                "{hosts} hosts stand in {runs} places of the file: Hydra starts a proxy for each place, and MPICH uses \
                 shared memory only inside one"
            ));
        }
        Ok::<_, LaunchError>(file)
    }
}

launch_stage! {
    /// `launch/rankfile`: host and core of every rank, for Open MPI.
    Rankfile(RankfileParams), "rankfile", "Rank file for Open MPI: host and core of every rank";
    |params, mapping, digest, _cx| rankfile(mapping, digest, params.open_mpi)
}

launch_stage! {
    /// `launch/hostfile`: one host per rank, for Open MPI's sequential mapper.
    Hostfile(NoParams), "hostfile", "Host file for Open MPI's sequential mapper: the host of every rank";
    |_params, mapping, digest, _cx| hostfile(mapping, digest)
}

launch_stage! {
    /// `launch/slurm`: one host per rank, for `srun -m arbitrary`.
    Slurm(NoParams), "slurm", "Host file for srun -m arbitrary: the host of every rank";
    |_params, mapping, digest, _cx| slurm_hostfile(mapping, digest)
}

launch_stage! {
    /// `launch/cray`: the ranks in slot order, for HPE Cray MPICH.
    Cray(NoParams), "cray", "MPICH_RANK_ORDER for HPE Cray MPICH: the ranks in slot order";
    |_params, mapping, digest, _cx| cray_rank_order(mapping, digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::mapping;
    use hopmap_model::{Direction, Value};
    use std::sync::Arc;

    fn run<S: Stage>(port: &str) -> LaunchFile {
        let mut inputs = Inputs::new();
        let mapping: Value = Arc::new(mapping(&["a", "b"], 2, &[3, 0, 2, 1]));
        inputs.connect("mapping", mapping, "0123".into(), "placement".into());
        let params = serde_json::from_str("{}").unwrap();
        let Outcome::Done(outputs) = S::run(params, inputs, &Context::detached()).unwrap() else {
            panic!("not done");
        };
        outputs.get(port).unwrap().downcast_ref::<LaunchFile>().unwrap().clone()
    }

    fn check<S: Stage>() {
        let name = S::KIND.strip_prefix("launch/").unwrap();
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
        check::<Machinefile>();
        check::<Rankfile>();
        check::<Hostfile>();
        check::<Slurm>();
        check::<Cray>();
    }
}
