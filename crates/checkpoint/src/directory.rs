//! The directory: a copy-on-write B-tree from page keys to chains.
//!
//! Owns: looking up, scanning, and making the next directory out of this one and the changes of a checkpoint. Nodes are frames in the same
//! objects as pages; they are read when they are first needed and cached ([`cache`](crate::cache)).
//!
//! Invariants:
//! - A directory never changes: [`Directory::apply`] writes the nodes that differ, from the leaves up, and gives another directory with another
//!   root. The old one stays valid as long as its objects are there, so a checkpoint that fails leaves it as it was.
//! - `apply` tells how many bytes of every object it has begun or ceased to use ([`Applied::live`]). Their sum over all checkpoints is what an
//!   object's live bytes are, which is what collection goes by.
//! - A node that weighs less than a quarter of what it may joins a neighbour under the same parent, so a directory from which most was removed is small again.
//! - A node that cannot be read stays where it is; what is to be changed under it lies over the tree, until it can ([`crate::fork`]).
//! - What lies at its root, a node or a fork, is told alike as long as a directory is there. Before that is known nothing can be changed.
//!
//! Does not: know which objects exist, or publish anything.

use crate::cache::{CACHE_BYTES, Nodes, Root};
use crate::contents::page_keys;
use crate::error::CheckpointError;
use crate::fork::{self, Fork};
use crate::frame::{Encoder, FrameError, FrameKind};
use crate::node::{self, Entries, LEVELS_MAX, NODE_BYTES_MIN, Node};
use crate::place::{Chain, KeyBytes, PageKey, PageRef};
use crate::read::damaged;
use crate::rows::RowsPage;
use crate::writer::ObjectWriter;
use logstead_home::{LogHome, ObjectId};
use logstead_types::{Csn, IndexId, TableId};
use logstead_wal::FormatError;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

/// Bytes of each object that came into use (positive) or are used no more (negative).
pub type LiveChanges = BTreeMap<ObjectId, i64>;

/// Where the pages of a checkpoint lie. Cheap to clone; clones and the directories made of it share their cache.
#[derive(Clone)]
pub struct Directory {
    nodes: Arc<Nodes>,
    root: Option<PageRef>,
    /// Once they are known they stay: who makes changes out of what was looked up, and [`Directory::apply`] later on, have to go by the same fork, though it cannot be read
    /// any more by then, or could not be before.
    layers: Arc<OnceLock<Layers>>,
}

/// What [`Directory::apply`] has made.
pub struct Applied {
    /// The directory with the changes. To be used once the writer's objects are stored.
    pub directory: Directory,
    /// What came into use and what went out of it, pages and nodes.
    pub live: LiveChanges,
    /// Nodes written.
    pub nodes: u64,
    /// Their bytes.
    pub node_bytes: u64,
    /// Why some changes could not be put into the tree, if so, and how many: they lie over it.
    pub unreadable: Option<(CheckpointError, usize)>,
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
pub struct Division {
    /// In ascending order, above where the part begins and below where it ends.
    pub lows: Vec<Vec<u8>>,
    /// Those are all: what lies between two of them is one tile.
    pub exact: bool,
}

impl Directory {
    /// The directory with this root, or an empty one. Nothing is read yet.
    pub fn open(home: Arc<dyn LogHome>, root: Option<PageRef>) -> Directory {
        Directory::with_cache(home, root, CACHE_BYTES)
    }

    /// The same with so much room for nodes.
    pub fn with_cache(
        home: Arc<dyn LogHome>,
        root: Option<PageRef>,
        cache_bytes: usize,
    ) -> Directory {
        Directory {
            nodes: Arc::new(Nodes::new(home, cache_bytes)),
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

    /// Its root; `None` if it is empty.
    pub fn root(&self) -> Option<PageRef> {
        self.root
    }

    /// What its cached nodes take in memory.
    pub fn cached_bytes(&self) -> usize {
        self.nodes.bytes()
    }

    /// What it consists of. An error if that was never known and the root cannot be read: it may be a fork, of which nobody knows what it says then.
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
            Root::Node => {
                return Ok(Layers {
                    fork: None,
                    under: Some(at),
                });
            }
            Root::Fork(fork) => fork,
        };
        let under = fork.under;
        match self.nodes.root(&under) {
            // It is a node all the same: a fork is made of nothing else.
            Err(error) if error.is_unreadable() => {}
            Ok(Root::Node) => {}
            Ok(Root::Fork(_)) => {
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
    pub fn get(&self, key: &PageKey) -> Result<Option<Chain>, CheckpointError> {
        self.get_in(self.layers()?, key)
    }

    fn get_in(&self, layers: &Layers, key: &PageKey) -> Result<Option<Chain>, CheckpointError> {
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

    /// The same for who is to write a page behind it: where it cannot be looked up, one that begins below. What is written behind that
    /// counts over whatever there is in the tree. An error while it is not known what lies over the tree: it may say that the page is gone, or lies elsewhere.
    pub fn get_to_change(&self, key: &PageKey) -> Result<Option<Chain>, CheckpointError> {
        match self.get_in(self.layers()?, key) {
            Err(error) if error.is_unreadable() => Ok(Some(Chain::below())),
            found => found,
        }
    }

    fn get_under(&self, layers: &Layers, key: &KeyBytes) -> Result<Option<Chain>, CheckpointError> {
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

    /// Pages and their chains in the order of keys, from the first one or from a given key on. Ends after an error.
    pub fn scan(&self, from: Option<&PageKey>) -> Scan {
        Scan {
            nodes: Arc::clone(&self.nodes),
            start: Some(self.clone()),
            from: from.map(PageKey::encode).unwrap_or_default(),
            path: Vec::new(),
            over: VecDeque::new(),
            under: None,
        }
    }

    /// The tiles of an index in ascending order, from the one that a fence begins, or the next, on: where each begins, and its chain. Ends after an error.
    pub fn tiles(
        &self,
        table: TableId,
        index: IndexId,
        from: Vec<u8>,
    ) -> impl Iterator<Item = Result<(Vec<u8>, Chain), CheckpointError>> {
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

    /// Where some tiles of an index begin that begin above `low` and below `high`: those by which a node on the way to `low` tells its children apart, or
    /// all of them, if it is a leaf. So a node of each level is read at most, however many tiles there are. No place but those of one tile gives an
    /// exact division without places.
    pub fn divide(
        &self,
        table: TableId,
        index: IndexId,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<Division, CheckpointError> {
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
            let mut division = Division {
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
                    return Ok(Division {
                        lows: entries.iter().filter_map(|(at, _)| below(at)).collect(),
                        exact: true,
                    });
                }
                Entries::Inner(entries) => {
                    let lows: Vec<_> = entries.iter().filter_map(|(at, _)| below(at)).collect();
                    if !lows.is_empty() {
                        return Ok(Division { lows, exact: false });
                    }
                    let index = entries.partition_point(|(first, _)| *first <= from);
                    if let Some((first, child)) = index.checked_sub(1).map(|at| &entries[at]) {
                        (at, expected) = (Some(*child), Some((node.level - 1, first.clone())));
                    }
                }
            }
        }
        Ok(Division {
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

    /// Appends what [`Directory::apply`] has to do for a new tile: it takes the place of every tile that begins within it. Tiles of an index go by their order, so
    /// the changes come in order too.
    pub fn replace_tile(
        &self,
        key: PageKey,
        high: Option<&[u8]>,
        chain: Chain,
        changes: &mut Vec<(PageKey, Option<Chain>)>,
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

    /// The pages that have bytes in one of these objects, in order. Looks at the directory's entries if they are not more than `entries_max`; else
    /// reads the objects, and looks up the pages that are named there: what that costs does not grow with the directory.
    pub fn keys_in(
        &self,
        objects: &BTreeSet<ObjectId>,
        entries_max: usize,
    ) -> Result<Vec<PageKey>, CheckpointError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let is_there = |chain: &Chain| chain.pages().any(|page| objects.contains(&page.object));
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
            if !page_keys(&*self.nodes.home, *object, &mut keys)? {
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
            let pages = chains.flat_map(Chain::pages).copied();
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

    /// Makes the directory with these changes, sorted by key, each key once: a new chain, or none any more. Only nodes that differ are written, as of
    /// `csn`, and those that lie in objects of `leave`. A node that cannot be read stays as it is, and what was to be changed under it lies over the tree, where an
    /// [`apply`](Directory::apply) of the directory that is made finds it, and tries again. A root that cannot be read, and is not known to be a node, is an error.
    pub fn apply(
        &self,
        changes: &[(PageKey, Option<Chain>)],
        leave: &BTreeSet<ObjectId>,
        csn: Csn,
        writer: &mut ObjectWriter<'_>,
    ) -> Result<Applied, CheckpointError> {
        let changes: Vec<Change<'_>> = changes
            .iter()
            .map(|(key, chain)| (key.encode(), chain.as_ref()))
            .collect();
        if changes.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return Err(CheckpointError::Misuse("changes out of their order"));
        }
        let layers = self.layers()?;
        let changes = match layers.over() {
            [] => changes,
            over => {
                let old = over
                    .iter()
                    .map(|(key, chain)| (key.clone(), chain.as_ref()));
                let mut all: BTreeMap<_, _> = old.collect();
                for (key, chain) in changes {
                    let is_below = |chain: Option<&Chain>| chain.is_some_and(Chain::is_below);
                    let above = all.insert(key, chain);
                    // Who made the changes knew what lay over the tree. Where that has nothing to do with the tree any more, nothing begins there.
                    if is_below(chain) && above.is_some_and(|above| !is_below(above)) {
                        let why = "a change that does not know what lies over the tree";
                        return Err(CheckpointError::Misuse(why));
                    }
                }
                all.into_iter().collect()
            }
        };
        let mut work = Apply {
            nodes: &self.nodes,
            leave,
            csn,
            writer,
            encoder: Encoder::new(),
            payload: Vec::new(),
            live: LiveChanges::new(),
            written: 0,
            written_bytes: 0,
            left: Vec::new(),
            unreadable: None,
        };
        if let Some((at, fork)) = &layers.fork {
            work.count(at, -1);
            for (_, chain) in &fork.over {
                work.count_chain(chain.as_ref(), -1);
            }
        }
        let under = work.root(layers.under, &changes)?;
        let left = work.left.len();
        let fork = work.fork(under)?;
        let layers = Layers { fork, under };
        let root = layers.fork.as_ref().map_or(under, |(at, _)| Some(*at));
        let unreadable = work.unreadable.take().map(|error| (error, left));
        let Apply {
            live,
            written,
            written_bytes,
            ..
        } = work;
        Ok(Applied {
            directory: Directory {
                nodes: Arc::clone(&self.nodes),
                root,
                layers: Arc::new(OnceLock::from(layers)),
            },
            live: live.into_iter().filter(|(_, bytes)| *bytes != 0).collect(),
            nodes: written,
            node_bytes: written_bytes,
            unreadable,
        })
    }
}

type Change<'a> = (KeyBytes, Option<&'a Chain>);

/// A child while its parent is made anew.
enum Child {
    /// As it is.
    Kept(KeyBytes, PageRef),
    /// To be written, cut if it is too large; perhaps with no entries at all.
    New(Entries),
}

/// One run of [`Directory::apply`].
struct Apply<'a, 'w> {
    nodes: &'a Nodes,
    leave: &'a BTreeSet<ObjectId>,
    csn: Csn,
    writer: &'a mut ObjectWriter<'w>,
    encoder: Encoder,
    payload: Vec<u8>,
    live: LiveChanges,
    written: u64,
    written_bytes: u64,
    /// Changes under nodes that cannot be read, in their order.
    left: Vec<fork::Entry>,
    /// The first of these.
    unreadable: Option<CheckpointError>,
}

impl Apply<'_, '_> {
    fn count(&mut self, page: &PageRef, sign: i64) {
        if page.is_special() {
            return;
        }
        *self.live.entry(page.object).or_default() += sign * i64::from(page.len);
    }

    fn count_chain(&mut self, chain: Option<&Chain>, sign: i64) {
        for page in chain.into_iter().flat_map(Chain::pages) {
            self.count(page, sign);
        }
    }

    fn root(
        &mut self,
        root: Option<PageRef>,
        changes: &[Change<'_>],
    ) -> Result<Option<PageRef>, CheckpointError> {
        let (mut level, mut entries) = match root {
            None => (
                0,
                self.leaf(&[], changes)?
                    .unwrap_or(Entries::Leaf(Vec::new())),
            ),
            Some(at) => {
                let Some(node) = self.readable(&at, None, changes)? else {
                    return Ok(root);
                };
                let Some(entries) = self.changed(&at, &node, changes)? else {
                    return Ok(root);
                };
                (node.level, entries)
            }
        };
        loop {
            match &entries {
                Entries::Inner(children) if children.len() == 1 => return Ok(Some(children[0].1)),
                _ => {}
            }
            let nodes = self.pack(level, vec![Child::New(entries)])?;
            match &nodes[..] {
                [] => return Ok(None),
                [(_, only)] => return Ok(Some(*only)),
                _ => entries = Entries::Inner(nodes),
            }
            level += 1;
            if level >= LEVELS_MAX {
                return Err(CheckpointError::Misuse(
                    "the page directory has too many levels",
                ));
            }
        }
    }

    /// A node that is to be changed. Nothing if it cannot be read: it stays, and the changes are left.
    fn readable(
        &mut self,
        at: &PageRef,
        expected: Option<(u8, &[u8])>,
        changes: &[Change<'_>],
    ) -> Result<Option<Arc<Node>>, CheckpointError> {
        match self.nodes.load(at, expected) {
            Ok(node) => Ok(Some(node)),
            Err(error) if error.is_unreadable() => {
                let left = changes.iter();
                self.left
                    .extend(left.map(|(key, chain)| (key.clone(), chain.cloned())));
                self.unreadable.get_or_insert(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What was left, over this tree, and where it lies; nothing if nothing was.
    fn fork(
        &mut self,
        under: Option<PageRef>,
    ) -> Result<Option<(PageRef, Arc<Fork>)>, CheckpointError> {
        let (false, Some(under)) = (self.left.is_empty(), under) else {
            return Ok(None);
        };
        let fork = Fork {
            under,
            over: std::mem::take(&mut self.left),
        };
        for (_, chain) in &fork.over {
            self.count_chain(chain.as_ref(), 1);
        }
        let frame = match fork.encode(self.csn, &mut self.encoder) {
            // Nothing is published then.
            Err(FrameError::TooLarge) => {
                let too_large = CheckpointError::Misuse("too much under nodes that cannot be read");
                return Err(self.unreadable.take().unwrap_or(too_large));
            }
            frame => frame?,
        };
        let at = self.writer.put(frame)?;
        self.count(&at, 1);
        self.written += 1;
        self.written_bytes += u64::from(at.len);
        Ok(Some((at, Arc::new(fork))))
    }

    /// The entries that a node at a place is to have; `None`: it stays as and where it is. Otherwise its place counts as free.
    fn changed(
        &mut self,
        at: &PageRef,
        node: &Node,
        changes: &[Change<'_>],
    ) -> Result<Option<Entries>, CheckpointError> {
        let entries = match &node.entries {
            Entries::Leaf(entries) => self.leaf(entries, changes)?,
            Entries::Inner(children) => self.inner(node.level, children, changes)?,
        };
        let entries = match entries {
            None if self.leave.contains(&at.object) => Some(node.entries.clone()),
            entries => entries,
        };
        if entries.is_some() {
            self.count(at, -1);
        }
        Ok(entries)
    }

    /// The page that a chunk has which the tree does not know: what was written behind it, when that could not be told, is all there is.
    fn empty_base(&mut self, key: &KeyBytes) -> Result<Option<Chain>, CheckpointError> {
        let Ok(key @ PageKey::Rows { .. }) = PageKey::decode(key) else {
            return Ok(None);
        };
        let mut page = RowsPage::new();
        page.begin(self.csn);
        let frame = page.finish(FrameKind::RowsBase, &key, &mut self.encoder)?;
        let at = self.writer.put(frame)?;
        Ok(Chain::whole(&[at]))
    }

    fn leaf(
        &mut self,
        entries: &[(KeyBytes, Chain)],
        changes: &[Change<'_>],
    ) -> Result<Option<Entries>, CheckpointError> {
        let mut out = Vec::with_capacity(entries.len() + changes.len());
        let mut differs = false;
        let mut old = entries.iter().peekable();
        for (key, chain) in changes {
            while let Some(before) = old.next_if(|(at, _)| at < key) {
                out.push(before.clone());
            }
            let replaced = old.next_if(|(at, _)| at == key).map(|(_, chain)| chain);
            // What could not be looked up when it was written is known now.
            let known = match (chain, replaced) {
                (Some(chain), Some(older)) if chain.is_below() => Some(older.with(chain)),
                (Some(chain), None) if chain.is_below() => {
                    self.empty_base(key)?.map(|base| base.with(chain))
                }
                _ => None,
            };
            let chain = known.as_ref().or(*chain);
            if replaced != chain {
                differs = true;
                self.count_chain(replaced, -1);
                self.count_chain(chain, 1);
            }
            if let Some(chain) = chain {
                out.push((key.clone(), chain.clone()));
            }
        }
        out.extend(old.cloned());
        Ok(differs.then_some(Entries::Leaf(out)))
    }

    fn inner(
        &mut self,
        level: u8,
        children: &[(KeyBytes, PageRef)],
        changes: &[Change<'_>],
    ) -> Result<Option<Entries>, CheckpointError> {
        let mut out = Vec::with_capacity(children.len());
        let mut differs = false;
        let mut rest = changes;
        for (index, (first, at)) in children.iter().enumerate() {
            // What is before the first child's first key becomes its first entry.
            let own = match children.get(index + 1) {
                Some((end, _)) => rest.partition_point(|(key, _)| key < end),
                None => rest.len(),
            };
            let (own, later) = rest.split_at(own);
            rest = later;
            // Only the parents of leaves know, without reading them, that no leaf is to be moved.
            let is_settled = match level {
                1 => !self.leave.contains(&at.object),
                _ => self.leave.is_empty(),
            };
            if own.is_empty() && is_settled {
                out.push(Child::Kept(first.clone(), *at));
                continue;
            }
            let Some(child) = self.readable(at, Some((level - 1, first)), own)? else {
                out.push(Child::Kept(first.clone(), *at));
                continue;
            };
            match self.changed(at, &child, own)? {
                Some(entries) => {
                    differs = true;
                    out.push(Child::New(entries));
                }
                None => out.push(Child::Kept(first.clone(), *at)),
            }
        }
        if !differs {
            return Ok(None);
        }
        Ok(Some(Entries::Inner(self.pack(level - 1, out)?)))
    }

    /// Writes the new nodes of a row of neighbours, small ones joined and large ones cut. Gives first key and place of each.
    fn pack(
        &mut self,
        level: u8,
        children: Vec<Child>,
    ) -> Result<Vec<(KeyBytes, PageRef)>, CheckpointError> {
        let mut joined: Vec<Child> = Vec::with_capacity(children.len());
        let is_small = |child: &Child| match child {
            Child::Kept(..) => false,
            Child::New(entries) => entries.weight() < NODE_BYTES_MIN,
        };
        for child in children {
            if matches!(&child, Child::New(entries) if entries.len() == 0) {
                continue;
            }
            match joined.pop() {
                None => joined.push(child),
                Some(left) if is_small(&left) || is_small(&child) => {
                    // What cannot be read is joined with nothing.
                    match (self.opened(level, left)?, self.opened(level, child)?) {
                        (Ok(mut left), Ok(child)) => {
                            left.append(child);
                            joined.push(Child::New(left));
                        }
                        (left, child) => {
                            let as_it_is = |child: Result<Entries, Child>| {
                                child.map_or_else(|kept| kept, Child::New)
                            };
                            joined.extend([left, child].map(as_it_is));
                        }
                    }
                }
                Some(left) => joined.extend([left, child]),
            }
        }
        let mut places = Vec::with_capacity(joined.len());
        for child in joined {
            match child {
                Child::Kept(first, at) => places.push((first, at)),
                Child::New(entries) => {
                    for entries in entries.cut() {
                        places.push(self.write(Node { level, entries })?);
                    }
                }
            }
        }
        Ok(places)
    }

    /// The entries of a child that is to be joined with a neighbour; it itself, if it cannot be read.
    fn opened(
        &mut self,
        level: u8,
        child: Child,
    ) -> Result<Result<Entries, Child>, CheckpointError> {
        match child {
            Child::New(entries) => Ok(Ok(entries)),
            Child::Kept(first, at) => match self.nodes.load(&at, Some((level, &first))) {
                Ok(node) => {
                    self.count(&at, -1);
                    Ok(Ok(node.entries.clone()))
                }
                Err(error) if error.is_unreadable() => Ok(Err(Child::Kept(first, at))),
                Err(error) => Err(error),
            },
        }
    }

    fn write(&mut self, node: Node) -> Result<(KeyBytes, PageRef), CheckpointError> {
        let first = node.entries.first_key().cloned().unwrap_or_default();
        let frame = node::encode(&node, self.csn, &mut self.payload, &mut self.encoder)?;
        let at = self.writer.put(frame)?;
        self.count(&at, 1);
        self.written += 1;
        self.written_bytes += u64::from(at.len);
        self.nodes.keep(at, Arc::new(node));
        Ok((first, at))
    }
}

/// Pages in the order of keys; see [`Directory::scan`].
pub struct Scan {
    nodes: Arc<Nodes>,
    /// What is scanned, until the first entry is asked for.
    start: Option<Directory>,
    from: KeyBytes,
    /// From the tree's root down: nodes, and which entry comes next.
    path: Vec<(Arc<Node>, PageRef, usize)>,
    /// What lies over the tree and was not met yet.
    over: VecDeque<fork::Entry>,
    /// The tree's next entry, and the node that has it, if it was looked at.
    under: Option<Option<(KeyBytes, Chain, PageRef)>>,
}

impl Scan {
    fn enter(
        &mut self,
        at: &PageRef,
        expected: Option<(u8, &[u8])>,
    ) -> Result<(), CheckpointError> {
        let node = self.nodes.load(at, expected)?;
        let index = match &node.entries {
            Entries::Leaf(entries) => entries.partition_point(|(key, _)| *key < self.from),
            Entries::Inner(entries) => entries
                .partition_point(|(first, _)| *first <= self.from)
                .saturating_sub(1),
        };
        self.path.push((node, *at, index));
        Ok(())
    }

    fn step(&mut self) -> Result<Option<(PageKey, Chain)>, CheckpointError> {
        if let Some(directory) = self.start.take() {
            let layers = directory.layers()?;
            let over = layers.over().iter();
            self.over = over.filter(|(key, _)| *key >= self.from).cloned().collect();
            if let Some(root) = layers.under {
                self.enter(&root, None)?;
            }
        }
        loop {
            let under = match self.under.take() {
                Some(known) => known,
                None => self.step_under()?,
            };
            let is_over = match (self.over.front(), &under) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some((key, _)), Some((at, ..))) => key <= at,
            };
            let above = match is_over {
                true => self.over.pop_front(),
                false => None,
            };
            let Some((key, chain)) = above else {
                let Some((key, chain, at)) = under else {
                    self.under = Some(None);
                    return Ok(None);
                };
                return Ok(Some((decoded(&key, &at)?, chain)));
            };
            let (older, later) = match under {
                Some((at, older, _)) if at == key => (Some(older), None),
                later => (None, Some(later)),
            };
            self.under = later;
            let chain = match (chain, older) {
                (Some(chain), Some(older)) if chain.is_below() => Some(older.with(&chain)),
                (chain, _) => chain,
            };
            if let Some(chain) = chain {
                return Ok(Some((decoded(&key, &chain.base())?, chain)));
            }
        }
    }

    /// The tree's next entry.
    fn step_under(&mut self) -> Result<Option<(KeyBytes, Chain, PageRef)>, CheckpointError> {
        while let Some((node, at, index)) = self.path.last_mut() {
            let here = *index;
            *index += 1;
            match &node.entries {
                Entries::Leaf(entries) => {
                    if let Some((key, chain)) = entries.get(here) {
                        return Ok(Some((key.clone(), chain.clone(), *at)));
                    }
                }
                Entries::Inner(entries) => {
                    if let Some((first, child)) = entries.get(here) {
                        let (first, child, level) = (first.clone(), *child, node.level - 1);
                        self.enter(&child, Some((level, &first)))?;
                        continue;
                    }
                }
            }
            self.path.pop();
        }
        Ok(None)
    }
}

fn decoded(key: &[u8], at: &PageRef) -> Result<PageKey, CheckpointError> {
    PageKey::decode(key).map_err(|why| damaged("a key in a leaf of the page directory", at, why))
}

impl Iterator for Scan {
    type Item = Result<(PageKey, Chain), CheckpointError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.start = None;
            self.path.clear();
            self.over.clear();
            self.under = Some(None);
        }
        step.transpose()
    }
}
