//! Triggers, event triggers, rules.

use super::create_table::option;
use super::{Condition, Parser};
use crate::ast::{
    CreateEventTrigStmt, CreateTrigStmt, DefArg, DefElem, FiringMode, Location, Name, RangeVar,
    RuleEvent, RuleStmt, Stmt, TriggerTransition,
};
use crate::definition::{TriggerEvent, TriggerTime};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

impl Parser<'_> {
    /// `CreateTrigStmt`, behind TRIGGER.
    pub(super) fn create_trig_stmt(&mut self, replace: bool) -> Result<Stmt> {
        let trigname = self.col_id()?;
        let timing = match self.kind() {
            T::Keyword(K::Before) => TriggerTime::Before,
            T::Keyword(K::After) => TriggerTime::After,
            T::Keyword(K::Instead) => {
                self.pass();
                match self.is(K::Of) {
                    true => TriggerTime::InsteadOf,
                    false => return self.unexpected(),
                }
            }
            _ => return self.unexpected(),
        };
        self.pass();
        let (events, columns) = self.trigger_events()?;
        self.expect(K::On)?;
        let relation = self.qualified_name()?;
        let mut transition_rels = Vec::new();
        if self.take(K::Referencing) {
            while transition_rels.is_empty() || self.is_any(&[K::New, K::Old]) {
                transition_rels.push(self.trigger_transition()?);
            }
        }
        // `TriggerForSpec`
        let mut row = false;
        if self.take(K::For) {
            self.take(K::Each);
            row = self.take(K::Row);
            if !row {
                self.expect(K::Statement)?;
            }
        }
        let (when_clause, when_range) = self.trigger_when()?;
        let (funcname, args) = self.execute_function()?;
        Ok(Stmt::CreateTrig(Box::new(CreateTrigStmt {
            replace,
            isconstraint: false,
            trigname,
            relation,
            funcname,
            args,
            row,
            timing,
            events,
            columns,
            when_clause,
            when_range,
            transition_rels,
            deferrable: false,
            initdeferred: false,
            constrrel: None,
        })))
    }

    /// CREATE CONSTRAINT TRIGGER, behind these words.
    pub(super) fn create_constraint_trigger(&mut self, replace: bool) -> Result<Stmt> {
        let trigname = self.col_id()?;
        self.expect(K::After)?;
        let (events, columns) = self.trigger_events()?;
        self.expect(K::On)?;
        let relation = self.qualified_name()?;
        let constrrel = match self.take(K::From) {
            true => Some(self.qualified_name()?),
            false => None,
        };
        let attributes = self.constraint_attributes()?;
        self.expect_all(&[K::For, K::Each, K::Row])?;
        let (when_clause, when_range) = self.trigger_when()?;
        let (funcname, args) = self.execute_function()?;
        if self.at(T::Error) {
            return self.unexpected();
        }
        if replace {
            let message = "CREATE OR REPLACE CONSTRAINT TRIGGER is not supported";
            return Err(self.unsupported(message, Location::UNKNOWN));
        }
        self.check_attributes(attributes, "TRIGGER", super::constraint::ONLY_DEFERRABLE)?;
        Ok(Stmt::CreateTrig(Box::new(CreateTrigStmt {
            replace,
            isconstraint: true,
            trigname,
            relation,
            funcname,
            args,
            row: true,
            timing: TriggerTime::After,
            events,
            columns,
            when_clause,
            when_range,
            transition_rels: Vec::new(),
            deferrable: attributes.deferrable || attributes.initially_deferred,
            initdeferred: attributes.initially_deferred,
            constrrel,
        })))
    }

    /// `TriggerEvents`, and the columns of UPDATE OF.
    fn trigger_events(&mut self) -> Result<(Vec<TriggerEvent>, Vec<Name>)> {
        let mut columns = Vec::new();
        let mut events = vec![self.trigger_one_event(&mut columns)?];
        while self.take(K::Or) {
            let event = self.trigger_one_event(&mut columns)?;
            if events.contains(&event) {
                // Told where PostgreSQL's parser is: it has looked behind UPDATE only.
                if event != TriggerEvent::Update {
                    self.at -= 1;
                }
                return self.wrong_here("duplicate trigger events specified");
            }
            events.push(event);
        }
        Ok((events, columns))
    }

    /// `TriggerOneEvent`
    fn trigger_one_event(&mut self, columns: &mut Vec<Name>) -> Result<TriggerEvent> {
        let event = match self.kind() {
            T::Keyword(K::Insert) => TriggerEvent::Insert,
            T::Keyword(K::Delete) => TriggerEvent::Delete,
            T::Keyword(K::Truncate) => TriggerEvent::Truncate,
            T::Keyword(K::Update) => {
                self.pass();
                if self.take(K::Of) {
                    *columns = self.name_list()?;
                }
                return Ok(TriggerEvent::Update);
            }
            _ => return self.unexpected(),
        };
        self.pass();
        Ok(event)
    }

    /// `TriggerTransition`
    fn trigger_transition(&mut self) -> Result<TriggerTransition> {
        let is_new = self.take(K::New);
        if !is_new {
            self.expect(K::Old)?;
        }
        let is_table = self.take(K::Table);
        if !is_table {
            self.expect(K::Row)?;
        }
        self.take(K::As);
        let name = self.col_id()?;
        Ok(TriggerTransition {
            name,
            is_new,
            is_table,
        })
    }

    /// `TriggerWhen`
    fn trigger_when(&mut self) -> Result<Condition> {
        let is_said = self.take(K::When);
        self.opt_condition(is_said)
    }

    /// `EXECUTE FUNCTION_or_PROCEDURE func_name '(' TriggerFuncArgs ')'`
    fn execute_function(&mut self) -> Result<(crate::ast::AnyName, Vec<Name>)> {
        self.expect(K::Execute)?;
        if !self.take(K::Function) {
            self.expect(K::Procedure)?;
        }
        let function = self.func_name()?;
        self.expect_token(T::LParen)?;
        let mut args = Vec::new();
        // The first may be missing in front of a comma.
        let is_first_missing = self.take_token(T::Comma);
        if is_first_missing || !self.at(T::RParen) {
            args = self.list(Self::trigger_func_arg)?;
        }
        self.expect_token(T::RParen)?;
        Ok((function, args))
    }

    /// `TriggerFuncArg`
    fn trigger_func_arg(&mut self) -> Result<Name> {
        match self.kind() {
            T::IConst => Ok(self.iconst()?.to_string().into()),
            T::FConst => {
                let token = self.pass();
                Ok(self.name_of(token))
            }
            T::SConst => self.sconst(),
            _ => self.col_label(),
        }
    }

    /// `CreateEventTrigStmt`, behind EVENT TRIGGER.
    pub(super) fn create_event_trig_stmt(&mut self) -> Result<Stmt> {
        let trigname = self.col_id()?;
        self.expect(K::On)?;
        let eventname = self.col_label()?;
        let mut whenclause = Vec::new();
        if self.take(K::When) {
            whenclause.push(self.event_trigger_when_item()?);
            while self.take(K::And) {
                whenclause.push(self.event_trigger_when_item()?);
            }
        }
        self.expect(K::Execute)?;
        if !self.take(K::Function) {
            self.expect(K::Procedure)?;
        }
        let funcname = self.func_name()?;
        self.expect_token(T::LParen)?;
        self.expect_token(T::RParen)?;
        Ok(Stmt::CreateEventTrig(Box::new(CreateEventTrigStmt {
            trigname,
            eventname,
            whenclause,
            funcname,
        })))
    }

    /// `event_trigger_when_item`
    fn event_trigger_when_item(&mut self) -> Result<DefElem> {
        let location = self.here();
        let name = self.col_id()?;
        self.expect(K::In)?;
        let values =
            self.parens(|parser| parser.list(|parser| Ok(DefArg::String(parser.sconst()?))))?;
        Ok(option(&name, Some(DefArg::List(values)), location))
    }

    /// `enable_trigger`
    pub(super) fn enable_trigger(&mut self) -> Result<FiringMode> {
        if self.take(K::Disable) {
            return Ok(FiringMode::Disabled);
        }
        self.expect(K::Enable)?;
        Ok(if self.take(K::Replica) {
            FiringMode::Replica
        } else if self.take(K::Always) {
            FiringMode::Always
        } else {
            FiringMode::Origin
        })
    }

    /// `RuleStmt`
    pub(super) fn rule_stmt(&mut self, replace: bool) -> Result<Stmt> {
        self.pass();
        let rulename = self.col_id()?;
        self.expect_all(&[K::As, K::On])?;
        let event = match self.kind() {
            T::Keyword(K::Select) => RuleEvent::Select,
            T::Keyword(K::Insert) => RuleEvent::Insert,
            T::Keyword(K::Update) => RuleEvent::Update,
            T::Keyword(K::Delete) => RuleEvent::Delete,
            _ => return self.unexpected(),
        };
        self.pass();
        self.expect(K::To)?;
        let relation: RangeVar = self.qualified_name()?;
        let where_clause = self.where_clause()?;
        self.expect(K::Do)?;
        let instead = self.take(K::Instead);
        if !instead {
            self.take(K::Also);
        }
        let actions = self.subselect(Self::rule_action_list)?;
        Ok(Stmt::Rule(Box::new(RuleStmt {
            relation,
            rulename,
            where_clause,
            event,
            instead,
            actions,
            replace,
        })))
    }

    /// `RuleActionList`
    fn rule_action_list(&mut self) -> Result<Vec<Stmt>> {
        if self.take(K::Nothing) {
            return Ok(Vec::new());
        }
        // A query may stand in parentheses as well: then it is one action all the same.
        if !self.at(T::LParen) {
            return Ok(vec![self.rule_action_stmt()?]);
        }
        self.expect_token(T::LParen)?;
        let mut actions = Vec::new();
        loop {
            while self.take_token(T::Semicolon) {}
            if self.take_token(T::RParen) {
                return Ok(actions);
            }
            actions.push(self.nested(Self::rule_action_stmt)?);
            if !self.at(T::Semicolon) && !self.at(T::RParen) {
                return self.unexpected();
            }
        }
    }

    /// `RuleActionStmt`
    fn rule_action_stmt(&mut self) -> Result<Stmt> {
        if self.is(K::Notify) {
            return self.notify_stmt();
        }
        match self.at_preparable() && !self.is(K::Merge) {
            true => match self.preparable_stmt()? {
                Stmt::Merge(_) => self.unexpected(),
                stmt => Ok(stmt),
            },
            false => self.unexpected(),
        }
    }
}
