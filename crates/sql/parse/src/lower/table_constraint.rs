//! Constraints of columns and tables.

use super::Lower;
use crate::ast::{
    Constraint, ConstraintKind, DefElem, ExcludeConstraint, FkMatch, KeyColumns, KeyConstraint,
    Location, Name, References,
};
use crate::lowered as library;
use logstead_sql_types::error::{Result, SqlError};

/// When a constraint is checked, where something is said of it.
pub(super) fn characteristics(
    deferrable: bool,
    initdeferred: bool,
) -> Option<library::ConstraintCharacteristics> {
    deferrable.then(|| library::ConstraintCharacteristics {
        deferrable: Some(true),
        initially: initdeferred.then_some(library::DeferrableInitial::Deferred),
    })
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
        let name = self.constraint_name(constraint);
        let option = match &constraint.kind {
            ConstraintKind::Null => ColumnOption::Null,
            ConstraintKind::NotNull => ColumnOption::NotNull,
            ConstraintKind::Default(expr) => ColumnOption::Default(self.expr(expr)?),
            ConstraintKind::Identity {
                by_default,
                options,
            } => ColumnOption::Identity(generated_as(*by_default), options.clone()),
            ConstraintKind::Generated(expr) => ColumnOption::Generated(self.expr(expr)?),
            ConstraintKind::Check {
                expr,
                is_no_inherit,
            } => ColumnOption::Check(library::CheckConstraint {
                name: None,
                expr: Box::new(self.expr(expr)?),
                no_inherit: *is_no_inherit,
            }),
            ConstraintKind::PrimaryKey(key) => {
                ColumnOption::PrimaryKey(self.primary_key(key, None, None)?)
            }
            ConstraintKind::Unique(key) => ColumnOption::Unique(self.unique(key, None, None)?),
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
            ConstraintKind::Exclusion(exclude) => self.exclude(exclude)?,
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

    /// The columns of a key.
    fn key_columns(&self, key: &KeyConstraint) -> Vec<library::Ident> {
        match &key.keys {
            KeyColumns::Columns(names) => self.names_of(names),
            KeyColumns::Index(_) => Vec::new(),
        }
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
            columns: self.key_columns(key),
            include: self.names_of(&key.including),
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
            columns: self.key_columns(key),
            include: self.names_of(&key.including),
            characteristics,
            nulls_not_distinct: key.nulls_not_distinct,
        })
    }

    fn foreign_key(
        &self,
        name: Option<library::Ident>,
        columns: &[Name],
        references: &References,
        characteristics: Option<library::ConstraintCharacteristics>,
    ) -> library::ForeignKeyConstraint {
        library::ForeignKeyConstraint {
            name,
            columns: self.names_of(columns),
            foreign_table: self.relation_name(&references.pktable),
            referred_columns: self.names_of(&references.pk_attrs),
            on_delete: references.del_action,
            set_columns: self.names_of(&references.del_set_cols),
            on_update: references.upd_action,
            full: references.matchtype == FkMatch::Full,
            characteristics,
        }
    }

    /// EXCLUDE, which is refused; what is wrong with its parts is told before.
    fn exclude(&self, exclude: &ExcludeConstraint) -> Result<library::TableConstraint> {
        refuse_index_options(&exclude.options, exclude.indexspace.as_ref())?;
        for (elem, _) in &exclude.exclusions {
            self.index_elem(elem)?;
        }
        self.opt_expr(exclude.where_clause.as_ref())?;
        Ok(library::TableConstraint::Exclude)
    }
}

/// GENERATED of an identity column.
pub(super) fn generated_as(by_default: bool) -> library::GeneratedAs {
    match by_default {
        true => library::GeneratedAs::ByDefault,
        false => library::GeneratedAs::Always,
    }
}
