//! The manifest while a server runs: the one way to change it, and what may be removed because of it.
//!
//! Owns: at homes with a kernel's lock, the manifest's state and tag; at others these are the lease's ([`Lease`]). And
//! what of the log has been removed already.
//!
//! Invariants:
//! - [`ManifestWriter::manifest`] is a state that the home has surely stored. What is computed from it may be removed:
//!   a newer state that may be there as well needs less of the log, never more, because checkpoints do not go back.
//! - A change whose outcome is not known is settled by reading before anything else is done: a state that can be read
//!   and that an error was told of is written again, because a rename that can be seen may still be lost.
//! - A checkpoint is named only if it is one: each of its starts was given by its lane, what that lane sealed before
//!   lies below the checkpoint's CSN, and all of it is durable.
//!
//! Does not: keep the lease, or know what is in checkpoints.

use crate::lane::Lane;
use crate::lease::Lease;
use crate::manifest::{CheckpointRef, Manifest, NAME};
use crate::truncate::{self, LogFloor, TruncationProgress, TruncationReport};
use logstead_home::{HomeError, LogHome, Tag};
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// Changes the manifest of a running server; see the module's documentation.
pub struct ManifestWriter {
    home: LogHome,
    lanes: Vec<Lane>,
    held: ManifestStorage,
    /// Held while the log is truncated: one at a time.
    own: Mutex<TruncationProgress>,
}

/// Who keeps the manifest's state.
enum ManifestStorage {
    Lease(Arc<Lease>),
    Local(Box<Mutex<LocalManifest>>),
}

/// The manifest as it is at a home with a kernel's lock.
struct LocalManifest {
    manifest: Manifest,
    tag: Tag,
    /// Was meant to be stored, and may be.
    doubtful: Option<Manifest>,
}

impl fmt::Debug for ManifestWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManifestKeeper").finish_non_exhaustive()
    }
}

impl ManifestWriter {
    /// The manifest is `manifest` and has this tag; `lanes` are those of its epoch.
    pub(crate) fn new(
        home: LogHome,
        lanes: Vec<Lane>,
        manifest: Manifest,
        tag: Tag,
    ) -> ManifestWriter {
        let own = Mutex::new(TruncationProgress::new(&manifest));
        let state = LocalManifest {
            manifest,
            tag,
            doubtful: None,
        };
        ManifestWriter {
            home,
            lanes,
            held: ManifestStorage::Local(Box::new(Mutex::new(state))),
            own,
        }
    }

    /// The manifest is the lease's.
    pub(crate) fn leased(home: LogHome, lanes: Vec<Lane>, lease: Arc<Lease>) -> ManifestWriter {
        ManifestWriter {
            home,
            lanes,
            own: Mutex::new(TruncationProgress::new(&lease.manifest())),
            held: ManifestStorage::Lease(lease),
        }
    }

    /// The manifest: a state that was surely stored.
    pub fn manifest(&self) -> Manifest {
        match &self.held {
            ManifestStorage::Lease(lease) => lease.manifest(),
            ManifestStorage::Local(state) => state.lock().manifest.clone(),
        }
    }

    /// Changes the manifest, durably. `Ok`: the change is stored.
    ///
    /// [`HomeError::Misuse`]: it breaks the manifest's rules, and nothing was changed. [`HomeError::Fenced`]: another
    /// server has taken over; it may have found the change there. After another error the change is stored, or not, or
    /// may be yet: what either state needs must be kept. The next call that succeeds settles it:
    /// [`ManifestWriter::manifest`] tells what it was built on. One that changes nothing will do. `change` is applied
    /// again where an earlier attempt turns out to have arrived late.
    pub fn update(&self, change: impl Fn(&mut Manifest)) -> Result<(), HomeError> {
        match &self.held {
            ManifestStorage::Lease(lease) => {
                let mut refused = None;
                let updated = lease.update(|manifest| match self.changed(manifest, &change) {
                    Ok(next) => (*manifest, refused) = (next, None),
                    // It goes on as it is, and the lease is renewed.
                    Err(error) => refused = Some(error),
                });
                refused.map_or(updated, Err)
            }
            ManifestStorage::Local(state) => {
                let state = &mut *state.lock();
                self.settle(state)?;
                let next = self.changed(&state.manifest, change)?;
                if next == state.manifest {
                    return Ok(());
                }
                self.store(state, next)
            }
        }
    }

    fn changed(
        &self,
        before: &Manifest,
        change: impl Fn(&mut Manifest),
    ) -> Result<Manifest, HomeError> {
        let mut next = before.clone();
        change(&mut next);
        let misuse = |lane, what| HomeError::Misuse { lane, what };
        before
            .check_step(&next)
            .map_err(|what| misuse(LaneId(0), what))?;
        match &next.checkpoint {
            Some(checkpoint) if before.checkpoint != next.checkpoint => self
                .check_starts(checkpoint)
                .map_err(|(lane, what)| misuse(lane, what))?,
            _ => {}
        }
        Ok(next)
    }

    /// What the log would lose for good if it were wrong is asserted where it can still be refused.
    fn check_starts(&self, checkpoint: &CheckpointRef) -> Result<(), (LaneId, &'static str)> {
        for lane in &self.lanes {
            let start = checkpoint.start_of(lane.id());
            let start = start.ok_or((lane.id(), "a checkpoint without its start"))?;
            lane.check_start(start, checkpoint.csn)
                .map_err(|what| (lane.id(), what))?;
        }
        Ok(())
    }

    fn store(&self, state: &mut LocalManifest, next: Manifest) -> Result<(), HomeError> {
        let error = match self
            .home
            .names
            .compare_and_swap(NAME, state.tag, &next.encode())
        {
            Ok(tag) => {
                (state.manifest, state.tag) = (next, tag);
                return Ok(());
            }
            Err(error) => error,
        };
        state.doubtful = Some(next.clone());
        // What cannot be settled now is settled before the next change.
        match self.settle(state) {
            Ok(()) if state.manifest == next => Ok(()),
            _ => Err(error),
        }
    }

    /// Finds out what became of a change that an error was told of.
    fn settle(&self, state: &mut LocalManifest) -> Result<(), HomeError> {
        let Some(doubtful) = &state.doubtful else {
            return Ok(());
        };
        let found = self.home.names.get(NAME)?;
        let (there, tag) = found.ok_or_else(|| HomeError::Missing(NAME.to_owned()))?;
        if there == state.manifest.encode() {
            // Nobody else writes here, and nothing of ours is under way any more.
            (state.tag, state.doubtful) = (tag, None);
            return Ok(());
        }
        if there != doubtful.encode() {
            return Err(HomeError::Conflict(NAME.to_owned()));
        }
        let tag = self.home.names.compare_and_swap(NAME, tag, &there)?;
        state.tag = tag;
        if let Some(stored) = state.doubtful.take() {
            state.manifest = stored;
        }
        Ok(())
    }

    /// Removes what the manifest's checkpoint makes superfluous: segments before its starts, the side segments of
    /// entries in them, and all of earlier epochs but what was given up with a loss. Costs requests only for what is
    /// removed, and one look at what earlier epochs have left. May be repeated, also after an error; what a crash
    /// leaves, the next start removes. What lies behind `floor` stays, if there is one.
    pub fn truncate(&self, floor: Option<&LogFloor>) -> Result<TruncationReport, HomeError> {
        let own = &mut *self.own.lock();
        truncate::run(&self.home, &self.manifest(), &self.lanes, floor, own)
    }
}
