//! Keys: what a result depends on, and nothing else.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Everything a result depends on. No absolute path, time, host name, thread count or formatting is in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Kind of the stage.
    pub kind: String,
    /// Revision of the stage.
    pub(crate) revision: u32,
    /// Parameters as the stage read them, defaults filled in, paths left out.
    pub parameters: Json,
    /// Digests of the inputs by port.
    pub(crate) inputs: Vec<(String, Vec<InputDigest>)>,
    /// Names and BLAKE3 of the files behind path parameters.
    pub files: Vec<(String, String)>,
}

/// An input of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InputDigest {
    /// Name of the cell it comes from; part of the key only where a port takes many values and shows them by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// Digest of the artifact.
    pub(crate) digest: String,
}

/// BLAKE3 of a [`Manifest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key([u8; 32]);

impl Manifest {
    /// The key: BLAKE3 over an encoding in which every text carries its length, so that no two manifests share it.
    pub(crate) fn key(&self) -> Key {
        let mut hasher = blake3::Hasher::new();
        let mut put = |bytes: &[u8]| {
            hasher.update(bytes);
        };
        put_text(&mut put, "hopmap-key-1");
        put_text(&mut put, &self.kind);
        put(&self.revision.to_le_bytes());
        put_json(&mut put, &self.parameters);
        put_length(&mut put, self.inputs.len());
        for (port, inputs) in &self.inputs {
            put_text(&mut put, port);
            put_length(&mut put, inputs.len());
            for input in inputs {
                put_length(&mut put, usize::from(input.label.is_some()));
                put_text(&mut put, input.label.as_deref().unwrap_or_default());
                put_text(&mut put, &input.digest);
            }
        }
        put_length(&mut put, self.files.len());
        for (name, hash) in &self.files {
            put_text(&mut put, name);
            put_text(&mut put, hash);
        }
        Key(*hasher.finalize().as_bytes())
    }
}

fn put_length(put: &mut impl FnMut(&[u8]), length: usize) {
    put(&(length as u64).to_le_bytes());
}

fn put_text(put: &mut impl FnMut(&[u8]), text: &str) {
    put_length(put, text.len());
    put(text.as_bytes());
}

fn put_json(put: &mut impl FnMut(&[u8]), value: &Json) {
    match value {
        Json::Null => put(b"n"),
        Json::Bool(value) => put(if *value { b"t" } else { b"f" }),
        Json::Number(number) => {
            put(b"#");
            put_text(put, &number.to_string());
        }
        Json::String(text) => {
            put(b"s");
            put_text(put, text);
        }
        Json::Array(values) => {
            put(b"a");
            put_length(put, values.len());
            values.iter().for_each(|value| put_json(put, value));
        }
        Json::Object(map) => {
            put(b"o");
            put_length(put, map.len());
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            for (key, value) in entries {
                put_text(put, key);
                put_json(put, value);
            }
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Key {
    /// Reads what [`fmt::Display`] writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let is_hexadecimal = text.len() == 64 && text.is_ascii();
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)).filter(|_| is_hexadecimal) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        is_hexadecimal.then_some(Self(bytes))
    }
}

/// One reason to run a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub(crate) enum Reason {
    /// It never ran in this store.
    FirstRun,
    /// It observes the machine, which may have changed.
    Observes,
    /// It was started, but did not finish.
    Unfinished,
    /// It was stopped before its end, and goes on with the state that its search had.
    GoesOn {
        /// Seconds that it took so far; unknown if it was killed.
        seconds: Option<f64>,
        /// The epoch after which it goes on, if its state has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        epoch: Option<u64>,
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

/// Inputs that are not the same.
pub(crate) fn inputs(old: &Manifest, new: &Manifest) -> Vec<Reason> {
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
            Self::FirstRun => write!(f, "no result in this store yet"),
            Self::Observes => write!(f, "observes the machine in every run"),
            Self::Unfinished => write!(f, "did not finish last time"),
            Self::GoesOn { seconds, epoch } => {
                let after = match (epoch, seconds) {
                    (Some(epoch), Some(seconds)) => format!("epoch {epoch} and {seconds:.2} s"),
                    (Some(epoch), None) => format!("epoch {epoch}"),
                    (None, Some(seconds)) => format!("{seconds:.2} s"),
                    (None, None) => "an interrupted run".to_owned(),
                };
                write!(f, "goes on after {after}")
            }
            Self::CutShort { seconds } => write!(f, "was stopped after {seconds:.2} s, starts from scratch"),
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

/// The first digits of a digest, enough to identify it.
pub(crate) fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

fn shown(value: Option<&Json>) -> String {
    value.map_or_else(|| "nothing".to_owned(), ToString::to_string)
}

fn digests(digests: &[String]) -> String {
    match digests {
        [] => "nothing".to_owned(),
        [digest] => short(digest).to_owned(),
        [first, second] => format!("{} and {}", short(first), short(second)),
        [first, ..] => format!("{} and {} more", short(first), digests.len() - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn manifest() -> Manifest {
        Manifest {
            kind: "map/annealing".into(),
            revision: 1,
            parameters: json!({"seed": 1, "weight": "bytes", "list": ["ab", "c"]}),
            inputs: vec![("system".into(), vec![InputDigest { label: None, digest: "d1".into() }])],
            files: vec![("x.csv".into(), "h".into())],
        }
    }

    #[test]
    fn every_field_changes_the_key() {
        let changes: Vec<fn(&mut Manifest)> = vec![
            |m| m.kind = "map/linear".into(),
            |m| m.revision = 2,
            |m| m.parameters["seed"] = 2.into(),
            |m| m.parameters["seed"] = "1".into(),
            |m| m.parameters["list"] = json!(["a", "bc"]),
            |m| m.parameters["more"] = Json::Null,
            |m| m.inputs[0].0 = "task-graph".into(),
            |m| m.inputs[0].1[0].digest = "d2".into(),
            |m| m.inputs[0].1[0].label = Some(String::new()),
            |m| m.inputs.clear(),
            |m| m.files[0].0 = "y.csv".into(),
            |m| m.files[0].1 = "i".into(),
        ];
        let mut keys = vec![manifest().key()];
        for change in changes {
            let mut other = manifest();
            change(&mut other);
            keys.push(other.key());
        }
        let distinct: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }

    #[test]
    fn a_printed_key_is_parsed_back() {
        let key = manifest().key();
        assert_eq!(Key::parse(&key.to_string()), Some(key));
        assert_eq!(Key::parse("12"), None);
        assert_eq!(Key::parse(&"g".repeat(64)), None);
    }

    proptest! {
        #[test]
        fn texts_never_run_into_each_other(a in ".{0,4}", b in ".{0,4}", c in ".{0,4}", d in ".{0,4}") {
            let with = |name: &str, hash: &str| {
                Manifest { files: vec![(name.into(), hash.into())], ..manifest() }.key()
            };
            prop_assert_eq!(with(&a, &b) == with(&c, &d), (a, b) == (c, d));
        }
    }

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
