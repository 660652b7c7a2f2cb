//! Room in a bucket: nobody says how much there is, and a quota may refuse what is one byte too much.
//!
//! Once something was refused for want of room the home is *short of space*: who writes more is refused before it is
//! logged, who removes goes on. An append that
//! is refused waits, for nothing may be taken back any more. What a side segment or an object was refused for is
//! told, and passes.
//!
//! What finds room again is a *reserve*: an object of zeros
//! ([`ObjectOptions::reserve_bytes`](super::ObjectOptions::reserve_bytes)), put there when the first lane
//! is opened. It is removed when something is refused, so that what frees room has some; and when it can be put back
//! there is room for others. Without one, a
//! smaller object is put there and removed again, to see whether there is room.
//!
//! Invariant: one task watches as long as lanes are open.

use super::io::ObjectCore;
use super::names;
use crate::bucket::{BucketError, Outcome};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Room for so much is room again, where none is kept.
const PROBE_BYTES: u64 = 1 << 20;
/// Between two looks whether there is room again.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// After so many intervals in which nothing was removed here the look is made all the same: somebody else may have
/// made room.
const LOOKS_IDLE: u32 = 10;

/// What is known of a bucket's room.
#[derive(Default)]
pub(super) struct Space {
    short: AtomicBool,
    refused: Notify,
    removals: AtomicU64,
}

impl Space {
    /// Something was refused for want of room.
    pub(super) fn refused(&self) {
        if !self.short.swap(true, Ordering::SeqCst) {
            self.refused.notify_one();
        }
    }

    /// The same, if it was for that.
    pub(super) fn note(&self, error: &BucketError) {
        if error.outcome == Outcome::NoSpace {
            self.refused();
        }
    }

    /// Something was removed.
    pub(super) fn freed(&self) {
        self.removals.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// Removes the reserve; false if it was not there.
    pub(super) async fn give_way(&self, core: &ObjectCore) -> bool {
        let there = core.ask(|| core.bucket.stat(names::RESERVE)).await;
        matches!(there, Ok(Some(_)))
            && core
                .ask(|| core.bucket.delete(names::RESERVE))
                .await
                .is_ok()
    }
}

/// Puts the reserve there; false if there is no room for it.
async fn keep(core: &ObjectCore) -> bool {
    let bytes = match core.options.reserve_bytes {
        0 => PROBE_BYTES,
        bytes => bytes,
    };
    let zeros = Bytes::from(vec![0; usize::try_from(bytes).unwrap_or(0)]);
    let put = core
        .ask(|| core.bucket.put(names::RESERVE, zeros.clone()))
        .await;
    match put {
        Ok(()) => {
            if core.options.reserve_bytes == 0 {
                core.space.give_way(core).await;
            }
            true
        }
        Err(error) => {
            core.space.note(&error);
            false
        }
    }
}

/// Puts the reserve there, and from then on, whenever something was refused: makes room for what frees room, and
/// waits until there is room for others.
pub(super) async fn watch(core: Arc<ObjectCore>) {
    let space = &core.space;
    if core.options.reserve_bytes > 0 {
        keep(&core).await;
    }
    loop {
        space.refused.notified().await;
        space.give_way(&core).await;
        let (mut removals, mut idle) = (space.removals.load(Ordering::Relaxed), 0);
        loop {
            core.options.timer.sleep(LOOK_INTERVAL).await;
            let now = space.removals.load(Ordering::Relaxed);
            idle += 1;
            if now == removals && idle < LOOKS_IDLE {
                continue;
            }
            (removals, idle) = (now, 0);
            if keep(&core).await {
                break;
            }
        }
        space.short.store(false, Ordering::SeqCst);
    }
}
