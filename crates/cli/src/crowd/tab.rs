//! A second tab on another device: the same place, followed for itself.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::answers::{Joined, Polled, Status};
use super::client::Asked;
use super::tally::Call;
use super::visit::World;

/// When it is opened.
const OPENS_AFTER: Duration = Duration::from_secs(2);

/// An open tab. Dropping it closes it.
pub(crate) struct Tab(JoinHandle<()>);

impl Tab {
    pub(crate) fn open(world: &Arc<World>, token: &str, ticket: Option<u64>) -> Self {
        Self(tokio::spawn(follow(Arc::clone(world), token.to_owned(), ticket)))
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Comes back by the token alone, then asks as told until the place is no more, or something fails: the other tab
/// bears with that.
async fn follow(world: Arc<World>, token: String, ticket: Option<u64>) {
    sleep(OPENS_AFTER).await;
    let asked = Asked::new(Call::Rejoin, Instant::now(), "/api/queue/rejoin".to_owned());
    let Ok(joined) = world.client.ask::<Joined>(asked.with(json!({ "token": token }))).await else { return };
    world.witness.same_place((&token, ticket), (&joined.token, joined.ticket_number));
    let (mut key, mut next_poll_ms) = (Some(joined.key), joined.next_poll_ms);
    while let Some(known) = key {
        let due = Instant::now() + Duration::from_millis(next_poll_ms);
        sleep_until(due).await;
        let target = format!("/api/status/poll?token={token}&key={known}");
        let Ok(polled) = world.client.ask::<Polled>(Asked::new(Call::Poll, due, target)).await else {
            return;
        };
        if !matches!(polled.status, Status::Waiting | Status::Active) {
            return;
        }
        (key, next_poll_ms) = (polled.key, polled.next_poll_ms);
    }
}
