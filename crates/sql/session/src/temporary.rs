//! When temporary objects of a session are emptied or dropped: ON COMMIT and DISCARD TEMP. What is done then is
//! `ddl::temporary`'s.

use super::Session;
use super::ddl::DdlEnvironment;
use crate::limits::run_with_limits;
use crate::open_transaction::OpenTransaction;
use logstead_sql_ddl as ddl;
use logstead_sql_types::error::Result;
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
    pub(super) async fn settle_temporary(&mut self, open: &mut OpenTransaction) -> Result<()> {
        let has_some = open.ddl.has_changes() || !self.temporary.is_empty();
        if open.as_of_snapshot.is_some() || !has_some {
            return Ok(());
        }
        self.follow_prior(false).await?;
        self.on_temporary(open, Work::Commit).await
    }

    /// Drops all temporary objects.
    pub(super) async fn discard_temporary(&mut self) -> Result<()> {
        if !self.has_private_catalog() || self.as_of_snapshot().is_some() {
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

    async fn on_temporary(&mut self, open: &mut OpenTransaction, work: Work) -> Result<()> {
        let signals = Arc::clone(&self.signals);
        // What it has to tell is told to nobody: it was asked for.
        let mut around = DdlEnvironment::of(self);
        let mut cx = around.context(open, "");
        let limits = self.limits();
        run_with_limits(&signals, limits, async {
            match work {
                Work::Commit => ddl::at_commit(&mut cx).await,
                Work::Discard => ddl::discard(&mut cx).await,
            }
        })
        .await
    }
}
