//! The pipeline file: parsed, checked, its matrices expanded, and built into a typed graph of cells.
//!
//! Everything that is wrong with a file is found before anything runs, and reported at once.
//!
//! # From text to cells
//!
//! `src/pipeline`: `node` (TOML that knows where every value stands) → `file` (known keys, right forms) → `expand` (which cells a stage
//! has: `foreach` × `matrix` × `zip` without `exclude`, each a dimension whose rows are counted before they are made; kinds looked up) →
//! `connect` (selectors to edges, ports checked, circles found) → `build` (values of `with` against the stage's schema and types). All
//! problems are collected; nothing runs while there is one (`tests/cli/broken.rs`).
//!
//! `project` has the pipelines that come with hopmap, and makes files of one's own of them (`hopmap init`): read line by line, so
//! each parameter stands in a line (`parameters_of_embedded_pipelines_are_those_that_toml_has`).
//!
//! Help, completions and manual pages come from the one definition of the command line (`src/cli/mod.rs`). `ci/install.sh` is the only
//! place that says what is installed where; `ci/deb.sh` and `ci/tarball.sh` pack what it installs, `pyproject.toml` has Maturin pack the
//! program alone, and `ci/try-packages.sh` tries all three in a clean Debian. A tarball with a library that another machine may not have is
//! refused when it is made. The C library stays the system's: a static glibc loads modules at run time to resolve names, of exactly its own
//! version, and `hopmap agent` asks for the address of its host.
//!
//! Cells pair up by equal matrix keys, also inside `[*]` and `[min F]`: `placement[min F]` in a cell with `mapper=linear` chooses
//! among the cells of `placement` with `mapper=linear`. They are looked up by the values of these keys, so that 10,000 cells pair up with
//! 10,000 others in no time.
//!
//! `range` counts in decimals: `0.1..0.5 step 0.1` has 0.3, not 0.30000000000000004. `glob` walks folders itself and takes only the
//! patterns from the crate of that name, which passes over names that are not UTF-8 without a word.
//!
//! Paths in a pipeline file are relative to the file, values of `-p` to the working directory: a value remembers where it was
//! written (`template::Base`).

mod build;
mod cells;
mod connect;
mod expand;
mod file;
mod gates;
mod glob;
mod launcher;
mod matrix;
mod node;
mod problem;
mod project;
mod range;
mod selector;
mod template;

pub use crate::query::TableQuestion;
pub(crate) use build::{assignments, configure_alone, first_sentence};
pub use cells::{Cell, Need, Origin, Pipeline, Save};
pub(crate) use expand::plain;
pub use file::{Batch, bytes, show_bytes};
pub use glob::STORE_FOLDER;
pub use launcher::Launcher;
pub(crate) use launcher::{LAUNCHERS, distributed_stages};
pub(crate) use matrix::grouped;
pub(crate) use node::{Entry, Node, NodeValue, Table};
pub use problem::{LocatedProblem, Problem, Problems, Source};
pub use project::{EMBEDDED, Embedded, Parameter, SCHEMA_FILE, parameters};
pub use selector::Extreme;
pub(crate) use selector::{Choice, Selector};
pub use template::Folders;
