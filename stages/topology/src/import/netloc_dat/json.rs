//! The JSON of netloc 0.5: objects whose keys are nodes, edges and the ends of paths.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};

use super::super::ImportError;
use super::super::reader::{malformed, read_text};

/// `NETWORK-nodes.ndat`.
#[derive(Debug, Deserialize)]
pub(super) struct NodesFile {
    #[serde(rename = "network_info")]
    pub(super) network: Network,
    #[serde(rename = "node_info")]
    pub(super) nodes: Pairs<Node>,
    #[serde(rename = "edge_info")]
    pub(super) edges: Pairs<Edge>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Network {
    #[serde(rename = "network_type")]
    pub(super) kind: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct Node {
    #[serde(rename = "node_type")]
    pub(super) kind: u32,
    #[serde(default)]
    pub(super) log_id: Text,
    #[serde(default)]
    pub(super) desc: Text,
}

#[derive(Debug, Deserialize)]
pub(super) struct Edge {
    pub(super) src_node_id: Text,
    pub(super) src_port_id: Text,
    pub(super) dest_node_id: Text,
    pub(super) dest_port_id: Text,
    #[serde(default)]
    pub(super) speed: Text,
    #[serde(default)]
    pub(super) width: Text,
}

/// `NETWORK-phy-paths.ndat`.
#[derive(Debug, Deserialize)]
pub(super) struct PathsFile {
    pub(super) path_info: Pairs<Pairs<Vec<u64>>>,
}

pub(super) fn parse<T: DeserializeOwned>(path: &Path) -> Result<T, ImportError> {
    let text = read_text(path)?;
    serde_json::from_str(&text).map_err(|error| {
        let line = Some(error.line()).filter(|&line| line > 0);
        let help = "netloc 0.5 writes `network_info`, `node_info` and `edge_info`, and for paths `path_info`";
        malformed(path, line, format!("{error}"), help)
    })
}

/// The members of an object as they stand there, also repeated ones.
#[derive(Debug)]
pub(super) struct Pairs<T>(pub(super) Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Pairs<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Members(PhantomData))
    }
}

/// A string, or a number as text: readers of netloc differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Text(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;

        impl Visitor<'_> for Words {
            type Value = Text;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string or a number")
            }

            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
        }

        deserializer.deserialize_any(Words)
    }
}
