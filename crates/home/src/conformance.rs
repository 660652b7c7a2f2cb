//! What every home must do, as one suite that each home's tests run. Panics name the broken promise.
//!
//! Does not: test crashes; those need a home that can crash and stand with it.

use crate::{
    Buffer, HomeError, LogHome, NoRoom, OBJECT_BYTES_MAX, ObjectId, ObjectInfo, Position,
    RoomRequest,
};
use logstead_types::{Epoch, LaneId};
use std::sync::mpsc;

/// The largest object of the suite: larger than any home's pieces, small enough for slow ones.
const OBJECT_BYTES: usize = (2 << 20) + 77;

fn block(alignment: usize, blocks: usize, fill: u8) -> Buffer {
    let mut block = Buffer::zeroed(alignment * blocks);
    block.as_mut_slice().fill(fill);
    block
}

/// Waits until there is room, as a server would.
fn room(home: &LogHome, lane: LaneId, bytes: u64, told: &mpsc::Receiver<()>) {
    loop {
        match home
            .appends
            .ensure_room(lane, bytes, &mut RoomRequest::default())
        {
            Ok(()) => return,
            Err(NoRoom::Busy) => {
                told.recv()
                    .expect("the home tells when room may have come up");
            }
            Err(error) => panic!("no room on an empty home: {error}"),
        }
    }
}

/// What the home tells, sooner or later.
fn told<T>(answers: &mpsc::Receiver<T>, step: &dyn Fn() -> bool) -> T {
    loop {
        if let Ok(answer) = answers.try_recv() {
            return answer;
        }
        if !step() {
            return answers.recv().expect("completes once");
        }
    }
}

/// Runs the suite against a fresh home.
pub fn check(home: &LogHome) {
    check_stepping(home, &|| false);
}

/// The same for a home that goes on only when `step` is called, which says whether it did.
pub fn check_stepping(home: &LogHome, step: &dyn Fn() -> bool) {
    appends_read_back_in_order(home, step);
    rules_are_kept(home);
    named_things_are_compared(home);
    side_segments_live_and_die(home, step);
    segments_are_sealed_and_trimmed(home);
    check_objects(home, OBJECT_BYTES);
    if home.rollover.is_some() {
        copies_are_completed(home);
        segments_end_when_they_are_to(home, step);
    }
}

/// Where several homes give the same appends the same places, they also end segments early at the same append.
fn segments_end_when_they_are_to(home: &LogHome, step: &dyn Fn() -> bool) {
    let Some(rollover) = &home.rollover else {
        return;
    };
    let lane = LaneId(10);
    assert!(matches!(
        rollover.end_segment(lane),
        Err(HomeError::Misuse { .. })
    ));
    let len = home.capabilities().block_alignment;
    home.appends.open_lane(lane, 5).expect("opens");
    let (tell, told) = mpsc::channel();
    home.appends.set_room_listener(
        lane,
        Box::new(move || {
            // The suite may have ended.
            let _listening = tell.send(());
        }),
    );
    let append = |fill: u8| {
        room(home, lane, len as u64, &told);
        let at = home.appends.place(lane, len as u64).expect("ensured room");
        let (done, completions) = mpsc::channel();
        let done = Box::new(move |_, result| drop(done.send(result)));
        let bytes = block(len, 1, fill);
        home.appends.append(lane, at, bytes, len, done);
        self::told(&completions, step).expect("appends");
        at
    };
    let end = || rollover.end_segment(lane).expect("ends the segment");
    // Nothing is in it yet.
    end();
    let mut places = vec![append(1)];
    assert_eq!(places, [Position::start_of(5)]);
    for fill in 2..7 {
        if fill % 2 == 0 {
            end();
            end();
        }
        let before = places[places.len() - 1];
        let at = append(fill);
        if fill % 2 == 0 {
            assert_eq!(at, Position::start_of(before.segment + 1));
        } else {
            let next = Position {
                offset: before.offset + len as u64,
                ..before
            };
            assert_eq!(at, rollover.rollover().place(next, 1, len as u64));
        }
        places.push(at);
    }
    for (&at, fill) in places.iter().zip(1..) {
        let mut into = Buffer::zeroed(len);
        assert_eq!(home.segments.read(lane, at, &mut into).expect("reads"), len);
        assert!(into.as_slice().iter().all(|&byte| byte == fill), "{at}");
    }
}

fn appends_read_back_in_order(home: &LogHome, step: &dyn Fn() -> bool) {
    let lane = LaneId(0);
    let alignment = home.capabilities().block_alignment;
    assert!(
        home.segments
            .list_segments(lane)
            .expect("an absent lane lists")
            .is_empty()
    );
    home.appends.open_lane(lane, 0).expect("opens");
    let (tell, told) = mpsc::channel();
    home.appends.set_room_listener(
        lane,
        Box::new(move || {
            // The suite may have ended.
            let _listening = tell.send(());
        }),
    );
    let (done, completions) = mpsc::channel();
    let mut places = Vec::new();
    // Enough to fill several segments of the small sizes tests use.
    for number in 0..60u8 {
        let len = alignment * (1 + usize::from(number) % 3);
        room(home, lane, len as u64, &told);
        let at = home.appends.place(lane, len as u64).expect("ensured room");
        if let Some(&(before, _, _)) = places.last() {
            assert!(at > before, "places go forward");
        }
        places.push((at, len, number));
        let bytes = block(alignment, len / alignment, number + 1);
        if let Some(inline) = &home.inline_appends
            && number % 2 == 0
        {
            inline
                .append_inline(lane, at, &bytes, len)
                .expect("appends");
        } else {
            let done = done.clone();
            home.appends.append(
                lane,
                at,
                bytes,
                len,
                Box::new(move |_, result| drop(done.send(result))),
            );
            self::told(&completions, step).expect("appends");
        }
    }
    assert!(
        places.iter().any(|(at, _, _)| at.segment > 1),
        "the suite wants segments small enough to be filled"
    );
    for &(at, len, number) in &places {
        let mut into = Buffer::zeroed(len);
        assert_eq!(home.segments.read(lane, at, &mut into).expect("reads"), len);
        assert!(
            into.as_slice().iter().all(|&byte| byte == number + 1),
            "block {number} reads back"
        );
    }
    let &(last, len, _) = places.last().expect("not empty");
    let behind = Position {
        segment: last.segment,
        offset: last.offset + len as u64,
    };
    let mut into = block(alignment, 1, 0xff);
    let count = home.segments.read(lane, behind, &mut into).expect("reads");
    assert!(
        into.as_slice()[..count].iter().all(|&byte| byte == 0),
        "zeros lie behind the last append"
    );
    assert_eq!(home.segments.list_lanes().expect("lists"), vec![lane]);
}

fn rules_are_kept(home: &LogHome) {
    let alignment = home.capabilities().block_alignment as u64;
    assert!(
        matches!(
            home.appends.open_lane(LaneId(0), 1),
            Err(NoRoom::Failed(HomeError::Misuse { .. }))
        ),
        "not fresh"
    );
    if alignment > 1 {
        assert!(
            home.appends.place(LaneId(0), alignment + 1).is_err(),
            "unaligned"
        );
    }
    assert!(
        home.appends.place(LaneId(77), alignment).is_err(),
        "not open"
    );
    let mut into = Buffer::zeroed(4096);
    let absent = home
        .segments
        .read(LaneId(0), Position::start_of(1_000_000), &mut into);
    assert_eq!(absent.expect("a missing segment is no error"), 0);
}

fn named_things_are_compared(home: &LogHome) {
    assert!(home.names.get("thing").expect("reads").is_none());
    let first = home.names.put_if_absent("thing", b"one").expect("puts");
    assert!(matches!(
        home.names.put_if_absent("thing", b"two"),
        Err(HomeError::Conflict(_))
    ));
    let second = home
        .names
        .compare_and_swap("thing", first, b"two")
        .expect("swaps");
    assert!(matches!(
        home.names.compare_and_swap("thing", first, b"three"),
        Err(HomeError::Conflict(_))
    ));
    let (bytes, tag) = home.names.get("thing").expect("reads").expect("is there");
    assert_eq!((bytes.as_slice(), tag), (b"two".as_slice(), second));
}

fn side_segments_live_and_die(home: &LogHome, step: &dyn Fn() -> bool) {
    let lane = LaneId(0);
    let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    let (done, completions) = mpsc::channel();
    // In pieces of all sizes; one that is given up leaves nothing.
    let mut writer = home.sides.begin_side_segment(lane, 7);
    let mut given_up = home.sides.begin_side_segment(lane, 8);
    let mut rest = bytes.as_slice();
    for size in [0, 1, 5000, 4096, 100_000, usize::MAX] {
        let (piece, more) = rest.split_at(rest.len().min(size));
        let mut spare = writer.spare().unwrap_or_default();
        assert!(spare.is_empty(), "a spare buffer is empty");
        spare.extend_from_slice(piece);
        writer.append(spare);
        given_up.append(piece.to_vec());
        rest = more;
    }
    drop(given_up);
    writer.finish(Box::new(move |result| drop(done.send(result))));
    told(&completions, step).expect("stores");
    assert_eq!(home.sides.list_side_segments(lane).expect("lists"), vec![7]);
    let mut into = vec![0; 1000];
    assert_eq!(
        home.sides
            .get_side_segment(lane, 7, 4000, &mut into)
            .expect("reads"),
        1000
    );
    assert_eq!(into, bytes[4000..5000]);
    assert_eq!(
        home.sides
            .get_side_segment(lane, 7, bytes.len() as u64 - 10, &mut into)
            .expect("reads"),
        10
    );
    let mut all = vec![0; bytes.len() + 1];
    assert_eq!(
        home.sides
            .get_side_segment(lane, 7, 0, &mut all)
            .expect("reads"),
        bytes.len()
    );
    assert_eq!(all[..bytes.len()], bytes);
    home.sides.remove_side_segment(lane, 7).expect("removes");
    home.sides
        .remove_side_segment(lane, 7)
        .expect("removing a missing one is fine");
    let removed = home.sides.get_side_segment(lane, 7, 0, &mut into);
    assert!(matches!(removed, Err(HomeError::Missing(_))), "{removed:?}");
}

/// Bytes of a length that differ from place to place.
fn object_bytes(len: usize, seed: u8) -> Vec<u8> {
    let pattern: Vec<u8> = (0..4093).map(|at| (at % 251) as u8 ^ seed).collect();
    let mut bytes = Vec::with_capacity(len + 1);
    for number in 0u64.. {
        let left = len - bytes.len();
        bytes.extend_from_slice(&pattern[..left.min(pattern.len())]);
        if left <= pattern.len() {
            break;
        }
        let at = bytes.len() - 8;
        bytes[at..].copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// Everything that is promised of immutable objects, but for crashes; the largest one has `largest` bytes.
pub fn check_objects(home: &LogHome, largest: usize) {
    assert_eq!(
        home.objects.list_objects().expect("lists"),
        [],
        "a fresh home"
    );
    let id = |counter| ObjectId::new(Epoch(3), counter);
    let mut into = vec![0xaa; 10];
    assert!(matches!(
        home.objects.read_object(id(1), 0, &mut into),
        Err(HomeError::Missing(_))
    ));
    home.objects
        .remove_object(id(1))
        .expect("removing a missing one is fine");
    // Of an earlier epoch, a later one, and each length that is a border somewhere.
    let of_others = [
        ObjectId::new(Epoch(2), u32::MAX),
        ObjectId::new(Epoch(4), 0),
    ];
    let lengths = [0, 1, 4095, 4096, 4097, 20_000, largest / 2 + 1, largest];
    let ids = (1..).map(id).take(lengths.len() - of_others.len());
    let mut ids: Vec<_> = ids.chain(of_others).collect();
    ids.sort_unstable();
    let info = |(&id, &len): (&ObjectId, &usize)| ObjectInfo {
        id,
        size_bytes: len as u64,
    };
    let infos: Vec<_> = ids.iter().zip(&lengths).map(info).collect();
    for (seed, info) in infos.iter().enumerate() {
        let bytes = object_bytes(info.size_bytes as usize, seed as u8);
        home.objects.put_object(info.id, &bytes).expect("puts");
        home.objects
            .put_object(info.id, &bytes)
            .expect("the same bytes again are fine");
        let mut others = bytes.clone();
        others.push(0);
        let conflict = home.objects.put_object(info.id, &others);
        let refused = match conflict {
            Err(HomeError::Conflict(_)) => true,
            // Before anybody looks.
            Err(HomeError::Unsupported(_)) => others.len() > OBJECT_BYTES_MAX,
            _ => false,
        };
        assert!(refused, "longer");
        others.truncate(bytes.len());
        if let Some(last) = others.last_mut() {
            *last ^= 1;
            let conflict = home.objects.put_object(info.id, &others);
            assert!(matches!(conflict, Err(HomeError::Conflict(_))), "different");
            let conflict = home.objects.put_object(info.id, &bytes[1..]);
            assert!(matches!(conflict, Err(HomeError::Conflict(_))), "shorter");
        }
    }
    assert_eq!(home.objects.list_objects().expect("lists"), infos);
    for (seed, info) in infos.iter().enumerate() {
        let len = info.size_bytes as usize;
        let bytes = object_bytes(len, seed as u8);
        let mut into = vec![0xaa; len + 10];
        let read = |offset: usize, into: &mut [u8]| {
            let read = home.objects.read_object(info.id, offset as u64, into);
            read.expect("reads")
        };
        assert_eq!(read(0, &mut into), len, "all of it, and no more");
        assert!(into[..len] == bytes, "a conflict changes nothing");
        for offset in [len / 3, len.saturating_sub(5)] {
            let into = &mut into[..10];
            let count = read(offset, into);
            assert_eq!(count, (len - offset).min(10));
            assert_eq!(into[..count], bytes[offset..offset + count]);
        }
        for behind in [len, len + 1, usize::MAX] {
            assert_eq!(read(behind, &mut into[..10]), 0, "nothing lies behind it");
        }
        assert_eq!(read(0, &mut []), 0, "nothing is asked for");
    }
    let too_large = vec![0; OBJECT_BYTES_MAX + 1];
    assert!(home.objects.put_object(id(99), &too_large).is_err());
    many_at_once(home);
    for (number, info) in infos.iter().enumerate() {
        home.objects.remove_object(info.id).expect("removes");
        home.objects.remove_object(info.id).expect("and again");
        assert!(matches!(
            home.objects.read_object(info.id, 0, &mut [0]),
            Err(HomeError::Missing(_))
        ));
        assert_eq!(
            home.objects.list_objects().expect("lists"),
            infos[number + 1..]
        );
    }
    // A number that was removed is free, though nobody uses one twice.
    let again = object_bytes(5000, 99);
    home.objects.put_object(id(1), &again).expect("puts");
    let mut into = vec![0; 5000];
    assert_eq!(
        home.objects
            .read_object(id(1), 0, &mut into)
            .expect("reads"),
        5000
    );
    assert!(into == again);
    home.objects.remove_object(id(1)).expect("removes");
}

/// Several threads put, read and remove; where all put the same number, one of them wins.
fn many_at_once(home: &LogHome) {
    let before = home.objects.list_objects().expect("lists");
    let contested = ObjectId::new(Epoch(9), 0);
    let of_thread = |thread: u8| {
        let bytes = object_bytes(20_000, thread);
        for counter in 0..5 {
            let own = ObjectId::new(Epoch(9), u32::from(thread) << 8 | counter);
            home.objects.put_object(own, &bytes).expect("puts");
            let mut into = vec![0; bytes.len()];
            let count = home.objects.read_object(own, 0, &mut into).expect("reads");
            assert!(count == bytes.len() && into == bytes);
            home.objects.remove_object(own).expect("removes");
        }
        match home.objects.put_object(contested, &bytes) {
            Ok(()) => Some(bytes),
            Err(HomeError::Conflict(_)) => None,
            Err(error) => panic!("{error}"),
        }
    };
    let winners: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..5)
            .map(|thread| scope.spawn(move || of_thread(thread)))
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.filter_map(|won| won.expect("no panic")).collect()
    });
    let mut into = vec![0; 20_000];
    home.objects
        .read_object(contested, 0, &mut into)
        .expect("reads");
    // Each copy may have met another one first; then nobody wins.
    if home.copy_count() == 1 || !winners.is_empty() {
        assert!(winners == [into], "one wins, and its bytes are there");
    }
    home.objects.remove_object(contested).expect("removes");
    assert_eq!(home.objects.list_objects().expect("lists"), before);
}

/// A block that [`check_trimmed_life`] has appended and not removed.
#[derive(Clone, Debug)]
pub struct AppendedBlock {
    at: Position,
    len: usize,
    fill: u8,
}

impl AppendedBlock {
    fn check(&self, home: &LogHome, lane: LaneId) {
        let mut into = Buffer::zeroed(self.len);
        let count = home.segments.read(lane, self.at, &mut into).expect("reads");
        assert_eq!(count, self.len, "{} is there", self.at);
        let same = into.as_slice().iter().all(|&byte| byte == self.fill);
        assert!(same, "{} reads back", self.at);
    }
}

/// One life of a lane whose log is truncated while it runs: segments are removed as soon as all of their appends have
/// completed, the one after that in flight. `before` is what this function gave for the life before, on the same home;
/// lives count from 0.
pub fn check_trimmed_life(
    home: &LogHome,
    step: &dyn Fn() -> bool,
    life: u8,
    before: &[AppendedBlock],
) -> Vec<AppendedBlock> {
    let lane = LaneId(3);
    let alignment = home.capabilities().block_alignment;
    let first_of = |life: u8| u64::from(life) << 32;
    let (old, first) = (first_of(life), first_of(life + 1));
    if life > 0 {
        home.segments.fence(lane, old, "the suite").expect("fences");
    }
    let listed = |from: u64| {
        let infos = home.segments.list_segments(lane).expect("lists");
        let segments = infos.iter().map(|info| info.segment);
        segments
            .filter(|&segment| segment >= from)
            .collect::<Vec<_>>()
    };
    let mut oldest = before.first().map_or(first, |kept| kept.at.segment);
    for kept in before {
        kept.check(home, lane);
        assert!(listed(0).contains(&kept.at.segment), "{}", kept.at);
    }
    let are_gone = |oldest: u64| {
        while step() {}
        // A segment that was prepared and never used may be there.
        assert!(listed(0).iter().all(|&segment| segment >= oldest));
    };
    for segment in listed(0).into_iter().filter(|&segment| segment < oldest) {
        // A crash has brought it back.
        home.segments.trim(lane, segment).expect("trims");
    }
    are_gone(oldest);
    home.appends.open_lane(lane, first).expect("opens");
    let (tell, listening) = mpsc::channel();
    // This life may have ended.
    let listener = move || {
        let _listening = tell.send(());
    };
    home.appends.set_room_listener(lane, Box::new(listener));
    let mut kept: Vec<AppendedBlock> = Vec::new();
    for number in 0..60u8 {
        let len = alignment * (1 + usize::from(number) % 3);
        let fill = number + 1;
        room(home, lane, len as u64, &listening);
        let at = home.appends.place(lane, len as u64).expect("ensured room");
        let (done, completion) = mpsc::channel();
        let done = move |_, result| drop(done.send(result));
        let bytes = block(alignment, len / alignment, fill);
        home.appends.append(lane, at, bytes, len, Box::new(done));
        if number == 30 {
            for segment in listed(0).into_iter().filter(|&segment| segment < first) {
                home.segments
                    .trim(lane, segment)
                    .expect("trims what is of the life before");
            }
            oldest = first;
        }
        let passed = kept.iter().map(|kept| kept.at.segment);
        let passed = passed.filter(|&segment| segment < at.segment);
        let passed: std::collections::BTreeSet<u64> = passed.collect();
        for &segment in &passed {
            home.segments.trim(lane, segment).expect("trims");
            home.segments.trim(lane, segment).expect("and again");
            if number > 30 {
                oldest = at.segment;
            }
        }
        kept.retain(|kept| kept.at.segment == at.segment);
        told(&completion, step).expect("appends");
        kept.push(AppendedBlock { at, len, fill });
        kept.iter().for_each(|kept| kept.check(home, lane));
    }
    let present = kept.last().expect("not empty").at.segment;
    assert!(
        present > first + 1,
        "the suite wants segments small enough to be filled"
    );
    assert_eq!(oldest, present, "the last ones were removed late enough");
    are_gone(present);
    let mut into = Buffer::zeroed(alignment);
    for segment in [old, first, present - 1] {
        let at = Position::start_of(segment);
        assert_eq!(
            home.segments.read(lane, at, &mut into).expect("reads"),
            0,
            "{at}"
        );
    }
    // Zeros lie behind the last append, or what was appended to segments that are gone: older than all that is there.
    let AppendedBlock { at, len, .. } = kept[kept.len() - 1].clone();
    let mut behind = Position {
        offset: at.offset + len as u64,
        ..at
    };
    while home.segments.read(lane, behind, &mut into).expect("reads") == alignment {
        let byte = into.as_slice()[0];
        assert!(into.as_slice().iter().all(|&other| other == byte));
        assert!(byte < kept[0].fill, "older");
        behind.offset += alignment as u64;
    }
    kept
}

/// What a copy lacks can be written into it, whole segments too.
fn copies_are_completed(home: &LogHome) {
    let lane = LaneId(9);
    let alignment = home.capabilities().block_alignment;
    let at = Position {
        segment: 3,
        offset: alignment as u64 * 4,
    };
    let keeps = |copy: &usize| match &home.copies {
        Some(copies) => copies.keeps(*copy, lane, at.segment),
        None => true,
    };
    let copy = (0..home.copy_count())
        .find(keeps)
        .expect("some copy keeps it");
    for (fill, offset) in [(1, 4), (2, 6), (1, 4)] {
        let at = Position {
            offset: alignment as u64 * offset,
            ..at
        };
        let len = alignment * 2;
        let bytes = block(alignment, 2, fill);
        let written = match &home.copies {
            Some(copies) => copies.rewrite_copy(copy, lane, at, &bytes, len),
            None => home.segments.rewrite(lane, at, &bytes, len),
        };
        written.expect("writes where nothing was");
        let mut into = Buffer::zeroed(len);
        assert_eq!(
            home.read_copy(copy, lane, at, &mut into).expect("reads"),
            len
        );
        assert_eq!(into.as_slice(), bytes.as_slice());
        // Who keeps nothing of the lane has nothing of it, and is written nothing.
        for other in (0..home.copy_count()).filter(|other| !keeps(other)) {
            if let Some(copies) = &home.copies {
                let written = copies.rewrite_copy(other, lane, at, &bytes, len);
                written.expect("writes nothing");
            }
            assert_eq!(
                home.read_copy(other, lane, at, &mut into).expect("reads"),
                0
            );
        }
    }
    let segments = home.segments.list_segments(lane).expect("lists");
    let listed = segments.iter().find(|info| info.segment == 3);
    let end = at.offset + alignment as u64 * 4;
    assert!(
        listed.is_some_and(|info| info.size_bytes >= end),
        "a segment that was made lists"
    );
    home.segments.trim(lane, 3).expect("trims");
    assert!(home.segments.list_segments(lane).expect("lists").is_empty());
}

fn segments_are_sealed_and_trimmed(home: &LogHome) {
    let lane = LaneId(0);
    let alignment = home.capabilities().block_alignment as u64;
    home.segments.trim(lane, 0).expect("trims");
    home.segments
        .trim(lane, 0)
        .expect("trimming a missing one is fine");
    assert!(
        home.segments
            .list_segments(lane)
            .expect("lists")
            .iter()
            .all(|info| info.segment != 0)
    );
    home.segments
        .seal(
            lane,
            Position {
                segment: 1,
                offset: alignment,
            },
        )
        .expect("seals");
    let info = home.segments.list_segments(lane).expect("lists");
    let sealed = info
        .iter()
        .find(|info| info.segment == 1)
        .expect("is there");
    if home.capabilities().leased {
        // Objects are as long as what was written to them: there is no unused end.
        assert!(sealed.size_bytes >= alignment);
    } else {
        assert_eq!(sealed.size_bytes, alignment);
    }
}
