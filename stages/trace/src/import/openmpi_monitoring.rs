//! Profiles of Open MPI's monitoring; `hopmap-recording` describes them.

use hopmap_model::InputPath;
use hopmap_recording::{PROFILE_ROWS, Recording, is_profiles, profiles};

use super::hopmap_record;
use super::reader::Reader;
use crate::error::TraceError;

pub(super) static READER: Reader = Reader {
    recognises: |sample| is_profiles(sample.path),
    files: |path| {
        // The prefix is not part of the names, so that renaming does not change keys.
        let named = |(rank, path)| InputPath::named(path, format!("{rank}.prof"));
        Ok(profiles(path)?.into_iter().map(named).collect())
    },
    read: |path, options, cx| {
        let recording = Recording::of_profiles(path, options.ranks).map_err(TraceError::from)?;
        Ok(hopmap_record::graph(&recording, options, cx)?)
    },
    rows: PROFILE_ROWS,
    begins: |text| text.lines().any(PROFILE_ROWS.is_row),
};
