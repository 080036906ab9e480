//! Target architectures of Scotch, as its user guide 7.0 and its own reader define them (`.tgt`).
//!
//! | target | becomes | distance of two terminals |
//! |---|---|---|
//! | `tleaf L n c …`, `ltleaf` | levels and a tree of switches | the sum of the costs of the level on which they part and of all levels further in |
//! | `mesh2D`, `mesh3D`, `meshXD`, `torus2D`, `torus3D`, `torusXD`, `hcub` | hosts linked to hosts, routed dimension by dimension | the number of links |
//! | `cmplt`, `cmpltw` | one level | 1 |
//! | `deco 0`, `deco 1` | a matrix | as written |
//! | `sub n t … TARGET` | the target with slots on these terminals only | as in the target |
//!
//! A terminal is a host with one slot, unless `slots` says that so many leaves of a tree are a host, or that every host of a mesh has so
//! many. A weight is a number of slots.

mod machine;

use std::path::Path;

use hopmap_text::Words;

use super::finish;
use super::reader::Sample;
use super::{ImportError, ImportParams, Imported};
pub(super) use machine::tree;

/// A file that begins with the name of a class and, where that has parameters, with a number behind it.
pub(super) fn recognises(sample: &Sample) -> bool {
    let Some(text) = sample.text() else { return false };
    let mut words = text.split_whitespace();
    let Some(class) = words.next() else { return false };
    let Some(is_alone) = machine::is_alone(class) else { return false };
    let number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    match words.next() {
        None => is_alone,
        Some(word) => number(word),
    }
}

pub(super) fn read(path: &Path, params: &ImportParams) -> Result<Imported, ImportError> {
    finish::check(params)?;
    let mut words = Words::open(path, "")?;
    let target = machine::target(&mut words)?;
    let rest = words.next()?.then(|| words.line());
    let (system, mut notes) = machine::machine(&target, params, path)?;
    if let Some(line) = rest {
        notes.push(format!(
            "what stands behind the target, from line {line} on, is not read; Scotch does the same"
        ));
    }
    Ok(Imported { system, notes })
}

#[cfg(test)]
mod tests;
