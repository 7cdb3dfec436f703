//! Gateways that check access tokens by themselves, before an origin: real nginx and Envoy with the files that
//! infra/protect ships, changed only where those say so.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::network::free_port;
use crate::process::{Folder, Recipe, Server, program};
use crate::venv;

/// Where a door's first answer is waited for.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// What a door stands before, and whom it lets in.
#[derive(Debug, Clone, Copy)]
pub struct Protected<'a> {
    /// Whose tokens are good: `http://127.0.0.1:PORT`.
    pub issuer: &'a str,
    /// The sale whose buyers are let in.
    pub event: &'a str,
    /// The port of the origin on 127.0.0.1.
    pub origin: u16,
}

/// A running gateway.
#[derive(Debug)]
pub struct Door {
    port: u16,
    _server: Server,
}

impl Door {
    /// nginx with njs.
    pub fn nginx(protected: Protected<'_>) -> Self {
        Self::start("nginx", |folder, port| {
            let conf = nginx_conf(protected, folder.path(), port);
            fs::write(folder.path().join("nginx.conf"), conf).expect("a file in the server's folder");
            let mut command = Command::new(program("nginx", &["/usr/sbin".into()]));
            command.arg("-p").arg(folder.path()).args(["-c", "nginx.conf", "-e", "stderr"]);
            Recipe { command, stop_signal: "TERM" }
        })
    }

    /// Envoy.
    pub fn envoy(protected: Protected<'_>) -> Self {
        Self::start("envoy", |folder, port| {
            let path = folder.path().join("envoy.json");
            fs::write(&path, envoy_conf(protected, port).to_string()).expect("a file in the server's folder");
            let envoy = venv().join("bin/envoy");
            assert!(envoy.is_file(), "{} is missing; infra/local/setup.sh test makes it", envoy.display());
            let mut command = Command::new(envoy);
            command.arg("-c").arg(path);
            command.args(["--use-dynamic-base-id", "--concurrency", "1", "--log-level", "warning"]);
            Recipe { command, stop_signal: "TERM" }
        })
    }

    fn start(name: &str, mut recipe: impl FnMut(&Folder, u16) -> Recipe) -> Self {
        let prepare = |folder: &Folder| {
            let port = free_port();
            (recipe(folder, port), port)
        };
        let (server, port, ()) = Server::start(name, prepare, |_, port| turns_away(*port).then_some(()));
        Self { port, _server: server }
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// Whether something there asks for a token.
fn turns_away(port: u16) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        std::io::Result::Ok(answer.starts_with(b"HTTP/1.1 401"))
    };
    ask().unwrap_or(false)
}

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/protect").join(name)
}

fn read(name: &str) -> String {
    let path = shipped(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Replaces what must be there, as often as it is.
fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from:?} is not in what is shipped");
    text.replace(from, to)
}

/// Debian's modules are files of their own, elsewhere they may be built in.
fn load_module() -> String {
    let folders = ["/usr/lib/nginx/modules", "/usr/lib64/nginx/modules", "/etc/nginx/modules"];
    let modules = folders.map(|folder| Path::new(folder).join("ngx_http_js_module.so"));
    let found = modules.iter().find(|module| module.is_file());
    found.map_or_else(String::new, |module| format!("load_module {};", module.display()))
}

fn nginx_conf(protected: Protected<'_>, folder: &Path, port: u16) -> String {
    let conf = read("jari.conf");
    let conf = changed(&conf, "js_path /etc/nginx/jari;", &format!("js_path {};", shipped("").display()));
    let conf = changed(&conf, "/var/cache/nginx/jari", "cache");
    let conf = changed(&conf, "listen 80;", &format!("listen 127.0.0.1:{port};"));
    let conf = changed(&conf, "https://tickets.example", protected.issuer);
    let conf = changed(&conf, "concert-2026", protected.event);
    let conf = changed(&conf, "127.0.0.1:8080", &format!("127.0.0.1:{}", protected.origin));
    // The folder is its owner's alone: workers of another user could not enter it.
    let user = if is_root() { "user root;" } else { "" };
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}/{kind};", folder.display()))
        .concat();
    format!(
        "{} {user} daemon off; worker_processes 1; pid pid; error_log stderr info; events {{}}\n\
         http {{ access_log off; {paths}\n{conf} }}",
        load_module()
    )
}

fn is_root() -> bool {
    let user = Command::new("id").arg("-u").output().expect("id runs");
    user.stdout.trim_ascii() == b"0"
}

fn envoy_conf(protected: Protected<'_>, port: u16) -> Value {
    let conf = changed(&read("envoy.yaml"), "https://tickets.example", protected.issuer);
    let conf = changed(&conf, "concert-2026", protected.event);
    let mut conf: Value = serde_saphyr::from_str(&conf).expect("infra/protect/envoy.yaml is YAML");
    let resources = &mut conf["static_resources"];
    let here = |port: u16| json!({ "address": "127.0.0.1", "port_value": port });
    resources["listeners"][0]["address"]["socket_address"] = here(port);
    let issuer = protected.issuer.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    for (cluster, (name, port)) in [("jari", issuer), ("origin", protected.origin)].into_iter().enumerate() {
        let cluster = &mut resources["clusters"][cluster];
        assert_eq!(cluster["name"], name);
        // Nothing is encrypted on 127.0.0.1.
        cluster.as_object_mut().expect("a cluster").remove("transport_socket");
        let endpoint = &mut cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"];
        endpoint["address"]["socket_address"] = here(port);
    }
    conf
}
