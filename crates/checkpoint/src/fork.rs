//! What could not be put into the directory because nodes of it cannot be read: a second layer over its root.
//!
//! A node that cannot be read hides where the pages lie that it names, and who wants one of them is told. It does not
//! keep a checkpoint from being taken: what that has to change under the node lies in a *fork*, the root of such a
//! directory. It refers to the root of the tree below, which goes on naming the node that cannot be read, and holds the
//! changes themselves. A lookup asks the fork first. Every checkpoint tries again to put all of it into the tree; when
//! the node can be read there is no fork any more.
//!
//! A fork lies over a tree, never over another fork. So it has to be known what a directory's root is, and, if it is a
//! fork, what that says, before anything is changed: a root that cannot be read *might* be a fork. As long as that is
//! not known no checkpoint is taken, the last one and the log behind it stay, and who asks for a checkpoint is told
//! why. Once it is known it stays so for as long as the directory is there ([`Directory`](crate::Directory) keeps it):
//! a node at the root that becomes unreadable is hidden like any other, and what was looked up and what is changed
//! later are of the same fork.
//!
//! # Why nothing is lost
//!
//! - *No reference is dropped.* A node that cannot be read keeps its place in its parent, and none of the pages it
//!   names counts as used no more, until it has been read and they have been replaced. So no object with any of them is
//!   removed, and what the node says is there when it can be read again.
//! - *Every change is stored.* A change goes into the tree or into the fork, none anywhere else: the checkpoint holds
//!   all that was committed below its CSN, like any other, and the log before its starts may go. If the fork would be
//!   too large for a frame the checkpoint is not taken, and then nothing of the log goes.
//! - *Nothing old comes back.* What the fork says of a page takes the place of what the tree says, also that it is
//!   gone: a chain that begins below is refused there. What was written behind a chain that nobody could look up is a
//!   chain that begins *below* ([`PageChain::below`]): it counts over whatever the tree has, and is put behind that as
//!   soon as it is known. Until then its own pages can be read, and a slot that they do not tell of is one that cannot
//!   be read.
//! - *Nothing counts twice.* Who looked a chain up while the node could be read may put it here when it cannot be any
//!   more. Of it only the pages that were written behind what was looked up lie over the tree, wherever the others were
//!   moved to meanwhile: the tree goes on naming these where they were.
//!
//! Payload: the reference to the root of the tree below (as in a node), varint number of entries, and for each its key
//! as in a node and its chain as in a leaf. A chain whose base lies in object 0 is special: at offset 0 it begins
//! below, at offset 1 the page is gone. Keys grow.

use crate::frame::{self, Encoder, FrameError, FrameKind};
use crate::node::{put_chain, put_key, read_chain, read_key};
use crate::page_ref::{KeyBytes, PageChain, PageRef, REF_BYTES};
use logstead_types::Csn;
use logstead_wal::FormatError;
use logstead_wal::varint::{self, Reader};

/// The key of the frame: there is one in a checkpoint.
const KEY: &[u8] = b"fork";

/// A change that is in no node: a chain, or none any more.
pub(crate) type Entry = (KeyBytes, Option<PageChain>);

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fork {
    /// The root of the tree.
    pub(crate) under: PageRef,
    /// What counts over it, in the order of keys.
    pub(crate) over: Vec<Entry>,
}

impl Fork {
    /// What it says of a key, if anything.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Option<PageChain>> {
        let at = self.over.binary_search_by(|(at, _)| at[..].cmp(key)).ok()?;
        Some(&self.over[at].1)
    }

    /// Does it say anything of keys that begin like this?
    pub(crate) fn has_prefix(&self, prefix: &[u8]) -> bool {
        let at = self.over.partition_point(|(key, _)| key[..] < *prefix);
        self.over
            .get(at)
            .is_some_and(|(key, _)| key.starts_with(prefix))
    }

    /// Makes its frame.
    pub(crate) fn encode<'a>(
        &self,
        csn: Csn,
        encoder: &'a mut Encoder,
    ) -> Result<&'a [u8], FrameError> {
        let mut payload = Vec::new();
        self.under.put(&mut payload);
        varint::put(self.over.len() as u64, &mut payload);
        let mut before: &[u8] = &[];
        for (key, chain) in &self.over {
            put_key(key, before, &mut payload);
            before = key;
            put_chain(
                chain.as_ref().unwrap_or(&PageChain::removed()),
                &mut payload,
            );
        }
        encoder.encode(FrameKind::Fork, csn, KEY, &payload)
    }

    /// Reads its frame; `None` if it is one of another kind.
    pub(crate) fn decode(bytes: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Fork>, FrameError> {
        let frame = frame::decode(bytes, buffer)?;
        if frame.kind != FrameKind::Fork {
            return Ok(None);
        }
        if frame.key != KEY {
            return Err(FormatError::new("another fork", frame::HEADER_BYTES).into());
        }
        let mut from = Reader::new(frame.payload);
        let under = PageRef::read(&mut from)?;
        let count = from.number()?;
        // See nodes: a length that the payload does not bear out reserves nothing.
        if count > (frame.payload.len() / REF_BYTES) as u64 {
            return Err(FormatError::new("impossible number of entries", 0).into());
        }
        let mut over: Vec<Entry> = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let at = from.at();
            let before = over.last().map_or(&[][..], |(key, _)| key);
            let key = read_key(&mut from, before)?;
            if over.last().is_some_and(|(before, _)| key <= *before) {
                return Err(FormatError::new("keys out of their order", at).into());
            }
            let chain = read_chain(&mut from, frame.payload.len())?;
            over.push((key, (!chain.is_gone()).then_some(chain)));
        }
        if !from.is_empty() {
            return Err(FormatError::new("bytes behind the entries", from.at()).into());
        }
        Ok(Some(Fork { under, over }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Directory, ObjectIdAllocator, ObjectWriter, PageKey};
    use logstead_home::{LogHome, MemoryHome, ObjectId};
    use logstead_types::{Epoch, TableId};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    /// Nobody writes one: that its entries count over those of the other, also where these say that a page is gone, is
    /// told nowhere.
    #[test]
    fn a_fork_over_another_one_is_refused() {
        let home = LogHome::from(MemoryHome::new(1 << 20));
        let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(2)));
        let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
        let key = PageKey::Rows {
            table: TableId(1),
            chunk: 7,
        };
        let none = BTreeSet::new();
        let empty = Directory::open(home.objects.clone(), None);
        let page = PageRef {
            object: logstead_home::ObjectId(1 << 60),
            offset: 0,
            len: 1_000,
            crc: 5,
        };
        let changes = [(key.clone(), PageChain::whole(&[page]))];
        let tree = empty.apply(&changes, &none, Csn(1), &mut writer);
        let mut under = tree.expect("made").directory.root().expect("there");
        let mut encoder = Encoder::new();
        let mut forks = Vec::new();
        for chain in [None, Some(PageChain::below())] {
            let over = vec![(key.encode(), chain)];
            let fork = Fork { under, over };
            let frame = fork.encode(Csn(2), &mut encoder).expect("a frame");
            under = writer.put(frame).expect("written");
            forks.push(under);
        }
        let stored = writer.finish().expect("stored");
        let one = Directory::open(home.objects.clone(), Some(forks[0]));
        assert_eq!(one.get_to_change(&key).expect("read"), None);
        let two = Directory::open(home.objects.clone(), Some(forks[1]));
        assert!(two.get_to_change(&key).is_err());
        let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(3)));
        let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
        assert!(two.apply(&[], &none, Csn(3), &mut writer).is_err());
        drop(stored);
    }

    /// A page is looked up while the tree can be read, and changed when it cannot be any more: what the tree goes on
    /// naming does not count twice.
    #[test]
    fn a_page_that_was_looked_up_before_counts_once() {
        let memory = MemoryHome::new(1 << 20);
        let home = LogHome::from(memory.clone());
        let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(2)));
        let key = PageKey::Rows {
            table: TableId(1),
            chunk: 7,
        };
        let none = BTreeSet::new();
        let mut directory = Directory::open(home.objects.clone(), None);
        let mut live = crate::LiveChanges::new();
        let mut chain: Option<PageChain> = None;
        let mut kept = Vec::new();
        let mut of_tree = 0;
        // The second and the third come while the tree, which is in the first object, cannot be read; the third was
        // looked up while it could be.
        for (csn, was_looked_up) in [(1, true), (2, true), (3, true), (4, false)] {
            let mut writer = ObjectWriter::new(home.objects.clone(), Arc::clone(&object_ids), None);
            let page = writer.put(&[csn as u8; 200]).expect("written");
            memory.set_unreadable(None);
            if !was_looked_up {
                memory.set_unreadable(Some((ObjectId(of_tree), u64::MAX)));
            }
            let changed = match directory.get_to_change(&key).expect("looked up") {
                None => PageChain::whole(&[page]).expect("a page"),
                Some(mut found) => {
                    found.push(&[page]);
                    found
                }
            };
            match &mut chain {
                None => chain = Some(changed.clone()),
                Some(chain) => chain.push(&[page]),
            }
            if csn > 1 {
                memory.set_unreadable(Some((ObjectId(of_tree), u64::MAX)));
            }
            let changes = [(key.clone(), Some(changed))];
            let uncached = directory.uncached();
            let applied = uncached.apply(&changes, &none, Csn(csn), &mut writer);
            let applied = applied.expect("made");
            assert_eq!(applied.unreadable.is_some(), csn > 1);
            let stored = writer.finish().expect("stored");
            for (object, bytes) in &applied.live {
                *live.entry(*object).or_default() += bytes;
            }
            let sizes = home.objects.list_objects().expect("listed");
            for (object, bytes) in live.iter().filter(|(_, bytes)| **bytes != 0) {
                let info = sizes.iter().find(|info| info.id == *object);
                let size = info.expect("there").size_bytes as i64;
                assert!((1..=size).contains(bytes), "{csn}: {bytes} of {size}");
            }
            kept.push(stored);
            directory = applied.directory.uncached();
            if csn == 1 {
                of_tree = directory.root().expect("there").object.0;
            } else {
                let found = directory.get(&key).expect("partly known").expect("there");
                assert!(found.is_below(), "{csn}");
                assert_eq!(found.deltas().len() as u64, csn - 1);
            }
        }
        memory.set_unreadable(None);
        assert_eq!(directory.get(&key).expect("known"), chain);
        drop(kept);
    }

    /// Pages are moved, and others written behind them, while the tree can be read; when all of it is put into the
    /// directory it cannot be read any more. What was written counts over what the tree says, once. What was moved lies
    /// where the tree says, which goes on naming it there: the move is for nothing.
    #[test]
    fn what_was_written_behind_moved_pages_counts_and_these_count_once() {
        for (of_tree, over, is_folded) in
            (0..12).map(|shape| (shape % 3, shape / 3 % 2, shape / 6 == 1))
        {
            let pages = 2 + of_tree + over;
            for (moved, written) in
                (0..3 << pages).map(|case: usize| (case % (1 << pages), case >> pages))
            {
                if !is_folded || (written > 0 && of_tree > 0) {
                    moves(of_tree, over, is_folded, moved, written);
                }
            }
        }
    }

    /// One case of it: a base and a part with so many deltas of the tree, and others over it; the set of pages that are
    /// moved; how many are written.
    fn moves(of_tree: usize, over: usize, is_folded: bool, moved: usize, written: usize) {
        let case = format!("{of_tree} {over} {is_folded} {moved:b} {written}");
        let memory = MemoryHome::new(1 << 20);
        let home = LogHome::from(memory.clone());
        let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(2)));
        let key = PageKey::Rows {
            table: TableId(1),
            chunk: 7,
        };
        let mut stored = Vec::new();
        let mut csn = 0;
        let mut apply = |directory: &Directory,
                         change: &mut dyn FnMut(
            &mut dyn FnMut() -> PageRef,
        ) -> Option<PageChain>| {
            csn += 1;
            let mut writer = ObjectWriter::new(home.objects.clone(), Arc::clone(&object_ids), None);
            let changed = change(&mut || writer.put(&[csn as u8; 200]).expect("written"));
            let changes = changed.map(|chain| (key.clone(), Some(chain)));
            let none = BTreeSet::new();
            let made = directory.apply(changes.as_slice(), &none, Csn(csn), &mut writer);
            stored.push(writer.finish().expect("stored"));
            made.expect("made")
        };
        let looked_up = |directory: &Directory| directory.get_to_change(&key).expect("looked up");
        let empty = Directory::open(home.objects.clone(), None);
        let mut directory = apply(&empty, &mut |put| PageChain::whole(&[put(), put()])).directory;
        for _ in 0..of_tree {
            let mut chain = looked_up(&directory).expect("there");
            directory = apply(&directory, &mut |put| {
                chain.push(&[put()]);
                Some(chain.clone())
            })
            .directory;
        }
        let tree = directory.root().expect("there").object;
        let hidden = Some((tree, u64::MAX));
        for _ in 0..over {
            memory.set_unreadable(hidden);
            let uncached = directory.uncached();
            let mut chain = looked_up(&uncached).expect("there");
            assert!(chain.is_below());
            let made = apply(&uncached, &mut |put| {
                chain.push(&[put()]);
                Some(chain.clone())
            });
            memory.set_unreadable(None);
            directory = made.directory;
        }
        let mut expected = looked_up(&directory).expect("there");
        assert_eq!(expected.deltas().len(), of_tree + over, "{case}");
        let mut at = 0;
        let mut new = Vec::new();
        memory.set_unreadable(hidden);
        let made = apply(&directory.uncached(), &mut |put| {
            let chain = expected.map(|page| {
                at += 1;
                Ok::<_, ()>(match moved >> (at - 1) & 1 {
                    1 => put(),
                    _ => *page,
                })
            });
            let mut chain = chain.expect("moved");
            new.extend((0..written).map(|_| put()));
            match is_folded {
                true => chain = chain.folded(2, &[], &new).expect("deltas"),
                false if written > 0 => chain.push(&new),
                false => {}
            }
            Some(chain)
        });
        assert!(made.unreadable.is_some(), "{case}");
        let directory = made.directory;
        expected.push(&new);
        let hidden = directory.uncached().get(&key).ok().flatten();
        let deltas = hidden.as_ref().map_or(&[][..], PageChain::deltas);
        assert_eq!(deltas, &expected.deltas()[of_tree..], "{case}");
        memory.set_unreadable(None);
        let found = directory.uncached().get(&key).expect("known");
        assert_eq!(found.as_ref(), Some(&expected), "{case}");
        let made = apply(&directory, &mut |_| None);
        assert!(made.unreadable.is_none(), "{case}");
        assert_eq!(made.directory.get(&key).expect("known"), found, "{case}");
    }
}
