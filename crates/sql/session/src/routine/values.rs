//! Variables: what they may hold, what is put into them.

use super::{Activation, Session};
use logstead_sql_exec::{EvalContext, eval};
use logstead_sql_parse::plpgsql::PlpgsqlFunction;
use logstead_sql_parse::plpgsql::tree::{Target, TypeName, VarNo};
use logstead_sql_plan::bind::{assignment_cast, column_type, declared_type, row_type};
use logstead_sql_plan::{OutputColumn, PlanContext};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{Datum, SqlType, geometry, oid, record, user};
use logstead_types::SqlState;
use std::rc::Rc;
use std::sync::Arc;

/// What a variable may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum VariableKind {
    /// Values of a type, which may be a domain.
    Scalar(SqlType),
    /// Rows of a composite type.
    Row(SqlType),
    /// Any row.
    Record,
}

impl VariableKind {
    /// The kind of variables of a type.
    pub(super) fn of(ty: SqlType) -> VariableKind {
        match ty.oid {
            oid::RECORD => VariableKind::Record,
            composite if user::is_composite(composite) => VariableKind::Row(ty),
            _ => VariableKind::Scalar(ty),
        }
    }

    /// The type of what it holds first.
    pub(super) fn first_type(&self, types: &UserTypes) -> SqlType {
        match self {
            VariableKind::Scalar(ty) => types.base_type(*ty),
            VariableKind::Row(ty) => *ty,
            VariableKind::Record => SqlType::of(oid::RECORD),
        }
    }
}

/// The kinds of a body's variables.
pub(super) fn kinds(
    body: &PlpgsqlFunction,
    text: &str,
    cx: &PlanContext<'_>,
) -> Result<Vec<VariableKind>> {
    let mut kinds: Vec<VariableKind> = Vec::with_capacity(body.variables.len());
    for variable in &body.variables {
        let placed = |at: &usize| {
            let at = *at;
            let before = text.get(..at).map_or(0, |before| before.chars().count());
            move |mut error: SqlError| {
                let fields = error.fields_mut();
                fields.position = Some(before + fields.position.unwrap_or(1));
                error
            }
        };
        let kind = match &variable.ty {
            TypeName::Known(ty) => VariableKind::of(*ty),
            TypeName::Record => VariableKind::Record,
            TypeName::Cursor => VariableKind::Scalar(SqlType::of(oid::REFCURSOR)),
            TypeName::Sql(name, at) => {
                let ty = declared_type(name, cx).map_err(placed(at))?;
                if ty.oid == oid::RECORD_ARRAY {
                    let shown = cx.lookup().types().format_type_bare(ty.oid);
                    let message = format!("variable \"{}\" has pseudo-type {shown}", variable.name);
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                VariableKind::of(ty)
            }
            TypeName::OfColumn(parts, at) => {
                VariableKind::of(column_type(parts, cx).map_err(placed(at))?)
            }
            TypeName::RowOf(parts, at) => {
                VariableKind::of(row_type(parts, cx).map_err(placed(at))?)
            }
            TypeName::OfVariable(number) => match kinds.get(*number) {
                Some(kind) => *kind,
                None => {
                    return Err(SqlError::internal(
                        "a variable's type is declared behind it",
                    ));
                }
            },
        };
        kinds.push(kind);
    }
    Ok(kinds)
}

fn not_composite() -> SqlError {
    SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        "cannot assign non-composite value to a record variable",
    )
}

/// The fields of a record's value.
pub(super) fn fields_of(value: &Datum, count: usize) -> Vec<Datum> {
    let mut fields = match value {
        Datum::Array(array) => array.items.clone(),
        _ => Vec::new(),
    };
    fields.resize(count, Datum::Null);
    fields
}

/// Changes a value of a type where it is; on an error it is as it was.
type AssignFn<'p> = dyn FnMut(&Session, &Activation, SqlType, &mut Datum) -> Result<()> + 'p;

impl Session {
    /// A value of one type as one of another.
    pub(super) fn cast(
        &self,
        act: &Activation,
        value: Datum,
        from: SqlType,
        to: SqlType,
    ) -> Result<Datum> {
        let same = from.oid == to.oid && (to.typmod < 0 || from.typmod == to.typmod);
        if same || (value.is_null() && user::domain_in(to.oid).is_none()) {
            return Ok(value);
        }
        let known = act.routine.casts.borrow().get(&(from, to)).cloned();
        let cast = match known {
            Some(cast) => cast,
            None => {
                let catalog = Arc::clone(&self.context.catalog.borrow());
                let cast = self.with_planning(&catalog, |cx| assignment_cast(from, to, cx))?;
                let cast = Rc::new(cast);
                let mut casts = act.routine.casts.borrow_mut();
                casts.insert((from, to), Rc::clone(&cast));
                cast
            }
        };
        let cx = EvalContext {
            params: &[],
            session: &*self.context,
        };
        let catalog = Arc::clone(&self.context.catalog.borrow());
        // Each time: the role may be another one now.
        let cast = cast.check_ref(&mut self.context.checker(&catalog))?;
        eval(cast, &[value], &cx)
    }

    /// Puts a value into a variable.
    pub(super) fn assign_variable(
        &self,
        act: &mut Activation,
        variable: VarNo,
        value: Datum,
        ty: SqlType,
    ) -> Result<()> {
        let routine = Rc::clone(&act.routine);
        let (value, ty) = match routine.kinds[variable] {
            VariableKind::Scalar(to) if to.oid == oid::UNKNOWN => (value, ty),
            VariableKind::Scalar(to) => {
                (self.cast(act, value, ty, to)?, self.context.base_type(to))
            }
            VariableKind::Record => {
                if !record::is_record(ty.oid) {
                    if !value.is_null() {
                        return Err(not_composite());
                    }
                    // What is known of its fields stays.
                    act.values[variable] = Datum::Null;
                    return self.check_null(act, variable);
                }
                let ty = match self.context.tuple_desc_of(ty) {
                    Some(shape) => record::record_type(&shape)?,
                    None => SqlType::of(oid::RECORD),
                };
                (value, ty)
            }
            VariableKind::Row(to) if ty.oid == to.oid => (value, to),
            VariableKind::Row(to) if value.is_null() => (Datum::Null, to),
            VariableKind::Row(to) => {
                let shape = match record::is_record(ty.oid) {
                    true => self.context.tuple_desc_of(ty),
                    false => None,
                };
                let shape = shape.ok_or_else(not_composite)?;
                let types: Vec<SqlType> = shape.iter().map(|(_, ty)| *ty).collect();
                let values = fields_of(&value, types.len());
                (self.row_value(act, to, values, &types)?, to)
            }
        };
        act.values[variable] = value;
        act.types[variable] = ty;
        self.check_null(act, variable)
    }

    /// A row of a composite type from values one by one: what is missing is NULL, what is too much is not taken.
    pub(super) fn row_value(
        &self,
        act: &Activation,
        to: SqlType,
        values: Vec<Datum>,
        types: &[SqlType],
    ) -> Result<Datum> {
        let declared = match user::is_composite(to.oid) {
            true => self.context.types().declared_shape(to.oid),
            false => self.context.tuple_desc_of(to),
        };
        let wanted =
            declared.ok_or_else(|| SqlError::internal("a composite type without fields"))?;
        let mut given = values.into_iter().zip(types);
        let mut fields = Vec::with_capacity(wanted.len());
        for (_, field) in wanted.iter() {
            fields.push(match given.next() {
                Some((value, from)) => self.cast(act, value, *from, *field)?,
                None => Datum::Null,
            });
        }
        Ok(record::record(fields))
    }

    fn check_null(&self, act: &Activation, variable: VarNo) -> Result<()> {
        let declared = &act.routine.body.variables[variable];
        if declared.not_null && act.values[variable].is_null() {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                format!(
                    "null value cannot be assigned to variable \"{}\" declared NOT NULL",
                    declared.name
                ),
            ));
        }
        Ok(())
    }

    /// Puts a value where a target says; subscripts have their values already.
    pub(super) fn put(
        &self,
        act: &mut Activation,
        target: &Target,
        subscripts: Vec<Datum>,
        value: Datum,
        ty: SqlType,
    ) -> Result<()> {
        match target {
            Target::Variable(variable) => self.assign_variable(act, *variable, value, ty),
            Target::Field(variable, path) => {
                let mut put =
                    |session: &Session, act: &Activation, to: SqlType, old: &mut Datum| {
                        *old = session.cast(act, value.clone(), ty, to)?;
                        Ok(())
                    };
                self.change(act, *variable, path, &mut put)
            }
            Target::Element(variable, path, _) => {
                let mut put =
                    |session: &Session, act: &Activation, to: SqlType, old: &mut Datum| {
                        session.put_element(act, to, old, &subscripts, (value.clone(), ty))
                    };
                // A domain over an array checks all of it.
                if path.is_empty()
                    && let VariableKind::Scalar(to) = act.routine.kinds[*variable]
                    && user::domain_in(to.oid).is_some()
                {
                    let (mut whole, of) = (act.values[*variable].clone(), act.types[*variable]);
                    put(self, act, of, &mut whole)?;
                    return self.assign_variable(act, *variable, whole, of);
                }
                self.change(act, *variable, path, &mut put)
            }
        }
    }

    /// Changes a part of a variable where it is, so that not all of it is copied; on an error it is as it was.
    fn change(
        &self,
        act: &mut Activation,
        variable: VarNo,
        path: &[String],
        put: &mut AssignFn<'_>,
    ) -> Result<()> {
        let routine = Rc::clone(&act.routine);
        let name = &routine.body.variables[variable].name;
        let mut whole = std::mem::replace(&mut act.values[variable], Datum::Null);
        let done = self.with_field(act, name, &mut whole, act.types[variable], path, put);
        act.values[variable] = whole;
        done
    }

    /// Changes a field of a record, or a field of that: `put` is given the field's type and its value.
    fn with_field(
        &self,
        act: &Activation,
        name: &str,
        whole: &mut Datum,
        of: SqlType,
        path: &[String],
        put: &mut AssignFn<'_>,
    ) -> Result<()> {
        let Some((field, rest)) = path.split_first() else {
            return put(self, act, of, whole);
        };
        if !record::is_record(of.oid) {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("variable \"{name}\" is not a record"),
            ));
        }
        let shape = self
            .context
            .tuple_desc_of(of)
            .ok_or_else(|| unassigned(name))?;
        let found = shape.iter().position(|(known, _)| **known == **field);
        let Some(at) = found else {
            return Err(SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("record \"{name}\" has no field \"{field}\""),
            ));
        };
        let Datum::Array(held) = whole else {
            let mut fields = vec![Datum::Null; shape.len()];
            self.with_field(act, field, &mut fields[at], shape[at].1, rest, put)?;
            *whole = record::record(fields);
            return Ok(());
        };
        let fields = &mut Arc::make_mut(held).items;
        fields.resize(shape.len(), Datum::Null);
        self.with_field(act, field, &mut fields[at], shape[at].1, rest, put)
    }

    fn put_element(
        &self,
        act: &Activation,
        array: SqlType,
        old: &mut Datum,
        subscripts: &[Datum],
        (value, ty): (Datum, SqlType),
    ) -> Result<()> {
        let base = self.context.base_type(array);
        if let Some((part, _)) = geometry::parts_of(base.oid) {
            let value = self.cast(act, value, ty, SqlType::of(part))?;
            *old = logstead_sql_func::put_fixed_element(old, value, subscripts)?;
            return Ok(());
        }
        let Some(element) = self.context.element_of(base.oid) else {
            let shown = self.context.with_types(|types| types.format_type(array));
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("cannot subscript type {shown} because it does not support subscripting"),
            ));
        };
        let to = SqlType {
            oid: element,
            typmod: base.typmod,
        };
        let value = self.cast(act, value, ty, to)?;
        let element = self.context.base_type(SqlType::of(element)).oid;
        logstead_sql_func::put_element(old, element, value, subscripts)
    }

    /// Puts a row's columns into targets: all into one record, or one into each. No row is NULLs.
    pub(super) fn assign_row(
        &self,
        act: &mut Activation,
        targets: &[Target],
        columns: &[OutputColumn],
        row: Option<&[Datum]>,
    ) -> Result<()> {
        if row.is_some() {
            self.check_assignment(act, targets, columns, None)?;
        }
        if let [Target::Variable(variable)] = targets {
            let variable = *variable;
            match act.routine.kinds[variable] {
                VariableKind::Record => {
                    let shape: Vec<(Arc<str>, SqlType)> = columns
                        .iter()
                        .map(|column| (column.name.as_str().into(), column.ty))
                        .collect();
                    act.types[variable] = record::record_type(&shape)?;
                    // Of no row the fields are known, and NULL.
                    act.values[variable] = record::record(match row {
                        Some(row) => row.to_vec(),
                        None => vec![Datum::Null; columns.len()],
                    });
                    return self.check_null(act, variable);
                }
                VariableKind::Row(ty) => {
                    let types: Vec<SqlType> = columns.iter().map(|column| column.ty).collect();
                    let row = row.map_or(Vec::new(), <[Datum]>::to_vec);
                    act.values[variable] = self.row_value(act, ty, row, &types)?;
                    return self.check_null(act, variable);
                }
                VariableKind::Scalar(_) => {}
            }
        }
        for (at, target) in targets.iter().enumerate() {
            let value = row.and_then(|row| row.get(at)).cloned();
            let ty = columns.get(at).map_or(SqlType::of(oid::UNKNOWN), |c| c.ty);
            if let Target::Element(..) = target {
                return Err(SqlError::unsupported("INTO an element of an array"));
            }
            self.put(act, target, Vec::new(), value.unwrap_or(Datum::Null), ty)?;
        }
        Ok(())
    }
}

/// 55000: nothing is known of the record's fields.
fn unassigned(name: &str) -> SqlError {
    SqlError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("record \"{name}\" is not assigned yet"),
    )
    .detail("The tuple structure of a not-yet-assigned record is indeterminate.")
}
