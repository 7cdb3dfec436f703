//! The dead letters of a system in one process: a file with a message a line, which `jari serve` appends to and an operator's
//! command takes from, each while it holds the lock beside it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::PathBuf;

use futures::FutureExt;
use futures::future::BoxFuture;
use outbox::{DeadLetter, DeadLetters, DeadLettersError, MAX_DEAD_LETTERS, Replayed, unpack};
use records::Records;
use sha2::{Digest, Sha256};

/// Bytes of a message's digest that name it.
const ID_BYTES: usize = 8;

/// The file.
#[derive(Debug, Clone)]
pub struct LetterFile {
    path: PathBuf,
}

impl LetterFile {
    /// The file at a path; it need not be there.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Adds a message, whose body is JSON and so has no line breaks.
    pub fn append(&self, body: &str) -> io::Result<()> {
        let _lock = self.lock()?;
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        writeln!(file, "{body}")?;
        file.sync_data()
    }

    fn bodies(&self) -> io::Result<Vec<String>> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Takes messages out by their ids. However it ends, the file is the one before or the one after.
    fn remove(&self, ids: &[String]) -> io::Result<()> {
        let _lock = self.lock()?;
        let beside = self.path.with_extension("new");
        let mut file = File::create(&beside)?;
        for body in self.bodies()?.iter().filter(|body| !ids.contains(&id_of(body))) {
            writeln!(file, "{body}")?;
        }
        file.sync_all()?;
        fs::rename(beside, &self.path)
    }

    /// Held until the value is dropped, however the process ends.
    fn lock(&self) -> io::Result<File> {
        let file = File::create(self.path.with_extension("lock"))?;
        file.lock()?;
        Ok(file)
    }
}

/// The same message has the same name.
fn id_of(body: &str) -> String {
    let mut id = domain::shuffle::hex(&Sha256::digest(body));
    id.truncate(2 * ID_BYTES);
    id
}

/// Dead letters of a file. There is no queue to move them to: they are written, and leave the file once they are.
pub struct LocalDeadLetters {
    file: LetterFile,
    records: Records,
}

impl LocalDeadLetters {
    /// Those of a file, to be written there.
    pub fn new(file: LetterFile, records: Records) -> Self {
        Self { file, records }
    }

    async fn is_written(&self, body: &str) -> Result<bool, DeadLettersError> {
        let Ok(unpacked) = unpack(body) else { return Ok(false) };
        let is_whole = unpacked.bad.is_empty();
        let results = self.records.write(&[unpacked.facts]).await;
        let results = results.map_err(|error| DeadLettersError(error.to_string()))?;
        Ok(is_whole && results.iter().all(records::WriteResult::is_written))
    }
}

impl DeadLetters for LocalDeadLetters {
    fn list(&self) -> BoxFuture<'_, Result<Vec<DeadLetter>, DeadLettersError>> {
        let bodies = self.file.bodies().map_err(|error| DeadLettersError(error.to_string()));
        let letter = |body: String| DeadLetter { id: id_of(&body), queue: None, sent_at: None, body };
        let letters = bodies.map(|bodies| bodies.into_iter().take(MAX_DEAD_LETTERS).map(letter).collect());
        futures::future::ready(letters).boxed()
    }

    fn replay<'a>(
        &'a self,
        is_chosen: &'a (dyn Fn(&str) -> bool + Sync),
    ) -> BoxFuture<'a, Result<Replayed, DeadLettersError>> {
        async move {
            let mut replayed = Replayed::default();
            for letter in self.list().await?.into_iter().filter(|letter| is_chosen(&letter.id)) {
                let is_written = self.is_written(&letter.body).await?;
                if is_written { &mut replayed.replayed } else { &mut replayed.kept }.push(letter.id);
            }
            if !replayed.replayed.is_empty() {
                let removed = self.file.remove(&replayed.replayed);
                removed.map_err(|error| DeadLettersError(error.to_string()))?;
            }
            Ok(replayed)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_out_is_gone_and_all_else_is_there() {
        let path = std::env::temp_dir().join(format!("jari-test-letters-{}.jsonl", std::process::id()));
        let file = LetterFile::new(path.clone());
        assert_eq!(file.bodies().unwrap(), Vec::<String>::new());
        for body in ["{}", r#"{"facts":[]}"#, "{}"] {
            file.append(body).unwrap();
        }
        file.remove(&[id_of("{}")]).unwrap();
        assert_eq!(file.bodies().unwrap(), [r#"{"facts":[]}"#]);
        file.append("[]").unwrap();
        assert_eq!(file.bodies().unwrap(), [r#"{"facts":[]}"#, "[]"]);
        for extension in ["jsonl", "lock"] {
            fs::remove_file(path.with_extension(extension)).unwrap();
        }
        assert!(!path.with_extension("new").exists());
    }
}
