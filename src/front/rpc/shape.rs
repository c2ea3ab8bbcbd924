//! The shape of parameters, read off their types: a deserializer with nothing to read notes what a type asks it for.
//!
//! So the OpenRPC document and the list in the manual say what the host accepts, with no second list of it.
//!
//! Invariant: what the deserializer offers is a value that the type accepts, so that the whole type is seen.

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};

/// The form of one value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Shape {
    /// Any JSON at all.
    #[default]
    Anything,
    Boolean,
    /// An integer from the first to the last of these.
    Integer(i128, i128),
    Number,
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any number of these.
    List(Box<Shape>),
    /// This many values, each in its place.
    Tuple(Vec<Shape>),
    /// Any names, with these values.
    Map(Box<Shape>),
    /// These names only.
    Object(Vec<ShapeField>),
    /// A value of one of several forms, which are tried.
    OneOf(Vec<Shape>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShapeField {
    pub name: &'static str,
    pub shape: Shape,
    pub is_required: bool,
}

/// The shape of a type.
#[must_use]
pub fn shape_of<P: DeserializeOwned>() -> Shape {
    let seen = |without: &[&str], offer| {
        let mut shape = Shape::Anything;
        P::deserialize(Probe { into: &mut shape, without, offer }).is_ok().then_some(shape)
    };
    let mut shape = OFFERS.into_iter().filter_map(|offer| seen(&[], offer)).reduce(merged).unwrap_or_default();
    if let Shape::Object(fields) = &mut shape {
        for field in fields {
            let is_read = |without: &[&str]| OFFERS.into_iter().any(|offer| seen(without, offer).is_some());
            field.is_required = !is_read(&[field.name]);
            if let Shape::Object(inner) = &mut field.shape {
                inner.iter_mut().for_each(|part| part.is_required = !is_read(&[field.name, part.name]));
            }
        }
    }
    shape
}

/// The shape that has both.
fn merged(one: Shape, other: Shape) -> Shape {
    match (one, other) {
        (one, other) if one == other => one,
        (Shape::Object(ones), Shape::Object(others)) => {
            let both = ones.into_iter().zip(others);
            Shape::Object(
                both.map(|(one, other)| ShapeField { shape: merged(one.shape, other.shape), ..one }).collect(),
            )
        }
        (Shape::OneOf(mut all), other) => {
            if !all.contains(&other) {
                all.push(other);
            }
            Shape::OneOf(all)
        }
        (one, other) => Shape::OneOf(vec![one, other]),
    }
}

/// A value for a type that takes several forms.
#[derive(Debug, Clone, Copy)]
enum Offer {
    Integer,
    Text,
    Boolean,
    Pair,
}

const OFFERS: [Offer; 4] = [Offer::Integer, Offer::Text, Offer::Boolean, Offer::Pair];
const INTEGER: Shape = Shape::Integer(0, u64::MAX as i128);

/// Offers a type one value after the other, and notes what it asks for.
struct Probe<'p> {
    into: &'p mut Shape,
    /// The path of a field that is left out.
    without: &'p [&'p str],
    offer: Offer,
}

type ProbeError = serde::de::value::Error;

impl<'p> Probe<'p> {
    fn noted(self, shape: Shape) {
        *self.into = shape;
    }
}

macro_rules! integers {
    ($($read:ident $visit:ident $type:ty),+) => { $(
        fn $read<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
            self.noted(Shape::Integer(<$type>::MIN.into(), <$type>::MAX.into()));
            visitor.$visit(1)
        }
    )+ };
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = ProbeError;

    integers!(deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64, deserialize_i32 visit_i32 i32, deserialize_i64 visit_i64 i64);

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        match self.offer {
            Offer::Integer => {
                self.noted(INTEGER);
                visitor.visit_u64(1)
            }
            Offer::Text => {
                self.noted(Shape::Text);
                visitor.visit_str("")
            }
            Offer::Boolean => {
                self.noted(Shape::Boolean);
                visitor.visit_bool(false)
            }
            Offer::Pair => {
                self.noted(Shape::Tuple(vec![INTEGER, INTEGER]));
                visitor.visit_seq(serde::de::value::SeqDeserializer::new([1_u64, 1].into_iter()))
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        self.noted(Shape::Boolean);
        visitor.visit_bool(false)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        self.noted(Shape::Number);
        visitor.visit_f64(1.0)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        self.noted(Shape::Text);
        visitor.visit_str("")
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        let mut parts = vec![Shape::Anything];
        let value = visitor.visit_seq(Parts { parts: parts.iter_mut(), offer: self.offer })?;
        self.noted(Shape::List(Box::new(parts.remove(0))));
        Ok(value)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, ProbeError> {
        let mut parts = vec![Shape::Anything; length];
        let value = visitor.visit_seq(Parts { parts: parts.iter_mut(), offer: self.offer })?;
        self.noted(Shape::Tuple(parts));
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        let mut entry = [ShapeField { name: "NAME", ..ShapeField::default() }];
        let value = visitor.visit_map(Fields::new(&mut entry, &[], self.offer))?;
        let [entry] = entry;
        self.noted(Shape::Map(Box::new(entry.shape)));
        Ok(value)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ProbeError> {
        let mut fields: Vec<ShapeField> =
            names.iter().map(|name| ShapeField { name, ..ShapeField::default() }).collect();
        let value = visitor.visit_map(Fields::new(&mut fields, self.without, self.offer))?;
        self.noted(Shape::Object(fields));
        Ok(value)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ProbeError> {
        self.noted(Shape::Word(words));
        let first: StrDeserializer<'de, ProbeError> = words.first().copied().unwrap_or_default().into_deserializer();
        visitor.visit_enum(first)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        self.noted(Shape::Anything);
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i128 u128 f32 char bytes byte_buf unit unit_struct newtype_struct tuple_struct identifier
    }
}

/// Values in their order.
struct Parts<'p> {
    parts: std::slice::IterMut<'p, Shape>,
    offer: Offer,
}

impl<'de> SeqAccess<'de> for Parts<'_> {
    type Error = ProbeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ProbeError> {
        let Some(into) = self.parts.next() else { return Ok(None) };
        seed.deserialize(Probe { into, without: &[], offer: self.offer }).map(Some)
    }
}

/// Names with their values.
struct Fields<'p> {
    left: std::slice::IterMut<'p, ShapeField>,
    current: Option<&'p mut ShapeField>,
    without: &'p [&'p str],
    offer: Offer,
}

impl<'p> Fields<'p> {
    fn new(fields: &'p mut [ShapeField], without: &'p [&'p str], offer: Offer) -> Self {
        Self { left: fields.iter_mut(), current: None, without, offer }
    }
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = ProbeError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ProbeError> {
        let without = self.without;
        self.current = self.left.find(|field| *without != [field.name]);
        let Some(field) = &self.current else { return Ok(None) };
        let name: StrDeserializer<'_, ProbeError> = field.name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ProbeError> {
        let Some(field) = self.current.take() else { return Err(ProbeError::custom("a value without a name")) };
        let without = match self.without {
            [first, rest @ ..] if *first == field.name => rest,
            _ => &[],
        };
        seed.deserialize(Probe { into: &mut field.shape, without, offer: self.offer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::projects::ProjectDefinition;
    use crate::front::rpc::params::{SignalParams, WaitParams};
    use crate::front::rpc::start::StartParams;

    fn field(shape: &Shape, name: &str) -> ShapeField {
        let Shape::Object(fields) = shape else { panic!("{shape:?}") };
        fields.iter().find(|field| field.name == name).unwrap_or_else(|| panic!("{name}: {fields:?}")).clone()
    }

    #[test]
    fn a_shape_says_what_a_type_takes() {
        let wait = shape_of::<WaitParams>();
        let words = Shape::Word(&["exit", "port", "text", "time"]);
        assert_eq!(field(&wait, "for"), ShapeField { name: "for", shape: words, is_required: true });
        let port = ShapeField { name: "port", shape: Shape::Integer(0, 65_535), is_required: false };
        assert_eq!(field(&wait, "port"), port);
        let start = shape_of::<StartParams>();
        let limit = Shape::Tuple(vec![INTEGER, INTEGER]);
        for (name, shape) in [
            ("argv", Shape::List(Box::new(Shape::Text))),
            ("env", Shape::Map(Box::new(Shape::Text))),
            ("timeout", Shape::Number),
            ("stdin_base64", Shape::Text),
            ("limits", Shape::List(Box::new(limit.clone()))),
        ] {
            assert_eq!(field(&start, name), ShapeField { name, shape, is_required: false });
        }
        assert!(field(&field(&start, "size").shape, "rows").is_required);
        assert_eq!(field(&shape_of::<SignalParams>(), "signal").shape, Shape::OneOf(vec![INTEGER, Shape::Text]));
        assert_eq!(field(&shape_of::<ProjectDefinition>(), "ports").shape, Shape::OneOf(vec![INTEGER, limit]));
    }
}
