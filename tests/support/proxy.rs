//! A server's connections with faults in them: [`FaultProxy`] stands before a Redis, a PostgreSQL or an SQS and passes
//! what is said, until a test asks for something else.

use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;

/// Read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// How the proxy treats every connection, open ones too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// None: all passes.
    #[default]
    Pass,
    /// New connections are reset at once; open ones go on until they are cut.
    Refuse,
    /// Each piece of a reply comes so much later.
    Delay(Duration),
    /// Connections are taken, and nothing passes either way until another fault is set.
    Freeze,
}

/// The way that bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Reply,
}

/// What becomes of a piece in which a hook's bytes were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It passes.
    Forward,
    /// It is lost; the connection stays.
    Swallow,
    /// It is lost, and its client's connection is reset, the server's closed.
    Cut,
}

type See = Box<dyn FnMut() -> Verdict + Send>;

struct Hook {
    way: Way,
    pattern: Vec<u8>,
    see: See,
}

struct Shared {
    upstream: Mutex<String>,
    fault: watch::Sender<Fault>,
    /// Raised to reset every open connection.
    cuts: watch::Sender<u64>,
    hooks: Mutex<Vec<Hook>>,
    /// Pieces of replies until one is cut in its middle; 0: none is.
    replies_to_cut: Mutex<u64>,
}

/// A port of 127.0.0.1 that leads to a server. Works on a thread of its own, so that a test that blocks holds up nothing;
/// all its connections end when it is dropped.
pub struct FaultProxy {
    url: String,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl FaultProxy {
    /// A proxy before the server of a URL, which names it as `127.0.0.1:PORT` or `localhost:PORT`.
    pub fn before(url: &str) -> Self {
        let address = address(url);
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let here = listener.local_addr().expect("the port just bound").to_string();
        let shared = Arc::new(Shared {
            upstream: Mutex::new(address.clone()),
            fault: watch::Sender::new(Fault::Pass),
            cuts: watch::Sender::new(0),
            hooks: Mutex::default(),
            replies_to_cut: Mutex::default(),
        });
        let (stop, mut stopped) = watch::channel(false);
        let serving = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                tokio::select! {
                    () = listen(listener, serving) => {}
                    _ = stopped.wait_for(|stop| *stop) => {}
                }
            });
        });
        Self { url: url.replacen(&address, &here, 1), shared, stop, thread: Some(thread) }
    }

    /// The URL that it was made for, with its own port in it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same for another URL of that server.
    pub fn url_for(&self, url: &str) -> String {
        url.replacen(&address(url), &address(&self.url), 1)
    }

    /// New connections go to the server of this URL: a restarted or a promoted one.
    pub fn lead_to(&self, url: &str) {
        *lock(&self.shared.upstream) = address(url);
    }

    /// From now on.
    pub fn set(&self, fault: Fault) {
        self.shared.fault.send_replace(fault);
    }

    /// Resets every open connection.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Of the `count`-th piece of a reply from now on, half is passed before its connection is reset.
    pub fn cut_reply(&self, count: u64) {
        *lock(&self.shared.replies_to_cut) = count;
    }

    /// Calls `see` each time that these bytes go that way, before they are passed. It is called on the proxy's thread.
    pub fn on(&self, way: Way, pattern: &[u8], see: impl FnMut() -> Verdict + Send + 'static) {
        assert!(!pattern.is_empty(), "a pattern has bytes");
        lock(&self.shared.hooks).push(Hook { way, pattern: pattern.to_owned(), see: Box::new(see) });
    }

    /// Forgets every hook.
    pub fn forget_hooks(&self) {
        lock(&self.shared.hooks).clear();
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `HOST:PORT` of a URL.
fn address(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let address = authority.rsplit('@').next().unwrap_or_default();
    assert!(address.contains(':'), "{url} names no port");
    address.to_owned()
}

async fn listen(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).expect("a listener of this runtime");
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(carry(client, Arc::clone(&shared)));
    }
}

/// One connection, to its end or until it is cut.
async fn carry(mut client: TcpStream, shared: Arc<Shared>) {
    let mut cuts = shared.cuts.subscribe();
    let carried = tokio::select! {
        carried = pass(&mut client, &shared) => carried,
        _ = cuts.changed() => Err(io::ErrorKind::ConnectionAborted.into()),
    };
    if carried.is_err() {
        // Closed like this it is a reset, not an end.
        let _ = client.set_zero_linger();
    }
}

/// What both sides say, to the end; an error where that was not their own.
async fn pass(client: &mut TcpStream, shared: &Shared) -> io::Result<()> {
    let mut fault = shared.fault.subscribe();
    if *fault.borrow() == Fault::Refuse {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let _ = fault.wait_for(|fault| *fault != Fault::Freeze).await;
    let upstream = lock(&shared.upstream).clone();
    let mut server = TcpStream::connect(&upstream).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
    let request = pump(shared, Way::Request, from_client, to_server);
    let reply = pump(shared, Way::Reply, from_server, to_client);
    tokio::try_join!(request, reply).map(drop)
}

/// Passes one way's bytes on until they end. An error ends the other way too.
async fn pump(shared: &Shared, way: Way, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> io::Result<()> {
    let mut fault = shared.fault.subscribe();
    let (mut piece, mut before) = (vec![0; CHUNK_BYTES], Vec::new());
    loop {
        let bytes = from.read(&mut piece).await?;
        if bytes == 0 {
            return to.shutdown().await;
        }
        let piece = &piece[..bytes];
        let set = *fault.borrow();
        if let (Fault::Delay(delay), Way::Reply) = (set, way) {
            tokio::time::sleep(delay).await;
        }
        let _ = fault.wait_for(|fault| *fault != Fault::Freeze).await;
        match shared.verdict(way, &mut before, piece) {
            Verdict::Forward if shared.is_cut_here(way) => {
                to.write_all(&piece[..bytes / 2]).await?;
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            Verdict::Forward => to.write_all(piece).await?,
            Verdict::Swallow => {}
            Verdict::Cut => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

impl Shared {
    /// What the hooks say of a piece, the strictest counting. `before` is the end of what came before it: a pattern may
    /// lie across both.
    fn verdict(&self, way: Way, before: &mut Vec<u8>, piece: &[u8]) -> Verdict {
        let mut hooks = lock(&self.hooks);
        let longest = hooks.iter().map(|hook| hook.pattern.len()).max().unwrap_or(1);
        let mut verdict = Verdict::Forward;
        let seen = [before.as_slice(), piece].concat();
        for hook in hooks.iter_mut().filter(|hook| hook.way == way) {
            // Where it ended before this piece it was seen with the last one.
            let from = before.len().saturating_sub(hook.pattern.len() - 1);
            if seen[from..].windows(hook.pattern.len()).any(|window| window == hook.pattern) {
                verdict = match ((hook.see)(), verdict) {
                    (Verdict::Cut, _) | (_, Verdict::Cut) => Verdict::Cut,
                    (Verdict::Swallow, _) | (_, Verdict::Swallow) => Verdict::Swallow,
                    (Verdict::Forward, Verdict::Forward) => Verdict::Forward,
                };
            }
        }
        before.clear();
        before.extend_from_slice(&seen[seen.len().saturating_sub(longest - 1)..]);
        verdict
    }

    fn is_cut_here(&self, way: Way) -> bool {
        let mut left = lock(&self.replies_to_cut);
        if way == Way::Request || *left == 0 {
            return false;
        }
        *left -= 1;
        *left == 0
    }
}
