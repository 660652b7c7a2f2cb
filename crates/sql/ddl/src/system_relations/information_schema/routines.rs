//! What `information_schema` tells of functions and procedures: of those that users have made.

use crate::pg_catalog::calls;
use logstead_sql_catalog::VirtualContext;
use logstead_sql_catalog::role::acl::{AclKind, privilege as p};
use logstead_sql_catalog::routine::{ArgMode, Language, Routine};
use logstead_sql_func::Volatility;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::user::TypeLookup;

type Rows = Result<Vec<Vec<Datum>>>;

/// A row of a view with what is told; all other columns are NULL.
fn filled(view: &str, cells: Vec<(&str, Datum)>) -> Vec<Datum> {
    let found = super::views().iter().find(|v| v.name == view);
    let columns = found.map_or(&[][..], |v| v.columns);
    let mut row = vec![Datum::Null; columns.len()];
    for (name, cell) in cells {
        if let Some(at) = columns.iter().position(|(known, _)| *known == name) {
            row[at] = cell;
        }
    }
    row
}

/// What is shown of a type: its kind of name, its schema and its own name.
fn type_cells(ty: TypeId, known: TypeLookup<'_>) -> (Datum, Datum, Datum) {
    let types = known.types;
    let schema = types.schema_of(ty).unwrap_or("pg_catalog");
    let shown = if types.element_of(ty).is_some() {
        "ARRAY".to_owned()
    } else if schema == "pg_catalog" {
        known.format_type_bare(ty)
    } else {
        "USER-DEFINED".to_owned()
    };
    let name = types.type_name(ty).into_owned();
    (Datum::text(shown), Datum::text(schema), Datum::text(name))
}

fn specific(routine: &Routine) -> Datum {
    Datum::text(format!("{}_{}", routine.name, routine.oid))
}

fn yes_no(value: bool) -> Datum {
    Datum::text(if value { "YES" } else { "NO" })
}

/// Those that the asker may see, each with whether it is the asker's.
fn shown<'a>(cx: &'a VirtualContext<'_>) -> Vec<(&'a Routine, bool)> {
    let acl_checker = cx.catalog.acl_checker(&cx.catalog.roles);
    let asker = cx.session.current_role();
    let all = cx.catalog.routines.all().into_iter();
    all.filter_map(|routine| {
        let own = acl_checker.owns(asker, routine.oid);
        let object = (routine.oid, AclKind::Function);
        let may = own || acl_checker.on_object(asker, object, p::EXECUTE, 0).0 != 0;
        may.then_some((&**routine, own))
    })
    .collect()
}

/// `routines`
pub(super) fn routines(cx: &VirtualContext<'_>) -> Rows {
    let path = cx.session.search_path();
    let database = || Datum::text(cx.catalog.database_name.clone());
    let row = |(routine, own): (&Routine, bool)| {
        let schema = || Datum::text(routine.schema_name.clone());
        let name = || Datum::text(routine.name.clone());
        let sql = routine.language == Language::Sql;
        let mut cells = vec![
            ("specific_catalog", database()),
            ("specific_schema", schema()),
            ("specific_name", specific(routine)),
            ("routine_catalog", database()),
            ("routine_schema", schema()),
            ("routine_name", name()),
            ("routine_type", Datum::text(routine.word().to_uppercase())),
            ("dtd_identifier", Datum::text("0")),
            (
                "routine_body",
                Datum::text(if sql { "SQL" } else { "EXTERNAL" }),
            ),
            (
                "external_language",
                Datum::text(routine.language.name().to_uppercase()),
            ),
            ("parameter_style", Datum::text("GENERAL")),
            (
                "is_deterministic",
                yes_no(routine.volatility == Volatility::Immutable),
            ),
            ("sql_data_access", Datum::text("MODIFIES")),
            ("schema_level_routine", Datum::text("YES")),
            ("max_dynamic_result_sets", Datum::Int4(0)),
            (
                "security_type",
                Datum::text(if routine.definer {
                    "DEFINER"
                } else {
                    "INVOKER"
                }),
            ),
            ("as_locator", Datum::text("NO")),
            ("is_udt_dependent", Datum::text("NO")),
        ];
        if !routine.procedure {
            let (shown, of, ty) = type_cells(routine.result, cx.lookup(&path).types());
            cells.extend([
                ("data_type", shown),
                ("type_udt_catalog", database()),
                ("type_udt_schema", of),
                ("type_udt_name", ty),
                ("is_null_call", yes_no(routine.strict)),
            ]);
        }
        if own {
            let source = routine.body.source().to_owned();
            cells.push(("routine_definition", Datum::text(source)));
        }
        filled("routines", cells)
    };
    Ok(shown(cx).into_iter().map(row).collect())
}

/// `parameters`
pub(super) fn parameters(cx: &VirtualContext<'_>) -> Rows {
    let database = || Datum::text(cx.catalog.database_name.clone());
    let path = cx.session.search_path();
    let mut rows = Vec::new();
    for (routine, own) in shown(cx) {
        for (arg, at) in routine.args.iter().zip(1_i32..) {
            let (shown, of, ty) = type_cells(arg.ty, cx.lookup(&path).types());
            let mode = match arg.mode {
                ArgMode::In | ArgMode::Variadic => "IN",
                ArgMode::InOut => "INOUT",
                ArgMode::Out | ArgMode::Table => "OUT",
            };
            let mut cells = vec![
                ("specific_catalog", database()),
                ("specific_schema", Datum::text(routine.schema_name.clone())),
                ("specific_name", specific(routine)),
                ("ordinal_position", Datum::Int4(at)),
                ("parameter_mode", Datum::text(mode)),
                ("is_result", Datum::text("NO")),
                ("as_locator", Datum::text("NO")),
                ("data_type", shown),
                ("udt_catalog", database()),
                ("udt_schema", of),
                ("udt_name", ty),
                ("dtd_identifier", Datum::text(at.to_string())),
            ];
            if !arg.name.is_empty() {
                cells.push(("parameter_name", Datum::text(arg.name.clone())));
            }
            if let Some(default) = arg.default.as_deref().filter(|_| own) {
                let shown = calls::default_shown(cx.catalog, default, &path);
                cells.push(("parameter_default", Datum::text(shown)));
            }
            rows.push(filled("parameters", cells));
        }
    }
    Ok(rows)
}
