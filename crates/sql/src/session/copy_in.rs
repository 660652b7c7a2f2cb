//! COPY table FROM STDIN.

use super::client::{Client, CopyInput};
use super::copy_binary::{BinaryRows, Next};
use super::copy_format::{CopyFormat, Fields, Records, invalid_at, shorten};
use super::run::{Limits, guarded, lock, watched};
use super::statement::Statement;
use super::transaction::{Open, fold};
use super::{Reply, Session};
use crate::bind;
use crate::catalog::ddl::permit::refuse_routines;
use crate::catalog::lookup;
use crate::catalog::{Catalog, Relation, RelationKind};
use crate::error::{Result, SqlError};
use crate::exec::{self, Cancel, ExecContext, Inserter, Progress};
use crate::expr::Expr;
use crate::func::Context;
use crate::interrupt::Pace;
use crate::parse::{Parsed, StatementKind};
use crate::plan::{Insert, Node, Plan, PlanContext, walk};
use crate::value::build::STRIDE_BYTES;
use crate::value::{self, Datum, SqlType};
use logstead_engine::{Engine, TableLock};
use logstead_types::SqlState;
use sqlparser::ast::{self, CopySource, CopyTarget};
use std::rc::Rc;
use std::sync::Arc;

/// What a row costs beside its bytes, where nothing is known of its defaults and checks: interrupts are looked for once for four rows at least.
const ROW_STEPS: usize = STRIDE_BYTES / 4;

/// One COPY FROM in progress: what turns a record into a row.
struct Reader {
    table: String,
    format: CopyFormat,
    /// Name and type of each field.
    columns: Vec<(String, SqlType)>,
    /// What the domains of fields ask of their values, over a row of the value alone.
    domains: Vec<Option<Expr>>,
    force: Vec<(bool, bool)>,
    records: Records,
    /// Input in the binary format.
    binary: Option<BinaryRows>,
    /// Where the present record is in `records`.
    record: std::ops::Range<usize>,
    fields: Fields,
    line: u64,
    row: Vec<Datum>,
    pace: Pace,
}

impl Reader {
    /// The next row into `self.row`; false when more input is needed (or, at the `end`, none is left).
    fn next(&mut self, end: bool, session: &super::SessionContext) -> Result<bool> {
        if self.binary.is_some() {
            return self.next_binary(end, session);
        }
        loop {
            self.record = match self.records.next(&self.format, end) {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(false),
                Err(error) => {
                    self.record = self.records.rest();
                    self.count_lines()?;
                    return Err(error.context(self.row_context()));
                }
            };
            self.count_lines()?;
            if self.format.header && self.line == 1 {
                continue;
            }
            let bytes = self.records.bytes(self.record.clone());
            self.pace.spent(ROW_STEPS)?;
            if let Some(at) = invalid_at(bytes)? {
                let wrong = bytes.get(at).copied().unwrap_or(0);
                return Err(SqlError::new(
                    SqlState::CHARACTER_NOT_IN_REPERTOIRE,
                    format!("invalid byte sequence for encoding \"UTF8\": 0x{wrong:02x}"),
                )
                .context(format!("COPY {}, line {}", self.table, self.line)));
            }
            let (fields, force) = (&mut self.fields, &self.force);
            fields.split(bytes, &self.format, |i| {
                force.get(i).copied().unwrap_or_default()
            })?;
            let wanted = self.columns.len();
            if self.fields.len() > wanted {
                return Err(
                    bad_format("extra data after last expected column").context(self.row_context())
                );
            }
            self.row.clear();
            for (i, (name, ty)) in self.columns.iter().enumerate() {
                if i >= self.fields.len() {
                    return Err(bad_format(format!("missing data for column \"{name}\""))
                        .context(self.row_context()));
                }
                let field = self.fields.get(i);
                self.pace.spent(field.map_or(0, <[u8]>::len))?;
                let read = match field {
                    None => Ok(Datum::Null),
                    Some(field) => read_field(field, *ty, session),
                };
                let read = match (read, self.domains.get(i)) {
                    (Ok(value), Some(Some(rules))) => of_domain(value, rules, session),
                    (read, _) => read,
                };
                self.row.push(read.map_err(|error| {
                    let field = match field {
                        Some(field) => format!("\"{}\"", shorten(field)),
                        None => "null input".to_owned(),
                    };
                    error.context(format!(
                        "COPY {}, line {}, column {name}: {field}",
                        self.table, self.line
                    ))
                })?);
            }
            return Ok(true);
        }
    }

    /// The same in the binary format.
    fn next_binary(&mut self, end: bool, session: &super::SessionContext) -> Result<bool> {
        let Some(input) = &mut self.binary else {
            return Ok(false);
        };
        if !input.begin(end)? {
            return Ok(false);
        }
        self.pace.spent(ROW_STEPS)?;
        let line = self.line + 1;
        match input.next(self.columns.len(), end) {
            Ok(Next::Row) => self.line = line,
            Ok(Next::Nothing) => return Ok(false),
            Err(error) => {
                let field = input.failed_field().and_then(|i| self.columns.get(i));
                let column = field.map_or_else(String::new, |(name, _)| format!(", column {name}"));
                return Err(error.context(format!("COPY {}, line {line}{column}", self.table)));
            }
        }
        self.row.clear();
        for (i, (name, ty)) in self.columns.iter().enumerate() {
            let read = input.read(i, *ty, self.format.encoding);
            let read = match (read, self.domains.get(i)) {
                (Ok(value), Some(Some(rules))) => of_domain(value, rules, session),
                (read, _) => read,
            };
            self.row.push(read.map_err(|error| {
                error.context(format!("COPY {}, line {line}, column {name}", self.table))
            })?);
        }
        Ok(true)
    }

    /// Where the next piece of input goes.
    fn room(&mut self) -> Result<&mut Vec<u8>> {
        match &mut self.binary {
            Some(input) => input.room(),
            None => self.records.room(),
        }
    }

    /// Counts the lines of the present record. In CSV it may span several: then the last one is named, except in the very
    /// first record, where PostgreSQL does not know yet how lines end.
    fn count_lines(&mut self) -> Result<()> {
        if self.format.csv && self.line > 0 {
            for part in self.records.bytes(self.record.clone()).chunks(STRIDE_BYTES) {
                self.line += memchr::memchr_iter(b'\n', part).count() as u64;
                self.pace.spent(part.len())?;
            }
        }
        self.line += 1;
        Ok(())
    }

    fn row_context(&self) -> String {
        if self.binary.is_some() {
            return format!("COPY {}, line {}", self.table, self.line);
        }
        let bytes = self.records.bytes(self.record.clone());
        format!(
            "COPY {}, line {}: \"{}\"",
            self.table,
            self.line,
            shorten(bytes)
        )
    }
}

/// What WHERE leaves of the rows. It sees whole rows, and defaults are drawn once: so it makes them, and the plan takes them as they are.
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

fn read_field(field: &[u8], ty: SqlType, session: &super::SessionContext) -> Result<Datum> {
    // Escapes can make invalid text out of a valid line.
    let invalid = |at: usize| {
        let wrong = field.get(at).copied().unwrap_or(0);
        SqlError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            format!("invalid byte sequence for encoding \"UTF8\": 0x{wrong:02x}"),
        )
    };
    let text = std::str::from_utf8(field).map_err(|error| invalid(error.valid_up_to()))?;
    if let Some(at) = memchr::memchr(0, field) {
        return Err(invalid(at));
    }
    value::text_io::input(ty, text, Some(session))
}

fn of_domain(value: Datum, rules: &Expr, session: &super::SessionContext) -> Result<Datum> {
    let eval = exec::EvalContext {
        params: &[],
        session,
    };
    exec::eval(rules, std::slice::from_ref(&value), &eval)
}

fn bad_format(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

/// Attribute positions of the named columns; all live ones if none is named.
pub(super) fn copied_columns(relation: &Relation, names: &[ast::Ident]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..relation.columns.len())
            .filter(|i| !relation.columns[*i].dropped && !relation.columns[*i].generated)
            .collect());
    }
    let mut positions = Vec::with_capacity(names.len());
    for name in names {
        let name = fold(name);
        let found = relation
            .columns
            .iter()
            .position(|c| !c.dropped && c.name == name)
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!(
                        "column \"{name}\" of relation \"{}\" does not exist",
                        relation.name
                    ),
                )
            })?;
        if relation.columns[found].generated {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("column \"{name}\" is a generated column"),
            )
            .detail("Generated columns cannot be used in COPY."));
        }
        if positions.contains(&found) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        positions.push(found);
    }
    Ok(positions)
}

/// 40001 if a name has come to mean another relation while a lock was waited for: whoever runs the statement was let in for the first.
pub(super) fn same_relation(asked: &mut Option<crate::value::Oid>, found: &Relation) -> Result<()> {
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
        statement: &Statement,
        parsed: &Parsed,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let ast::Statement::Copy {
            source,
            to,
            target,
            options,
            legacy_options,
            ..
        } = &**parsed.statement
        else {
            return Err(SqlError::unsupported("this form of COPY"));
        };
        match target {
            CopyTarget::Stdin | CopyTarget::Stdout => {}
            CopyTarget::File { .. } => {
                return Err(SqlError::unsupported("COPY with a file on the server"));
            }
            CopyTarget::Program { .. } => {
                return Err(SqlError::unsupported("COPY with a program on the server"));
            }
        }
        let mut format = CopyFormat::read(options, legacy_options)?;
        // As in PostgreSQL, texts within values in binary form are the client's, whatever ENCODING says.
        let encoding = format
            .encoding
            .filter(|_| !format.binary)
            .unwrap_or_else(|| self.context.client_encoding());
        format.encoding = Some(encoding).filter(|encoding| !encoding.is_plain());
        match source {
            CopySource::Table {
                table_name,
                columns,
            } if !*to => {
                let condition = match &parsed.kind {
                    StatementKind::Copy(Some(condition)) => {
                        Some((&**condition, &*statement.text.text))
                    }
                    _ => None,
                };
                self.copy_from(table_name, columns, condition, format, client)
                    .await
            }
            source => self.copy_to(statement, source, format, client).await,
        }
    }

    /// Finds an ordinary relation by its name in a statement.
    pub(super) fn find_relation(
        &self,
        catalog: &Arc<Catalog>,
        name: &ast::ObjectName,
    ) -> Result<Arc<Relation>> {
        let parts: Vec<String> = name
            .0
            .iter()
            .map(|part| match part {
                ast::ObjectNamePart::Identifier(ident) => fold(ident),
                other => other.to_string(),
            })
            .collect();
        let (schema, table) = match parts.as_slice() {
            [table] => (None, table),
            [schema, table] => (Some(schema.as_str()), table),
            [_, schema, table] => (Some(schema.as_str()), table),
            _ => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("improper qualified name: {name}"),
                ));
            }
        };
        if let Some(schema) = schema {
            lookup::explicit(schema)?;
        }
        let path = self.context.path_in(catalog);
        catalog
            .relation(schema, table, &path)
            .cloned()
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{}\" does not exist", parts.join(".")),
                )
            })
    }

    async fn copy_from(
        &mut self,
        name: &ast::ObjectName,
        columns: &[ast::Ident],
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
            match relation.kind {
                RelationKind::Table => {}
                RelationKind::Sequence(_) => return Err(wrong_kind("copy to sequence", &relation)),
                RelationKind::View(_) => {
                    return Err(wrong_kind("copy to view", &relation).hint(
                        "To enable copying to a view, provide an INSTEAD OF INSERT trigger.",
                    ));
                }
                RelationKind::Materialized(..) => {
                    return Err(wrong_kind("copy to materialized view", &relation));
                }
                RelationKind::Virtual(_) => {
                    return Err(wrong_kind("copy to system relation", &relation));
                }
            }
            let table = self.storage(&relation, &catalog)?;
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
            guarded(&signals, limits, lock(open_txn, &table, TableLock::Write)).await?;
            // So are the tables it references.
            for key in relation.constraints.iter().filter_map(|c| c.foreign()) {
                if let Some(parent) = catalog.relations.get(&key.table)
                    && let Some(table) = engine.table(parent.storage)
                {
                    guarded(&signals, limits, lock(open_txn, &table, TableLock::Read)).await?;
                }
            }
            if Arc::ptr_eq(&catalog, &self.catalog()?) {
                break (catalog, relation);
            }
        };
        let positions = copied_columns(&relation, columns)?;
        self.may_call_in_copy(&catalog, &relation)?;
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
        let mut reader = reader(&relation, &positions, domains, format)?;
        self.settle_suspended().await?;
        let context = Rc::clone(&self.context);
        context.catalog.replace(Arc::clone(&catalog));
        let open = self.transaction()?;
        open.txn.depends_on(catalog.csn);
        open.txn.begin_statement();
        client.copy_in(positions.len(), reader.binary.is_some());
        self.flush_batch(client).await?;
        let mut inserter = Inserter::new(Arc::new(exec::prepare(plan)))?;
        let mut rows = 0u64;
        let mut end = false;
        self.set_deadline(limits);
        let tables = vec![relation.storage];
        loop {
            let open = self.transaction()?;
            let mut cx = copying(open, &catalog, &*context, &engine, signals.statement());
            if guarded(&signals, limits, inserter.begin(&mut cx)).await? != Progress::Call {
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
            let waits = Limits {
                lock_ms: 0,
                ..limits
            };
            let into = match encoded {
                Some(_) => &mut received,
                None => reader.room()?,
            };
            let input = watched(&signals, waits, client.copy_input(into)).await?;
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
                    let mut cx = copying(open, &catalog, &*context, &engine, signals.statement());
                    let pushed = watched(&signals, limits, inserter.push(&mut cx, &row)).await;
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
                    // As PostgreSQL, rows that a trigger has left out do not count.
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
            let mut cx = copying(open, &catalog, &*context, &engine, signals.statement());
            if guarded(&signals, limits, inserter.finish(&mut cx)).await? != Progress::Call {
                break;
            }
            let tables = tables.clone();
            self.answer_caller(&mut inserter, tables, &catalog, client)
                .await?;
        }
        Ok(Reply::Tag(format!("COPY {rows}")))
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
        };
        let (bound, calls) = bind::copy_condition(condition, text, relation, &cx)?;
        let role = Context::current_role(&*self.context);
        refuse_routines(&calls, catalog, &self.context.roles(catalog), role)?;
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

    /// 42501 if the role may not run a function that rows copied into the table call.
    fn may_call_in_copy(&self, catalog: &Arc<Catalog>, relation: &Arc<Relation>) -> Result<()> {
        if catalog.routines.is_empty() {
            return Ok(());
        }
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
        };
        let calls = bind::copy_calls(relation, &cx)?;
        let role = Context::current_role(&*self.context);
        refuse_routines(&calls, catalog, &self.context.roles(catalog), role)
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
        };
        let columns = positions.iter().filter_map(|p| relation.columns.get(*p));
        columns
            .map(|column| bind::domain_value(0, column, &cx))
            .collect()
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
        };
        let mut values = Vec::with_capacity(relation.columns.len());
        for (position, column) in relation.columns.iter().enumerate() {
            values.push(match positions.iter().position(|p| *p == position) {
                Some(field) => Expr::Column(field, column.ty),
                None if column.dropped => Expr::Const(Datum::Null, column.ty),
                None => bind::default_expr(relation, position, &cx)?,
            });
        }
        let insert = Insert {
            table: Arc::clone(relation),
            source: Plan {
                node: Node::OneRow,
                columns: Vec::new(),
                rows: 1.0,
                cost: 0.0,
            },
            values,
            generated: bind::generated_exprs(relation, &cx)?,
            // Nobody for whom policies hold copies into the table.
            policies: Vec::new(),
            checks: bind::check_exprs(relation, &cx)?,
            conflict: None,
            rules: bind::insert_rules(relation, &cx)?,
            given: positions.to_vec(),
            returning: None,
            hidden: false,
        };
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
    open: &'a mut Open,
    catalog: &'a Arc<Catalog>,
    session: &'a dyn Context,
    engine: &'a Engine,
    cancel: &'a Cancel,
) -> ExecContext<'a> {
    ExecContext {
        txn: &mut open.txn,
        params: &[],
        session,
        catalog,
        engine,
        cancel,
        events: &mut open.events,
        work_mem_bytes: usize::MAX >> 8,
    }
}

fn reader(
    relation: &Relation,
    positions: &[usize],
    domains: Vec<Option<Expr>>,
    format: CopyFormat,
) -> Result<Reader> {
    let columns: Vec<(String, SqlType)> = positions
        .iter()
        .map(|p| (relation.columns[*p].name.clone(), relation.columns[*p].ty))
        .collect();
    for name in format.force_not_null.iter().chain(&format.force_null) {
        if !columns.iter().any(|(column, _)| column == name) {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("FORCE_NULL or FORCE_NOT_NULL column \"{name}\" not referenced by COPY"),
            ));
        }
    }
    let force = columns
        .iter()
        .map(|(c, _)| {
            (
                format.force_not_null.contains(c),
                format.force_null.contains(c),
            )
        })
        .collect();
    Ok(Reader {
        table: relation.name.clone(),
        binary: format.binary.then(BinaryRows::default),
        format,
        columns,
        domains,
        force,
        records: Records::default(),
        record: 0..0,
        fields: Fields::default(),
        line: 0,
        row: Vec::new(),
        pace: Pace::default(),
    })
}

fn wrong_kind(what: &str, relation: &Relation) -> SqlError {
    SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("cannot {what} \"{}\"", relation.name),
    )
}
