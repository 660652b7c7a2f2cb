//! CREATE VIEW: the query bound, its tables numbered, its columns fixed.

use super::columns::COLUMNS_MAX;
use super::expressions::with_planner;
use super::{DdlContext, storage_parameters};
use crate::find_dependents;
use crate::object_address::ObjectAddress;
use crate::relations::name_taken;
use crate::relations::word_of;
use logstead_engine::TableLock;
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::context::partial::ContextAdapter;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::options::boolean;
use logstead_sql_catalog::routine::stored_name;
use logstead_sql_catalog::text::{quote_ident, quote_literal};
use logstead_sql_catalog::without_session::WithoutSession;
use logstead_sql_catalog::{
    Catalog, Column, Relation, RelationKind, View, ViewObject, ViewSource, source_name,
};
use logstead_sql_parse as parse;
use logstead_sql_parse::ast::{
    self, ColumnRef, CommonTableExpr, DefElem, Expr, Name, NodeBox, Persistence, RangeVar,
    RelationName, ResTarget, SelectBody, SelectCore, SelectStmt, Stmt, TableRef, TextRange,
    ViewCheckOption, ViewStmt, WithClause,
};
use logstead_sql_plan::OutputColumn;
use logstead_sql_plan::bind::{self, ViewQuery};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, OutputStyle, oid, text_io, user};
use logstead_sql_types::{RelationId, TypeId};
use logstead_types::SqlState;
use std::sync::Arc;

/// The query of a new view, bound; its tables are locked.
pub(super) async fn bound_query(
    query: &ast::SelectStmt,
    materialized: bool,
    cx: &mut DdlContext<'_>,
) -> Result<(ViewQuery, Arc<logstead_sql_catalog::Catalog>)> {
    // One that changed while we waited is looked at again.
    loop {
        let catalog = cx.catalog()?;
        let text = cx.text;
        let bound = with_planner(cx, &catalog, |plan| {
            bind::bind_view_query(query, text, plan)
        })?;
        let reads = bound.tables().read.clone();
        // Privileges to what it reads are asked for when it is read.
        let bound = cx.may_define(bound)?;
        if bound.writes {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                match materialized {
                    true => "materialized views must not use data-modifying statements in WITH",
                    false => "views must not contain data-modifying statements in WITH",
                },
            ));
        }
        for (_, routine, _) in &bound.routines {
            super::routines::lock_routine(*routine, cx).await?;
        }
        for read in &reads {
            cx.lock_storage(read.storage, TableLock::AccessShare)
                .await?;
        }
        if cx.catalog()?.version == catalog.version {
            return Ok((bound, catalog));
        }
    }
}

/// The query of a recursive view, `WITH RECURSIVE name (columns) AS (query) SELECT columns FROM name`
/// (`makeRecursiveViewSelect`), and what stands before and after the text of what was written.
fn recursive(stmt: &ViewStmt) -> Option<(SelectStmt, (String, String))> {
    let RelationName::Named { name, .. } = &stmt.view.name else {
        return None;
    };
    if !stmt.recursive {
        return None;
    }
    let location = stmt.query.location;
    let column = |name: &Name| ResTarget {
        name: None,
        indirection: Vec::new(),
        val: Some(Expr::ColumnRef(Box::new(ColumnRef {
            fields: [name.clone()].into_iter().collect(),
            star: false,
            location,
        }))),
        location,
    };
    let from = TableRef::RangeVar(Box::new(RangeVar {
        name: RelationName::Named {
            catalog: None,
            schema: None,
            name: name.clone(),
        },
        inh: true,
        persistence: Persistence::Permanent,
        alias: None,
        location,
    }));
    let with = WithClause {
        recursive: true,
        ctes: vec![CommonTableExpr {
            ctename: name.clone(),
            aliascolnames: stmt.aliases.clone(),
            materialized: None,
            ctequery: NodeBox::new(Stmt::Select(stmt.query.clone())),
            search_clause: None,
            cycle_clause: None,
            location,
        }],
        location,
    };
    let query = SelectStmt {
        with_clause: Some(Box::new(with)),
        body: SelectBody::Select(Box::new(SelectCore {
            target_list: stmt.aliases.iter().map(column).collect(),
            from_clause: vec![from],
            location,
            ..SelectCore::default()
        })),
        sort_clause: Vec::new(),
        limit: None,
        locking_clause: Vec::new(),
        as_of: None,
        location,
    };
    let names: Vec<String> = stmt.aliases.iter().map(|name| quote_ident(name)).collect();
    let (name, names) = (quote_ident(name), names.join(", "));
    let before = format!("WITH RECURSIVE {name} ({names}) AS (");
    Some((query, (before, format!(") SELECT {names} FROM {name}"))))
}

/// The text of the query with its tables by number, and what the numbers mean. `around` is what is put before and
/// after it.
pub(super) fn numbered(
    query: &ast::SelectStmt,
    range: TextRange,
    around: Option<(&str, &str)>,
    bound: &ViewQuery,
    text: &str,
    lookup: NameLookup<'_>,
) -> Result<(String, Vec<ViewSource>)> {
    let types = logstead_sql_catalog::type_name::types_in(query, lookup);
    let range = range.bytes();
    let range = range.ok_or_else(|| SqlError::internal("a query that stands nowhere"))?;
    numbered_text(
        range,
        &types,
        Vec::new(),
        around,
        bound,
        text,
        lookup.catalog,
    )
}

/// The same of what stands at a place of the statement, users' types in it among `types`, behind the sources that
/// `sources` has already. `around` is what is put before and after it.
pub(super) fn numbered_text(
    (start, end): (usize, usize),
    types: &[(logstead_sql_parse::ast::Location, TypeId)],
    mut sources: Vec<ViewSource>,
    around: Option<(&str, &str)>,
    bound: &ViewQuery,
    text: &str,
    catalog: &Catalog,
) -> Result<(String, Vec<ViewSource>)> {
    let mut places: Vec<(usize, usize, String)> = Vec::new();
    let nowhere = || SqlError::internal("a view's part has no place");
    let place = |location| parse::name_range(text, location).ok_or_else(nowhere);
    for (location, ty) in types {
        let (from, to) = place(*location)?;
        places.push((from, to, user::number_text(*ty)));
    }
    for (location, relation, used) in &bound.sources {
        let (from, to) = place(*location)?;
        places.push((from, to, source_name(sources.len())));
        let columns = relation.columns.iter().enumerate();
        sources.push(ViewSource {
            object: ViewObject::Relation(relation.oid),
            schema: relation.schema_name.clone(),
            name: relation.name.clone(),
            columns: columns
                .filter(|(_, c)| !c.dropped)
                .map(|(at, c)| (at, c.name.clone()))
                .collect(),
            used: used.clone(),
        });
    }
    for (location, routine, name) in &bound.routines {
        let (from, to) = place(*location)?;
        places.push((from, to, stored_name(*routine, name)));
    }
    let without_session = WithoutSession {
        types: Some(catalog.types.lookup(&[])),
    };
    let names = ContextAdapter(&without_session);
    // A user's type by its number: the view depends on it, and goes on when it gets another name.
    let style = OutputStyle {
        names: Some(&names),
        ..OutputStyle::UTC
    };
    for (location, ty, value) in &bound.fixed {
        let (from, to) = place(*location)?;
        let style = OutputStyle {
            types_by_number: ty.oid == oid::REGTYPE,
            ..style
        };
        let kept = text_io::to_text(value, *ty, &style)?;
        places.push((from, to, quote_literal(&kept)));
    }
    sources.extend(
        bound
            .constants(catalog)
            .into_iter()
            .map(ViewSource::constant),
    );
    sources.extend(bound.relied.iter().copied().map(ViewSource::key));
    places.sort_unstable();
    let mut out = String::new();
    let mut at = start;
    for (from, to, name) in places {
        let between = text.get(at..from).filter(|_| to <= end);
        out.push_str(between.ok_or_else(|| SqlError::internal("a view's table has no place"))?);
        out.push_str(&name);
        at = to;
    }
    out.push_str(text.get(at..end).unwrap_or_default());
    if let Some((before, after)) = around {
        out = format!("{before}{out}{after}");
    }
    Ok((out, sources))
}

/// A column of a view.
fn column(name: String, output: &OutputColumn, catalog: &Catalog) -> Column {
    Column {
        name,
        ty: bind::view_column_type(output.ty),
        not_null: false,
        default: None,
        identity: None,
        generated: false,
        sequence: None,
        dropped: false,
        domain: output.domain_in(catalog),
        missing: Datum::Null,
    }
}

/// The columns of a view: as the statement names them, else as the query does.
pub(super) fn columns(
    named: &[String],
    outputs: &[OutputColumn],
    too_many: &str,
    lookup: NameLookup<'_>,
) -> Result<Vec<Column>> {
    if named.len() > outputs.len() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, too_many));
    }
    let columns: Vec<Column> = outputs
        .iter()
        .enumerate()
        .map(|(i, output)| {
            let name = named.get(i).unwrap_or(&output.name).clone();
            column(name, output, lookup.catalog)
        })
        .collect();
    if columns.len() > COLUMNS_MAX {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("tables can have at most {COLUMNS_MAX} columns"),
        ));
    }
    let mut seen = std::collections::HashSet::new();
    for column in &columns {
        super::columns::refuse_pseudo(&column.name, column.ty, lookup.types())?;
        if !seen.insert(column.name.as_str()) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{}\" specified more than once", column.name),
            ));
        }
    }
    Ok(columns)
}

/// Options of a view, `name=value`, in the order of the statement.
pub(super) fn parameters(options: &[DefElem]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for option in options {
        let name = &*option.name;
        let value = storage_parameters::value_of(option)?.to_lowercase();
        let known = ["security_barrier", "security_invoker", "check_option"];
        if !known.contains(&name) {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("unrecognized parameter \"{name}\""),
            ));
        }
        if name != "check_option" && boolean(&value).is_none() {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid value for boolean option \"{name}\": {value}"),
            ));
        }
        if name == "check_option" && !["local", "cascaded"].contains(&value.as_str()) {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid value for enum option \"check_option\": {value}"),
            )
            .detail("Valid values are \"local\" and \"cascaded\"."));
        }
        all.push(format!("{name}={value}"));
    }
    Ok(all)
}

/// The check option among a view's options.
pub(super) fn check_of(options: &[String]) -> Option<parse::CheckOption> {
    options.iter().rev().find_map(|o| match o.as_str() {
        "check_option=local" => Some(parse::CheckOption::Local),
        "check_option=cascaded" => Some(parse::CheckOption::Cascaded),
        _ => None,
    })
}

/// Options, WITH CHECK OPTION among them.
fn options(stmt: &ViewStmt) -> Result<Vec<String>> {
    let mut all = parameters(&stmt.options)?;
    let check = match stmt.with_check_option {
        ViewCheckOption::None => return Ok(all),
        ViewCheckOption::Local => parse::CheckOption::Local,
        ViewCheckOption::Cascaded => parse::CheckOption::Cascaded,
    };
    all.push(format!("check_option={}", check.word()));
    Ok(all)
}

/// Does the query of CREATE VIEW read temporary relations? The view is temporary then.
pub(super) async fn reads_temporary(stmt: &ViewStmt, cx: &mut DdlContext<'_>) -> Result<bool> {
    let recursive = recursive(stmt);
    let query = recursive.as_ref().map_or(&*stmt.query, |(query, _)| query);
    let (bound, catalog) = bound_query(query, false, cx).await?;
    Ok(bound.reads_temporary(&catalog))
}

/// Runs CREATE VIEW.
pub(super) async fn create(stmt: &ViewStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    if stmt.view.persistence == Persistence::Unlogged {
        return Err(SqlError::unsupported_text(
            "views cannot be unlogged because they do not have storage",
        ));
    }
    let recursive = recursive(stmt);
    let query = recursive.as_ref().map_or(&*stmt.query, |(query, _)| query);
    if query.into_clause().is_some() {
        let message = "views must not contain SELECT INTO";
        return Err(SqlError::unsupported_text(message));
    }
    let around = recursive
        .as_ref()
        .map(|(_, (before, after))| (before.as_str(), after.as_str()));
    let (bound, catalog) = bound_query(query, false, cx).await?;
    let reads_temporary = bound.reads_temporary(&catalog);
    let is_temporary = stmt.view.persistence == Persistence::Temporary;
    let at = stmt.view.location.character(cx.text);
    let (schema, name) = cx.new_name_at(&stmt.view, is_temporary || reads_temporary, at)?;
    if reads_temporary && !is_temporary {
        let message = format!("view \"{name}\" will be a temporary view");
        cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
    }
    let present = cx.catalog()?;
    let columns = columns(
        &crate::choose_name::strings(&stmt.aliases),
        &bound.columns,
        "CREATE VIEW specifies more column names than columns",
        cx.lookup(&present),
    )?;
    let options = options(stmt)?;
    let check = check_of(&options);
    let range = stmt.query_range;
    let (query, sources) = numbered(query, range, around, &bound, cx.text, cx.lookup(&catalog))?;
    let catalog = cx.catalog()?;
    let there = catalog.names.get(&(schema.oid, name.clone())).copied();
    if let Some(oid) = there {
        if !stmt.replace {
            return Err(name_taken(&name));
        }
        return replace(oid, &name, columns, options, (query, sources, check), cx).await;
    }
    let oid = RelationId::new(cx.new_oid()?);
    let view = View::new(cx.new_oid()?, query, sources, check);
    // Reads back as it was meant, before anybody relies on it.
    view.tree()?;
    let relation = Relation {
        oid,
        name,
        schema: schema.oid,
        schema_name: schema.name.clone(),
        kind: RelationKind::View(Arc::new(view)),
        columns,
        indexes: Vec::new(),
        constraints: Vec::new(),
        storage: cx.store.storage_for(oid.get()),
        schema_version: 0,
        security: logstead_sql_catalog::RowSecurity::default(),
        distribution: Default::default(),
        shared_names: Default::default(),
    };
    refuse_check(&relation, cx)?;
    crate::relations::make_storage(cx, &relation)?;
    if !options.is_empty() {
        cx.state.push(CatalogChange::Options(oid, options));
    }
    cx.create_relation(relation).await.map(drop)
}

fn changed(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

/// OR REPLACE: the columns that are there stay as they are, new ones come after them.
async fn replace(
    oid: RelationId,
    name: &str,
    mut columns: Vec<Column>,
    options: Vec<String>,
    (query, sources, check): (String, Vec<ViewSource>, Option<parse::CheckOption>),
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let not_a_view = || {
        SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{name}\" is not a view"),
        )
    };
    let is_view = |r: &Relation| word_of(&r.kind) == Some("view");
    if !cx
        .catalog()?
        .relations
        .get(&oid)
        .is_some_and(|r| is_view(r))
    {
        return Err(not_a_view());
    }
    let Some((old, _)) = cx.lock_table(oid, TableLock::AccessExclusive).await? else {
        return Err(not_a_view());
    };
    let RelationKind::View(view) = &old.kind else {
        return Err(not_a_view());
    };
    cx.must_own(&old)?;
    if columns.len() < old.columns.len() {
        return Err(changed("cannot drop columns from view".to_owned()));
    }
    for (column, was) in columns.iter_mut().zip(&old.columns) {
        if column.name != was.name {
            return Err(changed(format!(
                "cannot change name of view column \"{}\" to \"{}\"",
                was.name, column.name
            ))
            .hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."));
        }
        if column.declared() != was.declared() {
            return Err(changed(format!(
                "cannot change data type of view column \"{}\" from {} to {}",
                was.name,
                cx.format_type(was.declared())?,
                cx.format_type(column.declared())?
            )));
        }
        column.default.clone_from(&was.default);
    }
    let new = View::new(view.rule, query, sources, check);
    new.tree()?;
    let mut relation = Relation::clone(&old);
    relation.columns = columns;
    relation.kind = RelationKind::View(Arc::new(new));
    refuse_check(&relation, cx)?;
    cx.state.push(CatalogChange::Options(oid, options));
    cx.update_relation(relation).await.map(drop)
}

/// 0A000 for WITH CHECK OPTION on a view that nothing is written through.
pub(super) fn refuse_check(relation: &Relation, cx: &mut DdlContext<'_>) -> Result<()> {
    if !matches!(&relation.kind, RelationKind::View(view) if view.check.is_some()) {
        return Ok(());
    }
    let catalog = cx.catalog()?;
    let relation = Arc::new(relation.clone());
    with_planner(cx, &catalog, |plan| {
        bind::check_option_allowed(&relation, plan)
    })
}

/// 0A000 for a column that a view reads: its type stays.
pub(super) fn refuse_readers(
    table: &Relation,
    position: usize,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let readers = catalog.dependent_relations(table.oid).into_iter();
    let readers = readers.filter_map(|r| match &r.kind {
        RelationKind::View(view) | RelationKind::Materialized(view, _)
            if view.reads(table.oid, Some(position)) =>
        {
            Some((view.rule, r))
        }
        _ => None,
    });
    let Some((_, first)) = readers.min_by_key(|(rule, _)| *rule) else {
        return Ok(());
    };
    let label =
        find_dependents::describe(&catalog, cx.search_path, ObjectAddress::Relation(first.oid));
    let column = table.columns.get(position).map_or("?", |c| c.name.as_str());
    Err(SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "cannot alter type of a column used by a view or rule",
    )
    .detail(format!(
        "rule _RETURN on {label} depends on column \"{column}\""
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recursive_view_is_a_query_around_its_text() -> Result<()> {
        let text = "CREATE RECURSIVE VIEW s.v (a, \"B\") AS SELECT 1, 2";
        let stmt = parse::parse(text)?.remove(0).statement;
        let Stmt::View(stmt) = &**stmt else {
            panic!("{stmt:?}");
        };
        let Some((query, around)) = recursive(stmt) else {
            panic!("{stmt:?}");
        };
        let before = "WITH RECURSIVE v (a, \"B\") AS (".to_owned();
        let behind = ") SELECT a, \"B\" FROM v".to_owned();
        assert_eq!(around, (before, behind));
        assert!(query.with_clause.is_some_and(|with| with.recursive));
        Ok(())
    }
}
