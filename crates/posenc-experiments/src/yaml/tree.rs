//! Parses text to a tree of values. The number of values is limited, since nested aliases expand exponentially.

use std::cell::Cell;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Mapping, Value};

use super::{MAX_TEXT_BYTES, MAX_YAML_VALUES};

/// Parses a document to its tree.
pub(super) fn parse(text: &str) -> Result<Value, serde_yaml::Error> {
    let (values, bytes) = (Cell::new(MAX_YAML_VALUES), Cell::new(MAX_TEXT_BYTES));
    Tree { values: &values, bytes: &bytes }.deserialize(serde_yaml::Deserializer::from_str(text))
}

/// Deserializes one value and everything below it, within the limits.
#[derive(Clone, Copy)]
struct Tree<'a> {
    /// Remaining number of values.
    values: &'a Cell<usize>,
    /// Remaining bytes of text.
    bytes: &'a Cell<usize>,
}

/// Subtracts `amount` from the remaining number; an error if more than `most` are used.
fn take<E: Error>(left: &Cell<usize>, amount: usize, most: usize, what: &str) -> Result<(), E> {
    let rest = left.get().checked_sub(amount).ok_or_else(|| {
        E::custom(format!("more than {most} {what} after alias expansion; split the file"))
    })?;
    left.set(rest);
    Ok(())
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        take(self.values, 1, MAX_YAML_VALUES, "values")?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without a tag")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        take(self.bytes, value.len(), MAX_TEXT_BYTES, "bytes of text")?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Sequence(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values = Mapping::new();
        while let Some(key) = map.next_key_seed(self)? {
            if values.contains_key(&key) {
                let name = key.as_str().unwrap_or("?");
                return Err(A::Error::custom(format!("the key `{name}` appears twice")));
            }
            let value = map.next_value_seed(self)?;
            values.insert(key, value);
        }
        Ok(Value::Mapping(values))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<Value, A::Error> {
        Err(A::Error::custom("tags (`!name`) are not allowed"))
    }
}
