//! What a command came to.

use std::fmt;

use domain::sale::Problem;
use domain::{EventId, OfferingId, SectionId};
use recovery::RebuildReport;
use serde::{Deserialize, Serialize};

use crate::audit::AuditReport;
use crate::command::{ExportCursor, ListCursor};
use crate::dead_letters::DeadLetterReport;
use crate::draw::DrawReport;
use crate::export::ExportedReservation;
use crate::show::{EventDetail, EventSummary};

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Reply {
    /// A definition is in place.
    Applied {
        /// The event.
        event: EventId,
        /// The definition's version.
        version: u64,
        /// Whether the event is new.
        created: bool,
    },
    /// All events, by id.
    Listed {
        /// The events.
        events: Vec<EventSummary>,
    },
    /// One event.
    Shown(Box<EventDetail>),
    /// A running sale was changed.
    Changed {
        /// The event.
        event: EventId,
        /// The definition's version.
        version: u64,
    },
    /// A sale was forgotten.
    Deleted {
        /// The event.
        event: EventId,
        /// Keys that were removed from Redis.
        keys: u64,
    },
    /// A draw was recomputed.
    Verified(DrawReport),
    /// A page of a draw's list.
    ShuffleListed {
        /// SHA-256 of tokens in hex, in no order; one may stand in several pages.
        digests: Vec<String>,
        /// Where the next page begins; none behind the last one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<ListCursor>,
    },
    /// An audit.
    Audited(AuditReport),
    /// An event was laid out anew.
    Rebuilt(Box<RebuildReport>),
    /// A page of reservations.
    Exported {
        /// In the order of their sale.
        reservations: Vec<ExportedReservation>,
        /// Where the next page begins; none behind the last one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<ExportCursor>,
    },
    /// Messages that could not be written, the oldest first.
    DeadLetters {
        /// Each of them.
        letters: Vec<DeadLetterReport>,
    },
    /// Messages were moved back.
    Replayed {
        /// The ids of those that were.
        replayed: Vec<String>,
        /// The ids of those that stay: they were refused once more, or could not be moved.
        kept: Vec<String>,
    },
    /// The tables are up to date.
    Migrated {
        /// The migrations that were applied now.
        applied: Vec<i32>,
    },
    /// Nothing was changed, and why.
    Refused(Refused),
}

/// Why an operator was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "refusal", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub enum Refused {
    /// No such event.
    EventNotFound {
        /// The id.
        event: EventId,
    },
    /// The definition has mistakes.
    InvalidDefinition {
        /// Every one.
        problems: Vec<Mistake>,
    },
    /// Places that would go off sale are held or sold.
    InUse {
        /// The offering.
        offering_id: OfferingId,
        /// The section.
        section_id: SectionId,
    },
    /// PostgreSQL has an event of this id that Redis does not know.
    Recorded {
        /// The id.
        event: EventId,
    },
    /// Others kept changing the event.
    Conflict {
        /// The event.
        event: EventId,
    },
    /// A value makes no sense.
    InvalidValue {
        /// Which.
        field: String,
        /// Why, and what would be right.
        reason: String,
    },
    /// The sale is in no state for this.
    NotNow {
        /// Why, and what to do instead.
        reason: String,
    },
}

/// One mistake in a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mistake {
    /// Where: `$.offerings[3].sections[0].price`.
    pub path: String,
    /// The line in the text, from 1, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl From<Problem> for Mistake {
    fn from(Problem { path, line, reason }: Problem) -> Self {
        Self { path, line, reason }
    }
}

impl Refused {
    pub(crate) fn mistakes(problems: Vec<Problem>) -> Self {
        Self::InvalidDefinition { problems: problems.into_iter().map(Mistake::from).collect() }
    }

    pub(crate) fn value(field: &str, reason: impl Into<String>) -> Self {
        Self::InvalidValue { field: field.to_owned(), reason: reason.into() }
    }

    pub(crate) fn not_now(reason: impl Into<String>) -> Self {
        Self::NotNow { reason: reason.into() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EventNotFound { event } => write!(f, "there is no event {event}"),
            Self::InvalidDefinition { problems } => {
                write!(f, "the definition has {}", counted(problems.len(), "mistake"))?;
                for (at, Mistake { path, reason, .. }) in problems.iter().enumerate() {
                    write!(f, "{} {path}: {reason}", if at == 0 { ":" } else { ";" })?;
                }
                Ok(())
            }
            Self::InUse { offering_id, section_id } => {
                write!(f, "places of {offering_id}/{section_id} that would go off sale are held or sold")
            }
            Self::Recorded { event } => write!(
                f,
                "PostgreSQL has a sale {event} that Redis does not know: it was deleted, or Redis has lost it; \
                 choose another id, or rebuild it"
            ),
            Self::Conflict { event } => write!(f, "others keep changing {event}: try again"),
            Self::InvalidValue { field, reason } => write!(f, "{field} {reason}"),
            Self::NotNow { reason } => f.write_str(reason),
        }
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reads_back_and_says_why() {
        let problems = vec![
            Mistake { path: "$.title".to_owned(), line: Some(3), reason: "is missing".to_owned() },
            Mistake { path: "$.offerings".to_owned(), line: None, reason: "must be a list".to_owned() },
        ];
        let id = "e".parse::<EventId>().unwrap();
        for (refused, word, says) in [
            (Refused::EventNotFound { event: id.clone() }, "EVENT_NOT_FOUND", "there is no event e"),
            (
                Refused::InvalidDefinition { problems },
                "INVALID_DEFINITION",
                "the definition has 2 mistakes: $.title: is missing; $.offerings: must be a list",
            ),
            (
                Refused::InUse { offering_id: "A".parse().unwrap(), section_id: "s".parse().unwrap() },
                "IN_USE",
                "places of A/s that would go off sale are held or sold",
            ),
            (
                Refused::Recorded { event: id.clone() },
                "RECORDED",
                "PostgreSQL has a sale e that Redis does not know: it was deleted, or Redis has lost it; choose \
                 another id, or rebuild it",
            ),
            (Refused::Conflict { event: id }, "CONFLICT", "others keep changing e: try again"),
            (Refused::value("text", "is long"), "INVALID_VALUE", "text is long"),
            (Refused::not_now("it is over"), "NOT_NOW", "it is over"),
        ] {
            assert_eq!(refused.to_string(), says);
            let reply = Reply::Refused(refused);
            let text = serde_json::to_string(&reply).unwrap();
            assert!(text.starts_with(&format!(r#"{{"reply":"refused","refusal":"{word}""#)), "{text}");
            assert_eq!(serde_json::from_str::<Reply>(&text).unwrap(), reply);
        }
    }
}
