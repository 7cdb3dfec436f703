//! Ways to change a text.

use proptest::prelude::*;

/// One change. Places are taken modulo the text's length.
#[derive(Debug, Clone)]
pub(crate) enum Mangling {
    /// A bit the other way.
    Flip { at: usize, bit: u8 },
    /// A byte replaced.
    Set { at: usize, byte: u8 },
    /// Nothing from here on.
    Cut { at: usize },
    /// A part taken out.
    Drop { at: usize, count: usize },
    /// Something put in.
    Insert { at: usize, text: String },
    /// A part said twice.
    Repeat { at: usize, count: usize },
    /// Begun as this, ended as another.
    Splice { at: usize, from: usize },
}

/// No change, or some.
pub(crate) fn manglings() -> impl Strategy<Value = Vec<Mangling>> {
    let at = any::<usize>;
    let one = prop_oneof![
        (at(), 0..8u8).prop_map(|(at, bit)| Mangling::Flip { at, bit }),
        (at(), prop_oneof![b' '..=b'~', any::<u8>()]).prop_map(|(at, byte)| Mangling::Set { at, byte }),
        at().prop_map(|at| Mangling::Cut { at }),
        (at(), 1..8usize).prop_map(|(at, count)| Mangling::Drop { at, count }),
        (at(), "([ -~]{1,8}|.{1,4})").prop_map(|(at, text)| Mangling::Insert { at, text }),
        (at(), 1..80usize).prop_map(|(at, count)| Mangling::Repeat { at, count }),
        (at(), at()).prop_map(|(at, from)| Mangling::Splice { at, from }),
    ];
    proptest::collection::vec(one, 0..4)
}

/// A text after these changes; `other` is what it is spliced with. What is no UTF-8 then is replaced as a reader would.
pub(crate) fn mangled(text: &str, other: &str, manglings: &[Mangling]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for mangling in manglings {
        let length = bytes.len();
        if length == 0 {
            break;
        }
        match mangling {
            Mangling::Flip { at, bit } => bytes[at % length] ^= 1 << bit,
            Mangling::Set { at, byte } => bytes[at % length] = *byte,
            Mangling::Cut { at } => bytes.truncate(at % length),
            Mangling::Drop { at, count } => {
                let at = at % length;
                bytes.drain(at..(at + count).min(length));
            }
            Mangling::Insert { at, text } => {
                let at = at % length;
                bytes.splice(at..at, text.bytes());
            }
            Mangling::Repeat { at, count } => {
                let at = at % length;
                let part = bytes[at..(at + count).min(length)].to_vec();
                bytes.splice(at..at, part);
            }
            Mangling::Splice { at, from } => {
                bytes.truncate(at % length);
                bytes.extend(&other.as_bytes()[from % (other.len() + 1)..]);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
