//! Column definitions: types, options, and the constraints and sequences they ask for.

use super::DdlContext;
use super::expressions::column_default_text;
use crate::relation_attributes::NewColumnAttribute;
use logstead_sql_catalog::inert_options::Attribute;
use logstead_sql_catalog::{Column, ReferentialAction, Timing};
use logstead_sql_parse::ast::{
    self, ColumnDef, Constraint, ConstraintKind, DefElem, FkAction, FkMatch, KeyColumns,
    KeyConstraint, Name, RangeVar, References, TypeName, TypeRef,
};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, SqlType, oid, user};
use logstead_types::SqlState;

/// Most columns of a table, dropped ones included (PostgreSQL's limit).
pub(super) const COLUMNS_MAX: usize = 1_600;

/// A constraint asked for.
pub(super) struct NewConstraint {
    pub(super) name: Option<String>,
    pub(super) kind: NewConstraintKind,
    pub(super) timing: Timing,
    /// NOT VALID: rows stored already are not looked at.
    pub(super) not_valid: bool,
    /// UNIQUE NULLS NOT DISTINCT.
    pub(super) nulls_not_distinct: bool,
    /// INCLUDE.
    pub(super) include: Vec<String>,
    /// It is another table's (LIKE), which may have one like another.
    pub(super) copied: bool,
}

impl NewConstraint {
    fn new(name: Option<String>, kind: NewConstraintKind) -> NewConstraint {
        NewConstraint {
            name,
            kind,
            timing: Timing::Immediate,
            not_valid: false,
            nulls_not_distinct: false,
            include: Vec::new(),
            copied: false,
        }
    }

    /// PRIMARY KEY or UNIQUE as it was written, of these columns.
    fn key(name: Option<String>, kind: NewConstraintKind, key: &KeyConstraint) -> Result<Self> {
        if !key.options.is_empty() {
            return Err(SqlError::unsupported("WITH of a constraint"));
        }
        if key.indexspace.is_some() {
            return Err(SqlError::unsupported("USING INDEX TABLESPACE"));
        }
        Ok(NewConstraint {
            nulls_not_distinct: key.nulls_not_distinct,
            include: crate::choose_name::strings(&key.including),
            ..NewConstraint::new(name, kind)
        })
    }
}

pub(super) enum NewConstraintKind {
    Primary(Vec<String>),
    Unique(Vec<String>),
    Check(Box<ast::Expr>),
    Foreign(Box<NewForeign>),
}

/// A sequence that a column owns: serial or identity.
pub(super) struct NewSequence {
    pub(super) ty: TypeId,
    pub(super) options: Vec<DefElem>,
}

/// A column asked for.
pub(super) struct NewColumn {
    pub(super) column: Column,
    pub(super) sequence: Option<NewSequence>,
    pub(super) constraints: Vec<NewConstraint>,
    /// What the column is generated from; `generated::settle` makes it the column's once all columns are known.
    pub(super) generated: Option<ast::Expr>,
    /// What is kept beside of it, and told ([`logstead_sql_catalog::inert_options`]).
    pub(super) attributes: Vec<NewColumnAttribute>,
}

/// smallserial, serial, bigserial: the column's type (`transformColumnDefinition`).
fn serial(name: &TypeName, text: &str) -> Result<Option<TypeId>> {
    let TypeRef::Named(names) = &name.name else {
        return Ok(None);
    };
    let ty = match names.as_slice() {
        [name] => match &**name {
            "smallserial" | "serial2" => oid::INT2,
            "serial" | "serial4" => oid::INT4,
            "bigserial" | "serial8" => oid::INT8,
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    if name.pct_type || !name.typmods.is_empty() {
        return Ok(None);
    }
    match name.array_bounds.is_empty() {
        true => Ok(Some(ty)),
        false => Err(
            SqlError::unsupported_text("array of serial is not implemented")
                .at(name.location.character(text)),
        ),
    }
}

/// Fails for the names of system columns.
pub(super) fn check_column_name(name: &str) -> Result<()> {
    if ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"].contains(&name) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column name \"{name}\" conflicts with a system column name"),
        ));
    }
    Ok(())
}

/// The type of a column, by its SQL text.
pub(super) fn column_type(
    name: &str,
    type_name: &TypeName,
    cx: &mut DdlContext<'_>,
) -> Result<SqlType> {
    let ty = cx
        .sql_type(type_name)
        .map_err(|error| error.at(type_name.location.character(cx.text)))?;
    let catalog = cx.catalog()?;
    refuse_pseudo(name, ty, cx.lookup(&catalog).types())?;
    Ok(ty)
}

/// 42P16 for types that no column may have.
pub(super) fn refuse_pseudo(name: &str, ty: SqlType, types: TypeLookup<'_>) -> Result<()> {
    let pseudo = types.types.type_info(ty.oid).is_none_or(|t| t.kind == 'p');
    match pseudo {
        true => Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!(
                "column \"{name}\" has pseudo-type {}",
                types.format_type_bare(ty.oid)
            ),
        )),
        false => Ok(()),
    }
}

/// When a constraint with these words is checked.
pub(super) fn timing(deferrable: bool, initdeferred: bool) -> Timing {
    match (deferrable, initdeferred) {
        (_, true) => Timing::Deferred,
        (true, false) => Timing::Deferrable,
        (false, false) => Timing::Immediate,
    }
}

/// When each constraint of a column is checked, by the attributes that stand behind it (`transformConstraintAttrs`).
fn timings(constraints: &[Constraint], text: &str) -> Result<Vec<Timing>> {
    use ConstraintKind as K;
    let mut all = vec![Timing::Immediate; constraints.len()];
    // The one that the attributes speak of, and what they have said of it: DEFERRABLE, INITIALLY DEFERRED.
    let (mut last, mut deferrable, mut deferred) = (None, None, None);
    for (at, constraint) in constraints.iter().enumerate() {
        let wrong = |message: &str| {
            let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
            Err(error.at(constraint.location.character(text)))
        };
        let (words, said, is_again) = match &constraint.kind {
            K::AttrDeferrable => ("DEFERRABLE", (Some(true), None), deferrable.is_some()),
            K::AttrNotDeferrable => ("NOT DEFERRABLE", (Some(false), None), deferrable.is_some()),
            K::AttrDeferred => ("INITIALLY DEFERRED", (None, Some(true)), deferred.is_some()),
            K::AttrImmediate => (
                "INITIALLY IMMEDIATE",
                (None, Some(false)),
                deferred.is_some(),
            ),
            kind => {
                let has_attributes =
                    matches!(kind, K::PrimaryKey(_) | K::Unique(_) | K::Foreign { .. });
                (last, deferrable, deferred) = (has_attributes.then_some(at), None, None);
                continue;
            }
        };
        let Some(timing_of) = last.and_then(|last| all.get_mut::<usize>(last)) else {
            return wrong(&format!("misplaced {words} clause"));
        };
        if is_again {
            return wrong(match said {
                (Some(_), _) => "multiple DEFERRABLE/NOT DEFERRABLE clauses not allowed",
                _ => "multiple INITIALLY IMMEDIATE/DEFERRED clauses not allowed",
            });
        }
        (deferrable, deferred) = (deferrable.or(said.0), deferred.or(said.1));
        if deferred == Some(true) && deferrable == Some(false) {
            return wrong("constraint declared INITIALLY DEFERRED must be DEFERRABLE");
        }
        *timing_of = timing(deferrable == Some(true), deferred == Some(true));
    }
    Ok(all)
}

/// Reads a column definition of table `table`.
pub(super) fn new_column(
    def: &ColumnDef,
    table: &str,
    cx: &mut DdlContext<'_>,
) -> Result<NewColumn> {
    let text = cx.text;
    let name = def.colname.to_string();
    check_column_name(&name)?;
    let Some(type_name) = &def.type_name else {
        return Err(SqlError::internal("a column without a type"));
    };
    if !def.fdwoptions.is_empty() {
        return Err(SqlError::unsupported("a foreign table or server"));
    }
    let serial = serial(type_name, text)?;
    let ty = match serial {
        Some(ty) => SqlType::of(ty),
        None => column_type(&name, type_name, cx)?,
    };
    // A column declared as a domain holds values of its base type.
    let domain = user::domain_in(ty.oid).map(|_| ty.oid);
    let ty = cx.catalog()?.types.base_type(ty);
    let mut new = NewColumn {
        column: Column {
            name: name.clone(),
            ty,
            not_null: serial.is_some(),
            default: None,
            identity: None,
            generated: false,
            sequence: None,
            dropped: false,
            domain,
            missing: Datum::Null,
        },
        sequence: serial.map(|ty| NewSequence {
            ty,
            options: Vec::new(),
        }),
        constraints: Vec::new(),
        generated: None,
        attributes: Vec::new(),
    };
    if let Some(method) = &def.compression
        && let Some(code) = super::relation_attributes::compression_code(method, ty, cx)?
    {
        new.attributes
            .push((Attribute::Compression, code.to_string()));
    }
    if let Some(clause) = &def.coll_clause {
        let said = super::relation_attributes::named_collation(clause.name.as_slice(), ty, cx)?;
        if let Some(said) = super::relation_attributes::collation_attribute(said, ty) {
            new.attributes.push((Attribute::Collation, said.to_owned()));
        }
    }
    let mut null: Option<bool> = None;
    let mut has_default = serial.is_some();
    let timings = timings(&def.constraints, text)?;
    for (constraint, timing) in def.constraints.iter().zip(timings) {
        // What serial says stands nowhere.
        let at = match serial {
            Some(_) => None,
            None => constraint.location.character(text),
        };
        let twice = |what: &str| {
            let message = format!("{what} for column \"{name}\" of table \"{table}\"");
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at))
        };
        match &constraint.kind {
            ConstraintKind::Null => {
                if null == Some(false) || serial.is_some() {
                    return twice("conflicting NULL/NOT NULL declarations");
                }
                null = Some(true);
            }
            ConstraintKind::NotNull => {
                if null == Some(true) {
                    return twice("conflicting NULL/NOT NULL declarations");
                }
                null = Some(false);
                new.column.not_null = true;
            }
            ConstraintKind::Default(_) if new.generated.is_some() => {
                return twice("both default and generation expression specified");
            }
            ConstraintKind::Default(expr) => {
                if new.column.identity.is_some() {
                    return twice("both default and identity specified");
                }
                if has_default {
                    return twice("multiple default values specified");
                }
                has_default = true;
                new.column.default = column_default_text(expr, ty, domain.is_some(), cx)?;
            }
            ConstraintKind::PrimaryKey(_)
            | ConstraintKind::Unique(_)
            | ConstraintKind::Check { .. }
            | ConstraintKind::Foreign { .. } => {
                let constraint = constraint_of(constraint, Some(&name))?;
                new.constraints.push(NewConstraint {
                    timing,
                    ..constraint
                });
            }
            ConstraintKind::Generated(expr) => {
                if new.generated.is_some() {
                    return twice("multiple generation clauses specified");
                }
                if has_default {
                    return twice("both default and generation expression specified");
                }
                if new.column.identity.is_some() {
                    return twice("both identity and generation expression specified");
                }
                new.generated = Some(expr.clone());
            }
            ConstraintKind::Identity {
                by_default,
                options,
            } => {
                if has_default {
                    return twice("both default and identity specified");
                }
                if new.generated.is_some() {
                    return twice("both identity and generation expression specified");
                }
                if new.column.identity.is_some() {
                    return twice("multiple identity specifications");
                }
                if domain.is_some() || !matches!(ty.oid, oid::INT2 | oid::INT4 | oid::INT8) {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        "identity column type must be smallint, integer, or bigint",
                    ));
                }
                if null == Some(true) {
                    return twice("conflicting NULL/NOT NULL declarations");
                }
                null = Some(false);
                new.column.identity = Some(!*by_default);
                new.column.not_null = true;
                new.sequence = Some(NewSequence {
                    ty: ty.oid,
                    options: options.clone(),
                });
            }
            ConstraintKind::Exclusion(_) => {
                return Err(SqlError::internal("no constraint of a column"));
            }
            ConstraintKind::AttrDeferrable
            | ConstraintKind::AttrNotDeferrable
            | ConstraintKind::AttrDeferred
            | ConstraintKind::AttrImmediate => {}
        }
    }
    Ok(new)
}

/// Reads a constraint of a table.
pub(super) fn new_constraint(constraint: &Constraint) -> Result<NewConstraint> {
    Ok(NewConstraint {
        timing: timing(constraint.deferrable, constraint.initdeferred),
        not_valid: constraint.skip_validation,
        ..constraint_of(constraint, None)?
    })
}

/// What a constraint demands, of a table or of a column.
fn constraint_of(constraint: &Constraint, column: Option<&str>) -> Result<NewConstraint> {
    let name = constraint.conname.as_ref().map(ToString::to_string);
    let columns = |names: &[Name]| match column {
        Some(column) => vec![column.to_owned()],
        None => crate::choose_name::strings(names),
    };
    match &constraint.kind {
        ConstraintKind::PrimaryKey(key) => match &key.keys {
            KeyColumns::Columns(names) => {
                let kind = NewConstraintKind::Primary(columns(names));
                NewConstraint::key(name, kind, key)
            }
            KeyColumns::Index(_) => Err(SqlError::unsupported(
                "table constraint PRIMARY KEY USING INDEX",
            )),
        },
        ConstraintKind::Unique(key) => match &key.keys {
            KeyColumns::Columns(names) => {
                let kind = NewConstraintKind::Unique(columns(names));
                NewConstraint::key(name, kind, key)
            }
            KeyColumns::Index(_) => {
                Err(SqlError::unsupported("table constraint UNIQUE USING INDEX"))
            }
        },
        ConstraintKind::Check { expr, .. } => {
            let kind = NewConstraintKind::Check(Box::new(expr.clone()));
            Ok(NewConstraint::new(name, kind))
        }
        ConstraintKind::Foreign {
            fk_attrs,
            references,
        } => {
            let key = NewForeign::read(columns(fk_attrs), references);
            let kind = NewConstraintKind::Foreign(Box::new(key));
            Ok(NewConstraint::new(name, kind))
        }
        ConstraintKind::Exclusion(_) => Err(SqlError::unsupported("table constraint EXCLUDE")),
        _ => Err(SqlError::internal("no constraint of a table")),
    }
}

/// A foreign key asked for.
pub(crate) struct NewForeign {
    pub(crate) columns: Vec<String>,
    pub(crate) table: RangeVar,
    pub(crate) referenced: Vec<String>,
    pub(crate) on_update: ReferentialAction,
    pub(crate) on_delete: ReferentialAction,
    pub(crate) set_columns: Vec<String>,
    pub(crate) full: bool,
}

fn action(action: FkAction) -> ReferentialAction {
    match action {
        FkAction::NoAction => ReferentialAction::NoAction,
        FkAction::Restrict => ReferentialAction::Restrict,
        FkAction::Cascade => ReferentialAction::Cascade,
        FkAction::SetNull => ReferentialAction::SetNull,
        FkAction::SetDefault => ReferentialAction::SetDefault,
    }
}

impl NewForeign {
    /// Reads the words of a foreign key over these columns.
    fn read(columns: Vec<String>, key: &References) -> NewForeign {
        NewForeign {
            columns,
            table: key.pktable.clone(),
            referenced: crate::choose_name::strings(&key.pk_attrs),
            on_update: action(key.upd_action),
            on_delete: action(key.del_action),
            set_columns: crate::choose_name::strings(&key.del_set_cols),
            full: key.matchtype == FkMatch::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_parse::ast::{Stmt, TableElement};

    /// When the constraints of a table's first column are checked.
    fn of_column(text: &str) -> Result<Vec<Timing>> {
        let stmt = logstead_sql_parse::parse(text)?.remove(0).statement;
        match &**stmt {
            Stmt::Create(create) => match &create.table_elts[0] {
                TableElement::Column(def) => timings(&def.constraints, text),
                other => panic!("{text}: {other:?}"),
            },
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn attributes_belong_to_the_constraint_before_them() -> Result<()> {
        let text = "CREATE TABLE t (a int UNIQUE COLLATE \"C\" INITIALLY DEFERRED NOT NULL)";
        let said = of_column(text)?;
        assert_eq!(said[0], Timing::Deferred);
        assert!(said[1..].iter().all(|timing| *timing == Timing::Immediate));
        let text = "CREATE TABLE t (a int UNIQUE DEFERRABLE PRIMARY KEY INITIALLY IMMEDIATE)";
        assert_eq!(of_column(text)?[0], Timing::Deferrable);
        assert_eq!(of_column(text)?[2], Timing::Immediate);
        Ok(())
    }

    #[test]
    fn what_is_wrong_with_attributes_is_told_where_it_stands() {
        for (text, position) in [
            ("CREATE TABLE t (a int DEFERRABLE)", 23),
            ("CREATE TABLE t (a int UNIQUE NOT NULL DEFERRABLE)", 39),
            (
                "CREATE TABLE t (a int UNIQUE DEFERRABLE NOT DEFERRABLE)",
                41,
            ),
            (
                "CREATE TABLE t (a int UNIQUE NOT DEFERRABLE INITIALLY DEFERRED)",
                45,
            ),
        ] {
            let error = of_column(text).expect_err(text);
            let told = (error.code(), error.fields().position);
            assert_eq!(told, (SqlState::SYNTAX_ERROR, Some(position)), "{text}");
        }
    }
}
