//! Parameters that are a number or several.

use std::fmt;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A number as the default of a parameter: `#[serde(default = "hopmap_model::number::<10, u64>")]`.
#[must_use]
pub fn number<const N: u32, T: From<u32>>() -> T {
    N.into()
}

/// Reads a number, a list of numbers, or a text with several, which `parse` reads.
///
/// # Errors
/// If it is none of these; `expecting` says what it may be.
pub fn one_or_several<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    expecting: &'static str,
    parse: fn(&str) -> Result<Vec<T>, String>,
) -> Result<Vec<T>, D::Error> {
    struct Numbers<T>(&'static str, fn(&str) -> Result<Vec<T>, String>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Numbers<T> {
        type Value = Vec<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<Vec<T>, E> {
            Ok(vec![T::deserialize(number.into_deserializer())?])
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<Vec<T>, E> {
            Ok(vec![T::deserialize(number.into_deserializer())?])
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<Vec<T>, E> {
            Ok(vec![T::deserialize(number.into_deserializer())?])
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
            (self.1)(text).map_err(E::custom)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, numbers: A) -> Result<Vec<T>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(numbers))
        }
    }
    deserializer.deserialize_any(Numbers(expecting, parse))
}

/// Reads a number, a list of numbers, or a text with colons between them.
///
/// # Errors
/// If it is none of these.
pub fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    one_or_several(deserializer, "a number, a list of numbers, or a text such as \"1:10:100\"", |text| {
        let number =
            |word: &str| word.trim().parse().map_err(|_| format!("`{word}` in `{text}` is not a number"));
        text.split(':').map(number).collect()
    })
}

/// What [`numbers`] reads.
#[must_use]
pub fn numbers_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["number", "array", "string"], "items": { "type": "number", "format": "double" } })
}
