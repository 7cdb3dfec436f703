//! A sale to load at the start: `PATH`, `PATH@now` or `PATH@+2m`.

use std::path::PathBuf;
use std::str::FromStr;

use admin::{AdminState, Command, Refused, Reply};
use anyhow::{Context, bail};
use domain::sale::Sale;
use domain::{EventId, Millis};
use store::Store;

/// A sale's file, and when it opens if not when the file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaleFile {
    /// The definition.
    pub path: PathBuf,
    /// Milliseconds from the start of the server to the opening.
    pub opens_in_ms: Option<i64>,
}

impl FromStr for SaleFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((path, when)) = text.rsplit_once('@') else {
            return Ok(Self { path: text.into(), opens_in_ms: None });
        };
        let opens_in_ms = match when {
            "now" => 0,
            when => {
                after_ms(when).ok_or_else(|| format!("{when:?} is not now or +N followed by s, m or h"))?
            }
        };
        Ok(Self { path: path.into(), opens_in_ms: Some(opens_in_ms) })
    }
}

/// `+90s`, `+2m`, `+1h`.
fn after_ms(text: &str) -> Option<i64> {
    let text = text.strip_prefix('+')?;
    let (number, unit_ms) = match text.split_at_checked(text.len().checked_sub(1)?)? {
        (number, "s") => (number, 1_000),
        (number, "m") => (number, 60_000),
        (number, "h") => (number, 3_600_000),
        _ => return None,
    };
    i64::from(number.parse::<u32>().ok()?).checked_mul(unit_ms)
}

impl SaleFile {
    /// The file's text and what it defines; an error that names every mistake.
    fn read(&self) -> anyhow::Result<(String, Sale)> {
        let name = self.path.display();
        let text = std::fs::read_to_string(&self.path).with_context(|| format!("cannot read {name}"))?;
        match domain::sale::check(&text) {
            Ok(sale) => Ok((text, sale)),
            Err(problems) => {
                let problems: Vec<String> = problems.iter().map(|problem| format!("  {problem}")).collect();
                bail!("{name} is no sale:\n{}", problems.join("\n"));
            }
        }
    }

    /// The event that the file defines.
    pub(crate) fn event(&self) -> anyhow::Result<EventId> {
        Ok(self.read()?.1.event_id)
    }

    /// Create the event, or bring a running one to the file's definition. A running sale keeps its opening:
    /// people stand in its line.
    pub(crate) async fn load(&self, store: &Store, admin: &AdminState) -> anyhow::Result<()> {
        let (text, sale) = self.read()?;
        let known = store.newest_edition(&sale.event_id).await?;
        let opens_at = match (&known, self.opens_in_ms) {
            (Some(known), _) => Some(known.sale.opens_at),
            (None, Some(in_ms)) => Some(Millis::now().plus(in_ms)),
            (None, None) => None,
        };
        let wanted = opens_at.map_or_else(|| sale.clone(), |opens_at| sale.clone().opening_at(opens_at));
        let is_known = known.is_some();
        if known.is_some_and(|known| *known.sale == wanted) {
            return Ok(());
        }
        let command = Command::Apply { definition: text.into(), opens_at, by: "serve".to_owned() };
        match admin::admin(admin, command)
            .await
            .with_context(|| format!("cannot apply {}", self.path.display()))?
        {
            // What runs goes on as it is: an old sale, for one, must not keep the system from starting, and a lost one
            // can only be rebuilt while it runs.
            Reply::Refused(refused) if is_known || matches!(refused, Refused::Recorded { .. }) => {
                tracing::warn!(file = %self.path.display(), %refused, "the sale stays as it is");
                Ok(())
            }
            Reply::Refused(refused) => bail!("cannot apply {}: {refused}", self.path.display()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sale_file_may_bring_its_opening() {
        let read = |text: &str| text.parse::<SaleFile>();
        let file = |path: &str, opens_in_ms| Ok(SaleFile { path: path.into(), opens_in_ms });
        assert_eq!(read("a.json"), file("a.json", None));
        assert_eq!(read("a.json@now"), file("a.json", Some(0)));
        assert_eq!(read("a@b.json@+2m"), file("a@b.json", Some(120_000)));
        assert_eq!(read("a.json@+90s"), file("a.json", Some(90_000)));
        for text in
            ["a.json@", "a.json@+", "a.json@2m", "a.json@+2", "a.json@+-2m", "a.json@+2d", "a.json@+분"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
