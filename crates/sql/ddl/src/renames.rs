//! RENAME of relations, their columns and constraints, and names in what the catalog keeps of them as text.
//!
//! Invariant: a text that could be read before can be read after: what cannot be is an error of the statement that
//! renames.

use super::columns::check_column_name;
use super::expressions::bound;
use super::namespace::altered;
use super::object_address::{relation_of, unexpected_object};
use super::{DdlContext, index, sequence};
use crate::pg_catalog::calls;
use crate::relations::{name_taken, wrong_kind};
use logstead_engine::TableLock;
use logstead_sql_catalog::text::columns_in;
use logstead_sql_catalog::{
    Constraint, ConstraintKind, IndexDef, IndexKey, Relation, RelationKind, deparse,
};
use logstead_sql_parse as parse;
use logstead_sql_parse::ast::{self, Name, ObjectType, RenameStmt, VisitMut, VisitorMut};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeSpelling;
use logstead_types::SqlState;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Runs RENAME of a relation or an index; as ALTER TABLE and ALTER INDEX of any of them (`RenameRelation`).
pub(super) async fn rename_relation(stmt: &RenameStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let name = relation_of(&stmt.object)?;
    let wanted = match stmt.rename_type {
        ObjectType::Index => ObjectType::Table,
        other => other,
    };
    let Some(oid) = altered(name, wanted, stmt.missing_ok, cx)? else {
        return Ok(());
    };
    let catalog = cx.catalog()?;
    match catalog.relations.get(&oid).map(|relation| &relation.kind) {
        None => index::rename(oid, &stmt.newname, cx).await,
        Some(RelationKind::Sequence(_)) => sequence::rename(oid, &stmt.newname, cx).await,
        Some(_) => rename_table(oid, &stmt.newname, cx).await,
    }
}

/// The table or view, locked, of which RENAME names a part anew.
async fn whole(
    stmt: &RenameStmt,
    wanted: ObjectType,
    cx: &mut DdlContext<'_>,
) -> Result<Option<Arc<Relation>>> {
    let name = relation_of(&stmt.object)?;
    let Some(oid) = altered(name, wanted, stmt.missing_ok, cx)? else {
        return Ok(None);
    };
    let is_whole = |r: &Arc<Relation>| r.has_rows() || r.view().is_some();
    let catalog = cx.catalog()?;
    let found = catalog.relations.get(&oid);
    if !found.is_some_and(is_whole) {
        let (_, name) = calls::name_parts(name)?;
        if stmt.rename_type != ObjectType::Column || found.is_none() {
            return Err(wrong_kind(&name, "a table"));
        }
        let message = format!("cannot rename columns of relation \"{name}\"");
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
            .detail("This operation is not supported for sequences."));
    }
    locked(oid, cx).await.map(Some)
}

/// A table or view of the role's own, locked for what makes it another one.
pub(super) async fn locked(oid: RelationId, cx: &mut DdlContext<'_>) -> Result<Arc<Relation>> {
    let Some((relation, _)) = cx.lock_table(oid, TableLock::AccessExclusive).await? else {
        return Err(SqlError::internal("a relation that is gone"));
    };
    cx.must_own(&relation)?;
    cx.refuse_pending(oid, "ALTER TABLE")?;
    Ok(relation)
}

/// Runs RENAME of a column (`renameatt`).
pub(super) async fn rename_column(stmt: &RenameStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let wanted = stmt.relation_type.unwrap_or(ObjectType::Table);
    let old = stmt.subname.as_deref().ok_or_else(unexpected_object)?;
    match whole(stmt, wanted, cx).await? {
        Some(table) => column(old, &stmt.newname, &table, cx).await,
        None => Ok(()),
    }
}

/// Runs RENAME of a constraint (`RenameConstraint`).
pub(super) async fn rename_constraint(stmt: &RenameStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let old = stmt.subname.as_deref().ok_or_else(unexpected_object)?;
    match whole(stmt, ObjectType::Table, cx).await? {
        Some(table) => constraint(old, &stmt.newname, &table, cx).await,
        None => Ok(()),
    }
}

/// Renames a table or a view.
pub(super) async fn rename_table(
    oid: RelationId,
    new: &str,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let table = &locked(oid, cx).await?;
    let new = new.to_string();
    if cx
        .catalog()?
        .names
        .contains_key(&(table.schema, new.clone()))
    {
        return Err(name_taken(&new));
    }
    let mut changed = Relation::clone(table);
    changed.name = new;
    relation(table, &mut changed, cx).await?;
    cx.update_relation(changed).await.map(drop)
}

async fn column(
    old: &str,
    new: &str,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let position = table
        .columns
        .iter()
        .position(|c| !c.dropped && c.name == old)
        .ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{old}\" does not exist"),
            )
        })?;
    let new = new.to_string();
    check_column_name(&new)?;
    if table.columns.iter().any(|c| !c.dropped && c.name == new) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_COLUMN,
            format!(
                "column \"{new}\" of relation \"{}\" already exists",
                table.name
            ),
        ));
    }
    refuse_hiding(&new, table)?;
    let mut changed = Relation::clone(table);
    if let Some(column) = changed.columns.get_mut(position) {
        column.name.clone_from(&new);
    }
    let with_name = Relation::clone(&changed);
    let catalog = cx.catalog()?;
    let spelling = TypeSpelling::numbered(cx.lookup(&catalog).types());
    for constraint in &mut changed.constraints {
        if let ConstraintKind::Check(text) = &constraint.kind
            && columns_in(text, table).contains(&position)
        {
            let is = renamed(text, old, &new, spelling)?;
            read_again((text, table), (&is, &with_name), "CHECK", cx)?;
            let mut copy = Constraint::clone(constraint);
            copy.kind = ConstraintKind::Check(is);
            *constraint = Arc::new(copy);
        }
    }
    for (at, column) in table.columns.iter().enumerate() {
        if column.generated_from(table).contains(&position)
            && let Some(text) = &column.default
            && let Some(slot) = changed.columns.get_mut(at)
        {
            let is = renamed(text, old, &new, spelling)?;
            read_again((text, table), (&is, &with_name), "GENERATED", cx)?;
            slot.default = Some(is);
        }
    }
    for index in table.indexes.iter().filter(|i| !i.is_plain()) {
        if index.mentions(table).contains(&position) {
            let mut copy = IndexDef::clone(index);
            copy.each_text(|text| renamed(text, old, &new, spelling))?;
            read_index_again((index, table), (&copy, &with_name), cx)?;
            cx.update_index(table.schema, copy).await?;
        }
    }
    cx.update_relation(changed).await.map(drop)
}

async fn constraint(
    old: &str,
    new: &str,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let Some(at) = table.constraints.iter().position(|c| c.name == old) else {
        return Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!(
                "constraint \"{old}\" for table \"{}\" does not exist",
                table.name
            ),
        ));
    };
    let new = new.to_string();
    if table.constraints.iter().any(|c| c.name == new) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_OBJECT,
            format!(
                "constraint \"{new}\" for relation \"{}\" already exists",
                table.name
            ),
        ));
    }
    let mut changed = Relation::clone(table);
    if let Some(constraint) = changed.constraints.get_mut(at) {
        let mut copy = Constraint::clone(constraint);
        copy.name.clone_from(&new);
        if let ConstraintKind::PrimaryKey(oid) | ConstraintKind::Unique(oid) = copy.kind
            && let Some(index) = table.indexes.iter().find(|i| i.oid == oid)
        {
            let mut index = IndexDef::clone(index);
            index.name = new;
            cx.update_index(table.schema, index).await?;
        }
        *constraint = Arc::new(copy);
    }
    cx.update_relation(changed).await.map(drop)
}

/// A stored condition with a column's new name.
pub(super) fn renamed(
    text: &str,
    old: &str,
    new: &str,
    spelling: TypeSpelling<'_>,
) -> Result<String> {
    struct Renamer<'a>(&'a str, &'a str);
    impl VisitorMut for Renamer<'_> {
        type Break = ();
        fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
            if let ast::Expr::ColumnRef(column) = expr
                && !column.star
                && let Some(name) = column.fields.last_mut()
                && **name == *self.0
            {
                *name = self.1.into();
            }
            ControlFlow::Continue(())
        }
    }
    let mut expr = parse::parse_expr(text)?;
    let _ = expr.visit(&mut Renamer(old, new));
    Ok(deparse::normal(&expr, spelling))
}

/// Puts another name in the place of a relation's own.
struct RowRenamer<'a> {
    relation: &'a Relation,
    new: &'a str,
    /// It stands for the row, which a column of that name would hide.
    whole: bool,
    found: bool,
}

impl RowRenamer<'_> {
    fn put(&mut self, name: &mut Name) {
        if **name == *self.relation.name {
            *name = self.new.into();
            self.found = true;
        }
    }
}

impl VisitorMut for RowRenamer<'_> {
    type Break = ();
    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::ColumnRef(column) = expr {
            match column.fields.as_mut_slice() {
                [name] if !column.star => {
                    let mut live = self.relation.columns.iter().filter(|c| !c.dropped);
                    if **name == *self.relation.name && !live.any(|c| *c.name == **name) {
                        self.put(name);
                        self.whole = true;
                    }
                }
                [.., name, _] if !column.star => self.put(name),
                [.., name] if column.star => self.put(name),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}

/// A stored text's expression with a relation's new name: none if it does not speak of it. Whether it does so as of
/// its row comes with it.
fn with_name(text: &str, relation: &Relation, new: &str) -> Option<(ast::Expr, bool)> {
    // What cannot be read before is not made worse.
    let mut expr = parse::parse_expr(text).ok()?;
    let mut rows = RowRenamer {
        relation,
        new,
        whole: false,
        found: false,
    };
    let _ = expr.visit(&mut rows);
    let (found, whole) = (rows.found, rows.whole);
    found.then_some((expr, whole))
}

fn unreadable(relation: &Relation) -> SqlError {
    SqlError::unsupported(format_args!(
        "renaming what an expression of relation \"{}\" names",
        relation.name
    ))
}

/// 0A000 if a column of this name would hide the row of its relation from an expression that is kept.
pub(super) fn refuse_hiding(column: &str, relation: &Relation) -> Result<()> {
    if column != relation.name {
        return Ok(());
    }
    for text in super::types::expressions(relation) {
        if let Some((_, true)) = with_name(text, relation, column) {
            return Err(SqlError::unsupported(format_args!(
                "a column with the name of its relation \"{column}\", of which an expression uses the whole row"
            )));
        }
    }
    Ok(())
}

/// 0A000 if a text cannot be read any more.
pub(super) fn read_again(
    (old_text, old): (&str, &Relation),
    (new_text, new): (&str, &Relation),
    what: &str,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let reads = |text: &str, relation: &Relation| {
        let expr = parse::parse_expr(text)?;
        bound(cx, &catalog, relation, &expr, what).map(drop)
    };
    match reads(new_text, new) {
        Err(_) if reads(old_text, old).is_ok() => Err(unreadable(old)),
        _ => Ok(()),
    }
}

/// The same of the texts of an index.
pub(super) fn read_index_again(
    (old_index, old): (&IndexDef, &Relation),
    (new_index, new): (&IndexDef, &Relation),
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    for (was, is) in old_index.columns.iter().zip(&new_index.columns) {
        if let (IndexKey::Expression { text: was, .. }, IndexKey::Expression { text: is, .. }) =
            (&was.key, &is.key)
        {
            read_again((was, old), (is, new), "INDEX", cx)?;
        }
    }
    match (&old_index.predicate, &new_index.predicate) {
        (Some(was), Some(is)) => read_again((was, old), (is, new), "PREDICATE", cx),
        _ => Ok(()),
    }
}

/// Puts the new name of `changed` into all that is kept of it as text, where it had that of `old`.
pub(super) async fn relation(
    old: &Relation,
    changed: &mut Relation,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let new = changed.name.clone();
    let hidden = old.columns.iter().any(|c| !c.dropped && c.name == new);
    let catalog = cx.catalog()?;
    let spelling = TypeSpelling::numbered(cx.lookup(&catalog).types());
    let text = |text: &str| match with_name(text, old, &new) {
        Some((_, true)) if hidden => Err(unreadable(old)),
        Some((expr, _)) => Ok(Some(deparse::normal(&expr, spelling))),
        None => Ok(None),
    };
    for constraint in &mut changed.constraints {
        if let ConstraintKind::Check(was) = &constraint.kind
            && let Some(is) = text(was)?
        {
            let mut copy = Constraint::clone(constraint);
            copy.kind = ConstraintKind::Check(is);
            *constraint = Arc::new(copy);
        }
    }
    for column in changed.columns.iter_mut().filter(|c| c.generated) {
        if let Some(was) = &column.default
            && let Some(is) = text(was)?
        {
            column.default = Some(is);
        }
    }
    for (was, is) in old.constraints.iter().zip(&changed.constraints) {
        if let (Some(was), Some(is)) = (was.check(), is.check())
            && was != is
        {
            read_again((was, old), (is, changed), "CHECK", cx)?;
        }
    }
    for (was, is) in old.columns.iter().zip(&changed.columns) {
        if let (Some(was), Some(is)) = (&was.default, &is.default)
            && was != is
        {
            read_again((was, old), (is, changed), "GENERATED", cx)?;
        }
    }
    for index in &old.indexes {
        let mut copy = IndexDef::clone(index);
        let mut found = false;
        copy.each_text(|was| {
            let is = text(was)?;
            found |= is.is_some();
            Ok(is.unwrap_or_else(|| was.to_owned()))
        })?;
        if found {
            read_index_again((index, old), (&copy, changed), cx)?;
            cx.update_index(old.schema, copy).await?;
        }
    }
    Ok(())
}
