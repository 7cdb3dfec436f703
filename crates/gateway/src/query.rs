//! Query parameters, read once and strictly: the library decodes leniently and lets the first of two win,
//! which would make one request mean different things to different readers.

use std::borrow::Cow;

use lambda_http::Request;
use percent_encoding::percent_decode_str;

use crate::event::Flaw;
use crate::failure::Failure;

/// The values of `names`, in their order. Others are tolerated, but nothing may be encoded wrongly and no name
/// of ours given twice.
pub(crate) fn parameters<'a, const N: usize>(
    request: &'a Request,
    names: [&'static str; N],
) -> Result<[Option<Cow<'a, str>>; N], Failure> {
    if request.extensions().get() == Some(&Flaw::Target) {
        return Err(Failure::invalid("query", "is too long"));
    }
    let mut values = [const { None }; N];
    for (name, value) in pairs(request) {
        let name = decoded(name).ok_or_else(|| not_encoded("query"))?;
        let Some(at) = names.iter().position(|known| *known == name) else {
            decoded(value).ok_or_else(|| not_encoded("query"))?;
            continue;
        };
        let value = decoded(value).ok_or_else(|| not_encoded(names[at]))?;
        if values[at].replace(value).is_some() {
            return Err(Failure::invalid(names[at], "is given twice"));
        }
    }
    Ok(values)
}

/// The value of `name` alone: what is wrong with the others is for whoever reads them.
pub(crate) fn parameter<'a>(
    request: &'a Request,
    name: &'static str,
) -> Result<Option<Cow<'a, str>>, Failure> {
    let mut given = pairs(request).filter(|(given, _)| decoded(given).is_some_and(|given| given == name));
    let Some((_, value)) = given.next() else { return Ok(None) };
    if given.next().is_some() {
        return Err(Failure::invalid(name, "is given twice"));
    }
    decoded(value).map(Some).ok_or_else(|| not_encoded(name))
}

/// Names and values as sent.
fn pairs(request: &Request) -> impl Iterator<Item = (&str, &str)> {
    let pairs = request.uri().query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn not_encoded(field: &'static str) -> Failure {
    Failure::invalid(field, "must be percent-encoded UTF-8")
}

/// A form-encoded text; `None` where `%` is not followed by two hex digits or the bytes are no UTF-8.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| byte == b'%' || byte == b'+') {
        return Some(Cow::Borrowed(text));
    }
    let is_hex = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_hexdigit);
    if !text.match_indices('%').all(|(at, _)| is_hex(at + 1) && is_hex(at + 2)) {
        return None;
    }
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(|text| Cow::Owned(text.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded_strictly() {
        for (text, expected) in [
            ("", Some("")),
            ("a-b", Some("a-b")),
            ("%EC%84%9C%EC%9A%B8", Some("서울")),
            ("a+b%20c%2B", Some("a b c+")),
            ("%", None),
            ("%4", None),
            ("%zz", None),
            ("100%", None),
            ("%ff", None),
            ("%C3%28", None),
        ] {
            assert_eq!(decoded(text).as_deref(), expected, "{text:?}");
        }
    }
}
