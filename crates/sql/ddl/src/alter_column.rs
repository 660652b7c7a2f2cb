//! ALTER TABLE ... ALTER COLUMN. Locks and the order of a statement's actions are `alter_table`'s; whether a new
//! type copies the rows is decided here, the copying is `table_rewrite`'s.

use super::columns::{NewSequence, column_type};
use super::def_elem::conflicting_at;
use super::expressions::{bound, bound_default, column_default_text, eval, with_planner};
use super::{
    DdlContext, create_table, distribution, foreign_keys, generated, relation_attributes, sequence,
    table_rewrite,
};
use crate::index_expression_columns;
use crate::relations::{next_version, position_of};
use logstead_sql_catalog::text::quote_ident;
use logstead_sql_catalog::{ConstraintKind, IndexDef, Relation};
use logstead_sql_func::{self as func, CastContext};
use logstead_sql_parse as parse;
use logstead_sql_parse::ast::{
    self, AlterTableCmd as Cmd, ColumnTarget, IdentityOption, Name, TypeName,
};
use logstead_sql_plan::bind;
use logstead_sql_plan::expr::Expr;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeSpelling;
use logstead_sql_types::value::{SqlType, oid, user};
use logstead_types::SqlState;
use std::sync::Arc;

fn is_identity(name: &str, table: &Relation) -> SqlError {
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!(
            "column \"{name}\" of relation \"{}\" is an identity column",
            table.name
        ),
    )
}

fn is_generated(name: &str, table: &Relation) -> SqlError {
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!(
            "column \"{name}\" of relation \"{}\" is a generated column",
            table.name
        ),
    )
}

/// The column that an action alters.
fn column_of(cmd: &Cmd) -> Option<&Name> {
    Some(match cmd {
        Cmd::ColumnDefault { name, .. }
        | Cmd::DropNotNull(name)
        | Cmd::SetNotNull(name)
        | Cmd::DropExpression { name, .. }
        | Cmd::SetStorage { name, .. }
        | Cmd::SetCompression { name, .. }
        | Cmd::AddIdentity { name, .. }
        | Cmd::SetIdentity { name, .. }
        | Cmd::DropIdentity { name, .. } => name,
        Cmd::SetStatistics { column, .. } => match column {
            ColumnTarget::Name(name) => name,
            ColumnTarget::Number(_) => return None,
        },
        Cmd::AlterColumnType(alter) => &alter.name,
        _ => return None,
    })
}

/// Sets what is kept of a column and followed by nothing here; false for any other action.
pub(super) async fn set_attribute(
    cmd: &Cmd,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<bool> {
    let position = |name: &Name| position_of(table, name);
    match cmd {
        Cmd::SetStatistics { column, target } => {
            let ColumnTarget::Name(name) = column else {
                return Err(SqlError::unsupported_text(
                    "cannot refer to non-index column by number",
                ));
            };
            let position = position(name)?;
            relation_attributes::statistics(position, *target, table, cx).await?;
        }
        Cmd::SetStorage { name, storage } => {
            let code = relation_attributes::storage_code(storage)?;
            let position = position(name)?;
            relation_attributes::storage(position, code, table, cx).await?;
        }
        Cmd::SetCompression { name, method } => {
            let position = position(name)?;
            relation_attributes::compression(position, method, table, cx).await?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Runs an action on a column that is there; false for any other action.
pub(super) async fn execute(
    cmd: &Cmd,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<bool> {
    if set_attribute(cmd, table, cx).await? {
        return Ok(true);
    }
    match column_of(cmd) {
        Some(name) => {
            let name = name.to_string();
            alter(&name, cmd, table, cx).await.map(|()| true)
        }
        None => Ok(false),
    }
}

async fn alter(
    name: &str,
    cmd: &Cmd,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let position = position_of(table, name)?;
    let mut changed = Relation::clone(table);
    let column = changed
        .columns
        .get_mut(position)
        .ok_or_else(|| SqlError::internal("a column vanished"))?;
    match cmd {
        Cmd::SetNotNull(_) => {
            if !column.not_null {
                column.not_null = true;
                table_rewrite::validate_not_null(cx, table, position).await?;
            }
        }
        Cmd::DropNotNull(_) => {
            let in_key = table
                .indexes
                .iter()
                .any(|i| i.primary && i.mentions(table).contains(&position));
            if in_key {
                return Err(SqlError::new(
                    SqlState::INVALID_TABLE_DEFINITION,
                    format!("column \"{name}\" is in a primary key"),
                ));
            }
            if column.identity.is_some() {
                return Err(is_identity(name, table));
            }
            let told_by = cx.catalog()?.replica_identity(table).1;
            let told_by = table.indexes.iter().find(|i| Some(i.oid) == told_by);
            if told_by.is_some_and(|index| index.mentions(table).contains(&position)) {
                return Err(SqlError::new(
                    SqlState::INVALID_TABLE_DEFINITION,
                    format!("column \"{name}\" is in index used as replica identity"),
                ));
            }
            column.not_null = false;
        }
        Cmd::SetIdentity { options, .. } => {
            return change_identity(position, options, table, cx).await;
        }
        Cmd::DropExpression { missing_ok, .. } => {
            return generated::drop_expression(position, *missing_ok, table, cx).await;
        }
        Cmd::DropIdentity { missing_ok, .. } => {
            return drop_identity(position, *missing_ok, table, cx).await;
        }
        Cmd::ColumnDefault {
            default: Some(value),
            ..
        } => {
            if column.generated {
                return Err(is_generated(name, table));
            }
            if column.identity.is_some() {
                return Err(is_identity(name, table));
            }
            column.default = column_default_text(value, column.ty, column.domain.is_some(), cx)?;
            let catalog = cx.catalog()?;
            if column.default.is_some() {
                let bound = bound_default(cx, &catalog, &changed, position)?;
                cx.may_define(bound)?;
            }
        }
        Cmd::ColumnDefault { default: None, .. } => {
            if column.generated {
                return Err(is_generated(name, table)
                    .hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."));
            }
            if column.identity.is_some() {
                return Err(is_identity(name, table)
                    .hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."));
            }
            column.default = None;
        }
        Cmd::AlterColumnType(alter) => {
            let type_name = &alter.type_name;
            let declared = column_type(name, type_name, cx)?;
            let collation = { alter.coll_clause.as_ref() }
                .map(|clause| {
                    relation_attributes::named_collation(clause.name.as_slice(), declared, cx)
                })
                .transpose()?;
            let using = alter.raw_default.as_ref();
            set_type(name, position, type_name, using, table, cx).await?;
            return relation_attributes::set_collation(position, collation, table.oid, cx).await;
        }
        Cmd::AddIdentity {
            by_default,
            options,
            ..
        } => {
            if column.identity.is_some() {
                return Err(SqlError::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    format!(
                        "column \"{name}\" of relation \"{}\" is already an identity column",
                        table.name
                    ),
                ));
            }
            let wrong = |what: &str| {
                let message = format!("column \"{name}\" of relation \"{}\" {what}", table.name);
                SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            };
            let integer = matches!(column.ty.oid, oid::INT2 | oid::INT4 | oid::INT8);
            if column.domain.is_some() || !integer {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "identity column type must be smallint, integer, or bigint",
                ));
            }
            if !column.not_null {
                return Err(wrong(
                    "must be declared NOT NULL before identity can be added",
                ));
            }
            if column.default.is_some() {
                return Err(wrong("already has a default value"));
            }
            column.identity = Some(!*by_default);
            let owned = NewSequence {
                ty: column.ty.oid,
                options: options.clone(),
            };
            create_table::own_sequence(cx, table, column, &owned).await?;
        }
        _ => return Err(SqlError::internal("no action on a column")),
    }
    cx.update_relation(changed).await.map(drop)
}

fn is_no_identity(name: &str, table: &Relation) -> SqlError {
    SqlError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!(
            "column \"{name}\" of relation \"{}\" is not an identity column",
            table.name
        ),
    )
}

/// ALTER COLUMN ... SET GENERATED, SET of options of its sequence, RESTART.
async fn change_identity(
    position: usize,
    options: &[IdentityOption],
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let mut changed = Relation::clone(table);
    let column = changed.columns.get_mut(position);
    let column = column.ok_or_else(|| SqlError::internal("a column vanished"))?;
    if column.identity.is_none() {
        let name = column.name.clone();
        return Err(is_no_identity(&name, table));
    }
    let sequence = column.sequence;
    let (mut always, mut of_sequence) = (None, Vec::new());
    for option in options {
        match option {
            IdentityOption::Generated {
                by_default,
                location,
            } => {
                if always.replace(!*by_default).is_some() {
                    return Err(conflicting_at(*location, cx.text));
                }
            }
            IdentityOption::Sequence(option) => of_sequence.push(option.clone()),
        }
    }
    if always.is_some() {
        column.identity = always;
        cx.update_relation(changed).await?;
    }
    if of_sequence.is_empty() {
        return Ok(());
    }
    let catalog = cx.catalog()?;
    let sequence = sequence.and_then(|oid| catalog.relations.get(&oid));
    let sequence =
        sequence.ok_or_else(|| SqlError::internal("an identity column without a sequence"))?;
    sequence::alter_identity(sequence, &of_sequence, cx).await
}

/// DROP IDENTITY: the sequence goes, the numbers stay.
async fn drop_identity(
    position: usize,
    skip: bool,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let mut changed = Relation::clone(table);
    let Some(column) = changed.columns.get_mut(position) else {
        return Err(SqlError::internal("a column vanished"));
    };
    if column.identity.is_none() {
        let error = is_no_identity(&column.name, table);
        if !skip {
            return Err(error);
        }
        let message = format!("{}, skipping", error.fields().message);
        cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
        return Ok(());
    }
    column.identity = None;
    let sequence = column.sequence.take();
    cx.update_relation(changed).await?;
    match sequence {
        Some(sequence) => sequence::drop_owned(sequence, None, false, cx).await,
        None => Ok(()),
    }
}

/// Whether every stored value of the old type is one of the new type as it stands: rows and index entries stay.
fn keeps_bytes(old: SqlType, new: SqlType) -> bool {
    // Type modifiers of varchar and numeric count from 4.
    const HEADER: i32 = 4;
    let unlimited = new.typmod < HEADER;
    match (old.oid, new.oid) {
        (oid::TEXT | oid::VARCHAR, oid::TEXT) => true,
        (oid::TEXT, oid::VARCHAR) => unlimited,
        (oid::VARCHAR, oid::VARCHAR) => {
            unlimited || (old.typmod >= HEADER && new.typmod >= old.typmod)
        }
        (oid::NUMERIC, oid::NUMERIC) => {
            let scale = |ty: SqlType| (ty.typmod - HEADER) & 0x7ff;
            let precision = |ty: SqlType| (ty.typmod - HEADER) >> 16;
            unlimited
                || (old.typmod >= HEADER
                    && scale(old) == scale(new)
                    && precision(new) >= precision(old))
        }
        _ => false,
    }
}

async fn set_type(
    name: &str,
    position: usize,
    type_name: &TypeName,
    using: Option<&ast::Expr>,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let declared = column_type(name, type_name, cx)?;
    let domain = user::domain_in(declared.oid).map(|_| declared.oid);
    let ty = cx.catalog()?.types.base_type(declared);
    let old = table.columns.get(position).map_or(ty, |c| c.ty);
    let was = table.columns.get(position).and_then(|c| c.domain);
    // Without a modifier: that is for the assignment.
    let base = SqlType::of(ty.oid);
    let shown = SqlType::of(declared.oid);
    let is_generated = table.columns.get(position).is_some_and(|c| c.generated);
    if using.is_some() && is_generated {
        return Err(SqlError::new(
            SqlState::INVALID_COLUMN_DEFINITION,
            "cannot specify USING when altering type of generated column",
        )
        .detail(format!("Column \"{name}\" is a generated column.")));
    }
    if using.is_none()
        && ty.oid != old.oid
        && func::find_cast(old.oid, ty.oid, CastContext::Assignment).is_none()
    {
        let target = cx.format_type(declared)?;
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "column \"{name}\" cannot be cast automatically to type {}",
                cx.format_type(shown)?
            ),
        )
        .hint(format!(
            "You might need to specify \"USING {}::{target}\".",
            quote_ident(name)
        )));
    }
    if let Some(domain) = domain {
        cx.lock_domain(domain).await?;
    }
    super::view::refuse_readers(table, position, cx)?;
    super::policies::refuse_type_change(table, position, cx)?;
    generated::refuse_type_change(table, position)?;
    super::triggers::refuse_type_change(table, position, cx)?;
    if using.is_none() && ty == old && domain == was {
        return Ok(());
    }
    if let Some(expr) = using {
        let catalog = cx.catalog()?;
        let found = bound(cx, &catalog, table, expr, "USING")?.describe(Expr::ty);
        let fits = [ty.oid, declared.oid, oid::UNKNOWN].contains(&found.oid)
            || func::find_cast(found.oid, ty.oid, CastContext::Assignment).is_some();
        if !fits {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "result of USING clause for column \"{name}\" cannot be cast automatically to type {}",
                    cx.format_type(shown)?
                ),
            )
            .hint("You might need to add an explicit cast."));
        }
    }
    // The new value: the column (or the USING expression) cast to the type, then to its length as an assignment does.
    let catalog = cx.catalog()?;
    let written = match using {
        Some(expr) => logstead_sql_catalog::deparse::expr_to_sql(
            expr,
            TypeSpelling::named(cx.lookup(&catalog).types()),
        ),
        None => quote_ident(name),
    };
    let expr = parse::parse_expr(&format!("CAST(({written}) AS {})", cx.format_type(base)?))?;
    let catalog = cx.catalog()?;
    let source = bound(cx, &catalog, table, &expr, "USING")?;
    let mut changed = Relation::clone(table);
    changed.schema_version = next_version(table)?;
    if let Some(column) = changed.columns.get_mut(position) {
        column.ty = ty;
        column.domain = domain;
        if let Some(default) = &column.default
            && column.sequence.is_none()
            && !column.generated
        {
            let parsed = parse::parse_expr(default)?;
            column.default = column_default_text(&parsed, ty, domain.is_some(), cx)?;
        }
    }
    distribution::follow_type(&mut changed, position)?;
    if changed
        .columns
        .get(position)
        .is_some_and(|c| c.default.is_some())
    {
        let fits = match is_generated {
            true => generated::values(&changed, cx)
                .and_then(|bound| cx.may_define(bound))
                .map(drop),
            false => bound_default(cx, &catalog, &changed, position)
                .and_then(|bound| cx.may_define(bound))
                .map(drop),
        };
        let target = cx.format_type(shown)?;
        fits.map_err(|error| match error.code() {
            SqlState::DATATYPE_MISMATCH => SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "default for column \"{name}\" cannot be cast automatically to type {target}"
                ),
            ),
            _ => error,
        })?;
    }
    for constraint in &changed.constraints {
        if let ConstraintKind::Check(text) = &constraint.kind {
            let check = bound(cx, &catalog, &changed, &parse::parse_expr(text)?, "CHECK")?;
            cx.may_define(check)?;
        }
    }
    let mut reread = Vec::new();
    // What functions of users compute of the new values is another thing.
    let mut outdated: Vec<Arc<IndexDef>> = Vec::new();
    for index in &mut changed.indexes {
        let computed = index.computed.iter().flatten();
        let takes_row = { computed }
            .filter_map(|at| table.columns.get(*at))
            .any(|column| column.takes_row(table));
        if !takes_row && (index.is_plain() || !index.mentions(table).contains(&position)) {
            continue;
        }
        match index.computed.is_empty() {
            true if cx.state.is_stale(index.oid) => {}
            true => reread.push(index.oid),
            false => outdated.push(Arc::clone(index)),
        }
    }
    for oid in &reread {
        let Some(at) = changed.indexes.iter().position(|i| i.oid == *oid) else {
            continue;
        };
        let mut copy = IndexDef::clone(&changed.indexes[at]);
        index_expression_columns::reread(&mut copy, &changed, cx)?;
        changed.indexes[at] = Arc::new(copy);
    }
    let column = table.columns.get(position);
    if let Some(owned) = column
        .filter(|c| c.identity.is_some())
        .and_then(|c| c.sequence)
    {
        sequence::follow_type(owned, ty, cx).await?;
    }
    let (schema, indexes) = (changed.schema, changed.indexes.clone());
    // Of a domain that was not there before every value has to be asked about.
    let asked = domain.is_some() && domain != was;
    let keeps = keeps_bytes(old, ty) || old == ty;
    if using.is_none() && keeps && !asked {
        for index in indexes.iter().filter(|i| reread.contains(&i.oid)) {
            cx.update_index(schema, IndexDef::clone(index)).await?;
        }
        cx.update_relation(changed).await?;
        for old in outdated {
            super::index_expression_columns::mark_stale(old, schema, cx).await?;
        }
        return Ok(());
    }
    for old in outdated {
        logstead_sql_catalog::index_expressions::forget_columns(&mut changed, &old);
        super::index_expression_columns::mark_stale(old, schema, cx).await?;
    }
    let rules = match changed.columns.get(position) {
        Some(column) => with_planner(cx, &catalog, |plan| {
            bind::domain_value(position, column, plan)
        })?,
        None => None,
    };
    // Rows are computed anew from here on.
    let source = cx.may_run(source)?;
    let rules = rules.map(|rules| cx.may_run(rules)).transpose()?;
    table_rewrite::rewrite(cx, table, changed, |cx, mut row| {
        let value =
            logstead_sql_types::value::typmod::coerce_typmod(eval(cx, &source, &row)?, ty, false)?;
        if let Some(slot) = row.get_mut(position) {
            *slot = value;
        }
        if let Some(rules) = &rules {
            eval(cx, rules, &row)?;
        }
        Ok(row)
    })
    .await?;
    for index in indexes.iter().filter(|i| reread.contains(&i.oid)) {
        cx.update_index(schema, IndexDef::clone(index)).await?;
    }
    foreign_keys::recheck(cx, table.oid, position).await
}
