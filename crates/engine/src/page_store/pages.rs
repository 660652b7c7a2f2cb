//! Reading single pages of the newest checkpoint, or of the one that a past is read from ([`NewestCheckpoint::of`]),
//! while the server runs: how what is absent comes back.
//!
//! A page that is looked for in the newest directory may be gone a moment later, because a newer checkpoint was
//! published meanwhile and its objects were collected. So what cannot be read is looked for again, as long as there is
//! a newer checkpoint each time. What then cannot be read is damaged, and is never served.

use std::sync::Arc;

use logstead_checkpoint::{Leaf, PageKey, PageReader, TileBoundaries};
use logstead_home::LogHome;
use logstead_types::TableId;

use crate::fault_error::FaultError;
use crate::index::Index;
use crate::page_store::NewestCheckpoint;
use crate::rows::TableRows;
use crate::tree::{LoadError, ResidentLeaves, StoredLeaf};

/// The pages of the newest checkpoint.
pub(crate) struct PageLoader {
    home: LogHome,
    newest: Arc<NewestCheckpoint>,
}

impl PageLoader {
    pub(crate) fn new(home: LogHome, newest: Arc<NewestCheckpoint>) -> PageLoader {
        PageLoader { home, newest }
    }

    /// A reader of pages: one for each thread.
    pub(crate) fn reader(&self) -> PageReader {
        PageReader::new(self.home.objects.clone())
    }

    /// Brings the leaf of an index that begins at `low` into memory, if it is absent; or finds out where leaves begin,
    /// if it stands for several.
    pub(crate) fn load_leaf(
        &self,
        table: TableId,
        index: &Index,
        low: &[u8],
        reader: &mut PageReader,
    ) -> Result<(), FaultError> {
        let key = PageKey::Leaf {
            table,
            index: index.id(),
            low: low.to_vec(),
        };
        index
            .load_leaf(
                low,
                |high| self.divide(table, index, low, high),
                || self.read_leaf(&key, &index.rows, reader),
            )
            .map_err(|error| match error {
                LoadError::Read(error) => error,
                LoadError::Unfit(why) => FaultError::Damaged(format!("{key}: {why}")),
            })
    }

    /// Brings in the leaves for which entries of an index are kept, as long as `go_on` says so.
    pub(crate) fn load_late_leaves(
        &self,
        table: TableId,
        index: &Index,
        reader: &mut PageReader,
        go_on: impl Fn() -> bool,
    ) -> Result<(), FaultError> {
        let mut before = None;
        while go_on()
            && let Some(low) = index.first_late_leaf()
        {
            if before.as_ref() == Some(&low) {
                // Somebody else brings it in just now.
                std::thread::yield_now();
            }
            self.load_leaf(table, index, &low, reader)?;
            before = Some(low);
        }
        Ok(())
    }

    /// Brings in all leaves of an index, as long as `go_on` says so. `room` is asked before each.
    pub(crate) fn load_all_leaves<R>(
        &self,
        table: TableId,
        index: &Index,
        reader: &mut PageReader,
        room: impl Fn() -> Result<R, FaultError>,
        go_on: impl Fn() -> bool,
    ) -> Result<(), FaultError> {
        let mut low: Box<[u8]> = Box::default();
        while go_on()
            && let Some(next) = index.next_absent_leaf(&low)
        {
            if low == next {
                // It was divided, or somebody else brings it in just now.
                std::thread::yield_now();
            }
            let _room = room()?;
            self.load_leaf(table, index, &next, reader)?;
            index.forget_touched(&next);
            low = next;
        }
        Ok(())
    }

    /// Brings in the leaves of an index between two places that are absent, as long as `go_on` says so, and tells how
    /// often it has read something. They count as used only if they are hot.
    pub(crate) fn load_leaves_between(
        &self,
        table: TableId,
        index: &Index,
        run: &ResidentLeaves,
        reader: &mut PageReader,
        go_on: impl Fn() -> bool,
    ) -> Result<u64, FaultError> {
        let mut reads = 0;
        let mut from: Box<[u8]> = run.low.as_slice().into();
        let mut before: Option<Box<[u8]>> = None;
        while go_on()
            && let Some(next) = index.next_absent_leaf(&from)
        {
            if run.high.as_deref().is_some_and(|high| *next >= *high) {
                break;
            }
            if before.as_ref() == Some(&next) {
                // It was divided, or somebody else brings it in just now.
                std::thread::yield_now();
            }
            self.load_leaf(table, index, &next, reader)?;
            if !run.is_hot {
                index.forget_touched(&next);
            }
            reads += 1;
            // What stands for several leaves may begin below the first that is wanted.
            if *next > *from {
                from.clone_from(&next);
            }
            before = Some(next);
        }
        Ok(reads)
    }

    /// Where some tiles of a part of an index begin.
    fn divide(
        &self,
        table: TableId,
        index: &Index,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<TileBoundaries, FaultError> {
        loop {
            let stored = self.newest.of(&index.rows);
            match stored.directory.divide(table, index.id(), low, high) {
                Ok(division) => return Ok(division),
                Err(_) if self.newest.is_after(&index.rows, &stored) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn read_leaf(
        &self,
        key: &PageKey,
        rows: &TableRows,
        reader: &mut PageReader,
    ) -> Result<StoredLeaf, FaultError> {
        let mut leaf = Leaf::default();
        loop {
            let stored = self.newest.of(rows);
            let read = match stored.directory.get(key) {
                Ok(Some(chain)) => reader.leaf(key, &chain, &mut leaf).map_err(Into::into),
                Ok(None) => Err(FaultError::Damaged(format!(
                    "{key}: the checkpoint at CSN {} does not have it",
                    stored.csn
                ))),
                Err(error) => Err(error.into()),
            };
            match read {
                Ok(()) => {
                    let mut found = StoredLeaf {
                        high: leaf.high().map(<[u8]>::to_vec),
                        ..StoredLeaf::default()
                    };
                    leaf.entries().for_each(|entry| found.entries.push(entry));
                    return Ok(found);
                }
                Err(_) if self.newest.is_after(rows, &stored) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
