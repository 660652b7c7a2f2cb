//! CREATE, ALTER and DROP TRIGGER, and COMMENT ON TRIGGER.
//!
//! Of the condition the text is what is stored (`catalog::trigger`).

use super::Timing;
use super::policies::PolicyClause;
use super::{TriggerEvent, TriggerTime};
use crate::lowered as ast;

/// A statement about triggers.
#[derive(Clone, Debug)]
pub struct TriggerStatement {
    /// The trigger.
    pub name: String,
    /// Its table or view.
    pub table: ast::ObjectName,
    /// What becomes of it.
    pub action: TriggerAction,
}

/// What a statement does with a trigger.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TriggerAction {
    Create(Box<NewTrigger>),
    Rename(String),
    Drop {
        if_exists: bool,
    },
    /// COMMENT ON; none removes it.
    Comment(Option<String>),
}

/// CREATE TRIGGER.
#[derive(Clone, Debug)]
pub struct NewTrigger {
    /// OR REPLACE.
    pub or_replace: bool,
    /// When it fires.
    pub time: TriggerTime,
    /// What makes it fire.
    pub events: Vec<TriggerEvent>,
    /// UPDATE OF.
    pub columns: Vec<String>,
    /// FOR EACH ROW.
    pub row: bool,
    /// WHEN.
    pub when: Option<PolicyClause>,
    /// What it calls.
    pub function: ast::ObjectName,
    /// With what.
    pub args: Vec<String>,
    /// CONSTRAINT: when it fires, and FROM.
    pub constraint: Option<(Timing, Option<ast::ObjectName>)>,
    /// REFERENCING.
    pub transitions: Vec<Transition>,
}

/// What REFERENCING names.
#[derive(Clone, Debug)]
pub struct Transition {
    /// NEW rather than OLD.
    pub new: bool,
    /// TABLE rather than ROW.
    pub table: bool,
    /// Its name.
    pub name: String,
}

impl TriggerStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self.action {
            TriggerAction::Create(_) => "CREATE TRIGGER",
            TriggerAction::Rename(_) => "ALTER TRIGGER",
            TriggerAction::Drop { .. } => "DROP TRIGGER",
            TriggerAction::Comment(_) => "COMMENT",
        }
    }
}
