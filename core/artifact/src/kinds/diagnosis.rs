//! `diagnosis`: table `causes`; `failures`: table `failures`.

use hopmap_model::{Cause, Diagnosis, Failure, Failures, Part};

use crate::{ArtifactError, Codec, Columns, Contents, Folder, Table};

const PARTS: [(Part, &str); 5] = [
    (Part::Link, "link"),
    (Part::Switch, "switch"),
    (Part::Host, "host"),
    (Part::Process, "process"),
    (Part::Stream, "stream"),
];

const SURVIVED: [(Option<bool>, &str); 3] = [(Some(true), "yes"), (Some(false), "no"), (None, "unknown")];

impl Codec for Diagnosis {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let causes = || self.causes.iter();
        Contents::new()
            .table(
                Table::new("causes")
                    .u32("remedy", causes().map(|cause| cause.remedy))
                    .text("part", causes().map(|cause| name_of(&PARTS, cause.part)))
                    .text("name", causes().map(|cause| &cause.name))
                    .optional_f64("there", causes().map(|cause| cause.there))
                    .optional_f64("needed", causes().map(|cause| cause.needed))
                    .text("words", causes().map(|cause| &cause.words)),
            )
            .metrics(&self.metrics)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let table = folder.table("causes")?;
        let (remedies, parts) = (table.u32("remedy")?, table.text("part")?);
        let (names, words) = (table.text("name")?, table.text("words")?);
        let (there, needed) = (table.optional_f64("there")?, table.optional_f64("needed")?);
        let cause = |row: usize| {
            Ok(Cause {
                remedy: remedies[row],
                part: known(&PARTS, &table, "part", &parts[row])?,
                name: names[row].clone(),
                there: there[row],
                needed: needed[row],
                words: words[row].clone(),
            })
        };
        let causes = (0..table.rows()).map(cause).collect::<Result<_, ArtifactError>>()?;
        Ok(Self { causes, metrics: folder.description().metrics.clone() })
    }
}

impl Codec for Failures {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let failures = || self.failures.iter();
        Contents::new()
            .table(
                Table::new("failures")
                    .text("part", failures().map(|failure| name_of(&PARTS, failure.part)))
                    .text("name", failures().map(|failure| &failure.name))
                    .text("survived", failures().map(|failure| name_of(&SURVIVED, failure.survived)))
                    .optional_f64("objective", failures().map(|failure| failure.objective))
                    .optional_u32("longest", failures().map(|failure| failure.longest))
                    .u32("moved", failures().map(|failure| failure.moved))
                    .u32("rerouted", failures().map(|failure| failure.rerouted))
                    .u32("changed_entries", failures().map(|failure| failure.changed_entries))
                    .text("shortage", failures().map(|failure| &failure.shortage)),
            )
            .metrics(&self.metrics)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let table = folder.table("failures")?;
        let (parts, names, survived) = (table.text("part")?, table.text("name")?, table.text("survived")?);
        let (objective, longest) = (table.optional_f64("objective")?, table.optional_u32("longest")?);
        let (moved, rerouted) = (table.u32("moved")?, table.u32("rerouted")?);
        let (changed, shortage) = (table.u32("changed_entries")?, table.text("shortage")?);
        let failure = |row: usize| {
            Ok(Failure {
                part: known(&PARTS, &table, "part", &parts[row])?,
                name: names[row].clone(),
                survived: known(&SURVIVED, &table, "survived", &survived[row])?,
                objective: objective[row],
                longest: longest[row],
                moved: moved[row],
                rerouted: rerouted[row],
                changed_entries: changed[row],
                shortage: shortage[row].clone(),
            })
        };
        let failures = (0..table.rows()).map(failure).collect::<Result<_, ArtifactError>>()?;
        Ok(Self { failures, metrics: folder.description().metrics.clone() })
    }
}

fn name_of<T: Copy + PartialEq>(names: &[(T, &'static str)], value: T) -> &'static str {
    names.iter().find(|(known, _)| *known == value).map_or("", |(_, name)| name)
}

fn known<T: Copy>(
    names: &[(T, &str)],
    table: &Columns,
    column: &str,
    name: &str,
) -> Result<T, ArtifactError> {
    let found = names.iter().find(|(_, known)| *known == name).map(|(value, _)| *value);
    found.ok_or_else(|| table.error(column, format!("is `{name}`, which it cannot be")))
}
