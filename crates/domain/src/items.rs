//! What a token holds or bought, in the one compact form that Lua steps, sessions and journal entries share:
//! `section@price=index,index` for named seats and `section@price*count` for a general section, joined by `;`.
//! The price is the one at the time of the hold: changing a running sale never changes it under a buyer.

use std::fmt;
use std::str::FromStr;

/// One section's part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The section's number in the layout.
    pub section: u32,
    /// Price of one place, in the currency's smallest unit.
    pub price: u64,
    /// Which places.
    pub units: Units,
}

/// Named seats by their index in the layout, or a count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Units {
    /// Indices of named seats, in the order in which they were taken.
    Seats(Vec<u32>),
    /// Places of a general section.
    Count(u32),
}

impl Item {
    /// How many places.
    pub fn count(&self) -> u32 {
        match &self.units {
            // A hold has at most a limit's worth of seats.
            Units::Seats(seats) => u32::try_from(seats.len()).unwrap_or(u32::MAX),
            Units::Count(count) => *count,
        }
    }
}

/// A text that is not in this form: a bug or a damaged store, never a caller's input.
#[derive(Debug, thiserror::Error)]
#[error("malformed items: {0:?}")]
pub struct MalformedItems(String);

/// All of it; empty for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Items(pub Vec<Item>);

impl Items {
    /// How many places over all sections.
    pub fn count(&self) -> u32 {
        self.0.iter().map(Item::count).sum()
    }

    /// Price × places over all sections.
    pub fn amount(&self) -> u64 {
        self.0.iter().map(|item| item.price * u64::from(item.count())).sum()
    }
}

impl FromStr for Items {
    type Err = MalformedItems;

    fn from_str(text: &str) -> Result<Self, MalformedItems> {
        let parse = |part: &str| -> Option<Item> {
            let (section, rest) = part.split_once('@')?;
            let at = rest.find(['=', '*'])?;
            let (price, units) = rest.split_at(at);
            let units = match units.split_at(1) {
                ("=", seats) => {
                    Units::Seats(seats.split(',').map(|seat| seat.parse().ok()).collect::<Option<_>>()?)
                }
                (_, count) => Units::Count(count.parse().ok()?),
            };
            Some(Item { section: section.parse().ok()?, price: price.parse().ok()?, units })
        };
        let parts = text.split(';').filter(|part| !part.is_empty());
        parts.map(parse).collect::<Option<_>>().map(Self).ok_or_else(|| MalformedItems(text.to_owned()))
    }
}

impl fmt::Display for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, item) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(";")?;
            }
            write!(f, "{}@{}", item.section, item.price)?;
            match &item.units {
                Units::Count(count) => write!(f, "*{count}")?,
                Units::Seats(seats) => {
                    for (at, seat) in seats.iter().enumerate() {
                        write!(f, "{}{seat}", if at == 0 { '=' } else { ',' })?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_read_back_as_written() {
        for text in ["", "3@59800=120,121", "7@8400*2", "3@59800=120,121;7@8400*2;1@0=5"] {
            assert_eq!(text.parse::<Items>().unwrap().to_string(), text);
        }
        let items: Items = "3@100=1,2;7@10*3".parse().unwrap();
        assert_eq!((items.count(), items.amount()), (5, 230));
    }

    #[test]
    fn damaged_items_are_refused() {
        for text in ["x", "1@2", "1=2", "1@2=", "1@2*x", "1@2=3,", "-1@2=3"] {
            assert!(text.parse::<Items>().is_err(), "{text:?}");
        }
    }
}
