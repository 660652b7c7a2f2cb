//! The end of a checkpoint: its directory, its record, and what its publication changes.
//!
//! Does not: look at chunks or leaves ([`super::take`]), or know how a record is named ([`crate::page_store`]).

use logstead_checkpoint::{DirectoryUpdate, NewCheckpoint, PageKey, StoredObjects, TableInfo};
use logstead_types::Rid;

use super::take::{Checkpoint, WriterBase, kept};
use crate::page_store::{CheckpointError, CheckpointReport};
use crate::version::CHUNK_SLOTS;

impl Checkpoint {
    /// Tells of a node of the directory that cannot be read: once, not with each checkpoint that meets it.
    fn report_hidden(&self, damage: &logstead_checkpoint::CheckpointError, changes: usize) {
        let damage = damage.to_string();
        let mut stats = self.engine.inner().checkpoints.stats.lock();
        if stats.last_damage.as_ref() != Some(&damage) {
            tracing::error!(
                "{damage}: where pages lie that it names cannot be told; what has changed of them, {changes} now, is kept beside it, and the log goes on being truncated"
            );
            stats.last_damage = Some(damage);
        }
    }

    /// Stores the directory of what was written, and what was not stored yet. All chunks were walked. Also whether it
    /// has the tiles of this process.
    pub(super) fn store(
        &mut self,
    ) -> Result<(DirectoryUpdate, bool, StoredObjects), CheckpointError> {
        let base = self.base.as_ref().ok_or(CheckpointError::Busy)?.pages();
        let of_these = |id| {
            self.tables
                .binary_search_by_key(&id, |table| table.id())
                .is_ok()
        };
        let others =
            base.pages_of_others(of_these, |table, index| self.tiles.contains(table, index))?;
        let changes = &mut self.named;
        changes.extend(others.keys.iter().map(|key| (key.clone(), None)));
        changes.extend(self.changes.iter().map(|change| {
            let key = PageKey::Rows {
                table: self.tables[change.table].id(),
                chunk: change.chunk,
            };
            (key, change.chain.clone())
        }));
        let of_tiles = self.tiles.take_changes();
        let (of_tiles, unread) = match base.tile_changes(self.tiles.numbers(), of_tiles) {
            Ok(changes) => (changes, None),
            // What is there stays, and no start uses it.
            Err(CheckpointError::Pages(error)) if error.is_unreadable() => {
                self.tiles.give_up();
                (Vec::new(), Some(error))
            }
            Err(error) => return Err(error),
        };
        changes.extend(of_tiles);
        changes.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut writer = self.writer.take().ok_or(CheckpointError::Busy)?;
        let made = base.make(changes, self.moves.objects(), self.csn, &mut writer)?;
        let hidden = made.unreadable.as_ref();
        let damage = hidden.map(|(damage, _)| damage).or(others.damage.as_ref());
        if let Some(damage) = damage.or(unread.as_ref()) {
            self.report_hidden(damage, hidden.map_or(0, |(_, count)| *count));
        }
        let mut stored = writer.finish()?;
        let object = kept(stored.take_buffer());
        self.report.nodes = made.nodes;
        self.report.took.directory = self.lap();
        let base = self.base.as_mut().ok_or(CheckpointError::Busy)?.pages_mut();
        base.buffers.object = object;
        self.others = Some(others);
        Ok((made, unread.is_none(), stored))
    }

    /// What the record says, besides where pages lie.
    pub(super) fn new_checkpoint(&mut self) -> NewCheckpoint {
        let infos = self.tables.iter().map(|table| TableInfo {
            table: table.id(),
            rid_end: table.rows.rid_end(),
        });
        NewCheckpoint {
            csn: self.csn,
            taken_at_micros: self.engine.inner().env.clock.now_micros_since_2000(),
            tables: infos.collect(),
            divided: self
                .tables
                .iter()
                .filter_map(|table| table.rows.divided_as())
                .collect(),
            indexes: self.tiles.infos(),
            starts: std::mem::take(&mut self.starts),
        }
    }

    /// Names what was written as the newest checkpoint, and removes what nothing needs any more. All chunks were
    /// walked.
    pub fn publish(mut self) -> Result<CheckpointReport, CheckpointError> {
        assert!(!self.walk(1)?, "a checkpoint is of all chunks");
        self.report.took.walking = self.lap();
        let base = self.base.as_ref().ok_or(CheckpointError::Busy)?;
        if base.is_current(self.csn) {
            let now = self.engine.inner().env.clock.monotonic();
            // What was kept for replicas may have had its time.
            if let Some(WriterBase::Primary(base)) = &mut self.base
                && base.replica_holds().keeps_anything()
            {
                base.collect_released(now, &mut self.report);
            }
            return Ok(self.report.clone());
        }
        let (made, has_tiles, stored) = self.store()?;
        let new = self.new_checkpoint();
        let others = self.others.take().unwrap_or_default();
        let Some(WriterBase::Primary(base)) = &mut self.base else {
            return Err(CheckpointError::Replica);
        };
        let retention = &self.engine.inner().checkpoints.retention;
        let now = self.engine.inner().env.clock.monotonic();
        let made = (made, has_tiles);
        base.publish(now, new, made, stored, retention, &mut self.report)?;
        base.pages.others_are_gone(others);
        // From here on the next one is taken from this.
        self.published = true;
        self.tiles.published();
        self.rows_are_saved();
        self.collect();
        Ok(self.report.clone())
    }

    /// What was written is in the newest checkpoint, which loads read.
    pub(super) fn rows_are_saved(&self) {
        let instances = self.engine.instances();
        for change in &self.changes {
            let first = Rid(change.chunk * CHUNK_SLOTS as u64);
            instances.count_checkpoint_chunk(self.tables[change.table].rows.partition_of(first));
            if let Some((chunk, _)) = self.tables[change.table].rows.slot(first) {
                match &change.present {
                    Some(present) if change.by_tail => {
                        let rows = &self.tables[change.table].rows;
                        rows.tail_is_written(change.chunk, chunk, present, &change.doubtful);
                    }
                    Some(present) => chunk.set_saved(present),
                    None => {}
                }
                // From here on it may be evicted: it is brought back from this checkpoint, or a later one.
                chunk.end_writing(false);
            }
        }
    }

    /// Removes what nothing needs any more, now that it is published.
    pub(super) fn collect(&mut self) {
        let Some(WriterBase::Primary(base)) = &mut self.base else {
            return;
        };
        base.shared().set_has_tails();
        let inner = self.engine.inner();
        let now = inner.env.clock.monotonic();
        self.report.took.publishing = now.since(std::mem::replace(&mut self.lap, now));
        self.report.written = true;
        inner.pasts.tidy(inner.env.clock.as_ref(), false);
        // What is published can be read from now on, though collecting take long.
        inner.checkpoints.note_points(base);
        base.collect(inner.env.clock.monotonic(), &mut self.report);
        inner.checkpoints.note_points(base);
        self.report.took.collecting = self.lap();
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        let inner = self.engine.inner();
        if !self.published {
            for change in &self.changes {
                let first = Rid(change.chunk * CHUNK_SLOTS as u64);
                if let Some((chunk, _)) = self.tables[change.table].rows.slot(first) {
                    chunk.end_writing(change.changed);
                }
            }
        }
        self.snapshots
            .release(self.csn, inner.published_by_checkpoints());
        // What was stored for nothing is given up before the turn is.
        self.writer = None;
        let Some(WriterBase::Primary(mut base)) = self.base.take() else {
            return;
        };
        base.pages.buffers.changes = kept(std::mem::take(&mut self.changes));
        base.pages.buffers.named = kept(std::mem::take(&mut self.named));
        *inner.checkpoints.base.lock() = Some(*base);
    }
}
