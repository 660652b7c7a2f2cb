//! SET, RESET, SHOW, and statements about transactions.

use super::Parser;
use super::primary::constant;
use crate::ast::{
    Const, ConstraintsSetStmt, Expr, IsolationLevel, Location, Name, SetValue, Stmt,
    TransactionMode, TransactionStmt, TransactionStmtKind as Kind, TypeCast, Value,
    VariableSetKind, VariableSetStmt, VariableShowStmt, XmlOption, interval_fields as fields,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

fn setting(kind: VariableSetKind, name: &str, location: Location) -> VariableSetStmt {
    VariableSetStmt {
        kind,
        name: Some(name.into()),
        is_local: false,
        location,
    }
}

fn text(value: impl Into<Name>, location: Location) -> SetValue {
    SetValue::Const(Const {
        value: Value::String(value.into()),
        location,
    })
}

impl Parser<'_> {
    /// `VariableSetStmt`, `ConstraintsSetStmt`
    pub(super) fn set_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Set)?;
        // All of these words are names of settings as well.
        let names_setting = matches!(
            self.kind_at(1),
            T::Equals | T::Dot | T::Keyword(K::To) | T::Keyword(K::From)
        );
        if self.is(K::Constraints) && !names_setting {
            self.pass();
            return self.constraints_set();
        }
        let is_local = self.is(K::Local) && !names_setting;
        let is_session = self.is(K::Session) && !names_setting;
        let session_word =
            is_session && (self.is_at(1, K::Characteristics) || self.is_at(1, K::Authorization));
        // `SET SESSION characteristics = 1`
        let after = self.kind_at(2);
        let session_word = session_word
            && !matches!(
                after,
                T::Equals | T::Dot | T::Keyword(K::To) | T::Keyword(K::From)
            )
            || is_session && self.is_at(1, K::Authorization);
        if is_local || (is_session && !session_word) {
            self.pass();
        }
        let mut stmt = self.set_rest()?;
        stmt.is_local = is_local;
        Ok(Stmt::VariableSet(Box::new(stmt)))
    }

    fn constraints_set(&mut self) -> Result<Stmt> {
        let constraints = match self.take(K::All) {
            true => Vec::new(),
            false => self.list(Self::qualified_name)?,
        };
        let deferred = self.take(K::Deferred);
        if !deferred {
            self.expect(K::Immediate)?;
        }
        Ok(Stmt::ConstraintsSet(Box::new(ConstraintsSetStmt {
            constraints,
            deferred,
        })))
    }

    /// Does the next word name a setting (`var_name`), whatever else it is?
    fn at_var_name(&self) -> bool {
        matches!(
            self.kind_at(1),
            T::Equals | T::Dot | T::Keyword(K::To) | T::Keyword(K::From)
        )
    }

    /// `set_rest`
    pub(super) fn set_rest(&mut self) -> Result<VariableSetStmt> {
        let location = self.here();
        if !self.at_var_name() {
            if self.is(K::Transaction) && !self.is_at(1, K::Snapshot) {
                self.pass();
                let modes = self.transaction_mode_list()?;
                let kind = VariableSetKind::Transaction {
                    session: false,
                    modes,
                };
                return Ok(VariableSetStmt {
                    kind,
                    name: None,
                    is_local: false,
                    location,
                });
            }
            if self.is(K::Session) && self.is_at(1, K::Characteristics) {
                self.pass_all(2);
                self.expect_all(&[K::As, K::Transaction])?;
                let modes = self.transaction_mode_list()?;
                let kind = VariableSetKind::Transaction {
                    session: true,
                    modes,
                };
                return Ok(VariableSetStmt {
                    kind,
                    name: None,
                    is_local: false,
                    location,
                });
            }
        }
        self.set_rest_more()
    }

    /// `set_rest_more`
    pub(super) fn set_rest_more(&mut self) -> Result<VariableSetStmt> {
        let location = self.here();
        let value = |value| VariableSetKind::Value(vec![value]);
        if self.at_var_name() {
            return self.generic_set(true);
        }
        match self.kind() {
            T::Keyword(K::Time) => {
                self.pass();
                self.expect(K::Zone)?;
                let kind = match self.zone_value()? {
                    Some(zone) => value(zone),
                    None => VariableSetKind::Default,
                };
                Ok(setting(kind, "timezone", location))
            }
            T::Keyword(K::Catalog) => {
                self.pass();
                let at = self.here();
                self.sconst()?;
                Err(self.unsupported("current database cannot be changed", at))
            }
            T::Keyword(K::Schema) => {
                self.pass();
                let at = self.here();
                let schema = self.sconst()?;
                Ok(setting(value(text(schema, at)), "search_path", location))
            }
            T::Keyword(K::Names) => {
                self.pass();
                let at = self.here();
                let kind = match self.at(T::SConst) {
                    true => value(text(self.sconst()?, at)),
                    false => {
                        self.take(K::Default);
                        VariableSetKind::Default
                    }
                };
                Ok(setting(kind, "client_encoding", location))
            }
            T::Keyword(K::Role) => {
                self.pass();
                let at = self.here();
                let role = self.non_reserved_word_or_sconst()?;
                Ok(setting(value(text(role, at)), "role", location))
            }
            T::Keyword(K::Session) => {
                self.pass();
                self.expect(K::Authorization)?;
                let at = self.here();
                let kind = match self.take(K::Default) {
                    true => VariableSetKind::Default,
                    false => value(text(self.non_reserved_word_or_sconst()?, at)),
                };
                Ok(setting(kind, "session_authorization", location))
            }
            T::Keyword(K::Xml) => {
                self.pass();
                self.expect(K::Option)?;
                let at = self.here();
                let option = match self.document_or_content()? {
                    XmlOption::Document => "DOCUMENT",
                    XmlOption::Content => "CONTENT",
                };
                Ok(setting(value(text(option, at)), "xmloption", location))
            }
            T::Keyword(K::Transaction) => {
                self.pass();
                self.expect(K::Snapshot)?;
                let snapshot = self.sconst()?;
                let kind = VariableSetKind::Snapshot(snapshot);
                Ok(VariableSetStmt {
                    kind,
                    name: None,
                    is_local: false,
                    location,
                })
            }
            _ => self.generic_set(true),
        }
    }

    /// `var_name`
    pub(super) fn var_name(&mut self) -> Result<Name> {
        let first = self.col_id()?;
        if !self.at(T::Dot) {
            return Ok(first);
        }
        let mut name = String::from(first);
        while self.take_token(T::Dot) {
            name.push('.');
            name.push_str(&self.col_id()?);
        }
        Ok(name.into())
    }

    /// `generic_set`, and `var_name FROM CURRENT_P` where it may be.
    pub(super) fn generic_set(&mut self, may_be_current: bool) -> Result<VariableSetStmt> {
        let location = self.here();
        let name = self.var_name()?;
        if may_be_current && self.take(K::From) {
            self.expect(K::Current)?;
            return Ok(setting(VariableSetKind::Current, &name, location));
        }
        if !self.take(K::To) {
            self.expect_token(T::Equals)?;
        }
        let kind = match self.take(K::Default) {
            true => VariableSetKind::Default,
            false => VariableSetKind::Value(self.list(Self::var_value)?),
        };
        Ok(setting(kind, &name, location))
    }

    /// `var_value`
    fn var_value(&mut self) -> Result<SetValue> {
        let location = self.here();
        let value = match self.at_number() {
            true => self.numeric_only()?,
            false => Value::String(self.opt_boolean_or_string()?),
        };
        Ok(SetValue::Const(Const { value, location }))
    }

    /// `opt_boolean_or_string`
    pub(super) fn opt_boolean_or_string(&mut self) -> Result<Name> {
        match self.kind() {
            T::Keyword(word @ (K::True | K::False | K::On)) => {
                self.pass();
                Ok(word.word().into())
            }
            _ => self.non_reserved_word_or_sconst(),
        }
    }

    /// Does an `opt_boolean_or_string` begin here?
    pub(super) fn at_boolean_or_string(&self) -> bool {
        self.at(T::SConst)
            || self.is_any(&[K::True, K::False, K::On])
            || super::names::is_non_reserved_word(self.kind())
    }

    /// `zone_value`; none for DEFAULT and LOCAL.
    fn zone_value(&mut self) -> Result<Option<SetValue>> {
        let location = self.here();
        match self.kind() {
            T::SConst => Ok(Some(text(self.sconst()?, location))),
            T::Ident | T::QuotedIdent => Ok(Some(text(self.col_id()?, location))),
            T::Keyword(K::Default | K::Local) => {
                self.pass();
                Ok(None)
            }
            T::Keyword(K::Interval) => self.zone_interval(location).map(Some),
            _ => Ok(Some(SetValue::Const(Const {
                value: self.numeric_only()?,
                location,
            }))),
        }
    }

    fn zone_interval(&mut self, location: Location) -> Result<SetValue> {
        self.pass();
        let mut type_name = self.system_type("interval", location);
        let has_precision = self.at(T::LParen);
        if has_precision {
            type_name.typmods = self.interval_precision()?;
        }
        let at = self.here();
        let literal = constant(Value::String(self.sconst()?), at);
        if !has_precision {
            let at = self.here();
            type_name.typmods = self.opt_interval()?;
            if let Some(Expr::Const(Const {
                value: Value::Integer(mask),
                ..
            })) = type_name.typmods.first()
                && mask & !(fields::HOUR | fields::MINUTE) != 0
            {
                let message = "time zone interval must be HOUR or HOUR TO MINUTE";
                return Err(self.syntax_error(message, at));
            }
        }
        let location = Location::UNKNOWN;
        Ok(SetValue::Interval(Box::new(TypeCast {
            arg: literal,
            type_name,
            location,
        })))
    }

    /// `VariableResetStmt`
    pub(super) fn variable_reset(&mut self) -> Result<VariableSetStmt> {
        self.expect(K::Reset)?;
        let location = self.here();
        let reset = |name: &str| Ok(setting(VariableSetKind::Reset, name, location));
        if self.is(K::Time) && self.is_at(1, K::Zone) {
            self.pass_all(2);
            return reset("timezone");
        }
        if self.is(K::Transaction) && self.is_at(1, K::Isolation) {
            self.pass_all(2);
            self.expect(K::Level)?;
            return reset("transaction_isolation");
        }
        if self.is(K::Session) && self.is_at(1, K::Authorization) {
            self.pass_all(2);
            return reset("session_authorization");
        }
        self.generic_reset()
    }

    /// `generic_reset`
    pub(super) fn generic_reset(&mut self) -> Result<VariableSetStmt> {
        let location = self.here();
        if self.take(K::All) {
            let kind = VariableSetKind::ResetAll;
            return Ok(VariableSetStmt {
                kind,
                name: None,
                is_local: false,
                location,
            });
        }
        let name = self.var_name()?;
        Ok(setting(VariableSetKind::Reset, &name, location))
    }

    /// Does a `SetResetClause` begin here?
    pub(super) fn at_set_reset(&self) -> bool {
        self.is(K::Set) || self.is(K::Reset)
    }

    /// `SetResetClause`
    pub(super) fn set_reset_clause(&mut self) -> Result<VariableSetStmt> {
        match self.take(K::Set) {
            true => self.set_rest(),
            false => self.variable_reset(),
        }
    }

    /// `FunctionSetResetClause`
    pub(super) fn function_set_reset_clause(&mut self) -> Result<VariableSetStmt> {
        match self.take(K::Set) {
            true => self.set_rest_more(),
            false => self.variable_reset(),
        }
    }

    /// `VariableShowStmt`
    pub(super) fn variable_show_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Show)?;
        let location = self.here();
        let name: Name = if self.take_all(&[K::Time, K::Zone]) {
            "timezone".into()
        } else if self.is(K::Transaction) && self.is_at(1, K::Isolation) {
            self.pass_all(2);
            self.expect(K::Level)?;
            "transaction_isolation".into()
        } else if self.take_all(&[K::Session, K::Authorization]) {
            "session_authorization".into()
        } else if self.take(K::All) {
            "all".into()
        } else {
            self.var_name()?
        };
        Ok(Stmt::VariableShow(Box::new(VariableShowStmt {
            name,
            location,
        })))
    }

    /// `transaction_mode_list`
    fn transaction_mode_list(&mut self) -> Result<Vec<TransactionMode>> {
        let mut modes = vec![self.transaction_mode_item()?];
        loop {
            if self.take_token(T::Comma) || self.at_transaction_mode() {
                modes.push(self.transaction_mode_item()?);
            } else {
                return Ok(modes);
            }
        }
    }

    fn at_transaction_mode(&self) -> bool {
        self.is_any(&[K::Isolation, K::Read, K::Deferrable, K::Not])
    }

    /// `transaction_mode_list_or_empty`
    fn transaction_mode_list_or_empty(&mut self) -> Result<Vec<TransactionMode>> {
        match self.at_transaction_mode() {
            true => self.transaction_mode_list(),
            false => Ok(Vec::new()),
        }
    }

    /// `transaction_mode_item`
    fn transaction_mode_item(&mut self) -> Result<TransactionMode> {
        let location = self.here();
        if self.take(K::Isolation) {
            self.expect(K::Level)?;
            return Ok(TransactionMode::Isolation(self.iso_level()?, location));
        }
        if self.take(K::Read) {
            let only = self.take(K::Only);
            if !only {
                self.expect(K::Write)?;
            }
            return Ok(TransactionMode::ReadOnly(only, location));
        }
        let deferrable = !self.take(K::Not);
        self.expect(K::Deferrable)?;
        Ok(TransactionMode::Deferrable(deferrable, location))
    }

    /// `iso_level`
    fn iso_level(&mut self) -> Result<IsolationLevel> {
        if self.take(K::Read) {
            if self.take(K::Uncommitted) {
                return Ok(IsolationLevel::ReadUncommitted);
            }
            self.expect(K::Committed)?;
            return Ok(IsolationLevel::ReadCommitted);
        }
        if self.take(K::Repeatable) {
            self.expect(K::Read)?;
            return Ok(IsolationLevel::RepeatableRead);
        }
        self.expect(K::Serializable)?;
        Ok(IsolationLevel::Serializable)
    }

    fn transaction(&self, kind: Kind, options: Vec<TransactionMode>) -> Result<Stmt> {
        Ok(Stmt::Transaction(Box::new(TransactionStmt {
            kind,
            options,
        })))
    }

    /// `opt_transaction`
    fn opt_transaction(&mut self) {
        if self.is(K::Work) || self.is(K::Transaction) {
            self.pass();
        }
    }

    /// `opt_transaction_chain`
    fn opt_transaction_chain(&mut self) -> Result<bool> {
        if !self.take(K::And) {
            return Ok(false);
        }
        let chain = !self.take(K::No);
        self.expect(K::Chain)?;
        Ok(chain)
    }

    /// `TransactionStmtLegacy`
    pub(super) fn transaction_stmt_legacy(&mut self) -> Result<Stmt> {
        let is_begin = self.pass().kind == T::Keyword(K::Begin);
        self.opt_transaction();
        if is_begin {
            let modes = self.transaction_mode_list_or_empty()?;
            return self.transaction(Kind::Begin, modes);
        }
        let chain = self.opt_transaction_chain()?;
        self.transaction(Kind::Commit { chain }, Vec::new())
    }

    /// `TransactionStmt`
    pub(super) fn transaction_stmt(&mut self) -> Result<Stmt> {
        let T::Keyword(word) = self.pass().kind else {
            return self.unexpected();
        };
        let kind = match word {
            K::Start => {
                self.expect(K::Transaction)?;
                let modes = self.transaction_mode_list_or_empty()?;
                return self.transaction(Kind::Start, modes);
            }
            K::Savepoint => Kind::Savepoint(self.col_id()?),
            K::Release => Kind::Release(self.savepoint_name()?),
            K::Commit if self.take(K::Prepared) => Kind::CommitPrepared(self.sconst()?),
            K::Rollback if self.take(K::Prepared) => Kind::RollbackPrepared(self.sconst()?),
            _ => {
                self.opt_transaction();
                if word == K::Rollback && self.take(K::To) {
                    Kind::RollbackTo(self.savepoint_name()?)
                } else {
                    let chain = self.opt_transaction_chain()?;
                    match word {
                        K::Commit => Kind::Commit { chain },
                        _ => Kind::Rollback { chain },
                    }
                }
            }
        };
        self.transaction(kind, Vec::new())
    }

    /// `SAVEPOINT ColId`, `ColId`
    fn savepoint_name(&mut self) -> Result<Name> {
        if self.is(K::Savepoint) && super::names::is_col_id(self.kind_at(1)) {
            self.pass();
        }
        self.col_id()
    }

    /// `PREPARE TRANSACTION Sconst`, behind its first word.
    pub(super) fn prepare_transaction(&mut self) -> Result<Stmt> {
        self.pass();
        let gid = self.sconst()?;
        self.transaction(Kind::Prepare(gid), Vec::new())
    }
}
