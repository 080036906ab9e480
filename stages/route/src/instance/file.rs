//! The keys of an instance.

use std::collections::BTreeMap;

use hopmap_text::FileError;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::{ImportParams, LinkParams};

/// An instance as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) hosts: Vec<Host>,
    #[serde(default)]
    pub(super) switches: Vec<Switch>,
    #[serde(default)]
    pub(super) links: Vec<Cable>,
    pub(super) processes: Vec<Process>,
    #[serde(default)]
    pub(super) streams: Vec<Stream>,
    #[serde(default)]
    pub(super) mapping: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub(super) tables: Vec<Entry>,
    /// For people.
    #[serde(default, rename = "note")]
    _note: Option<IgnoredAny>,
    /// What is known of the answer, for tests.
    #[serde(default, rename = "expected")]
    _expected: Option<IgnoredAny>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    pub(super) name: String,
    pub(super) performance: f64,
    #[serde(default)]
    pub(super) capabilities: Vec<String>,
    #[serde(default)]
    pub(super) devices: BTreeMap<String, u32>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Switch {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) switch_type: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cable {
    pub(super) a: String,
    pub(super) b: String,
    pub(super) bandwidth: f64,
    #[serde(default)]
    pub(super) a_port: Option<u32>,
    #[serde(default)]
    pub(super) b_port: Option<u32>,
    #[serde(default)]
    pub(super) directed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) requires: f64,
    #[serde(default)]
    pub(super) capabilities: Vec<String>,
    #[serde(default)]
    pub(super) devices: BTreeMap<String, u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stream {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) bandwidth: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) switch: String,
    #[serde(default)]
    pub(super) input: Option<u32>,
    pub(super) destination: String,
    pub(super) output: u32,
}

impl File {
    /// Changes what parameters say otherwise; what is wrong with them, and what to do.
    pub(super) fn change(&mut self, params: &ImportParams) -> Result<(), (String, String)> {
        if let Some(performance) = params.performance {
            self.hosts.iter_mut().for_each(|host| host.performance = performance);
        }
        for (name, &switch_type) in &params.switch_types {
            let Some(switch) = self.switches.iter_mut().find(|switch| switch.name == *name) else {
                let names: Vec<&str> = self.switches.iter().map(|switch| switch.name.as_str()).collect();
                return Err((
                    format!("`switch_types` names `{name}`, which is no switch"),
                    format!("its switches: {}", names.join(", ")),
                ));
            };
            switch.switch_type = switch_type;
        }
        let cable = |LinkParams { a, b, bandwidth }: &LinkParams| Cable {
            a: a.clone(),
            b: b.clone(),
            bandwidth: *bandwidth,
            a_port: None,
            b_port: None,
            directed: false,
        };
        self.links.extend(params.links.iter().map(cable));
        if params.unmapped {
            self.mapping = None;
        }
        Ok(())
    }

    /// A network without a program.
    pub(super) fn of_network(hosts: Vec<Host>, switches: Vec<Switch>, links: Vec<Cable>) -> Self {
        Self { hosts, switches, links, ..Self::default() }
    }
}

/// Reads JSON or TOML; `help` says what keys there are.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8], help: &str) -> Result<T, FileError> {
    let text = hopmap_text::utf8(bytes)?;
    if text.trim().is_empty() {
        return Err(FileError::at(1, "the file is empty", help));
    }
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text)
            .map_err(|error| FileError::at(error.line().max(1), plain(&error.to_string()), help));
    }
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        FileError::at(text.as_bytes()[..at].split(|&byte| byte == b'\n').count(), error.message(), help)
    })
}

/// The message without the place, which stands elsewhere.
fn plain(message: &str) -> String {
    message.rsplit_once(" at line ").map_or(message, |(message, _)| message).to_owned()
}
