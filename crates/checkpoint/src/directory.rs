//! The directory: a copy-on-write B-tree from page keys to chains.
//!
//! Owns: looking up, scanning, and making the next directory out of this one and the changes of a checkpoint. Nodes are
//! frames in the same objects as pages; they are read when they are first needed and cached
//! ([`node_cache`](crate::node_cache)).
//!
//! Invariants:
//! - A directory never changes: [`Directory::apply`] writes the nodes that differ, from the leaves up, and gives
//!   another directory with another root. The old one stays valid as long as its objects are there, so a checkpoint
//!   that fails leaves it as it was.
//! - `apply` tells how many bytes of every object it has begun or ceased to use ([`DirectoryUpdate::live`]). Their sum
//!   over all checkpoints is what an object's live bytes are, which is what collection goes by.
//! - A node that weighs less than a quarter of what it may joins a neighbour under the same parent, so a directory from
//!   which most was removed is small again.
//! - A node that cannot be read stays where it is; what is to be changed under it lies over the tree, until it can
//!   ([`crate::fork`]).
//! - What lies at its root, a node or a fork, is told alike as long as a directory is there. Before that is known
//!   nothing can be changed.
//!
//! Does not: know which objects exist, or publish anything.

mod apply;
mod scan;

pub use apply::DirectoryUpdate;
pub use scan::Scan;

use crate::contents::page_keys;
use crate::error::CheckpointError;
use crate::error::damaged;
use crate::fork::{self, Fork};
use crate::node::Entries;
use crate::node_cache::{CACHE_BYTES, DirectoryRoot, NodeCache};
use crate::page_ref::{KeyBytes, PageChain, PageKey, PageRef};
use logstead_home::{ObjectId, ObjectReader};
use logstead_types::{IndexId, TableId};
use logstead_wal::FormatError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// Bytes of each object that came into use (positive) or are used no more (negative).
pub type LiveChanges = BTreeMap<ObjectId, i64>;

/// Where the pages of a checkpoint lie. Cheap to clone; clones and the directories made of it share their cache.
#[derive(Clone)]
pub struct Directory {
    nodes: Arc<NodeCache>,
    root: Option<PageRef>,
    /// Once they are known they stay: who makes changes out of what was looked up, and [`Directory::apply`] later on,
    /// have to go by the same fork, though it cannot be read any more by then, or could not be before.
    layers: Arc<OnceLock<Layers>>,
}

/// A directory from its root down to the tree.
#[derive(Clone, Debug, Default)]
struct Layers {
    /// What lies over the tree, and where that lies itself.
    fork: Option<(PageRef, Arc<Fork>)>,
    /// The tree's root, which is a node, whether it can be read or not.
    under: Option<PageRef>,
}

impl Layers {
    fn over(&self) -> &[fork::Entry] {
        self.fork.as_ref().map_or(&[], |(_, fork)| &fork.over)
    }

    /// What lies over the tree, if it says anything of keys that begin like this.
    fn has_prefix(&self, prefix: &[u8]) -> bool {
        let fork = self.fork.as_ref();
        fork.is_some_and(|(_, fork)| fork.has_prefix(prefix))
    }
}

/// Where tiles of a part of an index begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TileBoundaries {
    /// In ascending order, above where the part begins and below where it ends.
    pub lows: Vec<Vec<u8>>,
    /// Those are all: what lies between two of them is one tile.
    pub exact: bool,
}

impl Directory {
    /// The directory with this root, or an empty one. Nothing is read yet.
    pub fn open(objects: Arc<dyn ObjectReader>, root: Option<PageRef>) -> Directory {
        Directory::with_cache(objects, root, CACHE_BYTES)
    }

    /// The same with so much room for nodes.
    pub fn with_cache(
        objects: Arc<dyn ObjectReader>,
        root: Option<PageRef>,
        cache_bytes: usize,
    ) -> Directory {
        Directory {
            nodes: Arc::new(NodeCache::new(objects, cache_bytes)),
            root,
            layers: Arc::default(),
        }
    }

    /// Another directory of the same home, whose nodes are cached together with those of this one.
    pub fn at(&self, root: Option<PageRef>) -> Directory {
        Directory {
            nodes: Arc::clone(&self.nodes),
            root,
            layers: Arc::default(),
        }
    }

    /// The same with nothing cached.
    #[cfg(test)]
    pub(crate) fn uncached(&self) -> Directory {
        Directory {
            nodes: Arc::new(NodeCache::new(Arc::clone(&self.nodes.objects), 0)),
            root: self.root,
            layers: Arc::clone(&self.layers),
        }
    }

    /// Its root; `None` if it is empty.
    pub fn root(&self) -> Option<PageRef> {
        self.root
    }

    /// What its cached nodes take in memory.
    pub fn cached_bytes(&self) -> usize {
        self.nodes.bytes()
    }

    /// What it consists of. An error if that was never known and the root cannot be read: it may be a fork, of which
    /// nobody knows what it says then.
    fn layers(&self) -> Result<&Layers, CheckpointError> {
        if let Some(known) = self.layers.get() {
            return Ok(known);
        }
        let found = self.read_layers()?;
        Ok(self.layers.get_or_init(|| found))
    }

    fn read_layers(&self) -> Result<Layers, CheckpointError> {
        let Some(at) = self.root else {
            return Ok(Layers::default());
        };
        let fork = match self.nodes.root(&at)? {
            DirectoryRoot::Node => {
                return Ok(Layers {
                    fork: None,
                    under: Some(at),
                });
            }
            DirectoryRoot::Fork(fork) => fork,
        };
        let under = fork.under;
        match self.nodes.root(&under) {
            // It is a node all the same: a fork is made of nothing else.
            Err(error) if error.is_unreadable() => {}
            Ok(DirectoryRoot::Node) => {}
            Ok(DirectoryRoot::Fork(_)) => {
                let why = FormatError::new("a fork over another one", 0);
                return Err(damaged("the root of the page directory", &at, why));
            }
            Err(error) => return Err(error),
        }
        Ok(Layers {
            fork: Some((at, fork)),
            under: Some(under),
        })
    }

    /// The chain of a page.
    pub fn get(&self, key: &PageKey) -> Result<Option<PageChain>, CheckpointError> {
        self.get_in(self.layers()?, key)
    }

    fn get_in(&self, layers: &Layers, key: &PageKey) -> Result<Option<PageChain>, CheckpointError> {
        let key = key.encode();
        let fork = layers.fork.as_ref();
        let above = match fork.and_then(|(_, fork)| fork.get(&key)) {
            None => return self.get_under(layers, &key),
            Some(None) => return Ok(None),
            Some(Some(chain)) if !chain.is_below() => return Ok(Some(chain.clone())),
            Some(Some(chain)) => chain,
        };
        match self.get_under(layers, &key) {
            Ok(Some(older)) => Ok(Some(older.with(above))),
            Ok(None) => Ok(Some(above.clone())),
            Err(error) if error.is_unreadable() => Ok(Some(above.clone())),
            Err(error) => Err(error),
        }
    }

    /// The same for who is to write a page behind it: where it cannot be looked up, one that begins below. What is
    /// written behind that counts over whatever there is in the tree. An error while it is not known what lies over the
    /// tree: it may say that the page is gone, or lies elsewhere.
    pub fn get_to_change(&self, key: &PageKey) -> Result<Option<PageChain>, CheckpointError> {
        match self.get_in(self.layers()?, key) {
            Err(error) if error.is_unreadable() => Ok(Some(PageChain::below())),
            found => found,
        }
    }

    fn get_under(
        &self,
        layers: &Layers,
        key: &KeyBytes,
    ) -> Result<Option<PageChain>, CheckpointError> {
        let Some(root) = &layers.under else {
            return Ok(None);
        };
        let mut node = self.nodes.load(root, None)?;
        loop {
            let entries = match &node.entries {
                Entries::Leaf(entries) => {
                    let found = entries.binary_search_by(|(at, _)| at.cmp(key)).ok();
                    return Ok(found.map(|index| entries[index].1.clone()));
                }
                Entries::Inner(entries) => entries,
            };
            let index = entries.partition_point(|(first, _)| first <= key);
            let Some((first, child)) = index.checked_sub(1).map(|index| &entries[index]) else {
                return Ok(None);
            };
            node = self.nodes.load(child, Some((node.level - 1, first)))?;
        }
    }

    /// The tiles of an index in ascending order, from the one that a fence begins, or the next, on: where each begins,
    /// and its chain. Ends after an error.
    pub fn tiles(
        &self,
        table: TableId,
        index: IndexId,
        from: Vec<u8>,
    ) -> impl Iterator<Item = Result<(Vec<u8>, PageChain), CheckpointError>> {
        let low = from;
        let from = PageKey::Leaf { table, index, low };
        self.scan(Some(&from)).map_while(move |entry| match entry {
            Ok((
                PageKey::Leaf {
                    table: of,
                    index: found,
                    low,
                },
                chain,
            )) => (of == table && found == index).then_some(Ok((low, chain))),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
    }

    /// Where some tiles of an index begin that begin above `low` and below `high`: those by which a node on the way to
    /// `low` tells its children apart, or all of them, if it is a leaf. So a node of each level is read at most,
    /// however many tiles there are. No place but those of one tile gives an exact division without places.
    pub fn divide(
        &self,
        table: TableId,
        index: IndexId,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<TileBoundaries, CheckpointError> {
        let key = |low: &[u8]| {
            let low = low.to_vec();
            PageKey::Leaf { table, index, low }.encode()
        };
        let (prefix, from, to) = (key(&[]), key(low), high.map(key));
        let is_within = |at: &KeyBytes| {
            *at > from && at.starts_with(&prefix) && to.as_ref().is_none_or(|to| at < to)
        };
        let below = |at: &KeyBytes| is_within(at).then(|| at[prefix.len()..].to_vec());
        let layers = self.layers()?;
        if layers.has_prefix(&prefix) {
            // What is in the tree does not tell alone: each tile is looked at.
            let mut division = TileBoundaries {
                lows: Vec::new(),
                exact: true,
            };
            for tile in self.tiles(table, index, low.to_vec()) {
                let (at, _) = tile?;
                if high.is_some_and(|high| &at[..] >= high) {
                    break;
                }
                if &at[..] > low {
                    division.lows.push(at);
                }
            }
            return Ok(division);
        }
        let mut at = layers.under;
        let mut expected: Option<(u8, KeyBytes)> = None;
        while let Some(place) = at.take() {
            let first = expected.as_ref().map(|(level, first)| (*level, &first[..]));
            let node = self.nodes.load(&place, first)?;
            match &node.entries {
                Entries::Leaf(entries) => {
                    return Ok(TileBoundaries {
                        lows: entries.iter().filter_map(|(at, _)| below(at)).collect(),
                        exact: true,
                    });
                }
                Entries::Inner(entries) => {
                    let lows: Vec<_> = entries.iter().filter_map(|(at, _)| below(at)).collect();
                    if !lows.is_empty() {
                        return Ok(TileBoundaries { lows, exact: false });
                    }
                    let index = entries.partition_point(|(first, _)| *first <= from);
                    if let Some((first, child)) = index.checked_sub(1).map(|at| &entries[at]) {
                        (at, expected) = (Some(*child), Some((node.level - 1, first.clone())));
                    }
                }
            }
        }
        Ok(TileBoundaries {
            lows: Vec::new(),
            exact: true,
        })
    }

    /// Where the tile of an index begins that an entry lies in.
    pub fn tile_of(
        &self,
        table: TableId,
        index: IndexId,
        entry: &[u8],
    ) -> Result<Option<Vec<u8>>, CheckpointError> {
        let low = entry.to_vec();
        let key = PageKey::Leaf { table, index, low }.encode();
        let own = key.len() - entry.len();
        let layers = self.layers()?;
        if layers.has_prefix(&key[..own]) {
            let mut found = None;
            for tile in self.tiles(table, index, Vec::new()) {
                let (low, _) = tile?;
                if &low[..] > entry {
                    break;
                }
                found = Some(low);
            }
            return Ok(found);
        }
        let mut at = layers.under;
        let mut expected: Option<(u8, KeyBytes)> = None;
        while let Some(place) = at.take() {
            let first = expected.as_ref().map(|(level, first)| (*level, &first[..]));
            let node = self.nodes.load(&place, first)?;
            match &node.entries {
                Entries::Leaf(entries) => {
                    let below = entries.partition_point(|(at, _)| *at <= key);
                    let found = below.checked_sub(1).map(|below| &entries[below].0);
                    let found = found.filter(|found| found.starts_with(&key[..own]));
                    return Ok(found.map(|found| found[own..].to_vec()));
                }
                Entries::Inner(entries) => {
                    let below = entries.partition_point(|(first, _)| *first <= key);
                    if let Some((first, child)) = below.checked_sub(1).map(|at| &entries[at]) {
                        (at, expected) = (Some(*child), Some((node.level - 1, first.clone())));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Appends what [`Directory::apply`] has to do for a new tile: it takes the place of every tile that begins within
    /// it. Tiles of an index go by their order, so the changes come in order too.
    pub fn replace_tile(
        &self,
        key: PageKey,
        high: Option<&[u8]>,
        chain: PageChain,
        changes: &mut Vec<(PageKey, Option<PageChain>)>,
    ) -> Result<(), CheckpointError> {
        let PageKey::Leaf { table, index, low } = &key else {
            return Err(CheckpointError::Misuse("a tile with the key of a chunk"));
        };
        let (table, index, from) = (*table, *index, low.clone());
        let mut replaced = Vec::new();
        for tile in self.tiles(table, index, from.clone()) {
            let (low, _) = tile?;
            if high.is_some_and(|high| &low[..] >= high) {
                break;
            }
            if low != from {
                replaced.push((PageKey::Leaf { table, index, low }, None));
            }
        }
        changes.push((key, Some(chain)));
        changes.append(&mut replaced);
        Ok(())
    }

    /// The pages that have bytes in one of these objects, in order. Looks at the directory's entries if they are not
    /// more than `entries_max`; else reads the objects, and looks up the pages that are named there: what that costs
    /// does not grow with the directory.
    pub fn keys_in(
        &self,
        objects: &BTreeSet<ObjectId>,
        entries_max: usize,
    ) -> Result<Vec<PageKey>, CheckpointError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let is_there = |chain: &PageChain| chain.pages().any(|page| objects.contains(&page.object));
        let mut found = Vec::new();
        for (index, entry) in self.scan(None).enumerate() {
            if index == entries_max
                && let Some(named) = self.keys_named_in(objects)?
            {
                found.clear();
                for key in named {
                    if self.get(&key)?.as_ref().is_some_and(is_there) {
                        found.push(key);
                    }
                }
                break;
            }
            let (key, chain) = entry?;
            if is_there(&chain) {
                found.push(key);
            }
        }
        Ok(found)
    }

    /// The pages that have, or had, bytes in these objects; `None` if an object is damaged.
    fn keys_named_in(
        &self,
        objects: &BTreeSet<ObjectId>,
    ) -> Result<Option<BTreeSet<PageKey>>, CheckpointError> {
        let mut keys = BTreeSet::new();
        for object in objects {
            if !page_keys(&*self.nodes.objects, *object, &mut keys)? {
                return Ok(None);
            }
        }
        Ok(Some(keys))
    }

    /// Everything that the directory needs of one object: its nodes there and pages, in no order.
    pub(crate) fn references_in(&self, object: ObjectId) -> Result<Vec<PageRef>, CheckpointError> {
        let mut found = Vec::new();
        let layers = self.layers()?;
        if let Some((at, fork)) = &layers.fork {
            found.extend(Some(*at).filter(|at| at.object == object));
            let chains = fork.over.iter().flat_map(|(_, chain)| chain);
            let pages = chains.flat_map(PageChain::pages).copied();
            found.extend(pages.filter(|page| page.object == object && !page.is_special()));
        }
        let mut open: Vec<(PageRef, Option<(u8, KeyBytes)>)> =
            layers.under.iter().map(|root| (*root, None)).collect();
        while let Some((at, expected)) = open.pop() {
            let expected = expected.as_ref();
            let expected = expected.map(|(level, first)| (*level, first.as_slice()));
            let node = self.nodes.load(&at, expected)?;
            found.extend(Some(at).filter(|at| at.object == object));
            match &node.entries {
                Entries::Leaf(entries) => {
                    let pages = entries.iter().flat_map(|(_, chain)| chain.pages());
                    found.extend(pages.filter(|page| page.object == object));
                }
                Entries::Inner(entries) => {
                    let children = entries.iter();
                    open.extend(
                        children
                            .map(|(first, child)| (*child, Some((node.level - 1, first.clone())))),
                    );
                }
            }
        }
        Ok(found)
    }
}
