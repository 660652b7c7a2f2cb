//! What is computed for indexes of rows that are there already, by functions that users have made
//! ([`catalog::index_expressions`](logstead_sql_catalog::index_expressions)).
//!
//! DDL has locked the table alone and given it the columns; here every row gets its values, as an UPDATE gives them: it
//! stops for calls, can be cancelled, and is undone with the statement. Nobody's triggers, policies or constraints are
//! asked. The functions run as the table's owner, as PostgreSQL has it.

use super::Session;
use super::cached_plan::Parameters;
use super::client::{Client, LocalFuture};
use super::ddl::DdlEnvironment;
use super::run::RunOutcome;
use crate::limits::run_with_limits;
use logstead_engine::Isolation;
use logstead_sql_ddl as ddl;
use logstead_sql_ddl::PendingIndexBuild;
use logstead_sql_exec::Execution;
use logstead_sql_plan as plan;
use logstead_sql_types::error::{Result, SqlError};
use std::rc::Rc;
use std::sync::Arc;

impl Session {
    /// Does what DDL has left to do.
    pub(super) fn fill_index_expressions<'a>(
        &'a mut self,
        text: &'a str,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let pending_builds = self.transaction()?.ddl.take_pending_builds();
            for pending_builds in pending_builds {
                let owner = self.catalog()?.table_acts_as(pending_builds.index.table);
                let before = self.context.as_role.get();
                if owner.is_some() {
                    self.context.act_as(owner);
                }
                let ran = self.compute_for(&pending_builds, client).await;
                self.context.act_as(before);
                ran?;
                self.build_computed(pending_builds, text).await?;
            }
            Ok(())
        })
    }

    /// Computes in all rows of a table what an index needs.
    async fn compute_for(
        &mut self,
        pending_builds: &PendingIndexBuild,
        client: &mut dyn Client,
    ) -> Result<()> {
        let catalog = self.catalog()?;
        let index = &pending_builds.index;
        let table = catalog.relations.get(&index.table).cloned();
        let table = table.ok_or_else(|| SqlError::internal("the table of an index is missing"))?;
        let path = Rc::clone(&self.context.settings.borrow().typed().search_path);
        let positions: Vec<usize> = index.computed.iter().flatten().copied().collect();
        let planned = self.plan_with(0, Parameters::of(&[]), &path, &catalog, |cx| {
            plan::plan_computed(&table, &positions, cx)
        })?;
        let (plan, _) = self.cached_plan(planned, None, &path, &catalog)?;
        let plan = self.context.permitted(plan)?;
        let open = self.transaction()?;
        open.txn.depends_on(catalog.csn);
        // Rows may be there that the snapshot does not show. Written by this transaction they would be in its sight,
        // as if it had seen what others have committed.
        if open.txn.isolation() != Isolation::ReadCommitted && !open.ddl.is_own(table.storage) {
            return Err(SqlError::unsupported(
                "building an index that calls a function which a user has made, in a REPEATABLE READ or SERIALIZABLE transaction,",
            ));
        }
        let mut execution = Execution::new(Arc::clone(&plan.prepared));
        let ran = self.run(&plan, &mut execution, &[], true, 0, client).await;
        match ran? {
            RunOutcome::Done { .. } => Ok(()),
            RunOutcome::Suspended => Err(SqlError::internal("an UPDATE that did not end")),
        }
    }

    /// Builds the index.
    async fn build_computed(
        &mut self,
        pending_builds: PendingIndexBuild,
        text: &str,
    ) -> Result<()> {
        let limits = self.limits();
        let signals = Arc::clone(&self.signals);
        let catalog = self.catalog()?;
        let mut around = DdlEnvironment::of(self);
        self.context.catalog.replace(Arc::clone(&catalog));
        let open = self.transaction()?;
        open.txn.begin_statement();
        open.txn.depends_on(catalog.csn);
        let mut cx = around.context(open, text);
        run_with_limits(&signals, limits, ddl::build(pending_builds, &mut cx)).await
    }
}
