//! CPU time of this thread and of other processes, as the kernel counts it.

use anyhow::Context;

/// Clock ticks a second of `/proc`: the same on every Linux.
const TICKS_A_SECOND: f64 = 100.0;

/// Seconds of CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cpu {
    /// In the program itself.
    pub(crate) user: f64,
    /// In the kernel, for it: reading, writing, waiting.
    pub(crate) system: f64,
}

impl Cpu {
    /// Of the calling thread.
    pub(crate) fn of_this_thread() -> anyhow::Result<Self> {
        Self::read("/proc/thread-self/stat")
    }

    /// Of a process, all its threads.
    pub(crate) fn of_process(pid: u32) -> anyhow::Result<Self> {
        Self::read(&format!("/proc/{pid}/stat"))
    }

    fn read(path: &str) -> anyhow::Result<Self> {
        let stat = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
        Self::parse(&stat).with_context(|| format!("{path}: {stat}"))
    }

    /// The name in parentheses may hold anything; utime and stime are the 12th and 13th behind it.
    fn parse(stat: &str) -> Option<Self> {
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut seconds = || Some(fields.next()?.parse::<f64>().ok()? / TICKS_A_SECOND);
        Some(Self { user: seconds()?, system: seconds()? })
    }

    pub(crate) fn total(self) -> f64 {
        self.user + self.system
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self { user: self.user - before.user, system: self.system - before.system }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_have_any_name() {
        let stat = "1 (a) b (c) R 1 2 3 4 5 6 7 8 9 10 250 50 0 0";
        let cpu = Cpu::parse(stat).unwrap();
        assert!((cpu.user - 2.5).abs() < 1e-9 && (cpu.system - 0.5).abs() < 1e-9, "{cpu:?}");
    }

    #[test]
    fn this_thread_is_told() {
        assert!(Cpu::of_this_thread().unwrap().total() >= 0.0);
        assert!(Cpu::of_process(std::process::id()).is_ok());
    }
}
