//! JSON bodies. Each field is read as whatever it is, then checked by name, so that a wrong one is named.

use std::borrow::Cow;
use std::fmt;

use http::header::CONTENT_TYPE;
use lambda_http::Request;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::event::Flaw;
use crate::failure::Failure;

/// The longest body that is read.
pub(crate) const MAX_BODY_BYTES: usize = 10_240;

/// Every field any call knows. Absent and null are the same; unknown ones are skipped.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Fields<'a> {
    #[serde(borrow)]
    pub(crate) token: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) event_id: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) user_id: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) key: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) offering_id: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) section_id: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) seats: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) seat_id: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) count: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) best: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) seat_count: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) payment_id: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) reservation_id: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) status: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) amount: Option<Field<'a>>,
    #[serde(borrow)]
    pub(crate) currency: Option<Field<'a>>,
}

/// One field's value, as far as any call can use it.
#[derive(Debug)]
pub(crate) enum Field<'a> {
    Text(Cow<'a, str>),
    Whole(u64),
    List(Vec<Field<'a>>),
    /// A boolean, an object, a null in a list, a number that is negative, has a fraction or is huge.
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor)
    }
}

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = Field<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Field::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Field::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Field::Whole(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Field::Other)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(whole(number).map_or(Field::Other, Field::Whole))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Field::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Field::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Field::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Other)
    }
}

/// What JSON writes as 2.0 is as whole as 2: many writers know no other numbers. Above 2^53 it could be its neighbour.
fn whole(number: f64) -> Option<u64> {
    const MOST: f64 = 9_007_199_254_740_992.0;
    let is_whole = number.fract() == 0.0 && (0.0..=MOST).contains(&number);
    // The text of a whole number that small has neither fraction nor exponent.
    if is_whole { format!("{number:.0}").parse().ok() } else { None }
}

/// The body's fields. A body must be there, be JSON by its content type, and be an object.
pub(crate) fn fields(request: &Request) -> Result<Fields<'_>, Failure> {
    let bytes = bytes(request)?;
    if bytes.is_empty() {
        return Err(Failure::invalid("body", "is missing"));
    }
    parse(request, bytes)
}

/// The same where a call needs no body: then every field is absent.
pub(crate) fn fields_if_any(request: &Request) -> Result<Fields<'_>, Failure> {
    let bytes = bytes(request)?;
    if bytes.is_empty() { Ok(Fields::default()) } else { parse(request, bytes) }
}

pub(crate) fn bytes(request: &Request) -> Result<&[u8], Failure> {
    match request.extensions().get() {
        Some(Flaw::Base64) => return Err(Failure::invalid("body", "must be valid base64")),
        Some(Flaw::Size) => return Err(Failure::PayloadTooLarge),
        Some(Flaw::Target) | None => {}
    }
    let bytes = request.body().as_ref();
    if bytes.len() > MAX_BODY_BYTES { Err(Failure::PayloadTooLarge) } else { Ok(bytes) }
}

fn parse<'a>(request: &Request, bytes: &'a [u8]) -> Result<Fields<'a>, Failure> {
    if !is_json(request) {
        return Err(Failure::UnsupportedMediaType);
    }
    // A derived struct would also read itself from an array.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Failure::invalid("body", "must be a JSON object"));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        // A field takes every value, so the only thing that can be wrong with valid JSON is a field given twice.
        Failure::invalid("body", if error.is_data() { "gives a field twice" } else { "must be valid JSON" })
    })
}

fn is_json(request: &Request) -> bool {
    let value = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}
