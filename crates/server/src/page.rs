//! The waiting-room page: the files of web/ as they were when this was built, or those of another folder.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use gateway::routes::{self, Missing};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response, StatusCode};
use sha2::{Digest, Sha256};

include!(concat!(env!("OUT_DIR"), "/web.rs"));

/// Nothing but this host's own files and calls, no script or style in the document itself, in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
                      media-src 'self'; worker-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types jari";
/// Kept by browsers and asked for again each time: files that import each other are always of one edition.
const CACHING: &str = "public, no-cache";
const START: &str = "/index.html";

/// Content types by ending. A file with another ending is not served.
const TYPES: &[(&str, &str)] = &[
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json; charset=utf-8"),
    ("webmanifest", "application/manifest+json; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("webp", "image/webp"),
    ("ico", "image/x-icon"),
    ("woff2", "font/woff2"),
    ("mp3", "audio/mpeg"),
];

/// Where the page's files come from.
#[derive(Debug)]
pub(crate) enum Page {
    /// From this binary, by path.
    Embedded(HashMap<&'static str, Asset>),
    /// From a folder, read at each request.
    Folder(PathBuf),
}

/// A file as it is served.
#[derive(Debug, Clone)]
pub(crate) struct Asset {
    content: Bytes,
    content_type: HeaderValue,
    etag: HeaderValue,
}

impl Page {
    /// The files of `folder`, which must have an index.html; those of this binary without one.
    pub(crate) fn of(folder: Option<&Path>) -> anyhow::Result<Self> {
        let Some(folder) = folder else {
            let assets = EMBEDDED
                .iter()
                .filter_map(|(path, content)| Some((*path, Asset::of(path, Bytes::from_static(content))?)));
            return Ok(Self::Embedded(assets.collect()));
        };
        let folder = folder.canonicalize().with_context(|| format!("cannot read {}", folder.display()))?;
        let start = folder.join("index.html");
        start.metadata().with_context(|| format!("cannot read {}", start.display()))?;
        Ok(Self::Folder(folder))
    }

    /// The answer to a request for one of the files; `None` leaves it to the functions, as a path of theirs always is.
    pub(crate) async fn answer(&self, request: &Parts) -> Option<Response<Full<Bytes>>> {
        let is_read = request.method == Method::GET || request.method == Method::HEAD;
        let path = request.uri.path();
        if !is_read || routes::find("GET", path) != Err(Missing::NotFound) {
            return None;
        }
        let path = if path == "/" { START } else { path };
        let asset = match self {
            Self::Embedded(assets) => assets.get(path).cloned(),
            Self::Folder(folder) => read(folder, path).await,
        };
        asset.map(|asset| asset.answer(&request.headers))
    }
}

/// A file of the folder. What a path could reach beyond it, by `..` or a link, is not there.
async fn read(folder: &Path, path: &str) -> Option<Asset> {
    let path = percent_encoding::percent_decode_str(path.strip_prefix('/')?).decode_utf8().ok()?;
    let relative = Path::new(path.as_ref());
    let plain = relative.components().all(|part| match part {
        Component::Normal(name) => !name.as_encoded_bytes().starts_with(b"."),
        _ => false,
    });
    if !plain {
        return None;
    }
    let file = tokio::fs::canonicalize(folder.join(relative)).await.ok()?;
    if !file.starts_with(folder) {
        return None;
    }
    Asset::of(&path, tokio::fs::read(file).await.ok()?.into())
}

impl Asset {
    fn of(path: &str, content: Bytes) -> Option<Self> {
        let (_, ending) = path.rsplit_once('.')?;
        let (_, content_type) = TYPES.iter().find(|(known, _)| *known == ending)?;
        let etag = format!("\"{}\"", domain::shuffle::hex(&Sha256::digest(&content)[..12]));
        Some(Self {
            content,
            content_type: HeaderValue::from_static(content_type),
            etag: HeaderValue::from_str(&etag).ok()?,
        })
    }

    fn is_known(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
        tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag).as_bytes() == self.etag.as_bytes())
    }

    fn answer(self, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let known = self.is_known(headers);
        // To HEAD, hyper sends the length and leaves the content out.
        let mut response = Response::new(Full::new(if known { Bytes::new() } else { self.content }));
        *response.status_mut() = if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
        let headers = response.headers_mut();
        headers.insert(ETAG, self.etag);
        headers.insert(CONTENT_TYPE, self.content_type);
        for (name, value) in [
            (CACHE_CONTROL, CACHING),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use http_body_util::BodyExt;
    use hyper::Request;

    use super::*;

    async fn ask(
        page: &Page,
        method: &str,
        path: &str,
        tag: Option<&str>,
    ) -> Option<(u16, HeaderMap, Bytes)> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(tag) = tag {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let (parts, body) = page.answer(&parts).await?.into_parts();
        Some((parts.status.as_u16(), parts.headers, body.collect().await.unwrap().to_bytes()))
    }

    #[tokio::test]
    async fn every_embedded_file_is_served_once_and_then_known() {
        let page = Page::of(None).unwrap();
        for (path, content) in EMBEDDED {
            let (status, headers, body) = ask(&page, "GET", path, None).await.unwrap();
            assert_eq!((status, &body[..]), (200, *content), "{path}");
            assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert!(headers[CONTENT_SECURITY_POLICY].to_str().unwrap().starts_with("default-src 'none'"));
            let tag = headers[ETAG].to_str().unwrap();
            for known in [tag.to_owned(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
                let (status, headers, body) = ask(&page, "GET", path, Some(&known)).await.unwrap();
                assert_eq!((status, body.len()), (304, 0), "{path} {known}");
                assert_eq!(headers[ETAG], tag);
            }
            assert_eq!(ask(&page, "GET", path, Some("\"other\"")).await.unwrap().0, 200);
        }
        let (_, headers, start) = ask(&page, "GET", "/?event=a", None).await.unwrap();
        assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(start, ask(&page, "GET", START, None).await.unwrap().2);
        assert_eq!(ask(&page, "HEAD", "/", None).await.unwrap().0, 200);
    }

    #[tokio::test]
    async fn what_is_no_file_is_left_to_the_functions() {
        let page = Page::of(None).unwrap();
        for (method, path) in [
            ("GET", "/health"),
            ("GET", "/api/seats"),
            ("GET", "/api/queue/join"),
            ("GET", "/nothing"),
            ("GET", "/app"),
            ("GET", "//index.html"),
            ("POST", "/"),
            ("DELETE", "/index.html"),
        ] {
            assert!(ask(&page, method, path, None).await.is_none(), "{method} {path}");
        }
    }

    #[tokio::test]
    async fn a_folder_is_served_and_nothing_beyond_it() {
        let parent = std::env::temp_dir().join(format!("jari-page-{}", uuid::Uuid::new_v4()));
        let folder = parent.join("web");
        fs::create_dir_all(folder.join("lang")).unwrap();
        assert!(Page::of(Some(&folder)).is_err(), "no index.html");
        for (name, text) in
            [("index.html", "a"), ("lang/ko.js", "b"), (".hidden.js", "c"), ("a b.css", "d"), ("x.exe", "e")]
        {
            fs::write(folder.join(name), text).unwrap();
        }
        fs::write(parent.join("secret.json"), "secret").unwrap();
        std::os::unix::fs::symlink(parent.join("secret.json"), folder.join("link.json")).unwrap();
        let page = Page::of(Some(&folder)).unwrap();
        for (path, text) in [("/", "a"), ("/lang/ko.js", "b"), ("/a%20b.css", "d")] {
            assert_eq!(ask(&page, "GET", path, None).await.unwrap().2, text, "{path}");
        }
        for path in [
            "/../secret.json",
            "/%2e%2e/secret.json",
            "/lang/..%2f..%2fsecret.json",
            "/link.json",
            "/.hidden.js",
            "/x.exe",
            "/lang",
            "//index.html",
            "/%ff.js",
        ] {
            assert!(ask(&page, "GET", path, None).await.is_none(), "{path}");
        }
        fs::write(folder.join("index.html"), "new").unwrap();
        assert_eq!(ask(&page, "GET", "/", None).await.unwrap().2, "new", "no restart is needed");
        fs::remove_dir_all(parent).unwrap();
    }
}
