//! Rows about types, and the functions that read and print them.

use super::OWNER;
use super::cells::{Cell, Ch, Id, Nil, OidOrZero, row};
use super::relations::acl;
use logstead_sql_catalog::classes::{INFORMATION_SCHEMA_NAMESPACE, PG_CATALOG_NAMESPACE};
use logstead_sql_catalog::io_functions::io_function_by_name;
use logstead_sql_catalog::{VirtualContext, VirtualTable};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::user::{self, Domain, UserKind, UserType};
use logstead_sql_types::value::{Datum, Oid, info, multirange, oid, range};
use logstead_sql_types::{RelationId, SchemaId, TypeId};
use std::sync::OnceLock;

/// `pg_type`
pub(super) fn pg_type(cx: &VirtualContext<'_>) -> Result<Vec<Vec<Datum>>> {
    static ROWS: OnceLock<Vec<Vec<Datum>>> = OnceLock::new();
    let mut rows = ROWS
        .get_or_init(|| {
            let built_in = info::TYPES.iter().map(built_in);
            built_in
                .chain(super::tables().flat_map(system_row))
                .collect()
        })
        .clone();
    for ty in cx.catalog.types.all() {
        let first = rows.len();
        match &ty.kind {
            UserKind::Enum(_) => rows.push(type_row(
                &info::TypeInfo {
                    oid: ty.oid,
                    array: Some(user::array_over(ty.oid)),
                    ..info::ENUM
                },
                &ty.name,
                ty.schema,
            )),
            UserKind::Domain(domain) => rows.extend(domain_row(cx, ty, domain)),
            UserKind::Range(range) => {
                let align = info::by_oid(range.subtype).map_or('i', |t| t.align);
                let align = if align == 'd' { 'd' } else { 'i' };
                let multirange = user::multirange_over(ty.oid);
                for (base, oid, name) in [
                    (info::RANGE, ty.oid, &ty.name),
                    (info::MULTIRANGE, multirange, &range.multirange_name),
                ] {
                    let info = info::TypeInfo {
                        oid,
                        array: Some(user::array_over(oid)),
                        align,
                        ..base
                    };
                    rows.push(type_row(&info, name, ty.schema));
                }
                let array = info::TypeInfo {
                    oid: user::array_over(multirange),
                    elem: Some(multirange),
                    align,
                    ..info::USER_ARRAY
                };
                rows.push(type_row(&array, &range.multirange_array_name, ty.schema));
            }
            UserKind::Base => {
                rows.extend(info::by_oid(ty.oid).map(|info| type_row(info, &ty.name, ty.schema)));
            }
            UserKind::Composite(composite) => {
                rows.push(composite_row(
                    ty.oid,
                    &ty.name,
                    ty.schema,
                    composite.relation,
                ));
            }
        }
        let mut array = type_row(
            &info::TypeInfo {
                oid: user::array_over(ty.oid),
                elem: Some(ty.oid),
                ..info::USER_ARRAY
            },
            &ty.array_name,
            ty.schema,
        );
        // It is collated as its elements are.
        if let (Some(domain), Some(slot)) = (ty.domain(), array.get_mut(column::COLLATION)) {
            *slot = Id(collation_of(domain)).datum();
        }
        let wide = ty.range().and_then(|range| info::by_oid(range.subtype));
        if (ty.composite().is_some() || wide.is_some_and(|t| t.align == 'd'))
            && let Some(slot) = array.get_mut(column::ALIGN)
        {
            *slot = Ch('d').datum();
        }
        rows.push(array);
        let owner = cx.catalog.owner_of(ty.oid);
        let granted = acl(cx.catalog, ty.oid);
        for row in rows.iter_mut().skip(first) {
            // The array has its elements' owner, and no list of its own.
            let of_array = matches!(row.first(), Some(Datum::Oid(oid)) if *oid != ty.oid.get());
            set(row, column::OWNER, owner.datum());
            if !of_array {
                set(row, column::ACL, granted.clone());
            }
        }
    }
    for relation in super::relations::ordered(cx.catalog) {
        let Some(ty) = cx.catalog.types.row_type(relation.oid) else {
            continue;
        };
        let owner = cx.catalog.owner_of(relation.oid);
        let mut own = composite_row(ty.oid, &relation.name, relation.schema, relation.oid);
        set(&mut own, column::OWNER, owner.datum());
        rows.push(own);
        let mut array = type_row(
            &info::TypeInfo {
                oid: user::array_over(ty.oid),
                elem: Some(ty.oid),
                align: 'd',
                ..info::USER_ARRAY
            },
            &cx.catalog.types.type_name(user::array_over(ty.oid)),
            relation.schema,
        );
        set(&mut array, column::OWNER, owner.datum());
        rows.push(array);
    }
    Ok(rows)
}

/// The type of a system relation's rows, and the array over it.
fn system_row(table: &'static VirtualTable) -> Vec<Vec<Datum>> {
    let Some(ty) = user::row_type_of(table.oid) else {
        return Vec::new();
    };
    let schema = match table.schema {
        "pg_catalog" => PG_CATALOG_NAMESPACE,
        _ => INFORMATION_SCHEMA_NAMESPACE,
    };
    let array = info::TypeInfo {
        oid: user::array_over(ty),
        elem: Some(ty),
        align: 'd',
        ..info::USER_ARRAY
    };
    vec![
        composite_row(ty, table.name, schema, table.oid),
        type_row(&array, &format!("_{}", table.name), schema),
    ]
}

fn set(row: &mut [Datum], at: usize, value: Datum) {
    if let Some(slot) = row.get_mut(at) {
        *slot = value;
    }
}

/// A composite type, or the type of a relation's rows.
fn composite_row(oid: TypeId, name: &str, schema: SchemaId, relation: RelationId) -> Vec<Datum> {
    let info = info::TypeInfo {
        oid,
        array: Some(user::array_over(oid)),
        ..info::COMPOSITE
    };
    let mut row = type_row(&info, name, schema);
    if let Some(slot) = row.get_mut(column::RELATION) {
        *slot = relation.datum();
    }
    row
}

/// What some types have that others have not: its place among the columns of `pg_type`.
mod column {
    pub(super) const OWNER: usize = 3;
    pub(super) const RELATION: usize = 11;
    pub(super) const ALIGN: usize = 22;
    pub(super) const SUBSCRIPT: usize = 12;
    pub(super) const NOT_NULL: usize = 24;
    pub(super) const BASE_TYPE: usize = 25;
    pub(super) const MODIFIER: usize = 26;
    pub(super) const COLLATION: usize = 28;
    pub(super) const DEFAULT_TREE: usize = 29;
    pub(super) const DEFAULT: usize = 30;
    pub(super) const ACL: usize = 31;
}

/// `typcollation` of a domain, and of the array over it.
pub(super) fn collation_of(domain: &Domain) -> Oid {
    match domain.collation {
        0 => info::by_oid(domain.base.oid).map_or(0, info::TypeInfo::collation),
        said => said,
    }
}

fn domain_row(cx: &VirtualContext<'_>, ty: &UserType, domain: &Domain) -> Option<Vec<Datum>> {
    let base = info::by_oid(domain.base.oid)?;
    let info = info::TypeInfo {
        oid: ty.oid,
        kind: 'd',
        preferred: false,
        array: Some(user::array_over(ty.oid)),
        elem: None,
        input: "domain_in",
        receive: "domain_recv",
        modin: "",
        modout: "",
        ..*base
    };
    let mut row = type_row(&info, &ty.name, ty.schema);
    let default = domain.default.as_deref();
    let shown = default.map(|text| {
        let path = cx.session.search_path();
        crate::pg_catalog::calls::default_shown(cx.catalog, text, &path)
    });
    for (at, value) in [
        // It is no array, and it is collated as its base type.
        (column::SUBSCRIPT, Id(0).datum()),
        (column::COLLATION, Id(collation_of(domain)).datum()),
        (column::NOT_NULL, domain.not_null.datum()),
        (column::BASE_TYPE, domain.over.oid.datum()),
        (column::MODIFIER, domain.over.typmod.datum()),
        (column::DEFAULT_TREE, default.datum()),
        (column::DEFAULT, shown.datum()),
    ] {
        if let Some(slot) = row.get_mut(at) {
            *slot = value;
        }
    }
    Some(row)
}

/// `pg_range`
pub(super) fn pg_range(cx: &VirtualContext<'_>) -> Result<Vec<Vec<Datum>>> {
    let ranges = [
        (oid::INT4RANGE, 1978, 3914, 3922),
        (oid::NUMRANGE, 3125, 0, 3924),
        (oid::TSRANGE, 3128, 0, 3929),
        (oid::TSTZRANGE, 3127, 0, 3930),
        (oid::DATERANGE, 3122, 3915, 3925),
        (oid::INT8RANGE, 3124, 3928, 3923),
    ];
    let row = |(ty, class, canonical, difference)| {
        row![
            ty,
            OidOrZero(range::subtype(ty)),
            OidOrZero(multirange::multirange_of(ty)),
            Id(0),
            Id(class),
            Id(canonical),
            Id(difference)
        ]
    };
    let mut rows: Vec<Vec<Datum>> = ranges.into_iter().map(row).collect();
    for ty in cx.catalog.types.all() {
        if let Some(range) = ty.range() {
            rows.push(row![
                ty.oid,
                range.subtype,
                user::multirange_over(ty.oid),
                Id(range.collation),
                Id(range.class),
                Id(0),
                OidOrZero(range.difference)
            ]);
        }
    }
    Ok(rows)
}

/// `pg_enum`
pub(super) fn pg_enum(cx: &VirtualContext<'_>) -> Result<Vec<Vec<Datum>>> {
    let mut rows = Vec::new();
    for ty in cx.catalog.types.all() {
        for label in ty.labels() {
            rows.push(row![Id(label.oid), ty.oid, label.sort, &*label.name]);
        }
    }
    Ok(rows)
}

fn built_in(t: &info::TypeInfo) -> Vec<Datum> {
    type_row(t, t.name, PG_CATALOG_NAMESPACE)
}

fn type_row(t: &info::TypeInfo, name: &str, schema: SchemaId) -> Vec<Datum> {
    let function = |name: &str| OidOrZero(io_function_by_name(name));
    let subscript = match t.oid {
        oid::INT2VECTOR | oid::OIDVECTOR => 6179,
        oid::NAME | oid::POINT | oid::LSEG | oid::BOX | oid::LINE => 6180,
        oid::JSONB => 6098,
        _ if t.category == 'A' => 6179,
        _ => 0,
    };
    row![
        t.oid,
        name,
        schema,
        OWNER,
        t.len,
        t.by_value,
        Ch(t.kind),
        Ch(t.category),
        t.preferred,
        true,
        Ch(t.delimiter()),
        Id(0),
        Id(subscript),
        OidOrZero(t.elem),
        OidOrZero(t.array),
        function(t.input),
        function(t.output),
        function(t.receive),
        function(t.send),
        function(t.modin),
        function(t.modout),
        Id(0),
        Ch(t.align),
        Ch(t.storage),
        false,
        Id(0),
        -1_i32,
        0_i32,
        Id(t.collation()),
        Nil,
        Nil,
        Nil,
    ]
}
