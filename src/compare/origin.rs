//! Why two artifacts are different: what their keys were made of.

use std::collections::HashSet;

use serde::Serialize;

use super::side::Side;
use crate::engine::{Reason, differences};

/// A difference between what two artifacts were made from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// The difference.
    pub difference: Reason,
    /// Of an input, why it is another one; empty if that is not known.
    pub because: Vec<Self>,
}

/// What is different between what two artifacts were made from, and one level down why inputs are; to the first causes if
/// `is_deep`.
#[must_use]
pub fn origin(before: &Side, after: &Side, is_deep: bool) -> Vec<Cause> {
    let levels = if is_deep { usize::MAX } else { 1 };
    causes(before, after, levels, &mut HashSet::new())
}

/// Inputs that several paths lead to are explained once.
fn causes(before: &Side, after: &Side, levels: usize, seen: &mut HashSet<(String, String)>) -> Vec<Cause> {
    let (Some(old), Some(new)) = (&before.manifest, &after.manifest) else { return Vec::new() };
    let cause = |difference: Reason| {
        let pairs: Vec<(String, String)> = match &difference {
            Reason::Input { old, new, .. } if levels > 0 && old.len() == new.len() => {
                old.iter().cloned().zip(new.iter().cloned()).filter(|(old, new)| old != new).collect()
            }
            _ => Vec::new(),
        };
        let mut because = Vec::new();
        for pair in pairs {
            if !seen.insert(pair.clone()) {
                continue;
            }
            if let (Some(old), Some(new)) = (before.input(&pair.0), after.input(&pair.1)) {
                because.extend(causes(&old, &new, levels - 1, seen));
            }
        }
        Cause { difference, because }
    };
    differences(old, new).into_iter().map(cause).collect()
}

impl Cause {
    /// The difference and why, each level further to the right.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut lines = vec![self.difference.to_string()];
        for cause in &self.because {
            let inner = cause.words();
            lines.extend(inner.iter().enumerate().map(|(index, line)| {
                if index == 0 { format!("  because {line}") } else { format!("  {line}") }
            }));
        }
        lines
    }
}
