//! Large objects: their functions, and what is open of them.
//!
//! Owns: [`Descriptors`], what a transaction has opened, and the functions themselves (`lo_open`, `loread`, ...). An
//! object is a row of `logstead_large_objects` and pages of 2 kB, rows of `pg_largeobject`. They are read and written
//! by statements of the session's own, which are planned, locked and run as any other, by the privileges of the
//! bootstrap superuser: whoever calls has been asked before.
//!
//! Invariants:
//! - What was opened for reading alone shows the object as it was then; what was opened for writing shows what is
//!   newest, the transaction's own included.
//! - Descriptors end with the transaction, or with the part of it that has opened them.
//! - A page that is written in part is one that is locked, or one that nobody else has made: of two who make one page,
//!   the second waits and keeps what the first has written.
//! - No more than [`PAGES_AT_ONCE`] pages are in memory beside what is read or written as a whole.

mod privileges;

use super::Session;
use super::cached_plan::Statement;
use super::client::Client;
use super::ddl::DdlEnvironment;
use crate::capturing_client::CapturingClient;
use crate::client::LocalFuture;
use crate::large_object_descriptors::{Descriptor, Descriptors};
use crate::limits::run_with_limits;
use logstead_engine::CursorSnapshot;
use logstead_sql_catalog::context::RoleContext;
use logstead_sql_catalog::large_objects::PG_LARGEOBJECT;
use logstead_sql_catalog::privileges::denied;
use logstead_sql_catalog::role::BOOTSTRAP;
use logstead_sql_catalog::role::acl::{AclKind, AclMode, privilege as p};
use logstead_sql_ddl as ddl;
use logstead_sql_exec::{Execution, PendingCall};
use logstead_sql_func::LargeObjectFunction;
use logstead_sql_types::RoleId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory::Builder;
use logstead_sql_types::value::SettingValues;
use logstead_sql_types::value::{Datum, Oid, oid};
use logstead_types::SqlState;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of a page: PostgreSQL's `LOBLKSIZE`.
const PAGE_BYTES: u64 = 2048;
/// The largest object: PostgreSQL's `MAX_LARGE_OBJECT_SIZE`.
const BYTES_MAX: i64 = i32::MAX as i64 * PAGE_BYTES as i64;
/// Pages that one statement reads or writes.
const PAGES_AT_ONCE: usize = 256;
/// The longest value.
const VALUE_BYTES_MAX: u64 = 0x3fff_fffb;

/// `INV_WRITE`
const FOR_WRITING: i32 = 0x0002_0000;
/// `INV_READ`
const FOR_READING: i32 = 0x0004_0000;

const EXISTS: &str = "SELECT 1 FROM pg_catalog.logstead_large_objects WHERE oid = $1";
const HOLD: &str = "SELECT 1 FROM pg_catalog.logstead_large_objects WHERE oid = $1 FOR KEY SHARE";
const MAKE: &str =
    "INSERT INTO pg_catalog.logstead_large_objects VALUES ($1) ON CONFLICT DO NOTHING";
const DROP: &str = "DELETE FROM pg_catalog.logstead_large_objects WHERE oid = $1";
const DROP_PAGES: &str = "DELETE FROM pg_catalog.pg_largeobject WHERE loid = $1 AND pageno > $2";
const LAST_PAGE: &str = "SELECT pageno, pg_catalog.octet_length(data) FROM pg_catalog.pg_largeobject WHERE loid = $1 ORDER BY loid DESC, pageno DESC LIMIT 1";
const READ: &str = "SELECT pageno, data FROM pg_catalog.pg_largeobject WHERE loid = $1 AND pageno BETWEEN $2 AND $3 ORDER BY pageno";
const READ_TO_CHANGE: &str =
    "SELECT pageno, data FROM pg_catalog.pg_largeobject WHERE loid = $1 AND pageno = $2 FOR UPDATE";
const MAKE_PAGE: &str = "INSERT INTO pg_catalog.pg_largeobject SELECT $1, u.p, u.d FROM unnest($2, $3) AS u(p, d) ON CONFLICT (loid, pageno) DO NOTHING";
const WRITE: &str = "INSERT INTO pg_catalog.pg_largeobject SELECT $1, u.p, u.d FROM unnest($2, $3) AS u(p, d) ON CONFLICT (loid, pageno) DO UPDATE SET data = excluded.data";

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn no_object(object: Oid) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("large object {object} does not exist"),
    )
}

fn wrong_way(number: i32, what: &str) -> SqlError {
    SqlError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("large object descriptor {number} was not opened for {what}"),
    )
}

/// A position as the 32-bit functions give it.
fn narrow(at: i64, function: &str, number: i32) -> Result<Datum> {
    let narrow = i32::try_from(at).map_err(|_| {
        SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("{function} result out of range for large-object descriptor {number}"),
        )
    });
    narrow.map(Datum::Int4)
}

fn page_of(at: u64) -> Result<Datum> {
    let page = i32::try_from(at / PAGE_BYTES);
    page.map(Datum::Int4)
        .map_err(|_| SqlError::internal("a large object has too many pages"))
}

fn narrow_arg(datum: &Datum) -> Result<i32> {
    match datum {
        Datum::Int4(value) => Ok(*value),
        _ => Err(SqlError::internal("no integer")),
    }
}

fn wide_arg(datum: &Datum) -> Result<i64> {
    match datum {
        Datum::Int4(value) => Ok(i64::from(*value)),
        Datum::Int8(value) => Ok(*value),
        _ => Err(SqlError::internal("no integer")),
    }
}

impl Session {
    /// Runs a function of large objects that is called.
    pub(super) fn large_object_call<'a>(
        &'a mut self,
        function: LargeObjectFunction,
        call: &'a PendingCall,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Datum>> {
        Box::pin(async move {
            let name = call.callee.name.1.as_str();
            let args = call.args.as_slice();
            match (function, args) {
                (LargeObjectFunction::Create, [object]) => {
                    self.lo_create(object.as_oid()?, name, client).await
                }
                (LargeObjectFunction::Creat, [_]) => self.lo_create(0, name, client).await,
                (LargeObjectFunction::Open, [object, mode]) => {
                    let (object, mode) = (object.as_oid()?, narrow_arg(mode)?);
                    self.lo_open(object, mode, client).await.map(Datum::Int4)
                }
                (LargeObjectFunction::Close, [number]) => {
                    self.descriptors()?.close(narrow_arg(number)?)?;
                    Ok(Datum::Int4(0))
                }
                (LargeObjectFunction::Read, [number, length]) => {
                    let length = u64::try_from(narrow_arg(length)?).unwrap_or(0);
                    self.lo_read(narrow_arg(number)?, length, client).await
                }
                (LargeObjectFunction::Write, [number, bytes]) => {
                    let bytes = Datum::as_bytes(bytes)?;
                    self.lo_write(narrow_arg(number)?, bytes, client).await?;
                    Ok(Datum::Int4(i32::try_from(bytes.len()).unwrap_or(i32::MAX)))
                }
                (
                    LargeObjectFunction::Lseek | LargeObjectFunction::Lseek64,
                    [number, offset, whence],
                ) => {
                    let (number, whence) = (narrow_arg(number)?, narrow_arg(whence)?);
                    let at = self
                        .lo_seek(number, wide_arg(offset)?, whence, client)
                        .await?;
                    match function {
                        LargeObjectFunction::Lseek => narrow(at, name, number),
                        _ => Ok(Datum::Int8(at)),
                    }
                }
                (LargeObjectFunction::Tell | LargeObjectFunction::Tell64, [number]) => {
                    let number = narrow_arg(number)?;
                    let at = self.descriptors()?.get(number)?.at;
                    let at = i64::try_from(at).unwrap_or(i64::MAX);
                    match function {
                        LargeObjectFunction::Tell => narrow(at, name, number),
                        _ => Ok(Datum::Int8(at)),
                    }
                }
                (LargeObjectFunction::Truncate, [number, length]) => {
                    let (number, length) = (narrow_arg(number)?, wide_arg(length)?);
                    self.lo_truncate(number, length, client).await?;
                    Ok(Datum::Int4(0))
                }
                (LargeObjectFunction::Unlink, [object]) => {
                    self.lo_unlink(object.as_oid()?, client).await?;
                    Ok(Datum::Int4(1))
                }
                (LargeObjectFunction::FromBytea, [object, bytes]) => {
                    let made = self.lo_create(object.as_oid()?, name, client).await?;
                    let number = self.lo_open(made.as_oid()?, FOR_WRITING, client).await?;
                    self.lo_write(number, Datum::as_bytes(bytes)?, client)
                        .await?;
                    self.descriptors()?.close(number)?;
                    Ok(made)
                }
                (LargeObjectFunction::Get, [object]) => {
                    self.lo_get(object.as_oid()?, 0, -1, client).await
                }
                (LargeObjectFunction::Get, [object, offset, length]) => {
                    let length = narrow_arg(length)?;
                    if length < 0 {
                        return Err(invalid("requested length cannot be negative".to_owned()));
                    }
                    let (object, offset) = (object.as_oid()?, wide_arg(offset)?);
                    self.lo_get(object, offset, i64::from(length), client).await
                }
                (LargeObjectFunction::Put, [object, offset, bytes]) => {
                    self.not_read_only(name)?;
                    let number = self.lo_open(object.as_oid()?, FOR_WRITING, client).await?;
                    self.lo_seek(number, wide_arg(offset)?, 0, client).await?;
                    self.lo_write(number, Datum::as_bytes(bytes)?, client)
                        .await?;
                    self.descriptors()?.close(number)?;
                    Ok(Datum::text(""))
                }
                (LargeObjectFunction::Import | LargeObjectFunction::Export, _) => {
                    Err(self.refuse_file(name))
                }
                _ => Err(SqlError::internal(format!(
                    "{name} was given other arguments than it takes"
                ))),
            }
        })
    }

    /// 0A000 for what reads or writes files of the server; 42501 for whom that would not be allowed.
    fn refuse_file(&self, name: &str) -> SqlError {
        match self.is_superuser() {
            true => SqlError::unsupported(format!("{name} of a file of the server")),
            false => denied(format!("permission denied for function {name}")),
        }
    }

    fn is_superuser(&self) -> bool {
        let roles = self.worker.instance.store.roles();
        roles.is_superuser(self.context.current_role())
    }

    fn descriptors(&mut self) -> Result<&mut Descriptors> {
        Ok(&mut self.transaction()?.descriptors)
    }

    /// Later releases of PostgreSQL refuse it; 15 does not.
    fn not_read_only(&self, name: &str) -> Result<()> {
        match self.context.read_only.get() {
            true => Err(SqlError::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                format!("cannot execute {name}() in a read-only transaction"),
            )),
            false => Ok(()),
        }
    }

    /// Runs a statement of the server's own; its rows, and how many it gave or wrote. With a view it reads what that
    /// shows.
    async fn own_statement(
        &mut self,
        text: &'static str,
        values: &[Datum],
        view: Option<&mut CursorSnapshot>,
        client: &mut dyn Client,
    ) -> Result<(VecDeque<Vec<Datum>>, u64)> {
        let parsed = self.worker.caches.borrow_mut().parse(text)?;
        let types = values.iter().map(|value| {
            Some(match value {
                Datum::Int4(_) => oid::INT4,
                Datum::Array(array) => match array.element {
                    oid::INT4 => oid::INT4_ARRAY,
                    _ => oid::BYTEA_ARRAY,
                },
                _ => oid::OID,
            })
        });
        let statement = Statement::new(parsed, Some(0), types.collect());
        let before = self.context.as_role.get();
        self.context.act_as(Some(BOOTSTRAP));
        let ran = self.run_own(&statement, values, view, client).await;
        self.context.act_as(before);
        ran
    }

    /// At a replica: with the catalog that belongs to the view which is swapped in.
    async fn run_with_view(
        &mut self,
        statement: &Statement,
        values: &[Datum],
        quiet: &mut CapturingClient<'_>,
    ) -> Result<super::run::RunOutcome> {
        let plan = self.prepare_run(statement).await?;
        let mut execution = Execution::new(Arc::clone(&plan.prepared));
        self.run(&plan, &mut execution, values, true, 0, quiet)
            .await
    }

    async fn run_own(
        &mut self,
        statement: &Statement,
        values: &[Datum],
        view: Option<&mut CursorSnapshot>,
        client: &mut dyn Client,
    ) -> Result<(VecDeque<Vec<Datum>>, u64)> {
        let plan = self.prepare_run(statement).await?;
        let mut execution = Execution::new(Arc::clone(&plan.prepared));
        let mut quiet = CapturingClient::new(client, self.worker.instance.engine.memory());
        let ran = match view {
            None => {
                self.run(&plan, &mut execution, values, true, 0, &mut quiet)
                    .await
            }
            Some(view) => {
                self.transaction()?.txn.swap_view(view);
                self.stable += 1;
                let ran = match self.is_at_replica() {
                    true => Box::pin(self.run_with_view(statement, values, &mut quiet)).await,
                    false => {
                        self.run(&plan, &mut execution, values, true, 0, &mut quiet)
                            .await
                    }
                };
                self.stable -= 1;
                self.transaction()?.txn.swap_view(view);
                ran
            }
        };
        let rows = quiet.into_rows();
        match ran? {
            super::run::RunOutcome::Done { rows: count } => Ok((rows, count)),
            super::run::RunOutcome::Suspended => {
                Err(SqlError::internal("a statement stopped early"))
            }
        }
    }

    /// May the current role do that with the object?
    fn may_use(&mut self, object: Oid, wanted: AclMode) -> Result<bool> {
        if self.compatible_privileges() {
            return Ok(true);
        }
        let catalog = self.catalog()?;
        let role = self.context.current_role();
        let acl_checker = catalog.acl_checker(&catalog.roles);
        let found = acl_checker.on_object(
            role,
            ((PG_LARGEOBJECT, object), AclKind::LargeObject),
            wanted,
            0,
        );
        Ok(found.0 != 0)
    }

    /// `lo_compat_privileges`: nobody is asked for privileges.
    fn compatible_privileges(&self) -> bool {
        self.context.setting("lo_compat_privileges").as_deref() == Some("on")
    }

    /// 42501 unless it is the current role's.
    fn must_own_large_object(&mut self, object: Oid) -> Result<()> {
        let catalog = self.catalog()?;
        let role = self.context.current_role();
        match catalog
            .acl_checker(&catalog.roles)
            .owns(role, (PG_LARGEOBJECT, object))
        {
            true => Ok(()),
            false => Err(denied(format!("must be owner of large object {object}"))),
        }
    }

    /// Is there such an object? From then on it stays until the transaction ends.
    async fn hold_large_object(&mut self, object: Oid, client: &mut dyn Client) -> Result<bool> {
        let key = [Datum::Oid(object)];
        let (found, _) = self.own_statement(HOLD, &key, None, client).await?;
        Ok(!found.is_empty())
    }

    async fn lo_create(
        &mut self,
        wanted: Oid,
        name: &str,
        client: &mut dyn Client,
    ) -> Result<Datum> {
        self.not_read_only(name)?;
        let store = Arc::clone(&self.worker.instance.store);
        let object = loop {
            let object = match wanted {
                0 => {
                    let (object, csn) = store.new_oid(&self.worker.worker)?;
                    self.transaction()?.txn.depends_on(csn);
                    object
                }
                wanted => wanted,
            };
            let (_, made) = self
                .own_statement(MAKE, &[Datum::Oid(object)], None, client)
                .await?;
            match (made, wanted) {
                (0, 0) => {}
                (0, _) => {
                    return Err(SqlError::new(
                        SqlState::UNIQUE_VIOLATION,
                        "duplicate key value violates unique constraint \"pg_largeobject_metadata_oid_index\"",
                    )
                    .detail(format!("Key (oid)=({object}) already exists.")));
                }
                _ => break object,
            }
        };
        let owner = self.context.current_role();
        if owner != BOOTSTRAP {
            self.large_object_rights(object, Some(owner)).await?;
        }
        Ok(Datum::Oid(object))
    }

    /// Says whose the object is; of one that goes, forgets that and its comment.
    async fn large_object_rights(&mut self, object: Oid, owner: Option<RoleId>) -> Result<()> {
        let limits = self.limits();
        let signals = Arc::clone(&self.signals);
        let catalog = self.catalog()?;
        let mut around = DdlEnvironment::of(self);
        self.context.catalog.replace(Arc::clone(&catalog));
        let open = self.transaction()?;
        open.txn.begin_statement();
        open.txn.depends_on(catalog.csn);
        let mut cx = around.context(open, "");
        run_with_limits(
            &signals,
            limits,
            ddl::large_object_rights(object, owner, &mut cx),
        )
        .await
    }

    async fn lo_unlink(&mut self, object: Oid, client: &mut dyn Client) -> Result<()> {
        self.not_read_only("lo_unlink")?;
        if !self.is_superuser() && !self.compatible_privileges() {
            if !self.hold_large_object(object, client).await? {
                return Err(no_object(object));
            }
            self.must_own_large_object(object)?;
        }
        self.descriptors()?.keep(|open| open.object != object);
        let (_, gone) = self
            .own_statement(DROP, &[Datum::Oid(object)], None, client)
            .await?;
        if gone == 0 {
            return Err(no_object(object));
        }
        let all = [Datum::Oid(object), Datum::Int4(-1)];
        self.own_statement(DROP_PAGES, &all, None, client).await?;
        let catalog = self.catalog()?;
        let comments = &catalog.notes.comments;
        let commented = comments.contains_key(&(PG_LARGEOBJECT, object, 0));
        if commented || catalog.privileges_of((PG_LARGEOBJECT, object)).is_some() {
            self.large_object_rights(object, None).await?;
        }
        Ok(())
    }

    async fn lo_open(&mut self, object: Oid, mode: i32, client: &mut dyn Client) -> Result<i32> {
        let writes = mode & FOR_WRITING != 0;
        let reads = writes || mode & FOR_READING != 0;
        if !reads {
            return Err(invalid(format!(
                "invalid flags for opening a large object: {mode}"
            )));
        }
        if writes {
            self.not_read_only("lo_open(INV_WRITE)")
                .map_err(|mut error| {
                    let fields = error.fields_mut();
                    fields.message = fields.message.replace(")()", ")");
                    error
                })?;
        }
        let mut view = match writes {
            true => None,
            false => Some(self.transaction()?.txn.view()),
        };
        let asked = if writes { HOLD } else { EXISTS };
        let key = [Datum::Oid(object)];
        let found = self.own_statement(asked, &key, view.as_mut(), client).await;
        if found?.0.is_empty() {
            return Err(no_object(object));
        }
        for (wanted, privilege) in [(reads, p::SELECT), (writes, p::UPDATE)] {
            if wanted && !self.may_use(object, privilege)? {
                return Err(denied(format!(
                    "permission denied for large object {object}"
                )));
            }
        }
        let level = self.savepoints.len();
        self.descriptors()?.open(Descriptor {
            object,
            at: 0,
            reads,
            writes,
            view,
            level,
        })
    }

    /// Runs a statement that reads what a descriptor shows.
    async fn read_through(
        &mut self,
        number: i32,
        text: &'static str,
        values: &[Datum],
        client: &mut dyn Client,
    ) -> Result<VecDeque<Vec<Datum>>> {
        let mut view = self.descriptors()?.get(number)?.view.take();
        let read = self
            .own_statement(text, values, view.as_mut(), client)
            .await;
        // An error ends it with its transaction, or with the part of it.
        if let Ok(open) = self.descriptors()?.get(number) {
            open.view = view;
        }
        Ok(read?.0)
    }

    async fn lo_size(&mut self, number: i32, client: &mut dyn Client) -> Result<u64> {
        let object = self.descriptors()?.get(number)?.object;
        let rows = self
            .read_through(number, LAST_PAGE, &[Datum::Oid(object)], client)
            .await?;
        match rows.front().map(Vec::as_slice) {
            Some([page, bytes]) => {
                let (page, bytes) = (wide_arg(page)?, wide_arg(bytes)?);
                let page = u64::try_from(page).unwrap_or(0);
                Ok(page * PAGE_BYTES + u64::try_from(bytes).unwrap_or(0))
            }
            _ => Ok(0),
        }
    }

    async fn lo_seek(
        &mut self,
        number: i32,
        offset: i64,
        whence: i32,
        client: &mut dyn Client,
    ) -> Result<i64> {
        let from = match whence {
            0 => 0,
            1 => self.descriptors()?.get(number)?.at,
            2 => {
                self.descriptors()?.get(number)?;
                self.lo_size(number, client).await?
            }
            _ => {
                self.descriptors()?.get(number)?;
                return Err(invalid(format!("invalid whence setting: {whence}")));
            }
        };
        let at = i64::try_from(from).unwrap_or(i64::MAX).wrapping_add(offset);
        if !(0..=BYTES_MAX).contains(&at) {
            return Err(invalid(format!("invalid large object seek target: {at}")));
        }
        self.descriptors()?.get(number)?.at = u64::try_from(at).unwrap_or(0);
        Ok(at)
    }

    /// Reads on from where the descriptor stands. Where nothing was written there are zeros.
    async fn lo_read(
        &mut self,
        number: i32,
        length: u64,
        client: &mut dyn Client,
    ) -> Result<Datum> {
        let open = self.descriptors()?.get(number)?;
        if !open.reads {
            return Err(wrong_way(number, "reading"));
        }
        let (object, start) = (open.object, open.at);
        let nothing = || Datum::Bytea(Vec::new().into());
        if length == 0 {
            return Ok(nothing());
        }
        let end = start
            .saturating_add(length)
            .min(self.lo_size(number, client).await?);
        if end <= start {
            return Ok(nothing());
        }
        if end - start > VALUE_BYTES_MAX {
            return Err(invalid("large object read request is too large".to_owned()));
        }
        let mut bytes = Builder::with_capacity(usize::try_from(end - start).unwrap_or(usize::MAX))?;
        let mut at = start;
        while at < end {
            let first = at / PAGE_BYTES;
            let last = (first + PAGES_AT_ONCE as u64 - 1).min((end - 1) / PAGE_BYTES);
            let values = [
                Datum::Oid(object),
                page_of(at)?,
                page_of(last * PAGE_BYTES)?,
            ];
            let rows = self.read_through(number, READ, &values, client).await?;
            for row in &rows {
                let [page, data] = row.as_slice() else {
                    return Err(SqlError::internal("a page has other columns"));
                };
                let page = u64::try_from(wide_arg(page)?).unwrap_or(0) * PAGE_BYTES;
                let data = Datum::as_bytes(data)?;
                // From the page, what lies between here and the end.
                let from = at.max(page);
                let to = (page + data.len() as u64).min(end);
                if from < to {
                    bytes.push_many(0, (from - at) as usize)?;
                    let part = (from - page) as usize..(to - page) as usize;
                    bytes.push_bytes(data.get(part).unwrap_or_default())?;
                    at = to;
                }
            }
            let behind = ((last + 1) * PAGE_BYTES).min(end);
            bytes.push_many(0, (behind - at) as usize)?;
            at = behind;
        }
        self.descriptors()?.get(number)?.at = end;
        bytes.finish_bytes()
    }

    /// Writes on from where the descriptor stands.
    async fn lo_write(&mut self, number: i32, bytes: &[u8], client: &mut dyn Client) -> Result<()> {
        self.not_read_only("lowrite")?;
        let open = self.descriptors()?.get(number)?;
        if !open.writes {
            return Err(wrong_way(number, "writing"));
        }
        let (object, start) = (open.object, open.at);
        let end = start.saturating_add(bytes.len() as u64);
        if i64::try_from(end).is_ok_and(|end| end > BYTES_MAX) {
            return Err(invalid(format!(
                "invalid large object write request size: {}",
                bytes.len()
            )));
        }
        let mut at = start;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (mut pages, mut data) = (Vec::new(), Vec::new());
            while !rest.is_empty() && pages.len() < PAGES_AT_ONCE {
                let offset = (at % PAGE_BYTES) as usize;
                let (part, behind) = rest.split_at(rest.len().min(PAGE_BYTES as usize - offset));
                // A page that is written in part keeps the rest of it.
                let page = if part.len() < PAGE_BYTES as usize {
                    let change = |page: &mut Vec<u8>| {
                        if page.len() < offset + part.len() {
                            page.resize(offset + part.len(), 0);
                        }
                        if let Some(place) = page.get_mut(offset..offset + part.len()) {
                            place.copy_from_slice(part);
                        }
                    };
                    self.changed_page(object, at, change, client).await?
                } else {
                    Some(part.to_vec())
                };
                if let Some(page) = page {
                    pages.push(page_of(at)?);
                    data.push(Datum::Bytea(page.into()));
                }
                at += part.len() as u64;
                rest = behind;
            }
            if !pages.is_empty() {
                self.write_pages(WRITE, object, pages, data, client).await?;
            }
            self.descriptors()?.get(number)?.at = at;
        }
        Ok(())
    }

    async fn page_to_change(
        &mut self,
        object: Oid,
        at: u64,
        client: &mut dyn Client,
    ) -> Result<Option<Vec<u8>>> {
        let values = [Datum::Oid(object), page_of(at)?];
        let (rows, _) = self
            .own_statement(READ_TO_CHANGE, &values, None, client)
            .await?;
        match rows.front().map(Vec::as_slice) {
            Some([_, data]) => Ok(Some(Datum::as_bytes(data)?.to_vec())),
            _ => Ok(None),
        }
    }

    /// A page as `change` makes it of what is newest, to be written; `None`: there was none, so it has been made.
    async fn changed_page(
        &mut self,
        object: Oid,
        at: u64,
        change: impl Fn(&mut Vec<u8>),
        client: &mut dyn Client,
    ) -> Result<Option<Vec<u8>>> {
        // Another may have made it since it was looked for.
        for _ in 0..2 {
            if let Some(mut page) = self.page_to_change(object, at, client).await? {
                change(&mut page);
                return Ok(Some(page));
            }
            let mut page = Vec::new();
            change(&mut page);
            let (number, page) = (vec![page_of(at)?], vec![Datum::Bytea(page.into())]);
            let made = self.write_pages(MAKE_PAGE, object, number, page, client);
            if made.await? > 0 {
                return Ok(None);
            }
        }
        // It comes and goes.
        Err(SqlError::new(
            SqlState::UNIQUE_VIOLATION,
            "duplicate key value violates unique constraint \"pg_largeobject_loid_pn_index\"",
        )
        .detail(format!(
            "Key (loid, pageno)=({object}, {}) already exists.",
            at / PAGE_BYTES
        )))
    }

    /// Runs a statement that writes pages; how many it has written.
    async fn write_pages(
        &mut self,
        text: &'static str,
        object: Oid,
        pages: Vec<Datum>,
        data: Vec<Datum>,
        client: &mut dyn Client,
    ) -> Result<u64> {
        let values = [
            Datum::Oid(object),
            Datum::array(oid::INT4, pages),
            Datum::array(oid::BYTEA, data),
        ];
        let (_, written) = self.own_statement(text, &values, None, client).await?;
        Ok(written)
    }

    /// Cuts the object, or makes it longer.
    async fn lo_truncate(
        &mut self,
        number: i32,
        length: i64,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.not_read_only("lo_truncate")?;
        let open = self.descriptors()?.get(number)?;
        if !open.writes {
            return Err(wrong_way(number, "writing"));
        }
        let object = open.object;
        if !(0..=BYTES_MAX).contains(&length) {
            return Err(invalid(format!(
                "invalid large object truncation target: {length}"
            )));
        }
        let length = u64::try_from(length).unwrap_or(0);
        let cut = |page: &mut Vec<u8>| page.resize((length % PAGE_BYTES) as usize, 0);
        let last = self.changed_page(object, length, cut, client).await?;
        let behind = [Datum::Oid(object), page_of(length)?];
        self.own_statement(DROP_PAGES, &behind, None, client)
            .await?;
        if let Some(last) = last {
            let (page, last) = (vec![page_of(length)?], vec![Datum::Bytea(last.into())]);
            self.write_pages(WRITE, object, page, last, client).await?;
        }
        Ok(())
    }

    async fn lo_get(
        &mut self,
        object: Oid,
        offset: i64,
        length: i64,
        client: &mut dyn Client,
    ) -> Result<Datum> {
        let number = self.lo_open(object, FOR_READING, client).await?;
        let size = self.lo_seek(number, 0, 2, client).await?;
        let length = match length {
            length if length < 0 || offset.checked_add(length).is_none_or(|end| end > size) => {
                size.saturating_sub(offset).max(0)
            }
            length => length,
        };
        if u64::try_from(length).is_ok_and(|length| length > VALUE_BYTES_MAX) {
            return Err(invalid("large object read request is too large".to_owned()));
        }
        self.lo_seek(number, offset, 0, client).await?;
        let length = u64::try_from(length).unwrap_or(0);
        let bytes = self.lo_read(number, length, client).await?;
        self.descriptors()?.close(number)?;
        Ok(bytes)
    }
}
