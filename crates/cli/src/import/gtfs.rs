//! A GTFS feed: the trips of a route on a day become offerings.

use std::collections::HashSet;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail};
use clap::Args;
use gtfs_structures::{Calendar, Exception, Gtfs, GtfsReader, Route, StopTime, Trip};
use serde_json::{Map, Value, json};
use time::{Date, Duration, Month, Weekday};

use super::{Imported, SaleArguments, id_of};
use crate::output::{counted, cut};

const DAY_SECONDS: u32 = 86_400;
/// The longest text of an attribute.
const TEXT: usize = 100;
/// Routes that are named where none was found.
const NAMED: usize = 10;

/// A feed, and which of its trips.
#[derive(Debug, Args)]
#[command(after_help = "Example: jari event from-gtfs feed.zip --route KTX --date 2026-09-24 \\\n  \
                        --section standard:Standard:59800:400 \\\n  \
                        --opens-at 2026-09-01T07:00:00+09:00 --closes-at 2026-09-03T13:00:00+09:00")]
pub(crate) struct GtfsArguments {
    /// The feed
    #[arg(value_name = "FEED.zip")]
    pub(crate) feed: PathBuf,
    /// A route's id, short or long name
    #[arg(long = "route", value_name = "ROUTE", required = true)]
    pub(crate) routes: Vec<String>,
    /// The day, such as 2026-09-24
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub(crate) date: Date,
    /// Sell from this stop on, by id or name [default: each trip's first]
    #[arg(long, value_name = "STOP")]
    pub(crate) from: Option<String>,
    /// Sell as far as this stop [default: each trip's last]
    #[arg(long, value_name = "STOP")]
    pub(crate) to: Option<String>,
    /// What every trip has: places without names
    #[arg(long = "section", value_name = "ID:NAME:PRICE:PLACES")]
    pub(crate) sections: Vec<Section>,
    #[command(flatten)]
    pub(crate) sale: SaleArguments,
}

/// `standard:일반실:59800:400`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    id: String,
    name: String,
    price: u64,
    capacity: u64,
}

impl FromStr for Section {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let wrong =
            "must be an id, a name, a price and a number of places, such as standard:Standard:59800:400";
        let parts: Vec<&str> = text.split(':').collect();
        let [id, name, price, capacity] = parts.as_slice() else { return Err(wrong) };
        let number = |text: &str| text.parse().map_err(|_| wrong);
        Ok(Self {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            price: number(price)?,
            capacity: number(capacity)?,
        })
    }
}

impl Section {
    pub(super) fn definition(&self) -> Value {
        let Self { id, name, price, capacity } = self;
        json!({ "id": id, "name": name, "price": price, "capacity": capacity })
    }
}

fn date(text: &str) -> Result<Date, String> {
    let wrong = || "must be a day such as 2026-09-24".to_owned();
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return Err(wrong()) };
    let month = month.parse::<u8>().ok().and_then(|month| Month::try_from(month).ok()).ok_or_else(wrong)?;
    let (year, day) = (year.parse().map_err(|_| wrong())?, day.parse().map_err(|_| wrong())?);
    Date::from_calendar_date(year, month, day).map_err(|_| wrong())
}

fn written(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day())
}

pub(super) fn read(arguments: &GtfsArguments, sections: &[Value]) -> anyhow::Result<Imported> {
    let reader = GtfsReader::default().read_shapes(false).trim_fields(true);
    let feed = reader.read_from_path(&arguments.feed);
    let feed = feed.with_context(|| format!("cannot read {} as a GTFS feed", arguments.feed.display()))?;
    let routes = routes(&feed, &arguments.routes)?;
    let mut import =
        Import { arguments, feed: &feed, sections, ids: HashSet::new(), imported: Imported::default() };
    let mut trips: Vec<&Trip> = feed.trips.values().filter(|trip| import.runs(trip, &routes)).collect();
    trips.sort_by_key(|trip| (trip.stop_times.first().and_then(departure), trip.id.clone()));
    for trip in trips {
        import.take(trip);
    }
    import.imported.title = routes.first().map(|route| name(route));
    let slug = routes.first().map_or_else(String::new, |route| id_of(&name(route)).to_lowercase());
    let slug = if slug.is_empty() { "line".to_owned() } else { slug };
    import.imported.event = Some(format!("{slug}-{}", written(arguments.date)));
    if import.imported.offerings.is_empty() {
        import.imported.notes.push(format!("no trip of the route runs on {}", written(arguments.date)));
    }
    import.remark();
    Ok(import.imported)
}

fn name(route: &Route) -> String {
    let names = [&route.short_name, &route.long_name].into_iter().flatten();
    names.map(String::as_str).find(|name| !name.is_empty()).unwrap_or(&route.id).to_owned()
}

/// Those that are asked for; each must be there.
fn routes<'f>(feed: &'f Gtfs, asked: &[String]) -> anyhow::Result<Vec<&'f Route>> {
    let mut found: Vec<&Route> = Vec::new();
    for asked in asked {
        let is_it = |route: &&Route| {
            route.id == *asked
                || route.short_name.as_ref() == Some(asked)
                || route.long_name.as_ref() == Some(asked)
        };
        let before = found.len();
        found.extend(feed.routes.values().filter(is_it));
        if found.len() == before {
            let mut names: Vec<String> = feed.routes.values().map(name).collect();
            names.sort_unstable();
            names.dedup();
            let more = if names.len() > NAMED { ", …" } else { "" };
            names.truncate(NAMED);
            bail!("the feed has no route {asked}; it has {}{more}", names.join(", "));
        }
    }
    found.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(found)
}

fn departure(stop: &StopTime) -> Option<u32> {
    stop.departure_time.or(stop.arrival_time)
}

fn stop_name(stop: &StopTime) -> &str {
    stop.stop.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&stop.stop.id)
}

struct Import<'f> {
    arguments: &'f GtfsArguments,
    feed: &'f Gtfs,
    sections: &'f [Value],
    ids: HashSet<String>,
    imported: Imported,
}

impl Import<'_> {
    fn runs(&self, trip: &Trip, routes: &[&Route]) -> bool {
        routes.iter().any(|route| route.id == trip.route_id) && self.is_served(&trip.service_id)
    }

    /// By the week's days of the calendar, and the exceptions to it.
    fn is_served(&self, service: &str) -> bool {
        let day = written(self.arguments.date);
        let exceptions = self.feed.calendar_dates.get(service).into_iter().flatten();
        let exception = exceptions.rev().find(|exception| exception.date.to_string() == day);
        match exception.map(|exception| exception.exception_type) {
            Some(Exception::Added) => true,
            Some(Exception::Deleted) => false,
            None => self
                .feed
                .calendar
                .get(service)
                .is_some_and(|calendar| in_calendar(calendar, self.arguments.date)),
        }
    }

    fn lose(&mut self, trip: &Trip, why: &str) {
        self.imported.left_out += 1;
        self.imported.notes.push(format!("trip {} is left out: {why}", trip.id));
    }

    fn take(&mut self, trip: &Trip) {
        if !trip.frequencies.is_empty() {
            return self.lose(trip, "it runs by frequency, not by a timetable");
        }
        let is = |stop: &StopTime, asked: &str| stop.stop.id == asked || stop_name(stop) == asked;
        let stops = &trip.stop_times;
        let first = match &self.arguments.from {
            Some(from) => stops.iter().position(|stop| is(stop, from)),
            None => Some(0),
        };
        let last = match &self.arguments.to {
            Some(to) => stops.iter().rposition(|stop| is(stop, to)),
            None => stops.len().checked_sub(1),
        };
        let (Some(first), Some(last)) = (first, last) else {
            return self.lose(trip, "it does not stop there");
        };
        if first >= last {
            return self.lose(trip, "it does not go from there to there");
        }
        let arrival = stops[last].arrival_time.or(stops[last].departure_time);
        let (Some(departs), Some(arrives)) = (departure(&stops[first]), arrival) else {
            return self.lose(trip, "its first or last stop has no time");
        };
        let via: Vec<&str> = stops[first + 1..last].iter().map(stop_name).collect();
        let offering =
            self.offering(trip, (&stops[first], departs), (&stops[last], arrives), &via.join(", "));
        self.imported.offerings.push(offering);
    }

    fn offering(&mut self, trip: &Trip, from: (&StopTime, u32), to: (&StopTime, u32), via: &str) -> Value {
        let later = from.1 / DAY_SECONDS;
        let date = self.arguments.date.saturating_add(Duration::days(later.into()));
        let route = self.feed.routes.get(&trip.route_id).map(name).unwrap_or_default();
        let number = trip.trip_short_name.as_deref().filter(|number| !number.is_empty());
        let id = self.id(trip, number);
        let train = number.map_or_else(|| route.clone(), |number| format!("{route} {number}"));
        let mut fields = Map::new();
        for (name, text) in [
            ("train", train.trim()),
            ("from", stop_name(from.0)),
            ("to", stop_name(to.0)),
            ("via", via),
            ("departs", &clock(from.1, later)),
            ("arrives", &clock(to.1, later)),
        ] {
            if !text.is_empty() {
                fields.insert(name.to_owned(), json!(cut(text, TEXT)));
            }
        }
        fields.insert("id".to_owned(), json!(id));
        fields.insert("date".to_owned(), json!(written(date)));
        fields.insert("sections".to_owned(), json!(self.sections));
        Value::Object(fields)
    }

    /// The number that people know, else the trip's id; each once.
    fn id(&mut self, trip: &Trip, number: Option<&str>) -> String {
        let wish = number.map(id_of).filter(|id| !id.is_empty()).unwrap_or_else(|| id_of(&trip.id));
        let wish = if wish.is_empty() { "trip".to_owned() } else { wish };
        let mut id = wish.clone();
        for again in 2_u32.. {
            if self.ids.insert(id.clone()) {
                break;
            }
            let end = format!("-{again}");
            id = wish.chars().take(32 - end.len()).collect::<String>() + &end;
        }
        if number.is_none_or(|number| number != id) && trip.id != id {
            self.imported.notes.push(format!("trip {} is offering {id}", trip.id));
        }
        id
    }

    /// What the feed has and a sale has no place for.
    fn remark(&mut self) {
        let feed = self.feed;
        let mut notes = Vec::new();
        if let Some(agency) = feed.agencies.first() {
            notes.push(format!("times are those of {}, as the feed has them", agency.timezone));
        }
        if !feed.fare_attributes.is_empty() {
            let fares = counted(feed.fare_attributes.len() as u64, "fare");
            notes.push(format!("{fares} left out: prices are those of the sections"));
        }
        let between = self.imported.offerings.iter().filter(|offering| offering.get("via").is_some()).count();
        if between > 0 {
            let trips = counted(between as u64, "offering");
            notes.push(format!("{trips} with stops on the way: places are sold for the whole way only"));
        }
        self.imported.notes.append(&mut notes);
    }
}

fn in_calendar(calendar: &Calendar, day: Date) -> bool {
    let is_weekday = match day.weekday() {
        Weekday::Monday => calendar.monday,
        Weekday::Tuesday => calendar.tuesday,
        Weekday::Wednesday => calendar.wednesday,
        Weekday::Thursday => calendar.thursday,
        Weekday::Friday => calendar.friday,
        Weekday::Saturday => calendar.saturday,
        Weekday::Sunday => calendar.sunday,
    };
    // Written dates are in the order of the days.
    let day = written(day);
    is_weekday && (calendar.start_date.to_string()..=calendar.end_date.to_string()).contains(&day)
}

/// `08:05`, on the day that is so many later than the service's; `00:10 +1` on the one after it.
fn clock(seconds: u32, later: u32) -> String {
    let days = (seconds / DAY_SECONDS).saturating_sub(later);
    let within = seconds % DAY_SECONDS;
    let time = format!("{:02}:{:02}", within / 3_600, within / 60 % 60);
    if days == 0 { time } else { format!("{time} +{days}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_tell_the_day_after() {
        assert_eq!(clock(8 * 3_600 + 300, 0), "08:05");
        assert_eq!(clock(24 * 3_600 + 600, 0), "00:10 +1");
        assert_eq!((clock(25 * 3_600, 1), clock(49 * 3_600, 1)), ("01:00".to_owned(), "01:00 +1".to_owned()));
    }

    #[test]
    fn dates_and_sections_read_as_written() {
        assert_eq!(date("2026-02-28").map(written), Ok("2026-02-28".to_owned()));
        for text in ["2026-02-30", "2026-9", "", "26-9-24x"] {
            assert!(date(text).is_err(), "{text}");
        }
        let section = Section { id: "s".to_owned(), name: "일반실".to_owned(), price: 1, capacity: 2 };
        assert_eq!("s:일반실:1:2".parse(), Ok(section));
        for text in ["s:n:1", "s:n:1:2:3", "s:n:x:2"] {
            assert!(text.parse::<Section>().is_err(), "{text}");
        }
    }
}
