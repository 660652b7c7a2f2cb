//! Statements that are not planned queries: each goes to who handles it.

use super::cached_plan::Statement;
use super::client::Client;
use super::run::lock;
use super::transaction::only_in_block;
use super::{Reply, Session};
use crate::limits::run_with_limits;
use crate::open_transaction::BlockState;
use logstead_engine::TableLock;
use logstead_sql_ddl::SettingChange;
use logstead_sql_parse::ast::{DiscardMode, LockStmt, Stmt};
use logstead_sql_plan::OutputColumn;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;
use std::sync::Arc;

impl Session {
    /// Runs anything but a planned query. `formats` are those of the result's rows.
    pub(super) async fn run_utility(
        &mut self,
        statement: &Statement,
        params: &[Datum],
        formats: &[i16],
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let parsed = statement
            .parsed()
            .ok_or_else(|| SqlError::internal("an empty statement was run"))?
            .clone();
        self.refuse_utility_in_stable(&parsed)?;
        self.refuse_during_recovery(&parsed)?;
        self.may_do(&parsed, &statement.text.text)?;
        if self.prior.is_some() {
            self.utility_waits_for_prior(&parsed.statement).await?;
        }
        // A statement that failed may have left some.
        self.context.sleep_us.set(0);
        let stmt = parsed
            .utility()
            .ok_or_else(|| SqlError::internal("a query is not a utility statement"))?;
        let (parsed, text) = (&parsed, &statement.text.text);
        match stmt {
            Stmt::Explain(explain) => {
                self.explain(explain, statement, parsed, params, client)
                    .await
            }
            Stmt::Execute(execute) => self.execute_prepared(execute, formats, client).await,
            Stmt::CreateTableAs(create) if !create.is_materialized_view => {
                self.create_table_as(create, statement, parsed, params, client)
                    .await
            }
            Stmt::CreateSchema(create) if !create.schema_elts.is_empty() => {
                self.create_schema(create, parsed, text, client).await
            }
            Stmt::Prepare(prepare) => self.prepare(prepare, statement, parsed).await,
            Stmt::DeclareCursor(declare) => {
                self.declare_cursor(declare, statement, parsed, params)
                    .await
            }
            Stmt::Copy(copy) => self.copy(copy, statement, parsed, client).await,
            Stmt::Call(call) => self.call(statement, call, params, client).await,
            Stmt::Do(block) => self.do_block(block, text, client).await,
            Stmt::Transaction(transaction) => {
                let tag = self.control(transaction, client).await?;
                Ok(Reply::tag(tag))
            }
            Stmt::VariableSet(set) => {
                if let Some(value) = super::set::as_of(stmt)? {
                    self.before_as_of(&value, client).await?;
                }
                self.variable_set(set, client)
            }
            Stmt::VariableShow(show) => self.show(show),
            Stmt::Discard(mode) => {
                if matches!(mode, DiscardMode::All | DiscardMode::Temp) {
                    self.discard_temporary().await?;
                }
                self.discard(*mode)
            }
            Stmt::Deallocate(name) => self.deallocate(name.as_deref()),
            Stmt::ClosePortal(name) => self.close_cursor(name.as_deref()),
            Stmt::Fetch(fetch) => self.fetch(fetch, formats, client).await,
            Stmt::Notify(_) | Stmt::Listen(_) | Stmt::Unlisten(_) => {
                self.notification_command(stmt)
            }
            Stmt::CheckPoint => {
                self.refuse_as_of_write("CHECKPOINT")?;
                self.checkpoint().await
            }
            Stmt::Lock(lock) => self.lock_tables(lock).await,
            Stmt::ConstraintsSet(set) => self.set_constraints(set, client).await,
            Stmt::AlterSystem(alter) => self.alter_system(&SettingChange::of(&alter.setstmt)?),
            stmt => {
                self.before_large_objects(stmt, client).await?;
                self.ddl(parsed, text, client).await
            }
        }
    }

    /// Result columns of a statement that is not a planned query.
    pub(super) fn utility_columns(&mut self, statement: &Statement) -> Result<Vec<OutputColumn>> {
        Ok(match statement.utility() {
            Some(Stmt::Explain(explain)) => vec![super::explain::column(explain)],
            Some(Stmt::Call(call)) => {
                let call = self.bound_call(statement, call)?;
                super::routine::call_columns(&call, &self.context.types())
            }
            Some(Stmt::Fetch(fetch)) if !fetch.ismove => {
                let cursor = self.cursors.columns(&fetch.portalname);
                cursor.map_or_else(Vec::new, |(columns, _)| columns.to_vec())
            }
            Some(Stmt::VariableShow(show)) => super::set::show_columns(show),
            Some(Stmt::Execute(execute)) => {
                let inner = self.find_statement(&execute.name)?;
                self.describe(&inner)?.columns.clone()
            }
            _ => Vec::new(),
        })
    }

    async fn lock_tables(&mut self, request: &LockStmt) -> Result<Reply> {
        if self.block == BlockState::None && self.routines == 0 {
            return Err(only_in_block("LOCK TABLE"));
        }
        use logstead_sql_parse::ast::LockMode as Mode;
        let mode = match request.mode {
            Mode::AccessShare => TableLock::AccessShare,
            Mode::RowShare => TableLock::RowShare,
            Mode::RowExclusive => TableLock::RowExclusive,
            Mode::ShareUpdateExclusive => TableLock::ShareUpdateExclusive,
            Mode::Share => TableLock::Share,
            Mode::ShareRowExclusive => TableLock::ShareRowExclusive,
            Mode::Exclusive => TableLock::Exclusive,
            Mode::AccessExclusive => TableLock::AccessExclusive,
        };
        let limits = self.limits();
        let signals = Arc::clone(&self.signals);
        for target in &request.relations {
            let mut asked = None;
            'again: loop {
                let catalog = self.catalog()?;
                let relations = self.lock_targets(&catalog, target, request.mode)?;
                if let Some(named) = relations.first() {
                    super::copy_in::same_relation(&mut asked, named)?;
                }
                for relation in &relations {
                    let table = match self.storage(relation, &catalog) {
                        Err(_) if self.is_outdated(&catalog)? => continue 'again,
                        found => found?,
                    };
                    let nowait = request.nowait;
                    let open = self.transaction()?;
                    if open.txn.lock_table(&table, mode).is_err() {
                        if nowait {
                            return Err(SqlError::new(
                                SqlState::LOCK_NOT_AVAILABLE,
                                format!("could not obtain lock on relation \"{}\"", relation.name),
                            ));
                        }
                        run_with_limits(&signals, limits, lock(&mut open.txn, &table, mode))
                            .await?;
                    }
                }
                if Arc::ptr_eq(&catalog, &self.catalog()?) {
                    break;
                }
            }
        }
        Ok(Reply::tag("LOCK TABLE"))
    }
}
