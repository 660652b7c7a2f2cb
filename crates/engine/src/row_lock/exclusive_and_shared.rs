//! How exclusive and shared locks of a row meet.
//!
//! An exclusive lock is published by installing a version at the head of the chain, a shared one by an entry in a shard
//! of the lock table, under the shard's mutex. The chunk's counter tells exclusive lockers whether they need to look
//! into the shard at all.
//!
//! - Exclusive: look at the counter; zero: install, look again; still zero: done. Otherwise take the mutex, look for a
//!   conflicting holder, and install if that has not happened yet, or take the version away again if there is one.
//! - Shared: take the mutex, raise the counter, look at the head; a conflicting version in flight: lower the counter
//!   and be blocked; else enter. The counter is lowered when the row's last holder leaves.
//!
//! Why two conflicting locks are never both taken (R1): all four steps that matter (install, look at the counter,
//! raise, look at the head) are sequentially consistent. If the exclusive side's second look was zero, it came before
//! the raise in the order of all such steps, hence the install before the look at the head: the shared side sees the
//! version. If it was not zero, the exclusive side takes the mutex: before the shared side, which then looks at the
//! head after the install; or after it, and finds the entry.
//!
//! Why they do not both back off: the exclusive side backs off only for an entry it has seen, whose holder has not
//! backed off; the shared side only for a version, whose owner may still back off, but then only for another's entry,
//! and tells who waits for the version.

/// One row, seen by one who wants to lock it. The model checker has its own.
pub(crate) trait LockedRow {
    /// The shard's mutex, held.
    type Shard;
    /// Who is in the way, and other reasons not to go on.
    type Refusal;
    /// What the holder had of the row before.
    type Before;

    /// Does the counter say that some row of the chunk has shared holders?
    fn some_shared(&self) -> bool;
    /// Raises the counter.
    fn raise(&self);
    /// Lowers the counter.
    fn lower(&self);
    /// Locks the row's shard.
    fn shard(&self) -> Self::Shard;
    /// A holder in the shard that conflicts.
    fn holder(&self, shard: &Self::Shard) -> Option<Self::Refusal>;
    /// Installs the version; false if the head is not what was looked at. Refuses where nothing can be installed now.
    fn install(&mut self) -> Result<bool, Self::Refusal>;
    /// Takes the version away again, and tells who waits for it.
    fn uninstall(&mut self);
    /// Looks at the head, which may refuse. True if no entry is needed: what the transaction has there is strong
    /// enough.
    fn look_at_head(&mut self) -> Result<bool, Self::Refusal>;
    /// Enters a shared holder. True with it if the row had none before.
    fn enter(&mut self, shard: &mut Self::Shard) -> (Self::Before, bool);
}

/// Takes an exclusive lock. False: the head has changed, look again.
pub(crate) fn exclusive<P: LockedRow>(place: &mut P) -> Result<bool, P::Refusal> {
    if place.some_shared() {
        let shard = place.shard();
        return match place.holder(&shard) {
            Some(refusal) => Err(refusal),
            None => place.install(),
        };
    }
    if !place.install()? {
        return Ok(false);
    }
    if !place.some_shared() {
        return Ok(true);
    }
    let shard = place.shard();
    let refused = place.holder(&shard);
    drop(shard);
    match refused {
        None => Ok(true),
        Some(refusal) => {
            place.uninstall();
            Err(refusal)
        }
    }
}

/// Takes a shared lock. `None`: what the transaction has already is strong enough.
pub(crate) fn shared<P: LockedRow>(place: &mut P) -> Result<Option<P::Before>, P::Refusal> {
    let mut shard = place.shard();
    place.raise();
    match place.look_at_head() {
        Ok(false) => {
            let (before, is_first) = place.enter(&mut shard);
            if !is_first {
                place.lower();
            }
            Ok(Some(before))
        }
        Ok(true) => {
            place.lower();
            Ok(None)
        }
        Err(refusal) => {
            place.lower();
            Err(refusal)
        }
    }
}
