//! Named values: the few small things of a home that are compared and swapped, such as the log's manifest.
//!
//! Does not: know what is in them.

use crate::error::HomeError;
use std::time::Duration;

/// The identity of one state of a named value, for [`NamedValues::compare_and_swap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub u64);

/// Small values by name. `put_if_absent` and `compare_and_swap` are atomic, and durable when they report success.
pub trait NamedValues: Send + Sync {
    /// A named value and the tag of its present state.
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError>;

    /// Makes a named value; [`HomeError::Conflict`] if it exists.
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError>;

    /// Replaces a named value whose state is still `expected`; else [`HomeError::Conflict`]. After another error the
    /// old or the new state is there, never a mixture.
    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError>;

    /// A request for a named value that has gone without an answer for so long counts as lost: it is settled by reading
    /// and made again, and each repetition is given twice the time of the one before, so that a slow store is not asked
    /// in vain for ever. For who keeps a lease there, which must not end with one lost request. Where requests cannot
    /// be lost there is nothing to do.
    fn limit_name_requests(&self, first: Duration);
}
