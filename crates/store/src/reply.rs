//! Reading a step's reply: a word, then what its header declares behind it.

use domain::outcome::{LineView, Place, Polled, Refusal, SaleStatus, Standing};
use domain::{Account, Millis};
use redis::Value;

use crate::StoreError;

/// Where the place begins in an answer that tells one: behind the word, what is told beside, and the view.
pub(crate) const PLACE_AT: usize = 3;

/// A reply, read from the front.
#[derive(Debug)]
pub(crate) struct Reply {
    step: &'static str,
    word: String,
    values: std::vec::IntoIter<Value>,
}

impl Reply {
    pub(crate) fn new(step: &'static str, value: Value) -> Result<Self, StoreError> {
        let Value::Array(values) = value else {
            return Err(StoreError::Malformed { step, reply: format!("{value:?}") });
        };
        let mut reply = Self { step, word: String::new(), values: values.into_iter() };
        reply.word = reply.text()?;
        Ok(reply)
    }

    pub(crate) fn word(&self) -> &str {
        &self.word
    }

    pub(crate) fn malformed(&self, what: &str) -> StoreError {
        StoreError::Malformed { step: self.step, reply: format!("{}: {what}", self.word) }
    }

    /// The refusals that need nothing but the reply; any other word is not declared.
    pub(crate) fn refusal(mut self) -> Result<Refusal, StoreError> {
        Ok(match self.word.as_str() {
            "EVENT_NOT_FOUND" => Refusal::EventNotFound,
            "RATE_LIMIT" => Refusal::RateLimit { retry_after_ms: self.small()? },
            "EVENT_CLOSED" => Refusal::EventClosed,
            "ACCOUNT_REQUIRED" => Refusal::AccountRequired,
            "ANOTHER_ACCOUNT" => Refusal::AnotherAccount,
            "IDEMPOTENCY_KEY_REUSED" => Refusal::IdempotencyKeyReused,
            "NOT_OPEN" => Refusal::NotOpen { opens_at: self.millis()? },
            "MAINTENANCE" => Refusal::Maintenance,
            "RECOVERING" => Refusal::Recovering,
            "JOURNAL_FULL" => Refusal::JournalFull,
            "NOT_ADMITTED" => Refusal::NotAdmitted,
            "ADMISSION_EXPIRED" => Refusal::AdmissionExpired,
            "HOLD_EXPIRED" => Refusal::HoldExpired,
            "ALREADY_BOOKED" => Refusal::AlreadyBooked { reservation: self.parsed()? },
            "SOLD_OUT" => Refusal::SoldOut { remaining: self.count()? },
            "NO_ADJACENT_SEATS" => Refusal::NoAdjacentSeats,
            "PURCHASE_LIMIT_EXCEEDED" => Refusal::PurchaseLimitExceeded {
                limit: self.small()?,
                used: self.small()?,
                requested: self.small()?,
            },
            "NOTHING_HELD" => Refusal::NothingHeld,
            "SEAT_COUNT_WHILE_HOLDING" => Refusal::SeatCountWhileHolding,
            "RESERVATION_NOT_FOUND" => Refusal::ReservationNotFound,
            "BOOKING_NOT_CANCELLABLE" => Refusal::BookingNotCancellable,
            "BOOKING_NOT_PAYABLE" => Refusal::BookingNotPayable,
            "AMOUNT_MISMATCH" => Refusal::AmountMismatch,
            _ => return Err(self.malformed("not an outcome")),
        })
    }

    fn next(&mut self) -> Result<Value, StoreError> {
        self.values.next().ok_or_else(|| self.malformed("too short"))
    }

    /// An integer, or nothing where the step says so.
    pub(crate) fn optional_integer(&mut self) -> Result<Option<i64>, StoreError> {
        match self.next()? {
            Value::Nil => Ok(None),
            Value::Int(integer) => Ok(Some(integer)),
            // As Redis keeps it: a step that only passes it on need not make a number of it.
            Value::BulkString(bytes) => {
                let integer = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok());
                integer.map(Some).ok_or_else(|| self.malformed("a text is no integer"))
            }
            other => Err(self.malformed(&format!("{other:?} is no integer"))),
        }
    }

    pub(crate) fn integer(&mut self) -> Result<i64, StoreError> {
        self.optional_integer()?.ok_or_else(|| self.malformed("an integer is missing"))
    }

    /// A count or score: negative ones mean a broken counter and become 0 for readers; `audit` reports them.
    pub(crate) fn count(&mut self) -> Result<u64, StoreError> {
        Ok(u64::try_from(self.integer()?).unwrap_or(0))
    }

    pub(crate) fn small(&mut self) -> Result<u32, StoreError> {
        u32::try_from(self.integer()?).map_err(|_| self.malformed("out of range"))
    }

    pub(crate) fn millis(&mut self) -> Result<Millis, StoreError> {
        self.integer().map(Millis)
    }

    /// A text, or nothing where the step says so.
    pub(crate) fn optional_text(&mut self) -> Result<Option<String>, StoreError> {
        match self.next()? {
            Value::Nil => Ok(None),
            Value::BulkString(bytes) => {
                String::from_utf8(bytes).map(Some).map_err(|_| self.malformed("a text is not UTF-8"))
            }
            Value::SimpleString(text) => Ok(Some(text)),
            other => Err(self.malformed(&format!("{other:?} is no text"))),
        }
    }

    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        self.optional_text()?.ok_or_else(|| self.malformed("a text is missing"))
    }

    pub(crate) fn parsed<T: std::str::FromStr>(&mut self) -> Result<T, StoreError> {
        let text = self.text()?;
        text.parse().map_err(|_| self.malformed(&text))
    }

    /// A nested array, as a reply without a word of its own.
    pub(crate) fn array(&mut self) -> Result<Self, StoreError> {
        match self.next()? {
            Value::Array(values) => {
                Ok(Self { step: self.step, word: self.word.clone(), values: values.into_iter() })
            }
            other => Err(self.malformed(&format!("{other:?} is no array"))),
        }
    }

    /// How many values are left.
    pub(crate) fn left(&self) -> usize {
        self.values.len()
    }

    /// The rest as texts: field, value, field, value, …
    pub(crate) fn pairs(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        let mut pairs = Vec::with_capacity(self.left() / 2);
        while self.left() > 1 {
            pairs.push((self.text()?, self.text()?));
        }
        Ok(pairs)
    }

    /// A reservation's fields: one text with a line for each name and each value, none of which has a line break in it,
    /// or an array.
    pub(crate) fn fields(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        if matches!(self.values.as_slice().first(), Some(Value::Array(_))) {
            return self.array()?.pairs();
        }
        let text = self.text()?;
        let mut lines = text.split('\n').map(str::to_owned);
        let mut fields = Vec::new();
        while let Some(name) = lines.next() {
            fields.push((name, lines.next().ok_or_else(|| self.malformed("a field without a value"))?));
        }
        Ok(fields)
    }

    /// The rest, each parsed.
    pub(crate) fn rest<T: std::str::FromStr>(&mut self) -> Result<Vec<T>, StoreError> {
        (0..self.left()).map(|_| self.parsed()).collect()
    }

    /// Whether the sale lets people in.
    pub(crate) fn status(&mut self) -> Result<SaleStatus, StoreError> {
        let word = self.text()?;
        SaleStatus::from_word(&word).ok_or_else(|| self.malformed(&word))
    }

    /// `view_of` of `lib/view.lua`: ten words, of which the last is the message and may be many.
    pub(crate) fn view(&mut self) -> Result<LineView, StoreError> {
        let text = self.text()?;
        read_view(&text).ok_or_else(|| self.malformed(&text))
    }

    /// A place in an array of its own, or nothing where the step says so.
    pub(crate) fn optional_place(&mut self) -> Result<Option<Place>, StoreError> {
        if matches!(self.values.as_slice().first(), Some(Value::Nil)) {
            return self.next().map(|_| None);
        }
        self.array()?.place().map(Some)
    }

    /// `lib/place.lua`: the rest of the reply, for places differ in length.
    pub(crate) fn place(&mut self) -> Result<Place, StoreError> {
        let word = self.text()?;
        Ok(match word.as_str() {
            "WAITING" => {
                let score = self.count()?;
                let rank = self.optional_integer()?.and_then(|rank| u64::try_from(rank).ok());
                Place::Waiting { score, rank }
            }
            "CALLED" => Place::Called,
            "ACTIVE" => Place::Active { expires_at: self.millis()?, account: self.account()? },
            "BOOKED" => Place::Booked { reservation: self.parsed()? },
            "EXPIRED" => Place::Expired { reentry: self.integer()? == 1 },
            "NOT_FOUND" => Place::NotFound,
            _ => return Err(self.malformed(&word)),
        })
    }

    /// The view, then a place.
    pub(crate) fn standing(&mut self) -> Result<Standing, StoreError> {
        Ok(Standing { view: self.view()?, place: self.place()? })
    }

    /// `lib/poll.lua`.
    pub(crate) fn polled(&mut self) -> Result<Polled, StoreError> {
        Ok(Polled { ticket_count: self.small()?, standing: self.standing()? })
    }

    /// An account, or nothing where the step says so or there is nothing more. Errors do not tell it.
    pub(crate) fn account(&mut self) -> Result<Option<Account>, StoreError> {
        if self.left() == 0 {
            return Ok(None);
        }
        let text = self.optional_text()?;
        text.map(|text| text.parse().map_err(|_| self.malformed("an account that is none"))).transpose()
    }
}

fn read_view(text: &str) -> Option<LineView> {
    let mut words = text.splitn(10, ' ');
    // Negative ones mean a broken counter.
    let count = |word: &str| word.parse::<i64>().ok().map(|count| u64::try_from(count).unwrap_or(0));
    Some(LineView {
        now: Millis(words.next()?.parse().ok()?),
        status: SaleStatus::from_word(words.next()?)?,
        opens_at: Millis(words.next()?.parse().ok()?),
        epoch: count(words.next()?)?,
        head_score: count(words.next()?)?,
        net: count(words.next()?)?,
        total_waiting: count(words.next()?)?,
        remaining_seats: count(words.next()?)?,
        admitted_per_second: words.next()?.parse().ok()?,
        message: Some(words.next()?.to_owned()).filter(|message| !message.is_empty()),
    })
}
