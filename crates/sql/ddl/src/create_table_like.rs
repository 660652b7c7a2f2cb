//! LIKE in CREATE TABLE: columns of another relation, and as much of what belongs to them as is asked for.
//!
//! Columns, defaults and checks become the new table's as if they had been written there; indexes and comments follow
//! when it is made.

use super::columns::{NewColumn, NewConstraint, NewConstraintKind, NewSequence};
use super::{DdlContext, index};
use crate::relation_attributes::ColumnAttribute;
use crate::relations::no_relation;
use logstead_engine::TableLock;
use logstead_sql_catalog::classes::{PG_CLASS, PG_CONSTRAINT};
use logstead_sql_catalog::inert_options::{self, Attribute};
use logstead_sql_catalog::privileges::denied_relation;
use logstead_sql_catalog::role::acl::privilege;
use logstead_sql_catalog::{
    Catalog, Column, ConstraintKind, IndexDef, IndexKey, Relation, RelationKind, SequenceDef,
};
use logstead_sql_parse as parse;
use logstead_sql_parse::ast::{
    DefArg, DefElem, DefElemAction, Location, TableLikeClause, table_like as bits,
};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;
use std::sync::Arc;

/// A LIKE of a CREATE TABLE.
pub(super) struct Like {
    source: Arc<Relation>,
    /// The bits of what is included.
    included: u32,
}

impl Like {
    fn includes(&self, bit: u32) -> bool {
        self.included & bit != 0
    }
}

/// Finds the source of a LIKE.
pub(super) async fn read(clause: &TableLikeClause, cx: &mut DdlContext<'_>) -> Result<Like> {
    let (name, included) = (&clause.relation, clause.options);
    let (oid, plain) = cx.named_relation(name)?;
    let invalid = |kind: &str| {
        let message = format!("relation \"{plain}\" is invalid in LIKE clause");
        SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
            .detail(format!("This operation is not supported for {kind}."))
    };
    let catalog = cx.catalog()?;
    let found = catalog.relations.get(&oid).cloned();
    let found = found.ok_or_else(|| invalid("indexes"))?;
    let source = match found.kind {
        RelationKind::Virtual(_) => found,
        RelationKind::Sequence(_) => return Err(invalid("sequences")),
        _ => match cx.lock_table(found.oid, TableLock::AccessShare).await? {
            Some((locked, _)) => locked,
            None => return Err(no_relation(name)),
        },
    };
    // The whole of it: privileges on columns do not do.
    let allowed = cx.with_acl_checker(|acl_checker, role| {
        acl_checker
            .on_relation(role, &source, privilege::SELECT, 0)
            .0
            != 0
    })?;
    if !allowed {
        return Err(denied_relation(&source));
    }
    Ok(Like { source, included })
}

/// The columns, without constraints.
pub(super) fn columns(like: &Like, cx: &mut DdlContext<'_>) -> Result<Vec<NewColumn>> {
    let catalog = cx.catalog()?;
    let mut columns = Vec::new();
    let options = catalog.options_of(like.source.oid);
    let all = like.source.columns.iter().enumerate();
    for (at, from) in all.filter(|(_, c)| !c.dropped) {
        let mut new = NewColumn {
            column: Column {
                name: from.name.clone(),
                ty: from.ty,
                domain: from.domain,
                not_null: from.not_null,
                default: None,
                identity: None,
                generated: false,
                sequence: None,
                dropped: false,
                missing: Datum::Null,
            },
            sequence: None,
            constraints: Vec::new(),
            generated: None,
            attributes: Vec::new(),
        };
        let attributes: [(ColumnAttribute, bool); 3] = [
            (Attribute::Collation, true),
            (Attribute::Storage, like.includes(bits::STORAGE)),
            (Attribute::Compression, like.includes(bits::COMPRESSION)),
        ];
        for (attribute, _) in attributes.into_iter().filter(|(_, included)| *included) {
            if let Some(value) = inert_options::get(options, attribute(at)) {
                new.attributes.push((attribute, value.to_owned()));
            }
        }
        match &from.default {
            Some(text) if from.generated && like.includes(bits::GENERATED) => {
                new.generated = Some(parse::parse_expr(text)?);
            }
            Some(text)
                if !from.generated && from.identity.is_none() && like.includes(bits::DEFAULTS) =>
            {
                new.column.default = Some(text.clone());
            }
            _ => {}
        }
        if let (Some(always), true) = (from.identity, like.includes(bits::IDENTITY)) {
            new.column.identity = Some(always);
            new.sequence = from.sequence.and_then(|oid| same_sequence(&catalog, oid));
        }
        columns.push(new);
    }
    Ok(columns)
}

/// A sequence as another one is defined.
fn same_sequence(catalog: &Catalog, oid: RelationId) -> Option<NewSequence> {
    let RelationKind::Sequence(def) = &catalog.relations.get(&oid)?.kind else {
        return None;
    };
    let SequenceDef {
        ty,
        start,
        increment,
        min,
        max,
        cache,
        cycle,
    } = *def;
    let option = |name: &str, arg: DefArg| DefElem {
        namespace: None,
        name: name.into(),
        arg: Some(arg),
        action: DefElemAction::Unspecified,
        location: Location::UNKNOWN,
    };
    let number = |value: i64| DefArg::Float(value.to_string().into());
    Some(NewSequence {
        ty,
        options: vec![
            option("increment", number(increment)),
            option("minvalue", number(min)),
            option("maxvalue", number(max)),
            option("start", number(start)),
            option("cache", number(cache)),
            option("cycle", DefArg::Boolean(cycle)),
        ],
    })
}

/// CHECK constraints, and keys under names of the new table's own.
pub(super) fn constraints(like: &Like) -> Result<Vec<NewConstraint>> {
    let source = &like.source;
    let mut all = Vec::new();
    for constraint in &source.constraints {
        let (name, kind) = match &constraint.kind {
            ConstraintKind::Check(text) if like.includes(bits::CONSTRAINTS) => {
                let kind = NewConstraintKind::Check(Box::new(parse::parse_expr(text)?));
                (Some(constraint.name.clone()), kind)
            }
            ConstraintKind::PrimaryKey(index) if like.includes(bits::INDEXES) => {
                (None, NewConstraintKind::Primary(key_names(source, *index)))
            }
            ConstraintKind::Unique(index) if like.includes(bits::INDEXES) => {
                (None, NewConstraintKind::Unique(key_names(source, *index)))
            }
            _ => continue,
        };
        let index = source.indexes.iter().find(|i| match &constraint.kind {
            ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index) => i.oid == *index,
            _ => false,
        });
        let included = index.into_iter().flat_map(|i| &i.include);
        let included = included.filter_map(|p| source.columns.get(*p));
        all.push(NewConstraint {
            name,
            kind,
            timing: constraint.timing,
            not_valid: false,
            nulls_not_distinct: index.is_some_and(|i| i.nulls_not_distinct),
            include: included.map(|c| c.name.clone()).collect(),
            copied: true,
        });
    }
    Ok(all)
}

fn key_names(source: &Relation, index: RelationId) -> Vec<String> {
    let found = source.indexes.iter().find(|i| i.oid == index);
    let columns = found.into_iter().flat_map(|i| &i.columns);
    columns.map(|c| c.name(source).to_owned()).collect()
}

/// The indexes that no constraint has made, and comments: `made` is the new table.
pub(super) async fn finish(like: &Like, made: RelationId, cx: &mut DdlContext<'_>) -> Result<()> {
    let source = &like.source;
    let table = crate::relations::relation(cx, made)?;
    let place = |position: usize| {
        let name = &source.columns.get(position)?.name;
        table
            .columns
            .iter()
            .position(|c| !c.dropped && c.name == *name)
    };
    let comments = cx.catalog()?.notes.comments.clone();
    if like.includes(bits::INDEXES) {
        let of_constraint = |index: &IndexDef| {
            source.constraints.iter().any(|c| match c.kind {
                ConstraintKind::PrimaryKey(oid) | ConstraintKind::Unique(oid) => oid == index.oid,
                _ => false,
            })
        };
        let own = source.indexes.iter().filter(|i| !of_constraint(i));
        for from in own {
            let mut copy = IndexDef::clone(from);
            for column in &mut copy.columns {
                if let IndexKey::Column(position) = &mut column.key {
                    *position = place(*position).ok_or_else(lost)?;
                }
            }
            for position in &mut copy.include {
                *position = place(*position).ok_or_else(lost)?;
            }
            let made = index::copy(&table, copy, cx).await?;
            if let (Some(text), true) = (
                comments.get(&(PG_CLASS, from.oid.get(), 0)),
                like.includes(bits::COMMENTS),
            ) {
                cx.put_comment(PG_CLASS, made.get(), 0, Some(text)).await?;
            }
        }
    }
    if !like.includes(bits::COMMENTS) {
        return Ok(());
    }
    let number = |position: usize| i32::try_from(position + 1).unwrap_or(i32::MAX);
    for (position, _) in source
        .columns
        .iter()
        .enumerate()
        .filter(|(_, c)| !c.dropped)
    {
        if let (Some(text), Some(own)) = (
            comments.get(&(PG_CLASS, source.oid.get(), number(position))),
            place(position),
        ) {
            cx.put_comment(PG_CLASS, made.get(), number(own), Some(text))
                .await?;
        }
    }
    if like.includes(bits::CONSTRAINTS) {
        for constraint in &source.constraints {
            let text = comments.get(&(PG_CONSTRAINT, constraint.oid, 0));
            let same = |c: &&Arc<logstead_sql_catalog::Constraint>| {
                c.name == constraint.name && matches!(c.kind, ConstraintKind::Check(_))
            };
            if let (Some(text), Some(own)) = (text, table.constraints.iter().find(same)) {
                cx.put_comment(PG_CONSTRAINT, own.oid, 0, Some(text))
                    .await?;
            }
        }
    }
    Ok(())
}

fn lost() -> SqlError {
    SqlError::internal("an index names a column that was not copied")
}
