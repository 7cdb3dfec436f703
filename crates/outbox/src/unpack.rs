//! A message's body into facts.

use domain::fact::Fact;
use serde::Deserialize;
use serde_json::value::RawValue;

/// What a body held.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Unpacked {
    /// Its facts, in their order.
    pub facts: Vec<Fact>,
    /// What stood among them and is no fact that this version knows.
    pub bad: Vec<BadFact>,
}

/// Something in a body that is no fact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {position} is no fact: {reason}")]
pub struct BadFact {
    /// Its position in the body, from 0.
    pub position: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// A body that is not `{"facts":[…]}`.
#[derive(Debug, thiserror::Error)]
#[error("a message's body must be {{\"facts\":[…]}}: {0}")]
pub struct MalformedBody(#[from] serde_json::Error);

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    facts: Vec<&'a RawValue>,
}

/// Reads a message's body, fact by fact: one bad fact spoils no other.
pub fn unpack(body: &str) -> Result<Unpacked, MalformedBody> {
    // A derived struct would also read itself from an array.
    if !body.trim_ascii_start().starts_with('{') {
        return Err(MalformedBody(serde::de::Error::custom("not an object")));
    }
    let body: Body<'_> = serde_json::from_str(body)?;
    let mut unpacked = Unpacked::default();
    for (position, entry) in body.facts.into_iter().enumerate() {
        match serde_json::from_str(entry.get()) {
            Ok(fact) => unpacked.facts.push(fact),
            Err(error) => unpacked.bad.push(BadFact { position, reason: error.to_string() }),
        }
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: &str = r#"{"event":"a","epoch":1,"id":"5-1","at":7,"kind":"USER_LEFT_QUEUE","token":"6f9619ff-8b86-4d01-b42d-00cf4fc964ff"}"#;

    #[test]
    fn a_bad_fact_is_told_apart_from_the_good_ones_around_it() {
        let unknown = LEFT.replace("USER_LEFT_QUEUE", "USER_FLEW");
        let braces = LEFT.replace(r#""a""#, r#""a{b}""#);
        let body = format!(r#"{{"facts":[{LEFT},{unknown},7,{braces},{LEFT}]}}"#);
        let unpacked = unpack(&body).unwrap();
        assert_eq!(unpacked.facts.len(), 2);
        assert_eq!(unpacked.bad.iter().map(|bad| bad.position).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(unpacked.bad[0].reason.contains("USER_FLEW"), "{}", unpacked.bad[0]);
    }

    #[test]
    fn fields_of_a_later_version_are_passed_over() {
        let later = LEFT.replace(r#""at":7"#, r#""at":7,"new":{}"#);
        assert_eq!(unpack(&format!(r#"{{"facts":[{later}],"new":1}}"#)).unwrap().facts.len(), 1);
    }

    #[test]
    fn a_body_of_another_shape_is_refused() {
        for body in ["", "x", "[]", "[[]]", "{}", r#"{"facts":{}}"#, r#"{"facts":[{]}"#, r#"{"facts":[}"#] {
            assert!(unpack(body).is_err(), "{body:?}");
        }
    }
}
