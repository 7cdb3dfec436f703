//! The faults that other tests stand on.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use support::{Fault, FaultProxy, Verdict, Way};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long a test waits for what must not come.
const SILENCE: Duration = Duration::from_millis(150);

/// Answers each byte with itself, twice.
async fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("test://somebody@{}/path", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                while let Ok(byte) = stream.read_u8().await {
                    let _ = stream.write_all(&[byte, byte]).await;
                }
            });
        }
    });
    url
}

async fn try_connect(proxy: &FaultProxy) -> std::io::Result<TcpStream> {
    TcpStream::connect(authority(proxy.url())).await
}

/// `HOST:PORT` of a URL.
fn authority(url: &str) -> &str {
    let (_, rest) = url.split_once("://").expect("a scheme");
    let (authority, _) = rest.split_once('/').expect("a path");
    authority.rsplit('@').next().expect("a host")
}

async fn connect(proxy: &FaultProxy) -> TcpStream {
    try_connect(proxy).await.expect("the proxy takes a connection")
}

/// Whether a new connection is broken before anything comes back.
async fn is_reset(proxy: &FaultProxy) -> bool {
    match try_connect(proxy).await {
        Ok(mut stream) => say(&mut stream, "a", 2).await == (String::new(), true),
        // The reset may come before the caller has noticed that it is connected.
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// What comes back of a text, up to `bytes`; what came of it where the connection broke.
async fn say(stream: &mut TcpStream, text: &str, bytes: usize) -> (String, bool) {
    let mut answer = Vec::new();
    let asked = async {
        stream.write_all(text.as_bytes()).await?;
        while answer.len() < bytes {
            answer.push(stream.read_u8().await?);
        }
        std::io::Result::Ok(())
    };
    let broken = asked.await.is_err();
    (String::from_utf8(answer).expect("ASCII"), broken)
}

fn whole(text: &str) -> (String, bool) {
    (text.to_owned(), false)
}

#[tokio::test]
async fn what_no_fault_touches_passes_and_each_fault_does_what_it_says() {
    let proxy = FaultProxy::before(&echo().await);
    let mut stream = connect(&proxy).await;
    assert_eq!(say(&mut stream, "a", 2).await, whole("aa"));

    let delay = Duration::from_millis(200);
    proxy.set(Fault::Delay(delay));
    let started = Instant::now();
    assert_eq!(say(&mut stream, "b", 2).await, whole("bb"));
    assert!(started.elapsed() >= delay);

    proxy.set(Fault::Freeze);
    let mut frozen = connect(&proxy).await;
    assert!(tokio::time::timeout(SILENCE, say(&mut stream, "c", 2)).await.is_err());
    assert!(tokio::time::timeout(SILENCE, say(&mut frozen, "d", 2)).await.is_err());
    proxy.set(Fault::Pass);
    assert_eq!(say(&mut stream, "", 2).await, whole("cc"), "what was held up comes in the end");
    assert_eq!(say(&mut frozen, "", 2).await, whole("dd"));

    proxy.set(Fault::Refuse);
    assert!(is_reset(&proxy).await);
    assert_eq!(say(&mut stream, "f", 2).await, whole("ff"), "who is connected stays so");
    proxy.cut();
    assert_eq!(say(&mut stream, "g", 2).await, (String::new(), true));
    proxy.set(Fault::Pass);
    assert_eq!(say(&mut connect(&proxy).await, "h", 2).await, whole("hh"));
}

#[tokio::test]
async fn a_reply_is_cut_in_its_middle_once() {
    let proxy = FaultProxy::before(&echo().await);
    let mut stream = connect(&proxy).await;
    proxy.cut_reply(2);
    assert_eq!(say(&mut stream, "a", 2).await, whole("aa"));
    assert_eq!(say(&mut stream, "b", 2).await, ("b".to_owned(), true));
    assert_eq!(say(&mut connect(&proxy).await, "c", 2).await, whole("cc"));
}

#[tokio::test]
async fn a_hook_sees_its_bytes_once_across_pieces_and_decides() {
    let proxy = FaultProxy::before(&echo().await);
    let seen = Arc::new(AtomicU32::new(0));
    let seeing = Arc::clone(&seen);
    proxy.on(Way::Request, b"xy", move || match seeing.fetch_add(1, Ordering::SeqCst) {
        0 => Verdict::Forward,
        1 => Verdict::Swallow,
        _ => Verdict::Cut,
    });
    proxy.on(Way::Reply, b"xyx", || panic!("no reply has them"));
    let mut stream = connect(&proxy).await;
    assert_eq!(say(&mut stream, "x", 2).await, whole("xx"));
    assert_eq!(say(&mut stream, "y", 2).await, whole("yy"));
    assert_eq!(seen.load(Ordering::SeqCst), 1);
    assert_eq!(say(&mut stream, "z", 2).await, whole("zz"));
    assert_eq!(seen.load(Ordering::SeqCst), 1, "the same bytes are not seen again");
    assert!(tokio::time::timeout(SILENCE, say(&mut stream, "xy", 4)).await.is_err());
    assert_eq!(say(&mut stream, "xy", 4).await, (String::new(), true));
    assert_eq!(seen.load(Ordering::SeqCst), 3);
    proxy.forget_hooks();
    assert_eq!(say(&mut connect(&proxy).await, "xy", 4).await, whole("xxyy"));
}

#[tokio::test]
async fn new_connections_go_where_the_proxy_leads_and_none_outlives_it() {
    let (one, other) = (echo().await, echo().await);
    let proxy = FaultProxy::before("test://127.0.0.1:1/path");
    let url = proxy.url_for("redis://127.0.0.1:1/3");
    assert_eq!(url, proxy.url().replace("test:", "redis:").replace("path", "3"));
    assert!(is_reset(&proxy).await);
    for server in [one, other] {
        proxy.lead_to(&server);
        assert_eq!(say(&mut connect(&proxy).await, "a", 2).await, whole("aa"));
    }
    let mut last = connect(&proxy).await;
    assert_eq!(say(&mut last, "a", 2).await, whole("aa"));
    drop(proxy);
    assert!(say(&mut last, "b", 2).await.1);
}
