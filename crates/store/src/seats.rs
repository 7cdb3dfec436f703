//! Look at an offering's seats.

use std::sync::Arc;

use domain::command::SeatMap;
use domain::layout::{Edition, Places, Section, Span};
use domain::outcome::{Outcome, Refusal, SeatMapView, SeatState, SectionSeats, TakenSeat};

use crate::catalogue::{ATTEMPTS, edition_or_refuse, gave_up};
use crate::keys::Keys;
use crate::reply::Reply;
use crate::step::{Call, SEATS};
use crate::{Store, StoreError};

impl Store {
    /// The seats of an offering, or of one of its sections.
    pub async fn seat_map(&self, seat_map: &SeatMap) -> Result<Outcome<SeatMapView>, StoreError> {
        let mut edition = edition_or_refuse!(self, &seat_map.event);
        let mut renewed = false;
        for _ in 0..ATTEMPTS {
            let sections = match sections_of(&edition, seat_map) {
                Ok(sections) => sections,
                // A place that is not known here may be in an edition not read yet.
                Err(_) if !renewed => {
                    renewed = true;
                    edition = self.newest_edition(&seat_map.event).await?.unwrap_or(edition);
                    continue;
                }
                Err(refusal) => return Ok(Err(refusal)),
            };
            let spans: Vec<Vec<Span>> = sections.iter().map(|section| section.spans()).collect();
            let mut call = Call::new(&SEATS, Keys::of(&seat_map.event).token(seat_map.token))
                .arg(self.now_ms())
                .arg(edition.version)
                .arg(seat_map.token.to_string())
                .arg(spans.iter().map(Vec::len).sum::<usize>());
            for span in spans.iter().flatten() {
                call = call.arg(span.offset).arg(span.length);
            }
            for section in &sections {
                call = call.arg(section.number);
            }
            let mut reply = self.run(call).await?;
            match reply.word() {
                "STALE" => {
                    drop(sections);
                    edition = self.newest_edition(&seat_map.event).await?.unwrap_or(edition);
                }
                "SEATS" => {
                    let (sequence, sections) = read(&mut reply, &sections, &spans)?;
                    return Ok(Ok(SeatMapView { edition: Arc::clone(&edition), sequence, sections }));
                }
                _ => return reply.refusal().map(Err),
            }
        }
        Err(gave_up("seats"))
    }
}

fn sections_of<'a>(edition: &'a Edition, seat_map: &SeatMap) -> Result<Vec<&'a Section>, Refusal> {
    let default = edition.sale.default.as_ref().map(|place| &place.offering_id);
    let offering = seat_map.offering.as_ref().or(default).ok_or(Refusal::OfferingNotFound)?;
    let sections: Vec<&Section> = edition.layout.sections_of(offering).collect();
    if sections.is_empty() {
        return Err(Refusal::OfferingNotFound);
    }
    match &seat_map.section {
        None => Ok(sections),
        Some(id) => {
            let section = sections.into_iter().find(|section| section.id == *id);
            section.map(|section| vec![section]).ok_or(Refusal::SectionNotFound)
        }
    }
}

fn read(
    reply: &mut Reply,
    sections: &[&Section],
    spans: &[Vec<Span>],
) -> Result<(u64, Vec<SectionSeats>), StoreError> {
    let sequence = reply.count()?;
    let mut bytes = reply.array()?;
    let mut free = reply.array()?;
    let mut read = Vec::with_capacity(sections.len());
    for (section, spans) in sections.iter().zip(spans) {
        let runs =
            spans.iter().map(|span| Ok((span, bytes.text()?))).collect::<Result<Vec<_>, StoreError>>()?;
        read.push(SectionSeats {
            number: section.number,
            taken: taken(section, &runs),
            remaining: free.count()?,
        });
    }
    Ok((sequence, read))
}

fn taken(section: &Section, runs: &[(&Span, String)]) -> Vec<TakenSeat> {
    let Places::Assigned { rows } = &section.places else { return Vec::new() };
    let mut taken = Vec::new();
    for (row_at, row) in rows.iter().enumerate().filter(|(_, row)| !row.removed) {
        let run =
            runs.iter().find(|(span, _)| (span.offset..span.offset + span.length).contains(&row.offset));
        let Some((span, bytes)) = run else { continue };
        let start = (row.offset - span.offset) as usize;
        let states = bytes.as_bytes().iter().skip(start).take(row.seats.len());
        for (seat_at, byte) in states.enumerate() {
            let state = match byte {
                b'h' => SeatState::Held,
                b's' => SeatState::Sold,
                _ => continue,
            };
            // A row and a section have far fewer places than a u32 counts.
            let position = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            taken.push(TakenSeat { row: position(row_at), seat: position(seat_at), state });
        }
    }
    taken
}
