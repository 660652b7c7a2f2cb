//! Domains, composite types, enums, ranges.

use super::Lower;
use super::routine::names_of;
use super::routine_define::{must_be, type_of_text};
use super::routine_ref::unplaced_name;
use crate::ast::{
    AlterDomainAction, AlterDomainStmt, AlterEnumStmt, AlterTableCmd, AlterTableStmt,
    CollationName, ColumnDefinition, CompositeTypeStmt, Constraint, ConstraintKind,
    CreateDomainStmt, CreateEnumStmt, CreateRangeStmt, DefArg, DefElem, Name, RangeVar,
    RelationName, TypeName,
};
use crate::lowered as library;
use crate::{
    AlterAttribute, AlterDomain, AttributeClause, CreateDomain, DomainCheckClause, RangeClause,
    StatementKind, TypeCommand,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

fn of(command: TypeCommand) -> StatementKind {
    StatementKind::Type(Box::new(command))
}

fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

/// The error for a constraint that a domain cannot have.
fn not_for_domains(kind: &ConstraintKind) -> SqlError {
    let what = match kind {
        ConstraintKind::Unique(_) => "unique",
        ConstraintKind::PrimaryKey(_) => "primary key",
        ConstraintKind::Foreign { .. } => "foreign key",
        ConstraintKind::Exclusion(_) => "exclusion",
        ConstraintKind::AttrDeferrable
        | ConstraintKind::AttrNotDeferrable
        | ConstraintKind::AttrDeferred
        | ConstraintKind::AttrImmediate => {
            return SqlError::unsupported_text(
                "specifying constraint deferrability not supported for domains",
            );
        }
        _ => return SqlError::unsupported("GENERATED of a domain"),
    };
    syntax(format!("{what} constraints not possible for domains"))
}

/// The name of a composite type.
fn relation_name(relation: &RangeVar) -> Result<library::ObjectName> {
    match &relation.name {
        RelationName::Named {
            catalog,
            schema,
            name,
        } => {
            let parts = [catalog.as_ref(), schema.as_ref(), Some(name)];
            let parts: Vec<Name> = parts.into_iter().flatten().cloned().collect();
            Ok(unplaced_name(&parts))
        }
        RelationName::Source(_) => Err(SqlError::internal("a view's source in a statement")),
    }
}

fn collation(clause: Option<&CollationName>) -> Option<library::ObjectName> {
    clause.map(|clause| unplaced_name(&clause.name))
}

impl Lower<'_> {
    pub(super) fn create_domain(&self, stmt: &CreateDomainStmt) -> Result<StatementKind> {
        let mut create = CreateDomain {
            name: unplaced_name(&stmt.domainname.names),
            data_type: self.plain_type(&stmt.type_name)?,
            collation: collation(stmt.coll_clause.as_ref()),
            default: None,
            not_null: false,
            checks: Vec::new(),
        };
        let mut null: Option<bool> = None;
        for constraint in &stmt.constraints {
            match &constraint.kind {
                ConstraintKind::Check { .. } => create.checks.push(self.domain_check(constraint)?),
                ConstraintKind::Default(default) => {
                    let default = self.expr(default)?;
                    if create.default.replace(default).is_some() {
                        return Err(syntax("multiple default expressions"));
                    }
                }
                kind @ (ConstraintKind::Null | ConstraintKind::NotNull) => {
                    let not_null = matches!(kind, ConstraintKind::NotNull);
                    if null.is_some_and(|before| before != not_null) {
                        return Err(syntax("conflicting NULL/NOT NULL constraints"));
                    }
                    null = Some(not_null);
                    create.not_null = not_null;
                }
                kind => return Err(not_for_domains(kind)),
            }
        }
        Ok(of(TypeCommand::CreateDomain(create)))
    }

    fn domain_check(&self, constraint: &Constraint) -> Result<DomainCheckClause> {
        let ConstraintKind::Check {
            expr,
            is_no_inherit,
        } = &constraint.kind
        else {
            return Err(not_for_domains(&constraint.kind));
        };
        if *is_no_inherit {
            return Err(SqlError::new(
                SqlState::INVALID_OBJECT_DEFINITION,
                "check constraints for domains cannot be marked NO INHERIT",
            ));
        }
        Ok(DomainCheckClause {
            name: constraint.conname.as_deref().map(str::to_owned),
            condition: self.expr(expr)?,
            not_valid: constraint.skip_validation,
        })
    }

    pub(super) fn alter_domain(&self, stmt: &AlterDomainStmt) -> Result<StatementKind> {
        let alter = match &stmt.action {
            AlterDomainAction::Default(default) => {
                let default = default.as_ref();
                AlterDomain::Default(default.map(|default| self.expr(default)).transpose()?)
            }
            AlterDomainAction::SetNotNull => AlterDomain::NotNull(true),
            AlterDomainAction::DropNotNull => AlterDomain::NotNull(false),
            AlterDomainAction::AddConstraint(constraint) => {
                AlterDomain::Add(self.domain_check(constraint)?)
            }
            // Nothing depends on a CHECK.
            AlterDomainAction::DropConstraint {
                name, missing_ok, ..
            } => AlterDomain::Drop {
                if_exists: *missing_ok,
                name: name.to_string(),
            },
            AlterDomainAction::ValidateConstraint(name) => AlterDomain::Validate(name.to_string()),
        };
        let name = unplaced_name(&stmt.type_name.names);
        Ok(of(TypeCommand::AlterDomain { name, alter }))
    }

    pub(super) fn composite_type(&self, stmt: &CompositeTypeStmt) -> Result<StatementKind> {
        let attributes = stmt.coldeflist.iter();
        Ok(of(TypeCommand::CreateComposite {
            name: relation_name(&stmt.typevar)?,
            attributes: attributes
                .map(|attribute| self.attribute(attribute))
                .collect::<Result<_>>()?,
        }))
    }

    fn attribute(&self, column: &ColumnDefinition) -> Result<AttributeClause> {
        self.attribute_of(
            &column.colname,
            &column.type_name,
            column.coll_clause.as_ref(),
        )
    }

    fn attribute_of(
        &self,
        name: &Name,
        type_name: &TypeName,
        clause: Option<&CollationName>,
    ) -> Result<AttributeClause> {
        Ok(AttributeClause {
            name: name.to_string(),
            data_type: self.plain_type(type_name)?,
            collation: collation(clause),
        })
    }

    /// ALTER TYPE of the attributes of a composite type. CASCADE and RESTRICT speak of typed tables: there are none.
    pub(super) fn alter_attributes(&self, stmt: &AlterTableStmt) -> Result<StatementKind> {
        let change = |cmd: &AlterTableCmd| {
            Ok(match cmd {
                AlterTableCmd::AddAttribute { def, .. } => {
                    AlterAttribute::Add(self.attribute(def)?)
                }
                AlterTableCmd::DropColumn {
                    name, missing_ok, ..
                } => AlterAttribute::Drop {
                    if_exists: *missing_ok,
                    name: name.to_string(),
                },
                AlterTableCmd::AlterColumnType(alter) => AlterAttribute::Type(self.attribute_of(
                    &alter.name,
                    &alter.type_name,
                    alter.coll_clause.as_ref(),
                )?),
                _ => return Err(SqlError::internal("no change to an attribute")),
            })
        };
        Ok(of(TypeCommand::AlterAttributes {
            name: relation_name(&stmt.relation)?,
            changes: stmt.cmds.iter().map(change).collect::<Result<_>>()?,
        }))
    }

    pub(super) fn create_enum(&self, stmt: &CreateEnumStmt) -> StatementKind {
        of(TypeCommand::CreateEnum {
            name: unplaced_name(&stmt.type_name.names),
            labels: stmt.vals.iter().map(ToString::to_string).collect(),
        })
    }

    pub(super) fn alter_enum(&self, stmt: &AlterEnumStmt) -> StatementKind {
        let name = unplaced_name(&stmt.type_name.names);
        let label = stmt.new_val.to_string();
        of(match &stmt.old_val {
            Some(old) => TypeCommand::RenameValue {
                name,
                from: old.to_string(),
                to: label,
            },
            None => {
                let neighbor = stmt.new_val_neighbor.as_ref();
                TypeCommand::AddValue {
                    name,
                    if_not_exists: stmt.skip_if_new_val_exists,
                    label,
                    at: neighbor.map(|at| (at.to_string(), !stmt.new_val_is_after)),
                }
            }
        })
    }

    pub(super) fn create_range(&self, stmt: &CreateRangeStmt) -> Result<StatementKind> {
        let clauses = stmt.params.iter().map(|option| self.range_clause(option));
        Ok(of(TypeCommand::CreateRange {
            name: unplaced_name(&stmt.type_name.names),
            clauses: clauses.collect::<Result<_>>()?,
        }))
    }

    fn range_clause(&self, option: &DefElem) -> Result<RangeClause> {
        let (value, name) = match &option.arg {
            Some(DefArg::String(text)) => {
                let names = std::slice::from_ref(text);
                (type_of_text(text), Some(unplaced_name(names)))
            }
            Some(DefArg::Type(name)) => {
                (self.plain_type(name)?, Some(unplaced_name(names_of(name)?)))
            }
            Some(_) if &*option.name == "subtype" => return Err(must_be(option, "type name")),
            Some(_) => return Err(must_be(option, "name")),
            None => return Err(syntax(format!("{} requires a parameter", option.name))),
        };
        Ok(RangeClause {
            attribute: option.name.to_string(),
            value,
            name,
        })
    }
}
