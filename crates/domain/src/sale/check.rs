//! From a file's text to a checked definition, with every mistake in it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::node::{Node, Value};
use super::read::{Found, Object, Reader, unknown_field};
use super::{
    Admission, DefaultPlace, MAX_PER_SECOND, MIN_PER_SECOND, Offering, Payment, PaymentMode, PreQueue,
    Problem, Sale, SaleSection, SeatBlock,
};
use crate::layout::{MAX_MAP_LENGTH, MAX_PLACES, MAX_SEATS_A_SECTION, MAX_SECTIONS};
use crate::{Millis, OfferingId, SeatName, SectionId};

/// Far more than 500 sections need; what is larger is not read.
const MAX_FILE_BYTES: usize = 1_048_576;
const MAX_SALE_MS: i64 = 90 * 86_400_000;
const MAX_ATTRIBUTES: usize = 20;
/// The least time a called person is given to come.
const MIN_CLAIM_SECONDS: u32 = 15;
/// What answers, requests and filters call other things.
const RESERVED_ATTRIBUTES: [&str; 4] = ["offeringId", "eventId", "token", "callback"];

const SALE_FIELDS: [&str; 15] = [
    "$schema",
    "eventId",
    "title",
    "opensAt",
    "closesAt",
    "preQueue",
    "admission",
    "holdSeconds",
    "limitPerAccount",
    "requireAccount",
    "anonymous",
    "joinsPerAddressPerSecond",
    "payment",
    "default",
    "offerings",
];
const ADMISSION_FIELDS: [&str; 8] = [
    "perSecond",
    "databaseTps",
    "safetyRatio",
    "maxActive",
    "activeSeconds",
    "claimSeconds",
    "compensateNoShows",
    "backpressureSeconds",
];

/// Reads a definition. Every mistake is told with its path and line, in the file's order.
pub fn check(text: &str) -> Result<Sale, Vec<Problem>> {
    if text.len() > MAX_FILE_BYTES {
        let reason = format!("is larger than {MAX_FILE_BYTES} bytes");
        return Err(vec![Problem { path: "$".to_owned(), line: None, reason }]);
    }
    let node = Node::read(text).map_err(|problem| vec![problem])?;
    let mut checker = Checker::default();
    let sale = checker.sale(&Found { path: "$".to_owned(), node: &node });
    let mut problems = checker.reader.problems;
    problems.sort_by_key(|problem| problem.line);
    match sale {
        Some(sale) if problems.is_empty() => Ok(sale),
        _ => Err(problems),
    }
}

#[derive(Default)]
struct Checker {
    reader: Reader,
    /// Sections by the texts of their offering's and their own id, valid or not.
    sections: HashSet<(String, String)>,
    section_count: u64,
    places: u64,
    map_length: u64,
}

impl Checker {
    fn sale(&mut self, root: &Found<'_>) -> Option<Sale> {
        let sale = self.reader.object(root, &SALE_FIELDS)?;
        let reader = &mut self.reader;
        reader.optional(&sale, "$schema", |reader, at| reader.text(at).map(str::to_owned));
        let event_id = reader.required(&sale, "eventId", Reader::id);
        let title = reader.required(&sale, "title", |reader, at| reader.title(at, 200));
        let opens_at = reader.required(&sale, "opensAt", Reader::instant);
        let closes_at = self.closes_at(&sale, opens_at);
        let pre_queue = self.pre_queue(&sale);
        let admission = self.reader.required(&sale, "admission", admission);
        let hold_seconds =
            self.reader.or(&sale, "holdSeconds", 180, |reader, at| reader.whole(at, 1..=86_400));
        let limit_per_account =
            self.reader.or(&sale, "limitPerAccount", 5, |reader, at| reader.whole(at, 1..=100));
        let require_account = self.require_account(&sale);
        let joins =
            self.reader.or(&sale, "joinsPerAddressPerSecond", 10, |reader, at| reader.whole(at, 1..=100_000));
        let payment = self.reader.or(&sale, "payment", unpaid(), |reader, at| payment(reader, at, opens_at));
        let offerings = self.reader.required(&sale, "offerings", |_, at| Some(at.clone()));
        let offerings = offerings.and_then(|at| self.offerings(&at));
        // After the offerings: it must be one of them.
        let default = self.default_place(&sale);
        Some(Sale {
            event_id: event_id?,
            title: title?,
            opens_at: opens_at?,
            closes_at: closes_at?,
            pre_queue: pre_queue?,
            admission: admission?,
            hold_seconds: hold_seconds?,
            limit_per_account: limit_per_account?,
            require_account: require_account?,
            joins_per_address_per_second: joins?,
            payment: payment?,
            default,
            offerings: offerings?,
        })
    }

    fn closes_at(&mut self, sale: &Object<'_>, opens_at: Option<Millis>) -> Option<Millis> {
        self.reader.required(sale, "closesAt", |reader, at| {
            let closes_at = reader.instant(at)?;
            if let Some(opens_at) = opens_at {
                if closes_at <= opens_at {
                    reader.problem(at, "must be after opensAt");
                } else if closes_at.0 - opens_at.0 > MAX_SALE_MS {
                    reader.problem(at, "must be at most 90 days after opensAt");
                }
            }
            Some(closes_at)
        })
    }

    fn pre_queue(&mut self, sale: &Object<'_>) -> Option<PreQueue> {
        let words = [("closed", PreQueue::Closed), ("fifo", PreQueue::Fifo), ("shuffle", PreQueue::Shuffle)];
        self.reader.or(sale, "preQueue", PreQueue::Fifo, |reader, at| reader.word(at, &words))
    }

    /// One person can be many tokens: without accounts, limits and draws hold only as far as people are honest.
    fn require_account(&mut self, sale: &Object<'_>) -> Option<bool> {
        let require_account = self.reader.or(sale, "requireAccount", false, Reader::boolean);
        let anonymous =
            self.reader.or(sale, "anonymous", false, |reader, at| reader.word(at, &[("accepted", true)]));
        if (require_account, anonymous) == (Some(false), Some(false)) {
            let at = sale.get("requireAccount").map_or(sale.found.node, |found| found.node);
            let reason = "must be true, since limits and shuffles mean little when one person can be many tokens; \
                          or say \"anonymous\": \"accepted\"";
            self.reader.problem(&Found { path: "$.requireAccount".to_owned(), node: at }, reason);
        }
        require_account
    }

    fn default_place(&mut self, sale: &Object<'_>) -> Option<DefaultPlace> {
        let sections = &self.sections;
        self.reader.optional(sale, "default", |reader, at| {
            let place = reader.object(at, &["offeringId", "sectionId"])?;
            let offering_id: Option<OfferingId> = reader.required(&place, "offeringId", Reader::id);
            let section_id: Option<SectionId> = reader.required(&place, "sectionId", Reader::id);
            let (offering_id, section_id) = (offering_id?, section_id?);
            if !sections.contains(&(offering_id.to_string(), section_id.to_string())) {
                reader.problem(at, format!("there is no section {section_id} in an offering {offering_id}"));
            }
            Some(DefaultPlace { offering_id, section_id })
        })
    }

    fn offerings(&mut self, at: &Found<'_>) -> Option<Vec<Offering>> {
        let items = self.reader.list(at)?;
        let mut ids = Ids::default();
        let offerings: Vec<Option<Offering>> =
            items.iter().map(|item| self.offering(item, &mut ids)).collect();
        for (what, is, most) in [
            ("sections", self.section_count, MAX_SECTIONS),
            ("places", self.places, MAX_PLACES),
            ("bytes of seat map, one a seat and one a row", self.map_length, MAX_MAP_LENGTH),
        ] {
            if is > u64::from(most) {
                self.reader.problem(at, format!("has {is} {what}, at most {most}"));
            }
        }
        offerings.into_iter().collect()
    }

    fn offering(&mut self, at: &Found<'_>, ids: &mut Ids) -> Option<Offering> {
        const FIELDS: [&str; 3] = ["id", "date", "sections"];
        let offering = self.reader.open_object(at)?;
        let id = self.reader.required(&offering, "id", |reader, at| ids.unique::<OfferingId>(reader, at));
        let date = self.reader.required(&offering, "date", Reader::date);
        let others = offering.others(&FIELDS);
        if others.len() > MAX_ATTRIBUTES {
            self.reader.problem(at, format!("has {} attributes, at most {MAX_ATTRIBUTES}", others.len()));
        }
        let attributes: Vec<Option<(String, String)>> =
            others.iter().map(|(name, found)| attribute(&mut self.reader, name, found, &FIELDS)).collect();
        let sections = self.reader.required(&offering, "sections", |reader, at| reader.list(at));
        let sections = sections.and_then(|sections| self.sections(&offering, &sections));
        Some(Offering {
            id: id?,
            date: date?,
            attributes: attributes.into_iter().collect::<Option<BTreeMap<_, _>>>()?,
            sections: sections?,
        })
    }

    fn sections(&mut self, offering: &Object<'_>, items: &[Found<'_>]) -> Option<Vec<SaleSection>> {
        let offering_id = offering.get("id").and_then(|at| plain_text(&at));
        let mut ids = Ids::default();
        let mut seats = SeatNames::default();
        let sections = items.iter().map(|item| self.section(item, offering_id, &mut ids, &mut seats));
        // Every one is read before the first that failed decides.
        sections.collect::<Vec<_>>().into_iter().collect()
    }

    fn section(
        &mut self,
        at: &Found<'_>,
        offering_id: Option<&str>,
        ids: &mut Ids,
        names: &mut SeatNames,
    ) -> Option<SaleSection> {
        let section = self.reader.object(at, &["id", "name", "price", "capacity", "seats"])?;
        let id_text = section.get("id").and_then(|at| plain_text(&at));
        if let (Some(offering), Some(section)) = (offering_id, id_text) {
            self.sections.insert((offering.to_owned(), section.to_owned()));
        }
        self.section_count += 1;
        let reader = &mut self.reader;
        let id = reader.required(&section, "id", |reader, at| ids.unique::<SectionId>(reader, at));
        let name = reader.required(&section, "name", |reader, at| reader.title(at, 100));
        let price = reader.required(&section, "price", |reader, at| reader.whole(at, 0..=1_000_000_000_i64));
        let capacity = reader.optional(&section, "capacity", |reader, at| reader.whole(at, 1..=MAX_PLACES));
        let seats = section.get("seats").and_then(|at| self.blocks(&at, names));
        if section.get("capacity").is_some() == section.get("seats").is_some() {
            self.reader.problem(at, "needs exactly one of capacity and seats");
        }
        self.places += u64::from(capacity.unwrap_or_default());
        Some(SaleSection { id: id?, name: name?, price: u64::try_from(price?).ok()?, capacity, seats })
    }

    fn blocks(&mut self, at: &Found<'_>, names: &mut SeatNames) -> Option<Vec<SeatBlock>> {
        let items = self.reader.list(at)?;
        let mut rows = HashSet::new();
        let mut seat_count = 0;
        let blocks: Vec<Option<SeatBlock>> = items
            .iter()
            .map(|item| {
                let block = block(&mut self.reader, item)?;
                seat_count += self.block_seats(item, &block, &mut rows, names)?;
                Some(block)
            })
            .collect();
        if seat_count > u64::from(MAX_SEATS_A_SECTION) {
            self.reader
                .problem(at, format!("names {seat_count} seats, at most {MAX_SEATS_A_SECTION} a section"));
        }
        self.places += seat_count;
        blocks.into_iter().collect()
    }

    /// How many seats the block names.
    fn block_seats(
        &mut self,
        at: &Found<'_>,
        block: &SeatBlock,
        rows: &mut HashSet<String>,
        names: &mut SeatNames,
    ) -> Option<u64> {
        let written_out = match block.named_rows() {
            Ok(written_out) => written_out,
            Err(invalid) => {
                let Value::Object(fields) = &at.node.value else { return None };
                let field = fields.iter().find(|(name, _)| name == invalid.field);
                let node = field.map_or(at.node, |(_, node)| node);
                self.reader
                    .problem(&Found { path: format!("{}.{}", at.path, invalid.field), node }, invalid.reason);
                return None;
            }
        };
        let mut again = Vec::new();
        let mut seats = 0;
        for row in written_out {
            seats += row.seats.len() as u64;
            self.map_length += row.seats.len() as u64 + 1;
            let taken = row.seats.into_iter().filter(|seat| !names.0.insert(seat.clone()));
            again.extend(taken.map(|seat| seat.to_string()));
            if !rows.insert(row.name.clone()) {
                self.reader.problem(at, format!("names row {} of this section again", row.name));
            }
        }
        if !again.is_empty() {
            let more = if again.len() > 5 { format!(" and {} more", again.len() - 5) } else { String::new() };
            again.truncate(5);
            self.reader
                .problem(at, format!("names seats of this offering again: {}{more}", again.join(", ")));
        }
        Some(seats)
    }
}

/// Seat names of one offering.
#[derive(Default)]
struct SeatNames(HashSet<SeatName>);

/// Ids in one list, with the path of each.
#[derive(Default)]
struct Ids(HashMap<String, String>);

impl Ids {
    fn unique<T: std::str::FromStr<Err = crate::InvalidId>>(
        &mut self,
        reader: &mut Reader,
        at: &Found<'_>,
    ) -> Option<T> {
        let id = reader.id(at)?;
        match self.0.insert(plain_text(at)?.to_owned(), at.path.clone()) {
            Some(first) => reader.problem(at, format!("is already the id at {first}")),
            None => return Some(id),
        }
        None
    }
}

fn plain_text<'n>(at: &Found<'n>) -> Option<&'n str> {
    match &at.node.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn admission(reader: &mut Reader, at: &Found<'_>) -> Option<Admission> {
    let fields = reader.object(at, &ADMISSION_FIELDS)?;
    let per_second = per_second(reader, &fields);
    let max_active = reader.required(&fields, "maxActive", |reader, at| reader.whole(at, 1..=1_000_000));
    let active_seconds = reader.or(&fields, "activeSeconds", 180, |reader, at| reader.whole(at, 10..=86_400));
    let most = MIN_CLAIM_SECONDS..=86_400;
    let claim_seconds =
        reader.or(&fields, "claimSeconds", MIN_CLAIM_SECONDS, |reader, at| reader.whole(at, most));
    if let (Some(claim), Some(active)) = (claim_seconds, active_seconds)
        && claim > active
    {
        let at = fields.get("claimSeconds").or(fields.get("activeSeconds")).unwrap_or_else(|| at.clone());
        reader.problem(&at, format!("claimSeconds ({claim}) must not be more than activeSeconds ({active})"));
    }
    let compensate_no_shows = reader.or(&fields, "compensateNoShows", false, Reader::boolean);
    let backpressure_seconds =
        reader.optional(&fields, "backpressureSeconds", |reader, at| reader.whole(at, 1..=3_600));
    Some(Admission {
        per_second: per_second?,
        max_active: max_active?,
        active_seconds: active_seconds?,
        claim_seconds: claim_seconds?,
        compensate_no_shows: compensate_no_shows?,
        backpressure_seconds,
    })
}

/// `perSecond`, or `databaseTps × safetyRatio`.
fn per_second(reader: &mut Reader, fields: &Object<'_>) -> Option<f64> {
    let per_second =
        reader.optional(fields, "perSecond", |reader, at| reader.number(at, MIN_PER_SECOND, MAX_PER_SECOND));
    let database_tps =
        reader.optional(fields, "databaseTps", |reader, at| reader.number(at, MIN_PER_SECOND, 1_000_000.0));
    let safety_ratio = reader.optional(fields, "safetyRatio", |reader, at| reader.number(at, 0.001, 1.0));
    let named = ["perSecond", "databaseTps", "safetyRatio"].map(|name| fields.get(name).is_some());
    if named == [true, false, false] {
        return per_second;
    }
    if named != [false, true, true] {
        reader.problem(&fields.found, "needs either perSecond, or databaseTps and safetyRatio");
        return None;
    }
    let product = database_tps? * safety_ratio?;
    if !(MIN_PER_SECOND..=MAX_PER_SECOND).contains(&product) {
        let reason =
            format!("databaseTps × safetyRatio is {product}, not from {MIN_PER_SECOND} to {MAX_PER_SECOND}");
        reader.problem(&fields.found, reason);
        return None;
    }
    Some(product)
}

fn unpaid() -> Payment {
    Payment { mode: PaymentMode::None, due_at: None, due_after_seconds: None, currency: "KRW".to_owned() }
}

fn payment(reader: &mut Reader, at: &Found<'_>, opens_at: Option<Millis>) -> Option<Payment> {
    let fields = reader.object(at, &["mode", "dueAt", "dueAfterSeconds", "currency"])?;
    let modes = [("none", PaymentMode::None), ("deferred", PaymentMode::Deferred)];
    let mode = reader.or(&fields, "mode", PaymentMode::None, |reader, at| reader.word(at, &modes));
    let due_at = reader.optional(&fields, "dueAt", |reader, at| {
        let due_at = reader.instant(at)?;
        if opens_at.is_some_and(|opens_at| due_at < opens_at) {
            reader.problem(at, "must not be before opensAt");
        }
        Some(due_at)
    });
    let due_after_seconds =
        reader.optional(&fields, "dueAfterSeconds", |reader, at| reader.whole(at, 1..=7_776_000));
    let currency = reader.or(&fields, "currency", unpaid().currency, |reader, at| {
        let text = reader.text(at)?;
        if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Some(text.to_owned());
        }
        reader.problem(at, "must be an ISO 4217 code of three capitals, such as KRW");
        None
    });
    match (mode, fields.get("dueAt"), fields.get("dueAfterSeconds")) {
        (Some(PaymentMode::Deferred), Some(_), Some(_)) | (Some(PaymentMode::Deferred), None, None) => {
            reader.problem(at, "mode deferred needs exactly one of dueAt and dueAfterSeconds");
        }
        (Some(PaymentMode::None), Some(due), _) | (Some(PaymentMode::None), None, Some(due)) => {
            reader.problem(&due, "is only for mode deferred");
        }
        _ => {}
    }
    Some(Payment { mode: mode?, due_at, due_after_seconds, currency: currency? })
}

/// A name and a text that search shows and filters by.
fn attribute(reader: &mut Reader, name: &str, at: &Found<'_>, known: &[&str]) -> Option<(String, String)> {
    if !matches!(at.node.value, Value::Text(_)) {
        reader.problem(at, format!("{}; an attribute must be text", unknown_field(name, known)));
        return None;
    }
    let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= 32
        && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !is_name || RESERVED_ATTRIBUTES.contains(&name) {
        let reason = "cannot be an attribute's name: 1 to 32 of A-Z and a-z, first a-z";
        reader.problem(at, format!("{reason}, and none of {}", RESERVED_ATTRIBUTES.join(", ")));
        return None;
    }
    Some((name.to_owned(), reader.title(at, 100)?))
}

fn block(reader: &mut Reader, at: &Found<'_>) -> Option<SeatBlock> {
    let fields = reader.object(at, &["rows", "seats", "prefix"])?;
    let text = |reader: &mut Reader, at: &Found<'_>| reader.text(at).map(str::to_owned);
    let rows = reader.required(&fields, "rows", text);
    let seats = reader.required(&fields, "seats", text);
    let prefix = reader.or(&fields, "prefix", String::new(), text);
    Some(SeatBlock { rows: rows?, seats: seats?, prefix: prefix? })
}
