//! Ask how the whole line moves.

use domain::command::Progress;
use domain::outcome::{Outcome, ProgressView};

use crate::keys::Keys;
use crate::step::{Call, PROGRESS};
use crate::{Store, StoreError};

impl Store {
    /// The line, and whether it is drawn.
    pub async fn progress(&self, progress: &Progress) -> Result<Outcome<ProgressView>, StoreError> {
        let call = Call::new(&PROGRESS, Keys::of(&progress.event)).arg(self.now_ms());
        let mut reply = self.run(call).await?;
        if reply.word() != "PROGRESS" {
            return reply.refusal().map(Err);
        }
        let shuffled = reply.text()? == "shuffle";
        Ok(Ok(ProgressView { view: reply.view()?, shuffled }))
    }
}
