//! The trigger functions that PostgreSQL brings along: `suppress_redundant_updates_trigger` and those that keep a
//! tsvector of columns.

use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::trigger::{BuiltInTrigger, TriggerEvent, TriggerTime};
use logstead_sql_exec::TriggerCall;
use logstead_sql_func::text_vector;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::search::dictionary::named_config;
use logstead_sql_types::value::{Datum, oid, stored};
use logstead_types::SqlState;
use std::collections::VecDeque;

fn wrong(state: SqlState, message: String) -> SqlError {
    SqlError::new(state, message)
}

/// Runs one of them: the row that it gives, or none.
pub(super) fn run(
    which: BuiltInTrigger,
    fired: &TriggerCall,
    session: &dyn Context,
) -> Result<VecDeque<Vec<Datum>>> {
    let given = match which {
        BuiltInTrigger::SuppressRedundantUpdates => suppress(fired)?,
        BuiltInTrigger::TsvectorUpdate => Some(vector(fired, false, session)?),
        BuiltInTrigger::TsvectorUpdateColumn => Some(vector(fired, true, session)?),
    };
    Ok(given.into_iter().collect())
}

/// Is a row the same as before, byte for byte?
fn same(old: &[Datum], new: &[Datum]) -> bool {
    let bytes = |value: &Datum| {
        let mut out = Vec::new();
        if !value.is_null() {
            stored::encode(value, &mut out);
        }
        (value.is_null(), out)
    };
    old.len() == new.len()
        && old
            .iter()
            .zip(new)
            .all(|(old, new)| bytes(old) == bytes(new))
}

fn suppress(fired: &TriggerCall) -> Result<Option<Vec<Datum>>> {
    let trigger = &fired.trigger;
    let refused = |how: &str| {
        Err(wrong(
            SqlState::new(b"39P01"),
            format!("suppress_redundant_updates_trigger: must be called {how}"),
        ))
    };
    if fired.event != TriggerEvent::Update {
        return refused("on update");
    }
    if trigger.time != TriggerTime::Before {
        return refused("before update");
    }
    let (true, Some(old), Some(new)) = (trigger.row, &fired.old, &fired.new) else {
        return refused("for each row");
    };
    Ok((!same(old, new)).then(|| new.clone()))
}

/// Puts the words of columns into a column; its configuration is named, or in a column.
fn vector(fired: &TriggerCall, in_column: bool, session: &dyn Context) -> Result<Vec<Datum>> {
    let trigger = &fired.trigger;
    let refused = |what: &str| {
        Err(wrong(
            SqlState::INTERNAL_ERROR,
            format!("tsvector_update_trigger: {what}"),
        ))
    };
    if !trigger.row {
        return refused("must be fired for row");
    }
    if trigger.time != TriggerTime::Before {
        return refused("must be fired BEFORE event");
    }
    let Some(new) = fired.new.as_ref() else {
        return refused("must be fired for INSERT or UPDATE");
    };
    let [target, config, texts @ ..] = trigger.args.as_slice() else {
        return refused("arguments must be tsvector_field, ts_config, text_field1, ...)");
    };
    if texts.is_empty() {
        return refused("arguments must be tsvector_field, ts_config, text_field1, ...)");
    }
    let columns = &fired.table.columns;
    let position = |name: &str| columns.iter().position(|c| !c.dropped && c.name == name);
    let absent = |what: &str, name: &str| {
        wrong(
            SqlState::UNDEFINED_COLUMN,
            format!("{what} \"{name}\" does not exist"),
        )
    };
    let mistyped = |name: &str, ty: &str| {
        wrong(
            SqlState::DATATYPE_MISMATCH,
            format!("column \"{name}\" is not of {ty} type"),
        )
    };
    let place = position(target).ok_or_else(|| absent("tsvector column", target))?;
    if columns[place].ty.oid != oid::TSVECTOR {
        return Err(mistyped(target, "tsvector"));
    }
    let config = if in_column {
        let at = position(config).ok_or_else(|| absent("configuration column", config))?;
        if columns[at].ty.oid != oid::REGCONFIG {
            return Err(mistyped(config, "regconfig"));
        }
        match new.get(at) {
            Some(value) if !value.is_null() => value.clone(),
            _ => {
                return Err(wrong(
                    SqlState::NULL_VALUE_NOT_ALLOWED,
                    format!("configuration column \"{config}\" must not be null"),
                ));
            }
        }
    } else {
        if !config.contains('.') {
            return Err(wrong(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("text search configuration name \"{config}\" must be schema-qualified"),
            ));
        }
        Datum::Oid(named_config(config)?.oid)
    };
    let mut written = Vec::new();
    // As in PostgreSQL: an update of none of these columns leaves the vector as it is.
    let mut changed = fired.event == TriggerEvent::Insert;
    for name in texts {
        let at = position(name).ok_or_else(|| absent("column", name))?;
        if !matches!(columns[at].ty.oid, oid::TEXT | oid::VARCHAR) {
            return Err(mistyped(name, "a character"));
        }
        let value = new.get(at).cloned().unwrap_or_default();
        let before = fired.old.as_ref().and_then(|old| old.get(at));
        let differs =
            |before: &Datum| !same(std::slice::from_ref(before), std::slice::from_ref(&value));
        changed |= before.is_none_or(differs);
        if let Datum::Text(text) = &value {
            written.push(text.to_string());
        }
    }
    let mut row = new.clone();
    if changed && let Some(target) = row.get_mut(place) {
        let text = Datum::text(written.join(" ").as_str());
        *target = text_vector(session, &[config, text])?;
    }
    Ok(row)
}
