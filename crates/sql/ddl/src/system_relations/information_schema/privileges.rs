//! Rows about what was granted.
//!
//! A grant is shown to who gave it, who has it, and, but for the `role_` views, to everybody if everybody has it.

use crate::pg_catalog::cells::row;
use logstead_sql_catalog::privileges::kind_of;
use logstead_sql_catalog::role::acl::{
    ACL_ID_PUBLIC, Acl, AclItem, AclKind, AclMode, PRIVILEGES, privilege as p,
};
use logstead_sql_catalog::{Relation, RelationKind, VirtualContext};
use logstead_sql_types::RoleId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use std::sync::Arc;

type Rows = Result<Vec<Vec<Datum>>>;

fn yes_no(value: bool) -> &'static str {
    if value { "YES" } else { "NO" }
}

/// One privilege of an item.
struct GrantRow<'a> {
    grantor: String,
    grantee: String,
    relation: &'a Relation,
    privilege: &'static str,
    grantable: bool,
}

fn role_name(role: RoleId, cx: &VirtualContext<'_>) -> Option<String> {
    match role {
        ACL_ID_PUBLIC => Some("PUBLIC".to_owned()),
        role => Some(cx.catalog.roles.get(role)?.name.clone()),
    }
}

/// Whether the asker sees an item.
fn is_shown(item: &AclItem, own_only: bool, cx: &VirtualContext<'_>) -> bool {
    let acl_checker = cx.catalog.acl_checker(&cx.catalog.roles);
    let asker = cx.session.current_role();
    let has =
        |role: RoleId| role != ACL_ID_PUBLIC && acl_checker.members.has_privileges_of(asker, role);
    has(item.grantor) || has(item.grantee) || (item.grantee == ACL_ID_PUBLIC && !own_only)
}

/// The privileges of a list that are in `known`, each by itself.
fn granted<'a>(
    relation: &'a Relation,
    owner: RoleId,
    acl: &Acl,
    known: AclMode,
    own_only: bool,
    cx: &VirtualContext<'_>,
) -> Vec<GrantRow<'a>> {
    let mut rows = Vec::new();
    for item in acl.0.iter().filter(|item| is_shown(item, own_only, cx)) {
        for privilege in PRIVILEGES {
            if item.privileges & known & privilege.mask == 0 {
                continue;
            }
            let (Some(grantor), Some(grantee)) =
                (role_name(item.grantor, cx), role_name(item.grantee, cx))
            else {
                continue;
            };
            let acl_checker = cx.catalog.acl_checker(&cx.catalog.roles);
            let owns = item.grantee != ACL_ID_PUBLIC
                && acl_checker.members.has_privileges_of(item.grantee, owner);
            rows.push(GrantRow {
                grantor,
                grantee,
                relation,
                privilege: privilege.name,
                grantable: owns || item.grantable & privilege.mask != 0,
            });
        }
    }
    rows
}

fn relations<'a>(cx: &'a VirtualContext<'_>, sequences: bool) -> Vec<&'a Arc<Relation>> {
    let all = cx.catalog.relations.values();
    let mut all: Vec<_> = all
        .filter(|r| match r.kind {
            RelationKind::Sequence(_) => sequences,
            // PostgreSQL knows no materialized views here.
            RelationKind::Materialized(..) => false,
            _ => !sequences,
        })
        .collect();
    all.sort_unstable_by_key(|r| r.oid);
    all
}

fn acl_of(relation: &Relation, cx: &VirtualContext<'_>) -> (RoleId, Acl) {
    let owner = cx.catalog.owner_of(relation.oid);
    let acl = cx.catalog.acl_of(relation.oid);
    let acl = acl.unwrap_or_else(|| Acl::default_for(kind_of(relation), owner));
    (owner, acl)
}

fn tables(cx: &VirtualContext<'_>, own_only: bool) -> Rows {
    let mut rows = Vec::new();
    for relation in relations(cx, false) {
        let (owner, acl) = acl_of(relation, cx);
        let all = AclKind::Table.all();
        for g in granted(relation, owner, &acl, all, own_only, cx) {
            rows.push(row![
                g.grantor,
                g.grantee,
                &cx.catalog.database_name,
                &g.relation.schema_name,
                &g.relation.name,
                g.privilege,
                yes_no(g.grantable),
                yes_no(g.privilege == "SELECT")
            ]);
        }
    }
    Ok(rows)
}

fn columns(cx: &VirtualContext<'_>, own_only: bool) -> Rows {
    let mut rows = Vec::new();
    let all = AclKind::Column.all();
    for relation in relations(cx, false) {
        let (owner, whole) = acl_of(relation, cx);
        let privileges = cx.catalog.privileges_of(relation.oid);
        for (position, column) in relation.columns.iter().enumerate() {
            if column.dropped {
                continue;
            }
            let own = privileges.and_then(|privileges| privileges.columns.get(&position));
            let own = own.into_iter().flat_map(|acl| &acl.0);
            let mut items: Vec<AclItem> = Vec::new();
            for item in whole.0.iter().chain(own) {
                let same = items
                    .iter_mut()
                    .find(|i| i.grantee == item.grantee && i.grantor == item.grantor);
                match same {
                    Some(same) => {
                        same.privileges |= item.privileges;
                        same.grantable |= item.grantable;
                    }
                    None => items.push(*item),
                }
            }
            for g in granted(relation, owner, &Acl(items), all, own_only, cx) {
                rows.push(row![
                    g.grantor,
                    g.grantee,
                    &cx.catalog.database_name,
                    &g.relation.schema_name,
                    &g.relation.name,
                    &column.name,
                    g.privilege,
                    yes_no(g.grantable)
                ]);
            }
        }
    }
    Ok(rows)
}

fn usage(cx: &VirtualContext<'_>, own_only: bool) -> Rows {
    let mut rows = Vec::new();
    for relation in relations(cx, true) {
        let (owner, acl) = acl_of(relation, cx);
        for g in granted(relation, owner, &acl, p::USAGE, own_only, cx) {
            rows.push(row![
                g.grantor,
                g.grantee,
                &cx.catalog.database_name,
                &g.relation.schema_name,
                &g.relation.name,
                "SEQUENCE",
                "USAGE",
                yes_no(g.grantable)
            ]);
        }
    }
    Ok(rows)
}

/// `table_privileges`
pub(super) fn table_privileges(cx: &VirtualContext<'_>) -> Rows {
    tables(cx, false)
}

/// `role_table_grants`
pub(super) fn role_table_grants(cx: &VirtualContext<'_>) -> Rows {
    tables(cx, true)
}

/// `column_privileges`
pub(super) fn column_privileges(cx: &VirtualContext<'_>) -> Rows {
    columns(cx, false)
}

/// `role_column_grants`
pub(super) fn role_column_grants(cx: &VirtualContext<'_>) -> Rows {
    columns(cx, true)
}

/// `usage_privileges`
pub(super) fn usage_privileges(cx: &VirtualContext<'_>) -> Rows {
    usage(cx, false)
}

/// `role_usage_grants`
pub(super) fn role_usage_grants(cx: &VirtualContext<'_>) -> Rows {
    usage(cx, true)
}
