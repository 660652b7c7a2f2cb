//! What functions, planning and output see of a session.

mod traits;

use super::advisory::{AdvisoryLockFunctions, SessionLocks};
use super::cached_plan::Statements;
use super::instance::Instance;
use super::notify::PendingNotifies;
use super::random::SeededRandom;
use super::signals::Signals;
use super::transaction_modes::TransactionModes;
use crate::backend_status::BackendStatus;
use jiff::tz::TimeZone;
use logstead_engine::{CommitWait, InstanceId, Worker, Xid};
use logstead_sql_catalog::context::namespace::LookupScope;
use logstead_sql_catalog::context::{CursorRow, RoleContext};
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::role::acl::privilege as p;
use logstead_sql_catalog::settings::{self, SessionSettings};
use logstead_sql_catalog::{Catalog, SequenceSession};
use logstead_sql_exec::{Spill, SpillAllowance};
use logstead_sql_func::RestorePointRequest;
use logstead_sql_types::encoding::Encoding;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::datetime::{DateForm, DateOrder, DateStyle, IntervalStyle};
use logstead_sql_types::value::record::TupleDesc;
use logstead_sql_types::value::user::{TypeLookup, UserTypes};
use logstead_sql_types::value::{OutputStyle, SqlType};
use logstead_sql_types::{RelationId, RoleId, TypeId};
use logstead_types::{Csn, SqlState};
use std::cell::{Cell, RefCell};
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
    pub(super) authenticated: RoleId,
    pub(super) pid: i32,
    pub(super) settings: RefCell<SessionSettings>,
    pub(super) transaction_time: Cell<i64>,
    pub(super) statement_time: Cell<i64>,
    /// The catalog that the running statement was planned with.
    pub(super) catalog: RefCell<Arc<Catalog>>,
    /// How the names are looked up that the running statement qualifies.
    pub(super) lookup_scope: RefCell<LookupScope>,
    /// What nextval and setval gave to this session.
    pub(super) sequences: RefCell<SequenceSession>,
    /// What sequence calls and advisory locks of this transaction depend on (T10); inherited by the transaction.
    pub(super) depends_on: RefCell<CommitWait>,
    /// Restore points that the running statement asks for.
    pub(super) restore_points: RefCell<Vec<RestorePointRequest>>,
    /// Instances that the running statement wants to be restarted.
    pub(super) restarts_asked: RefCell<Vec<InstanceId>>,
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
    pub(super) random: Cell<Option<SeededRandom>>,
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
    /// The owner of the function that is being run, if it is run as that.
    pub(super) as_role: Cell<Option<RoleId>>,
    /// How the session is reached by others.
    pub(super) signals: Arc<Signals>,
    /// The session's part of the room for temporary files.
    spill: Spill,
}

/// The part of a search path that a role may use in a catalog.
struct KnownPath {
    of: Rc<[String]>,
    version: u64,
    role: RoleId,
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
            lookup_scope: RefCell::default(),
            sequences: RefCell::default(),
            depends_on: RefCell::default(),
            restore_points: RefCell::default(),
            restarts_asked: RefCell::default(),
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
            as_role: Cell::new(None),
            signals,
        };
        context.refresh_style();
        context
    }

    /// The users' types that the running statement sees.
    pub(super) fn types(&self) -> Arc<UserTypes> {
        Arc::clone(&self.catalog.borrow().types)
    }

    /// The type of the values of what is declared so, as the running statement sees it.
    pub(super) fn base_type(&self, ty: SqlType) -> SqlType {
        self.catalog.borrow().types.base_type(ty)
    }

    /// The fields of a record type, as the running statement sees it; `None` if nothing is known of them.
    pub(super) fn tuple_desc_of(&self, ty: SqlType) -> Option<TupleDesc> {
        self.catalog.borrow().types.tuple_desc_of(ty)
    }

    /// Element type of an array type, as the running statement sees it; `None` for other types.
    pub(super) fn element_of(&self, array: TypeId) -> Option<TypeId> {
        self.catalog.borrow().types.element_of(array)
    }

    /// Runs something that looks up or prints types, as the running statement sees them.
    pub(super) fn with_types<T>(&self, run: impl FnOnce(TypeLookup<'_>) -> T) -> T {
        let catalog = Arc::clone(&self.catalog.borrow());
        let search_path = self.path_in(&catalog);
        run(self.lookup(&catalog, &search_path).types())
    }

    /// What names are looked up with in a catalog, where these schemas are searched.
    pub(super) fn lookup<'c>(
        &'c self,
        catalog: &'c Catalog,
        search_path: &'c [String],
    ) -> NameLookup<'c> {
        NameLookup {
            catalog,
            search_path,
            session: self,
        }
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
            types_by_number: false,
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

    /// The wall clock, in microseconds since 2000-01-01 UTC.
    pub(super) fn wall_clock(&self) -> i64 {
        self.instance.env.clock.now_micros_since_2000()
    }

    /// Where its statements put what is more than `work_mem`.
    pub(super) fn spill(&self) -> SpillAllowance<'_> {
        SpillAllowance {
            session: &self.spill,
            limit_bytes: self.settings.borrow().typed().temp_file_limit_bytes,
        }
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
    fn may_write_sequence(
        &self,
        function: &str,
        catalog: &Catalog,
        sequence: RelationId,
    ) -> Result<()> {
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
