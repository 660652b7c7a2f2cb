//! Immutable objects on several children.
//!
//! Invariants:
//! - When a put has succeeded, every child that is still up has the object: `needed` members at least. A child that
//!   failed, or was much slower than the others, is left out, as for appends. So a member that is recorded as complete
//!   has every object that was acknowledged, but for what the last server put after it had failed; and among the
//!   members that a start needs there is one that has all.
//!   A group of several ([`GroupedHome`](crate::GroupedHome)) publishes no names: why it needs no such change, it says.
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
use crate::{HomeError, OBJECT_BYTES_MAX, ObjectId, ObjectInfo, SeenCopy, immutable};
use logstead_types::Epoch;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The slowest transfer that is waited for.
const BYTES_PER_SECOND_MIN: u64 = 1 << 20;

/// Bytes of an object that are read at once where all of it is read.
const PIECE_BYTES: usize = 4 << 20;

/// How an object is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadFrom {
    /// As a home reads it.
    Anywhere,
    /// From the disk, if the home can tell: what a machine has in memory hides what the disk has damaged.
    Disk,
}

/// Has nobody answered? Else the answer says what is there, if only that it cannot be read.
pub(super) fn is_unanswered(error: &HomeError) -> bool {
    use std::io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable,
        Interrupted, NetworkUnreachable, NotConnected, TimedOut, UnexpectedEof, WouldBlock,
    };
    match error {
        HomeError::Io { source, .. } => matches!(
            source.kind(),
            BrokenPipe
                | ConnectionAborted
                | ConnectionRefused
                | ConnectionReset
                | HostUnreachable
                | Interrupted
                | NetworkUnreachable
                | NotConnected
                | TimedOut
                | UnexpectedEof
                | WouldBlock
        ),
        _ => true,
    }
}

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

    /// Reads all of an object of one child, however long it is there: in `way`.
    pub(super) fn read_whole_object_of(
        &self,
        child: usize,
        home: &Attachment,
        id: ObjectId,
        way: ReadFrom,
    ) -> Result<Vec<u8>, HomeError> {
        let mut bytes = Vec::new();
        while bytes.len() < OBJECT_BYTES_MAX {
            if self.returns.is_closed() {
                return Err(no_answer("reading an object of a home that is closed"));
            }
            let (offset, most) = (bytes.len() as u64, OBJECT_BYTES_MAX - bytes.len());
            let len = most.min(PIECE_BYTES);
            let piece = self.ask_bulk_of(child, home, len, move |home| {
                let mut piece = vec![0; len];
                let count = match &home.object_repair {
                    Some(repair) if way == ReadFrom::Disk => {
                        repair.read_object_from_disk(id, offset, &mut piece)?
                    }
                    _ => home.objects.read_object(id, offset, &mut piece)?,
                };
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
    fn read_copy_of(
        &self,
        child: usize,
        id: ObjectId,
        way: ReadFrom,
    ) -> Result<Vec<u8>, HomeError> {
        let home = self.up(child);
        let home = home.ok_or_else(|| no_answer("asking a home that is left out"))?;
        self.read_whole_object_of(child, &home, id, way)
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
        let (tell, told) = logstead_env::channel();
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
        // Of one that is longer in one home than in another, the longest.
        let mut sizes: BTreeMap<ObjectId, u64> = BTreeMap::new();
        for info in of_complete.flat_map(|(_, infos)| infos) {
            let longest = sizes.entry(info.id).or_default();
            *longest = info.size_bytes.max(*longest);
        }
        let info = |(id, size_bytes)| ObjectInfo { id, size_bytes };
        let wanted: Vec<ObjectInfo> = sizes.into_iter().map(info).collect();
        for (&child, ids) in &held {
            let Some(target) = self.up(child) else {
                continue;
            };
            let lacking = wanted.iter().copied();
            let lacking: Vec<ObjectInfo> = lacking.filter(|info| !ids.contains(&info.id)).collect();
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
                match self.copy_object(&holders, (child, &target), &info) {
                    // It has been left out: the others go on without it.
                    Err(_) if self.up(child).is_none() => break,
                    copied => copied?,
                }
            }
        }
        Ok(())
    }

    /// What a home is to have in the place of its copy of an object; `None` if that is right, or if nobody has a better
    /// one. `own`: its copy, if it can be read; `others` have one, too. The longest that anybody has been seen to have
    /// is of `longest` bytes.
    ///
    /// A copy is *good* if it is not damaged and no other good one goes on where it ends. A good copy that two have is
    /// right; if they are other two than this home and somebody, that is a matter of more than damage, and goes by
    /// their number. A copy that only one other has is taken if the own one is not good, and if it is not shorter: that
    /// may be cut off.
    ///
    /// # Errors
    /// Somebody does not answer whose copy may decide it.
    pub(super) fn better_copy(
        &self,
        own: Option<&[u8]>,
        others: &[usize],
        (id, longest): (ObjectId, u64),
    ) -> Result<Option<Vec<u8>>, HomeError> {
        let own_len = own.map_or(longest, |own| own.len() as u64);
        let own_good = own.filter(|own| !self.is_damaged(own));
        let mut good: Vec<Vec<u8>> = Vec::new();
        let mut unanswered = None;
        let mut damaged = usize::from(own_good.is_none());
        for &other in others {
            match self.read_copy_of(other, id, ReadFrom::Disk) {
                Ok(bytes) if self.is_damaged(&bytes) => damaged += 1,
                Ok(bytes) => good.push(bytes),
                Err(HomeError::Missing(_)) => {}
                Err(error) if is_unanswered(&error) => unanswered = Some(error),
                Err(_) => damaged += 1,
            }
            let confirms = |copy: &Vec<u8>| own_good == Some(copy);
            if own_len == longest && good.last().is_some_and(confirms) && damaged == 0 {
                // Nobody has more, and somebody has the same: the others need not be asked.
                return Ok(None);
            }
        }
        let goes_on =
            |short: &[u8], copy: &[u8]| copy.len() > short.len() && copy.starts_with(short);
        let own_good = own_good.filter(|own| !good.iter().any(|copy| goes_on(own, copy)));
        let whole: Vec<&Vec<u8>> = {
            let ends_too_soon = |copy: &Vec<u8>| {
                let other = good.iter().any(|other| goes_on(copy, other));
                other || own_good.is_some_and(|own| goes_on(copy, own))
            };
            good.iter().filter(|copy| !ends_too_soon(copy)).collect()
        };
        let votes = |copy: &[u8]| whole.iter().filter(|other| **other == copy).count();
        let best = whole.iter().max_by_key(|copy| (votes(copy), copy.len()));
        let better = best.filter(|best| match own_good {
            Some(own) => votes(own) == 0 && votes(best) > 1,
            None => votes(best) > 1 || best.len() as u64 >= own_len,
        });
        match (better, own_good, unanswered) {
            // Two others say this good copy is wrong, and one who may confirm it did not answer.
            (Some(_), Some(_), Some(error)) | (None, None, Some(error)) => Err(error),
            (Some(better), ..) => Ok(Some(better.to_vec())),
            (None, ..) => {
                if damaged > 0 || good.len() > whole.len() {
                    tracing::warn!("log: object {id} is damaged somewhere, and this copy stays");
                }
                Ok(None)
            }
        }
    }

    /// The copy of an object that a child is given which has none. The holders' longest one has `listed` bytes. What
    /// is damaged everywhere is copied as it is.
    fn copy_of_holders(
        &self,
        holders: &[usize],
        id: ObjectId,
        listed: u64,
    ) -> Result<Vec<u8>, HomeError> {
        let mut unanswered = None;
        let mut shorter: Option<Vec<u8>> = None;
        let mut damaged: Option<Vec<u8>> = None;
        for &holder in holders {
            match self.read_copy_of(holder, id, ReadFrom::Anywhere) {
                Ok(bytes) if self.is_damaged(&bytes) => {
                    let url = self.children[holder].url();
                    tracing::warn!("log: object {id} in {url} is damaged");
                    damaged.get_or_insert(bytes);
                }
                Ok(bytes) if bytes.len() as u64 == listed => return Ok(bytes),
                Ok(bytes) => {
                    let longest = shorter.as_ref().map_or(0, Vec::len);
                    let longer = Some(bytes).filter(|bytes| bytes.len() > longest);
                    shorter = longer.or(shorter);
                }
                Err(HomeError::Missing(_)) => {}
                Err(error) if is_unanswered(&error) => unanswered = Some(error),
                Err(error) => {
                    let url = self.children[holder].url();
                    tracing::warn!("log: object {id} in {url}: {error}");
                }
            }
        }
        // Who does not answer may have it whole: it is tried again.
        match unanswered {
            Some(error) => Err(error),
            None => shorter.or(damaged).ok_or_else(|| immutable::missing(id)),
        }
    }

    /// Copies an object to a child that lacks it. A child that cannot store it is left out, which is an error.
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
        self.put_copy(to, info.id, bytes)
    }

    /// Gives a child a better copy of an object than the one that was `seen` there: in one step, if it can do that. A
    /// child that cannot is left out, which is an error. False: it has no copy any more.
    pub(super) fn replace_copy(
        &self,
        (to, target): (usize, &Attachment),
        (id, seen): (ObjectId, SeenCopy),
        bytes: Vec<u8>,
    ) -> Result<bool, HomeError> {
        let (len, epoch) = (bytes.len(), Epoch(self.epoch() as u32));
        let replace = move |home: &crate::LogHome| match &home.object_repair {
            Some(repair) if repair.can_replace_objects()? => {
                repair.replace_object(epoch, id, seen, &bytes)
            }
            _ => {
                home.objects.remove_object(id)?;
                home.objects.put_object(id, &bytes)
            }
        };
        match self.ask_bulk_of(to, target, len, replace) {
            Ok(()) => Ok(true),
            Err(HomeError::Missing(_)) => Ok(false),
            Err(error) => {
                self.leave_out(to, target.generation, format!("mending it: {error}"));
                Err(error)
            }
        }
    }

    /// Stores an object at a child that lacks it. A child that cannot store it is left out, which is an error.
    pub(super) fn put_copy(
        &self,
        (to, target): (usize, &Attachment),
        id: ObjectId,
        bytes: Vec<u8>,
    ) -> Result<(), HomeError> {
        let len = bytes.len();
        let put = move |home: &crate::LogHome| home.objects.put_object(id, &bytes);
        self.ask_bulk_of(to, target, len, put).inspect_err(|error| {
            self.leave_out(to, target.generation, format!("completing it: {error}"));
        })
    }
}
