//! What functions, planning and output see of a session.

use super::advisory::{AdvisoryLockFunctions, SessionLocks};
use super::instance::Instance;
use super::notify::PendingNotifies;
use super::random::SeededRandom;
use super::signals::Signals;
use super::statement::Statements;
use super::transaction_modes::TransactionModes;
use crate::as_of_snapshot::{AS_OF_POINT, as_of_too_late, is_as_of};
use crate::backend_status::BackendStatus;
use jiff::tz::TimeZone;
use logstead_engine::{CommitWait, Txn, Worker, Xid};
use logstead_sql_catalog::context::{
    Activity, AdvisoryLockRequest, AdvisoryLockRow, Context, CursorRow, PreparedRow, StatementRow,
    WorkerRow,
};
use logstead_sql_catalog::privileges::DetailVisibility;
use logstead_sql_catalog::role::acl::privilege as p;
use logstead_sql_catalog::settings::{self, PlannerSettings, SessionSettings};
use logstead_sql_catalog::{AutoanalyzeEntry, Catalog, Relation, SequenceSession, VirtualContext};
use logstead_sql_ddl::pg_catalog::calls;
use logstead_sql_exec::{Spill, SpillAllowance};
use logstead_sql_func::{FunctionContext, RestorePointRequest};
use logstead_sql_types::encoding::Encoding;
use logstead_sql_types::error::{Result, SqlError, recovery_in_progress};
use logstead_sql_types::value::datetime::{DateForm, DateOrder, DateStyle, IntervalStyle};
use logstead_sql_types::value::{Datum, IoContext, Oid, OutputStyle, user};
use logstead_types::{Csn, SqlState};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The part of a session that lives while statements run: they hold it shared, so everything that changes is in cells.
pub struct SessionContext {
    pub(super) instance: Arc<Instance>,
    pub(super) worker: Worker,
    pub(super) database: String,
    pub(super) user: String,
    /// The role that has connected, whatever the session has become.
    pub(super) authenticated: Oid,
    pub(super) pid: i32,
    pub(super) settings: RefCell<SessionSettings>,
    pub(super) transaction_time: Cell<i64>,
    pub(super) statement_time: Cell<i64>,
    /// The catalog that the running statement was planned with.
    pub(super) catalog: RefCell<Arc<Catalog>>,
    /// What nextval and setval gave to this session.
    pub(super) sequences: RefCell<SequenceSession>,
    /// What sequence calls and advisory locks of this transaction depend on (T10); taken over by the transaction.
    pub(super) depends_on: RefCell<CommitWait>,
    /// Restore points that the running statement asks for.
    pub(super) restore_points: RefCell<Vec<RestorePointRequest>>,
    /// The promotion that the statement has asked for: its number, and how long it waits for it.
    pub(super) promotion_asked: Cell<Option<(u64, Duration)>>,
    /// Prepared statements.
    pub(super) statements: RefCell<Statements>,
    /// What `pg_cursors` shows.
    pub(super) cursors: RefCell<Vec<CursorRow>>,
    /// What is being planned is a cursor's query.
    pub(super) plans_cursor: Cell<bool>,
    /// Advisory locks.
    pub(super) advisory: RefCell<SessionLocks>,
    /// Notifications that the transaction has asked for, and what the session listens to.
    pub(super) pending_notifies: RefCell<PendingNotifies>,
    /// Savepoints that stand.
    pub(super) level: Cell<usize>,
    /// What `logstead.as_of_point` shows.
    pub(super) as_of_point: RefCell<String>,
    /// The same while a statement with AS OF runs.
    pub(super) clause_point: RefCell<Option<String>>,
    /// The search path, as a role may use it.
    path: RefCell<Option<KnownPath>>,
    /// The running transaction may not write.
    pub(super) read_only: Cell<bool>,
    /// Its other characteristics, as `current_setting` tells them.
    isolation_name: Cell<&'static str>,
    deferrable: Cell<bool>,
    /// Style of output, refreshed when a setting changes.
    time_zone: Cell<&'static TimeZone>,
    extra_float_digits: Cell<i32>,
    bytea_escape: Cell<bool>,
    interval_style: Cell<IntervalStyle>,
    date_order: Cell<DateOrder>,
    date_form: Cell<DateForm>,
    client_encoding: Cell<Encoding>,
    /// The random numbers that setseed() began.
    random: Cell<Option<SeededRandom>>,
    /// The id of the transaction, once somebody has asked for it.
    pub(super) xid: RefCell<Option<Xid>>,
    /// Snapshots that the transaction has exported.
    pub(super) exports: RefCell<Vec<crate::exported_snapshots::ExportHandle>>,
    /// Answers wait until what they tell is durable.
    pub(super) synchronous: Cell<bool>,
    /// What the others see.
    pub(super) live: Arc<BackendStatus>,
    /// Rows that the running statement has given or written.
    pub(super) rows: Cell<u64>,
    /// What the running statement asks transactions to read from now on.
    pub(super) as_of_asked: RefCell<Option<String>>,
    /// set_config() has made the transaction read-only: the session is to know.
    pub(super) read_only_asked: Cell<bool>,
    /// Bodies of triggers in one another.
    pub(super) trigger_depth: Cell<i32>,
    /// In a block, or between statements of one text.
    pub(super) in_block: Cell<bool>,
    /// How long the running statement has asked to sleep.
    pub(super) sleep_us: Cell<u64>,
    /// What functions warn of.
    pub(super) warnings: RefCell<Vec<String>>,
    /// The owner of the function that is being run, if it is run as that; 0 is none.
    pub(super) as_role: Cell<Oid>,
    /// How the session is reached by others.
    pub(super) signals: Arc<Signals>,
    /// The session's part of the room for temporary files.
    spill: Spill,
}

/// The part of a search path that a role may use in a catalog.
struct KnownPath {
    of: Rc<[String]>,
    version: u64,
    role: Oid,
    path: Rc<[String]>,
}

impl SessionContext {
    /// The session's part of the table of advisory locks.
    fn advisor<'s>(&'s self, holdings: &'s mut SessionLocks) -> AdvisoryLockFunctions<'s> {
        AdvisoryLockFunctions {
            locks: &self.instance.advisory,
            holdings,
            database: self.catalog.borrow().database,
            pid: self.pid,
            level: self.level.get(),
            depends_on: &self.depends_on,
        }
    }

    pub(super) fn new(
        instance: Arc<Instance>,
        worker: Worker,
        database: String,
        user: String,
        (pid, live, signals): (i32, Arc<BackendStatus>, Arc<Signals>),
        settings: SessionSettings,
        catalog: Arc<Catalog>,
    ) -> SessionContext {
        let context = SessionContext {
            spill: Spill::new(Arc::clone(&instance.spill)),
            instance,
            worker,
            database,
            user,
            authenticated: settings.typed().session_role,
            pid,
            settings: RefCell::new(settings),
            transaction_time: Cell::new(0),
            statement_time: Cell::new(0),
            catalog: RefCell::new(catalog),
            sequences: RefCell::default(),
            depends_on: RefCell::default(),
            restore_points: RefCell::default(),
            promotion_asked: Cell::default(),
            statements: RefCell::default(),
            cursors: RefCell::default(),
            plans_cursor: Cell::new(false),
            advisory: RefCell::default(),
            pending_notifies: RefCell::default(),
            level: Cell::new(0),
            as_of_point: RefCell::default(),
            clause_point: RefCell::default(),
            path: RefCell::default(),
            read_only: Cell::new(false),
            isolation_name: Cell::new("read committed"),
            deferrable: Cell::new(false),
            time_zone: Cell::new(&settings::UTC),
            extra_float_digits: Cell::new(1),
            bytea_escape: Cell::new(false),
            interval_style: Cell::default(),
            date_order: Cell::default(),
            date_form: Cell::default(),
            client_encoding: Cell::new(Encoding::UTF8),
            random: Cell::new(None),
            xid: RefCell::default(),
            exports: RefCell::default(),
            synchronous: Cell::new(true),
            live,
            rows: Cell::new(0),
            as_of_asked: RefCell::default(),
            read_only_asked: Cell::new(false),
            trigger_depth: Cell::new(0),
            in_block: Cell::new(false),
            sleep_us: Cell::new(0),
            warnings: RefCell::default(),
            as_role: Cell::new(0),
            signals,
        };
        context.refresh_style();
        context
    }

    /// The schemas in which a name is looked up that names none: those of `search_path` that the current role may use,
    /// as in PostgreSQL. What there is not stays in it: nothing is found there.
    pub(super) fn path_in(&self, catalog: &Arc<Catalog>) -> Rc<[String]> {
        let path = Rc::clone(&self.settings.borrow().typed().search_path);
        let role = self.current_role();
        if let Some(known) = &*self.path.borrow()
            && known.role == role
            && known.version == catalog.version
            && Rc::ptr_eq(&known.of, &path)
        {
            return Rc::clone(&known.path);
        }
        let roles = self.roles(catalog);
        // The privileges of a past are not told here.
        let usable = match roles.is_superuser(role) || catalog.past.is_some() {
            true => Rc::clone(&path),
            false => {
                let acl_checker = catalog.acl_checker(&roles);
                let may_use = |name: &&String| {
                    let found = catalog
                        .schema(name)
                        .filter(|found| found.name != "pg_catalog");
                    let temporary = catalog.temp.as_ref().map(|temp| temp.oid);
                    found.is_none_or(|found| {
                        temporary == Some(found.oid)
                            || acl_checker.on_schema(role, found.oid, p::USAGE, 0).0 & p::USAGE != 0
                    })
                };
                match path.iter().all(|name| may_use(&name)) {
                    true => Rc::clone(&path),
                    false => path.iter().filter(may_use).cloned().collect(),
                }
            }
        };
        self.path.replace(Some(KnownPath {
            of: path,
            version: catalog.version,
            role,
            path: Rc::clone(&usable),
        }));
        usable
    }

    /// How values print for this client.
    pub fn output_style(&self) -> OutputStyle<'_> {
        OutputStyle {
            time_zone: self.time_zone.get(),
            extra_float_digits: self.extra_float_digits.get(),
            bytea_escape: self.bytea_escape.get(),
            interval: self.interval_style.get(),
            date: DateStyle {
                form: self.date_form.get(),
                order: self.date_order.get(),
            },
            names: Some(self),
        }
    }

    /// What the client's texts are in.
    #[inline]
    pub fn client_encoding(&self) -> Encoding {
        self.client_encoding.get()
    }

    /// Takes over settings that changed.
    pub(super) fn refresh_style(&self) {
        let settings = self.settings.borrow();
        let typed = settings.typed();
        self.time_zone.set(typed.time_zone);
        self.extra_float_digits.set(typed.extra_float_digits);
        self.bytea_escape.set(!typed.bytea_hex);
        self.interval_style.set(typed.interval_style);
        self.date_order.set(typed.date_order);
        self.date_form.set(typed.date_form);
        self.client_encoding.set(typed.client_encoding);
        self.synchronous.set(typed.synchronous_commit);
        self.live
            .set_application_name(settings.canonical_value("application_name").unwrap_or(""));
    }

    /// Takes over the characteristics of the transaction.
    pub(super) fn take_modes(&self, modes: &TransactionModes) {
        self.read_only.set(modes.read_only);
        self.isolation_name.set(modes.isolation_name);
        self.deferrable.set(modes.deferrable);
    }

    /// A setting that is a characteristic of the transaction, not of the session.
    fn of_transaction(&self, name: &str) -> Option<&'static str> {
        let on_off = |on: &Cell<bool>| if on.get() { "on" } else { "off" };
        if name.eq_ignore_ascii_case("transaction_isolation") {
            Some(self.isolation_name.get())
        } else if name.eq_ignore_ascii_case("transaction_read_only") {
            Some(on_off(&self.read_only))
        } else if name.eq_ignore_ascii_case("transaction_deferrable") {
            Some(on_off(&self.deferrable))
        } else {
            None
        }
    }

    /// set_config() of a characteristic of the transaction, in which a query runs: it may become read-only, and else
    /// stays what it is.
    fn set_characteristic(&self, name: &str, value: &str, now: &str) -> Result<String> {
        let name = name.to_ascii_lowercase();
        let late = |text: &str| Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, text));
        if name == "transaction_isolation" {
            return match value.eq_ignore_ascii_case(now) {
                true => Ok(now.to_owned()),
                false => late("SET TRANSACTION ISOLATION LEVEL must be called before any query"),
            };
        }
        let on = settings::parse_bool(value).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("parameter \"{name}\" requires a Boolean value"),
            )
        })?;
        match (name.as_str(), on, now) {
            (_, true, "on") | (_, false, "off") => {}
            ("transaction_read_only", true, _) => {
                self.read_only.set(true);
                self.read_only_asked.set(true);
            }
            ("transaction_read_only", false, _) => {
                return late("transaction read-write mode must be set before any query");
            }
            _ => return late("SET TRANSACTION [NOT] DEFERRABLE must be called before any query"),
        }
        Ok(if on { "on" } else { "off" }.to_owned())
    }

    fn may_write(&self, function: &str) -> Result<()> {
        if self.read_only.get() {
            return Err(SqlError::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                format!("cannot execute {function}() in a read-only transaction"),
            ));
        }
        Ok(())
    }

    /// A temporary sequence moves in any transaction.
    fn may_write_sequence(&self, function: &str, catalog: &Catalog, sequence: Oid) -> Result<()> {
        let found = catalog.relations.get(&sequence);
        match found.is_some_and(|relation| relation.is_temporary()) {
            true => Ok(()),
            false => self.may_write(function),
        }
    }

    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.borrow())
    }

    fn depend(&self, csn: Csn) {
        self.depends_on.borrow_mut().add(csn);
    }
}

impl IoContext for SessionContext {
    fn transaction_time(&self) -> i64 {
        self.transaction_time.get()
    }

    fn time_zone(&self) -> &TimeZone {
        self.time_zone.get()
    }

    fn date_order(&self) -> DateOrder {
        self.date_order.get()
    }

    fn date_form(&self) -> DateForm {
        self.date_form.get()
    }

    fn setting(&self, name: &str) -> Option<String> {
        if name.eq_ignore_ascii_case(AS_OF_POINT) {
            let of_clause = self.clause_point.borrow().clone();
            return Some(of_clause.unwrap_or_else(|| self.as_of_point.borrow().clone()));
        }
        if self.is_hidden(name) {
            return None;
        }
        if let Some(value) = self.of_transaction(name) {
            return Some(value.to_owned());
        }
        self.settings.borrow().show(name)
    }

    fn relation_by_name(&self, name: &str) -> Result<Option<Oid>> {
        let path = self.search_path();
        calls::relation_by_text(&self.catalog(), name, &path)
    }

    fn relation_name(&self, relation: Oid) -> Option<String> {
        let path = self.search_path();
        logstead_sql_catalog::text::relation_text(&self.catalog(), relation, &path)
    }

    fn catalog_call(&self, name: &str, args: &[Datum]) -> Result<Datum> {
        if name.starts_with("pg_advisory_") || name.starts_with("pg_try_advisory_") {
            let mut holdings = self.advisory.borrow_mut();
            if let Some(value) = self.advisor(&mut holdings).call(name, args)? {
                return Ok(value);
            }
        }
        if let ("pg_notify", [channel, payload]) = (name, args) {
            if self.instance.store.is_replica() {
                return Err(SqlError::during_recovery("NOTIFY"));
            }
            let text = |value: &Datum| match value {
                Datum::Text(text) => Arc::clone(text),
                _ => Arc::from(""),
            };
            let mut pending_notifies = self.pending_notifies.borrow_mut();
            pending_notifies.notify(&text(channel), &text(payload), self.level.get())?;
            return Ok(Datum::text(""));
        }
        if let Some(value) = self.xid_call(name, args)? {
            return Ok(value);
        }
        if let "pg_postmaster_start_time" | "pg_conf_load_time" = name {
            return Ok(Datum::TimestampTz(self.instance.started));
        }
        if name == "pg_reload_conf" {
            return self.reload_configuration();
        }
        if let Some(value) = self.address_call(name) {
            return Ok(value);
        }
        if let Some(value) = self.signal_call(name, args)? {
            return Ok(value);
        }
        if let Some(value) = self.blocking_call(name, args) {
            return Ok(value);
        }
        if let Some(value) = self.statistics_call(name, args)? {
            return Ok(value);
        }
        calls::catalog_call(
            name,
            args,
            &VirtualContext {
                catalog: &self.catalog(),
                session: self,
            },
        )
    }

    fn type_by_text(&self, text: &str) -> Result<Oid> {
        logstead_sql_catalog::type_name::type_by_text(text)
    }
}

impl FunctionContext for SessionContext {
    fn own_number(&self, sequence: Oid) -> Result<i64> {
        let catalog = self.catalog();
        self.may_write_sequence("nextval", &catalog, sequence)?;
        self.sequences.borrow_mut().nextval(
            &self.instance.store,
            &self.worker,
            &catalog,
            sequence,
            |csn| self.depend(csn),
        )
    }

    fn statement_time(&self) -> i64 {
        self.statement_time.get()
    }

    fn clock_time(&self) -> i64 {
        self.instance.env.clock.now_micros_since_2000()
    }

    fn random_u64(&self) -> u64 {
        self.instance.env.random.u64()
    }

    fn seeded_u64(&self) -> Option<u64> {
        let mut random = self.random.get()?;
        let number = random.next();
        self.random.set(Some(random));
        Some(number)
    }

    fn seed(&self, seed: u64) {
        self.random.set(Some(SeededRandom::new(seed)));
    }

    fn database(&self) -> &str {
        &self.database
    }

    fn user(&self) -> &str {
        &self.user
    }

    fn session_user(&self) -> String {
        self.role_name(self.session_role())
    }

    fn current_user(&self) -> String {
        self.role_name(self.current_role())
    }

    fn backend_pid(&self) -> i32 {
        self.pid
    }

    fn trigger_depth(&self) -> i32 {
        self.trigger_depth.get()
    }

    fn set_setting(&self, name: &str, value: &str, local: bool) -> Result<String> {
        if settings::is_identity(name) {
            let roles = self.roles(&self.catalog());
            self.set_identity(name, Some(value), local, &roles)?;
            return self.setting(name).ok_or_else(|| settings::unknown(name));
        }
        if is_as_of(name) {
            // A transaction goes on reading what it reads: the next one follows, of which there must be one.
            if local || self.in_block.get() {
                return Err(as_of_too_late());
            }
            self.settings.borrow_mut().set(name, value, false)?;
            *self.as_of_asked.borrow_mut() = Some(value.to_owned());
            return Ok(value.to_owned());
        }
        if let Some(now) = self.of_transaction(name) {
            return self.set_characteristic(name, value, now);
        }
        self.settings.borrow_mut().set(name, value, local)?;
        self.refresh_style();
        self.setting(name).ok_or_else(|| settings::unknown(name))
    }

    fn search_path(&self) -> Vec<String> {
        // Schemas that do not exist, "$user" most of the time, are no part of the path.
        let catalog = self.catalog();
        // What is bound of a function with a path of its own has names looked up in that.
        let path = user::searched().unwrap_or_else(|| self.path_in(&catalog));
        { path.iter() }
            .filter(|schema| catalog.schema(schema).is_some())
            .cloned()
            .collect()
    }

    fn nextval(&self, sequence: Oid) -> Result<i64> {
        let catalog = self.catalog();
        self.may_use_sequence(&catalog, sequence, p::USAGE | p::UPDATE)?;
        self.own_number(sequence)
    }

    fn currval(&self, sequence: Oid) -> Result<i64> {
        let catalog = self.catalog();
        self.may_use_sequence(&catalog, sequence, p::USAGE | p::SELECT)?;
        self.sequences
            .borrow()
            .currval(&self.catalog.borrow(), sequence)
    }

    fn lastval(&self) -> Result<i64> {
        let last = self.sequences.borrow().last();
        if let Some(sequence) = last {
            let catalog = self.catalog();
            self.may_use_sequence(&catalog, sequence, p::USAGE | p::SELECT)?;
        }
        self.sequences.borrow().lastval(&self.catalog.borrow())
    }

    fn setval(&self, sequence: Oid, value: i64, is_called: bool) -> Result<i64> {
        let catalog = self.catalog();
        self.may_write_sequence("setval", &catalog, sequence)?;
        self.may_use_sequence(&catalog, sequence, p::UPDATE)?;
        let csn = self.sequences.borrow_mut().setval(
            &self.instance.store,
            &self.worker,
            &catalog,
            sequence,
            value,
            is_called,
        )?;
        self.depend(csn);
        Ok(value)
    }

    fn transaction_call(&self, name: &str, txn: &mut Txn) -> Result<Datum> {
        match name {
            "pg_export_snapshot" => self.export_snapshot(txn),
            _ => self.current_snapshot(txn),
        }
    }

    fn sleep(&self, us: u64) -> Result<()> {
        self.sleep_us.set(self.sleep_us.get().saturating_add(us));
        Ok(())
    }

    fn restore_point(&self, request: RestorePointRequest) -> Result<()> {
        if self.catalog.borrow().past.is_some() {
            self.may_write(match request {
                RestorePointRequest::Create(_) => "logstead_create_restore_point",
                RestorePointRequest::Drop(_) => "logstead_drop_restore_point",
            })?;
        }
        self.superuser_only("make or drop restore points")?;
        if self.instance.store.is_replica() {
            return Err(recovery_in_progress());
        }
        self.restore_points.borrow_mut().push(request);
        Ok(())
    }

    fn promote(&self, wait: bool, wait_seconds: i32) -> Result<()> {
        self.request_promotion(wait, wait_seconds)
    }

    fn listening_channels(&self) -> Vec<Arc<str>> {
        self.pending_notifies.borrow().listening()
    }
}

impl SessionContext {
    /// Where its statements put what is more than `work_mem`.
    pub(super) fn spill(&self) -> SpillAllowance<'_> {
        SpillAllowance {
            session: &self.spill,
            limit_bytes: self.settings.borrow().typed().temp_file_limit_bytes,
        }
    }
}

impl Context for SessionContext {
    fn work_mem_bytes(&self) -> usize {
        self.settings.borrow().typed().work_mem_bytes
    }

    fn hash_mem_multiplier(&self) -> f64 {
        self.settings.borrow().typed().hash_mem_multiplier
    }

    fn autoanalyzed(&self, table: Oid) -> Option<AutoanalyzeEntry> {
        let database = self.catalog.borrow().database;
        self.instance.analyzed.of(database, table)
    }

    fn session_role(&self) -> Oid {
        self.settings.borrow().typed().session_role
    }

    fn row_security(&self) -> bool {
        self.settings.borrow().typed().row_security
    }

    fn present_catalog(&self) -> Option<Arc<Catalog>> {
        let database = self.catalog.borrow().database;
        self.instance.store.current_by_oid(database)
    }

    fn catalog_of(&self, database: Oid) -> Option<Arc<Catalog>> {
        self.instance.store.current_by_oid(database)
    }

    fn terminate_sessions(&self, database: Oid) -> Result<()> {
        self.end_sessions_in(database)
    }

    fn current_role(&self) -> Oid {
        // A SECURITY DEFINER function is run as its owner.
        if self.as_role.get() != 0 {
            return self.as_role.get();
        }
        let settings = self.settings.borrow();
        let typed = settings.typed();
        match typed.role {
            0 => typed.session_role,
            role => role,
        }
    }

    fn act_as(&self, role: Oid) -> Oid {
        self.as_role.replace(role)
    }

    fn told_of(&self, relation: &Relation) -> DetailVisibility {
        let catalog = Arc::clone(&self.catalog.borrow());
        let roles = self.roles(&catalog);
        catalog
            .acl_checker(&roles)
            .told(self.current_role(), relation)
    }

    fn interrupted(&self) -> Result<()> {
        let cancel = self.signals.statement();
        cancel.check_at(|| self.clock_time())
    }

    fn plans_cursor(&self) -> bool {
        self.plans_cursor.get()
    }

    fn advisory_locks(&self) -> Vec<AdvisoryLockRow> {
        self.instance.advisory.rows()
    }

    fn activity(&self) -> Vec<Activity> {
        self.activity_rows()
    }

    fn workers_held(&self) -> Vec<WorkerRow> {
        self.worker_rows()
    }

    fn statement_statistics(&self) -> Vec<StatementRow> {
        self.statistics_rows()
    }

    fn prepared_statements(&self) -> Vec<PreparedRow> {
        let statements = self.statements.borrow();
        let named = statements.iter().filter(|(name, _)| !name.is_empty());
        let mut rows: Vec<_> = named.map(|(name, known)| known.shown(name)).collect();
        rows.sort_unstable_by(|a, b| (a.prepared_at, &a.name).cmp(&(b.prepared_at, &b.name)));
        rows
    }

    fn cursors(&self) -> Vec<CursorRow> {
        self.cursors.borrow().clone()
    }

    fn scans(&self) -> PlannerSettings {
        self.settings.borrow().typed().scans
    }

    fn routines_shown(&self, text: String) -> String {
        let catalog = self.catalog();
        match catalog.routines.is_empty() {
            true => text,
            false => catalog.routines_shown(&text, &self.search_path()),
        }
    }

    fn reads_sequences(&self) {
        // Read after the states: whatever they told was logged by then.
        let newest = CommitWait::floor(self.instance.store.sequences().newest());
        self.depends_on.borrow_mut().merge(&newest);
    }

    fn rests_on_commits_below(&self, next: Csn) {
        let newest = Csn(next.get().saturating_sub(1));
        self.depends_on
            .borrow_mut()
            .merge(&CommitWait::floor(newest));
    }

    fn ask_advisory_lock(
        &self,
        name: &str,
        args: &[Datum],
    ) -> Result<Result<Datum, AdvisoryLockRequest>> {
        let mut holdings = self.advisory.borrow_mut();
        self.advisor(&mut holdings).ask(name, args)
    }

    fn wait_for_advisory_lock(
        &self,
        wanted: AdvisoryLockRequest,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + '_>> {
        Box::pin(self.wait_for_wanted(wanted))
    }

    fn file_settings(&self) -> Result<Vec<logstead_sql_catalog::settings::FileSetting>> {
        let read = self.instance.settings.file_settings();
        read.map_err(|why| SqlError::new(SqlState::IO_ERROR, why))
    }

    fn settings(&self) -> Vec<logstead_sql_catalog::settings::SettingRow> {
        let mut rows = self.settings.borrow().rows();
        rows.retain(|row| !self.is_hidden(&row.name));
        for row in &mut rows {
            if let Some(value) = self.of_transaction(&row.name) {
                row.value = value.to_owned();
            }
        }
        rows
    }
}
