//! Why a stage has to run: which field, file or input changed, old and new.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::Value as Json;

use super::key::Manifest;

/// One reason to run a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum Reason {
    /// It never ran in this store.
    FirstRun,
    /// It looks at the world, which may have changed.
    Observes,
    /// It was started, but did not finish.
    Unfinished,
    /// It was stopped before its end, and goes on with the state that its search had.
    GoesOn {
        /// Seconds that it took so far; unknown if it was killed.
        seconds: Option<f64>,
    },
    /// It was stopped before its end, and keeps no state with which it could go on.
    CutShort {
        /// Seconds that it took.
        seconds: f64,
    },
    /// An output is gone from the store or damaged.
    OutputDamaged {
        /// The output port.
        output: String,
        /// The first file that is not as it should be.
        file: String,
    },
    /// It uses another kind of stage now.
    Kind {
        /// The kind before.
        old: String,
        /// The kind now.
        new: String,
    },
    /// This version of hopmap gives other results.
    Revision {
        /// The revision before.
        old: u32,
        /// The revision now.
        new: u32,
    },
    /// A parameter has another value.
    Parameter {
        /// The parameter.
        name: String,
        /// The value before.
        old: Option<Json>,
        /// The value now.
        new: Option<Json>,
    },
    /// An input is another artifact.
    Input {
        /// The input port.
        port: String,
        /// The digests before.
        old: Vec<String>,
        /// The digests now.
        new: Vec<String>,
    },
    /// A file behind a path parameter changed.
    File {
        /// Its name.
        name: String,
        /// BLAKE3 before; missing if the file is new.
        old: Option<String>,
        /// BLAKE3 now; missing if the file is gone.
        new: Option<String>,
    },
}

/// All differences between what a stage depended on and depends on now.
#[must_use]
pub(crate) fn differences(old: &Manifest, new: &Manifest) -> Vec<Reason> {
    if old.kind != new.kind {
        return vec![Reason::Kind { old: old.kind.clone(), new: new.kind.clone() }];
    }
    let mut reasons = Vec::new();
    if old.revision != new.revision {
        reasons.push(Reason::Revision { old: old.revision, new: new.revision });
    }
    reasons.extend(parameters(&old.parameters, &new.parameters));
    reasons.extend(inputs(old, new));
    reasons.extend(files(old, new));
    reasons
}

fn parameters(old: &Json, new: &Json) -> Vec<Reason> {
    let keys = |value: &Json| {
        value.as_object().map(|map| map.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
    };
    let names: BTreeSet<String> = keys(old).into_iter().chain(keys(new)).collect();
    let changed = |name: String| {
        let (old, new) = (old.get(&name).cloned(), new.get(&name).cloned());
        (old != new).then_some(Reason::Parameter { name, old, new })
    };
    names.into_iter().filter_map(changed).collect()
}

fn inputs(old: &Manifest, new: &Manifest) -> Vec<Reason> {
    let digests = |manifest: &Manifest, port: &str| {
        let found = manifest.inputs.iter().find(|(name, _)| name == port);
        found.map(|(_, inputs)| inputs.iter().map(|input| input.digest.clone()).collect()).unwrap_or_default()
    };
    let ports: BTreeSet<&String> = old.inputs.iter().chain(&new.inputs).map(|(port, _)| port).collect();
    let changed = |port: &String| {
        let (old, new): (Vec<String>, Vec<String>) = (digests(old, port), digests(new, port));
        (old != new).then(|| Reason::Input { port: port.clone(), old, new })
    };
    ports.into_iter().filter_map(changed).collect()
}

fn files(old: &Manifest, new: &Manifest) -> Vec<Reason> {
    let hash = |manifest: &Manifest, name: &str| {
        manifest.files.iter().find(|(file, _)| file == name).map(|(_, hash)| hash.clone())
    };
    let names: BTreeSet<&String> = old.files.iter().chain(&new.files).map(|(name, _)| name).collect();
    let changed = |name: &String| {
        let (old, new) = (hash(old, name), hash(new, name));
        (old != new).then(|| Reason::File { name: name.clone(), old, new })
    };
    names.into_iter().filter_map(changed).collect()
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstRun => write!(f, "never ran here"),
            Self::Observes => write!(f, "looks at the machine every time"),
            Self::Unfinished => write!(f, "did not finish last time"),
            Self::GoesOn { seconds: Some(seconds) } => write!(f, "goes on after {seconds:.2} s"),
            Self::GoesOn { seconds: None } => write!(f, "goes on after a run that did not end"),
            Self::CutShort { seconds } => write!(f, "was stopped after {seconds:.2} s, begins anew"),
            Self::OutputDamaged { output, file } => {
                write!(f, "output {output}: {file} is missing from the store or damaged")
            }
            Self::Kind { old, new } => write!(f, "uses: {old} → {new}"),
            Self::Revision { old, new } => write!(f, "revision of the stage: {old} → {new}"),
            Self::Parameter { name, old, new } => {
                write!(f, "{name}: {} → {}", shown(old.as_ref()), shown(new.as_ref()))
            }
            Self::Input { port, old, new } => write!(f, "input {port}: {} → {}", digests(old), digests(new)),
            Self::File { name, old: None, .. } => write!(f, "file {name} is new"),
            Self::File { name, new: None, .. } => write!(f, "file {name} is gone"),
            Self::File { name, old: Some(old), new: Some(new) } => {
                write!(f, "file {name}: {} → {}", short(old), short(new))
            }
        }
    }
}

/// The first digits of a digest, enough to tell it from others.
#[must_use]
pub fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

fn shown(value: Option<&Json>) -> String {
    value.map_or_else(|| "nothing".to_owned(), ToString::to_string)
}

fn digests(digests: &[String]) -> String {
    match digests {
        [] => "nothing".to_owned(),
        [digest] => short(digest).to_owned(),
        [first, ..] => format!("{} and {} more", short(first), digests.len() - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::key::InputDigest;
    use serde_json::json;

    #[test]
    fn each_difference_is_named_with_old_and_new() {
        let input = |digest: &str| {
            vec![("system".to_owned(), vec![InputDigest { label: None, digest: digest.into() }])]
        };
        let old = Manifest {
            kind: "map/annealing".into(),
            revision: 1,
            parameters: json!({"seed": 1, "islands": 4}),
            inputs: input("aaaaaaaaaaaaaaaa"),
            files: vec![("a".into(), "1".into()), ("b".into(), "2".into())],
        };
        let new = Manifest {
            parameters: json!({"seed": 2, "islands": 4}),
            inputs: input("bbbbbbbbbbbbbbbb"),
            files: vec![("a".into(), "1".into()), ("c".into(), "2".into())],
            ..old.clone()
        };
        let shown: Vec<String> = differences(&old, &new).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["seed: 1 → 2", "input system: aaaaaaaaaaaa → bbbbbbbbbbbb", "file b is gone", "file c is new"]
        );
        assert!(differences(&old, &old).is_empty());
    }
}
