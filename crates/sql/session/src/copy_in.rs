//! COPY table FROM STDIN.

use super::cached_plan::Statement;
use super::client::{Client, CopyInput};
use super::context::SessionContext;
use super::copy_format::CopyFormat;
use super::copy_reader::reader;
use super::run::lock;
use super::{Reply, Session};
use crate::copy_options::copied_columns;
use crate::limits::{StatementTimeouts, run_piece_with_limits, run_with_limits};
use crate::open_transaction::OpenTransaction;
use logstead_engine::{Engine, TableLock};
use logstead_sql_catalog::trigger::{TriggerEvent, TriggerTime};
use logstead_sql_catalog::{Catalog, Relation, RelationKind};
use logstead_sql_ddl as ddl;
use logstead_sql_ddl::pg_catalog::calls::QualifiedName;
use logstead_sql_exec::{self as exec, Cancel, Inserter, Progress, StatementContext};
use logstead_sql_parse::Parsed;
use logstead_sql_parse::ast::{self, CopySource, CopyStmt, CopyTarget, Name, RangeVar, Stmt};
use logstead_sql_plan::bind;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{Node, Plan, PlanContext, walk};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;
use std::rc::Rc;
use std::sync::Arc;

/// What WHERE leaves of the rows. It sees whole rows, and defaults are drawn once: so it makes them, and the plan takes
/// them as they are.
struct Filter {
    values: Vec<Expr>,
    condition: Expr,
}

impl Filter {
    fn of(plan: &mut Plan, relation: &Relation, condition: Expr) -> Result<Filter> {
        let Node::Insert(insert) = &mut plan.node else {
            return Err(SqlError::internal("a COPY that does not insert"));
        };
        let columns = relation.columns.iter().enumerate();
        let whole = columns.map(|(at, column)| Expr::Column(at, column.ty));
        Ok(Filter {
            values: std::mem::replace(&mut insert.values, whole.collect()),
            condition,
        })
    }

    /// Makes the whole row; is it one to keep?
    fn whole(&self, row: &mut Vec<Datum>, session: &super::SessionContext) -> Result<bool> {
        let eval = exec::EvalContext {
            params: &[],
            session,
        };
        let values = self.values.iter();
        *row = values
            .map(|value| exec::eval(value, row, &eval))
            .collect::<Result<_>>()?;
        Ok(matches!(
            exec::eval(&self.condition, row, &eval)?,
            Datum::Bool(true)
        ))
    }
}

/// 0A000 for what is no query to COPY.
fn refuse_query(query: &Stmt) -> Result<()> {
    let message = match query {
        Stmt::Select(query) if query.into_clause().is_some() => {
            "COPY (SELECT INTO) is not supported"
        }
        Stmt::Merge(_) => "MERGE not supported in COPY",
        _ => return Ok(()),
    };
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
}

/// 40001 if a name has come to mean another relation while a lock was waited for: whoever runs the statement was let in
/// for the first.
pub(super) fn same_relation(asked: &mut Option<RelationId>, found: &Relation) -> Result<()> {
    if *asked.get_or_insert(found.oid) == found.oid {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::SERIALIZATION_FAILURE,
        format!(
            "relation \"{}\" was replaced by a concurrent transaction",
            found.name
        ),
    ))
}

impl Session {
    /// COPY in either direction.
    pub(super) async fn copy(
        &mut self,
        copy: &CopyStmt,
        statement: &Statement,
        parsed: &Parsed,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let text = &*statement.text.text;
        match &copy.target {
            CopyTarget::Client => {}
            CopyTarget::File(_) => {
                return Err(SqlError::unsupported("COPY with a file on the server"));
            }
            CopyTarget::Program(_) => {
                return Err(SqlError::unsupported("COPY with a program on the server"));
            }
        }
        let mut format = CopyFormat::read(&copy.options, copy.is_from, text)?;
        // As in PostgreSQL, texts within values in binary form are the client's, whatever ENCODING says.
        let encoding = format
            .encoding
            .filter(|_| !format.binary)
            .unwrap_or_else(|| self.context.client_encoding());
        format.encoding = Some(encoding).filter(|encoding| !encoding.is_plain());
        match &copy.source {
            CopySource::Relation { relation, attlist } if copy.is_from => {
                let condition = copy.where_clause.as_ref().map(|c| (c, text));
                self.copy_from(relation, attlist, condition, format, client)
                    .await
            }
            CopySource::Relation { relation, attlist } => {
                let once = self.rows_of_table(relation, attlist)?;
                self.copy_to(once, format, client).await
            }
            CopySource::Query(query) => {
                refuse_query(query)?;
                let tree = Arc::new(parsed.statement.part(Stmt::clone(query)));
                let once = Statement::once(Rc::clone(&statement.text.text), tree, Vec::new());
                self.copy_to(once, format, client).await
            }
        }
    }

    /// Finds an ordinary relation by its name in a statement.
    pub(super) fn find_relation(
        &self,
        catalog: &Arc<Catalog>,
        name: &impl QualifiedName,
    ) -> Result<Arc<Relation>> {
        let path = self.context.path_in(catalog);
        ddl::named_table(name, self.context.lookup(catalog, &path))
    }

    async fn copy_from(
        &mut self,
        name: &RangeVar,
        columns: &[Name],
        condition: Option<(&ast::Expr, &str)>,
        format: CopyFormat,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let limits = self.limits();
        let signals = Arc::clone(&self.signals);
        let engine = self.worker.instance.engine.clone();
        // The table is locked before the plan is trusted, as for any statement.
        let mut asked = None;
        let (catalog, relation) = loop {
            let catalog = self.catalog()?;
            let relation = self.copy_target(&catalog, name, columns)?;
            same_relation(&mut asked, &relation)?;
            if let Some(error) = no_target(&relation, &catalog) {
                // As in PostgreSQL, the client sends already when this is said.
                let positions = copied_columns(&relation, columns)?;
                client.copy_in(positions.len(), format.binary);
                self.flush_batch(client).await?;
                return Err(error);
            }
            let table = match self.storage(&relation, &catalog) {
                Err(_) if self.is_outdated(&catalog)? => continue,
                found => found?,
            };
            self.transaction()?;
            if self.context.read_only.get() && !relation.is_temporary() {
                return Err(SqlError::new(
                    SqlState::READ_ONLY_SQL_TRANSACTION,
                    "cannot execute COPY FROM in a read-only transaction",
                ));
            }
            let open_txn = match self.open.as_mut() {
                Some(open) => &mut open.txn,
                None => return Err(SqlError::internal("no transaction")),
            };
            run_with_limits(
                &signals,
                limits,
                lock(open_txn, &table, TableLock::RowExclusive),
            )
            .await?;
            // So are the tables it references.
            for key in relation.constraints.iter().filter_map(|c| c.foreign()) {
                if let Some(parent) = catalog.relations.get(&key.table)
                    && let Some(table) = engine.table(parent.storage)
                {
                    run_with_limits(
                        &signals,
                        limits,
                        lock(open_txn, &table, TableLock::AccessShare),
                    )
                    .await?;
                }
            }
            if Arc::ptr_eq(&catalog, &self.catalog()?) {
                break (catalog, relation);
            }
        };
        let positions = copied_columns(&relation, columns)?;
        let mut plan = self.copy_plan(&catalog, &relation, &positions)?;
        let filter = match condition {
            Some((condition, text)) => {
                let condition = self.copy_condition(&catalog, &relation, condition, text)?;
                Some(Filter::of(&mut plan, &relation, condition)?)
            }
            None => None,
        };
        let domains = self.copied_domains(&catalog, &relation, &positions)?;
        let encoded = format.encoding.filter(|_| !format.binary);
        // As it came, before it is UTF-8.
        let mut received = Vec::new();
        let is_made_here = !format.freeze || self.was_made_here(&relation);
        let mut reader = reader(&relation, &positions, domains, format)?;
        self.settle_suspended().await?;
        let context = Rc::clone(&self.context);
        context.catalog.replace(Arc::clone(&catalog));
        let open = self.transaction()?;
        open.txn.depends_on(catalog.csn);
        open.txn.begin_statement();
        client.copy_in(positions.len(), reader.binary.is_some());
        self.flush_batch(client).await?;
        // As in PostgreSQL, the client sends already when this is said.
        if !is_made_here {
            return Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cannot perform COPY FREEZE because the table was not created or truncated in the current subtransaction",
            ));
        }
        let mut inserter = Inserter::new(Arc::new(exec::prepare(plan)))?;
        let mut rows = 0u64;
        let mut end = false;
        self.set_deadline(limits);
        let tables = vec![relation.storage];
        loop {
            let open = self.transaction()?;
            let mut cx = copying(open, &catalog, &context, &engine, signals.statement());
            if run_with_limits(&signals, limits, inserter.begin(&mut cx)).await? != Progress::Call {
                break;
            }
            let tables = tables.clone();
            self.answer_caller(&mut inserter, tables, &catalog, client)
                .await?;
        }
        while !end {
            // However often it waits, and however much comes: it has the time of one statement.
            let limits = self.limits_left(limits)?;
            self.end_request();
            let waits = StatementTimeouts {
                lock_ms: 0,
                ..limits
            };
            let into = match encoded {
                Some(_) => &mut received,
                None => reader.room()?,
            };
            let input = run_piece_with_limits(&signals, waits, client.copy_input(into)).await?;
            self.begin_request();
            match input {
                CopyInput::Data => {}
                CopyInput::Done => end = true,
                CopyInput::Failed(reason) => {
                    return Err(SqlError::new(
                        SqlState::QUERY_CANCELED,
                        format!("COPY from stdin failed: {reason}"),
                    )
                    .context(format!(
                        "COPY {}, line {}",
                        relation.name,
                        reader.line + 1
                    )));
                }
            }
            // What comes before a character that is none is read first: the error is told of its line.
            let mut failed = None;
            if let Some(encoding) = encoded {
                let kept = match end {
                    true => 0,
                    false => encoding.incomplete(&received),
                };
                let whole = received.len() - kept;
                let text = received.get(..whole).unwrap_or_default();
                failed = encoding.decode(text, reader.room()?).err();
                received.drain(..whole);
            }
            while reader.next(end && failed.is_none(), &context)? {
                if let Some(filter) = &filter {
                    let kept = filter.whole(&mut reader.row, &context);
                    if !kept.map_err(|error| error.context(reader.row_context()))? {
                        continue;
                    }
                }
                let row = std::mem::take(&mut reader.row);
                let mut called = false;
                let pushed = loop {
                    let open = self.transaction()?;
                    let mut cx = copying(open, &catalog, &context, &engine, signals.statement());
                    let pushed =
                        run_piece_with_limits(&signals, limits, inserter.push(&mut cx, &row)).await;
                    match pushed {
                        Ok(Progress::Call) => {
                            let tables = tables.clone();
                            let answered =
                                self.answer_caller(&mut inserter, tables, &catalog, client);
                            if let Err(error) = answered.await {
                                called = true;
                                break Err(error);
                            }
                        }
                        pushed => break pushed,
                    }
                };
                reader.row = row;
                match pushed {
                    // As in PostgreSQL, a view's rows count whatever its trigger makes of them.
                    Ok(Progress::Done { .. }) if relation.view().is_some() => rows += 1,
                    // Rows that a table's trigger has left out do not.
                    Ok(Progress::Done { rows: written }) => rows += written,
                    Ok(_) => return Err(SqlError::internal("a row of COPY was left open")),
                    Err(error) if called || error.fields().context.is_none() => {
                        // The row was read already: PostgreSQL names its line and no more.
                        let context = if error.code() == SqlState::UNIQUE_VIOLATION {
                            format!("COPY {}, line {}", reader.table, reader.line)
                        } else {
                            reader.row_context()
                        };
                        return Err(error.context(context));
                    }
                    Err(error) => return Err(error),
                }
            }
            if let Some(error) = failed {
                let line = reader.line + 1;
                return Err(error.context(format!("COPY {}, line {line}", reader.table)));
            }
            if context.sleep_us.get() > 0 {
                self.sleep_as_asked().await?;
            }
        }
        loop {
            let open = self.transaction()?;
            let mut cx = copying(open, &catalog, &context, &engine, signals.statement());
            if run_with_limits(&signals, limits, inserter.finish(&mut cx)).await? != Progress::Call
            {
                break;
            }
            let tables = tables.clone();
            self.answer_caller(&mut inserter, tables, &catalog, client)
                .await?;
        }
        Ok(Reply::Tag(format!("COPY {rows}")))
    }

    /// Were the rows of the table begun anew since the transaction or its newest savepoint began?
    fn was_made_here(&self, relation: &Relation) -> bool {
        let since = self.savepoints.last().map_or(0, |savepoint| savepoint.made);
        let open = self.open.as_ref();
        open.is_some_and(|open| open.ddl.was_made_since(relation.storage, since))
    }

    /// The condition of COPY ... WHERE, over whole rows of the table.
    pub(super) fn copy_condition(
        &self,
        catalog: &Arc<Catalog>,
        relation: &Relation,
        condition: &ast::Expr,
        text: &str,
    ) -> Result<Expr> {
        self.context.catalog.replace(Arc::clone(catalog));
        let path = self.context.path_in(catalog);
        let cx = PlanContext {
            catalog,
            search_path: &path,
            param_types: &[],
            parameters_fixed: true,
            session: &*self.context,
            variables: None,
            rows_of: &|_| 0.0,
            evaluate: logstead_sql_exec::evaluate,
        };
        let bound = bind::copy_condition(condition, text, relation, &cx)?;
        let bound = bound.check(&mut self.context.checker(catalog))?;
        for (at, column) in relation.columns.iter().enumerate() {
            let named = |e: &Expr| matches!(e, Expr::Column(position, _) if *position == at);
            if column.generated && walk::any(&bound, &named) {
                return Err(SqlError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "generated columns are not supported in COPY FROM WHERE conditions",
                )
                .detail(format!("Column \"{}\" is a generated column.", column.name)));
            }
        }
        Ok(bound)
    }

    /// What the domains of copied columns ask of each value.
    fn copied_domains(
        &self,
        catalog: &Arc<Catalog>,
        relation: &Relation,
        positions: &[usize],
    ) -> Result<Vec<Option<Expr>>> {
        let path = self.context.path_in(catalog);
        let cx = PlanContext {
            catalog,
            search_path: &path,
            param_types: &[],
            parameters_fixed: true,
            session: &*self.context,
            variables: None,
            rows_of: &|_| 0.0,
            evaluate: logstead_sql_exec::evaluate,
        };
        let bound = bind::copied_domains(relation, positions, &cx)?;
        bound.check(&mut self.context.checker(catalog))
    }

    /// INSERT of rows that come from outside: copied columns from the row, defaults for the others.
    fn copy_plan(
        &self,
        catalog: &Arc<Catalog>,
        relation: &Arc<Relation>,
        positions: &[usize],
    ) -> Result<Plan> {
        self.context.catalog.replace(Arc::clone(catalog));
        let path = self.context.path_in(catalog);
        let cx = PlanContext {
            catalog,
            search_path: &path,
            param_types: &[],
            parameters_fixed: true,
            session: &*self.context,
            variables: None,
            rows_of: &|_| 0.0,
            evaluate: logstead_sql_exec::evaluate,
        };
        let bound = bind::bind_copy_from(relation, positions, &cx)?;
        let insert = bound.check(&mut self.context.checker(catalog))?;
        Ok(Plan {
            node: Node::Insert(Box::new(insert)),
            columns: Vec::new(),
            rows: 0.0,
            cost: 0.0,
        })
    }
}

/// What rows are inserted with.
fn copying<'a>(
    open: &'a mut OpenTransaction,
    catalog: &'a Arc<Catalog>,
    session: &'a SessionContext,
    engine: &'a Engine,
    cancel: &'a Cancel,
) -> StatementContext<'a> {
    StatementContext {
        txn: &mut open.txn,
        params: &[],
        session,
        catalog,
        engine,
        cancel,
        events: &mut open.events,
        work_mem_bytes: usize::MAX >> 8,
        spill: Some(session.spill()),
    }
}

/// Has a view a trigger that takes the rows which are put into it?
fn is_filled_by_trigger(view: &Relation, catalog: &Catalog) -> bool {
    let mut all = catalog.triggers.of(view.oid).iter();
    all.any(|t| t.time == TriggerTime::InsteadOf && t.is_about(TriggerEvent::Insert))
}

/// Why rows are copied to no such relation.
fn no_target(relation: &Relation, catalog: &Catalog) -> Option<SqlError> {
    Some(match relation.kind {
        RelationKind::Table => return None,
        RelationKind::Sequence(_) => wrong_kind("copy to sequence", relation),
        RelationKind::View(_) if is_filled_by_trigger(relation, catalog) => return None,
        RelationKind::View(_) => wrong_kind("copy to view", relation)
            .hint("To enable copying to a view, provide an INSTEAD OF INSERT trigger."),
        RelationKind::Materialized(..) => wrong_kind("copy to materialized view", relation),
        RelationKind::Virtual(_) => wrong_kind("copy to system relation", relation),
    })
}

fn wrong_kind(what: &str, relation: &Relation) -> SqlError {
    SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("cannot {what} \"{}\"", relation.name),
    )
}
