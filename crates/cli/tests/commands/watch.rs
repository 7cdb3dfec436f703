//! `jari watch`.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::served::{Served, complained, said, sale};

#[test]
fn a_frame_tells_how_the_sale_stands() {
    let served = Served::with("watch", &sale(20, "1-9", 100));
    let crowd = ["crowd", "--users", "60", "--arrive", "1s", "--think", "1s", "--speed", "10"];
    assert_eq!(served.jari(&crowd).status.code(), Some(0));
    let frame = served.jari(&["watch", "train-1", "--once"]);
    let text = said(&frame);
    assert_eq!(frame.status.code(), Some(0), "{}", complained(&frame));
    assert_eq!(text.lines().count(), 24);
    for part in [
        "train-1  A train\n",
        "OPEN  closes in ",
        "pace/s      20",
        "T1/G",
        "waiting   0",
        "refused: ",
        "held    sold",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let free = text.lines().find(|line| line.starts_with("free")).expect("a line of free places");
    assert!(!free.contains("172 of 172"), "something was sold: {free}");

    let piped = served.jari(&["watch", "train-1"]);
    assert_eq!(piped.status.code(), Some(2));
    assert!(complained(&piped).contains("no terminal: print a single frame with --once"), "{piped:?}");
    let unknown = served.jari(&["watch", "nothing", "--once"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(complained(&unknown).contains("there is no event nothing"), "{unknown:?}");
}

/// util-linux' `script` lends it a terminal, and notes what is drawn there.
#[test]
fn a_terminal_is_drawn_in_and_given_back() {
    let served = Served::with("terminal", &sale(20, "1-9", 100));
    let (data, drawn) = (served.folder.file("data"), served.folder.file("drawn"));
    // A terminal that nobody looks at has no size of its own.
    let watch = format!("stty rows 24 cols 80; {} watch train-1 --data {data}", env!("CARGO_BIN_EXE_jari"));
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--flush", "--command", &watch, &drawn]);
    let mut script =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("script is installed");
    let start = Instant::now();
    let seen = || fs::read_to_string(&drawn).unwrap_or_default();
    while !seen().contains("waiting") {
        assert!(start.elapsed() < Duration::from_secs(30), "{}", seen());
        sleep(Duration::from_millis(50));
    }
    script.stdin.take().expect("its input").write_all(b"q").expect("a key");
    let status = script.wait().expect("its end");
    assert!(status.success(), "{status}: {}", seen());
    let (on, off) = ("\u{1b}[?1049h", "\u{1b}[?1049l");
    let seen = seen();
    assert!(seen.find(on) < seen.rfind(off), "the other screen is left again: {seen:?}");
}
