//! The stage that exports machines.

use hopmap_model::{Context, Error, Inputs, Outcome, Outputs, Port, Stage, SystemGraph, TextFile};

use super::{ExportParams, write};

/// `topology/export`: a machine as a text file for other tools.
///
/// The log says what of the machine the file does not hold.
#[derive(Debug)]
pub struct Export;

impl Stage for Export {
    type Params = ExportParams;
    const KIND: &'static str = "topology/export";
    const SUMMARY: &'static str = "A machine as a text file for other tools";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const { &[Port::input::<SystemGraph>("system"), Port::output::<TextFile>("file")] }
    }

    fn run(params: ExportParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let system = inputs.one::<SystemGraph>("system")?.value;
        let (file, lost) = write(&system, &params)?;
        lost.iter().for_each(|lost| cx.log(format_args!("warning: the file does not hold {lost}")));
        Ok(Outcome::Done(Outputs::new().with("file", file)))
    }
}
