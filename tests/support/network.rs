//! Free ports.

use std::net::{Ipv4Addr, TcpListener};

/// A port of 127.0.0.1 that was free just now. Another process may still take it first, so whoever uses it
/// starts anew with another when it is gone.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on 127.0.0.1");
    listener.local_addr().expect("the port just bound").port()
}
