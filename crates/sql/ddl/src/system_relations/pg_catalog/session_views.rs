//! Rows about what a session has (prepared statements, cursors, settings) and what it sees of the server's: advisory
//! locks, the settings file. They come from the session's context, not from the catalog.

use super::cells::{Id, Nil, regtype_array, row};
use logstead_sql_catalog::VirtualContext;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;

type Rows = Result<Vec<Vec<Datum>>>;

/// `pg_locks`: advisory locks only
pub(super) fn pg_locks(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx
        .session
        .server()?
        .advisory_locks()
        .into_iter()
        .map(|lock| {
            row![
                "advisory",
                lock.database,
                Nil,
                Nil,
                Nil,
                Nil,
                Nil,
                Id(lock.class),
                Id(lock.object),
                lock.kind,
                Nil,
                lock.pid,
                lock.mode,
                lock.granted,
                false,
                Nil
            ]
        });
    Ok(rows.collect())
}

/// `pg_prepared_statements`
pub(super) fn pg_prepared_statements(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx
        .session
        .session_objects()?
        .prepared_statements()
        .into_iter()
        .map(|p| {
            row![
                p.name,
                p.statement,
                Datum::TimestampTz(p.prepared_at),
                regtype_array(p.types),
                p.from_sql,
                p.runs,
                0i64
            ]
        });
    Ok(rows.collect())
}

/// `pg_cursors`
pub(super) fn pg_cursors(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx
        .session
        .session_objects()?
        .cursors()
        .into_iter()
        .map(|c| {
            row![
                c.name,
                c.statement,
                c.holdable,
                c.binary,
                c.scrollable,
                Datum::TimestampTz(c.created)
            ]
        });
    Ok(rows.collect())
}

/// `pg_file_settings`
pub(super) fn pg_file_settings(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx
        .session
        .server()?
        .file_settings()?
        .into_iter()
        .zip(1i32..);
    let rows = rows.map(|(setting, number)| {
        row![
            &setting.line.file,
            setting.line.line,
            number,
            &setting.line.name,
            &setting.line.value,
            setting.applied,
            setting.error.as_ref()
        ]
    });
    Ok(rows.collect())
}

/// `pg_settings`
pub(super) fn pg_settings(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx
        .session
        .session_objects()?
        .settings()
        .into_iter()
        .map(|s| {
            row![
                &s.name,
                &s.value,
                s.unit.as_ref(),
                s.category.as_str(),
                &s.description,
                Nil,
                s.context.as_str(),
                s.kind.as_str(),
                s.source.as_str(),
                s.min.as_ref(),
                s.max.as_ref(),
                (!s.values.is_empty()).then(|| super::cells::text_array(&s.values)),
                &s.default,
                &s.reset,
                s.place.as_ref().map(|(file, _)| file.as_str()),
                s.place.as_ref().map(|(_, line)| *line),
                s.pending_restart,
            ]
        });
    Ok(rows.collect())
}
