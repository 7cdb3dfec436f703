//! JSON with the line of every value. `serde_json` does the reading; its raw values are slices of the file, and
//! where a slice begins tells the line.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Problem;

/// A definition nests six deep; more is no definition.
const MAX_DEPTH: u32 = 16;

/// A value and the line on which it begins.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) line: u32,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Null,
    Boolean(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Node>),
    /// In the file's order, with names that stand twice.
    Object(Vec<(String, Node)>),
}

impl Node {
    /// The whole file; a file that is no JSON is one problem.
    pub(super) fn read(text: &str) -> Result<Self, Problem> {
        let raw: &RawValue =
            serde_json::from_str(text).map_err(|error| invalid(&error, u32::try_from(error.line()).ok()))?;
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Reader { text, starts }.node(raw, MAX_DEPTH)
    }
}

fn invalid(error: &serde_json::Error, line: Option<u32>) -> Problem {
    let reason = error.to_string();
    // Its own position counts from the slice it was given.
    let reason = reason.split(" at line ").next().unwrap_or_default();
    Problem { path: "$".to_owned(), line, reason: format!("is not JSON: {reason}") }
}

struct Reader<'t> {
    text: &'t str,
    /// Offset at which each line begins.
    starts: Vec<usize>,
}

impl<'t> Reader<'t> {
    fn node(&self, raw: &'t RawValue, depth: u32) -> Result<Node, Problem> {
        let line = self.line_of(raw);
        if depth == 0 {
            let reason = format!("nests deeper than {MAX_DEPTH}");
            return Err(Problem { path: "$".to_owned(), line: Some(line), reason });
        }
        let value = match raw.get().as_bytes().first() {
            Some(b'{') => {
                let fields = parse::<Fields<'t>>(raw, line)?.0.into_iter();
                let nodes = fields.map(|(name, raw)| Ok((name, self.node(raw, depth - 1)?)));
                Value::Object(nodes.collect::<Result<_, Problem>>()?)
            }
            Some(b'[') => {
                let items = parse::<Vec<&'t RawValue>>(raw, line)?.into_iter();
                Value::List(items.map(|raw| self.node(raw, depth - 1)).collect::<Result<_, _>>()?)
            }
            Some(b'"') => Value::Text(parse(raw, line)?),
            Some(b't' | b'f') => Value::Boolean(parse(raw, line)?),
            Some(b'n') | None => Value::Null,
            Some(_) => Value::Number(parse(raw, line)?),
        };
        Ok(Node { line, value })
    }

    fn line_of(&self, raw: &RawValue) -> u32 {
        // The value is a slice of the text: only its position is read, never the memory between.
        let offset = (raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        u32::try_from(self.starts.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
    }
}

/// Reading the outermost value proves only the grammar: a number may be too large, an escape no character.
fn parse<'t, T: Deserialize<'t>>(raw: &'t RawValue, line: u32) -> Result<T, Problem> {
    serde_json::from_str(raw.get()).map_err(|error| invalid(&error, Some(line)))
}

/// An object that keeps every field: a map would silently keep the last of two.
struct Fields<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}
