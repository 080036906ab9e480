//! The stages.

use hopmap_model::{Context, Error, InputPath, Inputs, Outcome, Outputs, Port, Stage, TaskGraph};

use crate::{CsvParams, Otf2Params, csv_matrix, otf2};

const PORTS: &[Port] = &[Port::output::<TaskGraph>("task-graph")];

/// The stage `trace/otf2`.
#[derive(Debug)]
pub struct Otf2;

impl Stage for Otf2 {
    type Params = Otf2Params;
    const KIND: &'static str = "trace/otf2";
    const SUMMARY: &'static str = "messages and bytes between processes from an OTF2 trace";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn reads(params: &Otf2Params) -> Result<Vec<InputPath>, Error> {
        Ok(otf2::files(params.archive.path())?)
    }

    fn run(params: Otf2Params, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = otf2::read(params.archive.path(), cx)?;
        Ok(Outcome::Done(Outputs::new().with("task-graph", graph)))
    }
}

/// The stage `trace/csv`.
#[derive(Debug)]
pub struct Csv;

impl Stage for Csv {
    type Params = CsvParams;
    const KIND: &'static str = "trace/csv";
    const SUMMARY: &'static str = "messages and bytes between processes from a CSV file";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn reads(params: &CsvParams) -> Result<Vec<InputPath>, Error> {
        // Always under one name, so that renaming the file changes no key.
        Ok(vec![InputPath::named(params.file.path(), "matrix.csv")])
    }

    fn run(params: CsvParams, _: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let graph = csv_matrix::read(params.file.path(), params.ranks)?;
        Ok(Outcome::Done(Outputs::new().with("task-graph", graph)))
    }
}
