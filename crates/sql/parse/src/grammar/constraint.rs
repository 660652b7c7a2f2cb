//! Constraints of tables, columns and domains.

use super::Parser;
use crate::ast::{
    Constraint, ConstraintKind, ExcludeConstraint, FkAction, FkMatch, IndexElem, IndexKey,
    KeyColumns, KeyConstraint, Location, Name, OperatorName, References,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

/// `ConstraintAttributeSpec`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ConstraintAttributes {
    pub(super) not_deferrable: bool,
    pub(super) deferrable: bool,
    pub(super) initially_immediate: bool,
    pub(super) initially_deferred: bool,
    pub(super) not_valid: bool,
    pub(super) no_inherit: bool,
}

/// Which attributes a constraint may have (`processCASbits`).
#[derive(Clone, Copy, Debug)]
pub(super) struct AllowedAttributes {
    pub(super) deferrable: bool,
    pub(super) not_valid: bool,
    pub(super) no_inherit: bool,
}

/// What most may have.
pub(super) const ONLY_DEFERRABLE: AllowedAttributes = AllowedAttributes {
    deferrable: true,
    not_valid: false,
    no_inherit: false,
};

fn constraint(kind: ConstraintKind, location: Location) -> Constraint {
    Constraint {
        conname: None,
        kind,
        deferrable: false,
        initdeferred: false,
        skip_validation: false,
        location,
    }
}

impl Parser<'_> {
    /// Does a `TableConstraint` begin here?
    pub(super) fn at_table_constraint(&self) -> bool {
        match self.kind() {
            T::Keyword(K::Constraint | K::Check | K::Unique | K::Primary | K::Foreign) => true,
            // Columns have that name too.
            T::Keyword(K::Exclude) => matches!(self.kind_at(1), T::LParen | T::Keyword(K::Using)),
            _ => false,
        }
    }

    /// `TableConstraint`
    pub(super) fn table_constraint(&mut self) -> Result<Constraint> {
        let location = self.here();
        if !self.take(K::Constraint) {
            return self.constraint_elem();
        }
        let name = self.col_id()?;
        let constraint = self.constraint_elem()?;
        Ok(Constraint {
            conname: Some(name),
            location,
            ..constraint
        })
    }

    /// `ConstraintElem`
    fn constraint_elem(&mut self) -> Result<Constraint> {
        let location = self.here();
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        match word {
            K::Check => {
                self.pass();
                let expr = self.parens(Self::a_expr)?;
                let attributes = self.constraint_attributes()?;
                let allowed = AllowedAttributes {
                    deferrable: false,
                    not_valid: true,
                    no_inherit: true,
                };
                self.check_attributes(attributes, "CHECK", allowed)?;
                let kind = ConstraintKind::Check {
                    expr,
                    is_no_inherit: attributes.no_inherit,
                };
                Ok(Constraint {
                    skip_validation: attributes.not_valid,
                    ..constraint(kind, location)
                })
            }
            K::Unique | K::Primary => self.key_constraint(word, location),
            K::Exclude => self.exclude_constraint(location),
            K::Foreign => {
                self.pass();
                self.expect(K::Key)?;
                let fk_attrs = self.parens(Self::name_list)?;
                self.expect(K::References)?;
                let references = Box::new(self.references()?);
                let attributes = self.constraint_attributes()?;
                let allowed = AllowedAttributes {
                    deferrable: true,
                    not_valid: true,
                    no_inherit: false,
                };
                self.check_attributes(attributes, "FOREIGN KEY", allowed)?;
                let kind = ConstraintKind::Foreign {
                    fk_attrs,
                    references,
                };
                let constraint = constraint(kind, location);
                Ok(Constraint {
                    skip_validation: attributes.not_valid,
                    ..with(constraint, attributes)
                })
            }
            _ => self.unexpected(),
        }
    }

    /// UNIQUE, PRIMARY KEY of a table.
    fn key_constraint(&mut self, word: K, location: Location) -> Result<Constraint> {
        self.pass();
        let is_primary = word == K::Primary;
        if is_primary {
            self.expect(K::Key)?;
        }
        let is_index = self.is(K::Using);
        let nulls_not_distinct = !is_primary && self.opt_unique_null_treatment()?;
        let key = if is_index {
            self.pass();
            self.expect(K::Index)?;
            KeyConstraint {
                keys: KeyColumns::Index(self.col_id()?),
                nulls_not_distinct,
                including: Vec::new(),
                options: Vec::new(),
                indexspace: None,
            }
        } else {
            KeyConstraint {
                keys: KeyColumns::Columns(self.parens(Self::name_list)?),
                nulls_not_distinct,
                including: self.opt_c_include()?,
                options: self.opt_definition()?,
                indexspace: self.opt_cons_table_space()?,
            }
        };
        let attributes = self.constraint_attributes()?;
        let what = if is_primary { "PRIMARY KEY" } else { "UNIQUE" };
        self.check_attributes(attributes, what, ONLY_DEFERRABLE)?;
        let kind = match is_primary {
            true => ConstraintKind::PrimaryKey(Box::new(key)),
            false => ConstraintKind::Unique(Box::new(key)),
        };
        Ok(with(constraint(kind, location), attributes))
    }

    fn exclude_constraint(&mut self, location: Location) -> Result<Constraint> {
        self.pass();
        let access_method = self.access_method_clause()?;
        let exclusions = self.parens(|parser| parser.list(Self::exclusion_constraint_elem))?;
        let including = self.opt_c_include()?;
        let options = self.opt_definition()?;
        let indexspace = self.opt_cons_table_space()?;
        // `OptWhereClause`
        let where_clause = match self.take(K::Where) {
            true => Some(self.parens(Self::a_expr)?),
            false => None,
        };
        let attributes = self.constraint_attributes()?;
        self.check_attributes(attributes, "EXCLUDE", ONLY_DEFERRABLE)?;
        let kind = ConstraintKind::Exclusion(Box::new(ExcludeConstraint {
            access_method,
            exclusions,
            including,
            options,
            indexspace,
            where_clause,
        }));
        Ok(with(constraint(kind, location), attributes))
    }

    /// `ExclusionConstraintElem`
    fn exclusion_constraint_elem(&mut self) -> Result<(IndexElem, OperatorName)> {
        let elem = self.index_elem()?;
        self.expect(K::With)?;
        let operator = match self.is(K::Operator) && self.kind_at(1) == T::LParen {
            true => {
                self.pass();
                self.parens(Self::any_operator)?
            }
            false => self.any_operator()?,
        };
        Ok((elem, operator))
    }

    /// `opt_unique_null_treatment`: NULLS NOT DISTINCT.
    pub(super) fn opt_unique_null_treatment(&mut self) -> Result<bool> {
        if !self.take(K::Nulls) {
            return Ok(false);
        }
        let not = self.take(K::Not);
        self.expect(K::Distinct)?;
        Ok(not)
    }

    /// `opt_c_include`
    fn opt_c_include(&mut self) -> Result<Vec<Name>> {
        match self.take(K::Include) {
            true => self.parens(Self::name_list),
            false => Ok(Vec::new()),
        }
    }

    /// `OptConsTableSpace`
    fn opt_cons_table_space(&mut self) -> Result<Option<Name>> {
        if !self.take(K::Using) {
            return Ok(None);
        }
        self.expect_all(&[K::Index, K::Tablespace])?;
        Ok(Some(self.col_id()?))
    }

    /// REFERENCES, behind the word: `qualified_name opt_column_list key_match key_actions`.
    fn references(&mut self) -> Result<References> {
        let pktable = self.qualified_name()?;
        let pk_attrs = self.opt_column_list()?;
        let matchtype = self.key_match()?;
        let mut references = References {
            pktable,
            pk_attrs,
            matchtype,
            upd_action: FkAction::NoAction,
            del_action: FkAction::NoAction,
            del_set_cols: Vec::new(),
        };
        let (mut has_update, mut has_delete) = (false, false);
        while self.is(K::On) {
            let location = self.here();
            let next = self.kind_at(1);
            if next == T::Keyword(K::Update) && !has_update {
                self.pass_all(2);
                has_update = true;
                let (action, columns) = self.key_action()?;
                if !columns.is_empty() {
                    let shown = if action == FkAction::SetNull {
                        "SET NULL"
                    } else {
                        "SET DEFAULT"
                    };
                    let message = format!(
                        "a column list with {shown} is only supported for ON DELETE actions"
                    );
                    return Err(self.unsupported(message, location));
                }
                references.upd_action = action;
            } else if next == T::Keyword(K::Delete) && !has_delete {
                self.pass_all(2);
                has_delete = true;
                (references.del_action, references.del_set_cols) = self.key_action()?;
            } else if has_update && has_delete {
                return Ok(references);
            } else {
                self.pass();
                return self.unexpected();
            }
        }
        Ok(references)
    }

    /// `key_match`
    fn key_match(&mut self) -> Result<FkMatch> {
        let location = self.here();
        if !self.take(K::Match) {
            return Ok(FkMatch::Simple);
        }
        if self.take(K::Full) {
            return Ok(FkMatch::Full);
        }
        if self.take(K::Partial) {
            return Err(self.unsupported("MATCH PARTIAL not yet implemented", location));
        }
        self.expect(K::Simple)?;
        Ok(FkMatch::Simple)
    }

    /// `key_action`
    fn key_action(&mut self) -> Result<(FkAction, Vec<Name>)> {
        let action = match self.kind() {
            T::Keyword(K::No) => {
                self.pass();
                self.expect(K::Action)?;
                return Ok((FkAction::NoAction, Vec::new()));
            }
            T::Keyword(K::Set) => {
                self.pass();
                let action = match self.take(K::Null) {
                    true => FkAction::SetNull,
                    false => {
                        self.expect(K::Default)?;
                        FkAction::SetDefault
                    }
                };
                return Ok((action, self.opt_column_list()?));
            }
            T::Keyword(K::Restrict) => FkAction::Restrict,
            T::Keyword(K::Cascade) => FkAction::Cascade,
            _ => return self.unexpected(),
        };
        self.pass();
        Ok((action, Vec::new()))
    }

    /// `ConstraintAttributeSpec`
    pub(super) fn constraint_attributes(&mut self) -> Result<ConstraintAttributes> {
        let mut all = ConstraintAttributes::default();
        loop {
            let location = self.here();
            let (word, next) = (self.kind(), self.kind_at(1));
            match (word, next) {
                (T::Keyword(K::Not), T::Keyword(K::Deferrable)) => all.not_deferrable = true,
                (T::Keyword(K::Not), T::Keyword(K::Valid)) => all.not_valid = true,
                (T::Keyword(K::No), T::Keyword(K::Inherit)) => all.no_inherit = true,
                (T::Keyword(K::Initially), T::Keyword(K::Immediate)) => {
                    all.initially_immediate = true
                }
                (T::Keyword(K::Initially), T::Keyword(K::Deferred)) => {
                    all.initially_deferred = true
                }
                (T::Keyword(K::Deferrable), _) => all.deferrable = true,
                (T::Keyword(K::Not | K::No | K::Initially), _) => {
                    self.pass();
                    return self.unexpected();
                }
                _ => return Ok(all),
            }
            self.pass_all(if word == T::Keyword(K::Deferrable) {
                1
            } else {
                2
            });
            if all.not_deferrable && all.initially_deferred {
                let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
                return Err(self.syntax_error(message, location));
            }
            if all.not_deferrable && all.deferrable
                || all.initially_immediate && all.initially_deferred
            {
                return Err(self.syntax_error("conflicting constraint properties", location));
            }
        }
    }

    /// `processCASbits`; PostgreSQL tells no position.
    pub(super) fn check_attributes(
        &self,
        attributes: ConstraintAttributes,
        what: &str,
        allowed: AllowedAttributes,
    ) -> Result<()> {
        let refused =
            if (attributes.deferrable || attributes.initially_deferred) && !allowed.deferrable {
                "DEFERRABLE"
            } else if attributes.not_valid && !allowed.not_valid {
                "NOT VALID"
            } else if attributes.no_inherit && !allowed.no_inherit {
                "NO INHERIT"
            } else {
                return Ok(());
            };
        let message = format!("{what} constraints cannot be marked {refused}");
        Err(self.unsupported(message, Location::UNKNOWN))
    }

    /// Does a `ColConstraint` begin here?
    pub(super) fn at_col_constraint(&self) -> bool {
        self.is_any(&[
            K::Constraint,
            K::Not,
            K::Null,
            K::Unique,
            K::Primary,
            K::Check,
            K::Default,
            K::Generated,
            K::References,
            K::Deferrable,
            K::Initially,
            K::Collate,
        ])
    }

    /// `ColConstraint` that is no COLLATE.
    pub(super) fn col_constraint(&mut self) -> Result<Constraint> {
        let location = self.here();
        if self.take(K::Constraint) {
            let name = self.col_id()?;
            let constraint = self.col_constraint_elem()?;
            return Ok(Constraint {
                conname: Some(name),
                location,
                ..constraint
            });
        }
        // `ConstraintAttr`
        let kind = match (self.kind(), self.kind_at(1)) {
            (T::Keyword(K::Deferrable), _) => ConstraintKind::AttrDeferrable,
            (T::Keyword(K::Not), T::Keyword(K::Deferrable)) => ConstraintKind::AttrNotDeferrable,
            (T::Keyword(K::Initially), T::Keyword(K::Deferred)) => ConstraintKind::AttrDeferred,
            (T::Keyword(K::Initially), T::Keyword(K::Immediate)) => ConstraintKind::AttrImmediate,
            (T::Keyword(K::Initially), _) => {
                self.pass();
                return self.unexpected();
            }
            _ => return self.col_constraint_elem(),
        };
        self.pass_all(if kind == ConstraintKind::AttrDeferrable {
            1
        } else {
            2
        });
        Ok(constraint(kind, location))
    }

    /// `ColConstraintElem`
    fn col_constraint_elem(&mut self) -> Result<Constraint> {
        let location = self.here();
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        let kind = match word {
            K::Not => {
                self.pass();
                self.expect(K::Null)?;
                ConstraintKind::NotNull
            }
            K::Null => {
                self.pass();
                ConstraintKind::Null
            }
            K::Unique | K::Primary => {
                self.pass();
                let is_primary = word == K::Primary;
                if is_primary {
                    self.expect(K::Key)?;
                }
                let key = Box::new(KeyConstraint {
                    keys: KeyColumns::Columns(Vec::new()),
                    nulls_not_distinct: !is_primary && self.opt_unique_null_treatment()?,
                    including: Vec::new(),
                    options: self.opt_definition()?,
                    indexspace: self.opt_cons_table_space()?,
                });
                match is_primary {
                    true => ConstraintKind::PrimaryKey(key),
                    false => ConstraintKind::Unique(key),
                }
            }
            K::Check => {
                self.pass();
                let expr = self.parens(Self::a_expr)?;
                let is_no_inherit = self.take(K::No);
                if is_no_inherit {
                    self.expect(K::Inherit)?;
                }
                ConstraintKind::Check {
                    expr,
                    is_no_inherit,
                }
            }
            K::Default => {
                self.pass();
                ConstraintKind::Default(self.b_expr()?)
            }
            K::Generated => {
                self.pass();
                self.generated()?
            }
            K::References => {
                self.pass();
                let references = Box::new(self.references()?);
                ConstraintKind::Foreign {
                    fk_attrs: Vec::new(),
                    references,
                }
            }
            _ => return self.unexpected(),
        };
        Ok(constraint(kind, location))
    }

    /// GENERATED, behind the word.
    fn generated(&mut self) -> Result<ConstraintKind> {
        let location = self.here();
        let by_default = self.generated_when()?;
        self.expect(K::As)?;
        if self.take(K::Identity) {
            let options = self.opt_parenthesized_seq_opt_list()?;
            return Ok(ConstraintKind::Identity {
                by_default,
                options,
            });
        }
        let expr = self.parens(Self::a_expr)?;
        self.expect(K::Stored)?;
        if by_default {
            let message = "for a generated column, GENERATED ALWAYS must be specified";
            return Err(self.syntax_error(message, location));
        }
        Ok(ConstraintKind::Generated(expr))
    }

    /// `generated_when`: BY DEFAULT.
    pub(super) fn generated_when(&mut self) -> Result<bool> {
        if self.take(K::Always) {
            return Ok(false);
        }
        self.expect_all(&[K::By, K::Default])?;
        Ok(true)
    }

    /// A column, an expression or a function's call as a key (`index_elem`, `part_elem`, `stats_param`).
    pub(super) fn index_key(&mut self) -> Result<IndexKey> {
        if self.at(T::LParen) {
            return Ok(IndexKey::Expr(self.parens(Self::a_expr)?, true));
        }
        let is_qualified = matches!(self.kind_at(1), T::Dot | T::LBracket);
        match self.at_func_expr_windowless() || is_qualified {
            true => Ok(IndexKey::Expr(self.func_expr_windowless()?, false)),
            false => Ok(IndexKey::Column(self.col_id()?)),
        }
    }
}

/// A constraint with its attributes.
fn with(constraint: Constraint, attributes: ConstraintAttributes) -> Constraint {
    Constraint {
        deferrable: attributes.deferrable || attributes.initially_deferred,
        initdeferred: attributes.initially_deferred,
        ..constraint
    }
}
