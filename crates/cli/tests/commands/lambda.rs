//! As much of Lambda as invoking a function takes: `POST /2015-03-31/functions/{name}/invocations`, behind which the
//! handler itself runs.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use admin::AdminState;
use bootstrap::config::MasterKeys;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use records::RecordsConfig;
use serde_json::Value;
use store::{Store, StoreConfig};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The one function that is there.
pub(crate) const FUNCTION: &str = "jari-Admin-1ABC";

/// A Lambda that answers until it is dropped.
pub(crate) struct Lambda {
    url: String,
    /// The `Authorization` of each request.
    signed: Arc<Mutex<Vec<String>>>,
    _runtime: Runtime,
}

impl Lambda {
    /// Before the system that describes itself so.
    pub(crate) fn before(running: &Value) -> Self {
        let text = |name: &str| running[name].as_str().expect("a text");
        let store = Store::new(&StoreConfig::new(text("redis"), false)).expect("an address of Redis");
        let master = MasterKeys::new(text("masterKey"), None).expect("a master key");
        let database = RecordsConfig::new(text("database"));
        let admin = AdminState::of(store, Some(database), Some(master)).expect("an address of PostgreSQL");
        let runtime = Runtime::new().expect("a runtime");
        let socket = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let url = format!("http://{}", socket.local_addr().expect("an address"));
        let signed = Arc::new(Mutex::new(Vec::new()));
        runtime.spawn(listen(socket, Arc::new(admin), Arc::clone(&signed)));
        Self { url, signed, _runtime: runtime }
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

async fn listen(socket: TcpListener, admin: Arc<AdminState>, signed: Arc<Mutex<Vec<String>>>) {
    while let Ok((stream, _)) = socket.accept().await {
        let (admin, signed) = (Arc::clone(&admin), Arc::clone(&signed));
        let service = service_fn(move |request| answer(Arc::clone(&admin), Arc::clone(&signed), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
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
