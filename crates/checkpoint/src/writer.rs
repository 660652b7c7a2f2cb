//! Frames into objects: collects them, stores full objects, and holds back when that goes faster than allowed.
//!
//! Invariants:
//! - An object's number is used once, whatever became of the object: numbers come from the [`ObjectIdAllocator`]. Each
//!   is held by a writer, or by what it has stored ([`StoredObjects`]), or is named by a published record, or the
//!   allocator has it: as given up, or as doubtful.
//! - What was given up is named by no record that was ever tried to be published, so it may be removed at once. So it
//!   is when an object cannot be stored, and before the next one is: a disk that was too full for a checkpoint is not
//!   left fuller by it.
//! - A number that the home has under other bytes is not this writer's to remove, whoever stored them.
//! - Numbers from [`REPLICA_COUNTER_MIN`] on are those of replicas that write checkpoints for this server: each order
//!   has a range of them, of which none was used before. The replica that has it removes nothing, whatever becomes of
//!   it.
//! - A reference that [`ObjectWriter::put`] gave means something when [`ObjectWriter::finish`] has succeeded, not
//!   before.

use crate::attempt::COUNTER_MIN;
use crate::error::CheckpointError;
use crate::frame::{self, FRAME_BYTES_MAX};
use crate::page_ref::PageRef;
use logstead_env::{Clock, Instant};
use logstead_home::{HomeError, ImmutableObjects, OBJECT_BYTES_MAX, ObjectId};
use logstead_types::Epoch;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

const _: () = assert!(FRAME_BYTES_MAX <= OBJECT_BYTES_MAX);

/// The numbers of an epoch from here on, up to those of attempts, are given to replicas.
pub(crate) const REPLICA_COUNTER_MIN: u32 = 1 << 30;

/// The numbers of the objects that this server makes.
pub struct ObjectIdAllocator {
    epoch: Epoch,
    /// The first that is not its own.
    end: u32,
    /// What is given up is removed. Where others may write in the epoch, only who knows them can say what may go.
    sweeps: bool,
    state: Mutex<LedgerState>,
}

#[derive(Default)]
struct LedgerState {
    next: u32,
    /// The first that no replica was given.
    next_of_replicas: u32,
    /// Of checkpoints that were never tried to be published.
    given_up: BTreeSet<ObjectId>,
    /// Of checkpoints of which nobody knows whether they were published.
    doubtful: BTreeSet<ObjectId>,
}

impl ObjectIdAllocator {
    /// The allocator of an epoch that this server alone writes in. One for each epoch.
    pub fn new(epoch: Epoch) -> ObjectIdAllocator {
        ObjectIdAllocator {
            epoch,
            end: REPLICA_COUNTER_MIN,
            sweeps: true,
            state: Mutex::new(LedgerState {
                next_of_replicas: REPLICA_COUNTER_MIN,
                ..LedgerState::default()
            }),
        }
    }

    /// Numbers for a replica that is to write one checkpoint: nobody had them before, nor will. Nothing: there are no
    /// more.
    pub fn give_to_replica(&self, count: u32) -> Option<Range<u32>> {
        let mut state = self.state.lock();
        let first = state.next_of_replicas;
        // From there on numbers are those of attempts: see `attempt`.
        let end = first.checked_add(count).filter(|end| *end <= COUNTER_MIN)?;
        state.next_of_replicas = end;
        Some(first..end)
    }

    /// The replica that was given numbers up to `end` has ended, and has used none from `unused` on: the next one gets
    /// these.
    pub fn give_back(&self, unused: u32, end: u32) {
        let mut state = self.state.lock();
        if state.next_of_replicas == end {
            state.next_of_replicas = unused.clamp(REPLICA_COUNTER_MIN, end);
        }
    }

    /// The allocator of a replica, which was given these numbers. It removes nothing.
    pub fn of_replica(epoch: Epoch, own: Range<u32>) -> ObjectIdAllocator {
        ObjectIdAllocator::of_attempt(epoch, own)
    }

    /// Was it given to a replica, in this epoch, and does no record name it that is perhaps published?
    pub(crate) fn is_stray(&self, object: ObjectId) -> bool {
        let is_of_replicas = (REPLICA_COUNTER_MIN..COUNTER_MIN).contains(&object.counter());
        object.epoch() == self.epoch
            && is_of_replicas
            && !self.state.lock().doubtful.contains(&object)
    }

    /// The allocator of some numbers of an epoch in which others may write too. What is given up stays.
    pub(crate) fn of_attempt(epoch: Epoch, own: Range<u32>) -> ObjectIdAllocator {
        let mut object_ids = ObjectIdAllocator::new(epoch);
        object_ids.end = own.end;
        object_ids.sweeps = false;
        object_ids.state.get_mut().next = own.start;
        object_ids
    }

    /// The epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// A fresh number. Who has it gives it up, or doubts it, or names it.
    pub(crate) fn number(&self) -> Result<ObjectId, CheckpointError> {
        let mut state = self.state.lock();
        if state.next >= self.end {
            return Err(CheckpointError::Misuse("no object numbers are left"));
        }
        let id = ObjectId::new(self.epoch, state.next);
        state.next += 1;
        Ok(id)
    }

    /// No record that was tried to be published names these.
    fn give_up(&self, objects: &mut Vec<ObjectId>) {
        self.state.lock().given_up.extend(objects.drain(..));
    }

    /// A record names these that is perhaps published.
    fn doubt(&self, objects: &mut Vec<ObjectId>) {
        self.state.lock().doubtful.extend(objects.drain(..));
    }

    /// What may be removed at any time.
    pub(crate) fn take_given_up(&self) -> BTreeSet<ObjectId> {
        std::mem::take(&mut self.state.lock().given_up)
    }

    /// A record is published: no other is in doubt any more.
    pub(crate) fn take_doubtful(&self) -> BTreeSet<ObjectId> {
        std::mem::take(&mut self.state.lock().doubtful)
    }

    /// Removes what was given up, as far as that is possible now.
    fn sweep(&self, objects: &dyn ImmutableObjects) {
        if !self.sweeps {
            return;
        }
        let mut left: Vec<ObjectId> = self.take_given_up().into_iter().collect();
        left.retain(|object| objects.remove_object(*object).is_err());
        self.give_up(&mut left);
    }
}

/// A budget of bytes per second.
pub struct RateLimiter<'a> {
    clock: Arc<dyn Clock>,
    bytes_per_second: u64,
    /// Waits: a test moves its clock, a server also wakes up when it stops.
    wait: Box<dyn FnMut(Duration) + Send + 'a>,
    /// When what was written until now is paid for.
    paid: Instant,
}

/// What may be written at once after a pause.
const BURST: Duration = Duration::from_millis(20);
/// Shorter waits are saved up.
const WAIT_MIN: Duration = Duration::from_millis(2);

impl<'a> RateLimiter<'a> {
    /// A budget; `wait` lets that much time pass, or less when there is no need to hold back any more.
    pub fn new(
        clock: Arc<dyn Clock>,
        bytes_per_second: u64,
        wait: impl FnMut(Duration) + Send + 'a,
    ) -> RateLimiter<'a> {
        RateLimiter {
            paid: clock.monotonic(),
            clock,
            bytes_per_second: bytes_per_second.max(1),
            wait: Box::new(wait),
        }
    }

    fn spend(&mut self, bytes: usize) {
        let now = self.clock.monotonic();
        if now.since(self.paid) > BURST {
            self.paid = Instant::from_nanos(now.as_nanos() - BURST.as_nanos() as u64);
        }
        let nanos = bytes as u128 * 1_000_000_000 / u128::from(self.bytes_per_second);
        self.paid = self.paid + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let ahead = self.paid.since(now);
        if ahead >= WAIT_MIN {
            (self.wait)(ahead);
        }
    }

    /// Objects of a quarter second: one is written in one go.
    fn object_bytes(&self) -> usize {
        let quarter = usize::try_from(self.bytes_per_second / 4).unwrap_or(usize::MAX);
        quarter.clamp(8 << 20, OBJECT_BYTES_MAX)
    }
}

/// Objects that were stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenObjects {
    /// Numbers and lengths.
    pub objects: Vec<(ObjectId, u64)>,
    /// Bytes in all of them.
    pub bytes: u64,
}

/// Collects frames and stores them in objects; see the module's documentation.
pub struct ObjectWriter<'a> {
    objects: Arc<dyn ImmutableObjects>,
    object_ids: Arc<ObjectIdAllocator>,
    rate_limiter: Option<RateLimiter<'a>>,
    object_bytes: usize,
    /// The object being filled.
    id: Option<ObjectId>,
    buffer: Vec<u8>,
    written: WrittenObjects,
    /// Every number it was given.
    own: Vec<ObjectId>,
    /// An object could not be stored, and why: all of them are given up. Whoever goes on hears the same.
    failed: Option<HomeError>,
}

impl<'a> ObjectWriter<'a> {
    /// A writer that holds back by `rate_limiter`, if there is one.
    pub fn new(
        objects: Arc<dyn ImmutableObjects>,
        object_ids: Arc<ObjectIdAllocator>,
        rate_limiter: Option<RateLimiter<'a>>,
    ) -> ObjectWriter<'a> {
        let object_bytes = rate_limiter
            .as_ref()
            .map_or(OBJECT_BYTES_MAX, RateLimiter::object_bytes);
        ObjectWriter {
            objects,
            object_ids,
            rate_limiter,
            object_bytes,
            id: None,
            buffer: Vec::new(),
            written: WrittenObjects::default(),
            own: Vec::new(),
            failed: None,
        }
    }

    /// Fills this buffer, which another writer has given ([`StoredObjects::take_buffer`]): what is fresh has to be
    /// cleared first, by whoever gives memory, and that takes longer than filling it.
    pub fn with_buffer(mut self, buffer: Vec<u8>) -> ObjectWriter<'a> {
        self.buffer = buffer;
        self.buffer.clear();
        self
    }

    /// Ends objects at this length, at most [`OBJECT_BYTES_MAX`]; one that takes a single longer frame is longer.
    pub fn with_object_bytes(mut self, bytes: usize) -> ObjectWriter<'a> {
        self.object_bytes = bytes.min(OBJECT_BYTES_MAX);
        self
    }

    pub(crate) fn objects(&self) -> &Arc<dyn ImmutableObjects> {
        &self.objects
    }

    /// Takes a frame along and says where it will lie.
    pub fn put(&mut self, frame: &[u8]) -> Result<PageRef, CheckpointError> {
        if frame.len() > FRAME_BYTES_MAX || frame.len() < frame::HEADER_BYTES {
            return Err(CheckpointError::Misuse("a frame of impossible length"));
        }
        if !self.buffer.is_empty() && self.buffer.len() + frame.len() > self.object_bytes {
            self.store()?;
        }
        self.unless_failed()?;
        let object = match self.id {
            Some(id) => id,
            None => {
                let id = self.object_ids.number()?;
                self.own.push(id);
                id
            }
        };
        self.id = Some(object);
        let reference = PageRef {
            object,
            offset: self.buffer.len() as u32,
            len: frame.len() as u32,
            crc: frame::checksum(frame),
        };
        self.buffer.extend_from_slice(frame);
        if let Some(rate_limiter) = &mut self.rate_limiter {
            rate_limiter.spend(frame.len());
        }
        Ok(reference)
    }

    /// Bytes taken along so far.
    pub fn bytes(&self) -> u64 {
        self.written.bytes + self.buffer.len() as u64
    }

    fn unless_failed(&self) -> Result<(), CheckpointError> {
        match &self.failed {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }

    fn store(&mut self) -> Result<(), CheckpointError> {
        self.unless_failed()?;
        let Some(id) = self.id.take() else {
            return Ok(());
        };
        if self.written.objects.is_empty() {
            // There may be little room: first goes what is of no use.
            self.object_ids.sweep(&*self.objects);
        }
        if let Err(error) = self.objects.put_object(id, &self.buffer) {
            self.failed = Some(error.clone());
            if matches!(error, HomeError::Conflict(_)) {
                self.own.retain(|own| *own != id);
            }
            // Perhaps the disk is full, and the log needs room.
            self.object_ids.give_up(&mut self.own);
            self.object_ids.sweep(&*self.objects);
            return Err(error.into());
        }
        let len = self.buffer.len() as u64;
        self.written.objects.push((id, len));
        self.written.bytes += len;
        self.buffer.clear();
        Ok(())
    }

    /// Stores what is left: everything that was put is durable when this succeeds. Dropping the writer instead, or what
    /// this gives, gives all of it up.
    pub fn finish(mut self) -> Result<StoredObjects, CheckpointError> {
        self.store()?;
        Ok(StoredObjects {
            written: std::mem::take(&mut self.written),
            object_ids: Arc::clone(&self.object_ids),
            own: std::mem::take(&mut self.own),
            is_tried: false,
            buffer: std::mem::take(&mut self.buffer),
        })
    }
}

impl Drop for ObjectWriter<'_> {
    fn drop(&mut self) {
        self.object_ids.give_up(&mut self.own);
    }
}

/// What a writer has stored, to be named by a record.
pub struct StoredObjects {
    written: WrittenObjects,
    object_ids: Arc<ObjectIdAllocator>,
    own: Vec<ObjectId>,
    is_tried: bool,
    /// Empty, for the next writer.
    buffer: Vec<u8>,
}

impl StoredObjects {
    /// What a replica has stored with numbers that `object_ids` gave it: `objects` with their lengths are to be named
    /// by a record, and those of all of `used` may be there.
    pub fn of_replica(
        object_ids: Arc<ObjectIdAllocator>,
        objects: Vec<(ObjectId, u64)>,
        used: Range<u32>,
    ) -> StoredObjects {
        let epoch = object_ids.epoch();
        StoredObjects {
            own: used.map(|counter| ObjectId::new(epoch, counter)).collect(),
            written: WrittenObjects {
                bytes: objects.iter().map(|(_, bytes)| bytes).sum(),
                objects,
            },
            object_ids,
            is_tried: false,
            buffer: Vec::new(),
        }
    }

    /// A buffer for another writer.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// What was stored.
    pub fn written(&self) -> &WrittenObjects {
        &self.written
    }

    /// A number for the record that names all of it.
    pub fn number_of_record(&mut self) -> Result<ObjectId, CheckpointError> {
        let id = self.object_ids.number()?;
        self.own.push(id);
        Ok(id)
    }

    /// The home has something else under this number.
    pub(crate) fn disown(&mut self, object: ObjectId) {
        self.own.retain(|own| *own != object);
    }

    /// From here on the record may be published, or (`false`) it surely was not.
    pub(crate) fn set_tried(&mut self, is_tried: bool) {
        self.is_tried = is_tried;
    }

    /// The record is published. All its numbers.
    pub(crate) fn into_numbers(mut self) -> Vec<ObjectId> {
        std::mem::take(&mut self.own)
    }
}

impl Drop for StoredObjects {
    fn drop(&mut self) {
        match self.is_tried {
            true => self.object_ids.doubt(&mut self.own),
            false => self.object_ids.give_up(&mut self.own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server's objects never get the numbers that attempts of others take in its epoch.
    #[test]
    fn numbers_of_objects_end_where_those_of_others_begin() {
        const MIN: u32 = REPLICA_COUNTER_MIN;
        let object_ids = ObjectIdAllocator::new(Epoch(7));
        object_ids.state.lock().next = MIN - 2;
        let numbers = [object_ids.number(), object_ids.number()];
        let numbers = numbers.map(|number| number.expect("there are some").counter());
        assert_eq!(numbers, [MIN - 2, MIN - 1]);
        for _ in 0..2 {
            let refused = object_ids.number();
            assert!(matches!(refused, Err(CheckpointError::Misuse(_))));
        }
        // Those of replicas go up, each once, and end where those of attempts begin.
        assert_eq!(object_ids.give_to_replica(10), Some(MIN..MIN + 10));
        assert_eq!(object_ids.give_to_replica(5), Some(MIN + 10..MIN + 15));
        assert_eq!(object_ids.give_to_replica(COUNTER_MIN - MIN), None);
        // What was not used is given again, but not what was given since.
        object_ids.give_back(MIN + 12, MIN + 15);
        assert_eq!(object_ids.give_to_replica(3), Some(MIN + 12..MIN + 15));
        object_ids.give_back(MIN, MIN + 10);
        let rest = COUNTER_MIN - MIN - 15;
        assert_eq!(
            object_ids.give_to_replica(rest),
            Some(MIN + 15..COUNTER_MIN)
        );
        assert_eq!(object_ids.give_to_replica(1), None);
        let is_stray = |epoch, counter| object_ids.is_stray(ObjectId::new(Epoch(epoch), counter));
        assert!(is_stray(7, MIN) && is_stray(7, COUNTER_MIN - 1));
        assert!(!is_stray(7, MIN - 1) && !is_stray(7, COUNTER_MIN) && !is_stray(8, MIN));
        object_ids.doubt(&mut vec![ObjectId::new(Epoch(7), MIN)]);
        assert!(!is_stray(7, MIN), "a record names it perhaps");
        // Those of an attempt are its own to the last one.
        let own = COUNTER_MIN + 5..COUNTER_MIN + 6;
        let attempt = ObjectIdAllocator::of_attempt(Epoch(7), own);
        assert_eq!(
            attempt.number().map(ObjectId::counter).ok(),
            Some(COUNTER_MIN + 5)
        );
        assert!(attempt.number().is_err());
    }
}
