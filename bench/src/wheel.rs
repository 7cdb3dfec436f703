//! Who acts in which second of simulated time.

/// What is due, second by second: a ring as long as the longest wait.
pub(crate) struct Wheel<T> {
    slots: Vec<Vec<T>>,
    at: usize,
    length: usize,
}

impl<T> Wheel<T> {
    /// For waits of so many seconds at most; what should wait longer waits that long.
    pub(crate) fn of(longest_seconds: usize) -> Self {
        Self { slots: (0..=longest_seconds.max(1)).map(|_| Vec::new()).collect(), at: 0, length: 0 }
    }

    /// Due in so many milliseconds, rounded up to a second: nobody is ever too early.
    pub(crate) fn put(&mut self, what: T, in_ms: u32) {
        let seconds = (in_ms.div_ceil(1_000).max(1) as usize).min(self.slots.len() - 1);
        let slot = (self.at + seconds) % self.slots.len();
        self.slots[slot].push(what);
        self.length += 1;
    }

    /// The next second begins: what is due in it.
    pub(crate) fn turn(&mut self) -> Vec<T> {
        self.at = (self.at + 1) % self.slots.len();
        let due = std::mem::take(&mut self.slots[self.at]);
        self.length -= due.len();
        due
    }

    /// What is still due.
    pub(crate) fn len(&self) -> usize {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_once_in_its_second_and_never_early() {
        let mut wheel = Wheel::of(12);
        for in_ms in [0, 1, 1_000, 1_001, 9_999, 12_000, 99_000] {
            wheel.put(in_ms, in_ms);
        }
        assert_eq!(wheel.len(), 7);
        let seconds: Vec<Vec<u32>> = (0..12).map(|_| wheel.turn()).collect();
        assert_eq!(seconds[0], [0, 1, 1_000]);
        assert_eq!((&seconds[1][..], &seconds[9][..]), (&[1_001][..], &[9_999][..]));
        assert_eq!(seconds[11], [12_000, 99_000], "the longest wait there is");
        assert_eq!(wheel.len(), 0);
        wheel.put(7, 2_000);
        assert_eq!([wheel.turn(), wheel.turn()], [vec![], vec![7]], "round and round");
    }
}
