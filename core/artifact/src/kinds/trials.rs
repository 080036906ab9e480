//! `trials`: tables `mappings`, `runs` and, if it was stopped, `looks`; and the output of every run.

use hopmap_model::{FileSet, TrialMapping, TrialRun, Trials};

use super::files::{files_of, with_files};
use crate::{ArtifactError, Codec, Columns, Contents, Folder, Table};

const YES: [(bool, &str); 2] = [(true, "yes"), (false, "no")];

impl Codec for Trials {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let contents = Contents::new()
            .table(encode_mappings(Table::new("mappings"), &self.mappings))
            .table(encode_runs(Table::new("runs"), &self.runs))
            .metrics(&self.metrics);
        let contents = match &*self.looks {
            [] => contents,
            looks => contents.table(Table::new("looks").u32("runs", looks.iter().copied())),
        };
        with_files(contents, &self.files)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let trials = Self {
            mappings: decode_mappings(&folder.table("mappings")?)?,
            runs: decode_runs(&folder.table("runs")?)?,
            looks: match folder.optional_table("looks")? {
                Some(table) => table.u32("runs")?,
                None => Vec::new(),
            },
            metrics: folder.description().metrics.clone(),
            files: FileSet::new(files_of(folder)),
        };
        trials.check().map_err(|error| folder.invalid(error))?;
        Ok(trials)
    }
}

rows!(encode_mappings, decode_mappings: TrialMapping { text name, text digest });

rows!(encode_runs, decode_runs: TrialRun {
    text mapping,
    optional_u32 block,
    text choice in YES,
    optional_f64 seconds,
    optional_f64 mpi_s,
    optional_f64 lateness_s,
    optional_f64 idle,
    optional_u32 exit,
    text complete in YES,
});
