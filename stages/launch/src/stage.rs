//! The stages.

use hopmap_model::{Context, Error, Inputs, LaunchFile, Mapping, Outcome, Outputs, Port, Stage};

use crate::{
    CrayParams, HostfileParams, MachinefileParams, RankfileParams, SlurmParams, cray_rank_order, hostfile,
    hosts::runs, machinefile, rankfile, slurm_hostfile,
};

/// `launch/machinefile`: one host per rank, for MPICH and Intel MPI.
pub struct Machinefile;

impl Stage for Machinefile {
    type Params = MachinefileParams;
    const KIND: &'static str = "launch/machinefile";
    const SUMMARY: &'static str = "Machine file for MPICH or Intel MPI: the host of every rank";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const { &[Port::input::<Mapping>("mapping"), Port::output::<LaunchFile>("machinefile")] }
    }

    fn run(params: MachinefileParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapping = inputs.one::<Mapping>("mapping")?;
        let file = machinefile(&mapping.value, &mapping.digest, params.style)?;
        let (runs, hosts) = runs(&mapping.value);
        if runs > hosts {
            cx.log(format!(
                "{hosts} hosts stand in {runs} places of the file: Hydra starts a proxy for each place, and MPICH uses \
                 shared memory only inside one"
            ));
        }
        Ok(Outcome::Done(Outputs::new().with("machinefile", file)))
    }
}

/// `launch/rankfile`: host and core of every rank, for Open MPI.
pub struct Rankfile;

impl Stage for Rankfile {
    type Params = RankfileParams;
    const KIND: &'static str = "launch/rankfile";
    const SUMMARY: &'static str = "Rank file for Open MPI: host and core of every rank";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const { &[Port::input::<Mapping>("mapping"), Port::output::<LaunchFile>("rankfile")] }
    }

    fn run(params: RankfileParams, inputs: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let mapping = inputs.one::<Mapping>("mapping")?;
        let file = rankfile(&mapping.value, &mapping.digest, params.open_mpi)?;
        Ok(Outcome::Done(Outputs::new().with("rankfile", file)))
    }
}

/// `launch/hostfile`: one host per rank, for Open MPI's sequential mapper.
pub struct Hostfile;

impl Stage for Hostfile {
    type Params = HostfileParams;
    const KIND: &'static str = "launch/hostfile";
    const SUMMARY: &'static str = "Host file for Open MPI's sequential mapper: the host of every rank";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const { &[Port::input::<Mapping>("mapping"), Port::output::<LaunchFile>("hostfile")] }
    }

    fn run(_: HostfileParams, inputs: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let mapping = inputs.one::<Mapping>("mapping")?;
        let file = hostfile(&mapping.value, &mapping.digest)?;
        Ok(Outcome::Done(Outputs::new().with("hostfile", file)))
    }
}

/// `launch/slurm`: one host per rank, for `srun -m arbitrary`.
pub struct Slurm;

impl Stage for Slurm {
    type Params = SlurmParams;
    const KIND: &'static str = "launch/slurm";
    const SUMMARY: &'static str = "Host file for srun -m arbitrary: the host of every rank";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const { &[Port::input::<Mapping>("mapping"), Port::output::<LaunchFile>("slurm")] }
    }

    fn run(_: SlurmParams, inputs: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let mapping = inputs.one::<Mapping>("mapping")?;
        let file = slurm_hostfile(&mapping.value, &mapping.digest)?;
        Ok(Outcome::Done(Outputs::new().with("slurm", file)))
    }
}

/// `launch/cray`: the ranks in slot order, for HPE Cray MPICH.
pub struct Cray;

impl Stage for Cray {
    type Params = CrayParams;
    const KIND: &'static str = "launch/cray";
    const SUMMARY: &'static str = "MPICH_RANK_ORDER for HPE Cray MPICH: the ranks in slot order";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const { &[Port::input::<Mapping>("mapping"), Port::output::<LaunchFile>("cray")] }
    }

    fn run(_: CrayParams, inputs: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let mapping = inputs.one::<Mapping>("mapping")?;
        let file = cray_rank_order(&mapping.value, &mapping.digest)?;
        Ok(Outcome::Done(Outputs::new().with("cray", file)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::tests::mapping;
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
