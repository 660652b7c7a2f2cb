//! What a session is for functions, planning, running and DDL: the traits of its context, by topic.

use super::SessionContext;
use crate::as_of_snapshot::{AS_OF_POINT, as_of_too_late, is_as_of};
use crate::random::SeededRandom;
use jiff::tz::TimeZone;
use logstead_engine::{CommitWait, Txn};
use logstead_sql_catalog::context::{
    AdvisoryLockRequest, AdvisoryLockRow, AdvisoryLocking, BackendActivity, CatalogContext,
    Context, CursorRow, InstanceRow, PlannerOptions, PreparedRow, ReplyDependencies, RoleContext,
    ServerContext, SessionObjects, StatementRow, WorkerRow,
};
use logstead_sql_catalog::privileges::DetailVisibility;
use logstead_sql_catalog::role::acl::privilege as p;
use logstead_sql_catalog::settings::{self, PlannerSettings};
use logstead_sql_catalog::type_name::type_by_text;
use logstead_sql_catalog::{AutoanalyzeEntry, Catalog, IndexColumn, Relation, VirtualContext};
use logstead_sql_ddl::pg_catalog::{calls, object_names};
use logstead_sql_func::{
    AdvisoryLockScope, CatalogFunction, CatalogFunctions, CatalogSet, FunctionContext,
    RandomNumbers, RestorePointRequest, Sequences, ServerFunction, ServerFunctions, SessionActions,
    SessionInfo, Snapshots,
};
use logstead_sql_types::error::{Result, SqlError, recovery_in_progress};
use logstead_sql_types::value::datetime::{DateForm, DateOrder};
use logstead_sql_types::value::user::TypeSpelling;
use logstead_sql_types::value::{
    Clock, DateTimeContext, Datum, ObjectNames, Oid, RegType, SettingValues,
};
use logstead_sql_types::{DatabaseOid, RelationId, RoleId, TypeId};
use logstead_types::{Csn, SqlState};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

impl Clock for SessionContext {
    fn transaction_time(&self) -> Result<i64> {
        Ok(self.transaction_time.get())
    }

    fn statement_time(&self) -> Result<i64> {
        Ok(self.statement_time.get())
    }

    fn clock_time(&self) -> Result<i64> {
        Ok(self.wall_clock())
    }
}

impl DateTimeContext for SessionContext {
    fn time_zone(&self) -> &TimeZone {
        self.time_zone.get()
    }

    fn date_order(&self) -> DateOrder {
        self.date_order.get()
    }

    fn date_form(&self) -> DateForm {
        self.date_form.get()
    }
}

impl SettingValues for SessionContext {
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
}

impl ObjectNames for SessionContext {
    fn search_path(&self) -> Vec<String> {
        // Schemas that do not exist, "$user" most of the time, are no part of the path.
        let catalog = self.catalog();
        // What is bound of a function with a path of its own has names looked up in that.
        let own = self.lookup_scope.borrow().search_path.clone();
        let path = own.unwrap_or_else(|| self.path_in(&catalog));
        { path.iter() }
            .filter(|schema| catalog.schema(schema).is_some())
            .cloned()
            .collect()
    }

    fn temporary_schema(&self) -> Option<String> {
        let catalog = self.catalog.borrow();
        catalog.temp.as_ref().map(|schema| schema.name.clone())
    }

    fn relation_by_name(&self, name: &str) -> Result<Option<RelationId>> {
        let path = self.search_path();
        calls::relation_by_text(name, self.lookup(&self.catalog(), &path))
    }

    fn relation_name(&self, relation: RelationId) -> Option<String> {
        let path = self.search_path();
        logstead_sql_catalog::text::relation_text(&self.catalog(), relation, &path)
    }

    fn type_by_text(&self, text: &str) -> Result<TypeId> {
        let path = self.search_path();
        type_by_text(text, self.lookup(&self.catalog(), &path))
    }

    fn type_text(&self, ty: TypeId, numbered: bool) -> Option<String> {
        self.with_types(|types| TypeSpelling::of(types, numbered).type_text(ty))
    }

    fn object_by_text(&self, ty: RegType, text: &str) -> Result<Oid> {
        let cx = VirtualContext {
            catalog: &self.catalog(),
            session: self,
        };
        object_names::object_by_text(ty, text, &cx)
    }

    fn object_text(&self, ty: RegType, object: Oid) -> Option<String> {
        let cx = VirtualContext {
            catalog: &self.catalog(),
            session: self,
        };
        object_names::object_text(ty, object, &cx)
    }
}

impl RandomNumbers for SessionContext {
    fn random_u64(&self) -> u64 {
        self.instance.env.random.u64()
    }

    fn session_u64(&self) -> u64 {
        let Some(mut random) = self.random.get() else {
            return self.random_u64();
        };
        let number = random.next();
        self.random.set(Some(random));
        number
    }

    fn seed(&self, seed: u64) {
        self.random.set(Some(SeededRandom::new(seed)));
    }
}

impl SessionInfo for SessionContext {
    fn database(&self) -> &str {
        &self.database
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

    fn listening_channels(&self) -> Vec<Arc<str>> {
        self.pending_notifies.borrow().listening()
    }
}

impl Sequences for SessionContext {
    fn nextval(&self, sequence: RelationId) -> Result<i64> {
        let catalog = self.catalog();
        self.may_use_sequence(&catalog, sequence, p::USAGE | p::UPDATE)?;
        self.own_number(sequence)
    }

    fn own_number(&self, sequence: RelationId) -> Result<i64> {
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

    fn currval(&self, sequence: RelationId) -> Result<i64> {
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

    fn setval(&self, sequence: RelationId, value: i64, is_called: bool) -> Result<i64> {
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
}

impl SessionActions for SessionContext {
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

    fn move_partition(&self, partition: i32, instance: Option<i32>) -> Result<bool> {
        self.superuser_only("move partitions")?;
        self.move_partition_to(partition, instance)
    }

    fn restart_instance(&self, instance: i32) -> Result<()> {
        self.superuser_only("restart instances")?;
        self.ask_for_restart(instance)
    }

    fn promote(&self, wait: bool, wait_seconds: i32) -> Result<()> {
        self.request_promotion(wait, wait_seconds)
    }
}

impl Snapshots for SessionContext {
    fn current_snapshot(&self, txn: &mut Txn) -> Result<Datum> {
        self.snapshot_of(txn)
    }

    fn export_snapshot(&self, txn: &mut Txn) -> Result<Datum> {
        self.export_snapshot_of(txn)
    }
}

impl CatalogFunctions for SessionContext {
    fn catalog_call(&self, function: CatalogFunction, args: &[Datum]) -> Result<Datum> {
        let cx = VirtualContext {
            catalog: &self.catalog(),
            session: self,
        };
        calls::catalog_call(function, args, &cx)
    }

    fn catalog_rows(&self, function: CatalogSet, args: &[Datum]) -> Result<Vec<Vec<Datum>>> {
        let cx = VirtualContext {
            catalog: &self.catalog(),
            session: self,
        };
        calls::catalog_rows(function, args, &cx)
    }
}

impl ServerFunctions for SessionContext {
    fn server_call(&self, function: ServerFunction, args: &[Datum]) -> Result<Datum> {
        match (function, args) {
            (ServerFunction::Advisory(function), _) => {
                let mut holdings = self.advisory.borrow_mut();
                self.advisor(&mut holdings).call(function, args)
            }
            (ServerFunction::Notify, [channel, payload]) => {
                if self.instance.store.is_replica() {
                    return Err(SqlError::during_recovery("NOTIFY"));
                }
                let text = |value: &Datum| match value {
                    Datum::Text(text) => Arc::clone(text),
                    _ => Arc::from(""),
                };
                let mut pending_notifies = self.pending_notifies.borrow_mut();
                pending_notifies.notify(&text(channel), &text(payload), self.level.get())?;
                Ok(Datum::text(""))
            }
            (ServerFunction::VersionXmin, [Datum::Int8(token)]) => self.version_xmin(*token),
            (ServerFunction::VersionXmax, [Datum::Int8(token)]) => self.version_xmax(*token),
            (ServerFunction::VersionCmin, [Datum::Int8(token)]) => {
                Ok(SessionContext::version_cmin(*token))
            }
            (ServerFunction::CurrentXactId, _) => self.current_xact_id(),
            (ServerFunction::CurrentXactIdIfAssigned, _) => Ok(self.current_xact_id_if_assigned()),
            (ServerFunction::XidAge, [Datum::Oid(of)]) => Ok(self.xid_age(*of)),
            (ServerFunction::XactStatus, [Datum::Int8(of)]) => self.xact_status(*of),
            (ServerFunction::PostmasterStartTime | ServerFunction::ConfLoadTime, _) => {
                Ok(Datum::TimestampTz(self.instance.started))
            }
            (ServerFunction::ReloadConf, _) => self.reload_configuration(),
            (ServerFunction::InetClientAddr, _) => {
                Ok(SessionContext::address_of(self.live.ends().0))
            }
            (ServerFunction::InetClientPort, _) => Ok(SessionContext::port_of(self.live.ends().0)),
            (ServerFunction::InetServerAddr, _) => {
                Ok(SessionContext::address_of(self.live.ends().1))
            }
            (ServerFunction::InetServerPort, _) => Ok(SessionContext::port_of(self.live.ends().1)),
            (ServerFunction::CancelBackend, _) => self.signal_backend(false, args),
            (ServerFunction::TerminateBackend, _) => self.signal_backend(true, args),
            (ServerFunction::BlockingPids, [Datum::Int4(pid)]) => Ok(self.blocking_pids(*pid)),
            (
                ServerFunction::IsolationTestSessionIsBlocked,
                [Datum::Int4(pid), Datum::Array(interesting)],
            ) => Ok(Datum::Bool(self.is_blocked_by(*pid, interesting))),
            (ServerFunction::StatStatementsReset, _) => self.reset_statistics(args),
            (
                ServerFunction::Notify
                | ServerFunction::VersionXmin
                | ServerFunction::VersionXmax
                | ServerFunction::VersionCmin
                | ServerFunction::XidAge
                | ServerFunction::XactStatus
                | ServerFunction::BlockingPids
                | ServerFunction::IsolationTestSessionIsBlocked,
                _,
            ) => Err(SqlError::internal(format!(
                "{function:?} was given other arguments than it takes"
            ))),
        }
    }
}

impl FunctionContext for SessionContext {
    fn random(&self) -> Result<&dyn RandomNumbers> {
        Ok(self)
    }

    fn session_info(&self) -> Result<&dyn SessionInfo> {
        Ok(self)
    }

    fn sequences(&self) -> Result<&dyn Sequences> {
        Ok(self)
    }

    fn actions(&self) -> Result<&dyn SessionActions> {
        Ok(self)
    }

    fn snapshots(&self) -> Result<&dyn Snapshots> {
        Ok(self)
    }

    fn catalog_functions(&self) -> Result<&dyn CatalogFunctions> {
        Ok(self)
    }

    fn server_functions(&self) -> Result<&dyn ServerFunctions> {
        Ok(self)
    }
}

impl RoleContext for SessionContext {
    fn session_role(&self) -> RoleId {
        self.settings.borrow().typed().session_role
    }

    fn current_role(&self) -> RoleId {
        // A SECURITY DEFINER function is run as its owner.
        if let Some(role) = self.as_role.get() {
            return role;
        }
        let settings = self.settings.borrow();
        let typed = settings.typed();
        typed.role.unwrap_or(typed.session_role)
    }

    fn act_as(&self, role: Option<RoleId>) -> Option<RoleId> {
        self.as_role.replace(role)
    }

    fn detail_visibility(&self, relation: &Relation) -> DetailVisibility {
        let catalog = Arc::clone(&self.catalog.borrow());
        let roles = self.roles(&catalog);
        catalog
            .acl_checker(&roles)
            .detail_visibility(self.current_role(), relation)
    }

    fn row_security(&self) -> bool {
        self.settings.borrow().typed().row_security
    }
}

impl CatalogContext for SessionContext {
    fn present_catalog(&self) -> Option<Arc<Catalog>> {
        let database = self.catalog.borrow().database;
        self.instance.store.current_by_oid(database)
    }

    fn catalog_of(&self, database: DatabaseOid) -> Option<Arc<Catalog>> {
        self.instance.store.current_by_oid(database)
    }

    fn routines_shown(&self, text: String) -> String {
        let catalog = self.catalog();
        match catalog.routines.is_empty() {
            true => text,
            false => catalog.routines_shown(&text, &self.search_path()),
        }
    }

    fn index_column_shown(&self, column: &IndexColumn, table: &Relation) -> String {
        self.routines_shown(self.with_types(|types| column.spelled(table, true, types)))
    }
}

impl PlannerOptions for SessionContext {
    fn scans(&self) -> PlannerSettings {
        self.settings.borrow().typed().scans
    }

    fn work_mem_bytes(&self) -> usize {
        self.settings.borrow().typed().work_mem_bytes
    }

    fn hash_mem_multiplier(&self) -> f64 {
        self.settings.borrow().typed().hash_mem_multiplier
    }

    fn plans_cursor(&self) -> bool {
        self.plans_cursor.get()
    }

    fn interrupted(&self) -> Result<()> {
        let cancel = self.signals.statement();
        cancel.check_at(|| self.wall_clock())
    }
}

impl ReplyDependencies for SessionContext {
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
}

impl AdvisoryLocking for SessionContext {
    fn ask_advisory_lock(
        &self,
        scope: AdvisoryLockScope,
        args: &[Datum],
    ) -> Result<Result<Datum, AdvisoryLockRequest>> {
        let mut holdings = self.advisory.borrow_mut();
        self.advisor(&mut holdings).ask(scope, args)
    }

    fn wait_for_advisory_lock(
        &self,
        wanted: AdvisoryLockRequest,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + '_>> {
        Box::pin(self.wait_for_wanted(wanted))
    }
}

impl SessionObjects for SessionContext {
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
}

impl ServerContext for SessionContext {
    fn autoanalyzed(&self, table: RelationId) -> Option<AutoanalyzeEntry> {
        let database = self.catalog.borrow().database;
        self.instance.analyzed.of(database, table)
    }

    fn terminate_sessions(&self, database: DatabaseOid) -> Result<()> {
        self.end_sessions_in(database)
    }

    fn file_settings(&self) -> Result<Vec<logstead_sql_catalog::settings::FileSetting>> {
        let read = self.instance.settings.file_settings();
        read.map_err(|why| SqlError::new(SqlState::IO_ERROR, why))
    }

    fn advisory_locks(&self) -> Vec<AdvisoryLockRow> {
        self.instance.advisory.rows()
    }

    fn activity(&self) -> Vec<BackendActivity> {
        self.activity_rows()
    }

    fn workers_held(&self) -> Vec<WorkerRow> {
        self.worker_rows()
    }

    fn instances(&self) -> Vec<InstanceRow> {
        self.instance.instance_rows()
    }

    fn statement_statistics(&self) -> Vec<StatementRow> {
        self.statistics_rows()
    }
}

impl Context for SessionContext {
    fn reply_dependencies(&self) -> Result<&dyn ReplyDependencies> {
        Ok(self)
    }

    fn advisory_locking(&self) -> Result<&dyn AdvisoryLocking> {
        Ok(self)
    }

    fn session_objects(&self) -> Result<&dyn SessionObjects> {
        Ok(self)
    }

    fn server(&self) -> Result<&dyn ServerContext> {
        Ok(self)
    }
}
