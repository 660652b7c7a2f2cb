//! Commit tokens: how a client reads its own writes at another server of the same database.
//!
//! A primary says by a token which commits there were when it was asked (`logstead_commit_token()`); a replica that is
//! given it (`logstead.read_after`) takes no snapshot that lacks one of them.
//!
//! Invariant: whatever was committed before a token was made is below its CSN, and CSNs never go back. So a snapshot
//! that sees everything below it has all of that.

use logstead_types::{Csn, DatabaseId};
use std::fmt;
use std::str::FromStr;

/// A point in the order of one database's commits. As text: the database and the CSN, both hexadecimal, with a hyphen
/// between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitToken {
    /// Whose commits.
    pub database: DatabaseId,
    /// Everything below it is meant.
    pub next: Csn,
}

impl fmt::Display for CommitToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:x}", self.database.get(), self.next.get())
    }
}

/// The text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCommitToken;

impl FromStr for CommitToken {
    type Err = NoCommitToken;

    fn from_str(text: &str) -> Result<CommitToken, NoCommitToken> {
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
            let number = u64::from_str_radix(digits, 16);
            number.ok().filter(|_| plain).ok_or(NoCommitToken)
        };
        let (database, next) = text.split_once('-').ok_or(NoCommitToken)?;
        if database.len() != 16 {
            return Err(NoCommitToken);
        }
        Ok(CommitToken {
            database: DatabaseId(number(database)?),
            next: Csn(number(next)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_what_its_text_says() {
        for (database, next) in [(0, 0), (0x1f, 300), (u64::MAX, u64::MAX)] {
            let token = CommitToken {
                database: DatabaseId(database),
                next: Csn(next),
            };
            assert_eq!(token.to_string().parse(), Ok(token));
        }
        let zeros = "0".repeat(16);
        for text in [
            String::new(),
            "-".to_owned(),
            zeros.clone(),
            format!("{zeros}-"),
            format!("{zeros}-g"),
            format!("{zeros}-+1"),
            format!("{zeros}-1 "),
            format!("0{zeros}-1"),
            "1-1".to_owned(),
            format!("{zeros}-10000000000000000"),
        ] {
            assert_eq!(text.parse::<CommitToken>(), Err(NoCommitToken), "{text:?}");
        }
    }
}
