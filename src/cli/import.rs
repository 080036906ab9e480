//! `hopmap import`: an archive of a run as a project that runs.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use hopmap_command::{Exit, refuse, shown};
use hopmap_launchers::shell_word;
use serde_json::json;

use super::open::working_directory;
use super::output::{Output, Result};
use super::verify::refused;
use crate::archive::{Archive, ArchiveError, is_reserved};

/// Arguments of `import`.
#[derive(Debug, Args)]
#[command(after_help = "\
The folder gets the pipeline file, the input files, and a store with all results, so that `hopmap run` there has nothing \
to compute. Parameters of the run become defaults of the pipeline file. Every byte of the archive is checked first; a \
damaged archive, or one without input files, is refused.

Importing starts no command. If the pipeline can start some (`launcher`, map/external and others), `hopmap run` lists them, and
starts them only after --allow-programs.

Examples:
  hopmap import lu.crate.zip
  hopmap import lu.crate.zip lu-2026")]
pub(crate) struct Arguments {
    /// Archive that `hopmap export` wrote.
    #[arg(value_hint = ValueHint::FilePath)]
    archive: PathBuf,
    /// Folder of the project; new or empty [default: name of the archive].
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    let working = working_directory()?;
    let path = working.join(&arguments.archive);
    let mut archive = Archive::open(&path)?;
    let checked = archive.check()?;
    if let Some(finding) = checked.findings.into_iter().next() {
        return Err(ArchiveError::Damaged { path, place: finding.file, reason: finding.what }.into());
    }
    checked.notes.iter().for_each(|note| output.note(format!("note: {note}")));
    let named = arguments.folder.clone().unwrap_or_else(|| default_folder(&arguments.archive));
    if named.components().any(|part| is_reserved(&part.as_os_str().to_string_lossy())) {
        return refuse(
            format!("`{}` is a name of hopmap's own files", shown(&named)),
            "name another folder for the project",
        );
    }
    let folder = working.join(named);
    let imported = archive.import(&folder).map_err(refused)?;
    output.json(&json!({ "folder": folder, "imported": imported }));
    output.line(format!("{}: {} files, {} results", shown(&folder), imported.files, imported.results));
    output.line(format!(
        "  {:<12} hopmap run {}",
        "run it",
        shell_word(&shown(&folder.join(&imported.pipeline)))
    ));
    Ok(Exit::Done)
}

/// `lu.crate.zip` becomes `lu`, in the working directory.
fn default_folder(archive: &std::path::Path) -> PathBuf {
    let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = name.strip_suffix(".zip").unwrap_or(&name);
    let stem = stem.strip_suffix(".crate").unwrap_or(stem);
    // Neither hidden, as hopmap's own folders are, nor an option for the next command.
    let stem = stem.trim_start_matches(['.', '-']);
    PathBuf::from(match stem {
        "" => "imported".to_owned(),
        _ if stem == name => format!("{name}.project"),
        _ => stem.to_owned(),
    })
}
