//! What the local system counts, from its `/metrics`.

use std::collections::BTreeMap;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::Uri;
use hyper::body::Bytes;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
const ANSWER_BYTES: usize = 1 << 20;

/// Values by their names in Prometheus' text, labels included: `jari_refusals_total{code="SOLD_OUT"}`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    pub(crate) fn read(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let values = lines.filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Self(values.collect())
    }

    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Codes of refusals, with how many there were.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().filter_map(|(name, value)| {
            let code = name.strip_prefix("jari_refusals_total{code=\"")?.strip_suffix("\"}")?;
            Some((code, *value))
        })
    }
}

/// Where they are told.
pub(crate) struct Scraper {
    http: legacy::Client<HttpConnector, Empty<Bytes>>,
    uri: Uri,
}

impl Scraper {
    /// Of a system at `url`; none where that is no address.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let uri = format!("{}/metrics", url.trim_end_matches('/')).parse().ok()?;
        Some(Self { http: legacy::Client::builder(TokioExecutor::new()).build_http(), uri })
    }

    /// The metrics now; none where they are not told.
    pub(crate) async fn scrape(&self) -> Option<Metrics> {
        let answer = async {
            let answer = self.http.get(self.uri.clone()).await.ok()?;
            let is_told = answer.status().is_success();
            let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await.ok()?;
            is_told.then(|| Metrics::read(&String::from_utf8_lossy(&body.to_bytes())))
        };
        timeout(ANSWER_TIMEOUT, answer).await.ok()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_read_with_their_labels() {
        let metrics = Metrics::read(
            "# HELP jari_joins_total new places\n# TYPE jari_joins_total counter\njari_joins_total 3\n\
             jari_refusals_total{code=\"SOLD_OUT\"} 2\njari_lag_seconds 1.5\nnonsense\n",
        );
        assert_eq!(metrics.value("jari_joins_total"), Some(3.0));
        assert_eq!(metrics.value("jari_lag_seconds"), Some(1.5));
        assert_eq!(metrics.refusals().collect::<Vec<_>>(), [("SOLD_OUT", 2.0)]);
    }
}
