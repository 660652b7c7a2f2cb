//! Where the numbers end that a log hands out.
//!
//! | number | kept in | ends | what happens there |
//! |---|---|---|---|
//! | CSN | 64 bits; versions and transaction states use two of them | [`CSN_END`] | commits are refused |
//! | segment of a lane | 64 bits; where servers can overtake one another, 32 of them are the epoch's own | [`segment_end`] | commits are refused; a restart has a new epoch |
//! | side segment of a lane | 32 bits beside the epoch | [`SIDES_END`] | large transactions are refused; a restart has a new epoch |
//! | epoch | 32 bits | [`EPOCH_END`] | a start is refused |
//! | block of a lane, cursor, GSN | 64 bits, from 0 in each epoch | never: one for each entry or byte | |
//!
//! Invariant: a number is refused before anything is promised that would need it, and 2^20 numbers before the end: so
//! what was promised before the first refusal, by every worker at once, and what homes have prepared ahead, never comes
//! to the end.

use logstead_types::{Csn, Epoch};

/// So many numbers are kept back.
const SPARE: u64 = 1 << 20;

/// No transaction draws a CSN from here on.
pub const CSN_END: Csn = Csn((1 << 62) - SPARE);

/// So many side segments has a lane in an epoch.
pub const SIDES_END: u64 = (1 << 32) - SPARE;

/// No life of a server has a number from here on: a copy's epoch is above its source's.
pub const EPOCH_END: Epoch = Epoch(u32::MAX - (1 << 10));

/// Numbers that are used up. Nothing was promised that needs another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumbersExhausted {
    /// Of a lane's segments in this epoch.
    #[error(
        "a lane of the log has used up its segment numbers of this epoch; restart the server, which begins another one"
    )]
    Segments,
    /// Of a lane's side segments in this epoch.
    #[error(
        "a lane of the log has used up its side segment numbers of this epoch; restart the server, which begins another one"
    )]
    Sides,
    /// CSNs.
    #[error(
        "the database has used up its commit sequence numbers; dump it and restore it into a new one"
    )]
    Csns,
    /// Epochs.
    #[error(
        "the log has used up its epochs, one for each start; restore a dump of the database into a new one"
    )]
    Epochs,
}

/// The first of the segment numbers that are the epoch's own, at homes with a lease; of its side segments everywhere.
pub(crate) fn first_number(epoch: Epoch) -> u64 {
    u64::from(epoch.get()) << 32
}

/// Where the segment numbers of an epoch end, at a home with a lease or without.
pub fn segment_end(epoch: Epoch, leased: bool) -> u64 {
    let next = epoch.get().checked_add(1).filter(|_| leased);
    next.map_or(u64::MAX, |next| first_number(Epoch(next))) - SPARE
}

/// The epoch after this one.
pub fn next_epoch(epoch: Epoch) -> Result<Epoch, NumbersExhausted> {
    let next = epoch.get().checked_add(1).map(Epoch);
    next.filter(|next| *next < EPOCH_END)
        .ok_or(NumbersExhausted::Epochs)
}
