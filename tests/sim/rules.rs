//! A small sale as its definition says, and what operators change of it.

use serde_json::{Value, json};
use support::OPENS_AT;

/// Names of the seats that a row can have.
pub(crate) const LETTERS: [&str; 5] = ["A", "B", "C", "D", "E"];

/// How the people of a sale behave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Habit {
    Ordinary,
    /// Many come, few of those who are called.
    Absent,
    /// A few accounts that come again and again, and a limit that moves.
    Regular,
    /// Hardly any seats.
    Scarce,
}

impl Habit {
    pub(crate) fn of_seed(seed: u64) -> Self {
        [Self::Ordinary, Self::Absent, Self::Regular, Self::Ordinary, Self::Scarce]
            [usize::try_from(seed % 5).unwrap_or(0)]
    }
}

/// What a sale's steps read of its definition, and its places.
#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) opens_at: i64,
    pub(crate) closes_at: i64,
    pub(crate) pre_queue: &'static str,
    pub(crate) per_second: f64,
    pub(crate) max_active: usize,
    pub(crate) compensate: bool,
    pub(crate) backpressure_seconds: Option<u32>,
    pub(crate) active_ms: i64,
    pub(crate) claim_ms: i64,
    pub(crate) hold_ms: i64,
    pub(crate) limit: u32,
    pub(crate) require_account: bool,
    pub(crate) due_after_ms: Option<i64>,
    pub(crate) sections: Vec<Section>,
}

#[derive(Clone)]
pub(crate) struct Section {
    pub(crate) offering: &'static str,
    pub(crate) id: &'static str,
    pub(crate) price: u64,
    pub(crate) is_general: bool,
    /// Seats a row.
    pub(crate) width: usize,
    /// In the layout's order; without names in a general section.
    pub(crate) seats: Vec<Seat>,
}

#[derive(Clone)]
pub(crate) struct Seat {
    pub(crate) row: usize,
    pub(crate) name: String,
    pub(crate) state: SeatState,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SeatState {
    Free,
    Held { by: usize, until: i64, price: u64 },
    Sold { reservation: usize },
}

/// One change of a definition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Edit {
    PerSecond(f64),
    MaxActive(usize),
    Limit(u32),
    HoldSeconds(i64),
    /// Of every section.
    Price(u64),
    /// Rows of T1's named section.
    Rows(usize),
    /// Places of T1's general section.
    Capacity(usize),
    OpenNow,
}

impl Seat {
    pub(crate) fn is_free(&self) -> bool {
        self.state == SeatState::Free
    }
}

impl Section {
    fn named(offering: &'static str, price: u64, rows: usize, width: usize) -> Self {
        let mut section = Self { offering, id: "A", price, is_general: false, width, seats: Vec::new() };
        section.add_rows(1..=rows);
        section
    }

    fn general(offering: &'static str, price: u64, capacity: usize) -> Self {
        let seat = Seat { row: 0, name: String::new(), state: SeatState::Free };
        Self { offering, id: "G", price, is_general: true, width: 0, seats: vec![seat; capacity] }
    }

    fn add_rows(&mut self, rows: impl Iterator<Item = usize>) {
        for row in rows {
            let seats = LETTERS.iter().take(self.width);
            let seats =
                seats.map(|letter| Seat { row, name: format!("{row}{letter}"), state: SeatState::Free });
            self.seats.extend(seats);
        }
    }

    pub(crate) fn free(&self) -> usize {
        self.seats.iter().filter(|seat| seat.is_free()).count()
    }

    fn last_row(&self) -> usize {
        self.seats.iter().map(|seat| seat.row).max().unwrap_or(0)
    }

    /// As a seat map shows them.
    pub(crate) fn rows(&self) -> Value {
        let row = |row: usize| {
            let seats = self.seats.iter().filter(|seat| seat.row == row && !self.is_general);
            json!({ "name": row.to_string(), "seats": seats.map(|seat| &seat.name).collect::<Vec<_>>() })
        };
        (1..=self.last_row()).map(row).collect()
    }

    /// Every way to get `count` free seats side by side, with how many single free seats it would leave alone next to
    /// it.
    pub(crate) fn runs(&self, count: usize) -> Vec<(Vec<usize>, usize)> {
        if self.is_general {
            return Vec::new();
        }
        let is_free = |row: usize, at: Option<usize>| {
            let seat = at.and_then(|at| self.seats.get(at));
            seat.is_some_and(|seat| seat.row == row && seat.is_free())
        };
        let mut runs = Vec::new();
        for first in 0..self.seats.len() {
            let row = self.seats[first].row;
            let run: Vec<usize> = (first..first + count).collect();
            if run.iter().all(|at| is_free(row, Some(*at))) {
                let before = is_free(row, first.checked_sub(1)) && !is_free(row, first.checked_sub(2));
                let behind = is_free(row, Some(first + count)) && !is_free(row, Some(first + count + 1));
                runs.push((run, usize::from(before) + usize::from(behind)));
            }
        }
        runs
    }
}

impl Rules {
    /// The sale of a seed: all kinds of line, payment and account rule come up, in sales of each habit.
    pub(crate) fn of_seed(seed: u64) -> Self {
        let habit = Habit::of_seed(seed);
        let paces = [2.0, 3.0, 1.5];
        let pre_queue = match seed % 7 {
            0 => "closed",
            1 | 4 => "shuffle",
            _ => "fifo",
        };
        Self {
            opens_at: OPENS_AT,
            closes_at: OPENS_AT + 7_200_000,
            pre_queue,
            per_second: if habit == Habit::Absent {
                0.2
            } else {
                paces[usize::try_from(seed / 5 % 3).unwrap_or(0)]
            },
            max_active: if habit == Habit::Absent { 30 } else { 6 },
            compensate: seed % 10 == 1 || seed % 4 == 2,
            backpressure_seconds: (!seed.is_multiple_of(3)).then_some(2),
            active_ms: 120_000,
            claim_ms: 15_000,
            hold_ms: 60_000,
            limit: 4,
            require_account: seed % 8 == 5,
            due_after_ms: seed.is_multiple_of(2).then_some(80_000),
            sections: if habit == Habit::Scarce {
                vec![
                    Section::named("T1", 1_000, 1, 1),
                    Section::general("T1", 500, 1),
                    Section::named("T2", 70, 1, 1),
                    Section::general("T2", 7, 1),
                ]
            } else {
                vec![
                    Section::named("T1", 1_000, 3, 5),
                    Section::general("T1", 500, 6),
                    Section::named("T2", 70, 3, 2),
                    Section::general("T2", 7, 3),
                ]
            },
        }
    }

    /// The rules after a change; `None` where places that go are held or sold.
    pub(crate) fn edited(&self, edit: Edit, now: i64) -> Option<Self> {
        let section = match edit {
            Edit::Rows(_) => 0,
            Edit::Capacity(_) => 1,
            _ => return Some(self.file_edited(edit, now)),
        };
        let before = &self.sections[section];
        let mut rules = self.file_edited(edit, now);
        let after = &mut rules.sections[section].seats;
        if let Edit::Rows(rows) = edit {
            return before.seats.iter().all(|seat| seat.row <= rows || seat.is_free()).then_some(rules);
        }
        // Which of the places without names are taken does not matter; how many does.
        let taken: Vec<&Seat> = before.seats.iter().filter(|seat| !seat.is_free()).collect();
        if taken.len() > after.len() {
            return None;
        }
        for seat in after.iter_mut() {
            seat.state = SeatState::Free;
        }
        for (seat, taken) in after.iter_mut().zip(taken) {
            seat.state = taken.state;
        }
        Some(rules)
    }

    /// The same as an operator writes it into the file, who does not see what is held or sold.
    pub(crate) fn file_edited(&self, edit: Edit, now: i64) -> Self {
        let mut rules = self.clone();
        match edit {
            Edit::PerSecond(per_second) => rules.per_second = per_second,
            Edit::MaxActive(max_active) => rules.max_active = max_active,
            Edit::Limit(limit) => rules.limit = limit,
            Edit::HoldSeconds(seconds) => rules.hold_ms = seconds * 1_000,
            Edit::Price(percent) => {
                for section in &mut rules.sections {
                    section.price = section.price * percent / 100;
                }
            }
            Edit::OpenNow => rules.opens_at = rules.opens_at.min(now),
            Edit::Rows(rows) => {
                let section = &mut rules.sections[0];
                let last = section.last_row();
                section.add_rows(last + 1..=rows);
                section.seats.retain(|seat| seat.row <= rows);
            }
            Edit::Capacity(capacity) => {
                let free = Seat { row: 0, name: String::new(), state: SeatState::Free };
                rules.sections[1].seats.resize(capacity, free);
            }
        }
        rules
    }

    /// The sale's file.
    pub(crate) fn definition(&self, event: &str) -> Value {
        let section = |section: &Section| {
            let mut written = json!({ "id": section.id, "name": section.id, "price": section.price });
            if section.is_general {
                written["capacity"] = json!(section.seats.len());
            } else {
                let last = LETTERS[section.width - 1];
                let rows = format!("1-{}", section.last_row());
                written["seats"] = json!([{ "rows": rows, "seats": format!("A-{last}") }]);
            }
            written
        };
        let offering = |id: &str| {
            let sections = self.sections.iter().filter(|section| section.offering == id);
            let sections: Vec<Value> = sections.map(section).collect();
            json!({ "id": id, "date": "2027-02-05", "sections": sections })
        };
        let mut definition = json!({
            "eventId": event,
            "title": "A simulated sale",
            "opensAt": self.opens_at,
            "closesAt": self.closes_at,
            "preQueue": self.pre_queue,
            "admission": {
                "perSecond": self.per_second,
                "maxActive": self.max_active,
                "activeSeconds": self.active_ms / 1_000,
                "claimSeconds": self.claim_ms / 1_000,
                "compensateNoShows": self.compensate,
            },
            "holdSeconds": self.hold_ms / 1_000,
            "limitPerAccount": self.limit,
            "joinsPerAddressPerSecond": JOINS_PER_ADDRESS,
            "requireAccount": self.require_account,
            "default": { "offeringId": "T1", "sectionId": "G" },
            "offerings": [offering("T1"), offering("T2")],
        });
        if let Some(seconds) = self.backpressure_seconds {
            definition["admission"]["backpressureSeconds"] = json!(seconds);
        }
        if !self.require_account {
            definition["anonymous"] = json!("accepted");
        }
        if let Some(due_after_ms) = self.due_after_ms {
            definition["payment"] =
                json!({ "mode": "deferred", "dueAfterSeconds": due_after_ms / 1_000, "currency": "KRW" });
        }
        definition
    }
}

/// Joins, rejoins and polls that one address may send in a second; each simulated request has its own address.
pub(crate) const JOINS_PER_ADDRESS: u32 = 3;
