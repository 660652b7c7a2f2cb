//! What a checkpoint has of a tree, in memory: tiles are put there, read from there, and say together what the tree
//! holds.

use std::collections::BTreeMap;

use logstead_checkpoint::TileBoundaries;

use super::*;

/// Where a tile ends, and what is in it.
type Stored = (Option<Vec<u8>>, Vec<Vec<u8>>);

/// The tiles of the newest published checkpoint, by where they begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Store(pub(super) BTreeMap<Vec<u8>, Stored>);

impl Store {
    /// Puts a tile in the place of all that begin within it.
    pub(super) fn put(&mut self, tile: Tile<'_>) {
        let gone: Vec<_> = self
            .0
            .range(tile.low.to_vec()..)
            .map(|(low, _)| low.clone())
            .take_while(|low| tile.high.is_none_or(|high| low.as_slice() < high))
            .collect();
        for low in gone {
            self.0.remove(&low);
        }
        let entries = (0..tile.entries.len()).map(|at| tile.entries.get(at).to_vec());
        let high = tile.high.map(<[u8]>::to_vec);
        self.0.insert(tile.low.to_vec(), (high, entries.collect()));
    }

    /// What the directory and the page of a leaf say.
    pub(super) fn read(&self, low: &[u8]) -> Result<StoredLeaf, String> {
        let (high, entries) = self.0.get(low).ok_or(format!("no tile at {low:?}"))?;
        let mut stored = StoredLeaf {
            high: high.clone(),
            ..StoredLeaf::default()
        };
        for entry in entries {
            stored.entries.push(entry);
        }
        Ok(stored)
    }

    /// What the directory says of where tiles begin: as one with few entries in its nodes, of which the upper ones do
    /// not tell all.
    pub(super) fn divide(&self, low: &[u8], high: Option<&[u8]>) -> Result<TileBoundaries, String> {
        const NODE: usize = 5;
        let lows = self.0.keys().filter(|at| at.as_slice() > low);
        let lows = lows.take_while(|at| high.is_none_or(|high| at.as_slice() < high));
        let lows: Vec<Vec<u8>> = lows.cloned().collect();
        let exact = lows.len() <= NODE;
        let step = if exact { 1 } else { lows.len().div_ceil(NODE) };
        Ok(TileBoundaries {
            lows: lows.into_iter().skip(step / 2).step_by(step).collect(),
            exact,
        })
    }

    /// Brings in a leaf, or finds out where there are some.
    pub(super) fn load(&self, tree: &Tree, low: &[u8]) {
        tree.load_or_divide(low, |high| self.divide(low, high), || self.read(low))
            .expect("what is absent is stored");
    }

    /// Brings in the leaves that entries wait for.
    pub(super) fn load_late(&self, tree: &Tree) {
        while let Some(absent) = tree.first_late_leaf() {
            self.load(tree, &absent.low);
        }
    }

    /// Checks that the tiles cover everything, each entry where it belongs, and gives all of them.
    pub(super) fn entries(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut place = Some(Vec::new());
        for (low, (high, entries)) in &self.0 {
            assert_eq!(
                place.as_ref(),
                Some(low),
                "a tile begins where the last one ends"
            );
            for entry in entries {
                assert!(entry >= low && high.as_ref().is_none_or(|high| entry < high));
                assert!(all.last().is_none_or(|last| last < entry), "in order");
                all.push(entry.clone());
            }
            place = high.clone();
        }
        assert_eq!(place, None, "the last tile ends with the tree");
        all
    }
}

/// Does something as often as it takes, bringing in what is absent.
pub(super) fn with<T>(
    tree: &Tree,
    store: &Store,
    mut attempt: impl FnMut() -> Result<T, AbsentLeaf>,
) -> T {
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(absent) => store.load(tree, &absent.low),
        }
    }
}

/// Takes a whole checkpoint.
pub(super) fn checkpoint(tree: &Tree, store: &mut Store) -> usize {
    store.load_late(tree);
    let mut walk = tree.begin_walk();
    let mut tiles = 0;
    while let Some(tile) = tree.next_changed(&mut walk) {
        store.put(tile);
        tiles += 1;
    }
    tree.published(&walk);
    tiles
}

/// A tree and what is stored of it, for several threads.
pub(super) struct Shared {
    pub(super) tree: Tree,
    pub(super) store: parking_lot::Mutex<Store>,
}

impl Shared {
    pub(super) fn new(tree: Tree) -> Shared {
        Shared {
            tree,
            store: parking_lot::Mutex::default(),
        }
    }

    pub(super) fn load(&self, low: &[u8]) {
        let divide = |high: Option<&[u8]>| {
            interleave::point();
            let division = self.store.lock().divide(low, high);
            interleave::point();
            division
        };
        self.tree
            .load_or_divide(low, divide, || {
                // Reading takes its time.
                interleave::point();
                let read = self.store.lock().read(low);
                interleave::point();
                read
            })
            .expect("what is absent is stored");
    }

    /// Does something as often as it takes.
    pub(super) fn with<T>(&self, mut attempt: impl FnMut(&Tree) -> Result<T, AbsentLeaf>) -> T {
        loop {
            match attempt(&self.tree) {
                Ok(done) => return done,
                Err(absent) => self.load(&absent.low),
            }
        }
    }

    pub(super) fn rids(&self, key: &[u8]) -> Vec<u64> {
        self.with(|tree| {
            let mut rids = Vec::new();
            tree.lookup(key, |rid| {
                rids.push(rid);
                true
            })?;
            Ok(rids)
        })
    }

    /// All entries, upwards or downwards.
    pub(super) fn walk(&self, down: bool) -> Vec<Vec<u8>> {
        let mut all: Vec<Vec<u8>> = Vec::new();
        while self.with(|tree| {
            let mut batch = Entries::default();
            let last = all.last().map(Vec::as_slice);
            let more = if down {
                tree.walk_down(last, &[], 50, &mut batch)?
            } else {
                tree.walk_up(
                    last.unwrap_or_default(),
                    last.is_some(),
                    None,
                    50,
                    &mut batch,
                )?
            };
            all.extend((0..batch.len()).map(|at| batch.get(at).to_vec()));
            Ok(more)
        }) {}
        all
    }

    /// A checkpoint, of which nothing comes or which is published: loads find it first, then leaves are clean.
    pub(super) fn checkpoint(&self, comes_to_nothing: bool) {
        let mut copy = self.store.lock().clone();
        let mut walk = self.tree.begin_walk();
        while let Some(tile) = self.tree.next_changed(&mut walk) {
            copy.put(tile);
            interleave::point();
        }
        if !comes_to_nothing {
            *self.store.lock() = copy;
            interleave::point();
            self.tree.published(&walk);
        }
    }

    /// Brings everything in, and gives what there is.
    pub(super) fn all_in(&self) -> Vec<Vec<u8>> {
        all_in(&self.tree, &self.store.lock())
    }
}

pub(super) fn all_in(tree: &Tree, store: &Store) -> Vec<Vec<u8>> {
    while let Some(absent) = tree.next_absent(&[]) {
        store.load(tree, &absent.low);
    }
    up(tree)
}
