//! The report: one self-contained HTML file that needs no network and no server.
//!
//! It shows what people would rather look at than read: the pipeline with the state and reason of each stage, the
//! machine as it was measured, the matrix in rank order and in slot order, the machine with its loads, schedules as
//! Gantt charts, routes on their network, deltas and stores of checkpoints, the metrics beside linear and random, and the commands that
//! launch the program.

mod checkpoints;
mod measured;
mod page;
mod searches;
mod sections;
mod solutions;
mod sweep;
mod timeline;

use std::path::{Path, PathBuf};

pub use measured::write_published;
pub use timeline::{chrome_trace, latest_run};

use hopmap_durable::replace_file;
use miette::Report;

use crate::engine::{PipelineId, RunReport, Store};
use crate::pipeline::Pipeline;
use page::Stamp;

/// Where the report of a pipeline is kept: under its name, with digits of its own where another file has that name.
#[must_use]
pub fn place(store: &Store, pipeline: &Pipeline) -> PathBuf {
    let safe: String = pipeline
        .name
        .chars()
        .map(|letter| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '_' })
        .collect();
    let folder = store.root().join("reports");
    let place = folder.join(format!("{safe}.html"));
    let digits = PipelineId::of(pipeline, store.root()).digits();
    match Stamp::read(&place) {
        Some(other) if other.pipeline != digits => folder.join(format!("{safe}-{digits}.html")),
        _ => place,
    }
}

/// Whether the report in a place says what another one would say: it is of the same results.
#[must_use]
pub fn is_current(place: &Path, pipeline: &Pipeline, store: &Store, report: &RunReport) -> bool {
    Stamp::read(place).is_some_and(|stamp| stamp == Stamp::of(pipeline, store, report))
}

/// Writes the report of a run or a plan. `shown` says how to write the path of a file in a command.
pub fn write(
    path: &Path,
    pipeline: &Pipeline,
    store: &Store,
    report: &RunReport,
    shown: &dyn Fn(&Path) -> String,
) -> Result<(), Report> {
    let mut page = page::Page::new(page::MOST_BYTES);
    sections::summary(&mut page, pipeline, store, report, shown);
    sections::gates(&mut page, report);
    sections::quality(&mut page, pipeline, store, report);
    sections::tables(&mut page, report);
    sections::pipeline(&mut page, pipeline, report);
    sweep::sweeps(&mut page, pipeline, store, report);
    solutions::matrices(&mut page, pipeline, store, report);
    searches::tables(&mut page, pipeline, store, report);
    searches::searches(&mut page, pipeline, store, report);
    measured::measured(&mut page, pipeline, store, report);
    solutions::schedules(&mut page, pipeline, store, report);
    solutions::routes(&mut page, pipeline, store, report);
    checkpoints::deltas(&mut page, pipeline, store, report);
    checkpoints::stored(&mut page, pipeline, store, report);
    solutions::placements(&mut page, pipeline, store, report);
    timeline::draw(&mut page, pipeline, store, report);
    sections::stages(&mut page, pipeline, report);
    let stamp = Stamp::of(pipeline, store, report).to_string();
    replace_file(path, page.finish(&pipeline.name, &stamp).as_bytes())?;
    Ok(())
}
