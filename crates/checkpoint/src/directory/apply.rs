//! The next directory: [`Directory::apply`].

use super::{Directory, Layers, LiveChanges};
use crate::error::CheckpointError;
use crate::fork::{self, Fork};
use crate::frame::{Encoder, FrameError, FrameKind};
use crate::node::{self, Entries, LEVELS_MAX, NODE_BYTES_MIN, Node};
use crate::node_cache::NodeCache;
use crate::page_ref::{KeyBytes, PageChain, PageKey, PageRef};
use crate::rows::RowsPageBuilder;
use crate::writer::ObjectWriter;
use logstead_home::ObjectId;
use logstead_types::Csn;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// What [`Directory::apply`] has made.
pub struct DirectoryUpdate {
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

impl Directory {
    /// Makes the directory with these changes, sorted by key, each key once: a new chain, or none any more. Only nodes
    /// that differ are written, as of `csn`, and those that lie in objects of `leave`. A node that cannot be read stays
    /// as it is, and what was to be changed under it lies over the tree, where an [`apply`](Directory::apply) of the
    /// directory that is made finds it, and tries again. A root that cannot be read, and is not known to be a node, is
    /// an error.
    pub fn apply(
        &self,
        changes: &[(PageKey, Option<PageChain>)],
        leave: &BTreeSet<ObjectId>,
        csn: Csn,
        writer: &mut ObjectWriter<'_>,
    ) -> Result<DirectoryUpdate, CheckpointError> {
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
                    let is_below =
                        |chain: Option<&PageChain>| chain.is_some_and(PageChain::is_below);
                    let above = all.insert(key, chain);
                    // Who made the changes knew what lay over the tree. Where that has nothing to do with the tree any
                    // more, nothing begins there.
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
            fork: layers.fork.as_ref().map(|(_, fork)| Arc::clone(fork)),
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
        Ok(DirectoryUpdate {
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

type Change<'a> = (KeyBytes, Option<&'a PageChain>);

/// A child while its parent is made anew.
enum Child {
    /// As it is.
    Kept(KeyBytes, PageRef),
    /// To be written, cut if it is too large; perhaps with no entries at all.
    New(Entries),
}

/// One run of [`Directory::apply`].
struct Apply<'a, 'w> {
    nodes: &'a NodeCache,
    leave: &'a BTreeSet<ObjectId>,
    csn: Csn,
    writer: &'a mut ObjectWriter<'w>,
    /// What lay over the tree.
    fork: Option<Arc<Fork>>,
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

    fn count_chain(&mut self, chain: Option<&PageChain>, sign: i64) {
        for page in chain.into_iter().flat_map(PageChain::pages) {
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
                for (key, chain) in changes {
                    if let Some(left) = self.beside(key, *chain)? {
                        self.left.push((key.clone(), left));
                    }
                }
                self.unreadable.get_or_insert(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A change as it is to lie over the tree; nothing if none needs to. Who made it may have looked up what the tree
    /// says while that could be read: the tree goes on naming those pages where they were, and they must not count
    /// twice, wherever they were moved to, which can wait. What was written behind them lies in no other place, and
    /// must count.
    fn beside(
        &self,
        key: &KeyBytes,
        chain: Option<&PageChain>,
    ) -> Result<Option<Option<PageChain>>, CheckpointError> {
        let above = self.fork.as_ref().and_then(|fork| fork.get(key));
        let Some(chain) = chain else {
            return Ok(Some(None));
        };
        let above = match above {
            // The tree has no part in it.
            Some(Some(above)) if !above.is_below() => return Ok(Some(Some(chain.settled()))),
            above => above.and_then(Option::as_ref),
        };
        if chain.is_below() || chain.is_new() {
            return Ok(Some(Some(chain.settled())));
        }
        match chain.added() {
            Some([]) => Ok(above.map(|above| Some(above.clone()))),
            Some(added) => {
                let mut below = above.cloned().unwrap_or_else(PageChain::below);
                below.push(added);
                Ok(Some(Some(below.settled())))
            }
            // Nobody writes parts behind what was looked up.
            None => Err(CheckpointError::Misuse("a chain that is partly new")),
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

    /// The entries that a node at a place is to have; `None`: it stays as and where it is. Otherwise its place counts
    /// as free.
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

    /// The page that a chunk has which the tree does not know: what was written behind it, when that could not be told,
    /// is all there is.
    fn empty_base(&mut self, key: &KeyBytes) -> Result<Option<PageChain>, CheckpointError> {
        let Ok(key @ PageKey::Rows { .. }) = PageKey::decode(key) else {
            return Ok(None);
        };
        let mut page = RowsPageBuilder::new();
        page.begin(self.csn);
        let frame = page.finish(FrameKind::RowsBase, &key, &mut self.encoder)?;
        let at = self.writer.put(frame)?;
        Ok(PageChain::whole(&[at]))
    }

    fn leaf(
        &mut self,
        entries: &[(KeyBytes, PageChain)],
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
                out.push((key.clone(), chain.settled()));
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

    /// Writes the new nodes of a row of neighbours, small ones joined and large ones cut. Gives first key and place of
    /// each.
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
