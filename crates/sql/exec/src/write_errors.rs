//! What a refused write is told: constraints, keys and policies that a row violates, and failures of the engine.
//!
//! Invariant: of a row an error tells what the role may read, and what it has given itself.
//!
//! Does not: evaluate constraints (`write`, `constraints`).

use crate::eval::text_of;
use crate::index_keys;
use crate::index_keys::RowKeys;
use crate::wait::deadlock;
use logstead_engine::{RowRef, Table, WriteError};
use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::privileges::DetailVisibility;
use logstead_sql_catalog::{IndexDef, Relation};
use logstead_sql_plan::{Check, CheckKind, PolicyCheck};
use logstead_sql_types::error::{Result, SqlError, out_of_memory};
use logstead_sql_types::value::Datum;
use logstead_types::{IndexId, SqlState};

/// NOT NULL, for the columns that `concerned` names. `given` are those that the statement gives values, which an error
/// tells of.
pub(crate) fn check_not_null(
    relation: &Relation,
    row: &[Datum],
    given: &[usize],
    concerned: impl Fn(usize) -> bool,
    session: &dyn Context,
) -> Result<()> {
    for (position, (column, datum)) in relation.columns.iter().zip(row).enumerate() {
        if column.not_null && !column.dropped && datum.is_null() && concerned(position) {
            let message = format!(
                "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                column.name, relation.name
            );
            let error = SqlError::new(SqlState::NOT_NULL_VIOLATION, message);
            return Err(failing_row(error, relation, row, given, session)
                .table(&relation.schema_name, &relation.name)
                .column(&column.name));
        }
    }
    Ok(())
}

/// 42501 for a row that a policy refuses. It tells nothing of the row.
fn policy_violation(relation: &Relation, name: &str, of: PolicyCheck) -> SqlError {
    let row = match of {
        PolicyCheck::Target => "target row",
        PolicyCheck::NewRow | PolicyCheck::Conflicting => "new row",
    };
    let policy = match name {
        "" => String::new(),
        name => format!(" \"{name}\""),
    };
    let using = match of {
        PolicyCheck::NewRow => "",
        PolicyCheck::Conflicting | PolicyCheck::Target => " (USING expression)",
    };
    SqlError::new(
        SqlState::INSUFFICIENT_PRIVILEGE,
        format!(
            "{row} violates row-level security policy{policy}{using} for table \"{}\"",
            relation.name
        ),
    )
}

/// 23514 for a full row.
pub(crate) fn check_violation(
    relation: &Relation,
    check: &Check,
    row: &[Datum],
    given: &[usize],
    session: &dyn Context,
) -> SqlError {
    match check.kind {
        CheckKind::Constraint => {}
        CheckKind::View => {
            let message = format!("new row violates check option for view \"{}\"", check.name);
            let error = SqlError::new(SqlState::new(b"44000"), message);
            return failing_row(error, relation, row, given, session);
        }
        CheckKind::Policy(of) => return policy_violation(relation, &check.name, of),
    }
    let message = format!(
        "new row for relation \"{}\" violates check constraint \"{}\"",
        relation.name, check.name
    );
    let error = SqlError::new(SqlState::CHECK_VIOLATION, message);
    failing_row(error, relation, row, given, session)
        .table(&relation.schema_name, &relation.name)
        .constraint(&check.name)
}

/// Longest text of a value in "Failing row contains", PostgreSQL's limit.
const FAILING_VALUE_BYTES_MAX: usize = 64;

/// An error with the row that fails: of it what the role may read, and what it has given itself.
fn failing_row(
    error: SqlError,
    relation: &Relation,
    row: &[Datum],
    given: &[usize],
    session: &dyn Context,
) -> SqlError {
    let told = session.detail_visibility(relation);
    let all = relation.columns.iter().zip(row).enumerate();
    let shown = all.filter(|(at, (column, _))| {
        let known =
            told.has(*at) || (given.contains(at) && !matches!(told, DetailVisibility::Nothing));
        known && !column.dropped
    });
    let (mut names, mut text) = (String::new(), String::new());
    let mut first = true;
    for (_, (column, datum)) in shown {
        if !std::mem::replace(&mut first, false) {
            text.push_str(", ");
            names.push_str(", ");
        }
        names.push_str(&column.name);
        let value = if datum.is_null() {
            String::from("null")
        } else {
            text_of(datum, column.ty, session).unwrap_or_default()
        };
        if value.len() <= FAILING_VALUE_BYTES_MAX {
            text.push_str(&value);
        } else {
            let mut end = FAILING_VALUE_BYTES_MAX;
            while !value.is_char_boundary(end) {
                end -= 1;
            }
            text.push_str(&value[..end]);
            text.push_str("...");
        }
    }
    match told {
        DetailVisibility::All => error.detail(format!("Failing row contains ({text}).")),
        _ if first => error,
        _ => error.detail(format!("Failing row contains ({names}) = ({text}).")),
    }
}

/// May an error tell the role the key that a row has in an index? Only if it may read all columns of it.
pub fn may_show_key(relation: &Relation, index: &IndexDef, session: &dyn Context) -> bool {
    let told = session.detail_visibility(relation);
    let mut all = index.columns.iter();
    matches!(told, DetailVisibility::All)
        || all.all(|column| column.position().is_some_and(|p| told.has(p)))
}

/// 23505 for the stored row that would have been the second one. The index may be one that is still being built.
pub(crate) fn unique_violation(
    relation: &Relation,
    table: &Table,
    storage: IndexId,
    row: &[u8],
    session: &dyn Context,
) -> SqlError {
    let attached = table.index(storage);
    let keys = attached.as_deref().and_then(index_keys::of);
    let known = relation.indexes.iter().find(|i| i.storage == storage);
    let Some(index) = known.or_else(|| keys.map(RowKeys::index)) else {
        return SqlError::internal(format!("table {} has no index {storage}", relation.name));
    };
    let error = SqlError::new(
        SqlState::UNIQUE_VIOLATION,
        format!(
            "duplicate key value violates unique constraint \"{}\"",
            index.name
        ),
    )
    .table(&relation.schema_name, &relation.name)
    .constraint(&index.name);
    let keys = keys.filter(|_| may_show_key(relation, index, session));
    match keys.map(|keys| keys.described(relation, index, RowRef::new(row), session)) {
        Some(Ok(key)) => error.detail(format!("Key {key} already exists.")),
        Some(Err(error)) => error,
        None => error,
    }
}

/// The error of the index expression that fails for a row that is being written.
pub(crate) fn without_key(table: &Table, storage: IndexId, row: &[u8]) -> SqlError {
    let attached = table.index(storage);
    match attached.as_deref().and_then(index_keys::of) {
        Some(keys) => match keys.values(RowRef::new(row)) {
            Err(error) => error,
            Ok(_) => SqlError::internal("a row without a key has one after all"),
        },
        // The index is gone: whoever was making it has given up.
        None => serialization_failure(),
    }
}

/// The error of a write that failed for good.
pub(crate) fn write_failed(error: &WriteError) -> SqlError {
    match error {
        WriteError::Serialization => serialization_failure(),
        WriteError::SerializationDelete => SqlError::new(
            SqlState::SERIALIZATION_FAILURE,
            "could not serialize access due to concurrent delete",
        ),
        WriteError::Dependencies => logstead_sql_catalog::dependency_failure(),
        WriteError::InstanceRestarted => logstead_sql_types::error::instance_restarted(),
        WriteError::Deadlock => deadlock(),
        WriteError::TooLarge => SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "row is too big")
            .hint("A row with all its columns must be smaller than 256 MB."),
        WriteError::OutOfMemory(error) => out_of_memory(error),
        WriteError::Fault(error) => logstead_sql_types::error::load_error(error),
        WriteError::Overtaken => triggered_data_change("updated"),
        WriteError::TooManyCommands => logstead_sql_catalog::too_many_commands(),
        WriteError::Replica => logstead_sql_catalog::write_errors::replica_error(),
        WriteError::TableFull => SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "the table has used up its row numbers",
        ),
        other => SqlError::internal(format!("a write was refused: {other:?}")),
    }
}

/// 27000: what the statement has called has changed the row.
pub(crate) const OVERTAKEN: SqlState = SqlState::new(b"27000");

/// 27000: what the statement has called has changed the row.
pub(crate) fn triggered_data_change(done: &str) -> SqlError {
    SqlError::new(
        OVERTAKEN,
        format!(
            "tuple to be {done} was already modified by an operation triggered by the current command"
        ),
    )
    .hint("Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.")
}

/// 40001.
pub(crate) fn serialization_failure() -> SqlError {
    SqlError::new(
        SqlState::SERIALIZATION_FAILURE,
        "could not serialize access due to concurrent update",
    )
}
