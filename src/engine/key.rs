//! Keys: what a result depends on, and nothing else.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Everything a result depends on. No absolute path, time, host name, thread count or formatting is in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Kind of the stage.
    pub kind: String,
    /// Revision of the stage.
    pub revision: u32,
    /// Parameters as the stage read them, defaults filled in, paths left out.
    pub parameters: Json,
    /// Digests of the inputs by port.
    pub inputs: Vec<(String, Vec<InputDigest>)>,
    /// Names and BLAKE3 of the files behind path parameters.
    pub files: Vec<(String, String)>,
}

/// An input of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputDigest {
    /// Name of the cell it comes from; part of the key only where a port takes many values and shows them by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Digest of the artifact.
    pub digest: String,
}

/// BLAKE3 of a [`Manifest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 32]);

impl Manifest {
    /// The key: BLAKE3 over an encoding in which every text carries its length, so that no two manifests share it.
    #[must_use]
    pub fn key(&self) -> Key {
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
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let is_hexadecimal = text.len() == 64 && text.is_ascii();
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)).filter(|_| is_hexadecimal) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        is_hexadecimal.then_some(Self(bytes))
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
    fn a_key_is_read_as_it_is_written() {
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
}
