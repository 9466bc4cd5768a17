//! From text to a tree of values, with a limit on how many there are: an alias repeats what it stands for, and aliases of
//! aliases grow exponentially.

use std::cell::Cell;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Mapping, Value};

use super::{MAX_TEXT_BYTES, MAX_YAML_VALUES};

/// The tree of a document.
pub(super) fn parse(text: &str) -> Result<Value, serde_yaml::Error> {
    let (values, bytes) = (Cell::new(MAX_YAML_VALUES), Cell::new(MAX_TEXT_BYTES));
    Tree { values: &values, bytes: &bytes }.deserialize(serde_yaml::Deserializer::from_str(text))
}

/// One value and all below it.
#[derive(Clone, Copy)]
struct Tree<'a> {
    /// Values that may still come.
    values: &'a Cell<usize>,
    /// Bytes of text that may still come.
    bytes: &'a Cell<usize>,
}

impl Tree<'_> {
    fn count<E: Error>(self) -> Result<(), E> {
        let left = self.values.get().checked_sub(1).ok_or_else(|| {
            E::custom(format!(
                "more than {MAX_YAML_VALUES} values, aliases written out, the limit; split the file"
            ))
        })?;
        self.values.set(left);
        Ok(())
    }

    fn text<E: Error>(self, text: &str) -> Result<(), E> {
        let left = self.bytes.get().checked_sub(text.len()).ok_or_else(|| {
            E::custom(format!(
                "more than {MAX_TEXT_BYTES} bytes of text, aliases written out, the limit; split the file"
            ))
        })?;
        self.bytes.set(left);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.count()?;
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
        self.text(value)?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        self.text(&value)?;
        Ok(Value::String(value))
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
