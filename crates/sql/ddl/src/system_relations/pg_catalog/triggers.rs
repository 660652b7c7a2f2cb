//! Triggers: `pg_trigger`, `pg_get_triggerdef`, and what `information_schema` shows of them.

use super::cells::{Ch, Id, Nil, OidOrZero, int2vector, row};
use crate::pg_catalog::viewdef;
use logstead_sql_catalog::role::acl::{AclMode, privilege};
use logstead_sql_catalog::text::{quote_ident, quote_literal};
use logstead_sql_catalog::trigger::{BuiltInTrigger, Trigger, TriggerEvent};
use logstead_sql_catalog::{Catalog, Relation, Timing, VirtualContext};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, Oid};
use std::fmt::Write;
use std::sync::Arc;

type Rows = Result<Vec<Vec<Datum>>>;

/// `pg_trigger`
pub(super) fn pg_trigger(cx: &VirtualContext<'_>) -> Rows {
    let mut rows = Vec::new();
    for trigger in cx.catalog.triggers.all() {
        let mut args = Vec::new();
        for arg in &trigger.args {
            args.extend_from_slice(arg.as_bytes());
            args.push(0);
        }
        let attributes = trigger.columns.iter();
        let attributes = attributes.map(|at| i16::try_from(at + 1).unwrap_or(i16::MAX));
        let count = i16::try_from(trigger.args.len()).unwrap_or(i16::MAX);
        let constraint = trigger.constraint.as_ref();
        let timing = constraint.map_or(Timing::Immediate, |c| c.timing);
        rows.push(row![
            Id(trigger.oid),
            trigger.table,
            Id(0),
            &trigger.name,
            trigger.function,
            trigger.bits(),
            Ch(trigger.enabled.letter()),
            false,
            OidOrZero(constraint.and_then(|c| c.from)),
            Id(0),
            Id(constraint.map_or(0, |c| c.oid)),
            timing.is_deferrable(),
            timing.is_deferred(),
            count,
            int2vector(attributes),
            Datum::Bytea(args.into()),
            match condition(trigger, false, cx) {
                Some(text) => Datum::Text(Arc::from(text)),
                None => Datum::Null,
            },
            trigger.old_table.as_deref(),
            trigger.new_table.as_deref(),
        ]);
    }
    Ok(rows)
}

/// WHEN as PostgreSQL shows it.
fn condition(trigger: &Trigger, pretty: bool, cx: &VirtualContext<'_>) -> Option<String> {
    let when = trigger.when.as_ref()?;
    let table = cx.catalog.relations.get(&trigger.table)?;
    let catalog = Arc::new(cx.catalog.clone());
    viewdef::trigger(&catalog, table, when, pretty, cx.session).ok()
}

/// What it calls, as it is written.
fn called(trigger: &Trigger, catalog: &Catalog, path: &[String]) -> String {
    let function = catalog.routines.get(trigger.function);
    let name = match (function, BuiltInTrigger::by_oid(trigger.function)) {
        (Some(function), _) => catalog.routine_name(function, path),
        (None, Some((_, name))) => name.to_owned(),
        (None, None) => "?".to_owned(),
    };
    let args: Vec<String> = trigger.args.iter().map(|arg| quote_literal(arg)).collect();
    format!("EXECUTE FUNCTION {name}({})", args.join(", "))
}

/// The statement that makes it: `pg_get_triggerdef`.
pub(crate) fn definition(oid: Oid, pretty: bool, cx: &VirtualContext<'_>) -> Option<String> {
    let trigger = cx.catalog.triggers.get(oid)?;
    let table = cx.catalog.relations.get(&trigger.table)?;
    let path = cx.session.search_path();
    let mut out = format!(
        "CREATE {}TRIGGER {} {}",
        match trigger.constraint {
            Some(_) => "CONSTRAINT ",
            None => "",
        },
        quote_ident(&trigger.name),
        trigger.time.word()
    );
    let mut events = Vec::new();
    for event in TriggerEvent::ALL {
        if !trigger.is_about(event) {
            continue;
        }
        let mut text = event.word().to_owned();
        if event == TriggerEvent::Update && !trigger.columns.is_empty() {
            let columns = trigger
                .columns
                .iter()
                .filter_map(|at| table.columns.get(*at));
            let columns: Vec<String> = columns.map(|c| quote_ident(&c.name)).collect();
            let _ = write!(text, " OF {}", columns.join(", "));
        }
        events.push(text);
    }
    let _ = write!(
        out,
        " {} ON {}",
        events.join(" OR "),
        shown(table, pretty, cx, &path)
    );
    if let Some(constraint) = &trigger.constraint {
        let from = constraint
            .from
            .and_then(|oid| cx.catalog.relations.get(&oid));
        if let Some(from) = from {
            let _ = write!(out, " FROM {}", shown(from, true, cx, &path));
        }
        out.push_str(match constraint.timing {
            Timing::Immediate => " NOT DEFERRABLE INITIALLY IMMEDIATE",
            Timing::Deferrable => " DEFERRABLE INITIALLY IMMEDIATE",
            Timing::Deferred => " DEFERRABLE INITIALLY DEFERRED",
        });
    }
    if trigger.old_table.is_some() || trigger.new_table.is_some() {
        out.push_str(" REFERENCING");
        for (row, name) in [("OLD", &trigger.old_table), ("NEW", &trigger.new_table)] {
            if let Some(name) = name {
                let _ = write!(out, " {row} TABLE AS {}", quote_ident(name));
            }
        }
    }
    out.push_str(match trigger.row {
        true => " FOR EACH ROW",
        false => " FOR EACH STATEMENT",
    });
    if let Some(when) = condition(trigger, pretty, cx) {
        let _ = write!(out, " WHEN ({when})");
    }
    let _ = write!(out, " {}", called(trigger, cx.catalog, &path));
    Some(out)
}

/// A table's name: qualified, unless it is for people and the path finds it.
fn shown(table: &Relation, pretty: bool, cx: &VirtualContext<'_>, path: &[String]) -> String {
    let short = logstead_sql_catalog::text::relation_text(cx.catalog, table.oid, path);
    match short {
        Some(short) if pretty => short,
        _ => format!(
            "{}.{}",
            quote_ident(&table.schema_name),
            quote_ident(&table.name)
        ),
    }
}

/// Privileges that a column may have, beside SELECT.
const COLUMN: [AclMode; 3] = [privilege::INSERT, privilege::UPDATE, privilege::REFERENCES];

/// Triggers of tables that the current role owns or has another privilege on than SELECT, if only on a column.
fn visible<'c>(cx: &'c VirtualContext<'_>) -> Vec<(&'c Arc<Trigger>, &'c Arc<Relation>)> {
    use logstead_sql_catalog::role::acl::privilege as p;
    let acl_checker = cx.catalog.acl_checker(&cx.catalog.roles);
    let role = cx.session.current_role();
    let wanted = p::INSERT | p::UPDATE | p::DELETE | p::TRUNCATE | p::REFERENCES | p::TRIGGER;
    let on_column = |table: &Relation| {
        COLUMN
            .iter()
            .any(|wanted| acl_checker.has(role, table, *wanted, &[]))
    };
    let all = cx.catalog.triggers.all().into_iter();
    let with_tables = all.filter_map(|trigger| {
        let table = cx.catalog.relations.get(&trigger.table)?;
        Some((trigger, table))
    });
    with_tables
        .filter(|(_, table)| {
            acl_checker.owns(role, table.oid)
                || acl_checker.on_relation(role, table, wanted, 0).0 != 0
                || on_column(table)
        })
        .collect()
}

/// `information_schema.triggers`: a row for each event.
pub(crate) fn triggers(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let acl_checker = cx.catalog.acl_checker(&cx.catalog.roles);
    let role = cx.session.current_role();
    let path = cx.session.search_path();
    let mut rows = Vec::new();
    for (trigger, table) in visible(cx) {
        for event in TriggerEvent::ALL {
            if event == TriggerEvent::Truncate || !trigger.is_about(event) {
                continue;
            }
            let same = |other: &&Arc<Trigger>| {
                other.is_about(event) && other.row == trigger.row && other.time == trigger.time
            };
            let of_table = cx.catalog.triggers.of(table.oid).iter().filter(same);
            let before = of_table.filter(|other| other.name < trigger.name).count();
            // Conditions are the owner's to see.
            let owns = acl_checker.owns(role, table.oid);
            rows.push(row![
                database,
                &table.schema_name,
                &trigger.name,
                event.word(),
                database,
                &table.schema_name,
                &table.name,
                i32::try_from(before + 1).unwrap_or(i32::MAX),
                condition(trigger, false, cx).filter(|_| owns),
                called(trigger, cx.catalog, &path),
                if trigger.row { "ROW" } else { "STATEMENT" },
                trigger.time.word(),
                trigger.old_table.as_deref(),
                trigger.new_table.as_deref(),
                Nil,
                Nil,
                Nil,
            ]);
        }
    }
    Ok(rows)
}

/// `information_schema.triggered_update_columns`
pub(crate) fn triggered_update_columns(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let acl_checker = cx.catalog.acl_checker(&cx.catalog.roles);
    let role = cx.session.current_role();
    let mut rows = Vec::new();
    for (trigger, table) in visible(cx) {
        let owns = acl_checker.owns(role, table.oid);
        let has = |at: &&usize| {
            let mut privileges = COLUMN.iter();
            owns || privileges.any(|wanted| acl_checker.has(role, table, *wanted, &[**at]))
        };
        for column in { trigger.columns.iter().filter(has) }.filter_map(|at| table.columns.get(*at))
        {
            rows.push(row![
                database,
                &table.schema_name,
                &trigger.name,
                database,
                &table.schema_name,
                &table.name,
                &column.name,
            ]);
        }
    }
    Ok(rows)
}
