//! A function's real binary as a child process, fed by a Runtime API as Lambda's: what dies here dies as an instance does.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Collected, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use crate::Sqs;

/// Longer than any run of a function.
const INVOCATION_TIMEOUT: Duration = Duration::from_mins(3);
/// Between two looks whether an instance still lives.
const PAUSE: Duration = Duration::from_millis(10);

/// What came of an invocation.
#[derive(Debug, Clone, PartialEq)]
pub enum Invoked {
    /// The function's answer.
    Answered(Value),
    /// The function failed, as Lambda is told.
    Failed(Value),
    /// The instance ended before it answered.
    Died,
}

impl Invoked {
    /// The answer; fails the test on anything else.
    pub fn answer(self) -> Value {
        match self {
            Self::Answered(answer) => answer,
            other => panic!("no answer: {other:?}"),
        }
    }
}

#[derive(Default)]
struct Waiting {
    answers: Mutex<HashMap<String, oneshot::Sender<Invoked>>>,
    /// Events handed out and not answered.
    in_hand: AtomicUsize,
}

/// An instance of a function. It is killed when the value is dropped.
pub struct Function {
    child: Arc<Mutex<Child>>,
    log: PathBuf,
    events: mpsc::UnboundedSender<(String, String)>,
    waiting: Arc<Waiting>,
}

impl Function {
    /// Starts the function of this name with these variables, and no others but what Lambda sets and what leads to `sqs`.
    pub async fn start(name: &str, sqs: Option<&str>, variables: &[(&str, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let api = listener.local_addr().expect("the port just bound").to_string();
        let (events, next) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting::default());
        tokio::spawn(serve(listener, Arc::new(tokio::sync::Mutex::new(next)), Arc::clone(&waiting)));
        // One that lies in a folder beside the others is named with it.
        let file = format!("jari-test-{}-{:016x}.log", name.replace('/', "-"), fastrand::u64(..));
        let log = std::env::temp_dir().join(file);
        let output = File::create(&log).expect("a log");
        let mut command = Command::new(binary(name));
        command.env_clear().envs(variables.iter().copied());
        command.envs(sqs.map(|endpoint| ("AWS_ENDPOINT_URL_SQS", endpoint))).envs(Sqs::environment());
        command.env("AWS_LAMBDA_RUNTIME_API", api).env("AWS_LAMBDA_FUNCTION_NAME", name);
        command.env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512").env("AWS_LAMBDA_FUNCTION_VERSION", "1");
        command.stdin(Stdio::null()).stdout(output.try_clone().expect("the log once more")).stderr(output);
        let child = Arc::new(Mutex::new(command.spawn().expect("the function starts")));
        Self { child, log, events, waiting }
    }

    /// Hands it an event and waits for what comes of it.
    pub async fn invoke(&self, event: &Value) -> Invoked {
        let id = format!("{:032x}", fastrand::u128(..));
        let (answer, mut answered) = oneshot::channel();
        lock(&self.waiting.answers).insert(id.clone(), answer);
        self.events.send((id, event.to_string())).expect("the Runtime API serves");
        let ends = async {
            loop {
                match tokio::time::timeout(PAUSE, &mut answered).await {
                    Ok(invoked) => return invoked.expect("the Runtime API serves"),
                    Err(_) if self.has_ended() => return Invoked::Died,
                    Err(_) => {}
                }
            }
        };
        let invoked = tokio::time::timeout(INVOCATION_TIMEOUT, ends).await;
        invoked.unwrap_or_else(|_| panic!("no answer; it said:\n{}", self.said()))
    }

    /// How many events it works on.
    pub fn in_hand(&self) -> usize {
        self.waiting.in_hand.load(Ordering::Relaxed)
    }

    /// Kills it (-9) and waits until it is gone, from wherever it is called.
    pub fn killer(&self) -> impl Fn() + Send + 'static {
        let child = Arc::clone(&self.child);
        move || kill(&child)
    }

    /// What it wrote so far: logs, and lines of metrics.
    pub fn said(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// How often it counted that, as CloudWatch would be told by its lines of metrics.
    pub fn counted(&self, metric: &str) -> u64 {
        let lines = self.said();
        let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line.get("_aws").is_some()).filter_map(|line| line[metric].as_u64()).sum()
    }

    fn has_ended(&self) -> bool {
        lock(&self.child).try_wait().expect("the state of a child process").is_some()
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        kill(&self.child);
        let _ = fs::remove_file(&self.log);
    }
}

fn kill(child: &Mutex<Child>) {
    let mut child = lock(child);
    let _ = child.kill();
    let _ = child.wait();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a built program is: beside this one, or beside the folder of tests, which lie in `deps` or `examples`.
pub fn binary(name: &str) -> PathBuf {
    let program = std::env::current_exe().expect("the path of this program");
    let folder = program.parent().expect("a target folder");
    let beside = folder.join(name);
    if beside.is_file() {
        return beside;
    }
    let path = folder.parent().expect("a target folder").join(name);
    assert!(
        path.is_file(),
        "{} is missing: cargo build --workspace --example with-servers --bin {name}",
        path.display()
    );
    path
}

type Events = Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<(String, String)>>>;

async fn serve(listener: TcpListener, events: Events, waiting: Arc<Waiting>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (events, waiting) = (Arc::clone(&events), Arc::clone(&waiting));
        let answer = service_fn(move |request| {
            let (events, waiting) = (Arc::clone(&events), Arc::clone(&waiting));
            async move { Ok::<_, Infallible>(answer(request, &events, &waiting).await) }
        });
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
        // Ends when the instance does.
        tokio::spawn(connection);
    }
}

/// `GET …/invocation/next`, `POST …/invocation/ID/response` or `…/error`; anything else is taken.
async fn answer(request: Request<Incoming>, events: &Events, waiting: &Waiting) -> Response<Full<Bytes>> {
    if request.method() == Method::GET {
        let Some((id, event)) = events.lock().await.recv().await else { return empty(StatusCode::GONE) };
        waiting.in_hand.fetch_add(1, Ordering::Relaxed);
        let mut next = Response::new(Full::new(Bytes::from(event)));
        for (name, value) in [
            ("lambda-runtime-aws-request-id", id.as_str()),
            ("lambda-runtime-deadline-ms", "4102444800000"),
            (
                "lambda-runtime-invoked-function-arn",
                "arn:aws:lambda:ap-northeast-2:123456789012:function:test",
            ),
        ] {
            next.headers_mut().insert(name, value.parse().expect("a header's value"));
        }
        return next;
    }
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
    let mut parts = path.rsplit('/');
    let (kind, id) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if let Some(answer) = lock(&waiting.answers).remove(id) {
        waiting.in_hand.fetch_sub(1, Ordering::Relaxed);
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        // Whoever no longer waits has no use for it.
        let _ = answer.send(if kind == "response" { Invoked::Answered(body) } else { Invoked::Failed(body) });
    }
    empty(StatusCode::ACCEPTED)
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
