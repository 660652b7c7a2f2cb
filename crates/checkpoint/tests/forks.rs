//! A directory some of whose nodes cannot be read, against a map: what is changed meanwhile counts at once, nothing of the rest is lost, and nothing that is gone comes back.

mod rig;

use logstead_checkpoint::{
    Chain, Directory, Ledger, LiveChanges, ObjectId, ObjectWriter, PageKey, PageReader, PageRef,
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

#[derive(Clone, Debug)]
enum Step {
    Apply(Vec<(u64, What)>),
    /// Of the objects with nodes there are, this one cannot be read.
    Hide(usize),
    Mend,
    /// Nothing is cached any more.
    Forget,
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
    let step = prop_oneof![
        3 => near.prop_map(Step::Apply),
        3 => far.prop_map(Step::Apply),
        2 => (0..100_usize).prop_map(Step::Hide),
        1 => Just(Step::Mend),
        2 => Just(Step::Forget),
    ];
    prop::collection::vec(step, 1..25)
}

struct World {
    memory: MemoryHome,
    home: Arc<dyn LogHome>,
    ledger: Arc<Ledger>,
    directory: Directory,
    model: BTreeMap<PageKey, Chain>,
    live: LiveChanges,
    pages: u64,
    csn: u64,
}

impl World {
    fn new() -> World {
        let memory = MemoryHome::new(64 << 20);
        let home: Arc<dyn LogHome> = Arc::new(memory.clone());
        let mut world = World {
            directory: Directory::open(Arc::clone(&home), None),
            ledger: Arc::new(Ledger::new(Epoch(2))),
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
            world.apply(&keys.map(|key| (key, What::Whole)).collect::<Vec<_>>());
        }
        world
    }

    fn page(&mut self) -> PageRef {
        self.pages += 1;
        page(self.pages)
    }

    /// Some changes; true if all are in the tree.
    fn apply(&mut self, changes: &[(u64, What)]) -> bool {
        let mut all = BTreeMap::new();
        for (number, what) in changes {
            let key = key(*number);
            if all.contains_key(&key) {
                continue;
            }
            let page = self.page();
            let older = self.model.get(&key).cloned();
            let (known, found) = match (what, older) {
                (What::Whole, _) | (What::Delta, None) => {
                    let whole = Chain::whole(&[page]).expect("a page");
                    (Some(whole.clone()), Some(whole))
                }
                (What::Delta, Some(mut known)) => {
                    let found = self.directory.get_to_change(&key).expect("found");
                    let mut found = found.expect("it is there");
                    known.push(&[page]);
                    found.push(&[page]);
                    (Some(known), Some(found))
                }
                (What::Gone, _) => (None, None),
            };
            all.insert(key.clone(), found);
            match known {
                Some(known) => self.model.insert(key, known),
                None => self.model.remove(&key),
            };
        }
        self.change(all.into_iter().collect())
    }

    /// The same with what it makes of the directory's entries.
    fn change(&mut self, changes: Vec<(PageKey, Option<Chain>)>) -> bool {
        self.csn += 1;
        let mut writer = ObjectWriter::new(Arc::clone(&self.home), Arc::clone(&self.ledger), None);
        let (csn, none) = (Csn(self.csn), BTreeSet::new());
        let applied = self.directory.apply(&changes, &none, csn, &mut writer);
        let applied = applied.expect("whatever cannot be read");
        rig::keep(writer.finish().expect("stored"));
        for (object, bytes) in &applied.live {
            *self.live.entry(*object).or_default() += bytes;
        }
        self.live.retain(|_, bytes| *bytes != 0);
        self.directory = applied.directory;
        applied.unreadable.is_none()
    }

    fn forget(&mut self) {
        let root = self.directory.root();
        self.directory = Directory::open(Arc::clone(&self.home), root);
    }

    fn hide(&mut self, which: usize) {
        let objects: Vec<_> = self
            .live
            .keys()
            .filter(|object| object.0 < 1 << 60)
            .collect();
        let object = *objects[which % objects.len()];
        self.memory.set_unreadable(Some((object, u64::MAX)));
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
        for page in self.model.values().flat_map(Chain::pages) {
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
            let objects = self.home.objects().expect("listed");
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
                Step::Apply(changes) => {
                    world.apply(&changes);
                }
                Step::Hide(which) => world.hide(which),
                Step::Mend => world.mend(),
                Step::Forget => world.forget(),
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
    world.change(vec![(key(gone), Some(chain))]);
    world.memory.set_unreadable(None);
    world.change(Vec::new());
    let chain = world
        .directory
        .get(&key(gone))
        .expect("found")
        .expect("there");
    assert!(!chain.is_below());
    assert_eq!(chain.deltas(), [page]);
    let mut reader = PageReader::new(Arc::clone(&world.home));
    let base = Chain::whole(&[chain.base()]).expect("a page");
    let read = reader.chunk(&key(gone), &base, |slot, _, _| unreachable!("row {slot}"));
    read.expect("an empty page");
    assert!(world.directory.get(&key(beside)).expect("found").is_some());
}
