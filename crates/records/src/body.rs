//! A record's body as JSON, and from JSON to its type, with the place of what does not fit.
//!
//! serde's derived code is generic over the reader. One reader for all records, used only inside
//! this crate, keeps one copy of that code in the binary; it calls a visitor only by the ways in
//! which JSON can answer, so there is less of it than for a reader of any format (a structure is
//! always an object, never a list of its fields' values). The place of a fault
//! (`levels[2].latency.ns`) is put together on the way back: nothing is kept on the way in.

use serde::Serialize;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde_json::{Map, Value};
use std::fmt;

/// What does not fit, and where.
#[derive(Debug)]
pub struct Misfit {
    /// From the inside to the outside.
    steps: Vec<Step>,
    pub what: String,
}

#[derive(Debug)]
enum Step {
    Field(String),
    Element(usize),
}

impl Misfit {
    /// The place as `levels[2].latency.ns`; `.` is the body itself.
    pub fn at(&self) -> String {
        if self.steps.is_empty() {
            return ".".to_owned();
        }
        let mut text = String::new();
        for step in self.steps.iter().rev() {
            match step {
                Step::Field(name) if text.is_empty() => text.push_str(name),
                Step::Field(name) => text.extend([".", name]),
                Step::Element(index) => text.extend(["[", &index.to_string(), "]"]),
            }
        }
        text
    }

    fn inside(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.at(), self.what)
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self { steps: Vec::new(), what: what.to_string() }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("invalid type: {}, expected {expected}", Found(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("invalid value: {}, expected {expected}", Found(found)))
    }
}

/// As JSON calls it.
struct Found<'a>(Unexpected<'a>);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Unit => f.write_str("null"),
            other => other.fmt(f),
        }
    }
}

/// The value of a type that this JSON describes.
pub fn read<T: DeserializeOwned>(json: &Value) -> Result<T, Misfit> {
    T::deserialize(Json(json))
}

/// The fields of a value that JSON writes as an object.
pub fn write<T: Serialize>(value: &T) -> Map<String, Value> {
    match serde_json::to_value(value).expect("records hold nothing that JSON cannot") {
        Value::Object(fields) => fields,
        _ => unreachable!("a body is an object"),
    }
}

#[derive(Clone, Copy)]
struct Json<'a>(&'a Value);

impl<'a> Json<'a> {
    fn misfit<T>(self, expected: &dyn de::Expected) -> Result<T, Misfit> {
        let found = match self.0 {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => Unexpected::Unsigned(value),
                (None, Some(value)) => Unexpected::Signed(value),
                (None, None) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        };
        Err(de::Error::invalid_type(found, expected))
    }

    fn number<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let Value::Number(number) = self.0 else { return self.misfit(&visitor) };
        match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => visitor.visit_u64(value),
            (None, Some(value)) => visitor.visit_i64(value),
            (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
        }
    }
}

/// Methods of a reader that all do the same.
macro_rules! likewise {
    ($to:ident: $($name:ident)*) => { $(
        fn $name<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Misfit> {
            self.$to(visitor)
        }
    )* };
}

impl<'a> Deserializer<'a> for Json<'a> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(_) => self.number(visitor),
            Value::String(text) => visitor.visit_str(text),
            Value::Array(elements) => visitor.visit_seq(Elements { rest: elements, index: 0 }),
            Value::Object(fields) => visitor.visit_map(Fields::of(fields)),
        }
    }

    likewise! { number: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
    deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64 }
    likewise! { deserialize_any: deserialize_i128 deserialize_u128 deserialize_bytes
    deserialize_byte_buf deserialize_ignored_any }
    likewise! { deserialize_str: deserialize_char deserialize_string deserialize_identifier }

    fn deserialize_bool<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let Value::Bool(value) = self.0 else { return self.misfit(&visitor) };
        visitor.visit_bool(*value)
    }

    fn deserialize_str<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let Value::String(text) = self.0 else { return self.misfit(&visitor) };
        visitor.visit_str(text)
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.0.is_null() { visitor.visit_unit() } else { self.misfit(&visitor) }
    }

    fn deserialize_unit_struct<V: Visitor<'a>>(self, _: &str, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(self, _: &str, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let Value::Array(elements) = self.0 else { return self.misfit(&visitor) };
        let count = elements.len();
        let mut access = Elements { rest: elements, index: 0 };
        let value = visitor.visit_seq(&mut access)?;
        // A pair of three elements is as wrong as one of a single element.
        if access.rest.is_empty() {
            Ok(value)
        } else {
            Err(de::Error::invalid_length(count, &"fewer elements in array"))
        }
    }

    fn deserialize_tuple<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'a>>(
        self,
        _: &str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let Value::Object(fields) = self.0 else { return self.misfit(&visitor) };
        visitor.visit_map(Fields::of(fields))
    }

    fn deserialize_struct<V: Visitor<'a>>(self, _: &str, _: &[&str], visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'a>>(self, _: &str, _: &[&str], visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::String(variant) => visitor.visit_enum(Variant { name: variant, content: None }),
            Value::Object(fields) if fields.len() == 1 => {
                let (name, content) = fields.iter().next().expect("there is one");
                visitor.visit_enum(Variant { name, content: Some(content) })
            }
            Value::Object(_) => Err(de::Error::invalid_value(Unexpected::Map, &"map with a single key")),
            _ => self.misfit(&"string or map"),
        }
    }
}

struct Elements<'a> {
    rest: &'a [Value],
    index: usize,
}

impl<'a> SeqAccess<'a> for Elements<'a> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        let Some((first, rest)) = self.rest.split_first() else { return Ok(None) };
        let index = self.index;
        (self.rest, self.index) = (rest, index + 1);
        seed.deserialize(Json(first)).map(Some).map_err(|misfit| misfit.inside(Step::Element(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Fields<'a> {
    rest: serde_json::map::Iter<'a>,
    ahead: Option<(&'a str, &'a Value)>,
}

impl<'a> Fields<'a> {
    fn of(fields: &'a Map<String, Value>) -> Self {
        Self { rest: fields.iter(), ahead: None }
    }
}

impl<'a> MapAccess<'a> for Fields<'a> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        self.ahead = Some((name, value));
        seed.deserialize(name.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let (name, value) = self.ahead.take().expect("a key comes before its value");
        seed.deserialize(Json(value)).map_err(|misfit| misfit.inside(Step::Field(name.to_owned())))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Variant<'a> {
    name: &'a str,
    content: Option<&'a Value>,
}

impl<'a> EnumAccess<'a> for Variant<'a> {
    type Error = Misfit;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'a>>(self, seed: V) -> Result<(V::Value, Self), Misfit> {
        let variant = seed.deserialize(self.name.into_deserializer())?;
        Ok((variant, self))
    }
}

impl<'a> Variant<'a> {
    fn inside<T>(&self, read: impl FnOnce(Json<'a>) -> Result<T, Misfit>) -> Result<T, Misfit> {
        read(Json(self.content.unwrap_or(&Value::Null)))
            .map_err(|misfit| misfit.inside(Step::Field(self.name.to_owned())))
    }
}

impl<'a> VariantAccess<'a> for Variant<'a> {
    type Error = Misfit;

    fn unit_variant(self) -> Result<(), Misfit> {
        if self.content.is_none_or(Value::is_null) {
            return Ok(());
        }
        self.inside(|json| json.misfit(&"unit"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value, Misfit> {
        if self.content.is_none() {
            return Err(de::Error::invalid_type(Unexpected::UnitVariant, &"newtype variant"));
        }
        self.inside(|json| seed.deserialize(json))
    }

    fn tuple_variant<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.inside(|json| json.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'a>>(self, _: &[&str], visitor: V) -> Result<V::Value, Misfit> {
        self.inside(|json| json.deserialize_map(visitor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Whole {
        number: u8,
        #[serde(default)]
        pair: Option<(f64, String)>,
        #[serde(default)]
        way: Vec<Way>,
        #[serde(flatten)]
        rest: Option<Rest>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Rest {
        yes: bool,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Way {
        Out,
        Around(i32),
        Between(u64, u64),
        Along { what: char },
    }

    /// What `serde_json` makes of it is right.
    fn is_as_by_serde_json(json: &Value) -> Result<Whole, String> {
        let (own, theirs) = (read::<Whole>(json), serde_json::from_value::<Whole>(json.clone()));
        match (&own, &theirs) {
            (Ok(own), Ok(theirs)) => assert_eq!(own, theirs, "{json}"),
            (Err(own), Err(theirs)) => assert_eq!(own.what, theirs.to_string(), "{json}"),
            _ => panic!("{json}: {own:?}, by serde_json {theirs:?}"),
        }
        own.map_err(|misfit| misfit.to_string())
    }

    #[test]
    fn all_forms_are_read() {
        let json = json!({
            "number": 3,
            "pair": [1, "x"],
            "way": ["out", {"around": -1}, {"between": [1, 2]}, {"along": {"what": "w", "more": null}}],
            "yes": true,
            "unknown": {"a": [1.5]},
        });
        let whole = is_as_by_serde_json(&json).unwrap();
        assert_eq!(whole.way.len(), 4);
        assert_eq!(whole.rest, Some(Rest { yes: true }));
        assert!(is_as_by_serde_json(&json!({"number": 255})).unwrap().rest.is_none());
    }

    #[test]
    fn a_misfit_has_its_place() {
        for (json, place) in [
            (json!(null), "."),
            (json!({}), "."),
            (json!({"number": 256}), "number"),
            (json!({"number": -1}), "number"),
            (json!({"number": 1.5}), "number"),
            (json!({"number": 1, "pair": [1]}), "pair"),
            (json!({"number": 1, "pair": [1, "x", 2]}), "pair"),
            (json!({"number": 1, "pair": [true, "x"]}), "pair[0]"),
            (json!({"number": 1, "way": {}}), "way"),
            (json!({"number": 1, "way": ["out", "in"]}), "way[1]"),
            (json!({"number": 1, "way": [7]}), "way[0]"),
            (json!({"number": 1, "way": ["around"]}), "way[0]"),
            (json!({"number": 1, "way": [{"out": 1}]}), "way[0].out"),
            (json!({"number": 1, "way": [{"around": "x"}]}), "way[0].around"),
            (json!({"number": 1, "way": [{"between": [1, "x"]}]}), "way[0].between[1]"),
            (json!({"number": 1, "way": [{"along": {"what": "xy"}}]}), "way[0].along.what"),
            (json!({"number": 1, "way": [{"along": {}, "out": 1}]}), "way[0]"),
        ] {
            let told = is_as_by_serde_json(&json).unwrap_err();
            assert!(told.starts_with(&format!("at {place}: ")), "{json}: {told}");
        }
    }
}
