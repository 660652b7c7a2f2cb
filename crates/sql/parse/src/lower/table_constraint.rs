//! Constraints of columns and tables.

use super::Lower;
use super::table::mark;
use crate::ast::{
    Constraint, ConstraintKind, DefElem, ExcludeConstraint, FkAction, FkMatch, KeyColumns,
    KeyConstraint, Location, Name, OperatorName, References,
};
use crate::constraints::NAME_END;
use crate::nulls_distinct::MARK;
use logstead_sql_types::error::{Result, SqlError};
use sqlparser::ast as library;

/// When a constraint is judged, where something is said of it.
pub(super) fn characteristics(
    deferrable: bool,
    initdeferred: bool,
) -> Option<library::ConstraintCharacteristics> {
    deferrable.then(|| library::ConstraintCharacteristics {
        deferrable: Some(true),
        initially: initdeferred.then_some(library::DeferrableInitial::Deferred),
        enforced: None,
    })
}

fn referential_action(action: FkAction) -> Option<library::ReferentialAction> {
    match action {
        FkAction::NoAction => None,
        FkAction::Restrict => Some(library::ReferentialAction::Restrict),
        FkAction::Cascade => Some(library::ReferentialAction::Cascade),
        FkAction::SetNull => Some(library::ReferentialAction::SetNull),
        FkAction::SetDefault => Some(library::ReferentialAction::SetDefault),
    }
}

/// 0A000 for what a constraint says of its index.
fn refuse_index_options(options: &[DefElem], indexspace: Option<&Name>) -> Result<()> {
    if !options.is_empty() {
        return Err(SqlError::unsupported("WITH of a constraint"));
    }
    match indexspace {
        Some(_) => Err(SqlError::unsupported("USING INDEX TABLESPACE")),
        None => Ok(()),
    }
}

impl Lower<'_> {
    /// The name of a constraint, which stands behind CONSTRAINT.
    fn constraint_name(&self, constraint: &Constraint) -> Option<library::Ident> {
        let name = constraint.conname.as_ref()?;
        Some(self.ident(name, self.location_behind(constraint.location)))
    }

    /// A constraint of a column.
    pub(super) fn column_option(
        &self,
        constraint: &Constraint,
    ) -> Result<library::ColumnOptionDef> {
        use library::ColumnOption;
        let mut name = self.constraint_name(constraint);
        let option = match &constraint.kind {
            ConstraintKind::Null => ColumnOption::Null,
            ConstraintKind::NotNull => ColumnOption::NotNull,
            ConstraintKind::Default(expr) => ColumnOption::Default(self.expr(expr)?),
            ConstraintKind::Identity {
                by_default,
                options,
            } => ColumnOption::Generated {
                generated_as: generated_as(*by_default),
                sequence_options: Some(self.identity_options(options)?),
                generation_expr: None,
                generation_expr_mode: None,
                generated_keyword: true,
            },
            ConstraintKind::Generated(expr) => ColumnOption::Generated {
                generated_as: library::GeneratedAs::ExpStored,
                sequence_options: None,
                generation_expr: Some(self.expr(expr)?),
                generation_expr_mode: Some(library::GeneratedExpressionMode::Stored),
                generated_keyword: true,
            },
            ConstraintKind::Check {
                expr,
                is_no_inherit,
            } => ColumnOption::Check(library::CheckConstraint {
                name: None,
                expr: Box::new(self.expr(expr)?),
                no_inherit: *is_no_inherit,
                enforced: None,
            }),
            ConstraintKind::PrimaryKey(key) => {
                ColumnOption::PrimaryKey(self.primary_key(key, None, None)?)
            }
            ConstraintKind::Unique(key) => {
                // It travels in the name.
                if key.nulls_not_distinct {
                    let written = constraint.conname.as_deref().unwrap_or_default();
                    name = Some(mark(format!("{MARK}{written}")));
                }
                let mut unique = self.unique(key, None, None)?;
                unique.nulls_distinct = library::NullsDistinctOption::None;
                ColumnOption::Unique(unique)
            }
            ConstraintKind::Foreign {
                fk_attrs,
                references,
            } => ColumnOption::ForeignKey(self.foreign_key(None, fk_attrs, references, None)),
            ConstraintKind::Exclusion(_)
            | ConstraintKind::AttrDeferrable
            | ConstraintKind::AttrNotDeferrable
            | ConstraintKind::AttrDeferred
            | ConstraintKind::AttrImmediate => {
                return Err(SqlError::internal("no constraint of a column"));
            }
        };
        Ok(library::ColumnOptionDef { name, option })
    }

    /// A constraint of a table.
    pub(super) fn table_constraint(
        &self,
        constraint: &Constraint,
    ) -> Result<library::TableConstraint> {
        let name = self.constraint_name(constraint);
        let characteristics = characteristics(constraint.deferrable, constraint.initdeferred);
        Ok(match &constraint.kind {
            ConstraintKind::Check {
                expr,
                is_no_inherit,
            } => library::TableConstraint::Check(library::CheckConstraint {
                name,
                expr: Box::new(self.expr(expr)?),
                no_inherit: *is_no_inherit,
                enforced: None,
            }),
            ConstraintKind::PrimaryKey(key) => {
                match &key.keys {
                    KeyColumns::Index(index) => library::TableConstraint::PrimaryKeyUsingIndex(
                        self.using_index(name, index, characteristics),
                    ),
                    KeyColumns::Columns(_) => library::TableConstraint::PrimaryKey(
                        self.primary_key(key, name, characteristics)?,
                    ),
                }
            }
            ConstraintKind::Unique(key) => match &key.keys {
                KeyColumns::Index(index) => library::TableConstraint::UniqueUsingIndex(
                    self.using_index(name, index, characteristics),
                ),
                KeyColumns::Columns(_) => {
                    library::TableConstraint::Unique(self.unique(key, name, characteristics)?)
                }
            },
            ConstraintKind::Exclusion(exclude) => {
                library::TableConstraint::Exclude(self.exclude(exclude, name, characteristics)?)
            }
            ConstraintKind::Foreign {
                fk_attrs,
                references,
            } => library::TableConstraint::ForeignKey(self.foreign_key(
                name,
                fk_attrs,
                references,
                characteristics,
            )),
            _ => return Err(SqlError::internal("no constraint of a table")),
        })
    }

    fn using_index(
        &self,
        name: Option<library::Ident>,
        index: &Name,
        characteristics: Option<library::ConstraintCharacteristics>,
    ) -> library::ConstraintUsingIndex {
        library::ConstraintUsingIndex {
            name,
            index_name: self.ident(index, Location::UNKNOWN),
            characteristics,
        }
    }

    /// The columns of a key as those of an index.
    fn key_columns(&self, key: &KeyConstraint) -> Vec<library::IndexColumn> {
        let KeyColumns::Columns(names) = &key.keys else {
            return Vec::new();
        };
        let column = |name: library::Ident| library::IndexColumn {
            column: library::OrderByExpr {
                expr: library::Expr::Identifier(name),
                options: library::OrderByOptions {
                    sort: None,
                    nulls_first: None,
                },
                with_fill: None,
            },
            operator_class: None,
        };
        self.names_of(names).into_iter().map(column).collect()
    }

    fn primary_key(
        &self,
        key: &KeyConstraint,
        name: Option<library::Ident>,
        characteristics: Option<library::ConstraintCharacteristics>,
    ) -> Result<library::PrimaryKeyConstraint> {
        refuse_index_options(&key.options, key.indexspace.as_ref())?;
        Ok(library::PrimaryKeyConstraint {
            name,
            index_name: None,
            index_type: None,
            columns: self.key_columns(key),
            include: self.names_of(&key.including),
            index_options: Vec::new(),
            characteristics,
        })
    }

    fn unique(
        &self,
        key: &KeyConstraint,
        name: Option<library::Ident>,
        characteristics: Option<library::ConstraintCharacteristics>,
    ) -> Result<library::UniqueConstraint> {
        refuse_index_options(&key.options, key.indexspace.as_ref())?;
        Ok(library::UniqueConstraint {
            name,
            index_name: None,
            index_type_display: library::KeyOrIndexDisplay::None,
            index_type: None,
            columns: self.key_columns(key),
            include: self.names_of(&key.including),
            index_options: Vec::new(),
            characteristics,
            nulls_distinct: match key.nulls_not_distinct {
                true => library::NullsDistinctOption::NotDistinct,
                false => library::NullsDistinctOption::None,
            },
        })
    }

    fn foreign_key(
        &self,
        name: Option<library::Ident>,
        columns: &[Name],
        references: &References,
        characteristics: Option<library::ConstraintCharacteristics>,
    ) -> library::ForeignKeyConstraint {
        // The columns of SET NULL and SET DEFAULT travel as the name of an index.
        let set_columns = &references.del_set_cols;
        let set_columns = set_columns.iter().map(|name| format!("{name}{NAME_END}"));
        let set_columns: String = set_columns.collect();
        library::ForeignKeyConstraint {
            name,
            index_name: (!set_columns.is_empty()).then(|| library::Ident::new(set_columns)),
            columns: self.names_of(columns),
            foreign_table: self.relation_name(&references.pktable),
            referred_columns: self.names_of(&references.pk_attrs),
            on_delete: referential_action(references.del_action),
            on_update: referential_action(references.upd_action),
            match_kind: match references.matchtype {
                FkMatch::Simple => None,
                FkMatch::Full => Some(library::ConstraintReferenceMatchKind::Full),
            },
            characteristics,
        }
    }

    fn exclude(
        &self,
        exclude: &ExcludeConstraint,
        name: Option<library::Ident>,
        characteristics: Option<library::ConstraintCharacteristics>,
    ) -> Result<library::ExcludeConstraint> {
        refuse_index_options(&exclude.options, exclude.indexspace.as_ref())?;
        let mut elements = Vec::new();
        for (elem, operator) in &exclude.exclusions {
            elements.push(library::ExcludeConstraintElement {
                column: self.index_elem(elem)?,
                operator: exclude_operator(operator),
            });
        }
        let where_clause = match &exclude.where_clause {
            Some(expr) => Some(Box::new(self.expr(expr)?)),
            None => None,
        };
        let method = exclude.access_method.as_ref();
        Ok(library::ExcludeConstraint {
            name,
            index_method: method.map(|name| self.ident(name, Location::UNKNOWN)),
            elements,
            include: self.names_of(&exclude.including),
            where_clause,
            characteristics,
        })
    }
}

fn exclude_operator(operator: &OperatorName) -> library::ExcludeConstraintOperator {
    match operator.schema.as_slice() {
        [] => library::ExcludeConstraintOperator::Token(operator.name.to_string()),
        schema => {
            let parts = schema.iter().chain([&operator.name]);
            let parts = parts.map(|part| part.to_string()).collect();
            library::ExcludeConstraintOperator::PGOperator(parts)
        }
    }
}

/// GENERATED of an identity column.
pub(super) fn generated_as(by_default: bool) -> library::GeneratedAs {
    match by_default {
        true => library::GeneratedAs::ByDefault,
        false => library::GeneratedAs::Always,
    }
}
