//! Immutable objects on several children.
//!
//! Invariants:
//! - When a put has succeeded, every child that is still up has the object: `needed` members at least. A child that
//!   failed, or was much slower than the others, is left out, as for appends. So a member that is recorded as complete
//!   has every object that was acknowledged, but for what the last server put after it had failed; and among the
//!   members that a start needs there is one that has all.
//! - Before copies count ([`Inner::settle_members`]), each child that is up has every object of those members. What
//!   only a child that was away still has was removed meanwhile, or never acknowledged: it is not copied to the others.
//!   Where none of those that are up has all, each has what any of them has.
//! - A read that fails is no reason to leave a child out: another one is asked, and from then on before it.
//! - Objects go through threads of their own: a large one never keeps the lease's requests waiting.
//!
//! - What is copied is a copy that is not damaged, as far as its bytes tell ([`DamageCheck`](crate::DamageCheck)), if
//!   there is one.
//!
//! Does not: compare the bytes of copies that are read. Whoever finds one damaged asks for another
//! ([`ObjectCopies::read_object_copy`](crate::ObjectCopies::read_object_copy)).

use super::child::{Attachment, ReplyTimeouts, RequestClass, no_answer};
use super::membership::Quorum;
use super::{Audience, ChildCall, Inner};
use crate::{HomeError, OBJECT_BYTES_MAX, ObjectId, ObjectInfo, immutable};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The slowest transfer that is waited for.
const BYTES_PER_SECOND_MIN: u64 = 1 << 20;

/// Bytes of an object that are read at once where all of it is read.
const PIECE_BYTES: usize = 4 << 20;
/// Others' copies of an object that one is compared with, at most.
const VOTES_MAX: usize = 3;

/// In which order children are asked for objects, by their indices; those that failed come last.
#[derive(Default)]
pub(super) struct ReadOrder(Vec<usize>);

impl ReadOrder {
    /// The quickest first; each child has the time that one of its appends takes.
    pub(super) fn new(latencies: &[u32]) -> ReadOrder {
        let mut order: Vec<usize> = (0..latencies.len()).collect();
        order.sort_by_key(|&child| latencies[child]);
        ReadOrder(order)
    }

    fn failed(&mut self, child: usize) {
        self.0.retain(|&other| other != child);
        self.0.push(child);
    }
}

impl Inner {
    /// How long a transfer is waited for.
    fn waits_for(&self, len: usize) -> ReplyTimeouts {
        let transfer = Duration::from_secs(len as u64 / BYTES_PER_SECOND_MIN);
        let waits = self.waits();
        ReplyTimeouts {
            patience: waits.patience + transfer,
            grace: waits.grace + transfer,
        }
    }

    pub(super) fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        immutable::check_size(bytes)?;
        let _under_way = self.operations.begin();
        let asked = self.asked(Audience::Receivers);
        for (child, asked) in self.children.iter().zip(&asked) {
            if asked.as_ref().is_some_and(|asked| !asked.is_up) {
                child.since_cut.lock().objects.insert(id);
            }
        }
        let waits = self.waits_for(bytes.len());
        let bytes: Arc<[u8]> = Arc::from(bytes);
        let put = |_| -> ChildCall<()> {
            let bytes = Arc::clone(&bytes);
            Box::new(move |home| home.objects.put_object(id, &bytes))
        };
        let (what, line) = ("storing an object", RequestClass::Bulk);
        self.must_within(what, Quorum::Write, &asked, line, waits, &put)?;
        Ok(())
    }

    /// Reads an object where it is. Missing only if everybody says so, and they are enough.
    pub(super) fn read_object(
        &self,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let mut failed = None;
        let order = self.read_order.lock().0.clone();
        for child in order {
            if self.up(child).is_none() {
                continue;
            }
            match self.read_object_of(child, id, offset, into) {
                Ok(count) => return Ok(count),
                Err(HomeError::Missing(_)) => {}
                Err(error) => {
                    self.read_order.lock().failed(child);
                    failed = Some(error);
                }
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        self.enough_to_judge()?;
        Err(immutable::missing(id))
    }

    /// Reads an object's bytes of one child.
    pub(super) fn read_object_of(
        &self,
        child: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        // Nobody asks for more of an object than it may have.
        let len = into.len().min(OBJECT_BYTES_MAX);
        let bytes = self.ask_bulk(child, len, move |home| {
            let mut bytes = vec![0; len];
            let count = home.objects.read_object(id, offset, &mut bytes)?;
            bytes.truncate(count);
            Ok(bytes)
        })?;
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// Reads all of an object of one child, however long it is there.
    pub(super) fn read_whole_object_of(
        &self,
        child: usize,
        home: &Attachment,
        id: ObjectId,
    ) -> Result<Vec<u8>, HomeError> {
        let mut bytes = Vec::new();
        while bytes.len() < OBJECT_BYTES_MAX {
            let (offset, most) = (bytes.len() as u64, OBJECT_BYTES_MAX - bytes.len());
            let len = most.min(PIECE_BYTES);
            let piece = self.ask_bulk_of(child, home, len, move |home| {
                let mut piece = vec![0; len];
                let count = home.objects.read_object(id, offset, &mut piece)?;
                piece.truncate(count);
                Ok(piece)
            })?;
            bytes.extend_from_slice(&piece);
            if piece.len() < len {
                break;
            }
        }
        Ok(bytes)
    }

    /// The same of one that is up.
    fn read_copy_of(&self, child: usize, id: ObjectId) -> Result<Vec<u8>, HomeError> {
        let home = self.up(child);
        let home = home.ok_or_else(|| no_answer("asking a home that is left out"))?;
        self.read_whole_object_of(child, &home, id)
    }

    fn is_damaged(&self, bytes: &[u8]) -> bool {
        self.options
            .damage
            .is_some_and(|damage| damage(bytes).is_some())
    }

    /// Asks one child that is up for something that moves so many bytes.
    pub(super) fn ask_bulk<T: Send + 'static>(
        &self,
        child: usize,
        len: usize,
        ask: impl FnOnce(&crate::LogHome) -> Result<T, HomeError> + Send + 'static,
    ) -> Result<T, HomeError> {
        let Some(home) = self.up(child) else {
            return Err(no_answer("asking a home that is left out"));
        };
        self.ask_bulk_of(child, &home, len, ask)
    }

    /// Asks one child that is up or catches up.
    pub(super) fn ask_bulk_of<T: Send + 'static>(
        &self,
        child: usize,
        home: &Attachment,
        len: usize,
        ask: impl FnOnce(&crate::LogHome) -> Result<T, HomeError> + Send + 'static,
    ) -> Result<T, HomeError> {
        let (tell, told) = mpsc::channel();
        let home = home.clone();
        let job = move || drop(tell.send(ask(&home)));
        self.children[child].run_in(RequestClass::Bulk, job);
        let answer = told.try_recv().ok();
        let patience = self.waits_for(len).patience;
        let answer = answer.or_else(|| told.recv_timeout(patience).ok());
        answer.unwrap_or_else(|| Err(no_answer("asking one of the log's homes for an object")))
    }

    /// The objects of all children.
    pub(super) fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        let listed = self.list("listing objects", |home| home.objects.list_objects())?;
        let mut sizes = BTreeMap::new();
        for info in listed.into_iter().flat_map(|(_, infos)| infos) {
            sizes.insert(info.id, info.size_bytes);
        }
        let info = |(id, size_bytes)| ObjectInfo { id, size_bytes };
        Ok(sizes.into_iter().map(info).collect())
    }

    /// Copies the objects of members that have all to the children that lack some.
    pub(super) fn complete_objects(&self) -> Result<(), HomeError> {
        let listed = self.list("listing objects", |home| home.objects.list_objects())?;
        let complete = self.membership.lock().complete();
        let ids = |infos: &[ObjectInfo]| infos.iter().map(|info| info.id).collect();
        let held: BTreeMap<usize, BTreeSet<ObjectId>> = listed
            .iter()
            .map(|(child, infos)| (*child, ids(infos)))
            .collect();
        // Where none of them is up, each may lack what another one has: what was removed may come back, and is removed
        // again as what nobody needs.
        let some_have_all = listed.iter().any(|(child, _)| complete[*child]);
        let is_asked = |child: usize| complete[child] || !some_have_all;
        let of_complete = listed.iter().filter(|(child, _)| is_asked(*child));
        let wanted: BTreeSet<ObjectInfo> = of_complete
            .flat_map(|(_, infos)| infos.iter().copied())
            .collect();
        for (&child, ids) in &held {
            let Some(target) = self.up(child) else {
                continue;
            };
            let lacking = wanted.iter().filter(|info| !ids.contains(&info.id));
            let lacking: Vec<_> = lacking.collect();
            if lacking.is_empty() {
                continue;
            }
            let bytes: u64 = lacking.iter().map(|info| info.size_bytes).sum();
            tracing::info!(
                "log: copying {} objects ({bytes} bytes) to {}, which lacks them",
                lacking.len(),
                self.children[child].url()
            );
            for info in lacking {
                let holders = held.iter().filter(|(_, ids)| ids.contains(&info.id));
                let holders: Vec<usize> = holders.map(|(holder, _)| *holder).collect();
                self.copy_object(&holders, (child, &target), info)?;
            }
        }
        Ok(())
    }

    /// What a home is to have in the place of its copy of an object; `None` if that is right, or if nobody knows better.
    /// `own`: its copy, if it can be read; `others` have one, too. A copy that is damaged has no say. Of the others a
    /// copy is right that two of them have. One that nobody else has is taken if the own one is damaged, or if it goes
    /// on where that ends.
    pub(super) fn better_copy(
        &self,
        own: Option<&[u8]>,
        others: &[usize],
        id: ObjectId,
    ) -> Option<Vec<u8>> {
        let is_right = own.is_some_and(|own| !self.is_damaged(own));
        let mut copies: Vec<Vec<u8>> = Vec::new();
        let mut damaged = 0;
        for &other in others {
            if copies.len() + damaged == VOTES_MAX {
                break;
            }
            let Ok(bytes) = self.read_copy_of(other, id) else {
                continue;
            };
            if is_right && own == Some(&bytes) {
                if !copies.is_empty() || damaged > 0 {
                    tracing::warn!("log: object {id} is damaged elsewhere");
                }
                return None;
            }
            if self.is_damaged(&bytes) {
                damaged += 1;
            } else if copies.contains(&bytes) {
                return Some(bytes);
            } else {
                copies.push(bytes);
            }
        }
        let longest = copies.into_iter().max_by_key(Vec::len);
        let better = longest.filter(|copy| match own.filter(|_| is_right) {
            Some(own) => copy.len() > own.len() && copy.starts_with(own),
            None => true,
        });
        if better.is_none() && damaged + usize::from(!is_right) > 0 {
            tracing::warn!("log: object {id} is damaged, and nobody has a better copy");
        }
        better
    }

    /// The copy of an object that a child is given which has none. The holders' longest one has `listed` bytes. What
    /// is damaged everywhere is copied as it is.
    fn copy_of_holders(
        &self,
        holders: &[usize],
        id: ObjectId,
        listed: u64,
    ) -> Result<Vec<u8>, HomeError> {
        let mut failed = None;
        let mut shorter: Option<Vec<u8>> = None;
        let mut damaged: Option<Vec<u8>> = None;
        for &holder in holders {
            match self.read_copy_of(holder, id) {
                Ok(bytes) if self.is_damaged(&bytes) => {
                    let url = self.children[holder].url();
                    tracing::warn!("log: object {id} in {url} is damaged");
                    damaged.get_or_insert(bytes);
                }
                Ok(bytes) if bytes.len() as u64 == listed => return Ok(bytes),
                Ok(bytes) => {
                    let longest = shorter.as_ref().map_or(0, Vec::len);
                    shorter = Some(bytes)
                        .filter(|bytes| bytes.len() > longest)
                        .or(shorter);
                }
                Err(error) => failed = Some(error),
            }
        }
        // Who does not answer may have all of it.
        let shorter = shorter.filter(|_| failed.is_none());
        let failed = || failed.unwrap_or_else(|| immutable::missing(id));
        shorter.or(damaged).ok_or_else(failed)
    }

    /// Copies an object to a child that lacks it. A child that cannot store it is left out.
    pub(super) fn copy_object(
        &self,
        holders: &[usize],
        to: (usize, &Attachment),
        info: &ObjectInfo,
    ) -> Result<(), HomeError> {
        if info.size_bytes > OBJECT_BYTES_MAX as u64 {
            return Err(HomeError::Unsupported("objects larger than 64 MiB"));
        }
        let bytes = self.copy_of_holders(holders, info.id, info.size_bytes)?;
        self.put_copy(to, info.id, bytes);
        Ok(())
    }

    /// Stores an object at a child that lacks it. A child that cannot store it is left out.
    pub(super) fn put_copy(
        &self,
        (to, target): (usize, &Attachment),
        id: ObjectId,
        bytes: Vec<u8>,
    ) {
        let len = bytes.len();
        let put = move |home: &crate::LogHome| home.objects.put_object(id, &bytes);
        if let Err(error) = self.ask_bulk_of(to, target, len, put) {
            self.leave_out(to, target.generation, format!("completing it: {error}"));
        }
    }
}
