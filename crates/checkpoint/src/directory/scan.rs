//! Pages in the order of their keys: [`Directory::scan`], and what is found by it.

use super::Directory;
use crate::error::CheckpointError;
use crate::error::damaged;
use crate::fork;
use crate::node::{Entries, Node};
use crate::node_cache::NodeCache;
use crate::page_ref::{KeyBytes, PageChain, PageKey, PageOwner, PageRef, next_owner};
use logstead_types::TableId;
use std::collections::VecDeque;
use std::sync::Arc;

impl Directory {
    /// Pages and their chains in the order of keys, from the first one or from a given key on. Ends after an error.
    pub fn scan(&self, from: Option<&PageKey>) -> Scan {
        Scan {
            nodes: Arc::clone(&self.nodes),
            start: Some(self.clone()),
            from: from.map(PageKey::encode).unwrap_or_default(),
            path: Vec::new(),
            over: VecDeque::new(),
            under: None,
            passes: None,
        }
    }

    /// The pages of a table, or of an index. What lies under nodes that cannot be read is passed over, and then it is
    /// told why: there may be more.
    pub fn keys_of(
        &self,
        owner: PageOwner,
    ) -> Result<(Vec<PageKey>, Option<CheckpointError>), CheckpointError> {
        let from = PageKey::first_of(owner);
        let is_wanted = |key: &PageKey| key.owner() == owner;
        let mut scan = self.scan(Some(&from));
        scan.passes = Some(Vec::new());
        let mut keys = Vec::new();
        for entry in &mut scan {
            let (key, _) = entry?;
            if !is_wanted(&key) {
                break;
            }
            keys.push(key);
        }
        // A node that begins with what is not wanted has nothing of the rest.
        let mut passed = scan.passes.unwrap_or_default().into_iter();
        let may_have_some = |first: &KeyBytes| {
            *first <= from.encode() || PageKey::decode(first).map_or(true, |key| is_wanted(&key))
        };
        let why = passed.find(|(first, _)| may_have_some(first));
        Ok((keys, why.map(|(_, why)| why)))
    }

    /// The tables, and indexes, that have pages; and why some may be missing, if so. A node of each level is read for
    /// each.
    pub fn owners(&self) -> Result<(Vec<PageOwner>, Option<CheckpointError>), CheckpointError> {
        let mut found = Vec::new();
        let mut why = None;
        let mut next = Some((TableId(0), None));
        while let Some(at) = next.take() {
            let mut scan = self.scan(Some(&PageKey::first_of(at)));
            scan.passes = Some(Vec::new());
            let first = scan.next().transpose()?;
            let passed = scan.passes.unwrap_or_default();
            why = why.or_else(|| passed.into_iter().next().map(|(_, why)| why));
            if let Some((key, _)) = first {
                next = next_owner(key.owner());
                found.push(key.owner());
            }
        }
        Ok((found, why))
    }
}

/// Pages in the order of keys; see [`Directory::scan`].
pub struct Scan {
    nodes: Arc<NodeCache>,
    /// What is scanned, until the first entry is asked for.
    start: Option<Directory>,
    from: KeyBytes,
    /// From the tree's root down: nodes, and which entry comes next.
    path: Vec<(Arc<Node>, PageRef, usize)>,
    /// What lies over the tree and was not met yet.
    over: VecDeque<fork::Entry>,
    /// The tree's next entry, and the node that has it, if it was looked at.
    under: Option<Option<(KeyBytes, PageChain, PageRef)>>,
    /// Nodes that cannot be read are passed over, and noted here with their first keys, if it is there.
    passes: Option<Vec<(KeyBytes, CheckpointError)>>,
}

impl Scan {
    fn enter(
        &mut self,
        at: &PageRef,
        expected: Option<(u8, &[u8])>,
    ) -> Result<(), CheckpointError> {
        let node = match (self.nodes.load(at, expected), &mut self.passes) {
            (Err(error), Some(passed)) if error.is_unreadable() => {
                let first = expected.map_or_else(KeyBytes::new, |(_, first)| first.into());
                passed.push((first, error));
                return Ok(());
            }
            (node, _) => node?,
        };
        let index = match &node.entries {
            Entries::Leaf(entries) => entries.partition_point(|(key, _)| *key < self.from),
            Entries::Inner(entries) => entries
                .partition_point(|(first, _)| *first <= self.from)
                .saturating_sub(1),
        };
        self.path.push((node, *at, index));
        Ok(())
    }

    fn step(&mut self) -> Result<Option<(PageKey, PageChain)>, CheckpointError> {
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
    fn step_under(&mut self) -> Result<Option<(KeyBytes, PageChain, PageRef)>, CheckpointError> {
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
    type Item = Result<(PageKey, PageChain), CheckpointError>;

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
