//! Keys that take one value or a list. `serde(untagged)` would do, but its errors do not say what is wrong.

use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer, SeqAccess, Visitor};

/// Reads a value or a list of values.
pub(super) fn several<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct Several<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Several<T> {
        type Value = Vec<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a value or a list of values")
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<Vec<T>, E> {
            T::deserialize(number.into_deserializer()).map(|one| vec![one])
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<Vec<T>, E> {
            T::deserialize(number.into_deserializer()).map(|one| vec![one])
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<Vec<T>, E> {
            T::deserialize(word.into_deserializer()).map(|one| vec![one])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<Vec<T>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(values))
        }
    }
    deserializer.deserialize_any(Several(PhantomData))
}

pub(super) fn numbers_schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    json_schema!({ "type": ["integer", "array"], "items": one })
}

pub(super) fn words_schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    json_schema!({ "type": ["string", "array"], "items": one })
}
