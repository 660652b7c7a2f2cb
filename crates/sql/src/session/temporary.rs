//! Temporary objects of a session: ON COMMIT and DISCARD TEMP.

use super::Session;
use super::run::guarded;
use super::transaction::Open;
use crate::catalog::ddl::{self, DdlContext};
use crate::error::Result;
use std::rc::Rc;
use std::sync::Arc;

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// What ON COMMIT asks for.
    Commit,
    /// DISCARD TEMP.
    Discard,
}

impl Session {
    /// Does what ON COMMIT asks for, as the last of a transaction.
    pub(super) async fn settle_temporary(&mut self, open: &mut Open) -> Result<()> {
        let has_some = open.ddl.has_changes() || !self.temporary.is_empty();
        if open.reading.is_some() || !has_some {
            return Ok(());
        }
        self.on_temporary(open, Work::Commit).await
    }

    /// Drops all temporary objects.
    pub(super) async fn discard_temporary(&mut self) -> Result<()> {
        if !self.has_private_catalog() || self.reading().is_some() {
            return Ok(());
        }
        self.transaction()?;
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        let done = self.on_temporary(&mut open, Work::Discard).await;
        self.open = Some(open);
        done
    }

    async fn on_temporary(&mut self, open: &mut Open, work: Work) -> Result<()> {
        let path = Rc::clone(&self.context.settings.borrow().typed().search_path);
        let store = Arc::clone(&self.worker.instance.store);
        let worker = self.worker.worker.clone();
        let context = Rc::clone(&self.context);
        let signals = Arc::clone(&self.signals);
        // Nobody is told that something goes: it was asked for.
        let mut notices = Vec::new();
        let mut cx = DdlContext {
            txn: &mut open.txn,
            state: &mut open.ddl,
            events: &mut open.events,
            store: &store,
            worker: &worker,
            session: &*context,
            search_path: &path,
            cancel: signals.statement(),
            work_mem_bytes: 0,
            notices: &mut notices,
            text: "",
        };
        let limits = self.limits();
        guarded(&signals, limits, async {
            match work {
                Work::Commit => ddl::at_commit(&mut cx).await,
                Work::Discard => ddl::discard(&mut cx).await,
            }
        })
        .await
    }
}
