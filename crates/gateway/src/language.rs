//! Which language a message is written in.

use http::HeaderMap;
use http::header::ACCEPT_LANGUAGE;

/// A language messages exist in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// The default.
    English,
    Korean,
}

impl Language {
    /// The one the caller likes best of those that exist; the first of equals.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let wishes = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut best = (Self::English, 0.0);
        for wish in wishes.split(',') {
            let mut parts = wish.split(';');
            let Some(language) = Self::of_tag(parts.next().unwrap_or_default().trim()) else { continue };
            let quality = parts.find_map(quality).unwrap_or(1.0);
            if quality > best.1 {
                best = (language, quality);
            }
        }
        best.0
    }

    /// Two letters.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Korean => "ko",
        }
    }

    /// The one that a tag such as `ko-KR` asks for, where it exists.
    pub(crate) fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next().unwrap_or_default();
        if primary.eq_ignore_ascii_case("ko") {
            Some(Self::Korean)
        } else if primary.eq_ignore_ascii_case("en") || primary == "*" {
            Some(Self::English)
        } else {
            None
        }
    }
}

/// `q=0.5`; what is no number counts as 0, a wish nobody can rank.
fn quality(parameter: &str) -> Option<f32> {
    let (name, value) = parameter.split_once('=')?;
    name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_liked_language_wins_and_english_is_the_default() {
        for (header, expected) in [
            ("", Language::English),
            ("ko", Language::Korean),
            ("KO-kr", Language::Korean),
            ("ko-KR,ko;q=0.9,en-US;q=0.8,en;q=0.7", Language::Korean),
            ("en-US,en;q=0.9,ko;q=0.8", Language::English),
            ("en;q=0.5, ko;q=0.6", Language::Korean),
            ("fr, ja;q=0.9, ko;q=0.1", Language::Korean),
            ("ko;q=0", Language::English),
            ("ko;q=x, en;q=0.1", Language::English),
            ("*, ko;q=0.5", Language::English),
            ("kok", Language::English),
            (";;;,,", Language::English),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_LANGUAGE, header.parse().unwrap());
            assert_eq!(Language::of(&headers), expected, "{header:?}");
        }
        assert_eq!(Language::of(&HeaderMap::new()), Language::English);
    }
}
