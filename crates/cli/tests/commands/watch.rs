//! `jari watch`.

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
    for part in
        ["train-1  A train\n", "OPEN  closes in ", "pace/s      20", "T1/G", "waiting   0", "refused: "]
    {
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
