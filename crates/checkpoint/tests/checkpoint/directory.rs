//! The directory against a map: any changes, any crash of the cache, any object that is to be left.

use crate::rig;

use logstead_checkpoint::{
    Directory, DirectoryUpdate, LiveChanges, ObjectId, ObjectIdAllocator, ObjectWriter, PageChain,
    PageKey, PageRef,
};
use logstead_home::LogHome;
use logstead_types::{Csn, Epoch, IndexId, TableId};
use proptest::prelude::*;
use rig::{home, key};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn page(number: u64) -> PageRef {
    PageRef {
        object: ObjectId((1 << 60) + number % 5),
        offset: number as u32,
        len: 1_000 + number as u32 % 100,
        crc: number as u32 ^ 0x5555,
    }
}

fn chain(number: u64, deltas: u64) -> PageChain {
    let mut chain = PageChain::whole(&[page(number)]).unwrap();
    for delta in 0..deltas {
        chain.push(&[page(number * 31 + delta)]);
    }
    chain
}

struct Tree {
    home: LogHome,
    object_ids: Arc<ObjectIdAllocator>,
    directory: Directory,
    model: BTreeMap<PageKey, PageChain>,
    live: LiveChanges,
    csn: u64,
    cache_bytes: usize,
}

impl Tree {
    fn new(cache_bytes: usize) -> Tree {
        let home = home();
        Tree {
            object_ids: Arc::new(ObjectIdAllocator::new(Epoch(2))),
            directory: Directory::with_cache(home.objects.clone(), None, cache_bytes),
            home,
            model: BTreeMap::new(),
            live: LiveChanges::new(),
            csn: 0,
            cache_bytes,
        }
    }

    fn apply(
        &mut self,
        changes: BTreeMap<PageKey, Option<PageChain>>,
        leave: &BTreeSet<ObjectId>,
    ) -> DirectoryUpdate {
        self.csn += 1;
        let mut writer = ObjectWriter::new(
            self.home.objects.clone(),
            Arc::clone(&self.object_ids),
            None,
        );
        let changes: Vec<_> = changes.into_iter().collect();
        let applied = self
            .directory
            .apply(&changes, leave, Csn(self.csn), &mut writer)
            .unwrap();
        rig::keep(writer.finish().unwrap());
        for (key, chain) in changes {
            match chain {
                Some(chain) => self.model.insert(key, chain),
                None => self.model.remove(&key),
            };
        }
        for (object, bytes) in &applied.live {
            *self.live.entry(*object).or_default() += bytes;
        }
        self.live.retain(|_, bytes| *bytes != 0);
        self.directory = applied.directory.clone();
        applied
    }

    /// Everything is there, cached or read again.
    fn check(&self) {
        let cold = Directory::with_cache(
            self.home.objects.clone(),
            self.directory.root(),
            self.cache_bytes,
        );
        for directory in [&self.directory, &cold] {
            let found: Vec<_> = directory.scan(None).map(Result::unwrap).collect();
            assert!(
                found
                    .iter()
                    .map(|(key, chain)| (key, chain))
                    .eq(&self.model)
            );
            for (key, chain) in &self.model {
                assert_eq!(directory.get(key).unwrap().as_ref(), Some(chain));
            }
            let from = key(1, 500);
            let found: Vec<_> = directory.scan(Some(&from)).map(Result::unwrap).collect();
            assert!(
                found
                    .iter()
                    .map(|(key, chain)| (key, chain))
                    .eq(self.model.range(from..))
            );
        }
        let mut pages = LiveChanges::new();
        for page in self.model.values().flat_map(PageChain::pages) {
            *pages.entry(page.object).or_default() += i64::from(page.len);
        }
        let counted: LiveChanges = self
            .live
            .iter()
            .filter(|(object, _)| object.0 >= 1 << 60)
            .map(|(object, bytes)| (*object, *bytes))
            .collect();
        assert_eq!(counted, pages);
        assert!(
            self.live.values().all(|bytes| *bytes > 0),
            "{:?}",
            self.live
        );
    }
}

#[test]
fn a_large_directory_grows_changes_little_and_shrinks() {
    let mut tree = Tree::new(64 << 20);
    let all = |range: std::ops::Range<u64>| range.map(|n| (key(1, n), Some(chain(n, n % 3))));
    tree.apply(all(0..20_000).collect(), &BTreeSet::new());
    tree.check();
    let whole: i64 = tree
        .live
        .iter()
        .filter(|(o, _)| o.0 < 1 << 60)
        .map(|(_, b)| b)
        .sum();
    // One page changes: one node per level is written.
    let one = tree.apply(
        BTreeMap::from([(key(1, 777), Some(chain(5, 1)))]),
        &BTreeSet::new(),
    );
    assert!(one.nodes <= 4, "{}", one.nodes);
    assert!((one.node_bytes as i64) < whole / 50);
    tree.check();
    let nothing = tree.apply(
        BTreeMap::from([(key(1, 777), Some(chain(5, 1))), (key(9, 1), None)]),
        &BTreeSet::new(),
    );
    assert_eq!((nothing.nodes, nothing.live.len()), (0, 0));
    // Most of it goes: nodes are joined.
    tree.apply(
        (0..20_000)
            .filter(|n| n % 100 != 3)
            .map(|n| (key(1, n), None))
            .collect(),
        &BTreeSet::new(),
    );
    tree.check();
    let left: i64 = tree
        .live
        .iter()
        .filter(|(o, _)| o.0 < 1 << 60)
        .map(|(_, b)| b)
        .sum();
    assert!(left < whole / 30, "{left} of {whole}");
    tree.apply(
        (0..20_000).map(|n| (key(1, n), None)).collect(),
        &BTreeSet::new(),
    );
    tree.check();
    assert_eq!(tree.directory.root(), None);
    assert!(tree.live.is_empty(), "{:?}", tree.live);
}

/// Places of all tiles of a part of an index, by dividing it until nothing is left to divide.
fn divided(tree: &Tree, index: u32, low: &[u8], high: Option<&[u8]>) -> Vec<Vec<u8>> {
    let division = tree.directory.divide(TableId(3), IndexId(index), low, high);
    let division = division.unwrap();
    assert!(division.lows.len() < 400, "those of one node");
    if division.exact {
        return division.lows;
    }
    let mut all = Vec::new();
    let mut from = low.to_vec();
    for to in division.lows {
        all.extend(divided(tree, index, &from, Some(&to)));
        all.push(to.clone());
        from = to;
    }
    all.extend(divided(tree, index, &from, high));
    all
}

/// Tiles are found by dividing, and by what lies in them, among those of other indexes.
#[test]
fn an_index_is_divided_by_its_own_tiles_alone() {
    let mut tree = Tree::new(64 << 20);
    let low = |n: u64| {
        if n == 0 {
            Vec::new()
        } else {
            n.to_be_bytes().to_vec()
        }
    };
    let sizes = [(7, 1), (8, 5_000), (9, 3), (11, 700)];
    let mut changes = BTreeMap::new();
    for chunk in 0..300 {
        changes.insert(key(3, chunk), Some(chain(chunk, 0)));
    }
    for (index, tiles) in sizes {
        for n in 0..tiles {
            changes.insert(rig::tile(3, index, &low(n * 10)), Some(chain(n, 1)));
        }
    }
    tree.apply(changes, &BTreeSet::new());
    for (index, tiles) in sizes {
        let all: Vec<_> = (1..tiles).map(|n| low(n * 10)).collect();
        assert_eq!(divided(&tree, index, &[], None), all);
        for (from, to) in [
            (0, 1),
            (0, tiles / 2),
            (tiles / 3, tiles / 2),
            (tiles / 2, tiles),
        ] {
            let within: Vec<_> = (from + 1..to).map(|n| low(n * 10)).collect();
            let (from, to) = (low(from * 10), low(to * 10));
            assert_eq!(divided(&tree, index, &from, Some(&to)), within);
        }
        let tile_of = |entry: &[u8]| {
            let found = tree.directory.tile_of(TableId(3), IndexId(index), entry);
            found.unwrap()
        };
        assert_eq!(tile_of(&[]), Some(Vec::new()));
        for n in (0..tiles).step_by(37) {
            assert_eq!(
                tile_of(&(n * 10).to_be_bytes()),
                Some(low(n * 10)).filter(|_| n > 0).or(Some(Vec::new()))
            );
            assert_eq!(tile_of(&(n * 10 + 9).to_be_bytes()), Some(low(n * 10)));
        }
        assert_eq!(tile_of(&[0xff; 3_000]), Some(low((tiles - 1) * 10)));
    }
    assert_eq!(
        tree.directory
            .tile_of(TableId(3), IndexId(10), b"x")
            .unwrap(),
        None
    );
    assert_eq!(
        tree.directory
            .tile_of(TableId(3), IndexId(6), b"x")
            .unwrap(),
        None
    );
}

#[test]
fn no_node_stays_in_an_object_that_is_to_be_left() {
    let mut tree = Tree::new(64 << 20);
    tree.apply(
        (0..5_000).map(|n| (key(1, n), Some(chain(n, 0)))).collect(),
        &BTreeSet::new(),
    );
    tree.apply(
        (0..5_000)
            .step_by(700)
            .map(|n| (key(1, n), Some(chain(n, 1))))
            .collect(),
        &BTreeSet::new(),
    );
    let own: Vec<_> = tree
        .live
        .keys()
        .filter(|object| object.0 < 1 << 60)
        .copied()
        .collect();
    assert_eq!(own.len(), 2);
    for object in own {
        let leave = BTreeSet::from([object]);
        tree.apply(BTreeMap::new(), &leave);
        assert!(
            !tree.live.contains_key(&object),
            "{object} in {:?}",
            tree.live
        );
        tree.check();
        tree.home.objects.remove_object(object).unwrap();
        tree.check();
    }
    let pages = BTreeSet::from([ObjectId((1 << 60) + 2)]);
    let keys = tree.directory.keys_in(&pages, usize::MAX).unwrap();
    let expected: Vec<_> = tree
        .model
        .iter()
        .filter(|(_, chain)| chain.pages().any(|page| pages.contains(&page.object)))
        .map(|(key, _)| key.clone())
        .collect();
    assert_eq!(keys, expected);
    assert!(!keys.is_empty());
}

#[test]
fn the_old_directory_is_as_it_was() {
    let mut tree = Tree::new(64 << 20);
    tree.apply(
        (0..3_000).map(|n| (key(1, n), Some(chain(n, 0)))).collect(),
        &BTreeSet::new(),
    );
    let (old, model) = (tree.directory.clone(), tree.model.clone());
    tree.apply(
        (0..3_000).step_by(2).map(|n| (key(1, n), None)).collect(),
        &BTreeSet::new(),
    );
    let found: BTreeMap<_, _> = old.scan(None).map(Result::unwrap).collect();
    assert_eq!(found, model);
    let twice = [(key(1, 1), None), (key(1, 1), None)];
    let mut writer = ObjectWriter::new(
        tree.home.objects.clone(),
        Arc::clone(&tree.object_ids),
        None,
    );
    assert!(
        old.apply(&twice, &BTreeSet::new(), Csn(9), &mut writer)
            .is_err()
    );
}

fn changes() -> impl Strategy<Value = Vec<(u64, u64, Option<u64>)>> {
    // Stretches of keys: where they begin, how many, and what becomes of them.
    let stretch = (
        0..1_500_u64,
        1..400_u64,
        proptest::option::weighted(0.6, 0..6_u64),
    );
    proptest::collection::vec(stretch, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_directory_is_what_was_applied(
        steps in proptest::collection::vec((changes(), any::<bool>()), 1..8),
        cache_bytes in prop_oneof![Just(0_usize), Just(20_000), Just(64 << 20)],
    ) {
        let mut tree = Tree::new(cache_bytes);
        for (step, leave) in steps {
            let mut changes = BTreeMap::new();
            for (from, count, deltas) in step {
                for n in from..from + count {
                    let chain = deltas.map(|deltas| chain(n + tree.csn * 7, deltas));
                    changes.insert(key((n % 3) as u32, n / 3), chain);
                }
            }
            // Now and then everything leaves the oldest object.
            let oldest = tree.live.keys().find(|object| object.0 < 1 << 60 && leave).copied();
            let leave: BTreeSet<_> = oldest.into_iter().collect();
            tree.apply(changes, &leave);
            prop_assert!(leave.iter().all(|object| !tree.live.contains_key(object)));
            for object in leave {
                tree.home.objects.remove_object(object).unwrap();
            }
            tree.check();
        }
    }
}
