//! Machine topologies from files: the stages `topology/import` and `topology/hwloc`, and a reader per format.

// A number of a file that does not fit is an error, and not another number.
#[cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_sign_loss))]
pub mod import;
