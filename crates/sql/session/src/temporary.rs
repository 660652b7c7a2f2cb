//! Temporary objects of a session: ON COMMIT and DISCARD TEMP.

use super::Session;
use super::ddl::DdlEnvironment;
use super::run::guarded;
use super::transaction::Open;
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
    pub(super) async fn settle_temporary(&mut self, open: &mut Open) -> Result<()> {
        let has_some = open.ddl.has_changes() || !self.temporary.is_empty();
        if open.reading.is_some() || !has_some {
            return Ok(());
        }
        self.follows_former(false).await?;
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
        let signals = Arc::clone(&self.signals);
        // What it has to tell is told to nobody: it was asked for.
        let mut around = DdlEnvironment::of(self);
        let mut cx = around.context(open, "");
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
