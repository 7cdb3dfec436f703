//! As much of Lambda as invoking a function takes: `POST /2015-03-31/functions/{name}/invocations`, behind which the
//! handler itself runs.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use admin::AdminState;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The one function that is there.
pub(crate) const FUNCTION: &str = "jari-Admin-1ABC";

/// A Lambda that answers until it is dropped.
pub(crate) struct Lambda {
    pub(crate) url: String,
    /// How often each `Authorization` came.
    signed: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Lambda {
    pub(crate) async fn start(admin: AdminState) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", socket.local_addr().expect("an address"));
        let signed = Arc::new(Mutex::new(Vec::new()));
        let (admin, noted) = (Arc::new(admin), Arc::clone(&signed));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                let (admin, noted) = (Arc::clone(&admin), Arc::clone(&noted));
                let service =
                    service_fn(move |request| answer(Arc::clone(&admin), Arc::clone(&noted), request));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Self { url, signed, task }
    }

    /// The signatures of the requests that came.
    pub(crate) fn signed(&self) -> Vec<String> {
        self.signed.lock().expect("a list").clone()
    }

    /// What a process needs to find it instead of AWS.
    pub(crate) fn environment(&self) -> [(&'static str, &str); 6] {
        [
            ("AWS_ENDPOINT_URL", &self.url),
            ("AWS_REGION", "ap-northeast-2"),
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("AWS_CONFIG_FILE", "/dev/null"),
        ]
    }
}

impl Drop for Lambda {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Answer = Response<Full<Bytes>>;

async fn answer(
    admin: Arc<AdminState>,
    noted: Arc<Mutex<Vec<String>>>,
    request: Request<Incoming>,
) -> Result<Answer, Infallible> {
    let (parts, body) = request.into_parts();
    let signed = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
    noted.lock().expect("a list").extend(signed.map(str::to_owned));
    let body = body.collect().await.expect("a body").to_bytes();
    let path = format!("/2015-03-31/functions/{FUNCTION}/invocations");
    if parts.method != Method::POST || parts.uri.path() != path {
        return Ok(not_found(parts.uri.path()));
    }
    Ok(match serde_json::from_slice(&body) {
        Ok(command) => match admin::admin(&admin, command).await {
            Ok(reply) => invoked(serde_json::to_vec(&reply).expect("JSON")),
            Err(error) => failed(&error.to_string()),
        },
        Err(error) => failed(&error.to_string()),
    })
}

fn invoked(payload: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(payload)));
    answer.headers_mut().insert("x-amz-executed-version", "$LATEST".parse().expect("a header"));
    answer
}

/// As the runtime reports an error of the handler.
fn failed(message: &str) -> Answer {
    let payload = serde_json::json!({ "errorType": "AdminError", "errorMessage": message });
    let mut answer = invoked(payload.to_string().into_bytes());
    answer.headers_mut().insert("x-amz-function-error", "Unhandled".parse().expect("a header"));
    answer
}

fn not_found(path: &str) -> Answer {
    let body = format!("{{\"Type\":\"User\",\"message\":\"Function not found: {path}\"}}");
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = StatusCode::NOT_FOUND;
    answer.headers_mut().insert("x-amzn-errortype", "ResourceNotFoundException".parse().expect("a header"));
    answer
}
