//! Groups of homes in memory: what lies where, take-overs that race with changes of the groups, and what each kind of
//! user sees of a volume that is divided.

use super::*;
use crate::placement::Placement;
use crate::{
    Availability, Buffer, Copies, ImmutableObjects, LaneAppends, LaneSegments, LogHome, MemoryHome,
    NamedValues, ObjectId, ObjectReader, Opener, Position, ReplicatedOptions, RoomRequest,
    SegmentInfo, SideSegments, Source, Tag, conformance,
};
use logstead_env::Env;
use std::sync::mpsc;

/// What lies in each child under the name of a manifest.
const MANIFEST: &str = "manifest";
const MEMBERS: usize = 3;

/// A volume's places: three for each of three groups, of which it may have fewer.
#[derive(Clone)]
struct Places {
    homes: Vec<MemoryHome>,
    fences: Arc<Mutex<Vec<(usize, LaneId, u64)>>>,
}

/// Notes fences.
struct Fenced {
    inner: MemoryHome,
    place: usize,
    fences: Arc<Mutex<Vec<(usize, LaneId, u64)>>>,
}

impl LaneSegments for Fenced {
    fn fence(&self, lane: LaneId, first_segment: u64, by: &str) -> Result<(), HomeError> {
        self.fences.lock().push((self.place, lane, first_segment));
        self.inner.fence(lane, first_segment, by)
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        self.inner.list_lanes()
    }

    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        self.inner.list_segments(lane)
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        self.inner.read(lane, at, into)
    }

    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        self.inner.rewrite(lane, at, block, len)
    }

    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        self.inner.seal(lane, at)
    }

    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        self.inner.trim(lane, segment)
    }
}

impl Places {
    fn new() -> Places {
        Places::of([64 << 10; 3])
    }

    /// With segments of so many bytes, by group.
    fn of(segment_bytes: [u64; 3]) -> Places {
        let home = |place: usize| MemoryHome::new(segment_bytes[place / MEMBERS]);
        Places {
            homes: (0..3 * MEMBERS).map(home).collect(),
            fences: Arc::default(),
        }
    }

    fn opener(&self, place: usize) -> Opener {
        let (home, fences) = (self.homes[place].clone(), Arc::clone(&self.fences));
        Arc::new(move || {
            // Who is away does not open.
            home.get(MANIFEST)?;
            let segments = Fenced {
                inner: home.clone(),
                place,
                fences: Arc::clone(&fences),
            };
            Ok(LogHome {
                segments: Arc::new(segments),
                ..LogHome::from(home.clone())
            })
        })
    }

    fn open_nodes(
        &self,
        urls: &[String],
        purpose: OpenPurpose,
        threads: bool,
    ) -> Result<ReplicatedHome, HomeError> {
        let place_of = |url: &str| url.parse::<usize>().expect("a place");
        let source = |url: &String| Source {
            url: url.clone(),
            open: self.opener(place_of(url)),
        };
        let options = ReplicatedOptions {
            ack: crate::WriteConcern::Majority,
            purpose,
            threads,
            return_pause_min: Duration::ZERO,
            ..ReplicatedOptions::default()
        };
        let places = self.clone();
        let by_url = Arc::new(move |url: &str| places.opener(place_of(url)));
        let sources = urls.iter().map(source).collect();
        ReplicatedHome::open_members(sources, by_url, &Env::real(), options)
    }

    fn group(&self, group: usize, purpose: OpenPurpose) -> ReplicatedHome {
        let places = group * MEMBERS..(group + 1) * MEMBERS;
        let urls: Vec<String> = places.map(|place| place.to_string()).collect();
        self.open_nodes(&urls, purpose, false).expect("opens")
    }

    fn add(&self, group: usize) -> Result<u32, HomeError> {
        let first = self.group(0, OpenPurpose::Log);
        add_group(&first, &self.group(group, OpenPurpose::Log))
    }

    fn open_as(&self, purpose: OpenPurpose, threads: bool) -> Result<GroupedHome, HomeError> {
        let places = self.clone();
        let opener: GroupOpener =
            Arc::new(move |_, nodes, purpose| places.open_nodes(nodes, purpose, threads));
        let urls: Vec<String> = (0..MEMBERS).map(|place| place.to_string()).collect();
        let first = self.open_nodes(&urls, purpose, threads)?;
        GroupedHome::open(first, purpose, opener)
    }

    fn open(&self) -> GroupedHome {
        self.open_as(OpenPurpose::Log, false).expect("opens")
    }

    fn record(&self) -> Option<Placement> {
        let first = self.group(0, OpenPurpose::Reading);
        let names = first.all_names().expect("reads");
        let record = names.get(RECORD)?;
        Some(Placement::decode(&record.0).expect("a record"))
    }

    /// What the register of a group says of who may change it.
    fn term(&self, group: usize) -> u64 {
        let group = self.group(group, OpenPurpose::Reading);
        let (bytes, _) = group.get(OWNERSHIP).expect("reads").expect("is there");
        Ownership::decode(&bytes).expect("is one").term
    }

    fn is_away(&self, place: usize, away: bool) {
        self.homes[place].set_presence(match away {
            true => Availability::Refusing,
            false => Availability::Up,
        });
    }

    /// Which groups have something that `has` looks for.
    fn groups_with(&self, has: &dyn Fn(&MemoryHome) -> bool) -> Vec<usize> {
        let of = |group: usize| &self.homes[group * MEMBERS..(group + 1) * MEMBERS];
        (0..3).filter(|&group| of(group).iter().any(has)).collect()
    }
}

/// A volume of two groups, from an epoch on.
fn divided_from(epoch: u32) -> (Places, GroupedHome) {
    let places = Places::new();
    places.add(1).expect("adds");
    let home = places.open();
    home.settle(Epoch(epoch - 1)).expect("settles");
    (places, home)
}

const fn segment(epoch: u64) -> u64 {
    epoch << 32
}

fn lease(home: &GroupedHome, expected: Option<Tag>, what: &str) -> Tag {
    let bytes = format!("logstead manifest of {what}").into_bytes();
    let stored = match expected {
        None => home.put_if_absent(MANIFEST, &bytes),
        Some(tag) => home.compare_and_swap(MANIFEST, tag, &bytes),
    };
    stored.expect("takes the lease")
}

fn lease_tag(home: &GroupedHome) -> Tag {
    home.get(MANIFEST).expect("reads").expect("is there").1
}

fn append(home: &GroupedHome, lane: u16, fill: u8) -> (Position, mpsc::Receiver<bool>) {
    let lane = LaneId(lane);
    home.ensure_room(lane, 4096, &mut RoomRequest::default())
        .expect("room");
    let at = home.place(lane, 4096).expect("a place");
    let mut block = Buffer::zeroed(4096);
    block.as_mut_slice().fill(fill);
    let (tell, told) = mpsc::channel();
    let done = move |_, result: Result<(), HomeError>| {
        tell.send(result.is_ok()).expect("somebody listens");
    };
    let done = Box::new(done);
    home.append(lane, at, block, 4096, done);
    (at, told)
}

fn reads(home: &dyn LaneSegments, lane: u16, at: Position) -> Option<u8> {
    let mut into = Buffer::zeroed(4096);
    let count = home.read(LaneId(lane), at, &mut into).expect("reads");
    (count == 4096).then(|| into.as_slice()[0])
}

#[test]
fn conforms_when_it_is_divided() {
    for threads in [false, true] {
        let places = Places::new();
        places.add(1).expect("adds");
        places.add(2).expect("adds");
        // The suite's lanes are of epoch 0.
        let first = places.group(0, OpenPurpose::Log);
        let divided = |present: Option<&[u8]>| {
            let mut placement = decoded(present.expect("is there"))?;
            placement.begin(Epoch(0), &[0, 1, 2]);
            Ok(Some(placement.encode()))
        };
        first.edit_named(RECORD, false, &divided).expect("edits");
        drop(first);
        let opened = || LogHome::from(places.open_as(OpenPurpose::Log, threads).expect("opens"));
        conformance::check(&opened());
        for lane in [0u16, 10] {
            let has = |home: &MemoryHome| {
                let listed = home.list_segments(LaneId(lane)).expect("lists");
                !listed.is_empty()
            };
            assert_eq!(places.groups_with(&has), [usize::from(lane) % 3]);
        }
        let mut kept = Vec::new();
        for life in 0..3 {
            kept = conformance::check_trimmed_life(&opened(), &|| false, life, &kept);
        }
    }
}

#[test]
fn what_belongs_to_an_epoch_lies_in_the_groups_of_its_era() {
    let (places, home) = divided_from(5);
    for (epoch, lane, group) in [(4, 1, 0), (5, 0, 0), (5, 1, 1), (5, 2, 0), (6, 3, 1)] {
        // A lane is opened once in a life.
        home.lanes.write().clear();
        let at = Position::start_of(segment(epoch));
        home.open_lane(LaneId(lane), at.segment).expect("opens");
        assert_eq!(append(&home, lane, 7).1.try_recv(), Ok(true));
        let has = |home: &MemoryHome| reads(home, lane, at) == Some(7);
        assert_eq!(places.groups_with(&has), [group], "{epoch} {lane}");
        assert_eq!(reads(&home, lane, at), Some(7));
        let listed = home.list_segments(LaneId(lane)).expect("lists");
        assert!(listed.iter().any(|info| info.segment == at.segment));
        let id = at.segment | 9;
        let mut side = home.begin_side_segment(LaneId(lane), id);
        side.append(b"large".to_vec());
        side.finish(Box::new(|stored| stored.expect("stores")));
        let has = |home: &MemoryHome| {
            let sides = home.list_side_segments(LaneId(lane)).expect("lists");
            sides.contains(&id)
        };
        assert_eq!(places.groups_with(&has), [group], "{epoch} {lane}");
        let mut into = [0; 5];
        let got = home.get_side_segment(LaneId(lane), id, 0, &mut into);
        assert_eq!((got.expect("reads"), &into), (5, b"large"));
    }
    let lanes = home.list_lanes().expect("lists");
    assert_eq!(lanes, [0, 1, 2, 3].map(LaneId));
    for (epoch, counter, group) in [(4, 1, 0), (5, 0, 0), (5, 1, 1), (9, 7, 1)] {
        let id = ObjectId::new(Epoch(epoch), counter);
        home.put_object(id, b"page").expect("puts");
        let has = |home: &MemoryHome| home.read_object(id, 0, &mut [0]).is_ok();
        assert_eq!(places.groups_with(&has), [group], "{id}");
        assert_eq!(home.read_object(id, 0, &mut [0; 9]).expect("reads"), 4);
    }
    let listed = home.list_objects().expect("lists");
    assert_eq!(listed.len(), 4);
    assert!(listed.is_sorted());
    for info in listed {
        home.remove_object(info.id).expect("removes");
    }
    assert!(home.list_objects().expect("lists").is_empty());
}

/// A copy of another group has nothing, is written nothing, and says nothing of what is behind or there.
#[test]
fn copies_are_the_groups_one_after_the_other() {
    let (places, home) = divided_from(5);
    home.open_lane(LaneId(1), segment(5)).expect("opens");
    let (at, told) = append(&home, 1, 3);
    assert_eq!(told.try_recv(), Ok(true));
    let count = Copies::count(&home);
    let groups = home.groups();
    let of_first = Copies::count(groups.first().home.as_ref());
    assert_eq!(count, 2 * of_first);
    for copy in 0..count {
        let is_here = copy >= of_first;
        assert_eq!(home.keeps(copy, LaneId(1), at.segment), is_here);
        let mut into = Buffer::zeroed(4096);
        let got = home
            .read_copy(copy, LaneId(1), at, &mut into)
            .expect("reads");
        let has = is_here && home.has_copy(copy);
        assert_eq!(got, if has { 4096 } else { 0 }, "{copy}");
        assert_eq!(home.has_copy(copy), copy % of_first < MEMBERS);
    }
    drop(home);
    // One of group 1 was emptied of what it had: it comes back as a copy that is behind.
    places.is_away(4, true);
    let home = places.open();
    home.settle(Epoch(5)).expect("settles without it");
    drop(home);
    places.is_away(4, false);
    let home = places.open();
    home.take().expect("takes");
    assert_eq!(home.copies_behind(), [of_first + 1]);
}

#[test]
fn a_start_fences_in_every_group_that_an_era_names() {
    let (places, home) = divided_from(5);
    places.add(2).expect("adds");
    drop(home);
    places.fences.lock().clear();
    let home = places.open();
    home.fence(LaneId(0), segment(5), "a test").expect("fences");
    let mut fences = places.fences.lock().clone();
    fences.sort_unstable();
    // Group 2 is to be used by a later epoch: nobody has ever written there.
    let expected: Vec<_> = (0..6).map(|place| (place, LaneId(0), segment(5))).collect();
    assert_eq!(fences, expected);
}

/// What a start says of the next epoch counts only if it comes to its mark.
#[test]
fn the_epoch_is_divided_by_who_has_the_lease_and_before_its_mark() {
    let places = Places::new();
    let plain = places.open();
    let tag = lease(&plain, None, "the first");
    plain.settle(Epoch(0)).expect("settles");
    assert_eq!(places.add(1).expect("adds"), 1);
    assert!(places.record().expect("is there").is_undivided());
    // Of two starts the first is overtaken when it has the lease, and goes on at each of its steps.
    let first = places.open();
    let tag = lease(&first, Some(tag), "a start that is overtaken");
    let second = places.open();
    let tag = lease(&second, Some(tag), "its overtaker");
    second.take().expect("takes");
    let term = places.term(1);
    assert!(matches!(first.take(), Err(HomeError::Fenced(_))));
    assert_eq!(places.term(1), term, "it has drawn none");
    second.settle(Epoch(1)).expect("settles");
    let record = places.record().expect("is there");
    assert_eq!(record.groups_of(Epoch(2)), [0, 1]);
    assert_eq!(record.groups_of(Epoch(1)), [0]);
    assert!(matches!(first.settle(Epoch(1)), Err(HomeError::Fenced(_))));
    // The second is overtaken before its mark: epoch 2 did not begin, and is divided anew.
    places.add(2).expect("adds");
    let third = places.open();
    let _tag = lease(&third, Some(tag), "the third");
    third.settle(Epoch(1)).expect("settles");
    assert_eq!(
        places.record().expect("there").groups_of(Epoch(2)),
        [0, 1, 2]
    );
    assert!(matches!(second.settle(Epoch(1)), Err(HomeError::Fenced(_))));
    assert!(matches!(second.divide(Epoch(2)), Err(HomeError::Fenced(_))));
    assert_eq!(
        places.record().expect("there").groups_of(Epoch(2)),
        [0, 1, 2]
    );
}

/// A start that has drawn its term and is overtaken before it writes it into a group.
#[test]
fn an_earlier_term_never_replaces_a_later_one() {
    let (places, home) = divided_from(5);
    let tag = lease(&home, None, "the first");
    drop(home);
    let overtaken = places.open();
    let tag = lease(&overtaken, Some(tag), "overtaken");
    let groups = overtaken.groups();
    let drawn = groups.placement.term + 1;
    let overtaker = places.open();
    let _tag = lease(&overtaker, Some(tag), "its overtaker");
    overtaker.take().expect("takes");
    let term = places.term(1);
    let group = groups.group(1).expect("is open");
    assert!(term >= drawn);
    let late = super::lease::take_group(group, &groups, term - 1);
    assert!(matches!(late, Err(HomeError::Fenced(_))));
    assert_eq!(places.term(1), term);
    // And who has the later one is still the one who may change the group.
    overtaker.settle(Epoch(5)).expect("settles");
    // A group whose term is later than the lease's would be nobody's.
    assert!(matches!(
        group.home.copies_completed(Epoch(5)),
        Err(HomeError::Fenced(_))
    ));
}

/// A start that was opened when there was one group, and paused until the volume was divided.
#[test]
fn who_knows_nothing_of_groups_does_not_serve_a_volume_that_is_divided() {
    let places = Places::new();
    let plain = places.group(0, OpenPurpose::Log);
    let paused = [
        places.group(0, OpenPurpose::Log),
        places.group(0, OpenPurpose::Log),
    ];
    places.add(1).expect("adds");
    // That a group is wanted changes nothing for who has one.
    plain
        .fence(LaneId(0), segment(1), "a test")
        .expect("fences");
    plain.copies_completed(Epoch(1)).expect("settles");
    drop(plain);
    let grouped = places.open();
    grouped.settle(Epoch(1)).expect("settles");
    let fenced = paused[0].fence(LaneId(0), segment(1), "a test");
    assert!(matches!(fenced, Err(HomeError::Conflict(_))), "{fenced:?}");
    let settled = paused[1].copies_completed(Epoch(1));
    assert!(
        matches!(settled, Err(HomeError::Conflict(_))),
        "{settled:?}"
    );
    assert!(has_several(&places.group(0, OpenPurpose::Reading)).expect("reads"));
    // A version that knows no groups does not know these registers.
    for home in &places.homes[..MEMBERS] {
        let (record, _) = home.get(MANIFEST).expect("reads").expect("is there");
        assert!(record.starts_with(b"logstead replica 2\n"));
    }
    for home in &places.homes[MEMBERS..2 * MEMBERS] {
        let (record, _) = home.get(MANIFEST).expect("reads").expect("is there");
        assert!(record.starts_with(b"logstead replica 1\n"));
    }
}

#[test]
fn appends_of_a_group_without_a_quorum_wait_and_others_do_not() {
    let (places, home) = divided_from(1);
    home.open_lane(LaneId(0), segment(1)).expect("opens");
    home.open_lane(LaneId(1), segment(1)).expect("opens");
    for place in [3, 5] {
        places.is_away(place, true);
    }
    let waiting: Vec<_> = (1..4).map(|fill| append(&home, 1, fill)).collect();
    let (_, told) = append(&home, 0, 9);
    assert_eq!(told.try_recv(), Ok(true));
    assert!(waiting.iter().all(|(_, told)| told.try_recv().is_err()));
    let error = home.list_objects().expect_err("group 1 cannot say");
    assert!(error.to_string().starts_with("group 1: "), "{error}");
    let object = ObjectId::new(Epoch(1), 1);
    assert!(home.put_object(object, b"page").is_err());
    places.is_away(5, false);
    while home.bring_children_back() && waiting[2].1.try_recv().is_err() {}
    for (fill, (at, told)) in (1..).zip(&waiting[..2]) {
        assert_eq!(told.try_recv(), Ok(true), "{fill}");
        assert_eq!(reads(&home, 1, *at), Some(fill));
    }
    home.put_object(object, b"page").expect("puts");
    assert_eq!(home.list_objects().expect("lists").len(), 1);
}

/// One of each is away at a time, another one in each.
#[test]
fn each_group_does_without_a_member_of_its_own_and_takes_it_back() {
    let (places, home) = divided_from(1);
    home.open_lane(LaneId(0), segment(1)).expect("opens");
    home.open_lane(LaneId(1), segment(1)).expect("opens");
    let mut written = Vec::new();
    for (round, away) in [[0, 4], [1, 5], [2, 3]].into_iter().enumerate() {
        for place in away {
            places.is_away(place, true);
        }
        for lane in 0..2 {
            let fill = 10 * (round as u8 + 1) + lane as u8;
            let (at, told) = append(&home, lane, fill);
            assert_eq!(told.try_recv(), Ok(true), "{round} {lane}");
            written.push((lane, at, fill));
        }
        for place in away {
            places.is_away(place, false);
        }
        while home.bring_children_back() {}
    }
    for (lane, at, fill) in written {
        let has = |home: &&MemoryHome| reads(*home, lane, at) == Some(fill);
        let of_group = usize::from(lane) * MEMBERS..usize::from(lane + 1) * MEMBERS;
        let copies = places.homes[of_group].iter().filter(has).count();
        assert_eq!(copies, MEMBERS, "{lane} {at}");
    }
}

/// There may be more groups than lanes: what comes to a group that has none is given to a member that was away, too.
#[test]
fn a_group_without_a_lane_completes_its_members() {
    let (places, home) = divided_from(1);
    home.open_lane(LaneId(0), segment(1)).expect("opens");
    let id = ObjectId::new(Epoch(1), 1);
    places.is_away(3, true);
    home.put_object(id, b"of group 1").expect("stores");
    places.is_away(3, false);
    while home.bring_children_back() {}
    let has = |home: &&MemoryHome| home.read_object(id, 0, &mut [0]).is_ok();
    let having: Vec<usize> = places
        .homes
        .iter()
        .map(|home| usize::from(has(&home)))
        .collect();
    assert_eq!(having, [0, 0, 0, 1, 1, 1, 0, 0, 0]);
}

/// A server has opened a group that was forgotten before it began to use it, and another one has its number.
#[test]
fn a_group_that_was_forgotten_is_not_taken_for_the_one_with_its_number() {
    let places = Places::new();
    places.add(1).expect("adds");
    let waiting = places.open();
    forget_group(&places.group(0, OpenPurpose::Log), 1).expect("forgets");
    assert_eq!(places.add(2).expect("adds"), 1);
    let error = waiting
        .settle(Epoch(0))
        .expect_err("is another")
        .to_string();
    assert!(error.contains("another one now"), "{error}");
    assert!(places.record().expect("there").is_undivided());
    let next = places.open();
    next.settle(Epoch(0)).expect("settles");
    assert_eq!(places.record().expect("there").groups_of(Epoch(1)), [0, 1]);
}

/// One is away when an object is stored, and nobody marks it. Then starts lose one of the other two each, and the first
/// of them ends when it has taken the group: what a holder has is not taken for what was removed.
#[test]
fn a_start_that_ends_early_says_of_no_member_that_it_lacks_something() {
    let (places, home) = divided_from(1);
    let tag = lease(&home, None, "the first");
    let object = ObjectId::new(Epoch(1), 1);
    places.is_away(5, true);
    home.put_object(object, b"page").expect("puts");
    drop(home);
    let starts = [(3, false), (4, true)];
    let mut tag = Some(tag);
    for (away, settles) in starts {
        for place in 3..6 {
            places.is_away(place, false);
        }
        let home = places.open();
        places.is_away(away, true);
        home.list_objects().expect("notices it");
        tag = Some(lease(&home, tag, "a start"));
        home.fence(LaneId(1), segment(1), "a test").expect("fences");
        if !settles {
            continue;
        }
        home.settle(Epoch(1)).expect("settles");
        places.is_away(away, false);
        while home.bring_children_back() {}
    }
    for place in 3..6 {
        let read = places.homes[place].read_object(object, 0, &mut [0; 4]);
        assert_eq!(read.expect("is there"), 4, "{place}");
    }
}

/// Who has asked what the home can goes by that: a group that takes less is left to the next start.
#[test]
fn a_group_that_takes_less_is_used_by_a_start_that_knows_it() {
    let places = Places::of([64 << 10, 64 << 10, 32 << 10]);
    places.add(1).expect("adds");
    let home = places.open();
    let room = home.capabilities().room_size_bytes_max;
    places.add(2).expect("adds");
    home.settle(Epoch(0)).expect("settles");
    assert_eq!(home.capabilities().room_size_bytes_max, room);
    assert_eq!(places.record().expect("there").groups_of(Epoch(1)), [0, 1]);
    drop(home);
    let home = places.open();
    assert!(home.capabilities().room_size_bytes_max < room);
    home.settle(Epoch(1)).expect("settles");
    assert_eq!(
        places.record().expect("there").groups_of(Epoch(2)),
        [0, 1, 2]
    );
}

/// What it reads after a named value, it reads by the groups and members of that moment.
#[test]
fn a_reader_follows_groups_and_their_members() {
    let places = Places::new();
    let home = places.open();
    let _tag = lease(&home, None, "the first");
    home.settle(Epoch(0)).expect("settles");
    let reader = places.open_as(OpenPurpose::Reading, false).expect("opens");
    drop(home);
    places.add(1).expect("adds");
    reader.get(MANIFEST).expect("reads");
    assert_eq!(reader.groups().open.len(), 1, "nothing lies there yet");
    let home = places.open();
    let tag = lease_tag(&home);
    lease(&home, Some(tag), "the second");
    home.settle(Epoch(1)).expect("settles");
    home.open_lane(LaneId(1), segment(2)).expect("opens");
    let (at, told) = append(&home, 1, 5);
    assert_eq!(told.try_recv(), Ok(true));
    reader.get(MANIFEST).expect("reads");
    assert_eq!(reader.groups().open.len(), 2);
    assert_eq!(reads(&reader, 1, at), Some(5));
    // Two members of group 1 go for two others, one after the other: those of before are no quorum of those now.
    for (old, new) in [(3, 6), (4, 7)] {
        let group = home.groups().open[1].clone();
        let wanted = |present: &[String]| {
            let swap = |url: &String| match url.parse() == Ok(old) {
                true => new.to_string(),
                false => url.clone(),
            };
            Ok(present.iter().map(swap).collect())
        };
        group.home.edit_members(&wanted).expect("edits");
        for _ in 0..50 {
            home.bring_children_back();
        }
        let members = group.home.member_urls();
        assert!(members.contains(&new.to_string()) && !members.contains(&old.to_string()));
        reader.get(MANIFEST).expect("reads");
    }
    let (at, told) = append(&home, 1, 6);
    assert_eq!(told.try_recv(), Ok(true));
    places.is_away(5, true);
    reader.get(MANIFEST).expect("reads");
    assert_eq!(reads(&reader, 1, at), Some(6));
    // The next start looks for the group where it is now.
    drop(home);
    places.is_away(5, false);
    let home = places.open();
    let tag = lease_tag(&home);
    lease(&home, Some(tag), "the third");
    home.settle(Epoch(2)).expect("settles");
    let mut nodes = places.record().expect("is there").groups[&1].nodes.clone();
    nodes.sort_unstable();
    assert_eq!(nodes, ["5", "6", "7"]);
}

#[test]
fn what_cannot_be_a_group_says_why() {
    let places = Places::new();
    assert_eq!(places.add(1).expect("adds"), 1);
    let first = places.group(0, OpenPurpose::Log);
    for (added, why) in [(0, "group 0"), (1, "group 1 of the volume already")] {
        let error = add_group(&first, &places.group(added, OpenPurpose::Log));
        let error = error.expect_err("cannot be").to_string();
        assert!(error.contains(why), "{error}");
    }
    // A log of its own.
    let own = places.group(2, OpenPurpose::Log);
    own.put_if_absent(MANIFEST, b"logstead manifest of another")
        .expect("puts");
    let error = add_group(&first, &own).expect_err("cannot be").to_string();
    assert!(error.contains("a log of their own"), "{error}");
    // Nodes of another group than the first.
    let second = places.group(1, OpenPurpose::Reading);
    let error = volume_groups(&second).expect_err("is no first").to_string();
    assert!(
        error.contains("those of group 1") && error.contains('0'),
        "{error}"
    );
    assert!(has_several(&second).is_err());
    // What nobody has used yet is forgotten, and may come again.
    forget_group(&first, 1).expect("forgets");
    assert_eq!(volume_groups(&first).expect("lists").len(), 1);
    assert_eq!(places.add(1).expect("adds"), 1);
    let home = places.open();
    home.settle(Epoch(0)).expect("settles");
    let error = forget_group(&first, 1).expect_err("is in use").to_string();
    assert!(error.contains("a server has begun to use it"), "{error}");
    let groups = volume_groups(&first).expect("lists");
    assert!(groups[1].in_force && groups[1].wanted && groups[1].nodes == ["3", "4", "5"]);
}

/// A group that is added and does not answer keeps no server from starting: it is used by the next one.
#[test]
fn a_start_does_without_a_group_that_is_only_wanted() {
    let places = Places::new();
    places.add(1).expect("adds");
    for place in 3..5 {
        places.is_away(place, true);
    }
    let home = places.open();
    home.settle(Epoch(0)).expect("settles");
    assert!(places.record().expect("there").is_undivided());
    drop(home);
    for place in 3..5 {
        places.is_away(place, false);
    }
    let home = places.open();
    home.settle(Epoch(1)).expect("settles");
    assert_eq!(places.record().expect("there").groups_of(Epoch(2)), [0, 1]);
    drop(home);
    // Now something may lie there.
    for place in 3..5 {
        places.is_away(place, true);
    }
    let error = places.open_as(OpenPurpose::Log, false).map(drop);
    let error = error.expect_err("one of three answers").to_string();
    assert!(error.contains("group 1: "), "{error}");
}
