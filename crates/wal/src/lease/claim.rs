//! How a server comes by the lease: a protocol, event in, step out, without clock, home or threads.
//!
//! **Rule.** Whoever finds the lease held may take it
//! 1. at once, if its owner gave it back, or is known to have ended on a machine that is never copied;
//! 2. at once, if told to (`--take-over`);
//! 3. at once, if its owner has handed it over to this claimant and has ended ([`Claimant::predecessor`]): as if it had
//!    been given back, but to nobody else;
//! 4. when the manifest has not changed for as long as the lease lasts, and a margin.
//!
//! Otherwise it is refused. Taking is one compare and swap from exactly the state that was looked at; whatever comes in
//! between makes the claim begin again with a new look.
//!
//! **Why nobody reads what is out of date (T15).** Let `c` be the state that was replaced, first seen at `s`. Its owner
//! counts its lease from before it *sent* `c`, so from before `s`, and since nothing replaced `c` but we, `c` is the
//! last state it wrote. So it answers nobody after `s` + duration - margin by its clock, and nobody does at
//! [`LeaseGrant::run_out`] = `s` + duration + margin by ours. That holds for a lease taken from a living owner in the
//! same way: who takes it accepts connections no earlier.
//!
//! **Why an ended process proves little.** A virtual machine may be copied while it runs: by a snapshot with memory
//! that is resumed beside the original, or from one template in many places. A copy has the original's boot id,
//! namespaces and processes. On it the kernel truly says that the owner has ended, and on the original it goes on and
//! answers. Everything that a newcomer could look at on its machine has been copied with it, and the store has seen
//! nothing of either since: so it cannot know which of the two it is on. The same holds for a claim whose answer is
//! lost: where the process was copied before the answer came, one of the two got it and may be answering by now. So
//! what is there under a number of our own is a lease like any other, and attempts have numbers that a copy does not
//! repeat. Only whoever runs the machines knows that there is one of each ([`Claimant::machine_is_never_copied`]).
//! Otherwise the lease is waited for, and a living owner shows itself by a renewal.
//!
//! That an owner is gone says nothing of the one *it* took the lease from, perhaps a moment ago: hence `owed-ms` in the
//! manifest, which stays until that time is over, and is waited out by whoever comes next.

use crate::manifest::{LeaseHolder, Manifest};
use logstead_env::{Instant, ProcessIdentity};
use logstead_home::Tag;
use logstead_types::DatabaseId;
use std::time::Duration;

/// Clocks of two machines may run apart by this part of a lease's duration, on either side.
const MARGIN_PART: u32 = 10;
/// Looks at a lease that may run out, per duration.
const LOOKS: u32 = 10;

/// What is left of the time a lease lasts for unequal clocks.
pub fn margin(duration: Duration) -> Duration {
    duration / MARGIN_PART
}

/// Who claims.
#[derive(Clone, Debug)]
pub struct Claimant {
    /// A random number.
    pub owner: u64,
    /// Its process.
    pub process: ProcessIdentity,
    /// How long its lease is to last.
    pub duration: Duration,
    /// When that was, in seconds since 1970.
    pub since: u64,
    /// Whoever has it.
    pub take_over: bool,
    /// The owner of a lease that was handed over to this claimant, and whose process has ended since.
    pub predecessor: Option<u64>,
    /// There is one machine with this one's boot id, and never another: what it says of its processes is true of the
    /// lease's owner.
    pub machine_is_never_copied: bool,
    /// The number of the database, if there is none yet.
    pub database: DatabaseId,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum ClaimEvent {
    /// It begins, or it is time to look again.
    Look,
    /// There is no manifest.
    NoManifest,
    /// This is the manifest.
    Manifest(Box<Manifest>, Tag),
    /// Ours is stored.
    Stored(Tag),
    /// Somebody else was first.
    Conflict,
}

/// What is to be done next.
#[derive(Clone, Debug)]
pub enum ClaimStep {
    /// Read the manifest.
    Read,
    /// Store the first manifest, if there is none, in a home without lanes.
    Create(Box<Manifest>),
    /// Store it in place of the state with this tag.
    Swap(Tag, Box<Manifest>),
    /// This one's lease may run out: look again after this time.
    Pause(Duration, Box<LeaseHolder>),
    /// The lease is ours.
    LeaseGrant(Box<LeaseGrant>),
    /// Somebody else's server is alive.
    Refused(LeaseHolder),
}

/// The lease as it was taken.
#[derive(Clone, Debug)]
pub struct LeaseGrant {
    /// The manifest with it.
    pub manifest: Manifest,
    /// That state's tag.
    pub tag: Tag,
    /// Who had it before.
    pub before: Option<LeaseHolder>,
    /// Until then somebody may hold an earlier lease.
    pub run_out: Option<Instant>,
}

/// A lease that somebody may hold.
#[derive(Clone, Debug)]
struct Watched {
    owner: u64,
    renewals: u64,
    since: Instant,
}

/// A claim in progress.
#[derive(Clone, Debug)]
pub struct LeaseClaim {
    claimant: Claimant,
    watched: Option<Watched>,
    /// What is being stored, or was meant to be.
    storing: Option<LeaseGrant>,
    /// The numbers of what was stored, or was meant to be.
    attempts: Vec<u64>,
}

impl LeaseClaim {
    /// Begins with [`ClaimEvent::Look`].
    pub fn new(claimant: Claimant) -> LeaseClaim {
        LeaseClaim {
            claimant,
            watched: None,
            storing: None,
            attempts: Vec::new(),
        }
    }

    /// What to do after `event`, of which the clock says `now` or later. `is_gone` knows processes that have surely
    /// ended.
    pub fn next(
        &mut self,
        event: ClaimEvent,
        now: Instant,
        is_gone: &dyn Fn(&ProcessIdentity) -> bool,
    ) -> ClaimStep {
        match event {
            // After a conflict, ours may be there: a reply that was lost.
            ClaimEvent::Look | ClaimEvent::Conflict => ClaimStep::Read,
            ClaimEvent::NoManifest => {
                let manifest = Manifest::first(self.claimant.database);
                ClaimStep::Create(self.store(manifest, Tag(0), Duration::ZERO, now))
            }
            ClaimEvent::Manifest(manifest, tag) => self.found(*manifest, tag, now, is_gone),
            ClaimEvent::Stored(tag) => match self.storing.take() {
                Some(held) => ClaimStep::LeaseGrant(Box::new(LeaseGrant { tag, ..held })),
                // Not asked for.
                None => ClaimStep::Read,
            },
        }
    }

    fn found(
        &mut self,
        manifest: Manifest,
        tag: Tag,
        now: Instant,
        is_gone: &dyn Fn(&ProcessIdentity) -> bool,
    ) -> ClaimStep {
        let never_copied = self.claimant.machine_is_never_copied;
        let is_ours = |held: &mut LeaseGrant| never_copied && held.manifest == manifest;
        if let Some(held) = self.storing.take_if(is_ours) {
            return ClaimStep::LeaseGrant(Box::new(LeaseGrant { tag, ..held }));
        }
        let Some(holder) = manifest.holder.clone() else {
            return ClaimStep::Swap(tag, self.store(manifest, tag, Duration::ZERO, now));
        };
        let owed = Duration::from_millis(holder.owed_ms);
        let may_last = owed.max(Duration::from_millis(holder.duration_ms));
        // An attempt of ours of which no answer came has never answered anybody.
        let mine = never_copied
            && holder.owner == self.claimant.owner
            && self.attempts.contains(&holder.renewals);
        let ended = never_copied && is_gone(&holder.process)
            || self.claimant.predecessor == Some(holder.owner);
        if mine || holder.is_released() || ended {
            return ClaimStep::Swap(tag, self.store(manifest, tag, owed, now));
        }
        if self.claimant.take_over {
            return ClaimStep::Swap(tag, self.store(manifest, tag, may_last, now));
        }
        match &self.watched {
            None => {
                self.watched = Some(Watched {
                    owner: holder.owner,
                    renewals: holder.renewals,
                    since: now,
                });
                ClaimStep::Pause(may_last / LOOKS, Box::new(holder))
            }
            Some(watched)
                if (watched.owner, watched.renewals) != (holder.owner, holder.renewals) =>
            {
                ClaimStep::Refused(holder)
            }
            Some(watched) => {
                let run_out = watched.since + may_last + margin(may_last);
                if now < run_out {
                    ClaimStep::Pause((run_out - now).min(may_last / LOOKS), Box::new(holder))
                } else {
                    ClaimStep::Swap(tag, self.store(manifest, tag, Duration::ZERO, now))
                }
            }
        }
    }

    /// A number that no attempt has had, and another one in a copy of this process, which looks at its clock some
    /// nanoseconds earlier or later.
    fn attempt_at(&self, now: Instant) -> u64 {
        let seed = self.claimant.owner ^ now.as_nanos().rotate_left(32);
        let mixed =
            (seed.wrapping_add(self.attempts.len() as u64)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Renewals count up from here.
        1 + (mixed >> 2)
    }

    /// Ours over `manifest`, when somebody may answer for `owed` more.
    fn store(
        &mut self,
        mut manifest: Manifest,
        tag: Tag,
        owed: Duration,
        now: Instant,
    ) -> Box<Manifest> {
        let attempt = self.attempt_at(now);
        self.attempts.push(attempt);
        let Claimant {
            owner,
            process,
            duration,
            since,
            ..
        } = &self.claimant;
        let before = manifest.holder.replace(LeaseHolder {
            owner: *owner,
            // Each attempt is a state of its own.
            renewals: attempt,
            duration_ms: millis(*duration),
            owed_ms: millis(owed),
            since: *since,
            process: process.clone(),
        });
        self.storing = Some(LeaseGrant {
            manifest: manifest.clone(),
            tag,
            before,
            run_out: (!owed.is_zero()).then(|| now + owed + margin(owed)),
        });
        Box::new(manifest)
    }
}

/// Whole milliseconds, as many as are needed.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
