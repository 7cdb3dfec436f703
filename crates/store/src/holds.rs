//! What stands in `holds`: the name of what is held, and what stands under it.

use domain::Token;

/// The name of what is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit<'a> {
    /// A named seat: its index.
    Seat(u32),
    /// A token's places of a general section at one price: `section*price*token`.
    Count {
        /// The section's number.
        section: u32,
        /// Of one place, in the currency's smallest unit.
        price: u64,
        /// Whose they are.
        token: &'a str,
    },
}

impl<'a> Unit<'a> {
    /// A unit by its name; nothing where that is of no known form.
    pub fn read(unit: &'a str) -> Option<Self> {
        let Some((section, rest)) = unit.split_once('*') else { return unit.parse().ok().map(Self::Seat) };
        let (price, token) = rest.split_once('*')?;
        Some(Self::Count { section: section.parse().ok()?, price: price.parse().ok()?, token })
    }
}

/// A held unit with what stands under it: `section:price:token` for a seat, `section:price:count` for a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold<'a> {
    /// The section's number.
    pub section: u32,
    /// The seat's index, where it is a named one.
    pub seat: Option<u32>,
    /// Places.
    pub count: u64,
    /// Whose they are.
    pub token: &'a str,
}

impl<'a> Hold<'a> {
    /// A unit's hold; nothing where either does not read, or they name different sections or prices.
    pub fn read(unit: &'a str, text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let section: u32 = parts.next()?.parse().ok()?;
        let price: u64 = parts.next()?.parse().ok()?;
        let last = parts.next()?;
        Some(match Unit::read(unit)? {
            Unit::Seat(seat) => Self { section, seat: Some(seat), count: 1, token: last },
            Unit::Count { section: its_section, price: its_price, token } => {
                ((its_section, its_price) == (section, price)).then_some(())?;
                Self { section, seat: None, count: last.parse().ok()?, token }
            }
        })
    }
}

/// Whose a held unit is: the token stands last, under a seat's name or in that of a count.
pub fn holder_of(unit: &str, hold: &str) -> Option<Token> {
    unit.rsplit_once('*').or_else(|| hold.rsplit_once(':'))?.1.parse().ok()
}
