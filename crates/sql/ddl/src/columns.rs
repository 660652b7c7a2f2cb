//! Column definitions: types, options, and the constraints and sequences they ask for.

use super::DdlContext;
use super::expressions::column_default_text;
use crate::relation_attributes::NewColumnAttribute;
use logstead_sql_catalog::ReferentialAction;
use logstead_sql_catalog::attributes::Attribute;
use logstead_sql_catalog::text::fold;
use logstead_sql_catalog::{Column, Timing};
use logstead_sql_parse::ast::DefElem;
use logstead_sql_parse::ast::FkAction;
use logstead_sql_parse::lowered::{self as ast, Spanned};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Oid, SqlType, info, oid, user};
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

    /// UNIQUE as it was written.
    fn unique(
        name: Option<String>,
        columns: Vec<String>,
        key: &ast::UniqueConstraint,
    ) -> Result<Self> {
        Ok(NewConstraint {
            timing: timing(key.characteristics.as_ref())?,
            nulls_not_distinct: key.nulls_not_distinct,
            include: key.include.iter().map(fold).collect(),
            ..NewConstraint::new(name, NewConstraintKind::Unique(columns))
        })
    }

    fn timed(self, timing: Timing) -> NewConstraint {
        NewConstraint { timing, ..self }
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
    pub(super) ty: Oid,
    pub(super) options: Vec<DefElem>,
}

/// A column asked for.
pub(super) struct NewColumn {
    pub(super) column: Column,
    pub(super) sequence: Option<NewSequence>,
    pub(super) constraints: Vec<NewConstraint>,
    /// What the column is generated from; `generated::settle` makes it the column's once all columns are known.
    pub(super) generated: Option<ast::Expr>,
    /// What is kept beside of it, and told ([`logstead_sql_catalog::attributes`]).
    pub(super) attributes: Vec<NewColumnAttribute>,
}

/// smallserial, serial, bigserial: the column's type.
fn serial(data_type: &ast::DataType) -> Option<Oid> {
    let ast::DataType::Custom(name, arguments) = data_type else {
        return None;
    };
    if !arguments.is_empty() {
        return None;
    }
    match name.to_string().to_ascii_lowercase().as_str() {
        "smallserial" | "serial2" => Some(oid::INT2),
        "serial" | "serial4" => Some(oid::INT4),
        "bigserial" | "serial8" => Some(oid::INT8),
        _ => None,
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
    data_type: &ast::DataType,
    cx: &DdlContext<'_>,
) -> Result<SqlType> {
    let ty = logstead_sql_catalog::type_name::sql_type(data_type).map_err(|e| match data_type {
        ast::DataType::Custom(written, _) => e.at(cx.at(written.span())),
        _ => e,
    })?;
    refuse_pseudo(name, ty)?;
    Ok(ty)
}

/// 42P16 for types that no column may have.
pub(super) fn refuse_pseudo(name: &str, ty: SqlType) -> Result<()> {
    let pseudo = info::by_oid(ty.oid).is_none_or(|t| t.kind == 'p');
    match pseudo {
        true => Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!(
                "column \"{name}\" has pseudo-type {}",
                info::format_type(SqlType::of(ty.oid))
            ),
        )),
        false => Ok(()),
    }
}

/// When a constraint with these words is checked.
pub(super) fn timing(characteristics: Option<&ast::ConstraintCharacteristics>) -> Result<Timing> {
    let Some(words) = characteristics else {
        return Ok(Timing::Immediate);
    };
    let deferred = words.initially == Some(ast::DeferrableInitial::Deferred);
    match words.deferrable {
        Some(false) if deferred => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "constraint declared INITIALLY DEFERRED must be DEFERRABLE",
        )),
        _ if deferred => Ok(Timing::Deferred),
        Some(true) => Ok(Timing::Deferrable),
        _ => Ok(Timing::Immediate),
    }
}

/// Reads a column definition of table `table`.
pub(super) fn new_column(
    def: &ast::ColumnDef,
    table: &str,
    cx: &mut DdlContext<'_>,
) -> Result<NewColumn> {
    let name = cx.name(&fold(&def.name));
    check_column_name(&name)?;
    let serial = serial(&def.data_type);
    let ty = match serial {
        Some(ty) => SqlType::of(ty),
        None => column_type(&name, &def.data_type, cx)?,
    };
    // A column declared as a domain holds values of its base type.
    let domain = user::domain_in(ty.oid).map(|_| ty.oid);
    let ty = user::base_type(ty);
    let twice = |what: &str| {
        SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("{what} for column \"{name}\" of table \"{table}\""),
        )
    };
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
        && let Some(code) = super::relation_attributes::compression_code(method, ty)?
    {
        new.attributes
            .push((Attribute::Compression, code.to_string()));
    }
    let mut null: Option<bool> = None;
    let mut has_default = serial.is_some();
    for option in &def.options {
        let constraint_name = option.name.as_ref().map(fold);
        match &option.option {
            ast::ColumnOption::Null => {
                if null == Some(false) || serial.is_some() {
                    return Err(twice("conflicting NULL/NOT NULL declarations"));
                }
                null = Some(true);
            }
            ast::ColumnOption::NotNull => {
                if null == Some(true) {
                    return Err(twice("conflicting NULL/NOT NULL declarations"));
                }
                null = Some(false);
                new.column.not_null = true;
            }
            ast::ColumnOption::Default(_) if new.generated.is_some() => {
                return Err(twice("both default and generation expression specified"));
            }
            ast::ColumnOption::Default(expr) => {
                if new.column.identity.is_some() {
                    return Err(twice("both default and identity specified"));
                }
                if has_default {
                    let at = match serial {
                        Some(_) => None,
                        None => logstead_sql_parse::before(cx.text, expr.span(), "default"),
                    };
                    return Err(twice("multiple default values specified").at(at));
                }
                has_default = true;
                new.column.default = column_default_text(expr, ty, domain.is_some(), cx)?;
            }
            ast::ColumnOption::PrimaryKey(key) => {
                let kind = NewConstraintKind::Primary(vec![name.clone()]);
                let timing = timing(key.characteristics.as_ref())?;
                new.constraints
                    .push(NewConstraint::new(constraint_name, kind).timed(timing));
            }
            ast::ColumnOption::Unique(key) => {
                let columns = vec![name.clone()];
                let unique = NewConstraint::unique(constraint_name, columns, key)?;
                new.constraints.push(unique);
            }
            ast::ColumnOption::Check(check) => {
                let name = constraint_name.or_else(|| check.name.as_ref().map(fold));
                new.constraints.push(NewConstraint::new(
                    name,
                    NewConstraintKind::Check(check.expr.clone()),
                ));
            }
            ast::ColumnOption::ForeignKey(key) => {
                let kind =
                    NewConstraintKind::Foreign(Box::new(NewForeign::read(key, Some(&name))?));
                let timing = timing(key.characteristics.as_ref())?;
                new.constraints
                    .push(NewConstraint::new(constraint_name, kind).timed(timing));
            }
            ast::ColumnOption::Collation(collation) => {
                let said = super::relation_attributes::named_collation(collation, ty)?;
                if let Some(said) = super::relation_attributes::collation_attribute(&said, ty) {
                    new.attributes.push((Attribute::Collation, said.to_owned()));
                }
            }
            ast::ColumnOption::Generated(expr) => {
                if new.generated.is_some() {
                    return Err(twice("multiple generation clauses specified"));
                }
                if has_default {
                    return Err(twice("both default and generation expression specified"));
                }
                if new.column.identity.is_some() {
                    return Err(twice("both identity and generation expression specified"));
                }
                new.generated = Some(expr.clone());
            }
            ast::ColumnOption::Identity(generated_as, options) => {
                if has_default {
                    return Err(twice("both default and identity specified"));
                }
                if new.generated.is_some() {
                    return Err(twice("both identity and generation expression specified"));
                }
                if new.column.identity.is_some() {
                    return Err(twice("multiple identity specifications"));
                }
                if domain.is_some() || !matches!(ty.oid, oid::INT2 | oid::INT4 | oid::INT8) {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        "identity column type must be smallint, integer, or bigint",
                    ));
                }
                if null == Some(true) {
                    return Err(twice("conflicting NULL/NOT NULL declarations"));
                }
                null = Some(false);
                new.column.identity = Some(matches!(generated_as, ast::GeneratedAs::Always));
                new.column.not_null = true;
                new.sequence = Some(NewSequence {
                    ty: ty.oid,
                    options: options.clone(),
                });
            }
        }
    }
    Ok(new)
}

fn key_names(columns: &[ast::Ident]) -> Vec<String> {
    columns.iter().map(fold).collect()
}

/// Reads a table constraint.
pub(super) fn new_constraint(constraint: &ast::TableConstraint) -> Result<NewConstraint> {
    match constraint {
        ast::TableConstraint::PrimaryKey(key) => {
            let timing = timing(key.characteristics.as_ref())?;
            let kind = NewConstraintKind::Primary(key_names(&key.columns));
            Ok(NewConstraint {
                timing,
                include: key.include.iter().map(fold).collect(),
                ..NewConstraint::new(key.name.as_ref().map(fold), kind)
            })
        }
        ast::TableConstraint::Unique(key) => {
            NewConstraint::unique(key.name.as_ref().map(fold), key_names(&key.columns), key)
        }
        ast::TableConstraint::Check(check) => Ok(NewConstraint::new(
            check.name.as_ref().map(fold),
            NewConstraintKind::Check(check.expr.clone()),
        )),
        ast::TableConstraint::ForeignKey(key) => {
            let kind = NewConstraintKind::Foreign(Box::new(NewForeign::read(key, None)?));
            let timing = timing(key.characteristics.as_ref())?;
            Ok(NewConstraint::new(key.name.as_ref().map(fold), kind).timed(timing))
        }
        ast::TableConstraint::PrimaryKeyUsingIndex(_) => Err(SqlError::unsupported(
            "table constraint PRIMARY KEY USING INDEX",
        )),
        ast::TableConstraint::UniqueUsingIndex(_) => {
            Err(SqlError::unsupported("table constraint UNIQUE USING INDEX"))
        }
        ast::TableConstraint::Exclude => Err(SqlError::unsupported("table constraint EXCLUDE")),
    }
}

/// A foreign key asked for.
pub(crate) struct NewForeign {
    pub(crate) columns: Vec<String>,
    pub(crate) table: ast::ObjectName,
    pub(crate) referenced: Vec<String>,
    pub(crate) on_update: ReferentialAction,
    pub(crate) on_delete: ReferentialAction,
    pub(crate) set_columns: Vec<String>,
    pub(crate) full: bool,
}

impl NewForeign {
    /// Reads the words of a foreign key; `column` is the column it was written behind.
    pub(crate) fn read(
        key: &ast::ForeignKeyConstraint,
        column: Option<&str>,
    ) -> Result<NewForeign> {
        Ok(NewForeign {
            columns: match column {
                Some(column) => vec![column.to_owned()],
                None => key.columns.iter().map(fold).collect(),
            },
            table: key.foreign_table.clone(),
            referenced: key.referred_columns.iter().map(fold).collect(),
            on_update: action(key.on_update),
            on_delete: action(key.on_delete),
            set_columns: key.set_columns.iter().map(fold).collect(),
            full: key.full,
        })
    }
}

pub(crate) fn action(action: FkAction) -> ReferentialAction {
    match action {
        FkAction::NoAction => ReferentialAction::NoAction,
        FkAction::Restrict => ReferentialAction::Restrict,
        FkAction::Cascade => ReferentialAction::Cascade,
        FkAction::SetNull => ReferentialAction::SetNull,
        FkAction::SetDefault => ReferentialAction::SetDefault,
    }
}
