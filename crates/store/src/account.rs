//! Reading `accounts` outside a step; lib/account.lua writes it: half of a token → its other half and the account.

use domain::{Account, EventId, Token};

use crate::keys::{KeyName, Keys};
use crate::{Store, StoreError};

impl Store {
    /// The token of an account's place.
    pub(crate) async fn token_of(
        &self,
        event: &EventId,
        account: &Account,
    ) -> Result<Option<Token>, StoreError> {
        let (half, _) = Token::of(event, Some(account)).halves();
        let key = Keys::of(event).name(KeyName::Accounts);
        let command = redis::cmd("HGET").arg(key).arg(&half).clone();
        let entry: Option<String> = self.read("HGET", &command).await?;
        Ok(entry.and_then(|entry| format!("{half}{}", entry.strip_suffix(account.as_str())?).parse().ok()))
    }
}

/// The account that the entry of a token's first half names, where it is this token's.
pub(crate) fn account_of(token: Token, entry: &str) -> Option<Account> {
    entry.strip_prefix(&token.halves().1)?.parse().ok()
}
