//! A folder for what a test writes.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder for temporary files. Removed when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A fresh one.
    pub fn new() -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("jari-scratch-{:016x}", fastrand::u64(..)));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
