//! Nodes of the directory in memory, loaded when they are first needed.
//!
//! Invariant: a node is in the cache under the reference it was read or written with, and objects never change, so a
//! cached node is never stale. Nodes are in two generations; when the young one has filled half the room, the old one
//! is dropped and the young one becomes old. What is used stays: a node that is found in the old one moves to the
//! young.
//!
//! Nodes that a checkpoint has written lie one behind the other, in the order of their keys: who reads several of them,
//! at a start say, gets the next ones with the same request.

use crate::error::CheckpointError;
use crate::error::damaged;
use crate::fork::Fork;
use crate::frame;
use crate::node::{self, Entries, Node};
use crate::page_ref::{KeyBytes, PageChain, PageRef};
use crate::read::{ReadWindows, read_frame};
use foldhash::HashMap;
use logstead_home::ObjectReader;
use parking_lot::Mutex;
use std::sync::Arc;

/// What the nodes of a directory may take in memory, unless it is said otherwise: those of 10 GiB of rows of 100 bytes.
pub(crate) const CACHE_BYTES: usize = 256 << 20;

/// The most that is read for one node: some hundred others.
const AHEAD_BYTES_MAX: usize = 256 << 10;

#[derive(Default)]
struct Generation {
    nodes: HashMap<PageRef, Arc<Node>>,
    bytes: usize,
}

#[derive(Default)]
struct Cache {
    young: Generation,
    old: Generation,
}

/// Reads nodes and keeps them.
pub(crate) struct NodeCache {
    pub(crate) objects: Arc<dyn ObjectReader>,
    cache: Mutex<Cache>,
    bytes_max: usize,
    /// Read ahead by one reader at a time; others read what they need.
    ahead: Mutex<ReadWindows>,
}

/// What is at the root of a directory.
pub(crate) enum DirectoryRoot {
    /// A node, cached now.
    Node,
    /// What could not be put into the tree below it.
    Fork(Arc<Fork>),
}

fn footprint(node: &Node) -> usize {
    let heap = |key: &KeyBytes| if key.spilled() { key.capacity() } else { 0 };
    let entries: usize = match &node.entries {
        Entries::Leaf(entries) => entries
            .iter()
            .map(|(key, chain)| size_of::<(KeyBytes, PageChain)>() + heap(key) + chain.heap_bytes())
            .sum(),
        Entries::Inner(entries) => entries
            .iter()
            .map(|(key, _)| size_of::<(KeyBytes, PageRef)>() + heap(key))
            .sum(),
    };
    entries + size_of::<Node>() + size_of::<(PageRef, Arc<Node>)>()
}

impl NodeCache {
    pub(crate) fn new(objects: Arc<dyn ObjectReader>, bytes_max: usize) -> NodeCache {
        NodeCache {
            objects,
            cache: Mutex::default(),
            bytes_max,
            ahead: Mutex::new(ReadWindows::new(AHEAD_BYTES_MAX)),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let cache = self.cache.lock();
        cache.young.bytes + cache.old.bytes
    }

    pub(crate) fn keep(&self, at: PageRef, node: Arc<Node>) {
        let bytes = footprint(&node);
        let mut cache = self.cache.lock();
        if cache.young.bytes + bytes > self.bytes_max / 2 {
            cache.old = std::mem::take(&mut cache.young);
        }
        if cache.young.nodes.insert(at, node).is_none() {
            cache.young.bytes += bytes;
        }
    }

    fn cached(&self, at: &PageRef) -> Option<Arc<Node>> {
        let mut cache = self.cache.lock();
        if let Some(node) = cache.young.nodes.get(at) {
            return Some(Arc::clone(node));
        }
        let node = cache.old.nodes.remove(at)?;
        cache.old.bytes -= footprint(&node);
        drop(cache);
        self.keep(*at, Arc::clone(&node));
        Some(node)
    }

    /// What is at a place that is the root of a directory. A fork is not kept here: the directory does that, as long as
    /// it is there itself.
    pub(crate) fn root(&self, at: &PageRef) -> Result<DirectoryRoot, CheckpointError> {
        if self.cached(at).is_some() {
            return Ok(DirectoryRoot::Node);
        }
        let what = || "the root of the page directory".to_owned();
        let (mut bytes, mut buffer) = (Vec::new(), Vec::new());
        read_frame(&*self.objects, at, what, &mut bytes)?;
        let bad = |why| damaged(what(), at, why);
        if let Some(fork) = Fork::decode(&bytes, &mut buffer).map_err(bad)? {
            return Ok(DirectoryRoot::Fork(Arc::new(fork)));
        }
        let node = Arc::new(node::decode(&bytes, None, &mut buffer).map_err(bad)?);
        self.keep(*at, node);
        Ok(DirectoryRoot::Node)
    }

    /// The node at a place. `expected`: its level and first key, unless it is the root.
    pub(crate) fn load(
        &self,
        at: &PageRef,
        expected: Option<(u8, &[u8])>,
    ) -> Result<Arc<Node>, CheckpointError> {
        if let Some(node) = self.cached(at) {
            return Ok(node);
        }
        let node = Arc::new(self.read(at, expected)?);
        self.keep(*at, Arc::clone(&node));
        Ok(node)
    }

    /// The same from the home, whatever nodes are cached.
    pub(crate) fn read(
        &self,
        at: &PageRef,
        expected: Option<(u8, &[u8])>,
    ) -> Result<Node, CheckpointError> {
        let what = || match expected {
            None => "the root of the page directory".to_owned(),
            Some((level, _)) => format!("a node of the page directory, level {level}"),
        };
        if let Some(mut ahead) = self.ahead.try_lock()
            && ahead.load(&*self.objects, at).is_ok()
            && let Some(bytes) = ahead.front(at)
            && frame::checksum(bytes) == at.crc
            && let Ok(node) = node::decode(bytes, expected, &mut Vec::new())
        {
            return Ok(node);
        }
        // Somebody else reads ahead, or what was read is not right: another copy may be, and otherwise this tells what
        // is wrong.
        let mut bytes = Vec::new();
        read_frame(&*self.objects, at, what, &mut bytes)?;
        node::decode(&bytes, expected, &mut Vec::new()).map_err(|why| damaged(what(), at, why))
    }
}
