//! A home in a bucket: appendable objects, or one object per append.
//!
//! Owns: where everything lies in the bucket (`names`), what is done about every answer of the provider (`append`,
//! `named_values`), segments made ahead (`lane`), fences (`fence`), reading back (`read`), side segments (`sides`),
//! immutable objects (`immutable`), the thread that does all requests (`io`), how long they wait (`timer`).
//!
//! Life of an append: [`LaneAppends::place`] claims the place; [`LaneAppends::append`] hands the block to the thread
//! `home-io`; its bytes go out without being copied; the answer is settled if it is doubtful; the completion gets the
//! block back.
//!
//! Invariants:
//! - `Ok` is told only of bytes that the provider has said to hold, or that were read back.
//! - Whatever has a name is made by *create* or *put if absent*, and no name is used twice: segment numbers begin anew,
//!   higher, with each epoch.
//! - After [`LaneSegments::fence`], no other writer's append to that lane is told to have succeeded, ever.
//!
//! Does not: know blocks, or decide who may write (the lease in the manifest does).

mod append;
mod fence;
mod immutable;
mod io;
mod lane;
mod named_values;
mod names;
mod read;
mod sides;
mod space;
mod timer;

pub use timer::{Timer, TimerControl};

use crate::bucket::Bucket;
use crate::{
    Buffer, Completion, Copies, HomeBackend, HomeCapabilities, HomeError, HomeStatus, HomeUsage,
    ImmutableObjects, InlineAppends, LaneAppends, LaneSegments, NamedValues, NoRoom, ObjectCopies,
    ObjectId, ObjectInfo, ObjectReader, Position, Rollover, RoomListener, RoomRequest, SegmentInfo,
    SegmentRollover, SideSegments, SideWriter, Tag,
};
use append::PendingBlock;
use bytes::Bytes;
use io::{Counts, ObjectCore, ObjectIo};
use lane::{Lane, Lanes, SegmentLimits};
use logstead_env::Env;
use logstead_types::LaneId;
pub(crate) use names::OBJECTS;
use parking_lot::{Mutex, RwLock};
use read::Listing;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Largest append and room, where the provider allows as much.
const ROOM_BYTES_MAX: u64 = 64 << 20;
/// Appends of this size and larger ones move as many bytes per second (milliscale, section 2.2: flat up to 512 KiB).
const APPEND_BYTES_PREFERRED: usize = 512 << 10;

/// How an object home works.
#[derive(Clone, Debug)]
pub struct ObjectOptions {
    /// Size at which a segment is left for the next one. Each costs a few requests to make, to list and to remove; and
    /// what is no longer needed is removed segment by segment, so up to one for each lane is kept that is not.
    pub segment_size_bytes_max: u64,
    /// Appends after which a segment is left; an appendable object's may be fewer, if its provider says so. For plain
    /// segments, where each is an object to be listed.
    pub appends_per_segment_max: u64,
    /// How long an append of the preferred size takes; if nobody has measured it, what the provider's kind is known
    /// for.
    pub append_latency_us: Option<u32>,
    /// The first pause before a request is repeated, and the longest.
    pub pause_min: Duration,
    /// See `pause_min`.
    pub pause_max: Duration,
    /// Bytes that are kept in the bucket by an object, for what frees room where a quota refuses more; 0: none.
    pub reserve_bytes: u64,
    /// How pauses and limits pass.
    pub timer: Timer,
}

impl Default for ObjectOptions {
    fn default() -> ObjectOptions {
        ObjectOptions {
            segment_size_bytes_max: 64 << 20,
            appends_per_segment_max: 10_000,
            append_latency_us: None,
            pause_min: Duration::from_millis(5),
            pause_max: Duration::from_secs(2),
            reserve_bytes: 0,
            timer: Timer::default(),
        }
    }
}

/// A home in a bucket; see the module's documentation.
pub struct ObjectHome {
    core: Arc<ObjectCore>,
    limits: RwLock<SegmentLimits>,
    lanes: RwLock<Lanes>,
    listings: Mutex<HashMap<LaneId, Arc<Listing>>>,
    tags: Arc<named_values::Tags>,
    unfinished: Arc<sides::UnfinishedSides>,
    known_side: Arc<sides::SideIndexCache>,
    // Last: ends the thread.
    io: ObjectIo,
}

impl ObjectHome {
    /// A home in this bucket. Sends no request yet.
    pub fn open(
        bucket: Arc<dyn Bucket>,
        env: &Env,
        options: ObjectOptions,
    ) -> Result<ObjectHome, HomeError> {
        let limits = limits(bucket.as_ref(), &options)?;
        let core = ObjectCore::new(bucket, env, options)?;
        Ok(ObjectHome {
            core: Arc::new(core),
            limits: RwLock::new(limits),
            lanes: RwLock::default(),
            listings: Mutex::default(),
            tags: Arc::default(),
            unfinished: Arc::default(),
            known_side: Arc::default(),
            io: ObjectIo::start(env)?,
        })
    }

    fn lane(&self, lane: LaneId) -> Result<Arc<Lane>, HomeError> {
        let found = self.lanes.read().get(&lane).map(Arc::clone);
        found.ok_or(HomeError::Misuse {
            lane,
            what: "the lane is not open",
        })
    }

    fn limits(&self) -> SegmentLimits {
        *self.limits.read()
    }

    fn make(&self, lane: Arc<Lane>, segment: Option<u64>) {
        if let Some(segment) = segment {
            let core = Arc::clone(&self.core);
            self.io
                .handle()
                .spawn(append::make_segments(core, lane, segment));
        }
    }

    fn list(&self, lane: LaneId) -> Result<Arc<Listing>, HomeError> {
        let core = Arc::clone(&self.core);
        let listing = self
            .io
            .wait(async move { Listing::of(&core, lane).await.map(Arc::new) })?;
        self.listings.lock().insert(lane, Arc::clone(&listing));
        Ok(listing)
    }

    fn read_listed(
        &self,
        listing: Arc<Listing>,
        lane: LaneId,
        at: Position,
        len: u64,
    ) -> Result<(read::ReadPieces, bool), HomeError> {
        let core = Arc::clone(&self.core);
        self.io
            .wait(async move { read::read(&core, &listing, lane, at, len).await })
    }
}

fn limits(bucket: &dyn Bucket, options: &ObjectOptions) -> Result<SegmentLimits, HomeError> {
    let limits = match bucket.appends() {
        Some(limits) => {
            // The head is an append; one in a hundred is left for fences, and in case the provider counts otherwise.
            let margin = (limits.appends_max / 100).max(1) + 1;
            let margin_bytes = names::HEAD_LEN + names::FENCE_LEN * 16;
            let bytes = limits.object_bytes_max.saturating_sub(margin_bytes);
            SegmentLimits {
                appends: limits
                    .appends_max
                    .saturating_sub(margin)
                    .min(options.appends_per_segment_max),
                bytes: bytes.min(options.segment_size_bytes_max),
                room: limits.append_bytes_max.min(ROOM_BYTES_MAX),
                appendable: true,
            }
        }
        None => SegmentLimits {
            appends: options.appends_per_segment_max,
            bytes: options.segment_size_bytes_max,
            room: ROOM_BYTES_MAX,
            appendable: false,
        },
    };
    let limits = SegmentLimits {
        room: limits.room.min(limits.bytes),
        ..limits
    };
    if limits.appends == 0 || limits.room == 0 {
        return Err(HomeError::Unsupported(
            "segments without room: the limits of its bucket, or its options, are too small",
        ));
    }
    Ok(limits)
}

impl SegmentLimits {
    fn rollover(&self) -> Rollover {
        Rollover {
            appends_max: self.appends,
            size_bytes: self.bytes,
        }
    }
}

/// What an append takes where nobody has measured it: milliscale, section 2.2.
fn latency_us(bucket: &dyn Bucket) -> u32 {
    match (bucket.provider(), bucket.appends()) {
        ("s3express", _) => 8_000,
        (_, Some(_)) => 15_000,
        (_, None) => 77_000,
    }
}

impl HomeBackend for ObjectHome {
    fn inline_appends(_home: &Arc<Self>) -> Option<Arc<dyn InlineAppends>> {
        None
    }

    fn rollover(home: &Arc<Self>) -> Option<Arc<dyn SegmentRollover>> {
        Some(Arc::clone(home) as _)
    }

    fn copies(_home: &Arc<Self>) -> Option<Arc<dyn Copies>> {
        None
    }
}

impl HomeStatus for ObjectHome {
    fn describe(&self) -> String {
        self.core.place.clone()
    }

    fn report(&self) -> Vec<(String, String)> {
        let kind = if self.limits().appendable {
            "appended to"
        } else {
            "written once"
        };
        let mut report = vec![
            (
                "provider".to_owned(),
                self.core.bucket.provider().to_owned(),
            ),
            ("objects".to_owned(), kind.to_owned()),
        ];
        report.extend(self.core.report());
        report
    }

    fn usage(&self) -> Vec<HomeUsage> {
        let mut usage = self.core.bucket.usage();
        usage.retries += self.core.counts.retries.load(Ordering::Relaxed);
        usage.settled += self.core.counts.settled.load(Ordering::Relaxed);
        vec![HomeUsage {
            home: self.core.place.clone(),
            provider: self.core.bucket.provider().to_owned(),
            usage,
        }]
    }
}

impl LaneAppends for ObjectHome {
    fn capabilities(&self) -> HomeCapabilities {
        let core = &self.core;
        let measured = core.options.append_latency_us;
        let in_flight = if self.limits().appendable {
            1
        } else {
            fence::IN_FLIGHT_MAX
        };
        HomeCapabilities {
            block_alignment: 1,
            block_size_preferred: APPEND_BYTES_PREFERRED,
            room_size_bytes_max: self.limits().room,
            appends_in_flight_max: in_flight,
            append_latency_expected_us: measured
                .unwrap_or_else(|| latency_us(core.bucket.as_ref())),
            leased: true,
        }
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        let not_fresh = HomeError::Misuse {
            lane,
            what: "opened at a segment that is not fresh",
        };
        if self.lanes.read().contains_key(&lane) {
            return Err(NoRoom::Failed(not_fresh));
        }
        let listing = self.list(lane)?;
        if let Some((_, objects)) = listing.segments.range(first_segment..).next() {
            return Err(NoRoom::Failed(match objects.len() {
                Some(_) => not_fresh,
                // A tombstone: somebody else has shut the lane before it was open.
                None => self.core.fenced(),
            }));
        }
        if self.limits().appendable {
            let core = Arc::clone(&self.core);
            self.io
                .wait(async move { append::make_segment(&core, lane, first_segment).await })?;
        }
        if self.lanes.read().is_empty() {
            self.io.handle().spawn(space::watch(Arc::clone(&self.core)));
        }
        self.listings.lock().remove(&lane);
        let opened = Arc::new(Lane::new(lane, first_segment, self.limits()));
        self.lanes.write().insert(lane, opened);
        Ok(())
    }

    fn set_room_listener(&self, lane: LaneId, listener: RoomListener) {
        if let Ok(lane) = self.lane(lane) {
            lane.set_listener(listener);
        }
    }

    fn ensure_room(
        &self,
        lane: LaneId,
        bytes: u64,
        _request: &mut RoomRequest,
    ) -> Result<(), NoRoom> {
        let lane = self.lane(lane)?;
        let (answer, make) = lane.ensure_room(&self.core, bytes);
        self.make(lane, make);
        answer
    }

    fn is_short_of_space(&self) -> bool {
        self.core.space.is_short()
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        let lane = self.lane(lane)?;
        let (at, make) = lane.place(len)?;
        self.make(lane, make);
        Ok(at)
    }

    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        let misuse = |what| HomeError::Misuse { lane, what };
        let opened = match self.lane(lane) {
            Ok(_) if len > block.capacity() => Err(misuse("longer than its buffer")),
            opened => opened,
        };
        let pending = PendingBlock::new(block, len, done);
        match opened {
            Ok(lane) => {
                let core = Arc::clone(&self.core);
                self.io.handle().spawn(append::run(core, lane, at, pending));
            }
            Err(error) => pending.finish(Err(error)),
        }
    }
}

impl SegmentRollover for ObjectHome {
    fn rollover(&self) -> Rollover {
        self.limits().rollover()
    }

    fn limit_segments(&self, rollover: Rollover) -> Result<(), HomeError> {
        let mut limits = self.limits.write();
        if limits.rollover().min(rollover) != rollover {
            return Err(HomeError::Unsupported("larger segments than it has"));
        }
        limits.appends = rollover.appends_max;
        limits.bytes = rollover.size_bytes;
        limits.room = limits.room.min(limits.bytes);
        Ok(())
    }

    fn end_segment(&self, lane: LaneId) -> Result<(), HomeError> {
        let lane = self.lane(lane)?;
        let make = lane.end_segment();
        self.make(lane, make);
        Ok(())
    }
}

impl LaneSegments for ObjectHome {
    fn fence(&self, lane: LaneId, first_segment: u64, by: &str) -> Result<(), HomeError> {
        let core = Arc::clone(&self.core);
        let by = by.to_owned();
        let fenced = self
            .io
            .wait(async move { fence::run(&core, lane, first_segment, &by).await });
        self.listings.lock().remove(&lane);
        fenced
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        let core = Arc::clone(&self.core);
        self.io.wait(async move { read::lanes(&core).await })
    }

    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        Ok(self.list(lane)?.infos())
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        let len = into.capacity() as u64;
        let known = self.listings.lock().get(&lane).map(Arc::clone);
        let listed_now = known.is_none();
        let listing = match known {
            Some(listing) => listing,
            None => self.list(lane)?,
        };
        let (mut pieces, short) = self.read_listed(listing, lane, at, len)?;
        if short && !listed_now {
            // There may be more by now.
            let listing = self.list(lane)?;
            pieces = self.read_listed(listing, lane, at, len)?.0;
        }
        Ok(pieces.copy(into.as_mut_slice()))
    }

    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let bytes = block.as_slice().get(..len).ok_or(HomeError::Misuse {
            lane,
            what: "longer than its buffer",
        })?;
        let mut there = Buffer::zeroed(len);
        if self.read(lane, at, &mut there)? == len && there.as_slice() == bytes {
            // What a provider has shown it keeps.
            return Ok(());
        }
        let bytes = Bytes::copy_from_slice(bytes);
        let core = Arc::clone(&self.core);
        self.listings.lock().remove(&lane);
        let patched = self.io.wait(async move {
            read::patch(&core, lane, at, bytes).await?;
            Counts::add(&core.counts.patches);
            Ok(())
        });
        self.listings.lock().remove(&lane);
        patched
    }

    // Objects are as long as what was written to them: there is nothing to give back.
    fn seal(&self, _lane: LaneId, _at: Position) -> Result<(), HomeError> {
        Ok(())
    }

    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        let core = Arc::clone(&self.core);
        let trimmed = self
            .io
            .wait(async move { read::trim(&core, lane, segment).await });
        self.listings.lock().remove(&lane);
        trimmed
    }
}

impl NamedValues for ObjectHome {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        let (core, tags) = (Arc::clone(&self.core), Arc::clone(&self.tags));
        let name = name.to_owned();
        self.io
            .wait(async move { named_values::get(&core, &tags, &name).await })
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        let (core, tags) = (Arc::clone(&self.core), Arc::clone(&self.tags));
        let (name, bytes) = (name.to_owned(), Bytes::copy_from_slice(bytes));
        self.io
            .wait(async move { named_values::write(&core, &tags, &name, None, bytes).await })
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        let (core, tags) = (Arc::clone(&self.core), Arc::clone(&self.tags));
        let (name, bytes) = (name.to_owned(), Bytes::copy_from_slice(bytes));
        self.io.wait(async move {
            named_values::write(&core, &tags, &name, Some(expected), bytes).await
        })
    }

    fn limit_name_requests(&self, first: Duration) {
        self.core.limit_name_requests(first);
    }
}

impl SideSegments for ObjectHome {
    fn begin_side_segment(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        self.known_side.forget();
        Box::new(sides::ObjectSide::new(
            &self.core,
            self.io.handle(),
            &self.unfinished,
            lane,
            id,
        ))
    }

    fn get_side_segment(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let core = Arc::clone(&self.core);
        let known = Arc::clone(&self.known_side);
        let len = into.len() as u64;
        let pieces = self
            .io
            .wait(async move { sides::read(&core, &known, lane, id, offset, len).await })?;
        let mut filled = 0;
        for piece in pieces {
            into[filled..filled + piece.len()].copy_from_slice(&piece);
            filled += piece.len();
        }
        Ok(filled)
    }

    fn list_side_segments(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        let core = Arc::clone(&self.core);
        let unfinished = Arc::clone(&self.unfinished);
        self.io
            .wait(async move { sides::list(&core, &unfinished, lane).await })
    }

    fn remove_side_segment(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.known_side.forget();
        let core = Arc::clone(&self.core);
        self.io
            .wait(async move { sides::remove(&core, lane, id).await })
    }

    fn give_up_side_segment(&self, lane: LaneId, id: u64) {
        self.known_side.forget();
        sides::give_up(&self.core, self.io.handle(), &self.unfinished, lane, id);
    }
}

impl ObjectReader for ObjectHome {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        let core = Arc::clone(&self.core);
        let len = into.len() as u64;
        let bytes = self
            .io
            .wait(async move { immutable::read(&core, id, offset, len).await })?;
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        None
    }
}

impl ImmutableObjects for ObjectHome {
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        crate::immutable::check_size(bytes)?;
        let (core, bytes) = (Arc::clone(&self.core), Bytes::copy_from_slice(bytes));
        self.io
            .wait(async move { immutable::put(&core, id, bytes).await })
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        let core = Arc::clone(&self.core);
        self.io.wait(async move { immutable::list(&core).await })
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        let core = Arc::clone(&self.core);
        self.io
            .wait(async move { immutable::remove(&core, id).await })
    }
}
