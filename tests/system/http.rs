//! A caller of a served system: HTTP/1.1 by hand, so that tests can also misbehave. Every answer is held against
//! openapi.yaml.

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use support::{Answer, contract};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Connections of one caller at once.
const CONNECTIONS: usize = 64;

/// One connection, kept open between requests.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) async fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Bytes as they are: whole requests, parts of them, nonsense.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes).await
    }

    /// The next answer. One to HEAD has no body, whatever length it tells.
    pub(crate) async fn read(&mut self, has_body: bool) -> io::Result<Answer> {
        timeout(ANSWER_TIMEOUT, self.read_unbounded(has_body)).await?
    }

    async fn read_unbounded(&mut self, has_body: bool) -> io::Result<Answer> {
        let first = self.line().await?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status line: {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
        let mut body = vec![0; if has_body { length } else { 0 }];
        self.0.read_exact(&mut body).await?;
        let text = String::from_utf8(body).map_err(io::Error::other)?;
        Ok(Answer { status, headers, json: serde_json::from_str(&text).unwrap_or(Value::Null), text })
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// Whether the other side has closed the connection, or does so soon.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let read = timeout(ANSWER_TIMEOUT, self.0.read(&mut [0])).await;
        matches!(read, Ok(Ok(0) | Err(_)))
    }

    pub(crate) async fn request(
        &mut self,
        method: &str,
        target: &str,
        body: Option<&Value>,
    ) -> io::Result<Answer> {
        self.write(request(method, target, body).as_bytes()).await?;
        self.read(method != "HEAD").await
    }
}

/// A request as it travels.
pub(crate) fn request(method: &str, target: &str, body: Option<&Value>) -> String {
    let body = body.map(Value::to_string);
    let content = body.as_ref().map_or_else(String::new, |body| {
        format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len())
    });
    format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\n{content}\r\n{}", body.unwrap_or_default())
}

/// Many requests at once over a few connections.
pub(crate) struct Caller {
    address: String,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl Caller {
    /// A caller of `http://HOST:PORT`.
    pub(crate) fn of(url: &str) -> Self {
        let address = url.trim_start_matches("http://").to_owned();
        Self { address, idle: Mutex::default(), permits: Semaphore::new(CONNECTIONS) }
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(&self.address).await.expect("the server takes a connection")
    }

    /// The answer, held against openapi.yaml; an error where there was none.
    pub(crate) async fn try_send(
        &self,
        method: &str,
        target: &str,
        body: Option<&Value>,
    ) -> io::Result<Answer> {
        let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
        let idle = self.idle.lock().expect("no panic while it was locked").pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(&self.address).await?,
        };
        let answer = connection.request(method, target, body).await?;
        self.idle.lock().expect("no panic while it was locked").push(connection);
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        contract::check(method, path, &answer);
        Ok(answer)
    }

    pub(crate) async fn get(&self, target: &str) -> Answer {
        self.try_send("GET", target, None).await.expect("an answer")
    }

    pub(crate) async fn delete(&self, target: &str) -> Answer {
        self.try_send("DELETE", target, None).await.expect("an answer")
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.try_send("POST", path, Some(&body)).await.expect("an answer")
    }
}
