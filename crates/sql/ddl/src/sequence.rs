//! CREATE SEQUENCE, ALTER SEQUENCE, and the sequences that columns own. Values are handed out by
//! `catalog::sequence`.

use super::DdlContext;
use super::choose_name::{free_name, is_taken};
use super::columns::NewSequence;
use super::def_elem::{conflicting, get_int64, set_once, unexpected};
use crate::cascade_messages;
use crate::column_defaults;
use crate::relations::{exists, name_taken, position_of, wrong_kind};
use logstead_engine::TableLock;
use logstead_sql_catalog::sequence_def::{type_label, type_range};
use logstead_sql_catalog::{Relation, RelationKind, SequenceDef};
use logstead_sql_parse::ast::{
    AlterSeqStmt, AnyName, CreateSeqStmt, DefArg, DefElem, Name, RangeVar, TypeName,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{SqlType, oid};
use logstead_sql_types::{RelationId, SchemaId, TypeId};
use logstead_types::{SqlState, TableId};
use std::sync::Arc;

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// What the options of a sequence say (`init_params`).
#[derive(Default)]
struct Options<'a> {
    data_type: Option<&'a TypeName>,
    increment: Option<i64>,
    min: Option<Option<i64>>,
    max: Option<Option<i64>>,
    start: Option<i64>,
    cache: Option<i64>,
    cycle: Option<bool>,
    /// RESTART, with its value if one is given.
    restart: Option<Option<i64>>,
    owned_by: Option<&'a AnyName>,
    /// SEQUENCE NAME of an identity column.
    name: Option<&'a AnyName>,
}

/// A number, or that there is none.
fn opt_int64(option: &DefElem) -> Result<Option<i64>> {
    option.arg.is_some().then(|| get_int64(option)).transpose()
}

impl<'a> Options<'a> {
    /// Reads them. `text` is that of the statement.
    fn of(options: &'a [DefElem], text: &str) -> Result<Options<'a>> {
        let mut all = Options::default();
        for option in options {
            match (&*option.name, &option.arg) {
                ("as", Some(DefArg::Type(name))) => {
                    set_once(&mut all.data_type, &**name, option, text)?;
                }
                ("increment", _) => {
                    set_once(&mut all.increment, get_int64(option)?, option, text)?;
                }
                ("start", _) => set_once(&mut all.start, get_int64(option)?, option, text)?,
                ("cache", _) => set_once(&mut all.cache, get_int64(option)?, option, text)?,
                ("minvalue", _) => set_once(&mut all.min, opt_int64(option)?, option, text)?,
                ("maxvalue", _) => set_once(&mut all.max, opt_int64(option)?, option, text)?,
                ("restart", _) => set_once(&mut all.restart, opt_int64(option)?, option, text)?,
                ("cycle", arg) => {
                    let cycle = *arg != Some(DefArg::Boolean(false));
                    set_once(&mut all.cycle, cycle, option, text)?;
                }
                ("owned_by", Some(DefArg::Name(name))) => {
                    set_once(&mut all.owned_by, name, option, text)?;
                }
                ("sequence_name", Some(DefArg::Name(name))) => {
                    set_once(&mut all.name, name, option, text)?;
                }
                // An identity column's sequence is as lasting as its table.
                ("logged" | "unlogged", _) => {}
                _ => return Err(unexpected(option)),
            }
        }
        Ok(all)
    }

    /// The same of a sequence that is no column's own.
    fn of_free(options: &'a [DefElem], text: &str) -> Result<Options<'a>> {
        let all = Options::of(options, text)?;
        for option in options {
            match &*option.name {
                "sequence_name" => return Err(wrong_option("SEQUENCE NAME", option, text)),
                "logged" | "unlogged" => {
                    return Err(wrong_option("LOGGED or UNLOGGED", option, text));
                }
                _ => {}
            }
        }
        Ok(all)
    }

    /// The same of the sequence of a new identity column.
    fn of_identity(options: &'a [DefElem], text: &str) -> Result<Options<'a>> {
        let all = Options::of(options, text)?;
        // The column's type is the sequence's.
        if let Some(option) = options.iter().find(|o| &*o.name == "as") {
            return Err(conflicting(option, text));
        }
        if all.owned_by.is_some() {
            return Err(SqlError::unsupported("OWNED BY of an identity column"));
        }
        match all.restart {
            Some(_) => Err(SqlError::unsupported("RESTART of a new identity column")),
            None => Ok(all),
        }
    }
}

fn wrong_option(words: &str, option: &DefElem, text: &str) -> SqlError {
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("invalid sequence option {words}"),
    )
    .at(option.location.character(text))
}

/// A definition from options; `old` is what ALTER starts from.
fn define(ty: TypeId, o: &Options<'_>, old: Option<&SequenceDef>) -> Result<SequenceDef> {
    let (low, high) = type_range(ty);
    let increment = o.increment.or(old.map(|d| d.increment)).unwrap_or(1);
    if increment == 0 {
        return Err(invalid("INCREMENT must not be zero"));
    }
    let up = increment > 0;
    let limit = |given: Option<Option<i64>>, kept: Option<i64>, default: i64| match given {
        Some(Some(value)) => value,
        Some(None) => default,
        None => kept.unwrap_or(default),
    };
    // Who changes the type of a sequence that went to the end of its old one has it go to the end of the new one.
    let ends = old.map(|d| type_range(d.ty));
    let kept = |value: i64, end: Option<i64>| {
        (old.is_some_and(|d| d.ty == ty) || end != Some(value)).then_some(value)
    };
    let old_max = old.and_then(|d| kept(d.max, ends.map(|e| e.1)));
    let old_min = old.and_then(|d| kept(d.min, ends.map(|e| e.0)));
    // Whichever way it goes: that is what it did.
    let moves = |end: Option<i64>, value: Option<i64>| {
        old.is_some_and(|d| d.ty != ty) && end.is_some() && end == value
    };
    let moves_max = moves(ends.map(|e| e.1), old.map(|d| d.max));
    let moves_min = moves(ends.map(|e| e.0), old.map(|d| d.min));
    let max = limit(o.max, old_max, if up || moves_max { high } else { -1 });
    let min = limit(o.min, old_min, if up && !moves_min { 1 } else { low });
    for (name, value) in [("MAXVALUE", max), ("MINVALUE", min)] {
        if !(low..=high).contains(&value) {
            let label = type_label(ty);
            return Err(invalid(format!(
                "{name} ({value}) is out of range for sequence data type {label}"
            )));
        }
    }
    if min >= max {
        return Err(invalid(format!(
            "MINVALUE ({min}) must be less than MAXVALUE ({max})"
        )));
    }
    let start = o
        .start
        .or(old.map(|d| d.start))
        .unwrap_or(if up { min } else { max });
    if start < min {
        return Err(invalid(format!(
            "START value ({start}) cannot be less than MINVALUE ({min})"
        )));
    }
    if start > max {
        return Err(invalid(format!(
            "START value ({start}) cannot be greater than MAXVALUE ({max})"
        )));
    }
    let cache = o.cache.or(old.map(|d| d.cache)).unwrap_or(1);
    if cache < 1 {
        return Err(invalid(format!(
            "CACHE ({cache}) must be greater than zero"
        )));
    }
    let cycle = o.cycle.or(old.map(|d| d.cycle)).unwrap_or(false);
    Ok(SequenceDef {
        ty,
        start,
        increment,
        min,
        max,
        cache,
        cycle,
    })
}

/// AS smallint, integer or bigint.
fn sequence_type(name: &TypeName, cx: &mut DdlContext<'_>) -> Result<TypeId> {
    match cx.sql_type(name)?.oid {
        ty @ (oid::INT2 | oid::INT4 | oid::INT8) => Ok(ty),
        _ => Err(invalid(
            "sequence type must be smallint, integer, or bigint",
        )),
    }
}

/// Stores a sequence and its first state.
async fn store(
    cx: &mut DdlContext<'_>,
    schema: (SchemaId, &str),
    name: String,
    def: SequenceDef,
) -> Result<Arc<Relation>> {
    let oid = RelationId::new(cx.new_oid()?);
    let start = def.start;
    let relation = Relation {
        oid,
        name,
        schema: schema.0,
        schema_name: schema.1.to_owned(),
        kind: RelationKind::Sequence(def),
        columns: logstead_sql_catalog::sequence_def::columns(),
        indexes: Vec::new(),
        constraints: Vec::new(),
        storage: cx.store.storage_for(oid.get()),
        schema_version: 0,
        security: logstead_sql_catalog::RowSecurity::default(),
        distribution: Default::default(),
        shared_names: Default::default(),
    };
    new_state(cx, &relation, relation.storage, start, false)?;
    cx.create_relation(relation).await
}

/// Makes the state of a sequence's storage.
fn new_state(
    cx: &mut DdlContext<'_>,
    sequence: &Relation,
    storage: TableId,
    last: i64,
    called: bool,
) -> Result<()> {
    let all = cx.store.sequences();
    if sequence.is_temporary() {
        all.create_temporary(storage, last, called);
        cx.state.sequence_made(storage);
        return Ok(());
    }
    let csn = all.create(cx.store.engine(), cx.worker, storage, last, called)?;
    cx.state.sequence_made(storage);
    cx.depends_on(csn);
    Ok(())
}

/// Runs CREATE SEQUENCE.
pub(super) async fn create(stmt: &CreateSeqStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let options = Options::of_free(&stmt.options, cx.text)?;
    if options.restart.is_some() {
        return Err(SqlError::unsupported("RESTART of a new sequence"));
    }
    let (schema, name) = cx.new_name_of(&stmt.sequence)?;
    if exists(cx, &schema, &name, stmt.if_not_exists)? {
        return Ok(());
    }
    let ty = match options.data_type {
        Some(name) => sequence_type(name, cx)?,
        None => oid::INT8,
    };
    let def = define(ty, &options, None)?;
    let made = store(cx, (schema.oid, &schema.name), name, def).await?;
    if let Some(owner) = options.owned_by {
        own(made.oid, owner, cx).await?;
    }
    Ok(())
}

/// Makes the sequence of a serial or identity column.
pub(super) async fn create_owned(
    cx: &mut DdlContext<'_>,
    table: &Relation,
    column: &str,
    owned: &NewSequence,
) -> Result<RelationId> {
    let catalog = cx.catalog()?;
    let options = Options::of_identity(&owned.options, cx.text)?;
    let def = define(owned.ty, &options, None)?;
    let given = options.name.map_or(&[][..], |name| &name.names);
    let (schema, name) = match given {
        [] => {
            let name = free_name(&table.name, Some(column), "seq", |n| {
                is_taken(&catalog, table.schema, None, n)
            });
            (None, name)
        }
        [name] => (None, name.to_string()),
        names => {
            let (schema, name) = cx.new_name_at(names, table.is_temporary(), None)?;
            (Some(schema), name)
        }
    };
    let (schema, schema_name) = match &schema {
        Some(schema) => (schema.oid, schema.name.as_str()),
        None => (table.schema, table.schema_name.as_str()),
    };
    if is_taken(&catalog, schema, None, &name) {
        return Err(name_taken(&name));
    }
    Ok(store(cx, (schema, schema_name), name, def).await?.oid)
}

/// ALTER COLUMN TYPE of an identity column: its sequence gets the type too.
pub(super) async fn follow_type(
    sequence: RelationId,
    ty: SqlType,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    if !matches!(ty.oid, oid::INT2 | oid::INT4 | oid::INT8) {
        return Err(invalid(
            "identity column type must be smallint, integer, or bigint",
        ));
    }
    let catalog = cx.catalog()?;
    let Some(relation) = catalog.relations.get(&sequence).map(Arc::clone) else {
        return Ok(());
    };
    let RelationKind::Sequence(def) = &relation.kind else {
        return Ok(());
    };
    if def.ty == ty.oid {
        return Ok(());
    }
    let changed = define(ty.oid, &Options::default(), Some(def))?;
    let state = cx.store.sequences().peek(relation.storage);
    let (last, called) = state.unwrap_or((changed.start, false));
    for (word, end, wrong) in [
        ("less than MINVALUE", changed.min, last < changed.min),
        ("greater than MAXVALUE", changed.max, last > changed.max),
    ] {
        if wrong {
            let message = format!("RESTART value ({last}) cannot be {word} ({end})");
            return Err(invalid(message));
        }
    }
    restart(cx, &relation, changed, last, called).await
}

/// The column that owns a sequence: table and position.
pub(super) fn owner_of(
    cx: &mut DdlContext<'_>,
    sequence: RelationId,
) -> Result<Option<(Arc<Relation>, usize)>> {
    let catalog = cx.catalog()?;
    let users = catalog.dependent_relations(sequence);
    let found = users.into_iter().find_map(|table| {
        let position = table
            .columns
            .iter()
            .position(|c| !c.dropped && c.sequence == Some(sequence))?;
        Some((Arc::clone(table), position))
    });
    Ok(found)
}

/// OWNED BY table.column, or NONE.
async fn own(sequence: RelationId, owner: &AnyName, cx: &mut DdlContext<'_>) -> Result<()> {
    if let Some((table, position)) = owner_of(cx, sequence)? {
        let identity = table
            .columns
            .get(position)
            .is_some_and(|c| c.identity.is_some());
        if identity {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot change ownership of identity sequence",
            ));
        }
        set_owner(cx, table.oid, position, None).await?;
    }
    let (schema, table, column): (Option<&str>, &Name, &Name) = match owner.names.as_slice() {
        [none] if &**none == "none" => return Ok(()),
        [table, column] => (None, table, column),
        [schema, table, column] => {
            let catalog = cx.catalog()?;
            cx.lookup(&catalog).explicit(schema)?;
            (Some(&**schema), table, column)
        }
        _ => {
            return Err(
                SqlError::new(SqlState::SYNTAX_ERROR, "invalid OWNED BY option")
                    .hint("Specify OWNED BY table.column or OWNED BY NONE."),
            );
        }
    };
    let catalog = cx.catalog()?;
    let found = catalog
        .relation(schema, table, cx.search_path)
        .cloned()
        .ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{table}\" does not exist"),
            )
        })?;
    if catalog.owner_of(sequence) != catalog.owner_of(found.oid) {
        return Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "sequence must have same owner as table it is linked to",
        ));
    }
    if catalog
        .relations
        .get(&sequence)
        .is_some_and(|sequence| sequence.schema != found.schema)
    {
        return Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "sequence must be in same schema as table it is linked to",
        ));
    }
    let position = position_of(&found, column)?;
    if found
        .columns
        .get(position)
        .is_some_and(|c| c.sequence.is_some_and(|own| own != sequence))
    {
        return Err(SqlError::unsupported(
            "a second sequence owned by one column",
        ));
    }
    set_owner(cx, found.oid, position, Some(sequence)).await
}

async fn set_owner(
    cx: &mut DdlContext<'_>,
    table: RelationId,
    position: usize,
    sequence: Option<RelationId>,
) -> Result<()> {
    let Some((table, _)) = cx.lock_table(table, TableLock::AccessExclusive).await? else {
        return Ok(());
    };
    let mut changed = Relation::clone(&table);
    if let Some(column) = changed.columns.get_mut(position) {
        column.sequence = sequence;
    }
    cx.update_relation(changed).await.map(drop)
}

/// The sequence that a statement names; none if it is not there and need not be.
fn sequence_named(
    named: &RangeVar,
    missing_ok: bool,
    cx: &mut DdlContext<'_>,
) -> Result<Option<Arc<Relation>>> {
    let Some((oid, name)) = cx.find_relation(named, missing_ok)? else {
        return Ok(None);
    };
    let catalog = cx.catalog()?;
    let relation = catalog.relations.get(&oid);
    match relation.filter(|r| matches!(r.kind, RelationKind::Sequence(_))) {
        Some(relation) => Ok(Some(Arc::clone(relation))),
        None => Err(wrong_kind(&name, "a sequence")),
    }
}

/// Runs ALTER SEQUENCE.
pub(super) async fn alter(stmt: &AlterSeqStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let options = Options::of_free(&stmt.options, cx.text)?;
    match sequence_named(&stmt.sequence, stmt.missing_ok, cx)? {
        Some(relation) => change(&relation, &options, cx).await,
        None => Ok(()),
    }
}

/// Changes the sequence of an identity column.
pub(super) async fn alter_identity(
    relation: &Relation,
    options: &[DefElem],
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let options = Options::of_free(options, cx.text)?;
    change(relation, &options, cx).await
}

async fn change(relation: &Relation, options: &Options<'_>, cx: &mut DdlContext<'_>) -> Result<()> {
    let RelationKind::Sequence(def) = &relation.kind else {
        return Err(wrong_kind(&relation.name, "a sequence"));
    };
    if let Some(owner) = options.owned_by {
        own(relation.oid, owner, cx).await?;
    }
    let ty = match options.data_type {
        Some(name) => sequence_type(name, cx)?,
        None => def.ty,
    };
    let changed = define(ty, options, Some(def))?;
    if changed == *def && options.restart.is_none() {
        return Ok(());
    }
    let (last, called) = cx
        .store
        .sequences()
        .peek(relation.storage)
        .unwrap_or((changed.start, false));
    let (last, called) = match options.restart {
        Some(value) => (value.unwrap_or(changed.start), false),
        None => (last, called),
    };
    let word = if options.restart.is_some() {
        "RESTART"
    } else {
        "START"
    };
    if last < changed.min {
        let min = changed.min;
        return Err(invalid(format!(
            "{word} value ({last}) cannot be less than MINVALUE ({min})"
        )));
    }
    if last > changed.max {
        let max = changed.max;
        return Err(invalid(format!(
            "{word} value ({last}) cannot be greater than MAXVALUE ({max})"
        )));
    }
    restart(cx, relation, changed, last, called).await
}

/// Gives a sequence a new definition and a new state, which rolls back with the transaction.
pub(super) async fn restart(
    cx: &mut DdlContext<'_>,
    relation: &Relation,
    def: SequenceDef,
    last: i64,
    called: bool,
) -> Result<()> {
    let storage = cx.new_storage()?;
    new_state(cx, relation, storage, last, called)?;
    let mut changed = Relation::clone(relation);
    changed.kind = RelationKind::Sequence(def);
    changed.storage = storage;
    cx.update_relation(changed).await?;
    cx.state.sequence_unused(relation.storage);
    Ok(())
}

/// Renames a sequence.
pub(super) async fn rename(oid: RelationId, new: &str, cx: &mut DdlContext<'_>) -> Result<()> {
    let new = new.to_string();
    let catalog = cx.catalog()?;
    let relation = catalog
        .relations
        .get(&oid)
        .ok_or_else(|| SqlError::internal("a sequence vanished"))?;
    if catalog.names.contains_key(&(relation.schema, new.clone())) {
        return Err(name_taken(&new));
    }
    let mut changed = Relation::clone(relation);
    changed.name = new;
    cx.update_relation(changed).await.map(drop)
}

/// Drops the sequence of a column that goes away, unless another column's default still uses it.
pub(super) async fn drop_owned(
    sequence: RelationId,
    column: Option<(RelationId, usize)>,
    cascade: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let Some(relation) = catalog.relations.get(&sequence).cloned() else {
        return Ok(());
    };
    let users = column_defaults::default_users(&catalog, sequence, column);
    if !users.is_empty() && !cascade {
        let (table, position) = &users[0];
        let name = table
            .columns
            .get(*position)
            .map_or("?", |c| c.name.as_str());
        return Err(cascade_messages::still_used(
            &format!("column of table that owns sequence {}", relation.name),
            &format!(
                "default value for column {name} of table {} depends on sequence {}",
                table.name, relation.name
            ),
        ));
    }
    for (table, position) in users {
        column_defaults::drop_default(cx, table.oid, position).await?;
    }
    cx.delete_relation(&relation).await
}
