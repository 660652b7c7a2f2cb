//! What ANALYZE has found out: `pg_statistic`, which only superusers read, and `pg_stats`, which shows everybody what
//! is in columns that they may read.

use super::cells::{Nil, row};
use super::relations::ordered;
use logstead_sql_catalog::context::partial::ContextAdapter;
use logstead_sql_catalog::role::acl::privilege;
use logstead_sql_catalog::without_session::WithoutSession;
use logstead_sql_catalog::{Catalog, Column, ColumnStatistics, Relation, VirtualContext};
use logstead_sql_func as func;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{
    Datum, Oid, OutputStyle, SqlType, info, multirange, oid, range, text_io, user,
};
use std::sync::Arc;

type Rows = Result<Vec<Vec<Datum>>>;

/// What is known of columns that are still there, and of the type that they had.
fn known(
    catalog: &Catalog,
) -> impl Iterator<Item = (&Arc<Relation>, usize, &Column, &ColumnStatistics)> {
    ordered(catalog).into_iter().flat_map(|relation| {
        let found = catalog.statistics.get(&relation.oid);
        let columns = relation.columns.iter().enumerate();
        columns.filter_map(move |(position, column)| {
            let known = found?.column(position, column.ty.oid)?;
            (!column.dropped).then_some((relation, position, column, known))
        })
    })
}

/// Values as an array; those that are arrays themselves as texts.
fn array(ty: SqlType, values: &[Datum], types: TypeLookup<'_>) -> Datum {
    if values.is_empty() {
        return Datum::Null;
    }
    if info::category(ty.oid) != 'A' {
        return Datum::array(ty.oid, values.to_vec());
    }
    let without_session = WithoutSession { types: Some(types) };
    let names = ContextAdapter(&without_session);
    let style = OutputStyle {
        names: Some(&names),
        ..OutputStyle::UTC
    };
    let text = |value: &Datum| Datum::text(text_io::message_text(value, ty, &style));
    Datum::array(oid::TEXT, values.iter().map(text).collect())
}

fn shares(values: &[f32]) -> Datum {
    if values.is_empty() {
        return Datum::Null;
    }
    Datum::array(
        oid::FLOAT4,
        values.iter().map(|v| Datum::Float4(*v)).collect(),
    )
}

fn common(known: &ColumnStatistics, ty: SqlType, types: TypeLookup<'_>) -> (Datum, Datum) {
    let (values, freqs): (Vec<Datum>, Vec<f32>) = known.common.iter().cloned().unzip();
    (array(ty, &values, types), shares(&freqs))
}

/// `pg_stats`
pub(super) fn pg_stats(cx: &VirtualContext<'_>) -> Rows {
    let path = cx.session.search_path();
    let types = cx.lookup(&path).types();
    // Privileges are those of the present, whatever is read: what is gone since is shown to superusers only.
    let now = cx.session.present_of(cx.catalog);
    let present = now.as_deref().unwrap_or(cx.catalog);
    let acl_checker = present.acl_checker(&present.roles);
    let role = cx.session.current_role();
    let may_see = |relation: &Relation, at: usize| match present.relations.get(&relation.oid) {
        Some(known) => {
            acl_checker.has(role, known, privilege::SELECT, &[at])
                && acl_checker.is_secured_for(role, known).is_none()
                && acl_checker.is_secured_for(role, relation).is_none()
        }
        None => present.roles.is_superuser(role),
    };
    let seen = known(cx.catalog).filter(|(relation, at, ..)| may_see(relation, *at));
    let rows = seen.map(|(relation, _, column, known)| {
        let (values, freqs) = common(known, column.ty, types);
        row![
            &relation.schema_name,
            &relation.name,
            &column.name,
            false,
            known.null_frac,
            i32::try_from(known.width).unwrap_or(i32::MAX),
            known.distinct,
            values,
            freqs,
            array(column.ty, &known.bounds, types),
            known.correlation,
            Nil,
            Nil,
            Nil
        ]
    });
    Ok(rows.collect())
}

/// The operator of a name over two values of a type; 0 if there is none.
fn operator(name: &str, ty: TypeId) -> Oid {
    let ty = match ty {
        oid::VARCHAR => oid::TEXT,
        oid::CIDR => oid::INET,
        _ if user::is_enum(ty) => oid::ANYENUM,
        _ if user::is_composite(ty) => oid::RECORD,
        _ if range::is_range(ty) => oid::ANYRANGE,
        _ if multirange::is_multirange(ty) => oid::ANYMULTIRANGE,
        _ if info::category(ty) == 'A' => oid::ANYARRAY,
        _ => ty,
    };
    func::all_operators()
        .find(|o| o.name == name && o.left == Some(ty) && o.right == ty)
        .map_or(0, |o| o.oid)
}

/// What one of a row's five places holds.
struct Slot {
    kind: i16,
    operator: Oid,
    numbers: Datum,
    values: Datum,
}

/// `pg_statistic`
pub(super) fn pg_statistic(cx: &VirtualContext<'_>) -> Rows {
    let path = cx.session.search_path();
    let types = cx.lookup(&path).types();
    let rows = known(cx.catalog).map(|(relation, position, column, known)| {
        let ty = column.ty;
        let mut slots = Vec::with_capacity(5);
        let (values, numbers) = common(known, ty, types);
        if !values.is_null() {
            slots.push(Slot {
                kind: 1,
                operator: operator("=", ty.oid),
                numbers,
                values,
            });
        }
        let bounds = array(ty, &known.bounds, types);
        if !bounds.is_null() {
            slots.push(Slot {
                kind: 2,
                operator: operator("<", ty.oid),
                numbers: Datum::Null,
                values: bounds,
            });
        }
        if let Some(correlation) = known.correlation {
            slots.push(Slot {
                kind: 3,
                operator: operator("<", ty.oid),
                numbers: shares(&[correlation]),
                values: Datum::Null,
            });
        }
        slots.resize_with(5, || Slot {
            kind: 0,
            operator: 0,
            numbers: Datum::Null,
            values: Datum::Null,
        });
        let mut cells = row![
            relation.oid,
            i16::try_from(position + 1).unwrap_or(i16::MAX),
            false,
            known.null_frac,
            i32::try_from(known.width).unwrap_or(i32::MAX),
            known.distinct
        ];
        let collation = match ty.oid {
            oid::TEXT | oid::VARCHAR | oid::BPCHAR => 100,
            oid::NAME => 950,
            _ => 0,
        };
        cells.extend(slots.iter().map(|s| Datum::Int2(s.kind)));
        cells.extend(slots.iter().map(|s| Datum::Oid(s.operator)));
        cells.extend(slots.iter().map(|s| {
            let ordered = s.kind != 0;
            Datum::Oid(if ordered { collation } else { 0 })
        }));
        cells.extend(slots.iter_mut().map(|s| std::mem::take(&mut s.numbers)));
        cells.extend(slots.iter_mut().map(|s| std::mem::take(&mut s.values)));
        cells
    });
    Ok(rows.collect())
}
