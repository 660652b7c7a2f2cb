//! CREATE INDEX, ALTER INDEX.

use super::DdlContext;
use super::alter_table::{system_relation, wrong_kind};
use super::columns::storage_options;
use super::constraints::check_key;
use super::names::{columns_part, free_name, is_taken};
use super::objects::{name_taken, no_relation};
use crate::catalog::change::Change;
use crate::catalog::pg_catalog::{operator_class, operator_class_name};
use crate::catalog::text::fold;
use crate::catalog::{IndexColumn, IndexDef, Relation, RelationKind, calls};
use crate::error::{Result, SqlError};
use crate::value::Oid;
use logstead_engine::TableLock;
use logstead_types::{IndexId, SqlState};
use sqlparser::ast;
use std::sync::Arc;

fn refuse(create: &ast::CreateIndex) -> Result<()> {
    let expression = create
        .columns
        .iter()
        .any(|c| !matches!(c.column.expr, ast::Expr::Identifier(_)));
    let method = !matches!(create.using, None | Some(ast::IndexType::BTree));
    let refusals = [
        (
            create.predicate.is_some(),
            "WHERE in CREATE INDEX (a partial index)",
        ),
        (expression, "an index on an expression"),
        (!create.include.is_empty(), "INCLUDE in CREATE INDEX"),
        (create.nulls_distinct == Some(false), "NULLS NOT DISTINCT"),
        (method, "an index access method other than btree"),
    ];
    match refusals.iter().find(|(refused, _)| *refused) {
        Some((_, what)) => Err(SqlError::unsupported(*what)),
        None => Ok(()),
    }
}

fn key_column(relation: &Relation, column: &ast::IndexColumn) -> Result<IndexColumn> {
    let ast::Expr::Identifier(name) = &column.column.expr else {
        return Err(super::unsupported_all("indexes on expressions"));
    };
    let name = fold(name);
    let position = relation
        .columns
        .iter()
        .position(|c| !c.dropped && c.name == name)
        .ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" does not exist"),
            )
        })?;
    if let Some(class) = &column.operator_class {
        let (_, class) = calls::name_parts(class)?;
        let ty = relation.columns.get(position).map_or(0, |c| c.ty.oid);
        let fits = operator_class_name(&class).is_some_and(|(oid, input)| {
            oid == operator_class(ty) || operator_class(input) == operator_class(ty)
        });
        if !fits {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("operator class \"{class}\" does not exist for access method \"btree\""),
            ));
        }
    }
    let options = &column.column.options;
    let desc = match &options.sort {
        None | Some(ast::OrderBySort::Asc) => false,
        Some(ast::OrderBySort::Desc) => true,
        Some(_) => return Err(SqlError::unsupported("USING in an index column")),
    };
    Ok(IndexColumn {
        position,
        desc,
        nulls_first: options.nulls_first.unwrap_or(desc),
    })
}

/// Runs CREATE INDEX. CONCURRENTLY is accepted: the index is built in one go all the same.
pub(super) async fn create(create: &ast::CreateIndex, cx: &mut DdlContext<'_>) -> Result<()> {
    refuse(create)?;
    let (schema, name) = calls::name_parts(&create.table_name)?;
    let catalog = cx.catalog()?;
    let found = catalog
        .relation(schema.as_deref(), &name, cx.search_path)
        .cloned();
    let Some(table) = found else {
        return Err(
            match catalog.object_by_name(schema.as_deref(), &name, cx.search_path) {
                Some(_) => wrong_kind(&name, "a table"),
                None => no_relation(&create.table_name),
            },
        );
    };
    match table.kind {
        RelationKind::Table => {}
        RelationKind::Virtual(_) => return Err(system_relation(&name)),
        RelationKind::Sequence(_) => {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot create index on relation \"{name}\""),
            )
            .detail("This operation is not supported for sequences."));
        }
    }
    let wanted = match &create.name {
        Some(name) => {
            let (own_schema, name) = calls::name_parts(name)?;
            if own_schema.is_some_and(|s| s != table.schema_name) {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "an index is made in its table's schema",
                ));
            }
            Some(cx.name(&name))
        }
        None => None,
    };
    let Some((table, _)) = cx.lock_table(table.oid, TableLock::Share).await? else {
        return Err(no_relation(&create.table_name));
    };
    let catalog = cx.catalog()?;
    if let Some(name) = &wanted
        && catalog.names.contains_key(&(table.schema, name.clone()))
    {
        if !create.if_not_exists {
            return Err(name_taken(name));
        }
        cx.notice(
            SqlState::DUPLICATE_TABLE,
            format!("relation \"{name}\" already exists, skipping"),
        );
        return Ok(());
    }
    let columns = create
        .columns
        .iter()
        .map(|c| key_column(&table, c))
        .collect::<Result<Vec<_>>>()?;
    let positions: Vec<_> = columns.iter().map(|c| c.position).collect();
    check_key(&table, &positions)?;
    let name = wanted.unwrap_or_else(|| {
        let names = positions
            .iter()
            .filter_map(|p| table.columns.get(*p))
            .map(|c| c.name.as_str());
        let second = columns_part(names);
        free_name(&table.name, Some(&second), "idx", |n| {
            is_taken(&catalog, table.schema, Some(&table), n)
        })
    });
    let options = with_options(&create.with)?;
    let oid = cx.new_oid()?;
    if !options.is_empty() {
        cx.state.push(Change::Options(oid, options));
    }
    let index = IndexDef {
        oid,
        name,
        table: table.oid,
        storage: IndexId(oid),
        unique: create.unique,
        primary: false,
        columns,
    };
    cx.create_index(&table, index).await.map(drop)
}

fn with_options(with: &[ast::Expr]) -> Result<Vec<String>> {
    let options = with.iter().map(|expr| match expr {
        ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::Eq,
            right,
        } => match &**left {
            ast::Expr::Identifier(key) => Ok(ast::SqlOption::KeyValue {
                key: key.clone(),
                value: (**right).clone(),
            }),
            _ => Err(SqlError::unsupported(format!("storage parameter {expr}"))),
        },
        _ => Err(SqlError::unsupported(format!("storage parameter {expr}"))),
    });
    storage_options(&options.collect::<Result<Vec<_>>>()?)
}

/// Runs ALTER INDEX.
pub(super) async fn alter(
    name: &ast::ObjectName,
    operation: &ast::AlterIndexOperation,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let ast::AlterIndexOperation::RenameIndex { index_name } = operation;
    let (schema, plain) = calls::name_parts(name)?;
    let catalog = cx.catalog()?;
    let Some(oid) = catalog.object_by_name(schema.as_deref(), &plain, cx.search_path) else {
        return Err(no_relation(name));
    };
    if !catalog.index_tables.contains_key(&oid) {
        return Err(wrong_kind(&plain, "an index"));
    }
    rename(oid, index_name, cx).await
}

/// Renames an index, and the constraint it serves.
pub(super) async fn rename(oid: Oid, new: &ast::ObjectName, cx: &mut DdlContext<'_>) -> Result<()> {
    let new = cx.name(&calls::name_parts(new)?.1);
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
        .lock_table(table, TableLock::Exclusive)
        .await?
        .ok_or_else(gone)?;
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
        use crate::catalog::ConstraintKind::{PrimaryKey, Unique};
        if matches!(constraint.kind, PrimaryKey(i) | Unique(i) if i == oid) {
            let mut copy = crate::catalog::Constraint::clone(constraint);
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
