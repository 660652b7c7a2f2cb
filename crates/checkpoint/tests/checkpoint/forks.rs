//! A directory some of whose nodes cannot be read, against a map: what is changed meanwhile counts at once, nothing of
//! the rest is lost, and nothing that is gone comes back.

use crate::rig;

use logstead_checkpoint::{
    CheckpointError, Directory, LiveChanges, ObjectId, ObjectIdAllocator, ObjectWriter, PageChain,
    PageKey, PageReader, PageRef,
};
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{Csn, Epoch, IndexId, TableId};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const TABLE: TableId = TableId(1);
const INDEX: IndexId = IndexId(7);
/// So many chunks, and so many tiles.
const KEYS: u64 = 600;

fn page(number: u64) -> PageRef {
    PageRef {
        object: ObjectId((1 << 60) + number % 5),
        offset: number as u32,
        len: 1_000 + number as u32 % 100,
        crc: number as u32 ^ 0x5555,
    }
}

/// The first half are chunks, the others tiles.
fn key(number: u64) -> PageKey {
    match number.checked_sub(KEYS) {
        None => rig::key(TABLE.0, number),
        Some(tile) => PageKey::Leaf {
            table: TABLE,
            index: INDEX,
            low: low(tile),
        },
    }
}

fn low(tile: u64) -> Vec<u8> {
    match tile {
        0 => Vec::new(),
        _ => tile.to_be_bytes().to_vec(),
    }
}

#[derive(Clone, Copy, Debug)]
enum What {
    Whole,
    Delta,
    Gone,
}

/// What happens after pages were looked up, and before they are changed.
#[derive(Clone, Debug)]
enum Between {
    Nothing,
    Hide(usize),
    Unhide,
}

#[derive(Clone, Debug)]
enum Step {
    Apply(Vec<(u64, What)>, Between),
    /// A checkpoint that is not published.
    Fail(Vec<(u64, What)>),
    /// Of the objects with nodes there are, this one cannot be read.
    Hide(usize),
    Mend,
    /// Nothing is cached any more, and little is from here on if it is true.
    Forget(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let what = prop_oneof![
        3 => Just(What::Delta),
        1 => Just(What::Whole),
        1 => Just(What::Gone),
    ];
    // Many of some that lie together, few of all.
    let near = (
        0..2 * KEYS,
        prop::collection::vec((0..20_u64, what.clone()), 1..20),
    )
        .prop_map(|(first, changes)| {
            let at = |(near, what)| ((first + near) % (2 * KEYS), what);
            changes.into_iter().map(at).collect()
        });
    let far = prop::collection::vec((0..2 * KEYS, what), 1..8);
    let changes = prop_oneof![near, far].boxed();
    let between = prop_oneof![
        2 => Just(Between::Nothing),
        1 => (0..100_usize).prop_map(Between::Hide),
        1 => Just(Between::Unhide),
    ];
    let step = prop_oneof![
        6 => (changes.clone(), between).prop_map(|(changes, between)| Step::Apply(changes, between)),
        1 => changes.prop_map(Step::Fail),
        2 => (0..100_usize).prop_map(Step::Hide),
        1 => Just(Step::Mend),
        2 => any::<bool>().prop_map(Step::Forget),
    ];
    prop::collection::vec(step, 1..25)
}

struct World {
    memory: MemoryHome,
    home: LogHome,
    object_ids: Arc<ObjectIdAllocator>,
    directory: Directory,
    model: BTreeMap<PageKey, PageChain>,
    live: LiveChanges,
    pages: u64,
    csn: u64,
}

impl World {
    fn new() -> World {
        let memory = MemoryHome::new(64 << 20);
        let home = LogHome::from(memory.clone());
        let mut world = World {
            directory: Directory::open(home.objects.clone(), None),
            object_ids: Arc::new(ObjectIdAllocator::new(Epoch(2))),
            memory,
            home,
            model: BTreeMap::new(),
            live: LiveChanges::new(),
            pages: 0,
            csn: 0,
        };
        // In several objects.
        for part in 0..4 {
            let keys = (0..2 * KEYS).filter(|key| key / (KEYS / 2) == part);
            let keys = keys.map(|key| (key, What::Whole)).collect::<Vec<_>>();
            assert!(world.apply(&keys));
        }
        world
    }

    fn page(&mut self) -> PageRef {
        self.pages += 1;
        page(self.pages)
    }

    /// Some changes; true if all are in the tree.
    fn apply(&mut self, changes: &[(u64, What)]) -> bool {
        let applied = self.apply_between(changes, &Between::Nothing);
        applied.expect("whatever cannot be read")
    }

    /// The same, while what can be read changes; or an error, and then nothing is changed.
    fn apply_between(
        &mut self,
        changes: &[(u64, What)],
        between: &Between,
    ) -> Result<bool, CheckpointError> {
        let (changes, model) = self.look_up(changes)?;
        match between {
            Between::Nothing => {}
            Between::Hide(which) => self.hide(*which),
            Between::Unhide => self.memory.set_unreadable(None),
        }
        let is_in_tree = self.change(changes)?;
        self.model = model;
        Ok(is_in_tree)
    }

    /// What makes changes, of the directory and the model.
    #[expect(clippy::type_complexity, reason = "as `apply` takes them")]
    fn look_up(
        &mut self,
        changes: &[(u64, What)],
    ) -> Result<
        (
            Vec<(PageKey, Option<PageChain>)>,
            BTreeMap<PageKey, PageChain>,
        ),
        CheckpointError,
    > {
        let mut all = BTreeMap::new();
        let mut model = self.model.clone();
        for (number, what) in changes {
            let key = key(*number);
            if all.contains_key(&key) {
                continue;
            }
            let page = self.page();
            let older = model.get(&key).cloned();
            let (known, found) = match (what, older) {
                (What::Whole, _) | (What::Delta, None) => {
                    let whole = PageChain::whole(&[page]).expect("a page");
                    (Some(whole.clone()), Some(whole))
                }
                (What::Delta, Some(mut known)) => {
                    let found = self.directory.get_to_change(&key)?;
                    let mut found = found.expect("it is there");
                    known.push(&[page]);
                    found.push(&[page]);
                    (Some(known), Some(found))
                }
                (What::Gone, _) => (None, None),
            };
            all.insert(key.clone(), found);
            match known {
                Some(known) => model.insert(key, known),
                None => model.remove(&key),
            };
        }
        Ok((all.into_iter().collect(), model))
    }

    /// The same with what it makes of the directory's entries.
    fn change(
        &mut self,
        changes: Vec<(PageKey, Option<PageChain>)>,
    ) -> Result<bool, CheckpointError> {
        let (directory, live, is_in_tree) = self.make(changes)?;
        for (object, bytes) in live {
            *self.live.entry(object).or_default() += bytes;
        }
        self.live.retain(|_, bytes| *bytes != 0);
        self.directory = directory;
        Ok(is_in_tree)
    }

    fn make(
        &mut self,
        changes: Vec<(PageKey, Option<PageChain>)>,
    ) -> Result<(Directory, LiveChanges, bool), CheckpointError> {
        self.csn += 1;
        let mut writer = ObjectWriter::new(
            self.home.objects.clone(),
            Arc::clone(&self.object_ids),
            None,
        );
        let (csn, none) = (Csn(self.csn), BTreeSet::new());
        let applied = self.directory.apply(&changes, &none, csn, &mut writer)?;
        rig::keep(writer.finish().expect("stored"));
        let is_in_tree = applied.unreadable.is_none();
        Ok((applied.directory, applied.live, is_in_tree))
    }

    /// A checkpoint that is not published.
    fn fail(&mut self, changes: &[(u64, What)]) -> Result<(), CheckpointError> {
        let (changes, _) = self.look_up(changes)?;
        self.make(changes).map(drop)
    }

    /// Checkpoints fail for one reason: nobody knows what lies at the root.
    fn expect_hidden_root<T>(&self, outcome: Result<T, CheckpointError>) {
        if let Err(error) = outcome {
            assert!(error.is_unreadable(), "{error}");
            let root = self.directory.root().expect("there");
            let mut byte = [0];
            let read = self.home.objects.read_object(root.object, 0, &mut byte);
            read.expect_err("the root cannot be read");
        }
    }

    fn hide_object(&self, object: ObjectId) {
        self.memory.set_unreadable(Some((object, u64::MAX)));
    }

    fn forget(&mut self) {
        let root = self.directory.root();
        self.directory = Directory::open(self.home.objects.clone(), root);
    }

    /// From here on hardly anything is cached.
    fn forget_all(&mut self) {
        let root = self.directory.root();
        self.directory = Directory::with_cache(self.home.objects.clone(), root, 0);
    }

    fn hide(&mut self, which: usize) {
        let objects: Vec<_> = self
            .live
            .keys()
            .filter(|object| object.0 < 1 << 60)
            .collect();
        // The root's as often as all others.
        let root = self.directory.root().filter(|_| which >= 50);
        let object = root.map_or(*objects[which % objects.len()], |root| root.object);
        self.hide_object(object);
    }

    /// What is told is true, and each page that is needed counts as such.
    fn check(&self) {
        for number in 0..2 * KEYS {
            let key = key(number);
            let known = self.model.get(&key);
            match self.directory.get(&key) {
                Ok(Some(chain)) if chain.is_below() => {
                    let pages: Vec<_> = known.expect("not gone").pages().collect();
                    let newer: Vec<_> = chain.deltas().iter().collect();
                    assert!(pages.ends_with(&newer), "{key}");
                }
                Ok(found) => assert_eq!(found.as_ref(), known, "{key}"),
                Err(error) => assert!(error.is_unreadable(), "{error}"),
            }
        }
        let mut model = self.model.iter();
        for entry in self.directory.scan(None) {
            match entry {
                Ok((_, chain)) if chain.is_below() => drop(model.next()),
                Ok((key, chain)) => assert_eq!(model.next(), Some((&key, &chain))),
                Err(error) => {
                    assert!(error.is_unreadable(), "{error}");
                    break;
                }
            }
        }
        let lows = self.model.keys().filter_map(|key| match key {
            PageKey::Leaf { low, .. } => Some(low),
            _ => None,
        });
        let lows = lows.collect::<Vec<_>>();
        for tile in (1..KEYS).step_by(37) {
            let entry = [&low(tile)[..], &[1; 8]].concat();
            if let Ok(found) = self.directory.tile_of(TABLE, INDEX, &entry) {
                let known = lows.iter().rev().find(|low| ***low <= entry);
                assert_eq!(found.as_ref(), known.copied());
            }
            if let Ok(found) = self.directory.divide(TABLE, INDEX, &low(tile), None) {
                let above = lows.iter().filter(|at| ***at > low(tile));
                let above: Vec<_> = above.map(|low| (*low).clone()).collect();
                match found.exact {
                    true => assert!(above.starts_with(&found.lows)),
                    false => assert!(found.lows.iter().all(|low| above.contains(low))),
                }
            }
        }
        for (object, bytes) in self.pages() {
            assert!(self.live.get(&object).is_some_and(|live| *live >= bytes));
        }
    }

    /// What the pages that are named take of each object.
    fn pages(&self) -> LiveChanges {
        let mut pages = LiveChanges::new();
        for page in self.model.values().flat_map(PageChain::pages) {
            *pages.entry(page.object).or_default() += i64::from(page.len);
        }
        pages
    }

    /// All can be read again: everything is there, in the tree, and nothing else is.
    fn mend(&mut self) {
        self.memory.set_unreadable(None);
        self.check();
        assert!(self.apply(&[]), "nothing is over the tree any more");
        self.forget();
        let found: Vec<_> = self.directory.scan(None).map(Result::unwrap).collect();
        assert!(
            found
                .iter()
                .map(|(key, chain)| (key, chain))
                .eq(&self.model)
        );
        self.check();
        let mut live = self.live.clone();
        live.retain(|object, _| object.0 >= 1 << 60);
        assert_eq!(live, self.pages());
        for (object, live) in self.live.iter().filter(|(object, _)| object.0 < 1 << 60) {
            let objects = self.home.objects.list_objects().expect("listed");
            let size = objects.iter().find(|info| info.id == *object);
            let size = size.expect("there").size_bytes as i64;
            assert!((1..=size).contains(live), "{object}: {live} of {size}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_under_a_node_that_cannot_be_read_is_not_lost(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Apply(changes, between) => {
                    let applied = world.apply_between(&changes, &between);
                    world.expect_hidden_root(applied);
                }
                Step::Fail(changes) => {
                    let failed = world.fail(&changes);
                    world.expect_hidden_root(failed);
                }
                Step::Hide(which) => world.hide(which),
                Step::Mend => world.mend(),
                Step::Forget(false) => world.forget(),
                Step::Forget(true) => world.forget_all(),
            }
            world.check();
        }
        world.mend();
    }
}

/// The case by itself: a changed leaf that cannot be read, the others can.
#[test]
fn a_change_under_a_node_that_cannot_be_read_lies_over_the_tree() {
    let mut world = World::new();
    world.forget();
    // Keys of the first object are in the leaves that it has.
    world.hide(0);
    let hidden = (0..KEYS).find(|number| world.directory.get(&key(*number)).is_err());
    let Some(hidden) = hidden else {
        // The root is there: nothing can be looked up.
        unreachable!("the newest object has the root")
    };
    assert!(!world.apply(&[(hidden, What::Delta), (hidden + 1, What::Gone)]));
    let chain = world.directory.get(&key(hidden)).expect("partly known");
    assert!(chain.expect("there").is_below());
    world.forget();
    assert_eq!(world.directory.get(&key(hidden + 1)).expect("known"), None);
    world.check();
    world.mend();
    let chain = world.directory.get(&key(hidden)).expect("known");
    assert_eq!(chain.expect("there").pages().count(), 2);
}

/// What is written behind a chunk that cannot be looked up, and turns out to have had no page, is all there is of it.
#[test]
fn a_chunk_that_had_no_page_is_what_was_written_behind_it() {
    let mut world = World::new();
    let (gone, beside) = (100, 101);
    assert!(world.apply(&[(gone, What::Gone)]));
    // The leaf stays, in the object that has it now; the root is in another one.
    let object = world.directory.root().expect("there").object;
    assert!(world.apply(&[(2 * KEYS - 1, What::Whole)]));
    world.forget();
    world.memory.set_unreadable(Some((object, u64::MAX)));
    assert!(world.directory.get(&key(beside)).is_err());
    let chain = world.directory.get_to_change(&key(gone)).expect("found");
    let mut chain = chain.expect("perhaps it is there");
    assert!(chain.is_below());
    let page = world.page();
    chain.push(&[page]);
    let changed = world.change(vec![(key(gone), Some(chain))]);
    assert!(!changed.expect("over the tree"));
    world.memory.set_unreadable(None);
    assert!(world.change(Vec::new()).expect("in the tree"));
    let chain = world
        .directory
        .get(&key(gone))
        .expect("found")
        .expect("there");
    assert!(!chain.is_below());
    assert_eq!(chain.deltas(), [page]);
    let mut reader = PageReader::new(world.home.objects.clone());
    let base = PageChain::whole(&[chain.base()]).expect("a page");
    let read = reader.chunk(&key(gone), &base, |slot, _, _| unreachable!("row {slot}"));
    read.expect("an empty page");
    assert!(world.directory.get(&key(beside)).expect("found").is_some());
}

/// A world whose root is a fork, in an object of its own; and a key of which the leaf cannot be read.
fn forked(what: What) -> (World, u64) {
    let mut world = World::new();
    let root = world.directory.root().expect("there").object;
    // The first leaves are in the first object, the root in the last.
    let nodes = world.live.keys().filter(|object| object.0 < 1 << 60);
    let object = *nodes.min().expect("some");
    assert_ne!(object, root);
    world.forget_all();
    world.hide_object(object);
    let is_hidden = |number: &u64| world.directory.get(&key(*number)).is_err();
    let hidden = (0..KEYS).find(is_hidden).expect("some leaf");
    assert!(!world.apply(&[(hidden, what)]), "over the tree");
    let fork = world.directory.root().expect("there").object;
    assert!(fork != root && fork != object);
    (world, hidden)
}

/// A fork that was known once is known as long as its directory is there: what is changed on top of it does not depend
/// on whether it can be read again just then.
#[test]
fn what_is_changed_over_a_fork_does_not_depend_on_reading_it_again() {
    let (mut world, hidden) = forked(What::Whole);
    // More forks than anybody would keep, of checkpoints that fail.
    for _ in 0..8 {
        world.fail(&[(hidden + 1, What::Whole)]).expect("made");
    }
    world.hide_object(world.directory.root().expect("there").object);
    let applied = world.apply_between(&[(hidden, What::Delta)], &Between::Unhide);
    assert!(applied.expect("changed"));
    world.mend();
    assert_eq!(world.model[&key(hidden)].pages().count(), 2);
}

/// While it is not known what a fork says nothing is changed, neither now nor when the fork can be read in between.
#[test]
fn nothing_is_changed_while_a_fork_cannot_be_read() {
    let (mut world, hidden) = forked(What::Whole);
    world.forget_all();
    world.hide_object(world.directory.root().expect("there").object);
    for between in [Between::Nothing, Between::Unhide] {
        let applied = world.apply_between(&[(hidden, What::Delta)], &between);
        assert!(applied.expect_err("not known").is_unreadable());
    }
    let applied = world.apply_between(&[], &Between::Nothing);
    assert!(applied.expect_err("not known").is_unreadable());
    world.memory.set_unreadable(None);
    assert!(world.apply(&[(hidden, What::Delta)]));
    world.mend();
}

/// What a fork says is gone does not come back below what is written later, neither while the fork cannot be read nor
/// by who has not asked it.
#[test]
fn what_a_fork_says_is_gone_does_not_come_back_below_a_delta() {
    let (mut world, gone) = forked(What::Gone);
    let beside = world.directory.get_to_change(&key(gone + 1));
    let mut below = beside.expect("hidden").expect("perhaps there");
    assert!(below.is_below());
    below.push(&[page(9_999)]);
    let fork = world.directory.root().expect("there").object;
    world.forget_all();
    world.hide_object(fork);
    let found = world.directory.get_to_change(&key(gone));
    assert!(found.expect_err("not known").is_unreadable());
    let changed = world.change(vec![(key(gone), Some(below.clone()))]);
    assert!(changed.expect_err("not known").is_unreadable());
    world.memory.set_unreadable(None);
    let changed = world.change(vec![(key(gone), Some(below))]);
    assert!(matches!(changed, Err(CheckpointError::Misuse(_))));
    assert_eq!(world.directory.get(&key(gone)).expect("known"), None);
    world.mend();
}
