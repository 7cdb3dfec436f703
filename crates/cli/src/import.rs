//! `jari event from-gtfs` and `jari event from-csv`: a sale's definition from what others keep.
//!
//! What a feed or a list does not say (when the sale opens, the pace, prices, seats) comes from flags or from a
//! template: a definition without offerings, in which `sections` says what every offering has.

mod gtfs;
mod seats;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use domain::EventId;
use serde_json::{Map, Value, json};

pub(crate) use self::gtfs::GtfsArguments;

use crate::Ending;
use crate::output::{Output, complain, counted};

/// So many notes of one import are told, and how many more there are.
const NOTES: usize = 50;

/// What neither a feed nor a list says.
#[derive(Debug, Args)]
pub(crate) struct SaleArguments {
    /// A definition without offerings; `sections` in it says what every offering has
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<PathBuf>,
    /// The event's id
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Option<EventId>,
    /// What people read above everything else
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// When it opens, such as 2026-09-01T07:00:00+09:00
    #[arg(long, value_name = "TIME", required_unless_present = "template")]
    pub(crate) opens_at: Option<String>,
    /// When it closes
    #[arg(long, value_name = "TIME", required_unless_present = "template")]
    pub(crate) closes_at: Option<String>,
    /// People let in a second [default: 70]
    #[arg(long, value_name = "N")]
    pub(crate) per_second: Option<f64>,
}

/// A list of seats.
#[derive(Debug, Args)]
#[command(after_help = "Example: jari event from-csv seats.csv --event concert-1 \\\n  \
                        --opens-at 2026-09-15T20:00:00+09:00 --closes-at 2026-10-10T15:00:00+09:00")]
pub(crate) struct CsvArguments {
    /// The list, in UTF-8, with a header
    #[arg(value_name = "SEATS.csv")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) sale: SaleArguments,
}

/// What came of reading.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    pub(crate) offerings: Vec<Value>,
    /// What is there and was not taken over, and what was changed.
    pub(crate) notes: Vec<String>,
    /// How much of it is lost: lines, trips.
    pub(crate) left_out: u64,
    /// Where the definition names none.
    pub(crate) event: Option<String>,
    pub(crate) title: Option<String>,
}

pub(crate) fn from_csv(arguments: &CsvArguments, output: &mut Output) -> anyhow::Result<Ending> {
    let base = Base::of(&arguments.sale)?;
    let file = fs::File::open(&arguments.file);
    let file = file.with_context(|| format!("cannot read {}", arguments.file.display()))?;
    finish(base, seats::read(file)?, output)
}

pub(crate) fn from_gtfs(arguments: &GtfsArguments, output: &mut Output) -> anyhow::Result<Ending> {
    let mut base = Base::of(&arguments.sale)?;
    for section in &arguments.sections {
        base.sections.push(section.definition());
    }
    if base.sections.is_empty() {
        bail!("a feed has no seats: name what each trip has with --section, or in the template's sections");
    }
    let imported = gtfs::read(arguments, &base.sections)?;
    finish(base, imported, output)
}

/// The definition without its offerings.
struct Base {
    fields: Map<String, Value>,
    sections: Vec<Value>,
}

impl Base {
    fn of(arguments: &SaleArguments) -> anyhow::Result<Self> {
        let mut fields = match &arguments.template {
            None => Map::new(),
            Some(file) => {
                let text =
                    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
                serde_json::from_str(&text)
                    .with_context(|| format!("{} is no JSON object", file.display()))?
            }
        };
        let sections = match fields.remove("sections") {
            None => Vec::new(),
            Some(Value::Array(sections)) => sections,
            Some(_) => bail!("the template's sections are no list"),
        };
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        set("eventId", arguments.event.as_ref().map(|event| json!(event.as_str())));
        set("title", arguments.title.as_ref().map(|title| json!(title)));
        set("opensAt", arguments.opens_at.as_ref().map(|at| json!(at)));
        set("closesAt", arguments.closes_at.as_ref().map(|at| json!(at)));
        if arguments.per_second.is_some() || !fields.contains_key("admission") {
            let per_second = arguments.per_second.unwrap_or(70.0);
            // Everybody may stay to the end of a visit of three minutes.
            let max_active = (per_second * 180.0).ceil().max(1.0);
            fields.insert(
                "admission".to_owned(),
                json!({ "perSecond": per_second, "maxActive": whole(max_active) }),
            );
        }
        if !fields.contains_key("requireAccount") && !fields.contains_key("anonymous") {
            fields.insert("requireAccount".to_owned(), json!(true));
        }
        Ok(Self { fields, sections })
    }
}

fn whole(number: f64) -> u64 {
    // What is out of range is told by the check of the definition.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = number as u64;
    whole
}

/// The whole definition to standard output, if it has no mistakes; what was not taken over to standard error.
fn finish(base: Base, imported: Imported, output: &mut Output) -> anyhow::Result<Ending> {
    let Imported { offerings, notes, left_out, event, title } = imported;
    let mut fields = base.fields;
    for (name, value) in [("eventId", event), ("title", title)] {
        if let (Some(value), false) = (value, fields.contains_key(name)) {
            fields.insert(name.to_owned(), json!(value));
        }
    }
    let count = offerings.len() as u64;
    fields.insert("offerings".to_owned(), Value::Array(offerings));
    let text = serde_json::to_string_pretty(&Value::Object(fields))?;
    for note in notes.iter().take(NOTES) {
        complain(note);
    }
    if notes.len() > NOTES {
        complain(format!("and {}", counted((notes.len() - NOTES) as u64, "more note")));
    }
    if let Err(problems) = domain::sale::check(&text) {
        for problem in &problems {
            complain(format!("{}: {}", problem.path, problem.reason));
        }
        complain(counted(problems.len() as u64, "mistake") + " in what this would be: nothing was written");
        return Ok(Ending::Found);
    }
    output.line(text)?;
    complain(format!("{} written", counted(count, "offering")));
    Ok(if left_out == 0 { Ending::Fine } else { Ending::Found })
}

/// An id of an offering out of any text: other letters become `-`, at most 32.
pub(crate) fn id_of(text: &str) -> String {
    let letters = text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' });
    let id: String = letters.take(32).collect();
    id.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_of_letters_that_ids_may_have() {
        assert_eq!(id_of("KTX 101/a"), "KTX-101-a");
        assert_eq!(id_of("경부선"), "");
        assert_eq!(id_of(&"x".repeat(40)).len(), 32);
    }
}
