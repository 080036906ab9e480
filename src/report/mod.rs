//! The report: one self-contained HTML file that needs no network and no server.
//!
//! It shows what people would rather look at than read: the pipeline with the state and reason of each stage, the
//! machine as it was measured, the matrix in rank order and in slot order, the machine with its loads, schedules as
//! Gantt charts, routes on their network, deltas and stores of checkpoints, the metrics beside linear and random, and the commands that
//! launch the program.

mod asked;
mod deltas;
mod front;
mod gates;
mod matrices;
mod measured;
mod page;
mod placement;
mod published;
mod routes;
mod schedules;
mod searches;
mod sections;
mod stamp;
mod stored;
mod sweep;
mod timeline;

use std::path::{Path, PathBuf};

pub use published::write_published;
pub use timeline::{chrome_trace, latest_run};

use hopmap_durable::replace_file;
use miette::Report;

use crate::engine::{PipelineId, RunReport, Store};
use crate::pipeline::Pipeline;
use stamp::Stamp;

/// A report never grows beyond this, whatever it is about.
const MOST_BYTES: usize = 5_000_000;

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
    let mut page = page::Page::new(MOST_BYTES);
    sections::summary(&mut page, pipeline, store, report, shown);
    gates::gates(&mut page, report);
    sections::quality(&mut page, pipeline, store, report);
    asked::tables(&mut page, report);
    sections::pipeline(&mut page, pipeline, report);
    sweep::sweeps(&mut page, pipeline, store, report);
    matrices::matrices(&mut page, pipeline, store, report);
    searches::tables(&mut page, pipeline, store, report);
    searches::searches(&mut page, pipeline, store, report);
    measured::measured(&mut page, pipeline, store, report);
    schedules::schedules(&mut page, pipeline, store, report);
    routes::routes(&mut page, pipeline, store, report);
    deltas::deltas(&mut page, pipeline, store, report);
    stored::stored(&mut page, pipeline, store, report);
    placement::placements(&mut page, pipeline, store, report);
    timeline::draw(&mut page, pipeline, store, report);
    sections::stages(&mut page, pipeline, report);
    let stamp = Stamp::of(pipeline, store, report).to_string();
    replace_file(path, page.finish(&pipeline.name, &stamp).as_bytes())?;
    Ok(())
}
