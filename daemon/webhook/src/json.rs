//! JSON that means one thing to whoever reads it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Letters of a name that an error repeats.
const NAME_SHOWN: usize = 60;

/// Reads JSON whose objects hold each name once.
///
/// Of a name that stands twice, readers take the first, the last or both: a filter could judge another value than the one
/// that whoever comes after it uses.
pub(crate) fn unambiguous(text: &[u8]) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = Unambiguous.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

struct Unambiguous;

impl<'de> DeserializeSeed<'de> for Unambiguous {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = vec![];
        while let Some(element) = elements.next_element_seed(Self)? {
            list.push(element);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if object.contains_key(&name) {
                let shown: String = name.chars().take(NAME_SHOWN).flat_map(char::escape_debug).collect();
                return Err(A::Error::custom(format!("the name `{shown}` stands twice in one object")));
            }
            let value = entries.next_value_seed(Self)?;
            object.insert(name, value);
        }
        Ok(object.into())
    }
}
