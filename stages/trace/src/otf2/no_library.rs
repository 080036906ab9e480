//! Stands in for `through_library` in a build without libotf2.

use hopmap_model::Context;

use super::program::{Program, Visited};
use super::visitor::Visitor;
use crate::{LIBOTF2, Otf2Error, Reader};

/// Says that libotf2 is missing.
pub(super) fn visit<V: Visitor, T: Send>(
    _: &Program,
    _: &Context<'_>,
    _: impl Fn(u64) -> V + Sync,
    _: impl Fn(Visited, V) -> Result<T, Otf2Error> + Sync,
) -> Result<Vec<T>, Otf2Error> {
    Err(LIBOTF2.missing(Reader::NEEDS_LIBRARY).into())
}
