//! CREATE and ALTER DOMAIN.
//!
//! A new rule is asked of all values that are stored: of every column of the domain, and of the domains made over it,
//! whose tables nobody writes from then until the transaction ends. So nobody stores a value by a plan that does not
//! know the rule.

use super::choose_name::free_name;
use super::expressions::{bound, bound_check, bound_default, check_text, default_text};
use super::object_address::{name_of, unexpected_object};
use super::relation_attributes::named_collation;
use super::types::{add, array_name, free, put};
use super::{DdlContext, table_rewrite};
use crate::pg_catalog::definitions::with_value;
use crate::types::altered_domain;
use logstead_engine::TableLock;
use logstead_sql_catalog::{Catalog, Relation};
use logstead_sql_parse as parse;
use logstead_sql_parse::ast::{
    AlterDomainAction, AlterDomainStmt, Constraint, ConstraintKind, CreateDomainStmt, Expr,
    RenameStmt,
};
use logstead_sql_plan::bind::value_relation;
use logstead_sql_plan::{Bound, walk};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::{
    self, DOMAIN_BITS, Domain, DomainCheck, UserKind, UserType, of_users,
};
use logstead_sql_types::value::{Oid, SqlType};
use logstead_types::SqlState;
use std::sync::Arc;

fn wrong_type(message: String) -> SqlError {
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

/// The error for a constraint that a domain cannot have.
fn not_for_domains(kind: &ConstraintKind) -> SqlError {
    let what = match kind {
        ConstraintKind::Unique(_) => "unique",
        ConstraintKind::PrimaryKey(_) => "primary key",
        ConstraintKind::Foreign { .. } => "foreign key",
        ConstraintKind::Exclusion(_) => "exclusion",
        ConstraintKind::AttrDeferrable
        | ConstraintKind::AttrNotDeferrable
        | ConstraintKind::AttrDeferred
        | ConstraintKind::AttrImmediate => {
            return SqlError::unsupported_text(
                "specifying constraint deferrability not supported for domains",
            );
        }
        _ => return SqlError::unsupported("GENERATED of a domain"),
    };
    syntax(format!("{what} constraints not possible for domains"))
}

/// The condition of a CHECK, which a domain may have.
fn check_of(constraint: &Constraint) -> Result<&Expr> {
    match &constraint.kind {
        ConstraintKind::Check {
            is_no_inherit: true,
            ..
        } => Err(SqlError::new(
            SqlState::INVALID_OBJECT_DEFINITION,
            "check constraints for domains cannot be marked NO INHERIT",
        )),
        ConstraintKind::Check { expr, .. } => Ok(expr),
        kind => Err(not_for_domains(kind)),
    }
}

/// What the constraints of CREATE DOMAIN say.
#[derive(Default)]
struct Rules<'a> {
    default: Option<&'a Expr>,
    null: Option<bool>,
    checks: Vec<&'a Constraint>,
}

impl<'a> Rules<'a> {
    fn of(stmt: &'a CreateDomainStmt) -> Result<Rules<'a>> {
        let mut rules = Rules::default();
        for constraint in &stmt.constraints {
            match &constraint.kind {
                ConstraintKind::Default(default) => {
                    if rules.default.replace(default).is_some() {
                        return Err(syntax("multiple default expressions"));
                    }
                }
                kind @ (ConstraintKind::Null | ConstraintKind::NotNull) => {
                    let null = matches!(kind, ConstraintKind::Null);
                    if rules
                        .null
                        .replace(null)
                        .is_some_and(|before| before != null)
                    {
                        return Err(syntax("conflicting NULL/NOT NULL constraints"));
                    }
                }
                _ => {
                    check_of(constraint)?;
                    rules.checks.push(constraint);
                }
            }
        }
        Ok(rules)
    }
}

/// The type that a domain is to be made over, and the collation that is said.
fn base_of(stmt: &CreateDomainStmt, cx: &mut DdlContext<'_>) -> Result<(SqlType, Option<Oid>)> {
    let over = cx.sql_type(&stmt.type_name)?;
    let known = cx.catalog()?.types.type_info(over.oid);
    if known.is_none_or(|t| t.kind == 'p') {
        return Err(wrong_type(format!(
            "\"{}\" is not a valid base type for a domain",
            cx.catalog()?.types.type_name(over.oid)
        )));
    }
    let types = &cx.catalog()?.types;
    let base = types.base_type(over);
    if user::is_composite(types.element_of(base.oid).unwrap_or(base.oid)) {
        return Err(SqlError::unsupported("a domain over a composite type"));
    }
    let named = (stmt.coll_clause.as_ref()).map(|c| named_collation(c.name.as_slice(), over, cx));
    Ok((over, named.transpose()?))
}

/// Runs CREATE DOMAIN.
pub(super) async fn create(stmt: &CreateDomainStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let (schema, name) = cx.new_type_name(&stmt.domainname)?;
    free(&schema.name, schema.oid, &name, cx)?;
    let (over, collation) = base_of(stmt, cx)?;
    let rules = Rules::of(stmt)?;
    cx.must_use_types(of_users(over.oid))?;
    let catalog = cx.catalog()?;
    let base = catalog.types.base_type(over);
    let of_over = catalog.types.get(over.oid).and_then(|ty| ty.domain());
    let mut domain = Domain {
        over,
        base,
        collation: collation.unwrap_or_else(|| of_over.map_or(0, |domain| domain.collation)),
        not_null: rules.null == Some(false),
        default: match rules.default {
            Some(expr) => default(&name, base, expr, cx)?,
            None => of_over.and_then(|domain| domain.default.clone()),
        },
        checks: Vec::new(),
    };
    for check in rules.checks {
        let check = new_check(&name, &domain, check, cx)?;
        domain.checks.push(check.0);
    }
    let (oid, csn) = cx.store.new_type_oid(cx.worker, DOMAIN_BITS)?;
    cx.depends_on(csn);
    let ty = UserType {
        oid,
        array_name: array_name(&schema.name, &name, oid, cx)?,
        name,
        schema: schema.oid,
        schema_name: schema.name.clone(),
        kind: UserKind::Domain(Box::new(domain)),
    };
    add(ty, cx).await
}

/// The text under which a domain's DEFAULT is stored.
fn default(
    name: &str,
    base: SqlType,
    expr: &Expr,
    cx: &mut DdlContext<'_>,
) -> Result<Option<String>> {
    let text = default_text(expr, base, cx)?;
    if text.is_some() {
        // Of a column as the domain would be, it has to be right.
        let catalog = cx.catalog()?;
        let mut relation = value_relation(SqlType::of(base.oid), &catalog.types);
        for column in &mut relation.columns {
            column.name = name.to_owned();
            column.default.clone_from(&text);
        }
        let bound = bound_default(cx, &catalog, &relation, 0)?;
        cx.may_define(bound)?;
    }
    Ok(text)
}

/// A CHECK as it is kept, and the condition.
fn new_check(
    name: &str,
    domain: &Domain,
    new: &Constraint,
    cx: &mut DdlContext<'_>,
) -> Result<(DomainCheck, Bound<logstead_sql_plan::expr::Expr>)> {
    let written = check_of(new)?;
    let catalog = cx.catalog()?;
    let taken = |wanted: &str| domain.checks.iter().any(|c| c.name == wanted);
    let check_name = match &new.conname {
        Some(wanted) => {
            let wanted = wanted.to_string();
            if taken(&wanted) {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_OBJECT,
                    format!("constraint \"{wanted}\" for domain \"{name}\" already exists"),
                ));
            }
            wanted
        }
        None => free_name(name, None, "check", taken),
    };
    let relation = value_relation(domain.over, &catalog.types);
    let condition = bound_check(cx, &catalog, &relation, written)?;
    if condition.describe(walk::has_subquery) {
        return Err(SqlError::unsupported(
            "a function that is more than an expression in the check of a domain",
        ));
    }
    let text = check_text(cx, &catalog, &relation, written);
    let check = DomainCheck {
        oid: cx.new_oid()?,
        name: check_name,
        text: with_value(&text),
        validated: !new.skip_validation,
    };
    Ok((check, condition))
}

fn no_check(check: &str, name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("constraint \"{check}\" of domain \"{name}\" does not exist"),
    )
}

/// Runs ALTER DOMAIN, but for what it shares with ALTER TYPE.
pub(super) async fn alter(stmt: &AlterDomainStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let (ty, mut domain) = altered_domain(&stmt.type_name, cx).await?;
    match &stmt.action {
        AlterDomainAction::Default(None) => domain.default = None,
        AlterDomainAction::Default(Some(expr)) => {
            domain.default = default(&ty.name, domain.base, expr, cx)?;
        }
        AlterDomainAction::DropNotNull if !domain.not_null => return Ok(()),
        AlterDomainAction::DropNotNull => domain.not_null = false,
        AlterDomainAction::SetNotNull if domain.not_null => return Ok(()),
        AlterDomainAction::SetNotNull => {
            for (table, position) in columns_of(ty.oid, cx).await? {
                check_rows(cx, &table, position, None).await?;
            }
            domain.not_null = true;
        }
        AlterDomainAction::AddConstraint(new) => {
            let (check, condition) = new_check(&ty.name, &domain, new, cx)?;
            if check.validated {
                let condition = cx.may_run(condition)?;
                for (table, position) in columns_of(ty.oid, cx).await? {
                    check_rows(cx, &table, position, Some(&condition)).await?;
                }
            }
            domain.checks.push(check);
        }
        // Nothing depends on a CHECK.
        AlterDomainAction::DropConstraint {
            name, missing_ok, ..
        } => {
            let before = domain.checks.len();
            domain.checks.retain(|c| *c.name != **name);
            if domain.checks.len() == before {
                if !missing_ok {
                    return Err(no_check(name, &ty.name));
                }
                cx.notice(
                    SqlState::SUCCESSFUL_COMPLETION,
                    format!(
                        "constraint \"{name}\" of domain \"{}\" does not exist, skipping",
                        ty.name
                    ),
                );
                return Ok(());
            }
        }
        AlterDomainAction::ValidateConstraint(name) => {
            let found = domain.checks.iter_mut().find(|c| *c.name == **name);
            let check = found.ok_or_else(|| no_check(name, &ty.name))?;
            if check.validated {
                return Ok(());
            }
            check.validated = true;
            let catalog = cx.catalog()?;
            let relation = value_relation(domain.over, &catalog.types);
            let condition = parse::parse_expr(&check.text)?;
            let condition = bound(cx, &catalog, &relation, &condition, "CHECK")?;
            let condition = cx.may_run(condition)?;
            for (table, position) in columns_of(ty.oid, cx).await? {
                check_rows(cx, &table, position, Some(&condition)).await?;
            }
        }
    }
    put_domain(&ty, domain, cx).await
}

/// Stores a domain that has changed.
async fn put_domain(ty: &UserType, domain: Domain, cx: &mut DdlContext<'_>) -> Result<()> {
    let mut changed = UserType::clone(ty);
    changed.kind = UserKind::Domain(Box::new(domain));
    cx.lock_types_of_type(&changed).await?;
    put(&changed, cx).await
}

/// Runs ALTER DOMAIN ... RENAME CONSTRAINT.
pub(super) async fn rename_constraint(stmt: &RenameStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let from = stmt.subname.as_deref().ok_or_else(unexpected_object)?;
    let (ty, mut domain) = altered_domain(name_of(&stmt.object)?, cx).await?;
    let to = stmt.newname.to_string();
    let shown = cx.format_type_bare(ty.oid)?;
    let told = |name: &str, code, what: &str| {
        SqlError::new(
            code,
            format!("constraint \"{name}\" for domain {shown} {what}"),
        )
    };
    let Some(at) = domain.checks.iter().position(|c| c.name == from) else {
        return Err(told(from, SqlState::UNDEFINED_OBJECT, "does not exist"));
    };
    if domain.checks.iter().any(|c| c.name == to) {
        return Err(told(&to, SqlState::DUPLICATE_OBJECT, "already exists"));
    }
    if let Some(check) = domain.checks.get_mut(at) {
        check.name = to;
    }
    put_domain(&ty, domain, cx).await
}

/// The domain and all that are made over it.
fn family(catalog: &Catalog, domain: TypeId) -> Vec<TypeId> {
    let mut family = vec![domain];
    let mut at = 0;
    while let Some(of) = family.get(at).copied() {
        at += 1;
        for ty in catalog.dependent_types(of) {
            if ty.domain().is_some_and(|d| d.over.oid == of) && !family.contains(&ty.oid) {
                family.push(ty.oid);
            }
        }
    }
    family
}

/// All columns that hold the domain's values, in tables that nobody writes from now on.
async fn columns_of(
    domain: TypeId,
    cx: &mut DdlContext<'_>,
) -> Result<Vec<(Arc<Relation>, usize)>> {
    loop {
        let catalog = cx.catalog()?;
        let family = family(&catalog, domain);
        // One that is not committed yet has been waited for: both hold the type.
        let own = cx.state.temporary().map(|own| own.schema_name().to_owned());
        let others = &cx.store.temporary_types;
        if family.iter().any(|ty| others.stored(*ty, own.as_deref())) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot access temporary tables of other sessions",
            ));
        }
        let mut found = Vec::new();
        let mut relations = catalog.relations_holding(domain);
        relations.retain(|r| r.has_rows());
        for relation in relations {
            for (position, column) in relation.columns.iter().enumerate() {
                let Some(declared) = column.domain.filter(|_| !column.dropped) else {
                    continue;
                };
                if family.contains(&declared) {
                    found.push((relation.oid, position));
                } else if holds_elements(&catalog, declared, &family) {
                    return Err(SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        format!(
                            "cannot alter type \"{}\" because column \"{}.{}\" uses it",
                            catalog.types.type_name(domain),
                            relation.name,
                            column.name
                        ),
                    ));
                }
            }
        }
        for (table, _) in &found {
            cx.lock_table(*table, TableLock::Share).await?;
        }
        if cx.catalog()?.version == catalog.version {
            let relation =
                |(table, position)| Some((catalog.relations.get(&table)?.clone(), position));
            return Ok(found.into_iter().filter_map(relation).collect());
        }
    }
}

/// True if values of a declared type are arrays of values of these domains.
fn holds_elements(catalog: &Catalog, declared: TypeId, family: &[TypeId]) -> bool {
    let mut at = declared;
    loop {
        match user::domain_in(at) {
            Some(element) if element != at => return family.contains(&element),
            Some(_) => match catalog.types.get(at).and_then(|t| t.domain()) {
                Some(domain) => at = domain.over.oid,
                None => return false,
            },
            None => return false,
        }
    }
}

/// Asks all values of a column: that they are not NULL, or a condition.
async fn check_rows(
    cx: &mut DdlContext<'_>,
    table: &Relation,
    position: usize,
    condition: Option<&logstead_sql_plan::expr::Expr>,
) -> Result<()> {
    let Some(column) = table.columns.get(position) else {
        return Ok(());
    };
    let (code, what) = match condition {
        None => (SqlState::NOT_NULL_VIOLATION, "null values"),
        Some(_) => (
            SqlState::CHECK_VIOLATION,
            "values that violate the new constraint",
        ),
    };
    if table_rewrite::every_value(cx, table, position, condition).await? {
        return Ok(());
    }
    Err(SqlError::new(
        code,
        format!(
            "column \"{}\" of table \"{}\" contains {what}",
            column.name, table.name
        ),
    )
    .table(&table.schema_name, &table.name)
    .column(&column.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_written_in_capitals_where_it_is_the_value() {
        assert_eq!(
            with_value("((value > 'value'::text) AND (values_ <> \"value\") AND (f(value)))"),
            "((VALUE > 'value'::text) AND (values_ <> \"value\") AND (f(VALUE)))"
        );
    }
}
