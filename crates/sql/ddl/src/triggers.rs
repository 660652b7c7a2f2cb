//! CREATE, ALTER and DROP TRIGGER, COMMENT ON TRIGGER, and ALTER TABLE ... ENABLE and DISABLE TRIGGER.
//!
//! No plan that writes is under way that was made with other triggers: making one, ENABLE and DISABLE keep writers out
//! (SHARE ROW EXCLUSIVE), the others everybody (ACCESS EXCLUSIVE), as in PostgreSQL. Plans that only read have no
//! triggers. The function's row is held, so that it stays.

use super::expressions::with_planner;
use super::object_address::{name_and_relation, unexpected_object};
use super::policies::range_of;
use super::{DdlContext, routine_lookup, routines, view};
use crate::pg_catalog::calls::{self, QualifiedName};
use crate::relations::no_relation;
use crate::relations::{system_relation, wrong_kind};
use logstead_engine::TableLock;
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::privileges::{denied, denied_relation};
use logstead_sql_catalog::role::acl::privilege;
use logstead_sql_catalog::routine::Routine;
use logstead_sql_catalog::stored;
use logstead_sql_catalog::stored::RELATIONS;
use logstead_sql_catalog::trigger::{
    BuiltInTrigger, Trigger, TriggerConstraint, TriggerEnabled, TriggerEvent, TriggerTime,
};
use logstead_sql_catalog::{Relation, RelationKind, View, ViewObject, ViewSource, source_name};
use logstead_sql_parse::Timing;
use logstead_sql_parse::ast::{
    AlterTableCmd, AnyName, CreateTrigStmt, DropStmt, FiringMode, Name, ObjectType, ObjectWithArgs,
    RangeVar, RenameStmt, TriggerTarget, TriggerTransition,
};
use logstead_sql_plan::bind;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Oid, oid};
use logstead_sql_types::{FunctionId, RelationId};
use logstead_types::SqlState;
use std::sync::Arc;

fn no_trigger(name: &str, table: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("trigger \"{name}\" for table \"{table}\" does not exist"),
    )
}

fn taken(name: &str, relation: &str) -> SqlError {
    SqlError::new(
        SqlState::DUPLICATE_OBJECT,
        format!("trigger \"{name}\" for relation \"{relation}\" already exists"),
    )
}

/// 42P17.
fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::new(b"42P17"), message)
}

/// The table or view that a statement names; none if it is not there and need not be.
fn relation_of(
    name: &impl QualifiedName,
    missing_ok: bool,
    cx: &mut DdlContext<'_>,
) -> Result<Option<Arc<Relation>>> {
    let Some((oid, plain)) = cx.find_relation(name, missing_ok)? else {
        return Ok(None);
    };
    let catalog = cx.catalog()?;
    let Some(relation) = catalog.relations.get(&oid) else {
        return Err(wrong_kind(&plain, "a table or view"));
    };
    match relation.kind {
        RelationKind::Table | RelationKind::View(_) => Ok(Some(Arc::clone(relation))),
        RelationKind::Virtual(_) => Err(system_relation(&plain)),
        RelationKind::Sequence(_) => {
            Err(cannot_have(&plain).detail("This operation is not supported for sequences."))
        }
        RelationKind::Materialized(..) => {
            Err(cannot_have(&plain)
                .detail("This operation is not supported for materialized views."))
        }
    }
}

/// The same, locked, if the current role may do what is asked of it.
async fn locked(
    name: &impl QualifiedName,
    lock: TableLock,
    may: impl Fn(&Relation, &mut DdlContext<'_>) -> Result<()>,
    cx: &mut DdlContext<'_>,
) -> Result<Arc<Relation>> {
    let relation = relation_of(name, false, cx)?.ok_or_else(|| no_relation(name))?;
    may(&relation, cx)?;
    let Some((relation, _)) = cx.lock_table(relation.oid, lock).await? else {
        return Err(no_relation(name));
    };
    // It may have become another's during the wait.
    may(&relation, cx)?;
    Ok(relation)
}

/// Runs CREATE TRIGGER.
pub(super) async fn create(stmt: &CreateTrigStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let lock = TableLock::ShareRowExclusive;
    let relation = locked(&stmt.relation, lock, may_create, cx).await?;
    create_on(stmt, &relation, cx).await
}

/// Runs ALTER TRIGGER ... RENAME TO.
pub(super) async fn rename(stmt: &RenameStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let (name, of) = name_and_relation(&stmt.object)?;
    let may = |relation: &Relation, cx: &mut DdlContext<'_>| match relation.view() {
        None => must_own(relation, "table", cx),
        Some(_) => must_own(relation, "view", cx),
    };
    let relation = locked(of, TableLock::AccessExclusive, may, cx).await?;
    let known = trigger_of(name, &relation, cx)?;
    let new = stmt.newname.to_string();
    if cx.catalog()?.triggers.named(relation.oid, &new).is_some() {
        return Err(taken(&new, &relation.name));
    }
    let mut changed = Trigger::clone(&known);
    changed.name = new;
    put(changed, &relation, cx).await
}

/// Runs DROP TRIGGER.
pub(super) async fn drop(stmt: &DropStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let [object] = stmt.objects.as_slice() else {
        return Err(unexpected_object());
    };
    let (name, of) = name_and_relation(object)?;
    if cx.skips_schema(of, stmt.missing_ok)? {
        return Ok(());
    }
    let Some(relation) = relation_of(of, stmt.missing_ok, cx)? else {
        return Ok(());
    };
    // There is nothing to own of what is not there.
    let absent = |relation: &Relation, cx: &mut DdlContext<'_>| {
        let error = match trigger_of(name, relation, cx) {
            Ok(_) => return Ok(false),
            Err(error) => error,
        };
        if !stmt.missing_ok {
            return Err(error);
        }
        skipped(name, relation, cx);
        Ok(true)
    };
    if absent(&relation, cx)? {
        return Ok(());
    }
    must_own(&relation, "relation", cx)?;
    let found = cx
        .lock_table(relation.oid, TableLock::AccessExclusive)
        .await?;
    let (relation, _) = found.ok_or_else(|| no_relation(of))?;
    must_own(&relation, "relation", cx)?;
    if absent(&relation, cx)? {
        return Ok(());
    }
    let known = trigger_of(name, &relation, cx)?;
    cx.refuse_pending(relation.oid, "DROP TRIGGER")?;
    delete(relation.oid, known.oid, cx).await
}

/// The trigger that COMMENT is on.
pub(super) fn commented(name: &Name, of: &AnyName, cx: &mut DdlContext<'_>) -> Result<Oid> {
    let relation = relation_of(of, false, cx)?.ok_or_else(|| no_relation(of))?;
    let trigger = trigger_of(name, &relation, cx)?;
    must_own(&relation, "relation", cx)?;
    Ok(trigger.oid)
}

fn trigger_of(name: &str, relation: &Relation, cx: &mut DdlContext<'_>) -> Result<Arc<Trigger>> {
    let known = cx.catalog()?.triggers.named(relation.oid, name).cloned();
    known.ok_or_else(|| no_trigger(name, &relation.name))
}

fn skipped(name: &str, relation: &Relation, cx: &mut DdlContext<'_>) {
    let table = &relation.name;
    let message = format!("trigger \"{name}\" for relation \"{table}\" does not exist, skipping");
    cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
}

/// The number of the trigger function of PostgreSQL's own that a name may mean.
fn built_in(name: &AnyName) -> Option<FunctionId> {
    let (schema, plain) = calls::name_parts(name).ok()?;
    let meant = schema.is_none_or(|schema| schema == "pg_catalog");
    BuiltInTrigger::named(&plain).filter(|_| meant)
}

fn cannot_have(name: &str) -> SqlError {
    SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("relation \"{name}\" cannot have triggers"),
    )
}

/// 42501: TRIGGER is needed to make one.
fn may_create(relation: &Relation, cx: &mut DdlContext<'_>) -> Result<()> {
    let has = cx.with_acl_checker(|acl_checker, role| {
        acl_checker
            .on_relation(role, relation, privilege::TRIGGER, 0)
            .0
            != 0
    })?;
    match has {
        true => Ok(()),
        false => Err(denied_relation(relation)),
    }
}

/// 42501: the relation is needed to do anything else, as a thing called `word`.
fn must_own(relation: &Relation, word: &str, cx: &mut DdlContext<'_>) -> Result<()> {
    match cx.with_acl_checker(|acl_checker, role| acl_checker.owns(role, relation.oid))? {
        true => Ok(()),
        false => Err(denied(format!("must be owner of {word} {}", relation.name))),
    }
}

/// What a kind of relation cannot have.
fn refuse_kind(new: &CreateTrigStmt, relation: &Relation) -> Result<()> {
    let wrong = |what: &str, detail: &str| {
        let message = format!("\"{}\" is {what}", relation.name);
        Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).detail(detail))
    };
    let truncates = new.events.contains(&TriggerEvent::Truncate);
    match (&relation.kind, new.timing) {
        (RelationKind::View(_), TriggerTime::InsteadOf) => {}
        (RelationKind::View(_), _) if new.row => {
            return wrong(
                "a view",
                "Views cannot have row-level BEFORE or AFTER triggers.",
            );
        }
        (RelationKind::View(_), _) if truncates => {
            return wrong("a view", "Views cannot have TRUNCATE triggers.");
        }
        (RelationKind::View(_), _) => {}
        (_, TriggerTime::InsteadOf) => {
            return wrong("a table", "Tables cannot have INSTEAD OF triggers.");
        }
        _ => {}
    }
    let refused = |what: &str| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what));
    if truncates && new.row {
        return refused("TRUNCATE FOR EACH ROW triggers are not supported");
    }
    if new.timing == TriggerTime::InsteadOf {
        if !new.row {
            return refused("INSTEAD OF triggers must be FOR EACH ROW");
        }
        if new.when_clause.is_some() {
            return refused("INSTEAD OF triggers cannot have WHEN conditions");
        }
        if !new.columns.is_empty() {
            return refused("INSTEAD OF triggers cannot have column lists");
        }
    }
    Ok(())
}

/// A function that a user has made, found to be one for triggers, and held.
async fn users_function(
    function: &Arc<Routine>,
    relation: &Relation,
    cx: &mut DdlContext<'_>,
) -> Result<FunctionId> {
    cx.must_call(function.oid)?;
    if function.is_temporary() && !relation.is_temporary() {
        let what = "a trigger of a permanent table that calls a temporary function";
        return Err(SqlError::unsupported(what));
    }
    if function.result != oid::TRIGGER {
        return Err(invalid(format!(
            "function {} must return type trigger",
            function.name
        )));
    }
    if routines::lock_routine(function.oid, cx).await?.is_none() {
        return Err(SqlError::internal("tuple concurrently updated"));
    }
    Ok(function.oid)
}

async fn create_on(
    new: &CreateTrigStmt,
    relation: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    refuse_kind(new, relation)?;
    let mut columns: Vec<usize> = Vec::new();
    for column in &new.columns {
        let all = relation.columns.iter();
        let at = all.clone().position(|c| !c.dropped && *c.name == **column);
        let at = at.ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "column \"{column}\" of relation \"{}\" does not exist",
                    relation.name
                ),
            )
        })?;
        if columns.contains(&at) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{column}\" specified more than once"),
            ));
        }
        columns.push(at);
    }
    let when = condition(new, relation, cx).await?;
    let target = ObjectWithArgs {
        objname: new.funcname.clone(),
        objargs: Some(Vec::new()),
        objfuncargs: Vec::new(),
        direct_args: None,
        operator: None,
    };
    let found = routine_lookup::named(ObjectType::Function, &target, cx);
    let function = match (found, built_in(&new.funcname)) {
        (Err(error), Some(function)) if error.code() == SqlState::UNDEFINED_FUNCTION => function,
        (found, _) => users_function(&found?, relation, cx).await?,
    };
    let name = new.trigname.to_string();
    let known = cx.catalog()?.triggers.named(relation.oid, &name).cloned();
    if known.is_some() && !new.replace {
        return Err(taken(&name, &relation.name));
    }
    let [old_table, new_table] = transition_names(new, relation)?;
    let timing = match (new.deferrable, new.initdeferred) {
        (_, true) => Timing::Deferred,
        (true, false) => Timing::Deferrable,
        (false, false) => Timing::Immediate,
    };
    let constraint = match new.isconstraint {
        true => Some(TriggerConstraint {
            oid: cx.new_oid()?,
            name: name.clone(),
            timing,
            from: match &new.constrrel {
                Some(from) => Some(referenced(from, cx)?),
                None => None,
            },
        }),
        false => None,
    };
    if known
        .as_ref()
        .is_some_and(|known| known.constraint.is_some())
    {
        return Err(SqlError::new(
            SqlState::DUPLICATE_OBJECT,
            format!(
                "trigger \"{name}\" for relation \"{}\" is a constraint trigger",
                relation.name
            ),
        ));
    }
    if constraint.is_some() && relation.constraints.iter().any(|c| c.name == name) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_OBJECT,
            format!(
                "constraint \"{name}\" for relation \"{}\" already exists",
                relation.name
            ),
        ));
    }
    let bits = new.events.iter().fold(0, |bits, event| bits | event.bit());
    let trigger = Trigger {
        oid: match &known {
            Some(known) => known.oid,
            None => cx.new_oid()?,
        },
        name,
        table: relation.oid,
        function,
        time: new.timing,
        row: new.row,
        events: bits,
        columns,
        when,
        args: new.args.iter().map(ToString::to_string).collect(),
        enabled: TriggerEnabled::Origin,
        constraint,
        old_table,
        new_table,
    };
    if known.is_some() {
        return put(trigger, relation, cx).await;
    }
    if !relation.is_temporary() {
        let row = stored::triggers::encode(cx.catalog()?.database, &trigger);
        if !cx.insert_row(RELATIONS, &row).await? {
            return Err(taken(&trigger.name, &relation.name));
        }
    }
    cx.state.push(CatalogChange::PutTrigger(Arc::new(trigger)));
    Ok(())
}

/// The names of REFERENCING, of the old rows and the new ones.
fn transition_names(new: &CreateTrigStmt, relation: &Relation) -> Result<[Option<String>; 2]> {
    let refused = |what: &str| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what));
    let mut names: [Option<String>; 2] = [None, None];
    for TriggerTransition {
        is_new,
        is_table,
        name,
    } in &new.transition_rels
    {
        if !is_table {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "ROW variable naming in the REFERENCING clause is not supported",
            )
            .hint("Use OLD TABLE or NEW TABLE for naming transition tables."));
        }
        if relation.view().is_some() {
            let message = format!("\"{}\" is a view", relation.name);
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                .detail("Triggers on views cannot have transition tables."));
        }
        if new.timing != TriggerTime::After {
            return Err(invalid(
                "transition table name can only be specified for an AFTER trigger",
            ));
        }
        if new.events.contains(&TriggerEvent::Truncate) {
            return refused("TRUNCATE triggers with transition tables are not supported");
        }
        if new.events.len() > 1 {
            return refused(
                "transition tables cannot be specified for triggers with more than one event",
            );
        }
        if !new.columns.is_empty() {
            return refused("transition tables cannot be specified for triggers with column lists");
        }
        let (word, needs) = match is_new {
            true => ("NEW", [TriggerEvent::Insert, TriggerEvent::Update]),
            false => ("OLD", [TriggerEvent::Delete, TriggerEvent::Update]),
        };
        if !needs.iter().any(|event| new.events.contains(event)) {
            let [first, second] = needs.map(TriggerEvent::word);
            let message = format!(
                "{word} TABLE can only be specified for {} {first} or {second} trigger",
                if *is_new { "an" } else { "a" }
            );
            return Err(invalid(message));
        }
        let place = &mut names[usize::from(*is_new)];
        if place.replace(name.to_string()).is_some() {
            return Err(invalid(format!(
                "{word} TABLE cannot be specified multiple times"
            )));
        }
    }
    match &names {
        [Some(old), Some(new)] if old == new => Err(invalid(
            "OLD TABLE name and NEW TABLE name cannot be the same",
        )),
        _ => Ok(names),
    }
}

/// The table of FROM.
fn referenced(name: &RangeVar, cx: &mut DdlContext<'_>) -> Result<RelationId> {
    let (oid, _) = cx.named_relation(name)?;
    match cx.catalog()?.relations.contains_key(&oid) {
        true => Ok(oid),
        false => Err(no_relation(name)),
    }
}

/// WHEN as it is kept.
async fn condition(
    new: &CreateTrigStmt,
    relation: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<Option<Arc<View>>> {
    let Some(expr) = &new.when_clause else {
        return Ok(None);
    };
    let range = range_of(new.when_range)?;
    let (bound, catalog) = loop {
        let catalog = cx.catalog()?;
        let text = cx.text;
        let bound = with_planner(cx, &catalog, |plan| {
            bind::bind_trigger(expr, text, relation, plan)
        })?;
        let bound = cx.may_define(bound)?;
        for (_, routine, _) in &bound.query.routines {
            routines::lock_routine(*routine, cx).await?;
        }
        if cx.catalog()?.version == catalog.version {
            break (bound, catalog);
        }
    };
    refuse_rows(new, relation, &bound)?;
    let live = relation.columns.iter().enumerate();
    let columns: Vec<(usize, String)> = live
        .filter(|(_, column)| !column.dropped)
        .map(|(at, column)| (at, column.name.clone()))
        .collect();
    let source = |used: Vec<usize>| ViewSource {
        object: ViewObject::Relation(relation.oid),
        schema: relation.schema_name.clone(),
        name: relation.name.clone(),
        columns: columns.clone(),
        used,
    };
    let sources = vec![source(bound.old), source(bound.new)];
    let types = logstead_sql_catalog::type_name::types_in(expr, cx.lookup(&catalog));
    let behind = format!(
        ") FROM {} AS old, {} AS new",
        source_name(0),
        source_name(1)
    );
    let (query, sources) = view::numbered_text(
        range,
        &types,
        sources,
        Some(("SELECT (", &behind)),
        &bound.query,
        cx.text,
        &catalog,
    )?;
    let view = View::new(0, query, sources, None);
    // Reads back as it was meant, before anybody relies on it.
    view.tree()?;
    Ok(Some(Arc::new(view)))
}

/// 42P17 for rows that there are not, or not yet.
fn refuse_rows(
    new: &CreateTrigStmt,
    relation: &Relation,
    bound: &bind::TriggerQuery,
) -> Result<()> {
    let (old, now) = (!bound.old.is_empty(), !bound.new.is_empty());
    if !new.row && (old || now) {
        return Err(invalid(
            "statement trigger's WHEN condition cannot reference column values",
        ));
    }
    if old && new.events.contains(&TriggerEvent::Insert) {
        return Err(invalid(
            "INSERT trigger's WHEN condition cannot reference OLD values",
        ));
    }
    if now && new.events.contains(&TriggerEvent::Delete) {
        return Err(invalid(
            "DELETE trigger's WHEN condition cannot reference NEW values",
        ));
    }
    let generated = bound.new.iter().filter_map(|at| relation.columns.get(*at));
    let mut generated = generated.filter(|column| column.generated);
    match generated.next() {
        Some(column) if new.timing == TriggerTime::Before => Err(invalid(
            "BEFORE trigger's WHEN condition cannot reference NEW generated columns",
        )
        .detail(format!("Column \"{}\" is a generated column.", column.name))),
        _ => Ok(()),
    }
}

/// Stores a trigger that has changed. The caller has its table's lock.
async fn put(trigger: Trigger, relation: &Relation, cx: &mut DdlContext<'_>) -> Result<()> {
    if !relation.is_temporary() {
        let row = stored::triggers::encode(cx.catalog()?.database, &trigger);
        let database = row.key.database;
        if !cx
            .change_row(RELATIONS, database, trigger.oid, Some(&row))
            .await?
        {
            return Err(taken(&trigger.name, &relation.name));
        }
    }
    cx.state.push(CatalogChange::PutTrigger(Arc::new(trigger)));
    Ok(())
}

/// Drops a trigger. The caller has its table's lock.
pub(super) async fn delete(table: RelationId, trigger: Oid, cx: &mut DdlContext<'_>) -> Result<()> {
    let catalog = cx.catalog()?;
    let temporary = catalog
        .relations
        .get(&table)
        .is_some_and(|r| r.is_temporary());
    if !temporary {
        cx.change_row(RELATIONS, catalog.database, trigger, None)
            .await?;
    }
    cx.state.push(CatalogChange::DropTrigger(table, trigger));
    Ok(())
}

/// Rows of the triggers of a table that goes: the change that drops the table drops them from the catalog.
pub(super) async fn delete_rows(table: RelationId, cx: &mut DdlContext<'_>) -> Result<()> {
    let catalog = cx.catalog()?;
    for trigger in catalog.triggers.of(table) {
        cx.change_row(RELATIONS, catalog.database, trigger.oid, None)
            .await?;
    }
    Ok(())
}

/// 0A000 for a column that a trigger names: its type stays.
pub(super) fn refuse_type_change(
    table: &Relation,
    position: usize,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let all = catalog.dependent_triggers(table.oid).into_iter();
    let reading = all.filter(|trigger| trigger.reads(table.oid, position));
    let Some(trigger) = reading.min_by_key(|trigger| trigger.oid) else {
        return Ok(());
    };
    let column = table.columns.get(position).map_or("?", |c| c.name.as_str());
    let label = crate::relations::table_label(&catalog, cx.search_path, table);
    Err(SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "cannot alter type of a column used in a trigger definition",
    )
    .detail(format!(
        "trigger {} on table {label} depends on column \"{column}\"",
        trigger.name
    )))
}

/// ALTER TABLE ... ENABLE and DISABLE TRIGGER; false for any other action. The caller owns the table and has its
/// lock.
pub(super) async fn alter_table(
    cmd: &AlterTableCmd,
    table: &Relation,
    cx: &mut DdlContext<'_>,
) -> Result<bool> {
    let AlterTableCmd::Trigger { target, mode } = cmd else {
        return Ok(false);
    };
    let enabled = match mode {
        FiringMode::Origin => TriggerEnabled::Origin,
        FiringMode::Always => TriggerEnabled::Always,
        FiringMode::Replica => TriggerEnabled::Replica,
        FiringMode::Disabled => TriggerEnabled::Disabled,
    };
    let catalog = cx.catalog()?;
    let own = catalog.triggers.of(table.oid).to_vec();
    // ALL would be foreign keys, too, for a superuser: those are no triggers here, and stay.
    let name = match target {
        TriggerTarget::Named(name) => Some(&**name),
        TriggerTarget::All | TriggerTarget::User => None,
    };
    let mut found = false;
    for trigger in own
        .iter()
        .filter(|t| name.is_none_or(|name| t.name == name))
    {
        found = true;
        if trigger.enabled != enabled {
            let mut changed = Trigger::clone(trigger);
            changed.enabled = enabled;
            put(changed, table, cx).await?;
        }
    }
    match name.filter(|_| !found) {
        None => Ok(true),
        Some(name) => Err(no_trigger(name, &table.name)),
    }
}
