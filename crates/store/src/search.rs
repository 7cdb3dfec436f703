//! Look for offerings.

use std::collections::HashMap;
use std::sync::Arc;

use domain::command::Search;
use domain::layout::Edition;
use domain::outcome::{OfferingHit, Offerings, Outcome};
use domain::sale::Offering;

use crate::catalogue::{ATTEMPTS, edition_or_refuse, gave_up};
use crate::keys::Keys;
use crate::step::{Call, SEARCH};
use crate::{Store, StoreError};

impl Store {
    /// The offerings that the filter leaves, with what is left in each section.
    pub async fn search(&self, search: &Search) -> Result<Outcome<Offerings>, StoreError> {
        let mut edition = edition_or_refuse!(self, &search.event);
        for _ in 0..ATTEMPTS {
            let call = Call::new(&SEARCH, Keys::of(&search.event).token(search.token))
                .arg(self.now_ms())
                .arg(edition.version)
                .arg(search.token.to_string());
            let mut reply = self.run(call).await?;
            match reply.word() {
                "STALE" => edition = self.newest_edition(&search.event).await?.unwrap_or(edition),
                "FOUND" => {
                    let mut stock = reply.array()?;
                    let free: HashMap<String, String> = stock.pairs()?.into_iter().collect();
                    return Ok(Ok(hits(&edition, search, &free)));
                }
                _ => return reply.refusal().map(Err),
            }
        }
        Err(gave_up("search"))
    }
}

fn hits(edition: &Edition, search: &Search, free: &HashMap<String, String>) -> Offerings {
    let is_hit = |offering: &Offering| {
        search.filter.iter().all(|(name, wanted)| match name.as_str() {
            "date" => offering.date == *wanted,
            name => offering.attributes.get(name) == Some(wanted),
        })
    };
    let remaining = |offering: &Offering| -> Vec<u64> {
        let free_of = |section: &domain::sale::SaleSection| {
            let number = edition.layout.section(&offering.id, &section.id)?.number;
            free.get(&number.to_string())?.parse().ok()
        };
        offering.sections.iter().map(|section| free_of(section).unwrap_or(0)).collect()
    };
    let offerings = edition.sale.offerings.iter().enumerate();
    Offerings {
        sale: Arc::clone(&edition.sale),
        hits: offerings
            .filter(|(_, offering)| is_hit(offering))
            .map(|(at, offering)| OfferingHit { offering: at, remaining: remaining(offering) })
            .collect(),
    }
}
