//! Row security: `pg_policy`, `pg_policies`.

use super::cells::{Ch, Id, name_array, oid_array, row};
use super::relations::ordered;
use crate::pg_catalog::viewdef;
use logstead_sql_catalog::{Catalog, Policy, Relation, View, VirtualContext};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use std::sync::Arc;

type Rows = Result<Vec<Vec<Datum>>>;

/// Every policy with its table and what is shown of it.
fn all<T>(
    cx: &VirtualContext<'_>,
    mut show: impl FnMut(&Arc<Catalog>, &Arc<Relation>, &Policy) -> T,
) -> Vec<T> {
    let secured = |r: &&Arc<Relation>| !r.security.policies.is_empty();
    if !cx.catalog.relations.values().any(|r| secured(&r)) {
        return Vec::new();
    }
    let catalog = Arc::new(cx.catalog.clone());
    let mut rows = Vec::new();
    for relation in ordered(&catalog) {
        for policy in &relation.security.policies {
            rows.push(show(&catalog, relation, policy));
        }
    }
    rows
}

fn text(
    catalog: &Arc<Catalog>,
    relation: &Arc<Relation>,
    condition: Option<&Arc<View>>,
    cx: &VirtualContext<'_>,
) -> Datum {
    let text = condition.and_then(|view| viewdef::policy(catalog, relation, view, cx.session).ok());
    text.map_or(Datum::Null, |text| Datum::Text(Arc::from(text)))
}

/// `pg_policy`
pub(super) fn pg_policy(cx: &VirtualContext<'_>) -> Rows {
    Ok(all(cx, |catalog, relation, policy| {
        row![
            Id(policy.oid),
            &policy.name,
            relation.oid,
            Ch(policy.command.code()),
            policy.permissive,
            oid_array(policy.roles.iter().copied()),
            text(catalog, relation, policy.using.as_ref(), cx),
            text(catalog, relation, policy.check.as_ref(), cx),
        ]
    }))
}

/// `pg_policies`
pub(super) fn pg_policies(cx: &VirtualContext<'_>) -> Rows {
    Ok(all(cx, |catalog, relation, policy| {
        let mut roles: Vec<String> = match policy.is_everybodys() {
            true => vec!["public".to_owned()],
            false => policy
                .roles
                .iter()
                .filter_map(|role| Some(catalog.roles.get(*role)?.name.clone()))
                .collect(),
        };
        roles.sort();
        row![
            &relation.schema_name,
            &relation.name,
            &policy.name,
            match policy.permissive {
                true => "PERMISSIVE",
                false => "RESTRICTIVE",
            },
            name_array(roles),
            policy.command.word(),
            text(catalog, relation, policy.using.as_ref(), cx),
            text(catalog, relation, policy.check.as_ref(), cx),
        ]
    }))
}
