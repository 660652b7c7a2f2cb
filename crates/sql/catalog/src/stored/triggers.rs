//! The stored form of triggers. As functions are ([`crate::stored::routines`]), they are rows of the relations' table
//! under names of their own: the trigger's, in a namespace that is the table's number. Builds without triggers refuse
//! the database instead of writing rows that no trigger has seen.

use crate::Timing;
use crate::stored::bytes::{DefinitionReader, DefinitionWriter, corrupt};
use crate::stored::{ObjectKey, ObjectRow, read_view, write_view};
use crate::trigger::{Trigger, TriggerConstraint, TriggerEnabled, TriggerTime};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Oid;
use logstead_sql_types::{DatabaseOid, FunctionId, RelationId};
use std::sync::Arc;

/// Set in the namespace of a trigger's row: both bits, of which types have the one and functions the other. Builds that
/// know no triggers take the row for a type's, in a format that they do not read.
const TRIGGER_NAMESPACE: Oid = 3 << 30;
/// Version of the definitions of triggers. No format of a type's row.
const FORMAT: u8 = 11;

/// True for the row of a trigger.
pub fn is_trigger(row: &ObjectRow) -> bool {
    row.key.namespace & TRIGGER_NAMESPACE == TRIGGER_NAMESPACE
}

/// The row of a trigger.
pub fn encode(database: DatabaseOid, trigger: &Trigger) -> ObjectRow {
    let mut w = DefinitionWriter::default();
    w.u8(FORMAT);
    w.u32(trigger.function.get());
    w.u8(match trigger.time {
        TriggerTime::Before => b'b',
        TriggerTime::After => b'a',
        TriggerTime::InsteadOf => b'i',
    });
    w.u8(u8::from(trigger.row));
    w.u8(trigger.events);
    // One byte, by construction.
    w.u8(trigger.enabled.letter() as u8);
    w.list(&trigger.columns, |w, column| {
        w.u16(u16::try_from(*column).unwrap_or(u16::MAX));
    });
    w.list(&trigger.args, |w, arg| w.bytes(arg.as_bytes()));
    w.opt(trigger.when.as_ref(), |w, view| write_view(w, view));
    w.opt(trigger.constraint.as_ref(), |w, constraint| {
        w.u32(constraint.oid);
        w.bytes(constraint.name.as_bytes());
        w.u8(match constraint.timing {
            Timing::Immediate => b'n',
            Timing::Deferrable => b'i',
            Timing::Deferred => b'd',
        });
        w.opt(constraint.from, |w, from| w.u32(from.get()));
    });
    for name in [&trigger.old_table, &trigger.new_table] {
        w.opt(name.as_ref(), |w, name| w.bytes(name.as_bytes()));
    }
    ObjectRow {
        key: ObjectKey {
            database,
            namespace: trigger.table.get() | TRIGGER_NAMESPACE,
            name: trigger.name.clone(),
        },
        oid: trigger.oid,
        definition: w.0,
    }
}

/// Reads the row of a trigger.
pub fn decode(row: &ObjectRow) -> Result<Trigger> {
    let mut r = DefinitionReader(&row.definition);
    let format = r.u8()?;
    if format != FORMAT {
        return Err(corrupt(&format!(
            "definition of trigger \"{}\" has format {format}, this build reads {FORMAT}",
            row.key.name
        )));
    }
    let function = FunctionId::new(r.u32()?);
    let time = match r.u8()? {
        b'b' => TriggerTime::Before,
        b'a' => TriggerTime::After,
        b'i' => TriggerTime::InsteadOf,
        _ => return Err(corrupt("a trigger that fires at an unknown time")),
    };
    let is_row = r.bool()?;
    let events = r.u8()?;
    let enabled = TriggerEnabled::of_letter(r.u8()?)
        .ok_or_else(|| corrupt("a trigger that is enabled in an unknown way"))?;
    let columns = r.list(|r| Ok(usize::from(r.u16()?)))?;
    let args = r.list(DefinitionReader::str)?;
    let when = r.opt(read_view)?.map(Arc::new);
    let constraint = r.opt(|r| {
        Ok(TriggerConstraint {
            oid: r.u32()?,
            name: r.str()?,
            timing: match r.u8()? {
                b'n' => Timing::Immediate,
                b'i' => Timing::Deferrable,
                b'd' => Timing::Deferred,
                _ => return Err(corrupt("a trigger that is put off in an unknown way")),
            },
            from: r.opt(DefinitionReader::u32)?.map(RelationId::new),
        })
    })?;
    let old_table = r.opt(DefinitionReader::str)?;
    let new_table = r.opt(DefinitionReader::str)?;
    if !r.0.is_empty() {
        return Err(corrupt("a definition has bytes left over"));
    }
    Ok(Trigger {
        oid: row.oid,
        name: row.key.name.clone(),
        table: RelationId::new(row.key.namespace & !TRIGGER_NAMESPACE),
        function,
        time,
        row: is_row,
        events,
        columns,
        when,
        args,
        enabled,
        constraint,
        old_table,
        new_table,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trigger::TriggerEvent;

    #[test]
    fn what_is_stored_is_read_and_checked() {
        let trigger = Trigger {
            oid: 16_500,
            name: "t a".to_owned(),
            table: RelationId::new(16_400),
            function: FunctionId::new(16_450),
            time: TriggerTime::Before,
            row: true,
            events: TriggerEvent::Insert.bit() | TriggerEvent::Update.bit(),
            columns: vec![0, 3],
            when: None,
            args: vec!["one".to_owned(), String::new()],
            enabled: TriggerEnabled::Origin,
            constraint: Some(TriggerConstraint {
                oid: 16_501,
                name: "t".to_owned(),
                timing: Timing::Deferred,
                from: Some(RelationId::new(16_402)),
            }),
            old_table: Some("gone".to_owned()),
            new_table: None,
        };
        let row = encode(DatabaseOid::new(5), &trigger);
        assert!(is_trigger(&row));
        assert!(!crate::stored::routines::is_routine(&row));
        let read = decode(&row).unwrap();
        assert_eq!(format!("{read:?}"), format!("{trigger:?}"));
        assert_eq!(read.bits(), 1 | 2 | 4 | 16);
        for end in 0..row.definition.len() {
            let mut cut = row.clone();
            cut.definition.truncate(end);
            assert!(decode(&cut).is_err(), "{end} bytes");
        }
        // A build without triggers takes the row for a type's, and refuses it.
        assert!(crate::stored::types::is_type(&row));
        assert!(crate::stored::types::decode(&row).is_err());
    }
}
