//! Portals: statements with their parameters, run as far as the client asked.

use super::cached_plan::{PermittedPlan, Statement};
use super::client::{BufferedNotices, Client};
use super::run::{CommandTag, RunOutcome};
use super::{Reply, Session};
use crate::cached_plan::CachedPlan;
use crate::open_transaction::BlockState;
use logstead_engine::RowLock;
use logstead_engine::{Memory, RowRef};
use logstead_sql_catalog::context::RoleContext;
use logstead_sql_exec::{Execution, OperatorMemory, RowSink, StoredColumn};
use logstead_sql_plan::{Command, OutputColumn};
use logstead_sql_plan::{Node, Plan};
use logstead_sql_types::RoleId;
use logstead_sql_types::encoding::ConversionDirection;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{self, Datum, SqlType};
use logstead_types::SqlState;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// The body of Bind.
pub struct BindRequest<'a> {
    /// Portal name.
    pub portal: &'a str,
    /// Statement name.
    pub statement: &'a str,
    /// Parameter formats: none, one for all, or one each; 1 is binary.
    pub formats: &'a [i16],
    /// Values, `None` for NULL.
    pub values: &'a [Option<&'a [u8]>],
    /// Result formats, as for parameters.
    pub result_formats: &'a [i16],
}

pub(super) struct Portal {
    pub(super) statement: Rc<Statement>,
    pub(super) params: SmallVec<[Datum; 4]>,
    pub(super) formats: SmallVec<[i16; 4]>,
    pub(super) state: PortalState,
    /// How many savepoints stood when it was made.
    pub(super) level: usize,
    /// When it was made.
    pub(super) created: i64,
    /// Rows that it has given.
    pub(super) given: u64,
    /// As whom its statement was begun: what it has left to do is done with these privileges, whoever's statement asks
    /// for it.
    pub(super) role: RoleId,
}

pub(super) enum PortalState {
    Ready,
    /// In the middle of its rows.
    Running {
        plan: PermittedPlan,
        execution: Execution,
    },
    /// A utility's rows.
    Buffered {
        columns: Vec<OutputColumn>,
        rows: VecDeque<Vec<Datum>>,
        tag: Option<String>,
    },
    Done,
    /// It has failed, or its transaction has.
    Failed,
}

impl PortalState {
    /// Is it in the middle of its plan, and needs the transaction's snapshot to go on?
    pub(super) fn is_suspended(&self) -> bool {
        match self {
            PortalState::Running { execution, .. } => !execution.has_ended(),
            _ => false,
        }
    }
}

/// Collects rows in memory, as many as the server's memory budget has room for.
pub(super) struct CollectedRows {
    rows: VecDeque<Vec<Datum>>,
    bytes: usize,
    /// The account that they are charged to.
    memory: &'static Memory,
    held: OperatorMemory,
}

impl CollectedRows {
    /// Empty, charged to this account.
    pub(super) fn within(memory: &'static Memory) -> CollectedRows {
        CollectedRows {
            rows: VecDeque::new(),
            bytes: 0,
            memory,
            held: OperatorMemory::default(),
        }
    }

    pub(super) fn into_rows(self) -> VecDeque<Vec<Datum>> {
        self.rows
    }

    fn push(&mut self, row: Vec<Datum>) -> Result<()> {
        self.bytes += row.iter().map(datum_bytes).sum::<usize>();
        self.held.set(self.bytes, Some(self.memory))?;
        self.rows.push_back(row);
        Ok(())
    }
}

fn datum_bytes(datum: &Datum) -> usize {
    std::mem::size_of::<Datum>()
        + match datum {
            Datum::Text(text) => text.len(),
            Datum::Bytea(bytes) | Datum::TsVector(bytes) | Datum::TsQuery(bytes) => bytes.len(),
            Datum::Bits(bits) => bits.bytes().len(),
            Datum::Jsonb(json) => json.bytes().len(),
            Datum::Geometry(v) => v.outside_bytes(),
            _ => 0,
        }
}

impl RowSink for CollectedRows {
    fn row(&mut self, row: &[Datum]) -> Result<()> {
        self.push(row.to_vec())
    }

    fn stored_row(&mut self, row: RowRef<'_>, columns: &[StoredColumn]) -> Result<()> {
        let row = columns
            .iter()
            .map(|column| column.decode(row))
            .collect::<Result<Vec<_>>>()?;
        self.push(row)
    }

    fn is_full(&self) -> bool {
        false
    }
}

impl Session {
    /// Bind.
    pub async fn bind(
        &mut self,
        request: &BindRequest<'_>,
        _client: &mut dyn Client,
    ) -> Result<()> {
        self.extended_goes_on()?;
        let statement = self.find_statement(request.statement)?;
        self.refuse_in_failed_block(&statement)?;
        let description = self.describe(&statement)?;
        if description.param_types.len() != request.values.len() {
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
                    request.values.len(),
                    request.statement,
                    description.param_types.len()
                ),
            ));
        }
        let columns = description.columns.len();
        if request.result_formats.len() > 1 && request.result_formats.len() != columns {
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message has {} result formats but query has {columns} columns",
                    request.result_formats.len()
                ),
            ));
        }
        let taken =
            self.portals.contains_key(request.portal) || self.cursors.contains(request.portal);
        if !request.portal.is_empty() && taken {
            return Err(SqlError::new(
                SqlState::DUPLICATE_CURSOR,
                format!("cursor \"{}\" already exists", request.portal),
            ));
        }
        self.see_types_of(&description.param_types)?;
        let mut params = SmallVec::with_capacity(request.values.len());
        for (i, (bytes, ty)) in request
            .values
            .iter()
            .zip(&description.param_types)
            .enumerate()
        {
            let binary = match request.formats {
                [] => false,
                [all] => *all == 1,
                each => each.get(i) == Some(&1),
            };
            params.push(self.parameter(*bytes, *ty, binary)?);
        }
        if let Some(error) = &description.fails {
            return Err(error.clone());
        }
        self.drop_portal(request.portal);
        let created = match request.portal {
            "" => 0,
            _ => self.context.wall_clock(),
        };
        self.portals.insert(
            request.portal.to_owned(),
            Portal {
                statement,
                params,
                formats: SmallVec::from_slice(request.result_formats),
                state: PortalState::Ready,
                level: self.savepoints.len(),
                created,
                given: 0,
                role: self.context.current_role(),
            },
        );
        Ok(())
    }

    /// Has values of users' types read as they are now.
    pub(super) fn see_types_of(&mut self, types: &[SqlType]) -> Result<()> {
        if types.iter().any(|ty| value::user::class(ty.oid).is_some()) {
            self.catalog()?;
        }
        Ok(())
    }

    pub(super) fn parameter(
        &self,
        bytes: Option<&[u8]>,
        ty: SqlType,
        binary: bool,
    ) -> Result<Datum> {
        let Some(bytes) = bytes else {
            return Ok(Datum::Null);
        };
        if binary {
            let encoding = self.context.client_encoding();
            if encoding.is_plain() {
                let value = value::binary_io::binary_input(ty, bytes)?;
                return logstead_sql_types::value::xml::admitted(ty, value, &*self.context);
            }
            let mut converted = Vec::new();
            encoding.convert_binary(
                ty.oid,
                bytes,
                ConversionDirection::FromClient,
                &mut converted,
            )?;
            let value = value::binary_io::binary_input(ty, &converted)?;
            return logstead_sql_types::value::xml::admitted(ty, value, &*self.context);
        }
        let text =
            std::str::from_utf8(bytes).map_err(|error| invalid_utf8(bytes, error.valid_up_to()))?;
        if text.as_bytes().contains(&0) {
            return Err(invalid_utf8(bytes, text.find('\0').unwrap_or(0)));
        }
        value::text_io::input(ty, text, Some(&*self.context))
    }

    /// Describe of a portal.
    pub fn describe_portal(&mut self, name: &str, client: &mut dyn Client) -> Result<()> {
        self.extended_goes_on()?;
        let Some(portal) = self.portals.get(name) else {
            // A cursor is a portal too.
            let cursor = self.cursors.columns(name);
            let (columns, formats) = cursor.ok_or_else(|| unknown_portal(name))?;
            client.row_description(columns, formats);
            return Ok(());
        };
        let statement = Rc::clone(&portal.statement);
        self.refuse_in_failed_block(&statement)?;
        let description = self.describe(&statement)?;
        if !description.gives_rows {
            client.no_data();
        } else if let Some(portal) = self.portals.get(name) {
            client.row_description(&description.columns, &portal.formats);
        }
        Ok(())
    }

    /// Close of a portal; unknown names are fine.
    pub fn close_portal(&mut self, name: &str) {
        self.drop_portal(name);
        self.cursors.close(name);
    }

    pub(super) fn drop_portal(&mut self, name: &str) {
        if let Some(portal) = self.portals.remove(name)
            && portal.state.is_suspended()
        {
            self.suspended = self.suspended.saturating_sub(1);
        }
    }

    /// Execute: `rows_max` 0 is all.
    pub async fn execute(
        &mut self,
        name: &str,
        rows_max: u64,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.begin_statement();
        self.extended_goes_on()?;
        self.in_simple_query = false;
        let found = self.portals.get(name);
        if found.is_none() && self.cursors.contains(name) {
            return self.execute_cursor(name, rows_max, client).await;
        }
        let statement = Rc::clone(&found.ok_or_else(|| unknown_portal(name))?.statement);
        self.report_activity(&statement.text.text);
        self.begin_timing(&statement);
        // In a failed block nothing runs, and the portal may be one that outlives it.
        self.refuse_in_failed_block(&statement)?;
        // Taken out while it runs, so that an error drops it.
        let (key, mut portal) = self
            .portals
            .remove_entry(name)
            .ok_or_else(|| unknown_portal(name))?;
        let begins = matches!(portal.state, PortalState::Ready) && statement.is_query();
        // The past is not locked.
        let reads_past = statement.parsed().is_some_and(|p| p.as_of.is_some());
        if begins && rows_max > 0 && !name.is_empty() && !reads_past {
            self.refuse_beside_as_of()?;
            self.follow_as_of().await?;
            self.follow_token().await?;
            let plan = self.plan(&statement)?;
            if locks_rows(&plan) {
                return self.execute_as_cursor(key, portal, rows_max, client).await;
            }
        }
        let executed = self.execute_portal(name, &mut portal, rows_max, client);
        match executed.await {
            Ok(state) => portal.state = state,
            Err(error) => {
                // It stays until its transaction is over, to be refused.
                if self.block != BlockState::None {
                    portal.state = PortalState::Failed;
                    self.portals.insert(key, portal);
                }
                return Err(error);
            }
        }
        if self.is_held_by_as_of() && matches!(portal.state, PortalState::Done) {
            // What else the pipeline holds reads the present.
            self.commit(client).await?;
        }
        if !self.is_held_by_as_of() {
            // EXPLAIN opened nothing that would have ended it.
            self.forget_clause();
        }
        match portal.state {
            PortalState::Running { .. } | PortalState::Buffered { .. } => {}
            // The next message begins another statement.
            PortalState::Ready | PortalState::Done | PortalState::Failed => {
                self.extended_since = None;
            }
        }
        if portal.state.is_suspended() {
            self.suspended += 1;
        }
        // ROLLBACK and COMMIT drop all portals, this one included. What is empty has done nothing.
        let empty = matches!(portal.state, PortalState::Ready);
        if self.block != BlockState::None || self.open.is_some() || empty {
            self.portals.insert(key, portal);
        }
        Ok(())
    }

    /// Runs a portal that is taken out, on to its next state.
    async fn execute_portal(
        &mut self,
        name: &str,
        portal: &mut Portal,
        rows_max: u64,
        client: &mut dyn Client,
    ) -> Result<PortalState> {
        if portal.statement.parsed().is_none() {
            client.empty_query();
            return Ok(PortalState::Ready);
        }
        if portal.statement.needs_catalog() {
            self.follow_as_of().await?;
            self.follow_token().await?;
        }
        let state = std::mem::replace(&mut portal.state, PortalState::Done);
        if matches!(state, PortalState::Ready) {
            self.refuse_beside_as_of()?;
            let statement = Rc::clone(&portal.statement);
            self.enter_as_of(&statement, &portal.params).await?;
        }
        let state = match state {
            PortalState::Ready if portal.statement.is_query() => {
                let plan = self.prepare_run(&portal.statement).await?;
                client.start_rows(&plan.columns, &portal.formats);
                let execution = Execution::new(Arc::clone(&plan.prepared));
                self.resume(plan, execution, portal, true, rows_max, client)
                    .await?
            }
            PortalState::Ready => {
                let statement = Rc::clone(&portal.statement);
                let pipelined = self.block == BlockState::None && self.open.is_some();
                self.refuse_in_block(&statement, pipelined)?;
                match self
                    .run_utility(&statement, &portal.params, &portal.formats, client)
                    .await?
                {
                    Reply::Tag(tag) => {
                        client.command_complete(&tag);
                        PortalState::Done
                    }
                    Reply::Rows { columns, rows, tag } => send_buffered(
                        columns,
                        rows.into(),
                        Some(tag),
                        &portal.formats,
                        rows_max,
                        client,
                    )?,
                }
            }
            PortalState::Running { plan, execution } => {
                if !execution.has_ended() {
                    self.suspended = self.suspended.saturating_sub(1);
                }
                client.start_rows(&plan.columns, &portal.formats);
                self.resume(plan, execution, portal, false, rows_max, client)
                    .await?
            }
            PortalState::Buffered { columns, rows, tag } => {
                send_buffered(columns, rows, tag, &portal.formats, rows_max, client)?
            }
            PortalState::Done if portal.statement.is_query() => {
                // Running a finished portal again gives no rows, as in PostgreSQL.
                let plan = self.plan(&portal.statement)?;
                if !plan.gives_rows() {
                    return Err(SqlError::new(
                        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                        format!("portal \"{name}\" cannot be run"),
                    ));
                }
                client.command_complete(&CommandTag(plan.command, 0));
                PortalState::Done
            }
            PortalState::Done | PortalState::Failed => {
                return Err(SqlError::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    format!("portal \"{name}\" cannot be run"),
                ));
            }
        };
        Ok(state)
    }

    async fn resume(
        &mut self,
        plan: PermittedPlan,
        mut execution: Execution,
        portal: &mut Portal,
        first: bool,
        rows_max: u64,
        client: &mut dyn Client,
    ) -> Result<PortalState> {
        if first {
            portal.role = self.context.current_role();
        }
        let mark = client.mark();
        let ran = self
            .run(
                &plan,
                &mut execution,
                &portal.params,
                first,
                rows_max,
                client,
            )
            .await;
        // PostgreSQL tells of what a statement has changed when all of it is.
        if ran.is_err() && plan.writes() {
            client.take_back(mark);
        }
        match ran? {
            RunOutcome::Done { rows } => {
                portal.given += rows;
                client.command_complete(&CommandTag(plan.command, rows));
                Ok(PortalState::Done)
            }
            RunOutcome::Suspended => {
                portal.given += rows_max;
                client.portal_suspended();
                Ok(PortalState::Running { plan, execution })
            }
        }
    }

    /// Before a new statement moves the transaction's snapshot on, portals in the middle of their rows run to their
    /// end, keeping the rows: a portal shows the data as they were when it began.
    pub(super) async fn settle_suspended(&mut self) -> Result<()> {
        self.settle_cursors().await?;
        if self.suspended == 0 {
            return Ok(());
        }
        let names: Vec<String> = self
            .portals
            .iter()
            .filter(|(_, p)| p.state.is_suspended())
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            let Some(mut portal) = self.portals.remove(&name) else {
                continue;
            };
            if let PortalState::Running { plan, execution } = &mut portal.state {
                self.suspended = self.suspended.saturating_sub(1);
                let work_mem_bytes = self.context.settings.borrow().typed().work_mem_bytes;
                let context = Rc::clone(&self.context);
                let engine = self.worker.instance.engine.clone();
                let signals = Arc::clone(&self.signals);
                let limits = self.limits();
                let mut nobody = BufferedNotices::default();
                // With the privileges of who began it: the next statement may be one of a SECURITY DEFINER routine.
                let before = self.context.enter_role(portal.role);
                let ran = loop {
                    let open = self.transaction()?;
                    let mut cx = logstead_sql_exec::StatementContext {
                        txn: &mut open.txn,
                        params: &portal.params,
                        session: &*context,
                        catalog: &plan.catalog,
                        engine: &engine,
                        cancel: signals.statement(),
                        events: &mut open.events,
                        work_mem_bytes,
                        spill: Some(context.spill()),
                    };
                    let ahead = execution.materialize(&mut cx);
                    let progress = crate::limits::run_with_limits(&signals, limits, ahead).await;
                    match progress {
                        Ok(logstead_sql_exec::Progress::Call) => {}
                        progress => break progress.map(drop),
                    }
                    if let Err(error) = self.answer(execution, plan, &mut nobody).await {
                        break Err(error);
                    }
                };
                self.context.act_as(before);
                ran?;
                self.buffered_notices.append(&mut nobody.told);
            }
            self.portals.insert(name, portal);
        }
        Ok(())
    }

    /// What came since a savepoint is rolled back: portals made since go, those that are older stay. One in the middle
    /// of its rows goes on: what is rolled back is of later commands than it sees, and who failed before his command
    /// began has not moved the snapshot.
    pub(super) fn keep_portals(&mut self, level: usize) {
        self.portals.retain(|_, portal| portal.level <= level);
        let suspended = self.portals.values().filter(|p| p.state.is_suspended());
        self.suspended = suspended.count();
    }

    /// The transaction has failed, or the part of it since as many savepoints: portals made since stay until that is
    /// rolled back, and give nothing.
    pub(super) fn fail_portals(&mut self, level: Option<usize>) {
        for portal in self.portals.values_mut() {
            if level.is_none_or(|level| portal.level > level) {
                portal.state = PortalState::Failed;
            }
        }
        let suspended = self.portals.values().filter(|p| p.state.is_suspended());
        self.suspended = suspended.count();
    }

    /// A savepoint is released: portals made since belong to what is around it.
    pub(super) fn raise_portals(&mut self, level: usize) {
        for portal in self.portals.values_mut() {
            portal.level = portal.level.min(level);
        }
    }

    /// CLOSE name / CLOSE ALL.
    pub(super) fn close_cursor(&mut self, name: Option<&str>) -> Result<Reply> {
        match name {
            None => {
                self.portals.clear();
                self.suspended = 0;
                self.cursors.clear();
                Ok(Reply::tag("CLOSE CURSOR ALL"))
            }
            Some(name) => {
                if self.cursors.close(name) {
                    return Ok(Reply::tag("CLOSE CURSOR"));
                }
                if !self.portals.contains_key(name) {
                    return Err(unknown_cursor(name));
                }
                self.drop_portal(name);
                Ok(Reply::tag("CLOSE CURSOR"))
            }
        }
    }
}

/// Sends rows that are in memory, up to the limit.
pub(super) fn send_buffered(
    columns: Vec<OutputColumn>,
    mut rows: VecDeque<Vec<Datum>>,
    tag: Option<String>,
    formats: &[i16],
    rows_max: u64,
    client: &mut dyn Client,
) -> Result<PortalState> {
    client.start_rows(&columns, formats);
    let mut sent = 0;
    while let Some(row) = rows.pop_front() {
        client.row(&row)?;
        sent += 1;
        if sent == rows_max {
            client.portal_suspended();
            return Ok(PortalState::Buffered { columns, rows, tag });
        }
    }
    match tag {
        Some(tag) => client.command_complete(&tag),
        None => client.command_complete(&CommandTag(Command::Select, sent)),
    }
    Ok(PortalState::Done)
}

fn unknown_portal(name: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_CURSOR_NAME,
        format!("portal \"{name}\" does not exist"),
    )
}

fn invalid_utf8(bytes: &[u8], at: usize) -> SqlError {
    let shown = bytes.get(at).copied().unwrap_or(0);
    SqlError::new(
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        format!("invalid byte sequence for encoding \"UTF8\": 0x{shown:02x}"),
    )
}

pub(crate) fn unknown_cursor(name: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_CURSOR_NAME,
        format!("cursor \"{name}\" does not exist"),
    )
}

/// Does it lock rows, so that WHERE CURRENT OF may be meant?
pub(crate) fn locks_rows(plan: &CachedPlan) -> bool {
    plan.executable
        .describe(|run| locking_clause(run.prepared.plan()).is_some())
}

/// The first locking clause of a query, in SQL's words.
pub(crate) fn locking_clause(plan: &Plan) -> Option<&'static str> {
    match &plan.node {
        Node::LockRows { targets, .. } => Some(match targets.first()?.lock {
            RowLock::KeyShare => "FOR KEY SHARE",
            RowLock::Share => "FOR SHARE",
            RowLock::NoKeyUpdate => "FOR NO KEY UPDATE",
            RowLock::Update => "FOR UPDATE",
        }),
        Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Limit { input, .. }
        | Node::Sort { input, .. } => locking_clause(input),
        Node::With { body, .. } => locking_clause(body),
        _ => None,
    }
}
