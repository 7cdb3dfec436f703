//! Origins of others behind gateways that check our access tokens by themselves, with the keys that a running system
//! publishes: docs/protect-your-origin.md.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{Millis, Token};
use gateway::access::AccessKeyPair;
use gateway::{AccessClaims, AccessKeys};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use support::{Door, Protected, venv};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use crate::http::Connection;
use crate::serving::{Folder, Served};

/// A system whose keys change: one signs, another is published beside it.
struct System {
    served: Served,
    current: AccessKeys,
    next: AccessKeys,
    stranger: AccessKeys,
    current_pem: String,
    _folder: Folder,
}

fn keys_of(pair: &AccessKeyPair) -> AccessKeys {
    AccessKeys::new(&pair.private_pem, None).expect("a key")
}

impl System {
    async fn start() -> Self {
        let folder = Folder::with_sale(|_| {});
        let [current, next, stranger] = [(); 3].map(|()| AccessKeyPair::generate().expect("a key"));
        folder.put("access-token-key.pem", &current.private_pem);
        folder.put("previous-access-token-key.pem", &next.public_pem);
        Self {
            served: folder.serve().await,
            current: keys_of(&current),
            next: keys_of(&next),
            stranger: keys_of(&stranger),
            current_pem: current.public_pem,
            _folder: folder,
        }
    }

    fn event(&self) -> &str {
        self.served.event.as_str()
    }

    fn claims(&self) -> AccessClaims {
        AccessClaims {
            event: self.served.event.clone(),
            token: Token::random(),
            account: Some("kim@example.com".parse().expect("an account")),
            issued_at: Millis::now(),
            expires_at: Millis::now().plus(600_000),
        }
    }

    fn sign(&self, keys: &AccessKeys, claims: &AccessClaims) -> String {
        keys.sign(self.served.url(), claims).expect("a signature")
    }

    /// Tokens that every gateway takes.
    fn good(&self) -> Vec<(&'static str, String)> {
        let without_account = AccessClaims { account: None, ..self.claims() };
        vec![
            ("of the key that signs", self.sign(&self.current, &self.claims())),
            ("of the key that is to sign", self.sign(&self.next, &self.claims())),
            ("without an account", self.sign(&self.current, &without_account)),
        ]
    }

    /// Tokens that no gateway takes.
    fn bad(&self) -> Vec<(&'static str, String)> {
        let good = self.sign(&self.current, &self.claims());
        let [header, payload, signature] = parts(&good);
        let theirs = self.sign(&self.stranger, &self.claims());
        let [_, _, their_signature] = parts(&theirs);
        let kid = json_of(header)["kid"].clone();
        let expired = AccessClaims { expires_at: Millis::now().plus(-10_000), ..self.claims() };
        let elsewhere = AccessClaims { event: "another-sale".parse().expect("an event id"), ..self.claims() };
        let mut richer = json_of(payload);
        richer["account"] = json!("lee@example.com");
        let unsigned = encoded(&json!({ "typ": "JWT", "alg": "none", "kid": kid }));
        let hs256 = format!("{}.{payload}", encoded(&json!({ "typ": "JWT", "alg": "HS256", "kid": kid })));
        let mac = Hmac::<Sha256>::new_from_slice(self.current_pem.as_bytes()).expect("any length");
        let mac = URL_SAFE_NO_PAD.encode(mac.chain_update(&hs256).finalize().into_bytes());
        let nameless = encoded(&json!({ "typ": "JWT", "alg": "RS256" }));
        vec![
            ("expired", self.sign(&self.current, &expired)),
            ("for another sale", self.sign(&self.current, &elsewhere)),
            (
                "of another issuer",
                self.current.sign("https://evil.example", &self.claims()).expect("a signature"),
            ),
            ("of a key that is not published", theirs.clone()),
            ("of another key under our name", format!("{header}.{payload}.{their_signature}")),
            ("changed", format!("{header}.{}.{signature}", encoded(&richer))),
            ("without an algorithm", format!("{unsigned}.{payload}.")),
            ("signed with the public key", format!("{hs256}.{mac}")),
            ("that names no key", format!("{nameless}.{payload}.{signature}")),
            ("without a signature", format!("{header}.{payload}.")),
            ("that is none", "a.b.c".to_owned()),
        ]
    }
}

fn parts(token: &str) -> [&str; 3] {
    token.split('.').collect::<Vec<_>>().try_into().expect("three parts")
}

fn json_of(part: &str) -> Value {
    let text = URL_SAFE_NO_PAD.decode(part).expect("base64url");
    serde_json::from_slice(&text).expect("JSON")
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// What stands behind a door: answers everything, and remembers the heads of the requests that reached it.
struct Origin {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("the port just bound").port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let reached = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let reached = Arc::clone(&reached);
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let mut head = String::new();
                    while !head.ends_with("\r\n\r\n") {
                        if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    reached.lock().expect("no panic while it was locked").push(head.to_lowercase());
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
                    let _ = stream.write_all(answer).await;
                });
            }
        });
        Self { port, heads }
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut *self.heads.lock().expect("no panic while it was locked"))
    }
}

/// The status of a request that says whom it is from, whatever the token says.
async fn status(door: &Door, method: &str, authorization: Option<&str>) -> u16 {
    let authorization = authorization.map_or_else(String::new, |value| format!("authorization: {value}\r\n"));
    let mut connection = Connection::open(&door.address()).await.expect("the door takes a connection");
    let request = format!(
        "{method} /orders?a=b HTTP/1.1\r\nhost: localhost\r\nx-jari-account: evil\r\n\
         content-length: 0\r\n{authorization}\r\n"
    );
    connection.write(request.as_bytes()).await.expect("the door reads");
    connection.read(true).await.expect("an answer").status
}

async fn lets_in_whom_the_line_let_in(name: &str, system: &System, door: &Door, origin: &Origin) {
    for (what, token) in system.good() {
        for method in ["GET", "POST"] {
            let status = status(door, method, Some(&format!("Bearer {token}"))).await;
            assert_eq!(status, 200, "{name}: {method} with a token {what}");
            let heads = origin.taken();
            let [head] = heads.as_slice() else { panic!("{name}: one request, not {heads:?}") };
            assert!(head.starts_with(&format!("{} /orders?a=b ", method.to_lowercase())), "{head}");
            assert!(!head.contains("evil"), "{name}: a caller's word for an account: {head}");
            let is_told = head.contains("x-jari-account: kim@example.com\r\n");
            assert_eq!(is_told, what != "without an account", "{name}: {head}");
        }
    }
    for (what, token) in system.bad() {
        let status = status(door, "GET", Some(&format!("Bearer {token}"))).await;
        assert!([401, 403].contains(&status), "{name}: {status} for a token {what}");
        assert_eq!(origin.taken(), [""; 0], "{name}: a token {what} reached the origin");
    }
    for authorization in [None, Some(""), Some("Bearer"), Some("Basic a2ltOmtpbQ==")] {
        assert_eq!(status(door, "GET", authorization).await, 401, "{name}: {authorization:?}");
        assert_eq!(origin.taken(), [""; 0], "{name}: {authorization:?} reached the origin");
    }
}

#[tokio::test]
async fn nginx_and_envoy_let_in_whom_the_line_let_in() {
    let system = System::start().await;
    let origin = Origin::start().await;
    let protected = Protected { issuer: system.served.url(), event: system.event(), origin: origin.port };
    for (name, open) in [("nginx", Door::nginx as fn(_) -> _), ("envoy", Door::envoy)] {
        let door = open(protected);
        assert_eq!(origin.taken(), [""; 0], "{name}");
        lets_in_whom_the_line_let_in(name, &system, &door, &origin).await;
    }
    system.served.interrupt().await;
}

/// What oidc.py says of each token.
fn checked(issuer: &str, audience: &str, tokens: &[(&str, String)]) -> Vec<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/system/oidc.py");
    let mut python = Command::new(venv().join("bin/python"));
    python.args([script, issuer, audience]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().expect("target/venv has Python");
    let lines: String = tokens.iter().flat_map(|(_, token)| [token, "\n"]).collect();
    // Dropped at once: the script reads to the end.
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("the script reads");
    let output = child.wait_with_output().expect("the script's end");
    assert!(output.status.success(), "{}", output.status);
    let said: Vec<String> =
        String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect();
    assert_eq!(said.len(), tokens.len(), "{said:?}");
    said
}

#[tokio::test]
async fn a_service_that_knows_the_issuer_alone_can_check_our_tokens() {
    let system = System::start().await;
    let (issuer, good, bad) = (system.served.url().to_owned(), system.good(), system.bad());
    let subject = |token: &str| json_of(parts(token)[1])["sub"].as_str().expect("a subject").to_owned();
    let subjects: Vec<String> = good.iter().map(|(_, token)| subject(token)).collect();
    for audience in [system.event(), "jari"] {
        assert_eq!(checked(&issuer, audience, &good), subjects, "{audience}");
    }
    let said = checked(&issuer, system.event(), &bad);
    for ((what, _), said) in bad.iter().zip(&said) {
        assert!(said.ends_with("Error") || said.ends_with("Signature"), "a token {what}: {said}");
    }
    system.served.interrupt().await;
}
