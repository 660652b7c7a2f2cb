//! The text of a view: `pg_get_viewdef`, `pg_views`, `information_schema.views`.

use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::{Catalog, Relation, View, deparse};
use logstead_sql_plan::PlanContext;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::user::TypeSpelling;
use std::sync::Arc;

/// Which columns of a view can be changed through it; none if nothing can.
pub(crate) fn updatable(
    catalog: &Arc<Catalog>,
    relation: &Arc<Relation>,
    session: &dyn Context,
) -> Option<Vec<bool>> {
    let path = session.search_path();
    let rows_of = |_: &Relation| 1_000.0;
    let cx = PlanContext {
        catalog,
        search_path: &path,
        param_types: &[],
        parameters_fixed: true,
        session,
        variables: None,
        rows_of: &rows_of,
        evaluate: logstead_sql_exec::evaluate,
    };
    logstead_sql_plan::bind::updatable_columns(relation, &cx)
}

/// A condition of a policy as PostgreSQL shows it.
pub(super) fn policy(
    catalog: &Arc<Catalog>,
    relation: &Arc<Relation>,
    condition: &Arc<View>,
    session: &dyn Context,
) -> Result<String> {
    let path = session.search_path();
    let rows_of = |_: &Relation| 1_000.0;
    let cx = PlanContext {
        catalog,
        search_path: &path,
        param_types: &[],
        parameters_fixed: true,
        session,
        variables: None,
        rows_of: &rows_of,
        evaluate: logstead_sql_exec::evaluate,
    };
    let shown = logstead_sql_plan::bind::policy_shown(relation, condition, &cx)?;
    Ok(catalog.routines_shown(
        &deparse::normal(&shown, TypeSpelling::named(cx.lookup().types())),
        &path,
    ))
}

/// WHEN of a trigger as PostgreSQL shows it: columns with `old` and `new`.
pub(crate) fn trigger(
    catalog: &Arc<Catalog>,
    relation: &Arc<Relation>,
    condition: &Arc<View>,
    pretty: bool,
    session: &dyn Context,
) -> Result<String> {
    let path = session.search_path();
    let rows_of = |_: &Relation| 1_000.0;
    let cx = PlanContext {
        catalog,
        search_path: &path,
        param_types: &[],
        parameters_fixed: true,
        session,
        variables: None,
        rows_of: &rows_of,
        evaluate: logstead_sql_exec::evaluate,
    };
    let shown = logstead_sql_plan::bind::trigger_shown(relation, condition, &cx)?;
    Ok(catalog.routines_shown(
        &deparse::qualified(&shown, pretty, TypeSpelling::named(cx.lookup().types())),
        &path,
    ))
}

/// The query of a view as PostgreSQL shows it; none for any other relation.
pub(crate) fn text(
    catalog: &Arc<Catalog>,
    relation: &Relation,
    pretty: bool,
    session: &dyn Context,
) -> Result<Option<String>> {
    let Some(view) = relation.view() else {
        return Ok(None);
    };
    let path = session.search_path();
    let rows_of = |_: &Relation| 1_000.0;
    let cx = PlanContext {
        catalog,
        search_path: &path,
        param_types: &[],
        parameters_fixed: true,
        session,
        variables: None,
        rows_of: &rows_of,
        evaluate: logstead_sql_exec::evaluate,
    };
    let query = logstead_sql_plan::bind::view_query_shown(relation, view, &cx)?;
    let names: Vec<String> = relation.columns.iter().map(|c| c.name.clone()).collect();
    let text = deparse::definition(
        &query,
        &names,
        pretty,
        TypeSpelling::named(cx.lookup().types()),
    );
    let text = catalog.routines_shown(&text, &path);
    Ok(Some(format!("{text};")))
}
