//! CREATE SCHEMA, TRUNCATE, triggers and policies.

use super::role::role_name;
use super::table::ddl;
use super::{Lower, Lowered};
use crate::ast::{
    AlterPolicyStmt, CreatePolicyStmt, CreateSchemaStmt, CreateTrigStmt, DropBehavior, Expr,
    Location, PolicyCommand as Command, RangeVar, RoleSpec, RoleSpecKind, Stmt, TextRange,
    TriggerEvent as Event, TriggerTiming, TruncateStmt,
};
use crate::definition::{Timing, TriggerEvent, TriggerTime};
use crate::depth::Tree;
use crate::lowered as library;
use crate::policies::{PolicyAction, PolicyClause, PolicyCommand, PolicyStatement};
use crate::triggers::{NewTrigger, Transition, TriggerAction, TriggerStatement};
use crate::{Parsed, StatementKind};
use logstead_sql_types::error::{Result, SqlError};
use std::sync::Arc;

/// The order in which the parts of CREATE SCHEMA are done, whatever the order in which they stand: each may need those
/// before it (`transformCreateSchemaStmt`).
fn rank(element: &Stmt) -> u8 {
    match element {
        Stmt::CreateSeq(_) => 0,
        Stmt::Create(_) => 1,
        Stmt::View(_) => 2,
        Stmt::Index(_) => 3,
        Stmt::CreateTrig(_) => 4,
        _ => 5,
    }
}

impl Lower<'_> {
    pub(super) fn create_schema(&self, create: &CreateSchemaStmt) -> Result<Lowered> {
        let name = create.schemaname.as_ref();
        let name = name.map(|name| self.ident(name, Location::UNKNOWN));
        let name = name.map(|name| library::ObjectName::from(vec![name]));
        let role = create.authrole.as_ref().map(|role| self.role_ident(role));
        let schema_name = match (name, role) {
            (Some(name), None) => library::SchemaName::Simple(name),
            (Some(name), Some(role)) => library::SchemaName::NamedAuthorization(name, role),
            (None, Some(role)) => library::SchemaName::UnnamedAuthorization(role),
            (None, None) => return Err(SqlError::internal("CREATE SCHEMA without a name")),
        };
        let statement = library::Statement::CreateSchema {
            schema_name,
            if_not_exists: create.if_not_exists,
        };
        let lowered = ddl(statement, "CREATE SCHEMA");
        if create.schema_elts.is_empty() {
            return Ok(lowered);
        }
        let mut elements = Vec::with_capacity(create.schema_elts.len());
        for (element, range) in &create.schema_elts {
            elements.push((rank(element), self.schema_element(element, *range)?));
        }
        elements.sort_by_key(|(rank, _)| *rank);
        let elements = elements.into_iter().map(|(_, parsed)| parsed).collect();
        Ok(Lowered {
            kind: StatementKind::SchemaElements(Arc::new(elements)),
            ..lowered
        })
    }

    /// What is made in a schema, as a statement of its own.
    fn schema_element(&self, element: &Stmt, range: TextRange) -> Result<Parsed> {
        let lowered = self.statement(element)?;
        let (start, end) = range.bytes().unwrap_or_default();
        Ok(Parsed {
            statement: Arc::new(Tree::from(lowered.statement)),
            start,
            end,
            kind: lowered.kind,
            as_of: lowered.as_of,
        })
    }

    /// A role as a name: those that are words are without quotes.
    fn role_ident(&self, role: &RoleSpec) -> library::Ident {
        let word = match &role.kind {
            RoleSpecKind::Named(name) => return self.ident(name, role.location),
            RoleSpecKind::CurrentRole => "current_role",
            RoleSpecKind::CurrentUser => "current_user",
            RoleSpecKind::SessionUser => "session_user",
            RoleSpecKind::Public => "public",
        };
        library::Ident {
            value: word.to_owned(),
            quote_style: None,
            span: self.span(role.location),
        }
    }

    pub(super) fn truncate(&self, truncate: &TruncateStmt) -> Lowered {
        let names = truncate.relations.iter();
        let statement = library::Statement::Truncate(library::Truncate {
            table_names: names.map(|name| self.relation_name(name)).collect(),
            restart_identity: truncate.restart_seqs,
            cascade: truncate.behavior == DropBehavior::Cascade,
        });
        ddl(statement, "TRUNCATE TABLE")
    }

    /// A condition in parentheses, with the text that is kept of it.
    fn policy_condition(
        &self,
        expr: Option<&Expr>,
        range: TextRange,
    ) -> Result<Option<PolicyClause>> {
        let Some(expr) = expr else {
            return Ok(None);
        };
        let range = range.bytes();
        Ok(Some(PolicyClause {
            expr: library::Expr::Nested(Box::new(self.expr(expr)?)),
            range: range.ok_or_else(|| SqlError::internal("a condition that stands nowhere"))?,
        }))
    }

    pub(super) fn create_policy(&self, create: &CreatePolicyStmt) -> Result<Lowered> {
        let using = self.policy_condition(create.qual.as_ref(), create.qual_range)?;
        let check = create.with_check.as_ref();
        let check = self.policy_condition(check, create.with_check_range)?;
        let action = PolicyAction::Create {
            permissive: create.permissive,
            command: match create.command {
                Command::All => PolicyCommand::All,
                Command::Select => PolicyCommand::Select,
                Command::Insert => PolicyCommand::Insert,
                Command::Update => PolicyCommand::Update,
                Command::Delete => PolicyCommand::Delete,
            },
            roles: create.roles.iter().map(role_name).collect(),
            using,
            check,
        };
        Ok(self.policy(&create.policy_name, &create.table, action))
    }

    pub(super) fn alter_policy(&self, alter: &AlterPolicyStmt) -> Result<Lowered> {
        let using = self.policy_condition(alter.qual.as_ref(), alter.qual_range)?;
        let check = alter.with_check.as_ref();
        let check = self.policy_condition(check, alter.with_check_range)?;
        let roles: Vec<_> = alter.roles.iter().map(role_name).collect();
        let action = PolicyAction::Alter {
            roles: (!roles.is_empty()).then_some(roles),
            using,
            check,
        };
        Ok(self.policy(&alter.policy_name, &alter.table, action))
    }

    fn policy(&self, name: &str, table: &RangeVar, action: PolicyAction) -> Lowered {
        let statement = PolicyStatement {
            name: name.to_owned(),
            table: self.relation_name(table),
            action,
        };
        Lowered::command(StatementKind::Policy(Box::new(statement)))
    }

    pub(super) fn create_trigger(&self, create: &CreateTrigStmt) -> Result<Lowered> {
        let mut columns = Vec::new();
        let mut events = Vec::with_capacity(create.events.len());
        for event in &create.events {
            events.push(match event {
                Event::Insert => TriggerEvent::Insert,
                Event::Delete => TriggerEvent::Delete,
                Event::Update(of) => {
                    columns.extend(of.iter().map(|name| name.to_string()));
                    TriggerEvent::Update
                }
                Event::Truncate => TriggerEvent::Truncate,
            });
        }
        let timing = match (create.deferrable, create.initdeferred) {
            (_, true) => Timing::Deferred,
            (true, false) => Timing::Deferrable,
            (false, false) => Timing::Immediate,
        };
        let from = create
            .constrrel
            .as_ref()
            .map(|from| self.relation_name(from));
        let transitions = create.transition_rels.iter().map(|named| Transition {
            new: named.is_new,
            table: named.is_table,
            name: named.name.to_string(),
        });
        let trigger = NewTrigger {
            or_replace: create.replace,
            time: match create.timing {
                TriggerTiming::Before => TriggerTime::Before,
                TriggerTiming::After => TriggerTime::After,
                TriggerTiming::InsteadOf => TriggerTime::InsteadOf,
            },
            events,
            columns,
            row: create.row,
            when: self.policy_condition(create.when_clause.as_ref(), create.when_range)?,
            function: self.object_name(&create.funcname.names, create.funcname.location),
            args: create.args.iter().map(|arg| arg.to_string()).collect(),
            constraint: create.isconstraint.then_some((timing, from)),
            transitions: transitions.collect(),
        };
        let statement = TriggerStatement {
            name: create.trigname.to_string(),
            table: self.relation_name(&create.relation),
            action: TriggerAction::Create(Box::new(trigger)),
        };
        let kind = StatementKind::Trigger(Box::new(statement));
        Ok(Lowered::command(kind))
    }
}
