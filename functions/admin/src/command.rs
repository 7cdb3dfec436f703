//! What an operator can ask, as JSON: `{"command":"pace","event":"concert-2026","perSecond":50,"by":"kim"}`.

use domain::fact::StreamId;
use domain::{EventId, Millis, ReservationId};
use serde::{Deserialize, Serialize};

/// How long an audit waits for differences to vanish, and a deletion for the queues, where they are not told.
pub const DEFAULT_PATIENCE_SECONDS: u32 = 10;

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Command {
    /// Create an event, or bring it to this definition.
    Apply {
        /// The definition.
        definition: Definition,
        /// Opens the sale then instead; its close and a fixed payment date move along.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opens_at: Option<Millis>,
        /// Who asks.
        by: String,
    },
    /// All events.
    List,
    /// One event, section by section.
    Show {
        /// The event.
        event: EventId,
    },
    /// Let people in: after a pause or a close, or now instead of at the opening.
    Open {
        /// The event.
        event: EventId,
        /// Who asks.
        by: String,
    },
    /// Admit nobody.
    Pause {
        /// The event.
        event: EventId,
        /// Who asks.
        by: String,
    },
    /// End the sale.
    Close {
        /// The event.
        event: EventId,
        /// Who asks.
        by: String,
    },
    /// Set the pace.
    Pace {
        /// The event.
        event: EventId,
        /// People a second.
        per_second: f64,
        /// Who asks.
        by: String,
    },
    /// Tell everybody who waits.
    Message {
        /// The event.
        event: EventId,
        /// What; empty takes the message away.
        text: String,
        /// Who asks.
        by: String,
    },
    /// Refuse holds and bookings, or take them again.
    Maintenance {
        /// The event.
        event: EventId,
        /// Whether they are refused.
        on: bool,
        /// Who asks.
        by: String,
    },
    /// Forget a sale that is over or was never opened. What PostgreSQL has of it stays, and its id is not to be had
    /// again.
    Delete {
        /// The event.
        event: EventId,
        /// Who asks.
        by: String,
        /// How long to wait for the queues to take what is left of its journal.
        #[serde(default = "default_patience_seconds")]
        patience_seconds: u32,
    },
    /// Recompute a draw.
    VerifyShuffle {
        /// The event.
        event: EventId,
    },
    /// A page of the digests of all tokens in a draw, which are published at the opening.
    ShuffleList {
        /// The event.
        event: EventId,
        /// Where the page before ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<ListCursor>,
    },
    /// Look for what must never happen.
    Audit {
        /// The event.
        event: EventId,
        /// How long to read again until what differs has vanished: facts may be on their way.
        #[serde(default = "default_patience_seconds")]
        patience_seconds: u32,
        /// Whether to put right what has exactly one right answer.
        #[serde(default)]
        repair: bool,
        /// Who asks.
        #[serde(default = "nobody_named")]
        by: String,
    },
    /// Lay out an event anew that Redis has lost, from what PostgreSQL knows.
    Rebuild {
        /// The event.
        event: EventId,
        /// Who asks.
        by: String,
    },
    /// A page of reservations, as PostgreSQL has them.
    Export {
        /// The event.
        event: EventId,
        /// Where the page before ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<ExportCursor>,
        /// Reservations of the page at most.
        limit: u32,
        /// Whether to tell the tokens, which are secrets.
        #[serde(default)]
        with_tokens: bool,
    },
    /// The messages that could not be written, and why; at most 1 000.
    DlqList,
    /// Move messages that could not be written back to their queue. Safe to repeat.
    DlqReplay {
        /// Which; none: all.
        #[serde(default)]
        ids: Vec<String>,
    },
    /// Bring PostgreSQL's tables up to date.
    Migrate,
}

fn default_patience_seconds() -> u32 {
    DEFAULT_PATIENCE_SECONDS
}

/// Who asks for an audit where nobody is named: only what it mends is told of anybody.
fn nobody_named() -> String {
    "audit".to_owned()
}

/// A sale's definition: the text of its file, so that mistakes have lines, or JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Definition {
    /// The file's text.
    Text(String),
    /// The definition itself.
    Json(serde_json::Value),
}

impl From<String> for Definition {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Where a page of an export ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportCursor {
    /// When its last reservation was made.
    pub created_at: Millis,
    /// That reservation.
    pub reservation_id: ReservationId,
}

/// Where a page of a draw's list ended: what PostgreSQL has comes first, then what is on its way there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "in", rename_all = "camelCase")]
pub enum ListCursor {
    /// Behind this fact.
    Recorded {
        /// Its epoch.
        epoch: u64,
        /// Its place in the journal.
        id: StreamId,
    },
    /// From this entry of the journal on.
    Journal {
        /// The entry.
        from: StreamId,
    },
    /// In the waiting line.
    Waiting {
        /// Redis' cursor.
        cursor: u64,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn commands_read_as_documented() {
        let read = |value: serde_json::Value| serde_json::from_value::<Command>(value).unwrap();
        let event: EventId = "concert-2026".parse().unwrap();
        assert_eq!(
            read(json!({"command": "pace", "event": "concert-2026", "perSecond": 50, "by": "kim"})),
            Command::Pace { event: event.clone(), per_second: 50.0, by: "kim".to_owned() }
        );
        assert_eq!(
            read(json!({"command": "audit", "event": "concert-2026"})),
            Command::Audit {
                event: event.clone(),
                patience_seconds: DEFAULT_PATIENCE_SECONDS,
                repair: false,
                by: "audit".to_owned()
            }
        );
        assert_eq!(
            read(json!({"command": "apply", "definition": "{}", "opensAt": 5, "by": "kim"})),
            Command::Apply {
                definition: Definition::Text("{}".to_owned()),
                opens_at: Some(Millis(5)),
                by: "kim".to_owned()
            }
        );
        assert_eq!(
            read(json!({"command": "apply", "definition": {"eventId": "e"}, "by": "kim"})),
            Command::Apply {
                definition: Definition::Json(json!({"eventId": "e"})),
                opens_at: None,
                by: "kim".to_owned()
            }
        );
        assert_eq!(
            read(json!({"command": "delete", "event": "concert-2026", "by": "kim", "patienceSeconds": 0})),
            Command::Delete { event: event.clone(), by: "kim".to_owned(), patience_seconds: 0 }
        );
        assert_eq!(
            read(json!({"command": "verify-shuffle", "event": "concert-2026"})),
            Command::VerifyShuffle { event }
        );
        assert_eq!(read(json!({"command": "migrate"})), Command::Migrate);
        assert_eq!(read(json!({"command": "dlq-list"})), Command::DlqList);
        assert_eq!(read(json!({"command": "dlq-replay"})), Command::DlqReplay { ids: Vec::new() });
        for wrong in [
            json!({"command": "delete", "event": "e"}),
            json!({"command": "show", "event": "A b"}),
            json!({}),
        ] {
            assert!(serde_json::from_value::<Command>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cursors_read_back_as_written() {
        let id = StreamId { ms: 1_790_000_000_000, sequence: 3 };
        let event: EventId = "e".parse().unwrap();
        for after in [
            ListCursor::Recorded { epoch: 1, id },
            ListCursor::Journal { from: id },
            ListCursor::Waiting { cursor: 7 },
        ] {
            let command = Command::ShuffleList { event: event.clone(), after: Some(after) };
            let text = serde_json::to_string(&command).unwrap();
            assert_eq!(serde_json::from_str::<Command>(&text).unwrap(), command, "{text}");
        }
    }
}
