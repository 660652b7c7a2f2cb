//! DDL as a session runs it: the one place where a [`DdlContext`] is made of a session and its transaction.

use super::client::Client;
use super::context::SessionContext;
use super::signals::Signals;
use super::{Reply, Session};
use crate::cached_plan::ParsedText;
use crate::limits::run_with_limits;
use crate::open_transaction::OpenTransaction;
use logstead_engine::{Isolation, Worker};
use logstead_sql_catalog::CatalogStore;
use logstead_sql_catalog::trigger::{TriggerEvent, TriggerTime};
use logstead_sql_catalog::write_errors::is_replica_error;
use logstead_sql_ddl as ddl;
use logstead_sql_ddl::{DdlContext, Notice, StatementParameters};
use logstead_sql_parse::Parsed;
use logstead_sql_parse::ast::Stmt;
use logstead_sql_types::error::{ErrorFields, Result, SqlError};
use logstead_types::{SqlState, TableId};
use std::rc::Rc;
use std::sync::Arc;

/// What DDL runs with, apart from the transaction.
pub(super) struct DdlEnvironment {
    search_path: Rc<[String]>,
    store: Arc<CatalogStore>,
    worker: Worker,
    context: Rc<SessionContext>,
    signals: Arc<Signals>,
    work_mem_bytes: usize,
    in_use: Vec<TableId>,
    /// What it had to tell.
    notices: Vec<Notice>,
}

impl DdlEnvironment {
    pub(super) fn of(session: &Session) -> DdlEnvironment {
        let context = Rc::clone(&session.context);
        let catalog = Arc::clone(&context.catalog.borrow());
        let work_mem_bytes = context.settings.borrow().typed().work_mem_bytes;
        DdlEnvironment {
            search_path: context.path_in(&catalog),
            store: Arc::clone(&session.worker.instance.store),
            worker: session.worker.worker.clone(),
            context,
            signals: Arc::clone(&session.signals),
            work_mem_bytes,
            in_use: {
                let mut in_use = session.cursors.in_use();
                in_use.extend_from_slice(&session.in_use);
                in_use
            },
            notices: Vec::new(),
        }
    }

    /// With the transaction that a statement runs in, and its text.
    pub(super) fn context<'a>(
        &'a mut self,
        open: &'a mut OpenTransaction,
        text: &'a str,
    ) -> DdlContext<'a> {
        DdlContext {
            txn: &mut open.txn,
            state: &mut open.ddl,
            events: &mut open.events,
            store: &self.store,
            worker: &self.worker,
            session: &*self.context,
            search_path: &self.search_path,
            cancel: self.signals.statement(),
            work_mem_bytes: self.work_mem_bytes,
            spill: Some(self.context.spill()),
            in_use: &self.in_use,
            notices: &mut self.notices,
            text,
            given: StatementParameters::default(),
        }
    }
}

impl Session {
    /// Runs a DDL statement.
    pub(super) async fn ddl(
        &mut self,
        parsed: &Parsed,
        text: &str,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        self.ddl_given(parsed, text, StatementParameters::default(), client)
            .await
    }

    /// The same of one whose query may name these parameters.
    pub(super) async fn ddl_given(
        &mut self,
        parsed: &Parsed,
        text: &str,
        given: StatementParameters<'_>,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let limits = self.limits();
        let signals = Arc::clone(&self.signals);
        self.settle_suspended().await?;
        let catalog = self.catalog()?;
        self.context.catalog.replace(Arc::clone(&catalog));
        let mut around = DdlEnvironment::of(self);
        // It may be the first of its transaction.
        self.transaction()?;
        // ANALYZE and VACUUM change nothing that anybody reads as data. What no serial order is asked of may do it.
        let vacuums = matches!(**parsed.statement, Stmt::Vacuum(_));
        let maintains =
            vacuums && !self.reads_as_of() && self.modes.isolation != Isolation::Serializable;
        if self.context.read_only.get()
            && !maintains
            && !self.changes_own_objects(parsed, text).await
        {
            return Err(refused_in_read_only(parsed));
        }
        let truncate = match &**parsed.statement {
            Stmt::Truncate(truncate) if catalog.triggers.any_of(TriggerEvent::Truncate) => {
                Some(truncate)
            }
            _ => None,
        };
        let mut emptied = Vec::new();
        if let Some(truncate) = truncate {
            let open = self.transaction()?;
            open.txn.begin_statement();
            open.txn.depends_on(catalog.csn);
            let mut cx = around.context(open, text);
            let locked = run_with_limits(&signals, limits, ddl::truncated(truncate, &mut cx)).await;
            self.tell(&around.notices, client);
            emptied = locked?;
            for table in &emptied {
                self.fire_truncate(*table, TriggerTime::Before, client)
                    .await?;
            }
        }
        // What was told of the tables is found once more.
        let told = around.notices.len();
        around.notices.clear();
        let catalog = self.catalog()?;
        self.context.catalog.replace(Arc::clone(&catalog));
        let open = self.transaction()?;
        open.txn.begin_statement();
        open.txn.depends_on(catalog.csn);
        let result = {
            // What a statement that failed has left.
            open.ddl.take_pending_builds();
            let mut cx = around.context(open, text);
            cx.given = given;
            run_with_limits(&signals, limits, ddl::execute(parsed, &mut cx)).await
        };
        self.tell(around.notices.get(told..).unwrap_or_default(), client);
        let tag = match result {
            Err(error) if is_replica_error(&error) => return Err(refused_in_read_only(parsed)),
            result => result?,
        };
        if self.is_at_replica() && self.transaction()?.ddl.changes_lasting() {
            return Err(refused_in_read_only(parsed));
        }
        // Not before: it waits for locks, and looks at what is newest behind them.
        self.transaction()?.fix_snapshot();
        for table in emptied {
            self.fire_truncate(table, TriggerTime::After, client)
                .await?;
        }
        self.fill_index_expressions(text, client).await?;
        // The rows of CREATE TABLE AS, defaults and checks may have asked for it.
        self.sleep_as_asked().await?;
        Ok(Reply::Tag(tag))
    }
}

impl Session {
    /// Does the statement change nothing but what the session of a replica has for itself?
    async fn changes_own_objects(&mut self, parsed: &Parsed, text: &str) -> bool {
        match &**parsed.statement {
            stmt if self.is_of_own_objects(stmt) => true,
            Stmt::View(create) if self.is_at_replica() && !self.reads_as_of() => {
                let mut around = DdlEnvironment::of(self);
                let Ok(open) = self.transaction() else {
                    return false;
                };
                let mut cx = around.context(open, text);
                ddl::view_is_own(create, &mut cx).await
            }
            _ => false,
        }
    }

    /// Tells of names that are longer than names may be, as PostgreSQL's scanner does.
    pub(super) fn tell_of_truncated(&self, parsed: &ParsedText, client: &mut dyn Client) {
        for name in parsed.statements.iter().flat_map(|one| &one.truncated) {
            let (name, short) = (&name.name, name.truncated());
            let notice = Notice {
                severity: "NOTICE",
                code: SqlState::NAME_TOO_LONG,
                message: format!("identifier \"{name}\" will be truncated to \"{short}\""),
                detail: None,
                hint: None,
            };
            self.tell(&[notice], client);
        }
    }

    fn tell(&self, notices: &[Notice], client: &mut dyn Client) {
        let quiet = !self.context.settings.borrow().typed().notices;
        for notice in notices {
            if !(quiet && notice.severity == "NOTICE") {
                client.notice(notice.severity, &notice_fields(notice));
            }
        }
    }
}

fn refused_in_read_only(parsed: &Parsed) -> SqlError {
    let tag = parsed.statement.tag();
    SqlError::new(
        SqlState::READ_ONLY_SQL_TRANSACTION,
        format!("cannot execute {tag} in a read-only transaction"),
    )
}

fn notice_fields(notice: &Notice) -> ErrorFields {
    let mut fields = SqlError::new(notice.code, notice.message.clone())
        .fields()
        .clone();
    fields.detail.clone_from(&notice.detail);
    fields.hint = notice.hint.map(Into::into);
    fields
}
