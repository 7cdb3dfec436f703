//! `jari export`: reservations as CSV or JSON, page by page, so that memory does not grow with the sale.

use std::io::{self, IsTerminal};

use admin::{Command, ExportedReservation, MAX_EXPORT_PAGE, Reply};
use domain::Millis;
use domain::reservation::ReservedPlaces;

use crate::Ending;
use crate::arguments::{ExportArguments, ExportFormat, SystemArguments};
use crate::output::{Output, Progress, Times, counted};
use crate::system::{System, refused, unexpected};

pub(crate) async fn run(
    system: &SystemArguments,
    arguments: ExportArguments,
    output: &mut Output,
) -> anyhow::Result<Ending> {
    let ExportArguments { event, format, with_tokens } = arguments;
    let system = System::find(system)?;
    // Where standard output is the terminal itself, the lines are the progress.
    let progress = Progress::new(!io::stdout().is_terminal());
    let (mut after, mut written) = (None, 0_u64);
    loop {
        let command = Command::Export { event: event.clone(), after, limit: MAX_EXPORT_PAGE, with_tokens };
        let (reservations, next) = match system.ask(command).await? {
            Ok(Reply::Exported { reservations, next }) => (reservations, next),
            Ok(other) => return Err(unexpected(&other)),
            Err(why) => return Ok(refused(&why)),
        };
        for reservation in &reservations {
            let before = before(format, with_tokens, written == 0);
            output.text(before)?;
            output.text(one(format, with_tokens, reservation)?)?;
            written += 1;
        }
        progress.tell(counted(written, "reservation"));
        after = next;
        if after.is_none() {
            break;
        }
    }
    if written == 0 {
        output.text(before(format, with_tokens, true))?;
    }
    output.text(if format == ExportFormat::Json { "\n]\n" } else { "" })?;
    progress.end();
    Ok(Ending::Fine)
}

/// What stands between two reservations, or before the first one.
fn before(format: ExportFormat, with_tokens: bool, is_first: bool) -> String {
    match (format, is_first) {
        (ExportFormat::Json, true) => "[\n".to_owned(),
        (ExportFormat::Json, false) => ",\n".to_owned(),
        (ExportFormat::Csv, true) => {
            let token = if with_tokens { ",token" } else { "" };
            format!("{HEADER}{token}\r\n")
        }
        (ExportFormat::Csv, false) => String::new(),
    }
}

const HEADER: &str = "reservationId,status,version,account,places,seatCount,amount,currency,createdAt,updatedAt,paymentDueAt,\
     paymentId";

fn one(format: ExportFormat, with_tokens: bool, reservation: &ExportedReservation) -> anyhow::Result<String> {
    Ok(match format {
        ExportFormat::Json => serde_json::to_string(reservation)?,
        ExportFormat::Csv => csv(reservation, with_tokens),
    })
}

fn csv(reservation: &ExportedReservation, with_tokens: bool) -> String {
    let time = |at: Millis| Times::UTC.exact(at);
    let mut fields = vec![
        reservation.reservation_id.to_string(),
        reservation.status.as_str().to_owned(),
        reservation.version.to_string(),
        reservation.account.as_ref().map(ToString::to_string).unwrap_or_default(),
        reservation.places.iter().map(places).collect::<Vec<_>>().join("; "),
        reservation.seat_count.to_string(),
        reservation.amount.to_string(),
        reservation.currency.clone(),
        time(reservation.created_at),
        time(reservation.updated_at),
        reservation.payment_due_at.map(time).unwrap_or_default(),
        reservation.payment_id.as_ref().map(ToString::to_string).unwrap_or_default(),
    ];
    if with_tokens {
        fields.push(reservation.token.map(|token| token.to_string()).unwrap_or_default());
    }
    fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(",") + "\r\n"
}

/// `KTX-101/standard 5-1A 5-1B` or `KTX-101/standing 2`
fn places(places: &ReservedPlaces) -> String {
    let ReservedPlaces { offering_id, section_id, count, seats, .. } = places;
    let mut parts = vec![format!("{offering_id}/{section_id}")];
    if seats.is_empty() {
        parts.push(count.to_string());
    }
    parts.extend(seats.iter().map(ToString::to_string));
    parts.join(" ")
}

/// RFC 4180.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use domain::reservation::ReservationStatus;
    use domain::{ReservationId, Token};

    use super::*;

    fn reservation() -> ExportedReservation {
        let place = |section: &str, count, seats: &[&str]| ReservedPlaces {
            offering_id: "KTX-101".parse().unwrap(),
            section_id: section.parse().unwrap(),
            price: 100,
            count,
            seats: seats.iter().map(|seat| seat.parse().unwrap()).collect(),
        };
        ExportedReservation {
            reservation_id: ReservationId::of("e".parse().unwrap(), Token::random()),
            token: None,
            account: Some("kim, \"the buyer\"".parse().unwrap()),
            status: ReservationStatus::PendingPayment,
            version: 1,
            places: vec![place("standard", 2, &["5-1A", "5-1B"]), place("standing", 3, &[])],
            seat_count: 5,
            amount: 500,
            currency: "KRW".to_owned(),
            created_at: Millis(0),
            updated_at: Millis(1),
            payment_due_at: None,
            payment_id: None,
        }
    }

    #[test]
    fn a_line_of_csv_has_as_many_fields_as_the_header() {
        let reservation = reservation();
        let line = csv(&reservation, false);
        let expected = format!(
            "{},PENDING_PAYMENT,1,\"kim, \"\"the buyer\"\"\",KTX-101/standard 5-1A 5-1B; KTX-101/standing 3,5,500,KRW,\
             1970-01-01T00:00:00.000Z,1970-01-01T00:00:00.001Z,,\r\n",
            reservation.reservation_id
        );
        assert_eq!(line, expected);
        assert_eq!(HEADER.split(',').count(), 12);
        assert_eq!(line.replace("kim, ", "").split(',').count(), 12);
    }

    #[test]
    fn tokens_leave_only_when_asked_for() {
        let mut reservation = reservation();
        let json = one(ExportFormat::Json, false, &reservation).unwrap();
        assert!(!json.contains("token"), "{json}");
        reservation.token = Some(Token::random());
        let token = reservation.token.unwrap().to_string();
        assert!(one(ExportFormat::Json, true, &reservation).unwrap().contains(&token));
        assert!(csv(&reservation, true).ends_with(&format!(",{token}\r\n")));
        assert!(before(ExportFormat::Csv, true, true).ends_with("paymentId,token\r\n"));
    }
}
