//! The stages of this crate.

use hopmap_launchers::same_short_name;
use hopmap_model::{
    Context, Error, Inputs, LaunchFile, Mapping, Outcome, Outputs, Port, Program, Stage, TaskGraph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parallel::{ParallelParams, check_params, training_step};
use crate::torch::{TorchStart, torch_file};

/// `instance/parallel`: a step of a training job.
#[derive(Debug)]
pub struct Parallel;

impl Stage for Parallel {
    type Params = ParallelParams;
    const KIND: &'static str = "instance/parallel";
    const SUMMARY: &'static str =
        "Generate a training step: tensor, context, expert, data and pipeline parallelism";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] =
        &[Port::output::<TaskGraph>("task-graph"), Port::output::<Program>("program")];

    fn check(params: &ParallelParams) -> Result<(), Error> {
        Ok(check_params(params)?)
    }

    fn run(params: ParallelParams, _: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let step = training_step(&params)?;
        let outputs = Outputs::new().with("task-graph", step.graph);
        Ok(Outcome::Done(outputs.with("program", step.program)))
    }
}

/// Parameters of `launch/torch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TorchParams {
    /// What starts `torchrun` on the hosts. `node-ranks`: you start the command on every host, which finds its node rank in
    /// the file by its names and addresses. `slurm`: `srun -m arbitrary`. `indexes`: Kubernetes, whose pods find their node
    /// rank by `NODE_NAME`, the name of their node.
    pub start: TorchStart,
}

/// `launch/torch`: the node rank of every host, for `torchrun`.
#[derive(Debug)]
pub struct Torch;

impl Stage for Torch {
    type Params = TorchParams;
    const KIND: &'static str = "launch/torch";
    const SUMMARY: &'static str =
        "Write the order of hosts for torchrun: node ranks, a host file for srun, or a table for pods";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] = &[Port::input::<Mapping>("mapping"), Port::output::<LaunchFile>("torch")];

    /// Warns of names that `hostname -f` has to print.
    fn run(params: TorchParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapping = inputs.one::<Mapping>("mapping")?;
        let hosts: Vec<&str> = mapping.value.hosts.iter().map(|host| host.host.as_str()).collect();
        if let Some((one, other)) = same_short_name(&hosts).filter(|_| params.start == TorchStart::NodeRanks)
        {
            cx.log(format!(
                "`{one}` and `{other}` differ after the first dot: `hostname -f` must print these names there"
            ));
        }
        let file = torch_file(&mapping.value, &mapping.digest, params.start)?;
        Ok(Outcome::Done(Outputs::new().with("torch", file)))
    }
}
