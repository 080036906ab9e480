//! `trials`: tables `mappings`, `runs` and, if it was stopped, `looks`; and the output of every run.

use hopmap_model::{FileSet, TrialMapping, TrialRun, Trials};

use super::files::{files_of, with_files};
use crate::codec::{Codec, Contents};
use crate::error::ArtifactError;
use crate::folder::Folder;
use crate::form::TableForm;
use crate::rows::Rows;

value_names!(bool: true => "yes", false => "no");

impl Codec for Trials {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str = "Measured run times of a program under several mappings. `files/N/` has the output of run N, counted from 0 in the order \
              of the table, and what the program wrote into the folder `HOPMAP_TRIAL`.";
    const TABLES: &'static [TableForm] = &[TrialMapping::TABLE, TrialRun::TABLE, Look::TABLE];
    const METRICS: &'static [(&'static str, &'static str)] = &[
        ("runs", "measured runs, without the warm-up"),
        ("incomplete", "runs that failed, or whose time is not known"),
        ("idle", "smallest idle fraction of a measured run"),
        ("lateness_s", "largest lateness of a measured run"),
        ("failed", "part of the measured runs of a compared mapping that failed, the larger of both"),
        (
            "gain",
            "1 − time / time of the first mapping, median of the pairs without failures; with two mappings, or a choice, and at \
             most 5 % failed runs of each",
        ),
        (
            "gain_low",
            "lower end of its 95 % interval, from 6 pairs on, in which failed runs lose; also `gain_high`",
        ),
        ("pairs", "blocks in which both mappings ran and at most one failed, without those of the choice"),
        ("time_step_s", "last digit of the times that the program printed, in seconds, if it printed them"),
        ("precision", "half width of the interval that ends the trial, if asked for"),
        ("most_pairs", "most pairs of the trial, however wide the interval is"),
    ];

    fn encode(&self) -> Contents {
        let contents = Contents::new()
            .table(TrialMapping::table(&self.mappings))
            .table(TrialRun::table(&self.runs))
            .given(Look::table(self.looks.iter().map(|&runs| Look { runs })))
            .metrics(&self.metrics);
        with_files(contents, &self.files)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let trials = Self {
            mappings: folder.rows()?,
            runs: folder.rows()?,
            looks: folder.given_rows()?.into_iter().map(|Look { runs }| runs).collect(),
            metrics: folder.description().metrics.clone(),
            files: FileSet::new(files_of(folder)),
        };
        trials.check().map_err(|error| folder.invalid(error))?;
        Ok(trials)
    }
}

table_rows!("mappings": TrialMapping {
    name: String = "name of the mapping; the first one is the baseline",
    digest: String = "digest of the mapping",
});

table_rows!("runs": TrialRun {
    mapping: String = "name of the mapping",
    block: Option<u32> = "block, in which each mapping runs once; empty for the warm-up",
    choice: bool = "`yes` if the block served to choose the best mapping: it does not count for `gain`",
    seconds: Option<f64> = "run time in seconds",
    mpi_s: Option<f64> = "seconds inside MPI, the mean of all ranks, with `record`",
    lateness_s: Option<f64> = "how late an emulated network was, with `lateness`",
    idle: Option<f64> = "idle fraction of the processors of the host that ran the launcher",
    exit: Option<u32> = "exit status, 128 + the signal for one that was killed, 124 after `timeout_s`; empty if it was stopped with the trial",
    complete: bool = "`yes`, or `no` if it failed or its run time is not known",
});

table_rows!("looks" if "the trial was stopped early": struct Look {
    runs: u32 = "number of runs after which it was stopped and its results were shown",
});
