//! The files of a series as what a stage reads.

use std::path::Path;

use hopmap_model::InputPath;

use crate::series::Checkpoint;

/// All files, by their names in the folder of the series.
pub(super) fn of(series: Vec<Checkpoint>) -> Vec<InputPath> {
    let files = series.into_iter().flat_map(|checkpoint| {
        let name = checkpoint.name;
        let named = move |place: &Path| match place.as_os_str().is_empty() {
            true => name.clone(),
            false => Path::new(&name).join(place).to_string_lossy().into_owned(),
        };
        checkpoint.files.into_iter().map(move |file| InputPath::named(file.path, named(&file.place)))
    });
    files.collect()
}
