//! New secrets: for the environment, or as files.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use gateway::access::AccessKeyPair;
use serde::Serialize;

use crate::Ending;
use crate::arguments::{KeygenArguments, Secret};
use crate::output::Output;

/// Make them, and tell or write them.
pub(crate) fn run(arguments: &KeygenArguments, output: &mut Output) -> anyhow::Result<Ending> {
    let secrets = Secrets::generate(&arguments.secrets)?;
    match (&arguments.out, arguments.json) {
        (None, false) => output.text(secrets.variables())?,
        (None, true) => output.json(&secrets)?,
        (Some(folder), is_json) => {
            let written = secrets.write(folder)?;
            if is_json {
                output.json(&written)?;
            } else {
                output.text(written.text())?;
            }
        }
    }
    Ok(Ending::Fine)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Secrets {
    #[serde(skip_serializing_if = "Option::is_none")]
    master_key: Option<String>,
    #[serde(flatten)]
    access: Option<AccessKey>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccessKey {
    access_token_key: String,
    access_token_public_key: String,
    kid: String,
}

/// What was written, without what stands in it.
#[derive(Serialize)]
struct Written {
    files: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
}

impl Secrets {
    /// Those that were asked for; all where none was named.
    fn generate(asked: &[Secret]) -> anyhow::Result<Self> {
        let is_asked = |secret| asked.is_empty() || asked.contains(&secret);
        let access = if is_asked(Secret::AccessToken) {
            let AccessKeyPair { private_pem, public_pem, kid } = AccessKeyPair::generate()?;
            Some(AccessKey { access_token_key: private_pem, access_token_public_key: public_pem, kid })
        } else {
            None
        };
        Ok(Self { master_key: is_asked(Secret::Master).then(server::new_master_key), access })
    }

    /// A line each, as files of variables have them.
    fn variables(&self) -> String {
        let mut lines = Vec::new();
        if let Some(key) = &self.master_key {
            lines.push(format!("MASTER_KEY={key}"));
        }
        if let Some(access) = &self.access {
            let line = |pem: &str| pem.replace('\n', "\\n");
            lines.push(format!("ACCESS_TOKEN_KEY={}", line(&access.access_token_key)));
            lines.push("# Functions that check and do not sign get this one as ACCESS_TOKEN_KEY:".to_owned());
            lines.push(format!("ACCESS_TOKEN_PUBLIC_KEY={}", line(&access.access_token_public_key)));
        }
        lines.join("\n") + "\n"
    }

    fn write(self, folder: &Path) -> anyhow::Result<Written> {
        let mut files = Vec::new();
        if let Some(key) = self.master_key {
            files.push((folder.join("master-key"), key));
        }
        let mut kid = None;
        if let Some(access) = self.access {
            files.push((folder.join("access-token-key.pem"), access.access_token_key));
            files.push((folder.join("access-token-public-key.pem"), access.access_token_public_key));
            kid = Some(access.kid);
        }
        // All or nothing: a new key beside an old one's public part would be good for nothing.
        if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
            bail!("{} is there already: it may be in use", path.display());
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        for (path, text) in &files {
            write_new(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Written { files: files.into_iter().map(|(path, _)| path).collect(), kid })
    }
}

impl Written {
    fn text(&self) -> String {
        let files = self.files.iter().map(|path| format!("wrote {}\n", path.display()));
        let kid = self.kid.iter().map(|kid| format!("kid   {kid}\n"));
        files.chain(kid).collect()
    }
}

/// A file that only its owner can read, and that was not there before.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a key is none.
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use bootstrap::config::{Access, MasterKeys};
    use serde_json::Value;

    use super::*;

    /// A path that is not there, whose last folder goes with the value.
    struct Fresh(PathBuf);

    impl Fresh {
        fn new() -> Self {
            let name = format!("jari-test-keygen-{}", domain::Token::random());
            Self(std::env::temp_dir().join(name).join("deep"))
        }
    }

    impl Drop for Fresh {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(self.0.parent().unwrap());
        }
    }

    /// The value of a variable among the lines.
    fn variable<'a>(lines: &'a str, name: &str) -> Option<&'a str> {
        lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }

    #[test]
    fn what_is_made_is_what_functions_take() {
        let lines = Secrets::generate(&[]).unwrap().variables();
        assert!(MasterKeys::new(variable(&lines, "MASTER_KEY").unwrap(), None).is_ok());
        let signs = Access::new(variable(&lines, "ACCESS_TOKEN_KEY").unwrap(), None, None).unwrap();
        let checks = Access::new(variable(&lines, "ACCESS_TOKEN_PUBLIC_KEY").unwrap(), None, None).unwrap();
        assert_eq!((signs.keys.can_sign(), checks.keys.can_sign()), (true, false));
        assert_eq!(signs.keys.jwks(), checks.keys.jwks());
    }

    #[test]
    fn every_secret_is_another() {
        let (one, other) = (Secrets::generate(&[]).unwrap(), Secrets::generate(&[]).unwrap());
        assert_ne!(one.master_key, other.master_key);
        assert_ne!(one.access.unwrap().kid, other.access.unwrap().kid);
    }

    #[test]
    fn one_alone_is_made_where_one_is_named() {
        let lines = Secrets::generate(&[Secret::AccessToken]).unwrap().variables();
        assert!(variable(&lines, "MASTER_KEY").is_none() && variable(&lines, "ACCESS_TOKEN_KEY").is_some());
        let lines = Secrets::generate(&[Secret::Master]).unwrap().variables();
        assert!(variable(&lines, "MASTER_KEY").is_some() && variable(&lines, "ACCESS_TOKEN_KEY").is_none());
    }

    #[test]
    fn json_has_keys_with_their_line_ends() {
        let secrets = Secrets::generate(&[]).unwrap();
        let json: Value = serde_json::to_value(&secrets).unwrap();
        let access = secrets.access.unwrap();
        assert_eq!(json["accessTokenKey"], access.access_token_key);
        assert_eq!(json["accessTokenPublicKey"], access.access_token_public_key);
        assert_eq!(json["kid"], access.kid);
        assert_eq!(json["masterKey"].as_str(), secrets.master_key.as_deref());
    }

    #[test]
    fn files_are_their_owners_alone_and_never_written_over() {
        let folder = Fresh::new();
        let secrets = Secrets::generate(&[]).unwrap();
        let kid = secrets.access.as_ref().unwrap().kid.clone();
        let written = secrets.write(&folder.0).unwrap();
        assert_eq!(written.kid.as_ref(), Some(&kid));
        assert_eq!(written.files.len(), 3);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder.0), 0o700);
        for path in &written.files {
            assert_eq!(mode(path), 0o600, "{}", path.display());
        }
        let pem = fs::read_to_string(folder.0.join("access-token-key.pem")).unwrap();
        assert_eq!(Access::new(&pem, None, None).unwrap().keys.jwks().keys[0].kid, kid);
        assert!(!written.text().contains("PRIVATE"));

        let master = fs::read_to_string(folder.0.join("master-key")).unwrap();
        fs::remove_file(folder.0.join("access-token-key.pem")).unwrap();
        let refused = Secrets::generate(&[]).unwrap().write(&folder.0).err().unwrap().to_string();
        assert!(refused.contains("is there already"), "{refused}");
        assert_eq!(fs::read_to_string(folder.0.join("master-key")).unwrap(), master);
        assert!(!folder.0.join("access-token-key.pem").exists(), "nothing of a refused set is written");
    }
}
