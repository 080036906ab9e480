//! Slots of hosts as a parameter: one number for all, or one for each.

use std::str::FromStr;

use hopmap_model::one_or_several;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};

use crate::host_file::Hosts;
use crate::host_list::MAX_NAMES;

/// Slots of hosts in their order: none are given, one number for all, or one for each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slots(Vec<u32>);

/// What slots may be.
pub const SLOTS: &str = "give a number for all hosts, such as 8, or one for each, such as 8,4,4 or 4(x3),2";

impl Slots {
    /// Whether none are given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The largest number, or 0.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.0.iter().copied().max().unwrap_or(0)
    }

    /// The number that all hosts have, or 0.
    #[must_use]
    pub fn of_all(&self) -> u32 {
        if let [all] = self.0[..] { all } else { 0 }
    }

    /// The number of each of the hosts of a place, where numbers are given by a parameter.
    ///
    /// # Errors
    /// If these are for another count of hosts, or if `is_list`, the place is a parameter, and gives a host another number.
    pub fn of_hosts(
        &self,
        parameter: &str,
        hosts: &Hosts,
        place: &str,
        is_list: bool,
    ) -> Result<Vec<Option<u32>>, String> {
        let each = match self.0[..] {
            [] => vec![None; hosts.len()],
            [all] => vec![Some(all); hosts.len()],
            ref each => each.iter().copied().map(Some).collect(),
        };
        let (numbers, count) = (each.len(), hosts.len());
        if numbers != count {
            return Err(format!("{parameter} has {numbers} numbers, but {place} has {count} hosts"));
        }
        for ((name, own), given) in hosts.iter().zip(&each) {
            if let (true, Some(own), Some(given)) = (is_list, own, given)
                && own != given
            {
                return Err(format!("{place} gives `{name}` {own} slots, but {parameter} {given}"));
            }
        }
        Ok(each)
    }
}

impl From<u32> for Slots {
    fn from(all: u32) -> Self {
        Self(vec![all])
    }
}

/// Numbers above 0 between commas, each of which may have a count: `4(x3),2`, as in the variables of Slurm.
pub(crate) fn numbers(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',') {
        let (number, times) = match part.split_once("(x") {
            Some((number, times)) => (number, times.trim().strip_suffix(')')?.parse().ok()?),
            None => (part, 1),
        };
        let number = number.trim().parse().ok().filter(|&number: &u32| number > 0)?;
        if times > MAX_NAMES - numbers.len() {
            return None;
        }
        numbers.resize(numbers.len() + times, number);
    }
    Some(numbers)
}

impl FromStr for Slots {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" | "0" => Ok(Self::default()),
            text => numbers(text).map(Self).ok_or_else(|| SLOTS.to_owned()),
        }
    }
}

impl Serialize for Slots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0[..] {
            [] => serializer.serialize_u32(0),
            [all] => serializer.serialize_u32(all),
            ref each => each.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Slots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expecting = "a number of slots, or a list of them such as [8, 4, 4]";
        let slots = one_or_several(deserializer, expecting, |text| Ok(text.parse::<Self>()?.0))?;
        match slots[..] {
            [0] => Ok(Self::default()),
            _ if slots.contains(&0) => Err(D::Error::custom(SLOTS)),
            _ => Ok(Self(slots)),
        }
    }
}

impl JsonSchema for Slots {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Slots".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "array", "string"], "items": { "type": "integer", "minimum": 1 }, "minimum": 0 })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn slots_are_a_number_or_one_for_each_host() {
        let slots = |value: serde_json::Value| serde_json::from_value::<Slots>(value);
        let of = |value, hosts: &Hosts| slots(value).unwrap().of_hosts("slots", hosts, "the list", true);
        let hosts: Hosts = ["a", "b", "c"].map(|name| (name.to_owned(), None)).into();
        let each = |value| of(value, &hosts);
        assert_eq!(each(json!(0)), Ok(vec![None; 3]));
        assert_eq!(each(json!("8")), Ok(vec![Some(8); 3]));
        for value in [json!([8, 4, 4]), json!("8,4,4"), json!("8, 4(x2)")] {
            assert_eq!(each(value.clone()), Ok(vec![Some(8), Some(4), Some(4)]));
            assert_eq!(serde_json::to_value(slots(value).unwrap()).unwrap(), json!([8, 4, 4]));
        }
        assert_eq!(each(json!([8, 4])).unwrap_err(), "slots has 2 numbers, but the list has 3 hosts");
        // One of the numbers was taken without a word.
        let own: Hosts = vec![("a".to_owned(), Some(8)), ("b".to_owned(), Some(4))];
        assert_eq!(of(json!(8), &own).unwrap_err(), "the list gives `b` 4 slots, but slots 8");
        assert_eq!(of(json!([8, 4]), &own), Ok(vec![Some(8), Some(4)]));
        for wrong in
            [json!(-1), json!([0, 1]), json!("8,"), json!("4(x99999999999)"), json!(1u64 << 40), json!(1.5)]
        {
            assert!(slots(wrong.clone()).is_err(), "{wrong}");
        }
        // Keys of results with one number are those of before.
        assert_eq!(serde_json::to_string(&slots(json!(4)).unwrap()).unwrap(), "4");
    }
}
