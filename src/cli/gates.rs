//! What `run`, `plan`, `report` and `accept` have in common about gates.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use hopmap_command::{Exit, Failure, Mistake};
use miette::{Diagnostic, Report};

use super::open::place_or;
use super::output::Output;
use crate::engine::{RunReport, Store};
use crate::gates::{self, AcceptedMetrics, Gate, Standing, Verdict};
use crate::pipeline::{Pipeline, Problems};

/// What to judge gates by.
#[derive(Debug, Args)]
pub(crate) struct GateArguments {
    /// Accepted values of the gates [default: NAME.accepted.json beside the pipeline file].
    #[arg(long, value_name = "FILE")]
    accepted: Option<PathBuf>,
    /// Judge no gates.
    #[arg(long, conflicts_with = "accepted")]
    no_gates: bool,
}

impl GateArguments {
    /// Where the accepted values are.
    pub(crate) fn place(&self, pipeline: &Pipeline) -> Result<PathBuf, Failure> {
        place_or(self.accepted.as_ref(), || pipeline.accepted_file())
    }

    /// A file that is named has to be there; the one beside the pipeline file need not be.
    fn check_named(&self, pipeline: &Pipeline) -> Result<(), Failure> {
        let is_missing = |path: &&PathBuf| matches!(path.try_exists(), Ok(false));
        let Some(path) = self.accepted.as_ref().filter(is_missing) else { return Ok(()) };
        let (name, path) = (pipeline.source.name(), path.display());
        let help = format!("after a run without --accepted, `hopmap accept {name} --to {path}` writes it");
        Err(Mistake::new(format!("there is no file {path} with accepted values"), help).into())
    }

    /// Reads the accepted values, after checking that the pipeline names metrics that there can be.
    pub(crate) fn prepare(
        &self,
        pipeline: &mut Pipeline,
        store: &Store,
    ) -> Result<BTreeMap<String, f64>, Failure> {
        self.check_named(pipeline)?;
        if self.no_gates {
            pipeline.gates.clear();
            return Ok(BTreeMap::new());
        }
        gates::check_metrics(pipeline, store)?;
        if pipeline.gates.is_empty() {
            return Ok(BTreeMap::new());
        }
        let accepted = AcceptedMetrics::read(&self.place(pipeline)?)?;
        Ok(accepted.map(|accepted| accepted.metrics).unwrap_or_default())
    }
}

/// Judges the gates by what a run or a plan found; gives metrics that do not exist.
pub(crate) fn judge(
    pipeline: &Pipeline,
    report: &mut RunReport,
    accepted: &BTreeMap<String, f64>,
) -> Option<Problems> {
    let cells = &report.cells;
    let metrics = |cell: usize, output: &str| {
        let settled = Some(&cells[cell]).filter(|settled| settled.is_usable())?;
        settled.outputs.get(output).map(|record| &record.metrics)
    };
    let judged = gates::judge(pipeline, &metrics, accepted);
    report.gates = judged.verdicts;
    judged.problems
}

/// A gate that does not hold.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("gate {0}")]
struct Broken(String);

/// Says how the gates stand: broken ones are errors, the others are told.
pub(crate) fn print(pipeline: &Pipeline, report: &RunReport, output: Output) {
    let of = |standing: Standing| report.gates.iter().filter(move |verdict| verdict.standing == standing);
    for gate in &pipeline.gates {
        for (word, standing) in
            [("holds", Standing::Holds), ("unknown", Standing::Unknown), ("open", Standing::Open)]
        {
            print_cells(word, gate, of(standing).filter(|verdict| verdict.gate == gate.name), output);
        }
    }
    if of(Standing::Open).next().is_some() {
        output.line(format!("  {:<12} hopmap accept {}", "to accept", pipeline.source.name()));
    }
    print_broken(&of(Standing::Broken).collect::<Vec<_>>(), output);
}

/// The first few cells of a gate that stand alike; those of a sweep would bury the other gates.
fn print_cells<'a>(word: &str, gate: &Gate, mut verdicts: impl Iterator<Item = &'a Verdict>, output: Output) {
    const MOST: usize = 3;
    verdicts.by_ref().take(MOST).for_each(|verdict| output.line(format!("  {word:<12} {verdict}")));
    match verdicts.count() {
        0 => {}
        more => output.line(format!("  {word:<12} {}: … and {more} more", gate.name)),
    }
}

fn print_broken(broken: &[&Verdict], output: Output) {
    const MOST: usize = 20;
    for verdict in broken.iter().take(MOST) {
        output.error(&Report::new(Broken(verdict.to_string())));
    }
    if broken.len() > MOST {
        output.error(&Report::new(Broken(format!("… and {} more are broken", broken.len() - MOST))));
    }
}

/// How a command ends whose stages are all right.
pub(crate) fn exit(problems: Option<Problems>, report: &RunReport) -> Result<Exit, Failure> {
    match problems {
        Some(problems) => Err(problems.into()),
        None if report.is_broken() => Ok(Exit::Different),
        None => Ok(Exit::Done),
    }
}
