//! As much of AWS as operators' commands ask: Lambda's functions, of which Admin is the handler itself and the others
//! answer as they would, and what the account may do at once.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use admin::AdminState;
use bootstrap::config::MasterKeys;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use records::RecordsConfig;
use serde_json::{Value, json};
use store::{Store, StoreConfig};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The function that operates sales.
pub(crate) const FUNCTION: &str = "jari-Admin-1ABC";
/// The stack it is of.
pub(crate) const STACK: &str = "jari";
/// The codes of API Gateway's quotas: requests a second, connects of sockets a second.
pub(crate) const REQUESTS: &str = "L-8A5B8E43";
pub(crate) const CONNECTS: &str = "L-9ED1E49A";
/// Functions in a page of their list.
const PAGE: usize = 10;

/// What the account has, and what it lets its caller ask.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    /// What functions answer, by their names in template.yaml; Admin's answer is the handler's.
    pub(crate) answers: BTreeMap<&'static str, Value>,
    /// What keeps a function from being active.
    pub(crate) inactive: BTreeSet<&'static str>,
    /// Instances that each function has ready; none without.
    pub(crate) warm: Option<u32>,
    /// Instances of all functions at once.
    pub(crate) instances: u32,
    /// Quotas of the account's own, by their codes.
    pub(crate) own: BTreeMap<&'static str, f64>,
    /// Everybody's quotas.
    pub(crate) everybodys: BTreeMap<&'static str, f64>,
    /// Paths and targets, or parts of them, that the caller may not ask for.
    pub(crate) forbidden: BTreeSet<&'static str>,
}

impl Account {
    /// All is well.
    fn ready() -> Self {
        let mut answers: BTreeMap<_, _> = ["Join", "Leave", "Seats", "HoldSeat", "Book", "Pay"]
            .map(|name| (name, json!({ "statusCode": 404, "body": "{}" })))
            .into();
        answers.extend([
            ("Admin", Value::Null),
            ("Admit", Value::Null),
            ("Authorizer", json!({ "isAuthorized": false })),
            ("Keys", json!({ "statusCode": 200, "body": r#"{"keys":[{"kid":"a"}]}"# })),
            ("Persist", json!({ "batchItemFailures": [] })),
            ("Poll", json!({ "statusCode": 200, "body": "{}" })),
            ("Push", Value::Null),
            ("Relay", Value::Null),
            ("Socket", json!({ "batchItemFailures": [] })),
        ]);
        Self {
            answers,
            inactive: BTreeSet::new(),
            warm: Some(200),
            instances: 3_000,
            own: [(REQUESTS, 20_000.0)].into(),
            everybodys: [(REQUESTS, 10_000.0), (CONNECTS, 500.0)].into(),
            forbidden: BTreeSet::new(),
        }
    }

    /// A page of the functions' names, another stack's among them.
    fn page(&self, from: usize) -> Value {
        let mut names: Vec<String> = self.answers.keys().map(|name| format!("{STACK}-{name}-1ABC")).collect();
        names.push(format!("{STACK}-other-Join-1ABC"));
        let page: Vec<Value> =
            names.iter().skip(from).take(PAGE).map(|name| json!({ "FunctionName": name })).collect();
        let next = from + PAGE;
        json!({ "Functions": page, "NextMarker": (next < names.len()).then(|| next.to_string()) })
    }
}

/// One request that came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Its path with the query.
    pub(crate) path: String,
    /// Its `Authorization`.
    pub(crate) signature: String,
}

struct State {
    admin: AdminState,
    account: Mutex<Account>,
    asked: Mutex<Vec<Asked>>,
}

/// A Lambda that answers until it is dropped.
pub(crate) struct Lambda {
    url: String,
    state: Arc<State>,
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
        let (account, asked) = (Mutex::new(Account::ready()), Mutex::default());
        let state = Arc::new(State { admin, account, asked });
        runtime.spawn(listen(socket, Arc::clone(&state)));
        Self { url, state, _runtime: runtime }
    }

    /// The requests that came.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().expect("a list").clone()
    }

    /// From an account in which all is well, make another.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Account)) {
        let mut account = Account::ready();
        change(&mut account);
        *self.state.account.lock().expect("an account") = account;
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

async fn listen(socket: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = socket.accept().await {
        let state = Arc::clone(&state);
        let service = service_fn(move |request| answer(Arc::clone(&state), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

type Answer = Response<Full<Bytes>>;

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let (parts, body) = request.into_parts();
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (path, target) = (parts.uri.to_string(), header("x-amz-target"));
    let asked = Asked { path: path.clone(), signature: header("authorization").to_owned() };
    state.asked.lock().expect("a list").push(asked);
    let body = body.collect().await.expect("a body").to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let account = state.account.lock().expect("an account").clone();
    if account.forbidden.iter().any(|part| path.contains(part) || target.contains(part)) {
        return Ok(refused(StatusCode::FORBIDDEN, "AccessDeniedException", "not authorized"));
    }
    if let Some(operation) = target.strip_prefix("ServiceQuotasV20190624.") {
        return Ok(quota(&account, operation, &body));
    }
    let parts: Vec<&str> = parts.uri.path().trim_matches('/').split('/').skip(1).collect();
    Ok(match parts[..] {
        ["functions"] => said(&account.page(number_in(&path, "Marker="))),
        ["account-settings"] => said(&json!({
            "AccountLimit": { "ConcurrentExecutions": 5_000, "UnreservedConcurrentExecutions": account.instances },
        })),
        ["functions", FUNCTION, "invocations"] => match serde_json::from_value(body) {
            Ok(command) => match admin::admin(&state.admin, command).await {
                Ok(reply) => invoked(serde_json::to_vec(&reply).expect("JSON")),
                Err(error) => failed(&error.to_string()),
            },
            Err(error) => failed(&error.to_string()),
        },
        ["functions", function, what] => match logical(&account, function) {
            Some((_, answer)) if what == "invocations" => match answer["errorMessage"].as_str() {
                Some(message) => failed(message),
                None => invoked(answer.to_string().into_bytes()),
            },
            Some((name, _)) if what == "configuration" => {
                let state = if account.inactive.contains(name) { "Inactive" } else { "Active" };
                said(&json!({ "State": state, "Version": "7" }))
            }
            Some(_) if what == "provisioned-concurrency" => warm(account.warm),
            _ => not_found(&path),
        },
        _ => not_found(&path),
    })
}

fn logical<'a>(account: &'a Account, function: &str) -> Option<(&'static str, &'a Value)> {
    let name = function.strip_prefix(STACK)?.strip_prefix('-')?.strip_suffix("-1ABC")?;
    account.answers.get_key_value(name).map(|(name, answer)| (*name, answer))
}

fn number_in(path: &str, name: &str) -> usize {
    path.split_once(name).and_then(|(_, number)| number.parse().ok()).unwrap_or_default()
}

fn quota(account: &Account, operation: &str, asked: &Value) -> Answer {
    let quotas = if operation == "GetServiceQuota" { &account.own } else { &account.everybodys };
    match asked["QuotaCode"].as_str().and_then(|code| quotas.get(code)) {
        Some(value) => said(&json!({ "Quota": { "Value": value } })),
        None => refused(StatusCode::BAD_REQUEST, "NoSuchResourceException", "no such quota"),
    }
}

fn warm(instances: Option<u32>) -> Answer {
    match instances {
        Some(instances) => said(&json!({ "AvailableProvisionedConcurrentExecutions": instances })),
        None => refused(StatusCode::NOT_FOUND, "ProvisionedConcurrencyConfigNotFoundException", "none"),
    }
}

fn said(body: &Value) -> Answer {
    Response::new(Full::new(Bytes::from(body.to_string())))
}

fn invoked(payload: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(payload)));
    answer.headers_mut().insert("x-amz-executed-version", "7".parse().expect("a header"));
    answer
}

/// As the runtime reports an error of the handler.
fn failed(message: &str) -> Answer {
    let payload = json!({ "errorType": "AdminError", "errorMessage": message });
    let mut answer = invoked(payload.to_string().into_bytes());
    answer.headers_mut().insert("x-amz-function-error", "Unhandled".parse().expect("a header"));
    answer
}

fn not_found(path: &str) -> Answer {
    refused(StatusCode::NOT_FOUND, "ResourceNotFoundException", &format!("Function not found: {path}"))
}

/// As AWS refuses, in JSON of either protocol.
fn refused(status: StatusCode, code: &'static str, message: &str) -> Answer {
    let mut answer = said(&json!({ "__type": code, "Type": "User", "message": message }));
    *answer.status_mut() = status;
    answer.headers_mut().insert("x-amzn-errortype", code.parse().expect("a header"));
    answer
}
