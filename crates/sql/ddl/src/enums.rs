//! Enums: their labels, which have places between others, and the texts that name them.

use super::DdlContext;
use super::types::{add, altered, array_name, free, put, texts};
use logstead_engine::TableLock;
use logstead_sql_catalog::text::{NAME_LENGTH_MAX, quote_literal};
use logstead_sql_catalog::{Constraint, ConstraintKind, IndexDef, Relation};
use logstead_sql_parse::ast::{AlterEnumStmt, AnyName, CreateEnumStmt};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::{self, ENUM_BITS, Label, UserKind, UserType};
use logstead_types::SqlState;
use std::sync::Arc;

fn check_label(label: &str) -> Result<()> {
    if label.len() <= NAME_LENGTH_MAX {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::INVALID_NAME,
        format!("invalid enum label \"{label}\""),
    )
    .detail("Labels must be 63 bytes or less."))
}

/// Runs CREATE TYPE ... AS ENUM.
pub(super) async fn create(stmt: &CreateEnumStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let labels = &stmt.vals;
    let (schema, name) = cx.new_type_name(&stmt.type_name)?;
    free(&schema.name, schema.oid, &name, cx)?;
    let (oid, csn) = cx.store.new_type_oid(cx.worker, ENUM_BITS)?;
    cx.depends_on(csn);
    labels.iter().try_for_each(|label| check_label(label))?;
    let mut made: Vec<Label> = Vec::with_capacity(labels.len());
    for (index, label) in labels.iter().enumerate() {
        if made.iter().any(|l| *l.name == **label) {
            return Err(SqlError::new(
                SqlState::UNIQUE_VIOLATION,
                "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"",
            )
            .detail(format!(
                "Key (enumtypid, enumlabel)=({oid}, {label}) already exists."
            )));
        }
        made.push(Label {
            oid: cx.new_oid()?,
            ordinal: user::first_ordinal(index),
            sort: index as f32 + 1.0,
            name: Arc::from(&**label),
            fresh: false,
        });
    }
    let array_name = array_name(&schema.name, &name, oid, cx)?;
    let ty = UserType {
        oid,
        name,
        array_name,
        schema: schema.oid,
        schema_name: schema.name.clone(),
        kind: UserKind::Enum(made),
    };
    add(ty, cx).await
}

fn label_exists(label: &str) -> SqlError {
    SqlError::new(
        SqlState::DUPLICATE_OBJECT,
        format!("enum label \"{label}\" already exists"),
    )
}

fn not_an_enum<T>(oid: TypeId, cx: &mut DdlContext<'_>) -> Result<T> {
    Err(SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("{} is not an enum", cx.format_type_bare(oid)?),
    ))
}

fn no_label(label: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("\"{label}\" is not an existing enum label"),
    )
}

/// The sort order that PostgreSQL gives a label at `index`, when the others have theirs; `None` if they must be
/// numbered anew.
fn sort_between(labels: &[Label], index: usize) -> Option<f32> {
    let before = index.checked_sub(1).and_then(|i| labels.get(i));
    match (before, labels.get(index)) {
        (None, None) => Some(1.0),
        (Some(before), None) => Some(before.sort + 1.0),
        (None, Some(after)) => Some(after.sort - 1.0),
        (Some(before), Some(after)) => {
            let middle = (before.sort + after.sort) / 2.0;
            (middle != before.sort && middle != after.sort).then_some(middle)
        }
    }
}

/// Runs ALTER TYPE ... ADD VALUE and RENAME VALUE.
pub(super) async fn alter(stmt: &AlterEnumStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    match &stmt.old_val {
        Some(old) => rename_value(&stmt.type_name, old, &stmt.new_val, cx).await,
        None => add_value(stmt, cx).await,
    }
}

async fn add_value(stmt: &AlterEnumStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let label = &*stmt.new_val;
    let ty = altered(&stmt.type_name, cx).await?;
    if !user::is_enum(ty.oid) {
        return not_an_enum(ty.oid, cx);
    }
    check_label(label)?;
    let labels = ty.labels();
    if labels.iter().any(|l| &*l.name == label) {
        if !stmt.skip_if_new_val_exists {
            return Err(label_exists(label));
        }
        cx.notice(
            SqlState::DUPLICATE_OBJECT,
            format!("enum label \"{label}\" already exists, skipping"),
        );
        return Ok(());
    }
    let index = match &stmt.new_val_neighbor {
        None => labels.len(),
        Some(neighbor) => {
            let found = labels.iter().position(|l| *l.name == **neighbor);
            found.ok_or_else(|| no_label(neighbor))? + usize::from(stmt.new_val_is_after)
        }
    };
    let before = index.checked_sub(1).and_then(|i| labels.get(i));
    let ordinal = user::ordinal_between(
        before.map(|l| l.ordinal),
        labels.get(index).map(|l| l.ordinal),
    );
    let ordinal = ordinal.ok_or_else(|| {
        SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("there is no room for one more label at this place of enum \"{}\"", ty.name),
        )
        .detail("About forty labels can be added between two that stood side by side.")
        .hint("Make a new type with all labels, and bring the columns to it with ALTER TABLE ... ALTER COLUMN ... TYPE.")
    })?;
    let mut changed = UserType::clone(&ty);
    let UserKind::Enum(labels) = &mut changed.kind else {
        return not_an_enum(ty.oid, cx);
    };
    let sort = sort_between(labels, index);
    labels.insert(
        index,
        Label {
            oid: cx.new_oid()?,
            ordinal,
            sort: sort.unwrap_or_default(),
            name: Arc::from(label),
            fresh: true,
        },
    );
    if sort.is_none() {
        for (label, sort) in labels.iter_mut().zip(1_u16..) {
            label.sort = f32::from(sort);
        }
    }
    put(&changed, cx).await
}

async fn rename_value(name: &AnyName, from: &str, to: &str, cx: &mut DdlContext<'_>) -> Result<()> {
    let ty = altered(name, cx).await?;
    check_label(to)?;
    let mut changed = UserType::clone(&ty);
    let UserKind::Enum(labels) = &mut changed.kind else {
        return not_an_enum(ty.oid, cx);
    };
    let Some(at) = labels.iter().position(|l| &*l.name == from) else {
        return Err(no_label(from));
    };
    if labels.iter().any(|l| &*l.name == to) {
        return Err(label_exists(to));
    }
    rename_in_texts(&ty, from, to, cx).await?;
    if let Some(label) = labels.get_mut(at) {
        label.name = Arc::from(to);
    }
    put(&changed, cx).await
}

/// A constant of an enum as stored expressions spell it.
fn constant(ty: &UserType, label: &str) -> String {
    format!("{}::{}", quote_literal(label), user::number_text(ty.oid))
}

/// Has the expressions that are kept as text name the label as it is called now; 0A000 if one names it in a way that is
/// not seen.
async fn rename_in_texts(
    ty: &UserType,
    from: &str,
    to: &str,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let (old, new) = (constant(ty, from), constant(ty, to));
    let mut relations: Vec<_> = catalog.relations.values().cloned().collect();
    relations.sort_unstable_by_key(|r| r.oid);
    for relation in relations {
        let hidden = |text: &&str| match relation.view() {
            // Its columns are compared with labels without the type being named.
            Some(_) => text.contains(&quote_literal(from)),
            // In the text of an array.
            None => {
                text.contains(&format!("{}[]", user::number_text(ty.oid))) && text.contains(from)
            }
        };
        if texts(&relation).iter().any(hidden) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "renaming a label that an expression of relation \"{}\" names is not supported",
                    relation.name
                ),
            )
            .hint("Drop the view, default, constraint or index that names it, and make it again afterwards."));
        }
        if !texts(&relation).iter().any(|text| text.contains(&old)) {
            continue;
        }
        // What the texts mean stays as it is: readers and writers go on.
        let lock = TableLock::ShareUpdateExclusive;
        let Some((table, _)) = cx.lock_table(relation.oid, lock).await? else {
            continue;
        };
        let mut changed = Relation::clone(&table);
        for column in &mut changed.columns {
            if let Some(default) = &mut column.default {
                *default = default.replace(&old, &new);
            }
        }
        for constraint in &mut changed.constraints {
            if let ConstraintKind::Check(text) = &constraint.kind {
                let mut renamed = Constraint::clone(constraint);
                renamed.kind = ConstraintKind::Check(text.replace(&old, &new));
                *constraint = Arc::new(renamed);
            }
        }
        for index in &table.indexes {
            if index.texts().iter().any(|text| text.contains(&old)) {
                let mut renamed = IndexDef::clone(index);
                renamed.each_text(|text| Ok(text.replace(&old, &new)))?;
                cx.update_index(table.schema, renamed).await?;
            }
        }
        cx.update_relation(changed).await?;
    }
    let domains: Vec<_> = catalog.types.all().into_iter().cloned().collect();
    for of in domains {
        let named = |text: &str| text.contains(&old);
        if !of.domain().is_some_and(|d| d.texts().any(named)) {
            continue;
        }
        let Some(held) = cx.lock_type(of.oid).await? else {
            continue;
        };
        let mut changed = UserType::clone(&held);
        if let UserKind::Domain(domain) = &mut changed.kind {
            let texts = domain.checks.iter_mut().map(|c| &mut c.text);
            for text in texts.chain(&mut domain.default) {
                *text = text.replace(&old, &new);
            }
        }
        put(&changed, cx).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_orders_are_those_of_postgres() {
        let label = |sort: f32| Label {
            oid: 1,
            ordinal: 0,
            sort,
            name: Arc::from(""),
            fresh: false,
        };
        let labels = [label(1.0), label(2.0)];
        assert_eq!(sort_between(&labels, 0), Some(0.0));
        assert_eq!(sort_between(&labels, 1), Some(1.5));
        assert_eq!(sort_between(&labels, 2), Some(3.0));
        assert_eq!(sort_between(&[], 0), Some(1.0));
        let close = [label(1.0), label(1.0 + f32::EPSILON)];
        assert_eq!(sort_between(&close, 1), None);
    }
}
