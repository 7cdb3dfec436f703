//! What tests change and see of the steps. The product has no bench.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

use crate::expand;
use crate::step::{STEPS, Step};

/// Steps that run from other sources than those of the build, and the outcomes that were met. Tests only.
#[derive(Debug, Default)]
pub struct Bench {
    changed: HashMap<&'static str, String>,
    outcomes: Mutex<BTreeSet<(&'static str, String)>>,
}

impl Bench {
    /// The build's own steps.
    pub fn new() -> Self {
        Self::default()
    }

    /// The steps as the files below `lua` say, of which `changes` replaces some: by path from there (`book.lua`,
    /// `lib/pick.lua`), the whole text. Only steps whose code comes out different run from it.
    pub fn changed(lua: &Path, changes: &BTreeMap<&str, String>) -> io::Result<Self> {
        let read = |path: String| match changes.get(path.as_str()) {
            Some(text) => Ok(text.clone()),
            None => fs::read_to_string(lua.join(path)),
        };
        let library = |name: &str| read(format!("lib/{name}.lua"));
        let mut sources = HashMap::new();
        for step in STEPS {
            let source = expand::source(&read(format!("{}.lua", step.name))?, &library)?;
            if source != step.source {
                sources.insert(step.name, source);
            }
        }
        Ok(Self { changed: sources, outcomes: Mutex::default() })
    }

    /// How many steps run from another source.
    pub fn changes(&self) -> usize {
        self.changed.len()
    }

    /// Each step with an outcome that it was seen to have.
    pub fn outcomes(&self) -> BTreeSet<(&'static str, String)> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn source(&self, step: &Step) -> Option<&str> {
        self.changed.get(step.name).map(String::as_str)
    }

    pub(crate) fn met(&self, step: &Step, outcome: &str) {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.insert((step.name, outcome.to_owned()));
    }
}
