//! CREATE TABLE. Columns are `columns`', LIKE is `create_table_like`'s, keys and conditions are `constraints`',
//! CREATE TABLE AS is `create_as`'s.

use super::columns::{
    COLUMNS_MAX, NewColumn, NewConstraint, NewConstraintKind, new_column, new_constraint,
};
use super::expressions::bound_default;
use super::storage_parameters::storage_options;
use super::{DdlContext, constraints, create_table_like, distribution, sequence};
use crate::relations::{exists, make_storage};
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::temporary::{OnCommit, is_temporary_schema};
use logstead_sql_catalog::{Column, Relation, RelationKind, Schema, inert_options};
use logstead_sql_parse::ast::{CreateStmt, OnCommitAction, Persistence, RangeVar, TableElement};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

/// Runs CREATE TABLE.
pub(super) async fn execute(stmt: &CreateStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let relation = &stmt.relation;
    let (schema, name) = cx.new_name_of(relation)?;
    let on_commit = on_commit(stmt.oncommit, &schema)?;
    warn_of_global(stmt.global, relation, cx);
    if exists(cx, &schema, &name, stmt.if_not_exists)? {
        return Ok(());
    }
    let mut columns = Vec::new();
    let mut likes = Vec::new();
    let mut table_constraints = Vec::new();
    let mut own_constraints = Vec::new();
    for element in &stmt.table_elts {
        match element {
            TableElement::Like(clause) => {
                let like = create_table_like::read(clause, cx).await?;
                columns.extend(create_table_like::columns(&like, cx)?);
                table_constraints.extend(create_table_like::constraints(&like)?);
                likes.push(like);
            }
            TableElement::Column(def) => columns.push(new_column(def, &name, cx)?),
            TableElement::Constraint(constraint) => own_constraints.push(constraint),
        }
    }
    for constraint in own_constraints {
        table_constraints.push(new_constraint(constraint)?);
    }
    if let Some(name) = &stmt.tablespacename {
        return Err(SqlError::unsupported(format!(
            "table option TABLESPACE {name}"
        )));
    }
    let mut options = storage_options(&stmt.options)?;
    super::unlogged::of_new(relation.persistence, &schema, &mut options)?;
    let made = create(cx, &schema, &name, columns, table_constraints, options).await?;
    for like in &likes {
        create_table_like::finish(like, made.oid, cx).await?;
    }
    if let Some(action) = on_commit {
        cx.state.push(CatalogChange::OnCommit(made.oid, action));
    }
    Ok(())
}

/// Warns of GLOBAL, which says nothing.
pub(super) fn warn_of_global(is_global: bool, relation: &RangeVar, cx: &mut DdlContext<'_>) {
    if is_global && relation.persistence == Persistence::Temporary {
        cx.notices.push(super::Notice {
            severity: "WARNING",
            code: SqlState::new(b"01000"),
            message: "GLOBAL is deprecated in temporary table creation".to_owned(),
            detail: None,
            hint: None,
        });
    }
}

/// What COMMIT is to do with a new table in this schema.
pub(super) fn on_commit(action: OnCommitAction, schema: &Schema) -> Result<Option<OnCommit>> {
    if action == OnCommitAction::None {
        return Ok(None);
    }
    if !is_temporary_schema(&schema.name) {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            "ON COMMIT can only be used on temporary tables",
        ));
    }
    Ok(match action {
        OnCommitAction::None | OnCommitAction::PreserveRows => None,
        OnCommitAction::DeleteRows => Some(OnCommit::DeleteRows),
        OnCommitAction::Drop => Some(OnCommit::Drop),
    })
}

/// Makes a table with its sequences, storage and constraints.
pub(super) async fn create(
    cx: &mut DdlContext<'_>,
    schema: &Arc<Schema>,
    name: &str,
    columns: Vec<NewColumn>,
    table_constraints: Vec<NewConstraint>,
    mut options: Vec<String>,
) -> Result<Arc<Relation>> {
    if columns.len() > COLUMNS_MAX {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("tables can have at most {COLUMNS_MAX} columns"),
        ));
    }
    let mut names = std::collections::HashSet::new();
    if let Some(twice) = columns
        .iter()
        .find(|c| !names.insert(c.column.name.clone()))
    {
        return Err(SqlError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{}\" specified more than once", twice.column.name),
        ));
    }
    let primaries = columns
        .iter()
        .flat_map(|c| &c.constraints)
        .chain(&table_constraints);
    if primaries
        .filter(|c| matches!(c.kind, NewConstraintKind::Primary(_)))
        .count()
        > 1
    {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!("multiple primary keys for table \"{name}\" are not allowed"),
        ));
    }
    let oid = RelationId::new(cx.new_oid()?);
    let mut relation = Relation {
        oid,
        name: name.to_owned(),
        schema: schema.oid,
        schema_name: schema.name.clone(),
        kind: RelationKind::Table,
        columns: Vec::new(),
        indexes: Vec::new(),
        constraints: Vec::new(),
        storage: cx.store.storage_for(oid.get()),
        schema_version: 1,
        security: logstead_sql_catalog::RowSecurity::default(),
        distribution: Default::default(),
        shared_names: Default::default(),
    };
    let unlogged = super::unlogged::is_unlogged(&options);
    let mut wanted = Vec::new();
    let mut generated = Vec::new();
    for mut new in columns {
        if let Some(expr) = new.generated.take() {
            generated.push((relation.columns.len(), expr));
        }
        if let Some(owned) = new.sequence.take() {
            let sequence = own_sequence(cx, &relation, &mut new.column, &owned).await?;
            if unlogged {
                super::unlogged::of_sequence(sequence, false, cx)?;
            }
        }
        wanted.append(&mut new.constraints);
        for (attribute, value) in new.attributes.drain(..) {
            let attribute = attribute(relation.columns.len());
            inert_options::set(&mut options, attribute, Some(&value));
        }
        relation.columns.push(new.column);
    }
    wanted.extend(table_constraints);
    let primary = wanted.iter().find_map(|c| match &c.kind {
        NewConstraintKind::Primary(names) => Some(names.as_slice()),
        _ => None,
    });
    let said = distribution::take(&mut options);
    relation.distribution = distribution::of_new(said.as_deref(), primary, &relation, cx)?;
    super::generated::settle(&mut relation, &generated, cx)?;
    // Every default must have the column's type, or become it.
    let catalog = cx.catalog()?;
    for (position, column) in relation.columns.iter().enumerate() {
        if column.default.is_some() && !column.generated {
            let bound = bound_default(cx, &catalog, &relation, position)?;
            cx.may_define(bound)?;
        }
    }
    make_storage(cx, &relation)?;
    if !options.is_empty() {
        cx.state.push(CatalogChange::Options(oid, options));
    }
    let relation = cx.create_relation(relation).await?;
    constraints::add(cx, oid, wanted, true).await?;
    let made = cx.catalog()?.relations.get(&oid).cloned();
    Ok(made.unwrap_or(relation))
}

/// Makes the sequence that a column owns, and the column's default for serial ones.
pub(super) async fn own_sequence(
    cx: &mut DdlContext<'_>,
    relation: &Relation,
    column: &mut Column,
    owned: &super::columns::NewSequence,
) -> Result<RelationId> {
    let sequence = sequence::create_owned(cx, relation, &column.name, owned).await?;
    column.sequence = Some(sequence);
    let catalog = cx.catalog()?;
    if catalog.persistence_of(relation) == 'u' {
        super::unlogged::of_sequence(sequence, false, cx)?;
    }
    let name = catalog.relations.get(&sequence).map(|r| r.name.clone());
    let statement = match catalog.relations.contains_key(&relation.oid) {
        true => "ALTER TABLE",
        false => "CREATE TABLE",
    };
    cx.debug(|| {
        format!(
            "{statement} will create implicit sequence \"{}\" for serial column \"{}.{}\"",
            name.unwrap_or_default(),
            relation.name,
            column.name
        )
    });
    if column.identity.is_none() {
        // By number, so that renaming the sequence changes nothing; it is shown by name.
        column.default = Some(format!("nextval('{sequence}'::regclass)"));
    }
    Ok(sequence)
}
