//! Bodies of triggers: what they are told, and what the row is that they give.
//!
//! A function is read once for each table that it is a trigger of, so that the fields of NEW and OLD are of one type in
//! all that it says.

use super::values::fields_of;
use super::{Activation, Session};
use crate::client::Client;
use logstead_sql_catalog::routine::Routine as Definition;
use logstead_sql_catalog::trigger::TriggerTime;
use logstead_sql_catalog::{Catalog, Relation};
use logstead_sql_exec::after_triggers::TransitionTables;
use logstead_sql_exec::{self as exec, Caller, PendingCall, TriggerCall};
use logstead_sql_plan::bind;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Array, Datum, SqlType, info, oid, record};
use logstead_types::SqlState;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// NEW and OLD among the variables: `catalog::body_context` has all of them, in its order.
const NEW: usize = 0;
const OLD: usize = 1;

/// The fields of a table's rows: its columns that are there.
fn live(table: &Relation) -> impl Iterator<Item = usize> {
    let columns = table.columns.iter().enumerate();
    columns
        .filter(|(_, column)| !column.dropped)
        .map(|(position, _)| position)
}

fn record_of(table: &Relation, row: &[Datum]) -> Datum {
    let field = |position: usize| row.get(position).cloned().unwrap_or(Datum::Null);
    record::record(live(table).map(field).collect())
}

/// Row type of a table, or a record of the same fields where it has none.
fn row_type(table: &Relation, known: Option<SqlType>) -> Result<SqlType> {
    if let Some(known) = known {
        return Ok(known);
    }
    let columns = live(table).filter_map(|position| table.columns.get(position));
    let shape: Vec<(Arc<str>, SqlType)> = columns
        .map(|column| (column.name.as_str().into(), column.declared()))
        .collect();
    record::record_type(&shape)
}

fn text(text: &str) -> Datum {
    Datum::Text(Arc::from(text))
}

/// The tables of REFERENCING: arrays of the table's rows.
fn tables_of(captured: &TransitionTables, table: &Relation, ty: SqlType) -> Result<[Datum; 2]> {
    if let Some(known) = captured.values.get() {
        return Ok(known.clone());
    }
    let rows = captured.close();
    let array = |rows: &[Box<[u8]>]| {
        let decoded = exec::stored_rows(table, rows)?;
        let items = decoded.iter().map(|row| record_of(table, row)).collect();
        Ok::<_, SqlError>(Datum::array(ty.oid, items))
    };
    let values = [array(&rows.old)?, array(&rows.new)?];
    Ok(captured.values.get_or_init(|| values).clone())
}

/// A call that nothing else is stopped for.
struct DetachedCaller(Option<Box<PendingCall>>);

impl Caller for DetachedCaller {
    fn take_call(&mut self) -> Option<Box<PendingCall>> {
        self.0.take()
    }

    fn answer(&mut self, _: &PendingCall, _: VecDeque<Vec<Datum>>) {}
}

impl Session {
    /// Fires the triggers of a table that TRUNCATE is about to empty, or has emptied. The caller has the table locked.
    pub(crate) async fn fire_truncate(
        &mut self,
        table: RelationId,
        time: TriggerTime,
        client: &mut dyn Client,
    ) -> Result<()> {
        let catalog = self.catalog()?;
        let Some(relation) = catalog.relations.get(&table) else {
            return Ok(());
        };
        let context = Rc::clone(&self.context);
        let calls = self.with_planning(&catalog, |cx| {
            let triggers = bind::truncate_triggers(relation, cx)?;
            let triggers = triggers.check(&mut context.checker(&catalog))?;
            exec::truncate_calls(triggers.as_deref(), time, cx.session)
        })?;
        for call in calls {
            self.answer_alone(Box::new(call), &catalog, client).await?;
        }
        Ok(())
    }

    /// Runs the function of a trigger that no statement is stopped for.
    pub(crate) async fn answer_alone(
        &mut self,
        call: Box<PendingCall>,
        catalog: &Arc<Catalog>,
        client: &mut dyn Client,
    ) -> Result<()> {
        let table = call.trigger.as_ref().map(|fired| fired.table.storage);
        let mut caller = DetachedCaller(Some(call));
        let tables = table.into_iter().collect();
        self.answer_caller(&mut caller, tables, catalog, client)
            .await
    }

    /// Runs the function of a trigger: the row that it gives, of all positions, or none.
    pub(super) async fn run_trigger(
        &mut self,
        definition: &Arc<Definition>,
        fired: &TriggerCall,
        client: &mut dyn Client,
    ) -> Result<VecDeque<Vec<Datum>>> {
        let table = &fired.table;
        let known = self.catalog()?.types.row_type(table.oid);
        let ty = row_type(table, known)?;
        let routine = self.function(definition, &[ty])?;
        let mut act = Activation::new(routine, true);
        let trigger = &fired.trigger;
        if let Some(captured) = &fired.captured {
            let array = info::array_of(ty.oid).map(SqlType::of);
            let array = array.ok_or_else(|| {
                SqlError::unsupported("REFERENCING in a trigger of a temporary table")
            })?;
            let [old, new] = tables_of(captured, table, ty)?;
            for (name, rows) in [(&trigger.old_table, old), (&trigger.new_table, new)] {
                if let Some(name) = name {
                    act.tables.push((name.as_str().into(), array, rows));
                }
            }
        }
        // Both are known by their fields, as one function serves several events; one that there is not is NULL.
        (act.types[NEW], act.types[OLD]) = (ty, ty);
        let whole = |row: &Option<Vec<Datum>>| match row {
            Some(row) => record_of(table, row),
            None => Datum::Null,
        };
        (act.values[NEW], act.values[OLD]) = (whole(&fired.new), whole(&fired.old));
        let args = trigger.args.iter();
        let args: Vec<Datum> = args.map(|arg| text(arg)).collect();
        let count = i32::try_from(args.len()).unwrap_or(i32::MAX);
        let told = [
            text(&trigger.name),
            text(trigger.time.word()),
            text(if trigger.row { "ROW" } else { "STATEMENT" }),
            text(fired.event.word()),
            Datum::Oid(table.oid.get()),
            text(&table.name),
            text(&table.name),
            text(&table.schema_name),
            Datum::Int4(count),
            match args.is_empty() {
                true => Datum::Null,
                false => Datum::Array(Arc::new(Array {
                    element: oid::TEXT,
                    lower: 0,
                    shape: None,
                    items: args,
                })),
            },
        ];
        for (variable, value) in (OLD + 1..).zip(told) {
            act.values[variable] = value;
        }
        let depth = self.context.trigger_depth.get();
        self.context.trigger_depth.set(depth.saturating_add(1));
        let ran = self.activate(&mut act, client).await;
        self.context.trigger_depth.set(depth);
        ran?;
        let Some((value, of)) = act.returned.take() else {
            let error = SqlError::new(
                SqlState::new(b"2F005"),
                "control reached end of trigger procedure without RETURN",
            );
            (act.line, act.doing) = (0, "");
            return Err(error.context(act.context()));
        };
        // What it gives says nothing where the row is written already, or there is none.
        if !trigger.row || trigger.time == TriggerTime::After || value.is_null() {
            return Ok(VecDeque::new());
        }
        if record::is_record(of.oid) {
            (act.line, act.doing) = (0, "during function exit");
        }
        let row = self
            .context
            .with_types(|types| given_row(table, &value, of, ty, types));
        Ok(VecDeque::from([
            row.map_err(|error| error.context(act.context()))?
        ]))
    }
}

/// The row that a body gave, by its fields' order.
fn given_row(
    table: &Relation,
    value: &Datum,
    of: SqlType,
    wanted: SqlType,
    known: TypeLookup<'_>,
) -> Result<Vec<Datum>> {
    let types = known.types;
    let shapes = match record::is_record(of.oid) {
        true => types.tuple_desc_of(of).zip(types.tuple_desc_of(wanted)),
        false => None,
    };
    let Some((given, wanted)) = shapes else {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            "cannot return non-composite value from function returning composite type",
        ));
    };
    let wrong = |detail: String| {
        SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            "returned row structure does not match the structure of the triggering table",
        )
        .detail(detail)
    };
    if given.len() != wanted.len() {
        return Err(wrong(format!(
            "Number of returned columns ({}) does not match expected column count ({}).",
            given.len(),
            wanted.len()
        )));
    }
    for (number, ((_, given), (_, wanted))) in (1..).zip(given.iter().zip(wanted.iter())) {
        let same = types.base_type(*given).oid == types.base_type(*wanted).oid
            && (wanted.typmod < 0 || given.typmod == wanted.typmod);
        if !same {
            return Err(wrong(format!(
                "Returned type {} does not match expected type {} in column {number}.",
                known.format_type(*given),
                known.format_type(*wanted),
            )));
        }
    }
    let mut row = vec![Datum::Null; table.columns.len()];
    let fields = fields_of(value, wanted.len());
    for (position, field) in live(table).zip(fields) {
        if let Some(place) = row.get_mut(position) {
            *place = field;
        }
    }
    Ok(row)
}
