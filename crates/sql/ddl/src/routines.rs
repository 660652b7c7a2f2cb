//! CREATE, ALTER and DROP of functions and procedures.
//!
//! A function has no table to lock: whoever changes it writes its row again and so waits for all others that do. Plans
//! know the catalog that they were made with, so one that called it is planned anew.

use super::DdlContext;
use super::expressions::with_planner;
use super::object_address::with_args;
use super::routine_arguments::{arguments, language_of, result_of};
use super::routine_lookup::{must_own, must_own_as, named, other_kind};
use super::routine_options::properties;
use crate::missing_object::no_schema;
use crate::routine_types::{invalid, is_polymorphic};
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::role::acl::AclKind;
use logstead_sql_catalog::routine::{
    DEFAULT_COST, DEFAULT_ROWS, Language, Parallel, Routine, RoutineBody, named_in,
};
use logstead_sql_catalog::stored;
use logstead_sql_catalog::stored::RELATIONS;
use logstead_sql_catalog::temporary::is_temporary_schema;
use logstead_sql_catalog::{Catalog, Relation};
use logstead_sql_func::Volatility;
use logstead_sql_parse::ast::{
    AlterFunctionStmt, AlterObjectSchemaStmt, CreateFunctionStmt, ObjectType, ObjectWithArgs,
    RenameStmt,
};
use logstead_sql_plan::bind;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::of_users;
use logstead_sql_types::value::{oid, user};
use logstead_sql_types::{FunctionId, TypeId};
use logstead_types::SqlState;
use std::collections::BTreeSet;
use std::sync::Arc;

/// 42P13 for a result whose type no argument tells.
pub(super) fn check_polymorphic(
    result: TypeId,
    inputs: &[TypeId],
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let Some(family) = is_polymorphic(result) else {
        return Ok(());
    };
    // A range's type does not follow from that of its elements: there may be several of them.
    let ranges = [oid::ANYRANGE, oid::ANYMULTIRANGE];
    let told = match ranges.contains(&result) {
        true => inputs.iter().any(|ty| ranges.contains(ty)),
        false => inputs.iter().any(|ty| is_polymorphic(*ty) == Some(family)),
    };
    if told {
        return Ok(());
    }
    let of = match family {
        false if ranges.contains(&result) => "anyrange or anymultirange",
        false => "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange",
        true => {
            "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or anycompatiblemultirange"
        }
    };
    Err(invalid("cannot determine result data type").detail(format!(
        "A result of type {} requires at least one input of type {of}.",
        cx.format_type_bare(result)?
    )))
}

/// Runs CREATE FUNCTION and CREATE PROCEDURE.
pub(super) async fn create(new: &CreateFunctionStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let (schema, name) = cx.new_name(&new.funcname)?;
    match is_temporary_schema(&schema.name) {
        true => cx.must_create_temporary()?,
        false => cx.must_create_in(schema.oid)?,
    }
    let properties = properties(&new.options, new.is_procedure, cx)?;
    let language = match (&properties.language, &new.sql_body) {
        (None, Some(_)) => Language::Sql,
        (said, _) => language_of(said.as_deref(), cx)?,
    };
    let args = arguments(new, cx)?;
    let (result, set) = result_of(new, &args, cx)?;
    let inputs: Vec<TypeId> = args
        .iter()
        .filter(|arg| arg.mode.is_input())
        .map(|arg| arg.ty)
        .collect();
    for output in args.iter().filter(|arg| arg.mode.is_output()) {
        check_polymorphic(output.ty, &inputs, cx)?;
    }
    check_polymorphic(result, &inputs, cx)?;
    let used = args.iter().map(|arg| arg.ty).chain([result]);
    cx.must_use_types(used.filter_map(of_users).collect::<Vec<_>>())?;
    let body = match (&properties.text, &new.sql_body) {
        (Some(_), Some(_)) => return Err(invalid("duplicate function body specified")),
        (Some(texts), None) => match texts.as_slice() {
            [text] => RoutineBody::Text(text.clone()),
            _ => {
                return Err(invalid(format!(
                    "only one AS item needed for language \"{}\"",
                    language.name()
                )));
            }
        },
        (None, Some(_)) if language != Language::Sql => {
            return Err(invalid(
                "inline SQL function body only valid for language SQL",
            ));
        }
        (None, Some(_)) => {
            return Err(
                SqlError::unsupported("a function body of RETURN or BEGIN ATOMIC")
                    .hint("Write the body as a string: AS $$ SELECT ... $$."),
            );
        }
        (None, None) => return Err(invalid("no function body specified")),
    };
    let mut routine = Routine {
        oid: FunctionId::new(0),
        name,
        schema: schema.oid,
        schema_name: schema.name.clone(),
        procedure: new.is_procedure,
        language,
        args,
        result,
        set,
        volatility: Volatility::Volatile,
        strict: false,
        leakproof: false,
        definer: false,
        parallel: Parallel::Unsafe,
        cost: DEFAULT_COST,
        rows: if set { DEFAULT_ROWS } else { 0.0 },
        config: Vec::new(),
        body,
        aggregate: None,
    };
    properties.apply(&mut routine, cx)?;
    refuse_temporary_definer(&routine)?;
    let catalog = cx.catalog()?;
    let known = catalog.routine_exactly(&schema.name, &routine.name, &routine.input_types());
    if let Some(known) = known {
        let known = Arc::clone(known);
        return replace(new, &known, routine, cx).await;
    }
    routine.oid = FunctionId::new(cx.new_oid()?);
    check(&routine, cx)?;
    insert(routine, cx).await
}

/// Adds a function whose name and types nobody has.
pub(super) async fn insert(routine: Routine, cx: &mut DdlContext<'_>) -> Result<()> {
    if routine.is_temporary() {
        lock_types_of_routine(&routine, cx).await?;
        cx.state.push(CatalogChange::PutRoutine(Arc::new(routine)));
        return Ok(());
    }
    cx.lock_schema_of(routine.schema, &routine.schema_name)
        .await?;
    lock_types_of_routine(&routine, cx).await?;
    let row = stored::routines::encode(cx.catalog()?.database, &routine);
    if !cx.insert_row(RELATIONS, &row).await? {
        return Err(exists(&routine));
    }
    let (oid, schema) = (routine.oid, routine.schema);
    cx.state.push(CatalogChange::PutRoutine(Arc::new(routine)));
    cx.own_new(oid, schema, AclKind::Function).await
}

/// What is in a session's own schema has no owner, and what is not there cannot be in it.
fn refuse_temporary_definer(routine: &Routine) -> Result<()> {
    match routine.definer && routine.is_temporary() {
        true => Err(SqlError::unsupported(
            "a temporary function with SECURITY DEFINER",
        )),
        false => Ok(()),
    }
}

/// 0A000 for moving a function from or to a session's own schema.
fn refuse_moving_temporary(from: &str, to: &str) -> Result<()> {
    match is_temporary_schema(from) || is_temporary_schema(to) {
        true => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot move objects into or out of temporary schemas",
        )),
        false => Ok(()),
    }
}

pub(super) fn exists(routine: &Routine) -> SqlError {
    SqlError::new(
        SqlState::DUPLICATE_FUNCTION,
        format!(
            "function \"{}\" already exists with same argument types",
            routine.name
        ),
    )
}

/// 42P13 for a definition whose body is wrong; asked of nobody who has said so (`check_function_bodies`).
fn check(routine: &Routine, cx: &mut DdlContext<'_>) -> Result<()> {
    // A body may name the function itself.
    let mut catalog = Catalog::clone(&*cx.catalog()?);
    CatalogChange::PutRoutine(Arc::new(routine.clone())).apply(&mut catalog);
    let catalog = Arc::new(catalog);
    let bodies = cx.session.setting("check_function_bodies");
    let bodies = bodies.as_deref() != Some("off");
    let text = cx.text;
    let checked = with_planner(cx, &catalog, |planner| {
        bind::check_routine(routine, bodies, planner)
    });
    checked.map_err(|mut error| {
        // A body that stands in the statement as it is has a place there.
        let fields = error.fields_mut();
        let inner = fields.inner_query.as_ref();
        let place = inner.and_then(|(position, body)| {
            let before = text.get(..text.find(body.as_str())?)?;
            Some(before.chars().count() + position)
        });
        if place.is_some() {
            (fields.position, fields.inner_query) = (place, None);
        }
        error
    })
}

pub(super) async fn lock_types_of_routine(
    routine: &Routine,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let mut used: BTreeSet<TypeId> = routine.types().filter_map(of_users).collect();
    let catalog = cx.catalog()?;
    let temporary = |ty: &TypeId| {
        let table = user::relation_of_row_type(*ty);
        let table = table.and_then(|table| catalog.relations.get(&table));
        table.is_some_and(|table| table.is_temporary())
    };
    if !routine.is_temporary() && used.iter().any(temporary) {
        return Err(SqlError::unsupported(
            "a function of the row type of a temporary table",
        ));
    }
    let mut called: BTreeSet<FunctionId> = BTreeSet::new();
    for text in routine.args.iter().filter_map(|arg| arg.default.as_deref()) {
        used.extend(user::types_named(text));
        called.extend(named_in(text));
    }
    if let Some(aggregate) = &routine.aggregate {
        let catalog = cx.catalog()?;
        let own = aggregate.functions();
        called.extend(own.filter(|f| catalog.routines.get(*f).is_some()));
    }
    called.remove(&routine.oid);
    cx.lock_routines(called).await?;
    cx.lock_types(used).await
}

/// The row of a function is written again as it is, or as it is to be: whoever else does waits. Gives the function as
/// it is then.
pub(super) async fn lock_routine(
    oid: FunctionId,
    cx: &mut DdlContext<'_>,
) -> Result<Option<Arc<Routine>>> {
    loop {
        let Some(before) = cx.catalog()?.routines.get(oid).cloned() else {
            return Ok(None);
        };
        // A replica's primary waits for nobody.
        if before.is_temporary() || cx.store.is_replica() {
            return Ok(Some(before));
        }
        let row = stored::routines::encode(cx.catalog()?.database, &before);
        let database = row.key.database;
        let held = cx
            .change_row(RELATIONS, database, oid.get(), Some(&row))
            .await;
        // What was waited for may have dropped it, or changed it.
        match (held, cx.catalog()?.routines.get(oid).cloned()) {
            (_, None) => return Ok(None),
            (Err(error), _) => return Err(error),
            (Ok(_), Some(after)) if after == before => return Ok(Some(after)),
            (Ok(_), Some(_)) => {}
        }
    }
}

impl DdlContext<'_> {
    /// Holds the functions that expressions of a table have come to depend on.
    pub(super) async fn lock_routines_of(
        &mut self,
        relation: &Relation,
        old: Option<&Relation>,
    ) -> Result<()> {
        let known: BTreeSet<FunctionId> = old.into_iter().flat_map(routines_named).collect();
        let new: BTreeSet<FunctionId> = routines_named(relation).collect();
        self.lock_routines(new.difference(&known).copied()).await
    }

    /// The same of functions by number.
    pub(super) async fn lock_routines(
        &mut self,
        routines: impl IntoIterator<Item = FunctionId>,
    ) -> Result<()> {
        for routine in routines {
            if lock_routine(routine, self).await?.is_none() {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_FUNCTION,
                    format!("function with OID {routine} does not exist"),
                ));
            }
        }
        Ok(())
    }
}

/// The functions that a table's defaults, generated columns and checks name.
fn routines_named(relation: &Relation) -> impl Iterator<Item = FunctionId> {
    let live = relation.columns.iter().filter(|c| !c.dropped);
    let defaults = live.filter_map(|c| c.default.as_deref());
    let checks = relation.constraints.iter().filter_map(|c| c.check());
    defaults.chain(checks).flat_map(named_in)
}

/// Stores a function that has changed.
pub(super) async fn put(routine: Routine, cx: &mut DdlContext<'_>) -> Result<()> {
    if routine.is_temporary() {
        cx.state.push(CatalogChange::PutRoutine(Arc::new(routine)));
        return Ok(());
    }
    let row = stored::routines::encode(cx.catalog()?.database, &routine);
    let database = row.key.database;
    if !cx
        .change_row(RELATIONS, database, routine.oid.get(), Some(&row))
        .await?
    {
        return Err(exists(&routine));
    }
    cx.state.push(CatalogChange::PutRoutine(Arc::new(routine)));
    Ok(())
}

/// Puts a new definition in the place of an old one.
async fn replace(
    new: &CreateFunctionStmt,
    known: &Arc<Routine>,
    mut routine: Routine,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    if !new.replace {
        return Err(exists(&routine));
    }
    must_own(known, cx)?;
    let catalog = cx.catalog()?;
    let word = known.word();
    if known.procedure != routine.procedure || known.aggregate.is_some() {
        return Err(other_kind(known));
    }
    let drop_first = |routine: &Routine| {
        let shown = routine.signature(
            &catalog.routine_name(routine, cx.search_path),
            cx.lookup(&catalog).types(),
        );
        format!("Use DROP {} {shown} first.", word.to_uppercase())
    };
    if (known.result, known.set) != (routine.result, routine.set) {
        let what = match known.procedure {
            true => "cannot change whether a procedure has output parameters",
            false => "cannot change return type of existing function",
        };
        return Err(invalid(what).hint(drop_first(known)));
    }
    let columns = |routine: &Routine| -> Vec<(String, TypeId)> {
        let all = routine.outputs();
        all.map(|arg| (arg.name.clone(), arg.ty)).collect()
    };
    if routine.result == oid::RECORD && columns(known) != columns(&routine) {
        return Err(invalid("cannot change return type of existing function")
            .detail("Row type defined by OUT parameters is different.")
            .hint(drop_first(known)));
    }
    for (old, now) in known.inputs().zip(routine.inputs()) {
        if !old.name.is_empty() && old.name != now.name {
            return Err(invalid(format!(
                "cannot change name of input parameter \"{}\"",
                old.name
            ))
            .hint(drop_first(known)));
        }
    }
    if known.defaults() > routine.defaults() {
        return Err(
            invalid("cannot remove parameter defaults from existing function")
                .hint(drop_first(known)),
        );
    }
    routine.oid = known.oid;
    // WHEN cannot call it any more: nothing could be written to the table.
    if known.language == Language::Sql
        && routine.language != Language::Sql
        && let Some(trigger) = crate::find_dependents::asking_trigger(&catalog, known.oid)
    {
        return Err(SqlError::unsupported(format!(
            "replacing function {} by one in PL/pgSQL while WHEN of trigger \"{}\" calls it",
            known.name, trigger.name
        )));
    }
    check(&routine, cx)?;
    if lock_routine(known.oid, cx).await?.is_none() {
        return Err(SqlError::internal("tuple concurrently updated"));
    }
    lock_types_of_routine(&routine, cx).await?;
    put(routine, cx).await
}

/// The routine of ALTER, which nobody else changes until the transaction ends. To those whose it is not it is called
/// `word`, or what it is.
async fn altered(
    kind: ObjectType,
    target: &ObjectWithArgs,
    word: Option<&str>,
    cx: &mut DdlContext<'_>,
) -> Result<Arc<Routine>> {
    let found = named(kind, target, cx)?;
    must_own_as(word.unwrap_or(found.word()), &found, cx)?;
    let held = lock_routine(found.oid, cx).await?;
    held.ok_or_else(|| SqlError::internal("tuple concurrently updated"))
}

/// Runs ALTER FUNCTION and its like.
pub(super) async fn alter(stmt: &AlterFunctionStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let found = altered(stmt.objtype, &stmt.func, None, cx).await?;
    if found.aggregate.is_some() {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is an aggregate function", found.name),
        ));
    }
    let mut changed = Routine::clone(&found);
    properties(&stmt.actions, found.procedure, cx)?.apply(&mut changed, cx)?;
    refuse_temporary_definer(&changed)?;
    put(changed, cx).await
}

/// What messages call a routine whose name, schema or owner changes, whatever it is.
pub(crate) const FUNCTION: Option<&str> = Some("function");

/// Runs ALTER FUNCTION and its like ... RENAME TO.
pub(super) async fn rename(stmt: &RenameStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let target = with_args(&stmt.object)?;
    let found = altered(stmt.rename_type, target, FUNCTION, cx).await?;
    let mut changed = Routine::clone(&found);
    cx.must_create_in(found.schema)?;
    changed.name = stmt.newname.to_string();
    let catalog = cx.catalog()?;
    refuse_taken(&changed, cx.lookup(&catalog))?;
    put(changed, cx).await
}

/// Runs ALTER FUNCTION and its like ... SET SCHEMA.
pub(super) async fn set_schema(
    stmt: &AlterObjectSchemaStmt,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let target = with_args(&stmt.object)?;
    let found = altered(stmt.object_type, target, FUNCTION, cx).await?;
    let mut changed = Routine::clone(&found);
    let catalog = cx.catalog()?;
    let schema = catalog.schema(&stmt.newschema);
    let schema = schema.ok_or_else(|| no_schema(&stmt.newschema))?;
    if schema.oid == found.schema {
        return Ok(());
    }
    let schema = cx.target_schema(Some(&schema.name))?;
    refuse_moving_temporary(&found.schema_name, &schema.name)?;
    cx.must_create_in(schema.oid)?;
    cx.lock_schema_of(schema.oid, &schema.name).await?;
    changed.schema = schema.oid;
    changed.schema_name.clone_from(&schema.name);
    let catalog = cx.catalog()?;
    refuse_taken(&changed, cx.lookup(&catalog))?;
    put(changed, cx).await
}

/// 42723 if another function of the schema has the name and the input types.
fn refuse_taken(routine: &Routine, lookup: NameLookup<'_>) -> Result<()> {
    let types = routine.input_types();
    let catalog = lookup.catalog;
    match catalog.routine_exactly(&routine.schema_name, &routine.name, &types) {
        Some(other) if other.oid != routine.oid => Err(SqlError::new(
            SqlState::DUPLICATE_FUNCTION,
            format!(
                "function {} already exists in schema \"{}\"",
                other
                    .signature(&routine.name, lookup.types())
                    .replace(',', ", "),
                routine.schema_name
            ),
        )),
        _ => Ok(()),
    }
}

/// Removes a function that nothing depends on.
pub(super) async fn delete(oid: FunctionId, cx: &mut DdlContext<'_>) -> Result<()> {
    let catalog = cx.catalog()?;
    let found = catalog.routines.get(oid);
    if !found.is_some_and(|routine| routine.is_temporary()) {
        cx.change_row(RELATIONS, catalog.database, oid.get(), None)
            .await?;
        cx.delete_privileges(oid).await?;
    }
    cx.state.push(CatalogChange::DropRoutine(oid));
    Ok(())
}
