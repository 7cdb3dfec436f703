//! A list of seats as CSV: a line a seat, or a line a section without named seats.
//!
//! | column | says |
//! |---|---|
//! | `offering`, `date` | which offering, and its day, `2026-10-10` |
//! | `section`, `name`, `price` | which part of it, what people read, the price in the smallest unit |
//! | `row`, `seat` | one seat: the name is prefix + row + seat, with `-` between two digits |
//! | `prefix` | put before the row: a car, a floor; may be missing |
//! | `capacity` | instead of row and seat: places without names |
//! | any other name of letters | an attribute of the offering: `venue`, `from`, `departs`, … |

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::{Context, bail};
use csv::{Reader, ReaderBuilder, StringRecord, Trim};
use serde_json::{Map, Value, json};

use super::Imported;

const COLUMNS: [&str; 9] =
    ["offering", "date", "section", "name", "price", "row", "seat", "prefix", "capacity"];
const NEEDED: [&str; 5] = ["offering", "date", "section", "name", "price"];

#[derive(Debug, Default)]
struct Offering {
    id: String,
    date: String,
    attributes: BTreeMap<String, String>,
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    id: String,
    name: String,
    price: u64,
    capacity: Option<u64>,
    /// By prefix and row, in the order of the list.
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    prefix: String,
    name: String,
    seats: Vec<String>,
}

pub(super) fn read(file: impl Read) -> anyhow::Result<Imported> {
    let mut reader = ReaderBuilder::new().trim(Trim::All).flexible(true).from_reader(file);
    let mut list = List::of(&mut reader)?;
    for record in reader.records() {
        let record = record.context("the list does not read as CSV in UTF-8")?;
        let line = record.position().map_or(0, csv::Position::line);
        if let Err(why) = list.take(&record) {
            list.imported.left_out += 1;
            list.imported.notes.push(format!("line {line} is left out: {why}"));
        }
    }
    let mut imported = list.imported;
    imported.offerings = list.offerings.into_iter().map(Offering::definition).collect();
    Ok(imported)
}

struct List {
    /// Where each column stands.
    columns: BTreeMap<String, usize>,
    attributes: Vec<String>,
    offerings: Vec<Offering>,
    imported: Imported,
}

impl List {
    fn of(reader: &mut Reader<impl Read>) -> anyhow::Result<Self> {
        let header = reader.headers().context("the list has no header")?;
        // Spreadsheets begin UTF-8 with a mark.
        let names = header.iter().map(|name| name.trim_start_matches('\u{feff}').to_owned());
        let columns: BTreeMap<String, usize> = names.enumerate().map(|(at, name)| (name, at)).collect();
        let missing: Vec<&str> = NEEDED.into_iter().filter(|name| !columns.contains_key(*name)).collect();
        if !missing.is_empty() {
            bail!("the list has no column {}; `jari event from-csv --help` names them", missing.join(", "));
        }
        let (mut attributes, mut imported) = (Vec::new(), Imported::default());
        for name in columns.keys().filter(|name| !COLUMNS.contains(&name.as_str())) {
            let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
                && name.len() <= 32
                && name.bytes().all(|byte| byte.is_ascii_alphabetic());
            if is_name {
                attributes.push(name.clone());
            } else {
                imported.notes.push(format!(
                    "column {name:?} is left out: an attribute's name is of letters, a small one first"
                ));
            }
        }
        Ok(Self { columns, attributes, offerings: Vec::new(), imported })
    }

    /// A column's text; none where it is empty.
    fn text<'r>(&self, record: &'r StringRecord, column: &str) -> Option<&'r str> {
        record.get(*self.columns.get(column)?).filter(|text| !text.is_empty())
    }

    fn take(&mut self, record: &StringRecord) -> Result<(), String> {
        let needed = |column: &str| self.text(record, column).ok_or(format!("{column} is empty"));
        let number = |column: &str, text: &str| {
            text.parse::<u64>().map_err(|_| format!("{column} is {text:?}, which is no number"))
        };
        let (id, date) = (needed("offering")?.to_owned(), needed("date")?.to_owned());
        let (section, name) = (needed("section")?.to_owned(), needed("name")?.to_owned());
        let price = number("price", needed("price")?)?;
        let capacity = self.text(record, "capacity").map(|text| number("capacity", text)).transpose()?;
        let seat = match (self.text(record, "row"), self.text(record, "seat"), capacity) {
            (Some(row), Some(seat), None) => Some((row.to_owned(), seat.to_owned())),
            (None, None, Some(_)) => None,
            _ => return Err("it must have a row and a seat, or a capacity".to_owned()),
        };
        let prefix = self.text(record, "prefix").unwrap_or_default().to_owned();
        let attributes = self.attributes.iter();
        let attributes =
            attributes.filter_map(|name| Some((name.clone(), self.text(record, name)?.to_owned())));
        let attributes: BTreeMap<String, String> = attributes.collect();
        let offering = self.offering(id, date, attributes)?;
        let section = offering.section(section, name, price)?;
        match seat {
            None => section.hold(capacity.unwrap_or_default()),
            Some((row, seat)) => section.seat(prefix, row, seat),
        }
    }

    #[allow(clippy::needless_pass_by_value, reason = "it becomes the offering's")]
    fn offering(
        &mut self,
        id: String,
        date: String,
        attributes: BTreeMap<String, String>,
    ) -> Result<&mut Offering, String> {
        // Lists come by offering: most often it is the last one.
        let at = if let Some(at) = self.offerings.iter().rposition(|offering| offering.id == id) {
            at
        } else {
            self.offerings.push(Offering {
                id,
                date: date.clone(),
                attributes: attributes.clone(),
                sections: Vec::new(),
            });
            self.offerings.len() - 1
        };
        let offering = &mut self.offerings[at];
        if offering.date != date {
            return Err(format!(
                "offering {} is of {} further up, not of {date}",
                offering.id, offering.date
            ));
        }
        for (name, text) in attributes {
            let known = offering.attributes.entry(name).or_insert_with(|| text.clone());
            if *known != text {
                return Err(format!("offering {} has {known:?} further up, not {text:?}", offering.id));
            }
        }
        Ok(offering)
    }
}

impl Offering {
    #[allow(clippy::needless_pass_by_value, reason = "it becomes the section's")]
    fn section(&mut self, id: String, name: String, price: u64) -> Result<&mut Section, String> {
        let at = if let Some(at) = self.sections.iter().rposition(|section| section.id == id) {
            at
        } else {
            self.sections.push(Section { id, name: name.clone(), price, capacity: None, rows: Vec::new() });
            self.sections.len() - 1
        };
        let section = &mut self.sections[at];
        if (section.price, &section.name) != (price, &name) {
            let (id, known) = (&section.id, (section.price, &section.name));
            return Err(format!("section {id} costs {} and is called {} further up", known.0, known.1));
        }
        Ok(section)
    }

    fn definition(self) -> Value {
        let mut fields: Map<String, Value> =
            self.attributes.into_iter().map(|(name, text)| (name, Value::String(text))).collect();
        fields.insert("id".to_owned(), json!(self.id));
        fields.insert("date".to_owned(), json!(self.date));
        let sections: Vec<Value> = self.sections.into_iter().map(Section::definition).collect();
        fields.insert("sections".to_owned(), json!(sections));
        Value::Object(fields)
    }
}

impl Section {
    fn hold(&mut self, capacity: u64) -> Result<(), String> {
        if self.capacity.is_some() || !self.rows.is_empty() {
            return Err(format!("section {} has its places further up", self.id));
        }
        self.capacity = Some(capacity);
        Ok(())
    }

    fn seat(&mut self, prefix: String, row: String, seat: String) -> Result<(), String> {
        if self.capacity.is_some() {
            return Err(format!("section {} has a capacity, so no seats", self.id));
        }
        let known = self.rows.iter_mut().rev().find(|known| known.prefix == prefix && known.name == row);
        match known {
            Some(known) if known.seats.contains(&seat) => {
                Err(format!("seat {prefix}{row} {seat} is there twice"))
            }
            Some(known) => {
                known.seats.push(seat);
                Ok(())
            }
            None => {
                self.rows.push(Row { prefix, name: row, seats: vec![seat] });
                Ok(())
            }
        }
    }

    fn definition(self) -> Value {
        let Self { id, name, price, capacity, rows } = self;
        if let Some(capacity) = capacity {
            return json!({ "id": id, "name": name, "price": price, "capacity": capacity });
        }
        // Neighbouring rows with the same seats are one block.
        let mut blocks: Vec<(String, Vec<String>, String)> = Vec::new();
        for Row { prefix, name, seats } in rows {
            let seats = seats.join(",");
            match blocks.last_mut() {
                Some((before, rows, same)) if *before == prefix && *same == seats => rows.push(name),
                _ => blocks.push((prefix, vec![name], seats)),
            }
        }
        let blocks = blocks.into_iter().map(|(prefix, rows, seats)| {
            let mut block = json!({ "rows": rows.join(","), "seats": seats });
            if !prefix.is_empty() {
                block["prefix"] = json!(prefix);
            }
            block
        });
        json!({ "id": id, "name": name, "price": price, "seats": blocks.collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_become_blocks_and_further_columns_attributes() {
        let list = "\u{feff}offering,date,section,name,price,prefix,row,seat,capacity,venue,Bad Name\n\
                    C1,2026-10-10,R,R석,165000,,A,1,,홀,x\nC1,2026-10-10,R,R석,165000,,A,2,,홀,x\n\
                    C1,2026-10-10,R,R석,165000,,B,1,,,\nC1,2026-10-10,R,R석,165000,,B,2,,홀,\n\
                    C1,2026-10-10,R,R석,165000,E-,1,1,,홀,\nC1,2026-10-10,G,입석,100,,,,50,홀,\n";
        let imported = read(list.as_bytes()).unwrap();
        assert_eq!(
            imported.offerings,
            [json!({ "id": "C1", "date": "2026-10-10", "venue": "홀", "sections": [
                { "id": "R", "name": "R석", "price": 165_000, "seats": [
                    { "rows": "A,B", "seats": "1,2" }, { "prefix": "E-", "rows": "1", "seats": "1" } ] },
                { "id": "G", "name": "입석", "price": 100, "capacity": 50 } ] })]
        );
        assert_eq!((imported.left_out, imported.notes.len()), (0, 1), "{:?}", imported.notes);
        assert!(imported.notes[0].starts_with("column \"Bad Name\" is left out"));
    }

    #[test]
    fn lines_that_make_no_sense_are_left_out_and_told_with_their_number() {
        let list = "offering,date,section,name,price,row,seat,capacity\n\
                    C1,2026-10-10,R,R,5,A,1,\nC1,2026-10-10,R,R,x,A,2,\nC1,2026-10-10,R,R,5,A,1,\n\
                    C1,2026-10-11,R,R,5,A,3,\nC1,2026-10-10,R,R,6,A,3,\nC1,2026-10-10,R,R,5,A,,\n\
                    C1,2026-10-10,R,R,5,,,9\n,2026-10-10,R,R,5,A,4,\nC1,2026-10-10\n";
        let imported = read(list.as_bytes()).unwrap();
        assert_eq!(imported.left_out, 8);
        for (note, part) in imported.notes.iter().zip([
            "line 3 is left out: price is \"x\"",
            "line 4 is left out: seat A 1 is there twice",
            "line 5 is left out: offering C1 is of 2026-10-10",
            "line 6 is left out: section R costs 5",
            "line 7 is left out: it must have a row and a seat",
            "line 8 is left out: section R has its places",
            "line 9 is left out: offering is empty",
            "line 10 is left out: section is empty",
        ]) {
            assert!(note.starts_with(part), "{note}");
        }
        assert_eq!(imported.offerings[0]["sections"][0]["seats"], json!([{ "rows": "A", "seats": "1" }]));
        assert!(read("a,b\n1,2\n".as_bytes()).unwrap_err().to_string().contains("no column offering, date"));
    }
}
