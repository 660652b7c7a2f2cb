//! GRANT and REVOKE of privileges on relations and their columns.
//!
//! Owns: which lists of privileges of a relation and of its columns change. What is asked for and who grants it comes
//! from `grant`.

use crate::DdlContext;
use crate::grant::{GrantObject, InternalGrant, changed, grantor, name_of};
use crate::relations::{system_relation, wrong_kind};
use logstead_sql_catalog::privileges::kind_of;
use logstead_sql_catalog::role::acl::{Acl, AclKind, AclMode, INVALID_GRANT, privilege as p};
use logstead_sql_catalog::{Relation, RelationKind};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::{RelationId, RoleId};
use logstead_types::SqlState;
use std::sync::Arc;

pub(crate) async fn on_relations(
    asked: &InternalGrant,
    relations: &[RelationId],
    sequences: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    for oid in relations {
        let catalog = cx.catalog()?;
        let Some(relation) = catalog.relations.get(oid).cloned() else {
            let name = catalog.name_of(*oid).map_or("?", |(_, name)| name);
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{name}\" is an index"),
            ));
        };
        on_relation(asked, &relation, sequences, cx).await?;
    }
    Ok(())
}

pub(crate) async fn on_relation(
    asked: &InternalGrant,
    relation: &Arc<Relation>,
    sequences: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let name = &relation.name;
    let kind = kind_of(relation);
    if matches!(relation.kind, RelationKind::Virtual(_)) {
        return Err(
            match cx.with_acl_checker(|acl_checker, role| acl_checker.members.is_superuser(role))? {
                true => SqlError::unsupported("GRANT on a system relation"),
                false => system_relation(name),
            },
        );
    }
    if sequences && kind != AclKind::Sequence {
        return Err(wrong_kind(name, "a sequence"));
    }
    let mut whole = asked.whole.unwrap_or(kind.all());
    if kind == AclKind::Sequence && !sequences {
        // For the sake of old programs, that take a sequence for a table.
        if whole & !kind.all() != 0 {
            cx.notices.push(crate::Notice {
                severity: "WARNING",
                code: INVALID_GRANT,
                message: format!(
                    "sequence \"{name}\" only supports USAGE, SELECT, and UPDATE privileges"
                ),
                detail: None,
                hint: None,
            });
            whole &= kind.all();
        }
    } else if whole & !kind.all() != 0 {
        return Err(SqlError::new(
            INVALID_GRANT,
            format!(
                "invalid privilege type {} for table",
                name_of(whole & !kind.all())
            ),
        ));
    }
    let catalog = cx.catalog()?;
    let acl_checker = catalog.acl_checker(&catalog.roles);
    let was = catalog.stored_privileges(relation.oid);
    let mut privileges = was.clone();
    let owner = privileges.owner;
    let old = privileges
        .acl
        .clone()
        .unwrap_or_else(|| Acl::default_for(kind, owner));
    if whole != 0 {
        let any = |role: RoleId| {
            acl_checker.on_relation(role, relation, kind.all(), kind.all()) != (0, 0)
        };
        let target = GrantObject {
            denied: match kind {
                AclKind::Sequence => format!("sequence {name}"),
                // Of whatever kind.
                _ => format!("table {name}"),
            },
            named: format!("\"{name}\""),
            owner,
            any: &any,
        };
        let (grantor, may) = grantor(asked, whole, asked.whole.is_none(), &old, &target, cx)?;
        privileges.acl = Some(changed(asked, old.clone(), grantor, may, owner, cx)?);
    }
    revoke_system_columns(asked, relation, whole, &old, owner, cx)?;
    for (position, wanted, is_all) in columns_asked(asked, relation, whole)? {
        let own = privileges
            .columns
            .get(&position)
            .cloned()
            .unwrap_or_default();
        // Who may grant on the whole may grant on each column.
        let both = Acl([&old.0[..], &own.0[..]].concat());
        let all = AclKind::Column.all();
        let any = |role: RoleId| {
            acl_checker.on_relation(role, relation, all, all) != (0, 0)
                || acl_checker.on_column(role, relation, position, all, all) != (0, 0)
        };
        let column = relation
            .columns
            .get(position)
            .map_or("?", |c| c.name.as_str());
        let target = GrantObject {
            denied: format!("column \"{column}\" of relation \"{name}\""),
            named: format!("column \"{column}\" of relation \"{name}\""),
            owner,
            any: &any,
        };
        let (grantor, may) = grantor(asked, wanted, is_all, &both, &target, cx)?;
        let acl = changed(asked, own, grantor, may, owner, cx)?;
        match acl.0.is_empty() {
            true => privileges.columns.remove(&position),
            false => privileges.columns.insert(position, acl),
        };
    }
    cx.store_privileges(relation.oid, &was, privileges).await
}

/// What is taken from the whole is asked to be taken from the columns that every table has by itself, too, which have
/// no lists: whoever may not is told.
fn revoke_system_columns(
    asked: &InternalGrant,
    relation: &Relation,
    whole: AclMode,
    acl: &Acl,
    owner: RoleId,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let all = AclKind::Column.all();
    if !asked.revoke || whole & all == 0 || matches!(relation.kind, RelationKind::View(_)) {
        return Ok(());
    }
    let catalog = cx.catalog()?;
    let acl_checker = catalog.acl_checker(&catalog.roles);
    let any = |role: RoleId| acl_checker.on_relation(role, relation, all, all) != (0, 0);
    for column in ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"] {
        let named = format!("column \"{column}\" of relation \"{}\"", relation.name);
        let target = GrantObject {
            denied: named.clone(),
            named,
            owner,
            any: &any,
        };
        grantor(asked, whole & all, asked.whole.is_none(), acl, &target, cx)?;
    }
    Ok(())
}

/// Columns whose lists change: position, privileges, and whether all of them were asked for.
fn columns_asked(
    asked: &InternalGrant,
    relation: &Relation,
    whole: AclMode,
) -> Result<Vec<(usize, AclMode, bool)>> {
    let mut found: Vec<(usize, AclMode, bool)> = Vec::new();
    let all = AclKind::Column.all();
    // What is taken from the whole is taken from each column.
    if asked.revoke && whole & all != 0 {
        for (position, column) in relation.columns.iter().enumerate() {
            if !column.dropped {
                found.push((position, whole & all, asked.whole.is_none()));
            }
        }
    }
    if !asked.columns.is_empty() && kind_of(relation) == AclKind::Sequence {
        let selects = asked
            .columns
            .iter()
            .all(|(mask, _)| *mask == Some(p::SELECT));
        if !selects {
            return Err(SqlError::new(
                INVALID_GRANT,
                format!(
                    "sequence \"{}\" only supports SELECT column privileges",
                    relation.name
                ),
            ));
        }
    }
    for (mask, names) in &asked.columns {
        for name in names {
            let position = relation
                .columns
                .iter()
                .position(|c| !c.dropped && c.name == *name)
                .ok_or_else(|| {
                    SqlError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!(
                            "column \"{name}\" of relation \"{}\" does not exist",
                            relation.name
                        ),
                    )
                })?;
            let wanted = mask.unwrap_or(all);
            match found.iter_mut().find(|(known, ..)| *known == position) {
                Some(known) => {
                    known.1 |= wanted;
                    known.2 &= mask.is_none();
                }
                None => found.push((position, wanted, mask.is_none())),
            }
        }
    }
    Ok(found)
}
