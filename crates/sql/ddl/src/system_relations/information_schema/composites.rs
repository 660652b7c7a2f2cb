//! What `information_schema` tells of composite types.

use super::rows::shape;
use crate::pg_catalog::cells::{Nil, row};
use crate::pg_catalog::plain_type_name;
use logstead_sql_catalog::VirtualContext;
use logstead_sql_catalog::role::acl::AclKind;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::user::{self, Composite, UserType, UserTypeClass};
use logstead_sql_types::value::{Datum, oid};

type Rows = Result<Vec<Vec<Datum>>>;

/// Those that the role may use.
fn usable<'a>(cx: &'a VirtualContext<'_>) -> impl Iterator<Item = (&'a UserType, &'a Composite)> {
    let acl_checker = cx.catalog.acl_checker(&cx.catalog.roles);
    let role = cx.session.current_role();
    let types = cx.catalog.types.all().into_iter();
    types.filter_map(move |ty| {
        let composite = ty.composite()?;
        let all = AclKind::Type.all();
        let kind = (ty.oid, AclKind::Type);
        let (has, _) = acl_checker.on_object(role, kind, all, 0);
        (has != 0).then_some((&**ty, composite))
    })
}

/// `attributes`
pub(super) fn attributes(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let path = cx.session.search_path();
    let types = cx.lookup(&path).types();
    let mut rows = Vec::new();
    for (ty, composite) in usable(cx) {
        for attribute in &composite.attributes {
            let of = attribute.ty.oid;
            let domain = cx.catalog.types.get(of).and_then(|ty| ty.domain());
            let s = shape(cx.catalog.types.base_type(attribute.ty));
            let shown = match user::class(of) {
                Some(UserTypeClass::Array) | None => plain_type_name(of, types),
                Some(_) => "USER-DEFINED".to_owned(),
            };
            let collates = of == oid::NAME || attribute.collation != 0;
            rows.push(row![
                database,
                &ty.schema_name,
                &ty.name,
                &*attribute.name,
                i32::from(attribute.number),
                Nil,
                match domain.is_some_and(|domain| domain.not_null) {
                    true => "NO",
                    false => "YES",
                },
                shown,
                s.length,
                s.octets,
                Nil,
                Nil,
                Nil,
                collates.then_some(database),
                collates.then_some("pg_catalog"),
                collates.then_some("C"),
                s.precision,
                s.radix,
                s.scale,
                s.datetime,
                Nil,
                Nil,
                database,
                cx.catalog.types.schema_of(of).unwrap_or("pg_catalog"),
                cx.catalog.types.type_name(of).into_owned(),
                Nil,
                Nil,
                Nil,
                Nil,
                attribute.number.to_string(),
                "NO",
            ]);
        }
    }
    Ok(rows)
}

/// `user_defined_types`
pub(super) fn user_defined_types(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let rows = usable(cx).map(|(ty, _)| {
        let mut row = row![database, &ty.schema_name, &ty.name, "STRUCTURED", "YES"];
        row.resize(29, Datum::Null);
        row
    });
    Ok(rows.collect())
}
