use hopmap_model::{CheckpointSeries, Context, Error, Inputs, Outcome, Outputs, Port, Stage};

use crate::GenerateParams;
use crate::series::generate;

/// The stage `checkpoint/generate`.
///
/// The memory of a rank has libraries (`shared`), a heap, areas beside it and fields of floating-point numbers. Contents are
/// made once; between two checkpoints the `changes` happen to them. Files are `CHECKPOINT/rank-RANK.dmtcp`, or `.bin` when the
/// layout is `plain`.
#[derive(Debug)]
pub struct Generate;

impl Stage for Generate {
    type Params = GenerateParams;
    const KIND: &'static str = "checkpoint/generate";
    const SUMMARY: &'static str = "A series of checkpoints whose changes are known";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const PORTS: &[Port] = &[Port::output::<CheckpointSeries>("checkpoints")];
        PORTS
    }

    fn check(params: &GenerateParams) -> Result<(), Error> {
        Ok(generate::check(params)?)
    }

    fn run(params: GenerateParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let series = generate::generate(&params, cx)?;
        Ok(Outcome::Done(Outputs::new().with("checkpoints", series)))
    }
}
