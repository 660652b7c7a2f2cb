//! Rows of the views: tables, indexes and sequences for people, statistics and activity.

use super::cells::{Nil, OidOrZero, row};
use super::owner_name;
use super::relations::ordered;
use crate::pg_catalog::calls::{may_read_sequence, names_shown};
use crate::pg_catalog::viewdef;
use logstead_engine::ReplicaHoldReport;
use logstead_sql_catalog::context::BackendActivity;
use logstead_sql_catalog::{Relation, RelationKind, VirtualContext};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::user::{TypeLookup, UserTypeClass};
use logstead_sql_types::value::{Datum, Inet, Interval, SqlType, oid, user};
use std::sync::Arc;

type Rows = Result<Vec<Vec<Datum>>>;

/// Stored tables in OID order.
fn stored_tables<'a>(cx: &'a VirtualContext<'_>) -> impl Iterator<Item = &'a Relation> {
    ordered(cx.catalog)
        .into_iter()
        .map(|r| &**r)
        .filter(|r| r.has_rows())
}

/// `pg_tables`
pub(super) fn pg_tables(cx: &VirtualContext<'_>) -> Rows {
    let system = super::tables().filter(|t| !t.is_view()).map(|t| {
        row![
            t.schema,
            t.name,
            owner_name(cx.catalog, t.oid),
            Nil,
            true,
            false,
            false,
            false
        ]
    });
    let tables = stored_tables(cx).filter(|t| matches!(t.kind, RelationKind::Table));
    let user = tables.map(|t| {
        row![
            &t.schema_name,
            &t.name,
            owner_name(cx.catalog, t.oid),
            Nil,
            !t.indexes.is_empty(),
            false,
            false,
            t.security.enabled
        ]
    });
    Ok(system.chain(user).collect())
}

/// `pg_views`
pub(super) fn pg_views(cx: &VirtualContext<'_>) -> Rows {
    let system = super::tables().filter(|t| t.is_view()).map(|t| {
        row![
            t.schema,
            t.name,
            owner_name(cx.catalog, t.oid),
            super::view_texts::text_of(t.schema, t.name, false)
        ]
    });
    let mut rows: Vec<Vec<Datum>> = system.collect();
    let catalog = Arc::new(cx.catalog.clone());
    for r in ordered(&catalog) {
        if matches!(r.kind, RelationKind::View(_)) {
            // A view that reads itself has no text; the others are shown all the same.
            let definition = viewdef::text(&catalog, r, false, cx.session).unwrap_or_default();
            rows.push(row![
                &r.schema_name,
                &r.name,
                owner_name(cx.catalog, r.oid),
                definition
            ]);
        }
    }
    Ok(rows)
}

/// `pg_matviews`
pub(super) fn pg_matviews(cx: &VirtualContext<'_>) -> Rows {
    let mut rows: Vec<Vec<Datum>> = Vec::new();
    let catalog = Arc::new(cx.catalog.clone());
    for r in ordered(&catalog) {
        if let RelationKind::Materialized(_, populated) = &r.kind {
            // A view that reads itself has no text; the others are shown all the same.
            let definition = viewdef::text(&catalog, r, false, cx.session).unwrap_or_default();
            rows.push(row![
                &r.schema_name,
                &r.name,
                owner_name(cx.catalog, r.oid),
                Nil,
                !r.indexes.is_empty(),
                *populated,
                definition
            ]);
        }
    }
    Ok(rows)
}

/// `pg_indexes`
pub(super) fn pg_indexes(cx: &VirtualContext<'_>) -> Rows {
    let path = cx.session.search_path();
    let path = &path;
    let rows = stored_tables(cx).flat_map(|t| {
        t.indexes.iter().map(move |i| {
            row![&t.schema_name, &t.name, &i.name, Nil, {
                let options = cx.catalog.notes.options.get(&i.oid);
                let full = i.definition(
                    t,
                    options.map_or(&[], Vec::as_slice),
                    false,
                    cx.catalog.types.lookup(path),
                );
                names_shown(cx.catalog, &full, path)
            }]
        })
    });
    Ok(rows.collect())
}

/// `pg_sequences`
pub(super) fn pg_sequences(cx: &VirtualContext<'_>) -> Rows {
    let rows = ordered(cx.catalog)
        .into_iter()
        .filter_map(|r| match &r.kind {
            RelationKind::Sequence(s) => {
                let state = cx
                    .catalog
                    .notes
                    .live
                    .as_ref()
                    .and_then(|live| live.sequence(r.storage));
                // As PostgreSQL: not to who may not ask the sequence itself.
                let last = state
                    .filter(|s| s.1 && may_read_sequence(r, cx))
                    .map(|s| s.0);
                Some(row![
                    &r.schema_name,
                    &r.name,
                    owner_name(cx.catalog, r.oid),
                    // regtype in PostgreSQL: its number, printed as the type's name.
                    s.ty,
                    s.start,
                    s.min,
                    s.max,
                    s.increment,
                    s.cycle,
                    s.cache,
                    last,
                ])
            }
            _ => None,
        })
        .collect();
    cx.session.reply_dependencies()?.reads_sequences();
    Ok(rows)
}

/// `pg_stat_user_tables`
pub(super) fn pg_stat_user_tables(cx: &VirtualContext<'_>) -> Rows {
    let server = cx.session.server()?;
    let rows = stored_tables(cx).map(|t| {
        let live = cx
            .catalog
            .notes
            .live
            .as_ref()
            .and_then(|live| live.table_rows(t.storage))
            .unwrap_or(0);
        let analyzed = server.autoanalyzed(t.oid);
        let changed = logstead_sql_catalog::rows_changed(cx.catalog, t, analyzed);
        row![
            t.oid,
            &t.schema_name,
            &t.name,
            0_i64,
            0_i64,
            (!t.indexes.is_empty()).then_some(0_i64),
            (!t.indexes.is_empty()).then_some(0_i64),
            0_i64,
            0_i64,
            0_i64,
            0_i64,
            i64::try_from(live).unwrap_or(i64::MAX),
            0_i64,
            i64::try_from(changed).unwrap_or(i64::MAX),
            0_i64,
            Nil,
            Nil,
            Nil,
            analyzed.map(|last| Datum::TimestampTz(last.at)),
            0_i64,
            0_i64,
            0_i64,
            analyzed.map_or(0, |last| last.count),
        ]
    });
    Ok(rows.collect())
}

/// `pg_stat_all_tables`
pub(super) fn pg_stat_all_tables(cx: &VirtualContext<'_>) -> Rows {
    pg_stat_user_tables(cx)
}

/// `pg_stat_user_indexes`
pub(super) fn pg_stat_user_indexes(cx: &VirtualContext<'_>) -> Rows {
    let rows = stored_tables(cx).flat_map(|t| {
        t.indexes.iter().map(move |i| {
            row![
                t.oid,
                i.oid,
                &t.schema_name,
                &t.name,
                &i.name,
                0_i64,
                0_i64,
                0_i64
            ]
        })
    });
    Ok(rows.collect())
}

/// `pg_stat_all_indexes`
pub(super) fn pg_stat_all_indexes(cx: &VirtualContext<'_>) -> Rows {
    pg_stat_user_indexes(cx)
}

/// `pg_stat_activity`: the sessions the server tells of.
pub(super) fn pg_stat_activity(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx.session.server()?.activity().into_iter().map(|a| {
        let at = |time: Option<i64>| time.map(Datum::TimestampTz);
        // A socket of the machine has none.
        let address = a.client_address.as_deref();
        let address = address.and_then(|text| Inet::parse(text, false).ok());
        let (kind, event) = match a.waits_for_lock {
            Some(lock) => (Some("Lock"), Some(lock)),
            None if a.waits_for_client => (Some("Client"), Some("ClientRead")),
            None => (None, None),
        };
        row![
            a.database,
            &a.database_name,
            a.pid,
            Nil,
            OidOrZero(a.role),
            &a.user,
            a.application_name.as_ref(),
            address.map(Datum::inet),
            Nil,
            a.client_port,
            at(a.backend_start),
            at(a.transaction_start),
            at(a.query_start),
            at(a.state_change),
            kind,
            event,
            a.state,
            Nil,
            Nil,
            Nil,
            &a.query,
            a.state.map(|_| match a.replication {
                Some(_) => "walsender",
                None => "client backend",
            }),
        ]
    });
    Ok(rows.collect())
}

/// `pg_stat_replication`: the replicas that follow by a stream. A log's places are CSNs.
pub(super) fn pg_stat_replication(cx: &VirtualContext<'_>) -> Rows {
    let mut rows = Vec::new();
    for a in cx.session.server()?.activity() {
        let Some(progress) = a.replication else {
            continue;
        };
        let address = a.client_address.as_deref();
        let address = address.and_then(|text| Inet::parse(text, false).ok());
        let interval = |micros| {
            Datum::Interval(Box::new(Interval {
                months: 0,
                days: 0,
                micros,
            }))
        };
        let lag = progress.lag_us.map(interval);
        let is_behind = progress.replayed < progress.sent;
        rows.push(row![
            a.pid,
            OidOrZero(a.role),
            &a.user,
            a.application_name.as_ref(),
            address.map(Datum::inet),
            Nil,
            a.client_port,
            a.backend_start.map(Datum::TimestampTz),
            Nil,
            if is_behind && progress.reply_time.is_none() {
                "catchup"
            } else {
                "streaming"
            },
            Datum::Lsn(progress.sent.get()),
            Datum::Lsn(progress.replayed.get()),
            Datum::Lsn(progress.replayed.get()),
            Datum::Lsn(progress.replayed.get()),
            lag.clone(),
            lag.clone(),
            lag,
            0i32,
            "async",
            progress.reply_time.map(Datum::TimestampTz),
        ]);
    }
    Ok(rows)
}

/// `pg_replication_slots`: what is kept for the replicas that follow by a stream, also for a while after one was cut
/// off. A log's places are CSNs.
pub(super) fn pg_replication_slots(cx: &VirtualContext<'_>) -> Rows {
    let live = cx.catalog.notes.live.as_ref();
    let holds = live
        .and_then(|live| live.replica_holds())
        .unwrap_or_default();
    let activity = cx.session.server()?.activity();
    let row = |hold: ReplicaHoldReport| {
        let is_its = |a: &&BackendActivity| {
            a.replication
                .is_some_and(|progress| progress.holder == hold.id)
        };
        let backend = activity.iter().find(is_its).filter(|_| hold.is_connected);
        let status = hold.replayed.map(|_| match hold.log_from {
            Some(_) => "reserved",
            None => "lost",
        });
        row![
            format!("replica_{}", hold.id),
            Nil,
            "physical",
            Nil,
            Nil,
            true,
            hold.is_connected,
            backend.map(|a| a.pid),
            Nil,
            Nil,
            hold.log_from.map(|csn| Datum::Lsn(csn.get())),
            Nil,
            status,
            Nil,
            false,
        ]
    };
    Ok(holds.into_iter().map(row).collect())
}

/// `pg_stat_statements`: what the extension of this name shows. Planning, blocks and just-in-time compilation are not
/// counted.
pub(super) fn pg_stat_statements(cx: &VirtualContext<'_>) -> Rows {
    const NOT_COUNTED: usize = 25;
    let mut rows: Vec<Vec<Datum>> = Vec::new();
    for s in cx.session.server()?.statement_statistics() {
        let hidden = "<insufficient privilege>";
        let mut row = row![
            s.role,
            s.database,
            true,
            s.query_id,
            s.query.as_deref().unwrap_or(hidden),
            0i64,
            0f64,
            0f64,
            0f64,
            0f64,
            0f64,
            s.calls,
            s.total_ms,
            s.min_ms,
            s.max_ms,
            s.mean_ms,
            s.deviation_ms,
            s.rows
        ];
        row.resize(row.len() + NOT_COUNTED, Datum::Null);
        rows.push(row);
    }
    Ok(rows)
}

/// `pg_stat_database`: one row per database, nothing counted.
pub(super) fn pg_stat_database(cx: &VirtualContext<'_>) -> Rows {
    let width = cx
        .catalog
        .relations
        .values()
        .find(|r| r.name == "pg_stat_database")
        .map_or(0, |r| r.columns.len());
    let rows = cx.catalog.notes.databases.all().map(|database| {
        let mut row = row![database.oid, &database.name];
        row.resize(width, Datum::Null);
        row
    });
    Ok(rows.collect())
}

/// Name of a type as `information_schema` spells it: without modifier, arrays as "ARRAY".
pub(crate) fn plain_type_name(ty: TypeId, types: TypeLookup<'_>) -> String {
    if matches!(
        user::class(ty),
        Some(UserTypeClass::Enum | UserTypeClass::Base)
    ) {
        return "USER-DEFINED".to_owned();
    }
    match types.types.type_info(ty) {
        Some(t) if t.category == 'A' && t.name.starts_with('_') => "ARRAY".to_owned(),
        // Not in quotes, whatever its length.
        _ if ty == oid::BIT => "bit".to_owned(),
        _ => types.format_type(SqlType::of(ty)),
    }
}
