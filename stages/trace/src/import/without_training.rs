//! In the place of `training` in a build without that feature.

use std::path::Path;

use hopmap_model::{Context, Error, Program};

use super::reader::Reader;
use crate::error::TraceError;

const LEFT_OUT: Reader = Reader {
    recognises: |_| false,
    files: |path| Err(left_out(path)),
    read: |path, _, _| Err(left_out(path).into()),
    ..Reader::BINARY
};

pub(super) static CHAKRA: Reader = LEFT_OUT;
pub(super) static FLIGHT_RECORDER: Reader = LEFT_OUT;
pub(super) static KINETO: Reader = LEFT_OUT;
pub(super) static INSPECTOR: Reader = LEFT_OUT;

pub(super) fn chakra_program(path: &Path, _: &Context<'_>) -> Result<Program, Error> {
    Err(left_out(path).into())
}

pub(super) fn kineto_program(path: &Path, _: &Context<'_>) -> Result<Program, Error> {
    Err(left_out(path).into())
}

fn left_out(path: &Path) -> TraceError {
    let help = "this hopmap was built without the feature `training`, which cargo builds by default";
    TraceError::of(path, "is of a training job", help)
}
