//! SQL cursors: DECLARE, FETCH, MOVE, CLOSE.
//!
//! Owns: a session's cursors by name, each with the rows it keeps and its place between them.
//!
//! A cursor shows the data as they were when it was declared: before another statement moves the transaction on, it
//! takes the rest of its rows ([`Session::settle_cursors`]). Volatile functions see more, whenever they are called: a
//! plan that calls some that the session runs has a view of its own, and goes on row by row as these are fetched. Plans
//! run forwards only, so rows that are to be given again are kept: all of them for SCROLL, none for NO SCROLL. A cursor
//! that was declared without either may go back where PostgreSQL's would, over as many rows as `work_mem` holds. What
//! is more than `work_mem` is in a temporary file.
//!
//! Invariants:
//! - `rows.first <= place.at <= rows.end()` unless the cursor is at its start; `rows.end()` rows have come out of the
//!   plan.
//! - A held cursor whose transaction has committed has all its rows: nothing of a transaction is left in it.
//! - What a cursor keeps in memory is charged to the server's memory budget.
//! - Functions that its plan calls are run with the privileges of who fetches, or of who declared it when its rows are
//!   taken unasked: never with those of a
//!   SECURITY DEFINER routine whose statement happens to come next.

mod adopt;
mod pull;
mod rows;

use super::cached_plan::{PermittedPlan, Statement, given_to};
use super::client::Client;
use super::current_of::current_of_plan;
use super::{Reply, Session};
use crate::cursor::rows::CursorRows;
use crate::portal::locking_clause;
use crate::portal::unknown_cursor;
use logstead_engine::CursorSnapshot;
use logstead_sql_exec::Execution;
use logstead_sql_exec::wait::wait_for_file;
use logstead_sql_parse::Parsed;
use logstead_sql_parse::ast::{DeclareCursorStmt, FETCH_ALL, FetchDirection, FetchStmt, Stmt};
use logstead_sql_plan::{Node, OutputColumn, Plan, SetOpKind, walk};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::{RelationId, RoleId};
use logstead_types::{SqlState, TableId};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Rows taken from a plan at once.
const ROWS_AT_ONCE: u64 = 512;

/// A session's cursors.
#[derive(Default)]
pub(super) struct Cursors {
    by_name: BTreeMap<String, Cursor>,
    /// How many are in the middle of their plan.
    running: usize,
}

struct Cursor {
    /// The text it was declared with.
    text: Rc<str>,
    columns: Vec<OutputColumn>,
    binary: bool,
    /// What Execute gives them in, as in Bind; FETCH gives text, or everything binary.
    formats: SmallVec<[i16; 4]>,
    hold: bool,
    back: Scrollability,
    created: i64,
    /// Savepoints that stood when it was declared: rolling back to an earlier one ends it.
    level: usize,
    /// Who declared it: with these privileges it takes the rest of its rows, whoever's statement makes it do so.
    role: RoleId,
    /// Its transaction has committed.
    persisted: bool,
    state: CursorState,
    rows: CursorRows,
    place: CursorPosition,
    current_of: CurrentOfState,
    /// What its plan reads: in use while the cursor is open in its transaction.
    reads: Vec<TableId>,
    /// What its plan sees, if it calls what sees more when it is called later: then its rows come when they are
    /// fetched.
    view: Option<CursorSnapshot>,
}

/// What a cursor knows of the rows that its rows come from, for WHERE CURRENT OF.
#[derive(Default)]
struct CurrentOfState {
    tables: Vec<RelationId>,
    locks: bool,
    /// The numbers of the rows of the row that was given last.
    current: Vec<Datum>,
    /// Keeps rows that are not locked from being another's by their numbers.
    _view: Option<CursorSnapshot>,
}

enum CursorState {
    /// More rows may come.
    Running {
        plan: PermittedPlan,
        execution: Box<Execution>,
        params: Rc<[Datum]>,
    },
    /// All rows have come.
    Ended,
    /// A FETCH has failed: nothing can be said of what it would give.
    Failed,
}

/// How far back a cursor goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scrollability {
    /// NO SCROLL, and plans that PostgreSQL cannot run backwards.
    Never,
    /// Not asked for, but possible: so many bytes of rows.
    Bytes(usize),
    /// SCROLL.
    Always,
}

/// Where a cursor stands.
#[derive(Clone, Copy)]
struct CursorPosition {
    /// Number of the current row, from 1; 0 in front of the first. Behind the last row it is still that row's.
    at: u64,
    at_start: bool,
    at_end: bool,
}

/// A row of `pg_cursors`.
fn shown(name: &str, cursor: &Cursor) -> logstead_sql_catalog::context::CursorRow {
    logstead_sql_catalog::context::CursorRow {
        name: name.to_owned(),
        statement: cursor.text.to_string(),
        holdable: cursor.hold,
        binary: cursor.binary,
        scrollable: cursor.back != Scrollability::Never,
        created: cursor.created,
        current: logstead_sql_catalog::context::CurrentRow {
            persisted: cursor.persisted,
            on_row: !cursor.place.at_start && !cursor.place.at_end,
            locks: cursor.current_of.locks,
            rows: cursor.current(),
        },
    }
}

impl Cursor {
    /// Formats of its rows for Describe and Execute.
    fn formats(&self) -> &[i16] {
        if self.binary { &[1] } else { &self.formats }
    }

    /// The tables whose rows it tells, with the current one's number.
    fn current(&self) -> Vec<(RelationId, Option<i64>)> {
        let tables = self.current_of.tables.iter().enumerate();
        let rows = tables.map(|(at, table)| match self.current_of.current.get(at) {
            Some(Datum::Int8(rid)) => (*table, Some(*rid)),
            _ => (*table, None),
        });
        rows.collect()
    }
}

impl Cursors {
    /// Is any of them in the middle of its plan?
    pub(super) fn are_running(&self) -> bool {
        self.running > 0
    }

    /// Storages that cursors of the running transaction read.
    pub(super) fn in_use(&self) -> Vec<TableId> {
        let open = self.by_name.values().filter(|cursor| !cursor.persisted);
        open.flat_map(|cursor| cursor.reads.iter().copied())
            .collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Columns and formats of a cursor's rows.
    pub(super) fn columns(&self, name: &str) -> Option<(&[OutputColumn], &[i16])> {
        let cursor = self.by_name.get(name)?;
        Some((&cursor.columns, cursor.formats()))
    }

    fn insert(&mut self, name: String, cursor: Cursor) {
        self.running += usize::from(matches!(cursor.state, CursorState::Running { .. }));
        self.by_name.insert(name, cursor);
    }

    fn take(&mut self, name: &str) -> Option<Cursor> {
        let cursor = self.by_name.remove(name)?;
        self.running -= usize::from(matches!(cursor.state, CursorState::Running { .. }));
        Some(cursor)
    }

    /// It goes on behind COMMIT, unless it locks rows.
    pub(super) fn goes_on(&mut self, name: &str) {
        if let Some(cursor) = self.by_name.get_mut(name) {
            cursor.hold = !cursor.current_of.locks;
        }
    }

    /// Ends one; false if there is none of this name.
    pub(super) fn close(&mut self, name: &str) -> bool {
        self.take(name).is_some()
    }

    pub(super) fn clear(&mut self) {
        self.by_name.clear();
        self.running = 0;
    }

    fn retain(&mut self, stays: impl Fn(&Cursor) -> bool) {
        if self.by_name.is_empty() {
            return;
        }
        self.by_name.retain(|_, cursor| stays(cursor));
        let running = |c: &&Cursor| matches!(c.state, CursorState::Running { .. });
        self.running = self.by_name.values().filter(running).count();
    }

    /// The transaction is about to end: what does not outlive it has ended.
    pub(super) fn close_unheld(&mut self) {
        self.retain(|c| c.persisted || (c.hold && matches!(c.state, CursorState::Ended)));
    }

    /// The transaction has committed: held cursors go on.
    pub(super) fn committed(&mut self) {
        for cursor in self.by_name.values_mut() {
            cursor.persisted = true;
            cursor.level = 0;
            cursor.current_of = CurrentOfState::default();
        }
    }

    /// The transaction was rolled back.
    pub(super) fn rolled_back(&mut self) {
        self.retain(|c| c.persisted);
    }

    /// It was rolled back to a savepoint in front of which `index` others stand.
    pub(super) fn rolled_back_to(&mut self, index: usize) {
        self.retain(|c| c.persisted || c.level <= index);
    }

    /// A savepoint in front of which `index` others stand is gone, and all behind it.
    pub(super) fn released(&mut self, index: usize) {
        for cursor in self.by_name.values_mut() {
            cursor.level = cursor.level.min(index);
        }
    }
}

fn formats(cursor: &Cursor) -> &'static [i16] {
    if cursor.binary { &[1] } else { &[] }
}

/// Can PostgreSQL run a plan like this backwards?
fn runs_backwards(plan: &Plan) -> bool {
    match &plan.node {
        Node::SeqScan(_)
        | Node::RowScan { .. }
        | Node::IndexScan { .. }
        | Node::VirtualScan { .. }
        | Node::FunctionScan { .. }
        | Node::RoutineScan { .. }
        | Node::CteScan { .. }
        | Node::Sort { .. } => true,
        Node::Values(rows) => rows.len() > 1,
        Node::Filter { input, .. } | Node::Project { input, .. } | Node::Limit { input, .. } => {
            runs_backwards(input)
        }
        Node::SetOp {
            kind: SetOpKind::Union,
            all: true,
            left,
            right,
        } => runs_backwards(left) && runs_backwards(right),
        Node::With { body, .. } => runs_backwards(body),
        _ => false,
    }
}

fn forward_only() -> SqlError {
    SqlError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "cursor can only scan forward",
    )
    .hint("Declare it with SCROLL option to enable backward scan.")
}

/// What DECLARE says of a cursor.
pub(super) struct DeclareCursor {
    /// Its name.
    pub(super) name: String,
    /// Rows are given in binary.
    pub(super) binary: bool,
    /// INSENSITIVE was said: all cursors are.
    pub(super) insensitive: bool,
    /// SCROLL, NO SCROLL, or neither.
    pub(super) scroll: Option<bool>,
    /// WITH HOLD.
    pub(super) hold: bool,
}

impl DeclareCursor {
    /// Of a statement of `text`; 42P11 for what excludes each other (`transformDeclareCursorStmt`), 42601 for INTO.
    pub(super) fn of(stmt: &DeclareCursorStmt, text: &str) -> Result<DeclareCursor> {
        let both = |one: &str, other: &str| {
            let message = format!("cannot specify both {one} and {other}");
            Err(SqlError::new(SqlState::new(b"42P11"), message))
        };
        if stmt.scroll && stmt.no_scroll {
            return both("SCROLL", "NO SCROLL");
        }
        if stmt.asensitive && stmt.insensitive {
            return both("ASENSITIVE", "INSENSITIVE");
        }
        if let Some(into) = stmt.query.into_clause() {
            let message = "SELECT ... INTO is not allowed here";
            let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
            return Err(error.at(into.location.character(text)));
        }
        Ok(DeclareCursor {
            name: stmt.portalname.to_string(),
            binary: stmt.binary,
            insensitive: stmt.insensitive,
            scroll: match (stmt.scroll, stmt.no_scroll) {
                (true, _) => Some(true),
                (false, true) => Some(false),
                (false, false) => None,
            },
            hold: stmt.hold,
        })
    }
}

/// The query of DECLARE as a statement of its own, at its place in the text.
pub(super) fn query_of(
    statement: &Statement,
    parsed: &Parsed,
    declare: &DeclareCursorStmt,
) -> Result<Statement> {
    let query = Stmt::Select(declare.query.clone());
    Ok(statement.part(parsed.statement.part(query)))
}

/// Where the rows of a FETCH go; a MOVE has no place for them, but somebody who is told what the functions say that are
/// called on the way.
struct FetchDest<'a> {
    client: &'a mut dyn Client,
    gives: bool,
}

impl FetchDest<'_> {
    /// The same client, who is given no rows.
    fn mute(&mut self) -> FetchDest<'_> {
        FetchDest {
            client: &mut *self.client,
            gives: false,
        }
    }
}

impl Session {
    /// DECLARE.
    pub(super) async fn declare_cursor(
        &mut self,
        stmt: &DeclareCursorStmt,
        statement: &Statement,
        parsed: &Parsed,
        params: &[Datum],
    ) -> Result<Reply> {
        let declare = &DeclareCursor::of(stmt, &statement.text.text)?;
        let query = query_of(statement, parsed, stmt)?;
        if self.cursors.contains(&declare.name) || self.portals.contains_key(&declare.name) {
            // The query's own errors come first.
            self.plan(&query)?;
            return Err(SqlError::new(
                SqlState::DUPLICATE_CURSOR,
                format!("cursor \"{}\" already exists", declare.name),
            ));
        }
        self.context.plans_cursor.set(true);
        let plan = self.prepare_run(&query).await;
        self.context.plans_cursor.set(false);
        let plan = plan?;
        let text = Rc::clone(&statement.text.text);
        let params = given_to(&plan, &query, params);
        self.start_cursor(declare, plan, text, &params).await?;
        Ok(Reply::tag("DECLARE CURSOR"))
    }

    /// Makes a cursor of a plan that is ready to be run.
    pub(super) async fn start_cursor(
        &mut self,
        declare: &DeclareCursor,
        plan: PermittedPlan,
        text: Rc<str>,
        params: &[Datum],
    ) -> Result<()> {
        if plan.param_types.len() > params.len() {
            return Err(SqlError::new(
                SqlState::UNDEFINED_PARAMETER,
                "there is no parameter $1",
            ));
        }
        let not_supported = |text: String| SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text);
        if plan.writes() {
            return Err(not_supported(
                "DECLARE CURSOR must not contain data-modifying statements in WITH".to_owned(),
            ));
        }
        let locks = locking_clause(plan.prepared.plan());
        if let Some(clause) = locks {
            let refused = |what: &str, detail: &str| {
                Err(not_supported(format!("{what} ... {clause} is not supported")).detail(detail))
            };
            if declare.hold {
                return refused(
                    "DECLARE CURSOR WITH HOLD",
                    "Holdable cursors must be READ ONLY.",
                );
            }
            if declare.scroll == Some(true) {
                return refused(
                    "DECLARE SCROLL CURSOR",
                    "Scrollable cursors must be READ ONLY.",
                );
            }
            if declare.insensitive {
                return Err(SqlError::new(
                    SqlState::new(b"42P11"),
                    format!("DECLARE INSENSITIVE CURSOR ... {clause} is not valid"),
                )
                .detail("Insensitive cursors must be READ ONLY."));
            }
        }
        let work_mem_bytes = self.context.settings.borrow().typed().work_mem_bytes;
        let back = match declare.scroll {
            Some(true) => Scrollability::Always,
            None if locks.is_none() && runs_backwards(plan.prepared.plan()) => {
                Scrollability::Bytes(work_mem_bytes)
            }
            _ => Scrollability::Never,
        };
        self.begin_run(&plan.catalog).await?;
        let mut current_of = CurrentOfState::default();
        let prepared = self.current_of_plan(&plan, &mut current_of)?;
        let view = match walk::calls_volatile(prepared.plan()) {
            true => Some(self.transaction()?.txn.view()),
            false => None,
        };
        let execution = Box::new(Execution::new(prepared));
        let cursor = Cursor {
            view,
            reads: plan.locks.iter().map(|(table, _)| table.id()).collect(),
            text,
            columns: plan.columns.clone(),
            binary: declare.binary,
            formats: SmallVec::new(),
            hold: declare.hold,
            back,
            created: self.context.statement_time.get(),
            level: self.savepoints.len(),
            role: logstead_sql_catalog::context::RoleContext::current_role(&*self.context),
            persisted: false,
            state: CursorState::Running {
                plan,
                execution,
                params: params.into(),
            },
            rows: CursorRows::default(),
            place: CursorPosition {
                at: 0,
                at_start: true,
                at_end: false,
            },
            current_of,
        };
        self.cursors.insert(declare.name.clone(), cursor);
        Ok(())
    }

    /// `pg_cursors` shows what there is now.
    pub(super) fn show_cursors(&self) {
        let none = self.cursors.by_name.is_empty() && self.portals.is_empty();
        if !none || !self.context.cursors.borrow().is_empty() {
            let rows = self.cursors.by_name.iter();
            let rows = rows.map(|(name, cursor)| shown(name, cursor));
            let portals = self.portals.iter().filter(|(name, _)| !name.is_empty());
            let portals = portals.map(|(name, portal)| adopt::shown(name, portal));
            self.context.cursors.replace(rows.chain(portals).collect());
        }
    }

    /// FETCH, MOVE.
    pub(super) async fn fetch(
        &mut self,
        fetch: &FetchStmt,
        formats_asked: &[i16],
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let count = self.fetched(fetch, formats_asked, client).await?;
        let what = if fetch.ismove { "MOVE" } else { "FETCH" };
        Ok(Reply::Tag(format!("{what} {count}")))
    }

    /// The same; the number of rows given or passed.
    pub(super) async fn fetched(
        &mut self,
        fetch: &FetchStmt,
        formats_asked: &[i16],
        client: &mut dyn Client,
    ) -> Result<u64> {
        self.flush_notices(client);
        self.adopt_portal(&fetch.portalname).await?;
        let mut cursor = self
            .cursors
            .take(&fetch.portalname)
            .ok_or_else(|| unknown_cursor(&fetch.portalname))?;
        let mark = client.mark();
        let result = if matches!(cursor.state, CursorState::Failed) {
            Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("portal \"{}\" cannot be run", fetch.portalname),
            ))
        } else if fetch.ismove {
            self.go(&mut cursor, fetch.direction, client, false).await
        } else {
            if self.in_simple_query {
                client.row_description(&cursor.columns, formats(&cursor));
                client.start_rows(&cursor.columns, formats(&cursor));
            } else {
                client.start_rows(&cursor.columns, formats_asked);
            }
            self.go(&mut cursor, fetch.direction, client, true).await
        };
        if result.is_err() {
            // PostgreSQL gives the rows of a FETCH when it has them all.
            client.take_back(mark);
            cursor.state = CursorState::Failed;
            cursor.rows = CursorRows::default();
        }
        self.cursors.insert(fetch.portalname.to_string(), cursor);
        result
    }

    /// Moves a cursor; the number of rows given, or passed by MOVE. PostgreSQL's steps one by one, since where they
    /// fail and where they leave the cursor is theirs.
    async fn go(
        &mut self,
        cursor: &mut Cursor,
        direction: FetchDirection,
        client: &mut dyn Client,
        gives: bool,
    ) -> Result<u64> {
        use FetchDirection as D;
        let out = &mut FetchDest { client, gives };
        let rows = |n: i64| n.unsigned_abs();
        let (forward, count) = match direction {
            D::Forward(n) | D::Backward(n) if n == FETCH_ALL => {
                (matches!(direction, D::Forward(_)), u64::MAX)
            }
            D::Forward(n) => (n >= 0, rows(n)),
            D::Backward(n) => (n < 0, rows(n)),
            D::Absolute(0) => {
                rewind(cursor)?;
                return Ok(0);
            }
            D::Absolute(n) if n > 0 => {
                let n = rows(n);
                if n - 1 <= cursor.place.at / 2 {
                    rewind(cursor)?;
                    self.forward(cursor, n - 1, &mut out.mute()).await?;
                } else {
                    let at = cursor.place.at + u64::from(cursor.place.at_end);
                    if n <= at {
                        self.backward(cursor, at - n + 1, &mut out.mute()).await?;
                    } else {
                        self.forward(cursor, n - at - 1, &mut out.mute()).await?;
                    }
                }
                return self.forward(cursor, 1, out).await;
            }
            D::Absolute(n) => {
                self.forward(cursor, u64::MAX, &mut out.mute()).await?;
                self.backward(cursor, rows(n) - 1, &mut out.mute()).await?;
                return self.backward(cursor, 1, out).await;
            }
            D::Relative(0) => (true, 0),
            D::Relative(n) if n > 0 => {
                self.forward(cursor, rows(n) - 1, &mut out.mute()).await?;
                return self.forward(cursor, 1, out).await;
            }
            D::Relative(n) => {
                self.backward(cursor, rows(n) - 1, &mut out.mute()).await?;
                return self.backward(cursor, 1, out).await;
            }
        };
        if count == 0 {
            // The current row again, if there is one.
            let on_row = !cursor.place.at_start && !cursor.place.at_end;
            if !out.gives || !on_row {
                return Ok(u64::from(on_row));
            }
            let number = cursor.place.at - 1;
            self.bring(cursor, number).await?;
            let row = match cursor.back {
                Scrollability::Never => None,
                _ => cursor.rows.get(number),
            };
            let row = row.ok_or_else(forward_only)?;
            out.client
                .row(row.get(..cursor.columns.len()).unwrap_or(row))?;
            return Ok(1);
        }
        if forward {
            return self.forward(cursor, count, out).await;
        }
        if count == u64::MAX && !out.gives {
            let at = cursor.place.at;
            let passed = at - u64::from(at > 0 && !cursor.place.at_end);
            rewind(cursor)?;
            return Ok(passed);
        }
        self.backward(cursor, count, out).await
    }

    /// Goes forward over up to `count` rows, giving them.
    async fn forward(
        &mut self,
        cursor: &mut Cursor,
        count: u64,
        out: &mut FetchDest<'_>,
    ) -> Result<u64> {
        if cursor.place.at_end || count == 0 {
            return Ok(0);
        }
        let mut done = 0;
        while done < count {
            let next = cursor.place.at + done;
            if next < cursor.rows.first {
                return Err(forward_only());
            }
            if next >= cursor.rows.end() {
                let wanted = (count - done).min(ROWS_AT_ONCE);
                self.pull(cursor, wanted, out.client).await?;
            }
            self.bring(cursor, next).await?;
            let Some(row) = cursor.rows.get(next) else {
                break;
            };
            give(row, cursor.columns.len(), &mut cursor.current_of, out)?;
            done += 1;
            cursor.rows.given(next + 1, cursor.back);
            self.make_room(out).await?;
        }
        let place = &mut cursor.place;
        place.at_start &= done == 0;
        place.at_end = done < count;
        place.at += done;
        Ok(done)
    }

    /// Goes back over up to `count` rows, giving them.
    async fn backward(
        &mut self,
        cursor: &mut Cursor,
        count: u64,
        out: &mut FetchDest<'_>,
    ) -> Result<u64> {
        if cursor.back == Scrollability::Never {
            return Err(forward_only());
        }
        if cursor.place.at_start || count == 0 {
            return Ok(0);
        }
        // Behind the last row the next one back is that row.
        let mut left = cursor.place.at - u64::from(!cursor.place.at_end);
        let mut done = 0;
        while done < count && left > 0 {
            self.bring(cursor, left - 1).await?;
            let Some(row) = cursor.rows.get(left - 1) else {
                return Err(forward_only());
            };
            give(row, cursor.columns.len(), &mut cursor.current_of, out)?;
            left -= 1;
            done += 1;
            self.make_room(out).await?;
        }
        let place = &mut cursor.place;
        if done > 0 && place.at_end {
            place.at_end = false;
            place.at += 1;
        }
        if done < count {
            place.at_start = true;
            place.at = 0;
        } else {
            place.at -= done;
        }
        Ok(done)
    }

    /// Brings a row of a cursor into memory, if it has come and is kept.
    async fn bring(&self, cursor: &mut Cursor, number: u64) -> Result<()> {
        while let Some(obstacle) = cursor.rows.bring(number)? {
            wait_for_file(obstacle, self.signals.statement()).await?;
        }
        Ok(())
    }

    async fn make_room(&mut self, out: &mut FetchDest<'_>) -> Result<()> {
        match out.gives && out.client.is_full() {
            true => self.flush_batch(out.client).await,
            false => Ok(()),
        }
    }
}

/// Gives a row's columns, and keeps which rows it comes from.
fn give(
    row: &[Datum],
    columns: usize,
    current_of: &mut CurrentOfState,
    out: &mut FetchDest<'_>,
) -> Result<()> {
    let (given, told) = row.split_at(columns.min(row.len()));
    if !current_of.tables.is_empty() {
        current_of.current.clear();
        current_of.current.extend_from_slice(told);
    }
    match out.gives {
        true => out.client.row(given),
        false => Ok(()),
    }
}

/// Back to the start.
fn rewind(cursor: &mut Cursor) -> Result<()> {
    if cursor.place.at_start && !cursor.place.at_end {
        return Ok(());
    }
    if cursor.back == Scrollability::Never || cursor.rows.first > 0 {
        return Err(forward_only());
    }
    cursor.place = CursorPosition {
        at: 0,
        at_start: true,
        at_end: false,
    };
    Ok(())
}
