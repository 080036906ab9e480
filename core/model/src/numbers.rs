//! Parameters that are a number or several.

use std::fmt;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads a number, a list of numbers, or a text with colons between them.
///
/// # Errors
/// If it is none of these.
pub fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    struct Numbers;

    impl<'de> Visitor<'de> for Numbers {
        type Value = Vec<f64>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a number, a list of numbers, or a text such as \"1:10:100\"")
        }

        fn visit_f64<E>(self, number: f64) -> Result<Vec<f64>, E> {
            Ok(vec![number])
        }

        fn visit_u64<E>(self, number: u64) -> Result<Vec<f64>, E> {
            Ok(vec![number as f64])
        }

        fn visit_i64<E>(self, number: i64) -> Result<Vec<f64>, E> {
            Ok(vec![number as f64])
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<f64>, E> {
            let number = |word: &str| {
                let number = word.trim().parse();
                number.map_err(|_| E::custom(format!("`{word}` in `{text}` is not a number")))
            };
            text.split(':').map(number).collect()
        }

        fn visit_seq<A: SeqAccess<'de>>(self, numbers: A) -> Result<Vec<f64>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(numbers))
        }
    }
    deserializer.deserialize_any(Numbers)
}

/// What [`numbers`] reads.
#[must_use]
pub fn numbers_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["number", "array", "string"], "items": { "type": "number", "format": "double" } })
}
