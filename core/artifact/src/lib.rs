//! Model types as Arrow tables in Parquet files.
//!
//! An artifact is a folder: `artifact.json` (kind, schema version, rows and BLAKE3 of each table and file,
//! metrics), one `TABLE.parquet` per table, and `files/`. The BLAKE3 of `artifact.json` is the digest of the
//! artifact, so the digest covers all contents. The same value always gives the same bytes.

// What is read is untrusted: a number that does not fit is an error and not another number.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod codec;
mod error;
mod folder;
mod form;
mod kinds;
mod rows;
mod table;
mod value;

pub use codec::{Codec, Contents};
pub use error::ArtifactError;
pub use folder::{DESCRIPTION, Description, Folder, PROVENANCE, TableDescription};
pub use form::{ColumnForm, KindForm, TableForm};
pub use kinds::{COMPARED, FORMS, compared, form, is_without_contention, saved_at_most};
pub use table::Cell;
pub use table::Columns;
pub use table::{Table, TableReader, TableWriter, read_table};
pub use value::ColumnValue;
