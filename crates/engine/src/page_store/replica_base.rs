//! What a replica has begun with: the checkpoint from which all that is absent comes, whatever newer ones there are.

use std::sync::{Arc, OnceLock};

use logstead_checkpoint::CheckpointRecord;
use logstead_home::{HomeError, LogHome, ObjectId};
use logstead_types::{Csn, Epoch, IndexId, TableId};
use logstead_wal::inspect::manifest_of;

use crate::fault_error::FaultError;
use crate::page_store::{NOT_RESTORED, NewestCheckpoint};
use crate::stored_checkpoint::StoredCheckpoint;

/// What an engine that follows a log has begun with.
pub(crate) struct ReplicaBase {
    pub(crate) home: LogHome,
    /// The primary's life that was the newest when it opened.
    pub(crate) epoch: Epoch,
    /// The checkpoint, if there was one, and its object.
    pub(crate) record: Option<CheckpointRecord>,
    pub(crate) begin: Option<ObjectId>,
    /// Where its pages are read from, always.
    pub(crate) newest: Arc<NewestCheckpoint>,
    /// Somebody has found that the checkpoint is gone: there is one that has everything below this CSN.
    pub(crate) superseded: OnceLock<Csn>,
}

impl ReplicaBase {
    /// An index of the checkpoint, if its keys are made like that.
    pub(crate) fn stored_index(
        &self,
        table: TableId,
        index: IndexId,
        keys: u64,
    ) -> Option<StoredCheckpoint> {
        let info = self.record.as_ref()?.index(table, index)?;
        (info.keys == keys && keys != NOT_RESTORED).then(|| self.newest.get())
    }

    /// Something cannot be read: is the checkpoint gone, because there is a newer one?
    pub(crate) fn explain(&self, error: FaultError) -> FaultError {
        if !matches!(error, FaultError::Damaged(_) | FaultError::Unreachable(_)) {
            return error;
        }
        let is_gone = self.begin.is_some_and(|begin| {
            let read = self.home.objects.read_object(begin, 0, &mut [0]);
            matches!(read, Err(HomeError::Missing(_)))
        });
        if !is_gone {
            return error;
        }
        let newest = manifest_of(&self.home).ok();
        let newest = newest.and_then(|manifest| manifest.checkpoint);
        match newest.filter(|newest| Some(newest.object) != self.begin) {
            Some(newest) => {
                let _was_found_before = self.superseded.set(newest.csn);
                FaultError::TooOld(newest.csn)
            }
            None => error,
        }
    }
}
