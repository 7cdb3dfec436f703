//! The words of a sale as types: ids, commands (validated input), outcomes (what a step answered), facts
//! (what became true), the sale's definition and the arithmetic of the line.
//!
//! Nothing here does I/O, and nothing here imports another crate of this workspace.

pub mod command;
pub mod fact;
pub mod ids;
pub mod items;
pub mod layout;
pub mod line;
pub mod outcome;
pub mod reservation;
pub mod sale;
pub mod shuffle;
pub mod socket;

pub use ids::{
    Account, ConnectionId, EventId, InvalidId, Millis, OfferingId, PaymentId, ReservationId, SeatName,
    SectionId, Token,
};
