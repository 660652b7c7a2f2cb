//! CREATE INDEX, ALTER INDEX: which columns, expressions and operator classes an index may have (`keys`; btree is the
//! one access method), and its building beside writers, which is the engine's (`index_build`).

use super::choose_name::{columns_part, free_name, is_taken};
use super::default_operator_class::check_type;
use super::storage_parameters::index_options;
use super::{
    DdlContext, def_elem, expressions, generated, index_expression_columns, relation_attributes,
};
use crate::index_expression_columns::not_immutable;
use crate::missing_object::no_schema;
use crate::pg_catalog::calls::{self, QualifiedName};
use crate::pg_catalog::{operator_class, operator_class_name};
use crate::relations::{name_taken, no_relation, system_relation, wrong_kind};
use logstead_engine::TableLock;
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::classes::CatalogObject;
use logstead_sql_catalog::index_expressions::calls as calls_users;
use logstead_sql_catalog::inert_options::{self, Attribute};
use logstead_sql_catalog::privileges::denied;
use logstead_sql_catalog::{IndexColumn, IndexDef, IndexKey, Relation, RelationKind};
use logstead_sql_parse::ast::{
    self, ClusterStmt, DefElem, IndexElem, IndexKey as ElemKey, IndexStmt, Name, Names, RangeVar,
    ReindexStmt, ReindexTarget, SortByDir, SortByNulls,
};
use logstead_sql_plan::bind;
use logstead_sql_plan::bind::index_expression;
use logstead_sql_plan::expr::Expr;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::info;
use logstead_types::{IndexId, SqlState};
use std::sync::Arc;
use std::time::Duration;

/// Most columns of an index.
const COLUMNS_MAX: usize = 32;

/// The position of a column that is a key, or included.
fn key_position(relation: &Relation, name: &str) -> Result<usize> {
    let mut columns = relation.columns.iter();
    let position = columns.position(|c| !c.dropped && c.name == name);
    position.ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" does not exist"),
        )
    })
}

/// A column of INCLUDE, which is nothing but that (`ComputeIndexAttrs`).
fn included_column(elem: &IndexElem) -> Result<&Name> {
    let ElemKey::Column(name) = &elem.key else {
        return Err(SqlError::unsupported_text(
            "expressions are not supported in included columns",
        ));
    };
    let what = if elem.collation.is_some() {
        "a collation"
    } else if elem.opclass.is_some() {
        "an operator class"
    } else if elem.ordering != SortByDir::Default {
        "ASC/DESC options"
    } else if elem.nulls_ordering != SortByNulls::Default {
        "NULLS FIRST/LAST options"
    } else {
        return Ok(name);
    };
    let message = format!("including column does not support {what}");
    Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message))
}

/// What a key column holds; its type decides whether it can be one. A COLLATE within is that of the key.
fn key_of<'a>(
    relation: &Relation,
    elem: &'a IndexElem,
    cx: &mut DdlContext<'_>,
) -> Result<(IndexKey, Option<&'a Names>)> {
    let said = elem.collation.as_ref().map(|name| &name.names);
    let expr = match &elem.key {
        ElemKey::Column(name) => {
            return Ok((IndexKey::Column(key_position(relation, name)?), said));
        }
        ElemKey::Expr(expr, _) => expr,
    };
    let (expr, said) = match (expr, said) {
        (ast::Expr::CollateClause(node), None) => (&node.arg, Some(&node.collname)),
        _ => (expr, said),
    };
    Ok((expression_key(relation, expr, cx)?, said))
}

fn expression_key(
    relation: &Relation,
    expr: &ast::Expr,
    cx: &mut DdlContext<'_>,
) -> Result<IndexKey> {
    let catalog = cx.catalog()?;
    if let Some(name) = expr.bare_name() {
        return key_position(relation, name).map(IndexKey::Column);
    }
    let bound = expressions::written(cx, &catalog, relation, expr, "INDEX")?;
    let bound = cx.may_define(bound)?;
    if let Expr::Column(position, _) = bound {
        return Ok(IndexKey::Column(position));
    }
    if !generated::is_immutable(&bound) {
        return Err(not_immutable("expression"));
    }
    Ok(IndexKey::Expression {
        text: expressions::stored_text(cx, &catalog, relation, expr, "INDEX"),
        ty: index_expression::key_type(&bound),
        name: bind::index_column_name(expr, &catalog.types),
    })
}

fn key_column(
    relation: &Relation,
    elem: &IndexElem,
    at: usize,
    cx: &mut DdlContext<'_>,
) -> Result<(IndexColumn, Vec<(Attribute, String)>)> {
    if !elem.opclassopts.is_empty() {
        return Err(SqlError::unsupported("an operator class with parameters"));
    }
    let (key, collation) = key_of(relation, elem, cx)?;
    let desc = elem.ordering == SortByDir::Desc;
    let key = IndexColumn {
        key,
        desc,
        nulls_first: match elem.nulls_ordering {
            SortByNulls::Default => desc,
            SortByNulls::First => true,
            SortByNulls::Last => false,
        },
    };
    let ty = key.ty(relation);
    let mut own_class = None;
    match &elem.opclass {
        Some(class) => {
            let (_, class) = calls::name_parts(class)?;
            let fits = operator_class_name(&class).is_some_and(|(oid, input)| {
                oid == operator_class(ty.oid) || operator_class(input) == operator_class(ty.oid)
            });
            if !fits {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!(
                        "operator class \"{class}\" does not exist for access method \"btree\""
                    ),
                ));
            }
            // One that is the type's own is not told of.
            let other = |(oid, _)| oid != operator_class(ty.oid);
            own_class = operator_class_name(&class)
                .is_some_and(other)
                .then_some(class);
        }
        None => check_type(ty, cx)?,
    }
    let own = match key
        .position()
        .and_then(|at| Some((at, relation.columns.get(at)?)))
    {
        Some((at, column)) => cx.catalog()?.collation_of(relation.oid, at, column),
        None => info::by_oid(ty.oid).map_or(0, info::TypeInfo::collation),
    };
    let attributes =
        relation_attributes::key_attributes(at, (collation, own), ty, own_class.as_deref(), cx)?;
    Ok((key, attributes))
}

/// Columns and predicate of an index.
struct Keys {
    columns: Vec<IndexColumn>,
    include: Vec<usize>,
    predicate: Option<String>,
    /// Collations and operator classes.
    attributes: Vec<(Attribute, String)>,
}

impl Keys {
    /// What is kept as text.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let keys = self.columns.iter().filter_map(|column| match &column.key {
            IndexKey::Expression { text, .. } => Some(text.as_str()),
            IndexKey::Column(_) => None,
        });
        keys.chain(self.predicate.as_deref())
    }
}

fn keys(stmt: &IndexStmt, table: &Relation, cx: &mut DdlContext<'_>) -> Result<Keys> {
    if stmt
        .access_method
        .as_ref()
        .is_some_and(|name| **name != *"btree")
    {
        return Err(SqlError::unsupported(
            "an index access method other than btree",
        ));
    }
    if stmt.index_params.len() + stmt.index_including_params.len() > COLUMNS_MAX {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("cannot use more than {COLUMNS_MAX} columns in an index"),
        ));
    }
    let predicate = match &stmt.where_clause {
        None => None,
        Some(predicate) => {
            let catalog = cx.catalog()?;
            let bound = expressions::written(cx, &catalog, table, predicate, "PREDICATE")?;
            let bound = cx.may_define(bound)?;
            if !generated::is_immutable(&bound) {
                return Err(not_immutable("predicate"));
            }
            let text = expressions::stored_text(cx, &catalog, table, predicate, "PREDICATE");
            Some(text)
        }
    };
    let mut columns = Vec::with_capacity(stmt.index_params.len());
    let mut attributes = Vec::new();
    for (at, column) in stmt.index_params.iter().enumerate() {
        let (key, said) = key_column(table, column, at, cx)?;
        columns.push(key);
        attributes.extend(said);
    }
    let mut include = Vec::with_capacity(stmt.index_including_params.len());
    for elem in &stmt.index_including_params {
        let name = included_column(elem)?.to_string();
        include.push(key_position(table, &name)?);
    }
    Ok(Keys {
        columns,
        include,
        predicate,
        attributes,
    })
}

/// Names of an index's columns, each once: numbers follow names that come again.
fn column_names(table: &Relation, keys: &Keys) -> Vec<String> {
    let own = keys.columns.iter().map(|k| k.name(table).to_owned());
    let included = keys.include.iter().filter_map(|p| table.columns.get(*p));
    let mut names: Vec<String> = Vec::new();
    for name in own.chain(included.map(|c| c.name.clone())) {
        let mut free = name.clone();
        let mut pass = 0_u32;
        while names.contains(&free) {
            pass += 1;
            free = format!("{name}{pass}");
        }
        names.push(free);
    }
    names
}

/// Runs CREATE INDEX, with CONCURRENTLY or without: writers go on either way, the table only must stay as it is.
pub(super) async fn create(stmt: &IndexStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let table = cx.named_table(&stmt.relation)?;
    let (catalog, name) = (cx.catalog()?, table.name.clone());
    match table.kind {
        RelationKind::Table | RelationKind::Materialized(..) => {}
        RelationKind::Virtual(_) => return Err(system_relation(&name)),
        RelationKind::Sequence(_) => {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot create index on relation \"{name}\""),
            )
            .detail("This operation is not supported for sequences."));
        }
        RelationKind::View(_) => {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot create index on relation \"{name}\""),
            )
            .detail("This operation is not supported for views."));
        }
    }
    let wanted = stmt.idxname.as_ref().map(|name| name.to_string());
    // Rows that are there get what users' functions compute of them: nobody else is at the table then.
    let calls = !catalog.routines.is_empty()
        && keys(stmt, &table, cx).is_ok_and(|keys| keys.texts().any(calls_users));
    let lock = match calls {
        true => TableLock::AccessExclusive,
        false => TableLock::AccessShare,
    };
    let Some((table, _)) = cx.lock_table(table.oid, lock).await? else {
        return Err(no_relation(&stmt.relation));
    };
    cx.must_own(&table)?;
    cx.refuse_pending(table.oid, "CREATE INDEX")?;
    cx.must_create_in(table.schema)?;
    let catalog = cx.catalog()?;
    let mut options = index_options(&stmt.options)?;
    if let Some(name) = &wanted
        && catalog.names.contains_key(&(table.schema, name.clone()))
    {
        if !stmt.if_not_exists {
            return Err(name_taken(name));
        }
        cx.notice(
            SqlState::DUPLICATE_TABLE,
            format!("relation \"{name}\" already exists, skipping"),
        );
        return Ok(());
    }
    let keys = keys(stmt, &table, cx)?;
    let name = wanted.unwrap_or_else(|| {
        let names = column_names(&table, &keys);
        let second = columns_part(names.iter().map(String::as_str));
        free_name(&table.name, Some(&second), "idx", |n| {
            is_taken(&catalog, table.schema, Some(&table), n)
        })
    });
    for (attribute, value) in &keys.attributes {
        inert_options::set(&mut options, *attribute, Some(value));
    }
    let oid = RelationId::new(cx.new_oid()?);
    if !options.is_empty() {
        cx.state.push(CatalogChange::Options(oid, options));
    }
    let index = IndexDef {
        oid,
        name,
        table: table.oid,
        storage: IndexId(oid.get()),
        unique: stmt.unique,
        primary: false,
        nulls_not_distinct: stmt.nulls_not_distinct,
        deferrable: false,
        columns: keys.columns,
        include: keys.include,
        predicate: keys.predicate,
        computed: Vec::new(),
        invalid: None,
    };
    cx.create_index(&table, index).await.map(drop)
}

/// Makes an index of `table` like one of another table: its columns are the new table's already. Its OID.
pub(super) async fn copy(
    table: &Relation,
    from: IndexDef,
    cx: &mut DdlContext<'_>,
) -> Result<RelationId> {
    let catalog = cx.catalog()?;
    let oid = RelationId::new(cx.new_oid()?);
    let options = catalog.options_of(from.oid).to_vec();
    if !options.is_empty() {
        cx.state.push(CatalogChange::Options(oid, options));
    }
    let keys = Keys {
        columns: from.columns,
        include: from.include,
        predicate: from.predicate,
        attributes: Vec::new(),
    };
    let names = column_names(table, &keys);
    let second = columns_part(names.iter().map(String::as_str));
    let name = free_name(&table.name, Some(&second), "idx", |n| {
        is_taken(&catalog, table.schema, Some(table), n)
    });
    let index = IndexDef {
        oid,
        name,
        table: table.oid,
        storage: IndexId(oid.get()),
        columns: keys.columns,
        include: keys.include,
        predicate: keys.predicate,
        ..from
    };
    cx.create_index(table, index).await?;
    Ok(oid)
}

/// OID of an index by name; `None` (with a notice) if it does not exist and need not.
pub(super) fn find_index(
    name: &impl QualifiedName,
    if_exists: bool,
    cx: &mut DdlContext<'_>,
) -> Result<Option<RelationId>> {
    match cx.find_relation(name, if_exists)? {
        Some((oid, plain)) if !cx.catalog()?.index_tables.contains_key(&oid) => {
            Err(wrong_kind(&plain, "an index"))
        }
        found => Ok(found.map(|(oid, _)| oid)),
    }
}

/// Is CONCURRENTLY among the options of REINDEX?
pub fn is_concurrent(stmt: &ReindexStmt) -> Result<bool> {
    let mut options = stmt.params.iter().filter(|p| &*p.name == "concurrently");
    options.try_fold(false, |_, option| def_elem::get_boolean(option))
}

/// Runs REINDEX.
pub(super) async fn reindex(stmt: &ReindexStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let concurrently = is_concurrent(stmt)?;
    match &stmt.target {
        ReindexTarget::Index(name) => {
            let Some(oid) = find_index(name, false, cx)? else {
                return Ok(());
            };
            let table = cx.catalog()?.index_tables.get(&oid).copied();
            let table = table.ok_or_else(|| no_relation(name))?;
            build_anew(table, Some(oid), concurrently, cx).await
        }
        ReindexTarget::Table(name) => {
            let (oid, plain) = cx.named_relation(name)?;
            let catalog = cx.catalog()?;
            match catalog.relations.get(&oid).map(|r| &r.kind) {
                Some(RelationKind::Table | RelationKind::Materialized(..)) => {
                    build_anew(oid, None, concurrently, cx).await
                }
                Some(RelationKind::Virtual(_)) if concurrently => Err(no_concurrent_catalogs()),
                Some(RelationKind::Virtual(_)) => Ok(()),
                _ => Err(wrong_kind(&plain, "a table or materialized view")),
            }
        }
        ReindexTarget::System(_) if concurrently => Err(no_concurrent_catalogs()),
        ReindexTarget::Schema(name) => reindex_all(true, name, cx),
        ReindexTarget::System(name) | ReindexTarget::Database(name) => reindex_all(false, name, cx),
    }
}

/// Runs CLUSTER: rows have no order on disk here, so there is nothing to do, nor is it remembered that it was done.
pub(super) fn cluster(stmt: &ClusterStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let Some(name) = &stmt.relation else {
        return Ok(());
    };
    let (oid, plain) = cx.named_relation(name)?;
    let catalog = cx.catalog()?;
    let table = catalog.relations.get(&oid).filter(|table| {
        matches!(
            table.kind,
            RelationKind::Table | RelationKind::Materialized(..)
        )
    });
    let table = table.ok_or_else(|| wrong_kind(&plain, "a table or materialized view"))?;
    let Some(index) = stmt.indexname.as_deref() else {
        return Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("there is no previously clustered index for table \"{plain}\""),
        ));
    };
    match table.indexes.iter().find(|known| known.name == *index) {
        Some(known) if known.predicate.is_some() => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot cluster on partial index \"{index}\""),
        )),
        Some(_) => Ok(()),
        None if catalog
            .names
            .contains_key(&(table.schema, index.to_owned())) =>
        {
            let message = format!("\"{index}\" is not an index for table \"{plain}\"");
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
        None => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("index \"{index}\" for table \"{plain}\" does not exist"),
        )),
    }
}

/// SET and RESET of an index's storage parameters.
pub(super) async fn set_parameters(
    name: &RangeVar,
    missing_ok: bool,
    said: &[DefElem],
    is_reset: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    change_options(name, missing_ok, cx, |all| {
        let old = std::mem::take(all);
        *all = relation_attributes::changed_parameters(old, said, is_reset, index_options)?;
        Ok(())
    })
    .await
}

pub(super) async fn change_options(
    name: &impl QualifiedName,
    if_exists: bool,
    cx: &mut DdlContext<'_>,
    change: impl FnOnce(&mut Vec<String>) -> Result<()>,
) -> Result<()> {
    let Some(oid) = find_index(name, if_exists, cx)? else {
        return Ok(());
    };
    let catalog = cx.catalog()?;
    let table = catalog.index_tables.get(&oid).copied();
    let Some((table, _)) = cx
        .lock_table(table.unwrap_or_default(), TableLock::AccessExclusive)
        .await?
    else {
        return Err(no_relation(name));
    };
    let index = table.indexes.iter().find(|i| i.oid == oid);
    let index = IndexDef::clone(index.ok_or_else(|| no_relation(name))?);
    cx.must_own_index(&table, &index.name)?;
    let mut all = cx
        .catalog()?
        .notes
        .options
        .get(&oid)
        .cloned()
        .unwrap_or_default();
    change(&mut all)?;
    cx.state.push(CatalogChange::Options(oid, all));
    cx.update_index(table.schema, index).await
}

fn no_concurrent_catalogs() -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "cannot reindex system catalogs concurrently",
    )
}

/// REINDEX of a schema or of the database: who owns it may ask for it. Indexes have nothing that building them anew
/// would take out, so there is nothing to do.
fn reindex_all(schema: bool, name: &str, cx: &mut DdlContext<'_>) -> Result<()> {
    let catalog = cx.catalog()?;
    let (object, kind): (CatalogObject, _) = match schema {
        true => {
            let found = catalog.schema(name).ok_or_else(|| no_schema(name))?;
            (found.oid.into(), "schema")
        }
        false if name != catalog.database_name => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "can only reindex the currently open database",
            ));
        }
        false => (catalog.database.into(), "database"),
    };
    match cx.with_acl_checker(|acl_checker, role| acl_checker.owns(role, object))? {
        true => Ok(()),
        false => Err(denied(format!("must be owner of {kind} {name}"))),
    }
}

/// How long REINDEX CONCURRENTLY stands in line for the table, so that others wait behind it, and how long it leaves
/// them alone then.
const IN_LINE: Duration = Duration::from_millis(10);
const OUT_OF_LINE: Duration = Duration::from_millis(50);

/// Locks a table alone without keeping anybody waiting for longer than a moment, however long those who have it take:
/// PostgreSQL's CONCURRENTLY waits for them as well, and lets others in.
async fn lock_when_free(table: RelationId, cx: &mut DdlContext<'_>) -> Result<bool> {
    loop {
        let lock = cx.lock_table(table, TableLock::AccessExclusive);
        if let Ok(locked) = tokio::time::timeout(IN_LINE, lock).await {
            return Ok(locked?.is_some());
        }
        // Gives up its place in the line.
        cx.txn.begin_statement();
        cx.cancel.check()?;
        tokio::time::sleep(OUT_OF_LINE).await;
    }
}

/// Builds indexes of a table anew, among writers, then puts them in the places of the old ones with the table locked,
/// which takes no time.
async fn build_anew(
    table: RelationId,
    only: Option<RelationId>,
    concurrently: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let gone = || {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            "the table was dropped meanwhile",
        )
    };
    let chosen = |index: &&Arc<IndexDef>| only.is_none_or(|oid| oid == index.oid);
    let known = cx.catalog()?.relations.get(&table).cloned();
    let computes = known.is_some_and(|known| {
        let mut chosen = known.indexes.iter().filter(chosen);
        chosen.any(|index| !index.computed.is_empty())
    });
    // As when it was made.
    let lock = match computes {
        true => TableLock::AccessExclusive,
        false => TableLock::AccessShare,
    };
    let (relation, storage) = cx.lock_table(table, lock).await?.ok_or_else(gone)?;
    let index = only.and_then(|oid| relation.indexes.iter().find(|i| i.oid == oid));
    match index {
        Some(index) => cx.must_own_index(&relation, &index.name)?,
        None => cx.must_own(&relation)?,
    }
    let mut renewed = Vec::new();
    for old in relation.indexes.iter().filter(chosen) {
        let mut new = IndexDef::clone(old);
        // What kept it from being kept may be gone; if not, that is the error here.
        new.invalid = None;
        new.storage = IndexId(cx.new_oid()?);
        if !old.computed.is_empty()
            && index_expression_columns::must_wait_for_rows(&relation, cx).await?
        {
            index_expression_columns::add_expression_columns(&mut new, cx).await?;
            cx.state
                .defer_index_build(index_expression_columns::PendingIndexBuild {
                    index: new,
                    old: Some(Arc::clone(old)),
                });
            continue;
        }
        let new = Arc::new(new);
        cx.attach(&relation, &new).await?;
        renewed.push((Arc::clone(old), new));
    }
    // Nobody uses the old ones while they go: who holds the table has planned with them.
    let locked = match concurrently {
        true => lock_when_free(table, cx).await?,
        false => cx
            .lock_table(table, TableLock::AccessExclusive)
            .await?
            .is_some(),
    };
    if !locked {
        return Err(gone());
    }
    for (old, new) in renewed {
        cx.update_index(relation.schema, IndexDef::clone(&new))
            .await?;
        cx.state.detached(Arc::clone(&storage), old);
    }
    Ok(())
}

/// Renames an index, and the constraint it serves.
pub(super) async fn rename(oid: RelationId, new: &str, cx: &mut DdlContext<'_>) -> Result<()> {
    let new = new.to_string();
    let gone = || {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            "the index was dropped meanwhile",
        )
    };
    let table = cx
        .catalog()?
        .index_tables
        .get(&oid)
        .copied()
        .ok_or_else(gone)?;
    let (table, _) = cx
        .lock_table(table, TableLock::AccessExclusive)
        .await?
        .ok_or_else(gone)?;
    let old = table.indexes.iter().find(|i| i.oid == oid);
    cx.must_own_index(&table, &old.ok_or_else(gone)?.name)?;
    if cx
        .catalog()?
        .names
        .contains_key(&(table.schema, new.clone()))
    {
        return Err(name_taken(&new));
    }
    let index = table
        .indexes
        .iter()
        .find(|i| i.oid == oid)
        .ok_or_else(gone)?;
    let mut renamed = IndexDef::clone(index);
    renamed.name.clone_from(&new);
    cx.update_index(table.schema, renamed).await?;
    let mut changed = Relation::clone(&table);
    let mut touched = false;
    for constraint in &mut changed.constraints {
        use logstead_sql_catalog::ConstraintKind::{PrimaryKey, Unique};
        if matches!(constraint.kind, PrimaryKey(i) | Unique(i) if i == oid) {
            let mut copy = logstead_sql_catalog::Constraint::clone(constraint);
            copy.name.clone_from(&new);
            *constraint = Arc::new(copy);
            touched = true;
        }
    }
    if touched {
        cx.update_relation(changed).await?;
    }
    Ok(())
}
