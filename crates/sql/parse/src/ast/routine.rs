//! Functions, procedures, triggers, rules.

#![allow(missing_docs, reason = "the fields of `parsenodes.h`")]

use super::{
    AnyName, Constraint, DefElem, Expr, Location, Name, ObjectType, ObjectWithArgs, RangeVar, Stmt,
    TypeName,
};
use crate::definition::{TriggerEvent, TriggerTime};

/// How a parameter is used (`FunctionParameterMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionParameterMode {
    /// IN, said.
    In,
    Out,
    InOut,
    Variadic,
    /// A column of RETURNS TABLE.
    Table,
    /// IN, not said.
    Default,
}

/// A parameter (`FunctionParameter`).
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionParameter {
    pub name: Option<Name>,
    pub arg_type: TypeName,
    pub mode: FunctionParameterMode,
    pub defexpr: Option<Expr>,
    pub location: Location,
}

/// The body of a function in SQL that is no text.
#[derive(Clone, Debug, PartialEq)]
pub enum RoutineBody {
    /// RETURN
    Return(Box<Expr>),
    /// BEGIN ATOMIC, with where each statement begins and ends.
    Atomic(Vec<AtomicStmt>),
}

/// A statement of BEGIN ATOMIC.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomicStmt {
    pub stmt: Stmt,
    pub start: usize,
    pub end: usize,
}

/// CREATE FUNCTION, CREATE PROCEDURE (`CreateFunctionStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateFunctionStmt {
    pub is_procedure: bool,
    pub replace: bool,
    pub funcname: AnyName,
    /// Parameters, the columns of RETURNS TABLE among them.
    pub parameters: Vec<FunctionParameter>,
    /// RETURNS
    pub return_type: Option<TypeName>,
    /// RETURNS TABLE
    pub returns_table: bool,
    pub options: Vec<DefElem>,
    pub sql_body: Option<RoutineBody>,
    /// Where that body begins and ends.
    pub sql_body_range: Option<(usize, usize)>,
}

/// ALTER FUNCTION and its like (`AlterFunctionStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterFunctionStmt {
    pub objtype: ObjectType,
    pub func: ObjectWithArgs,
    pub actions: Vec<DefElem>,
}

/// DO (`DoStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct DoStmt {
    /// The text (`as`) and the language, in the order in which they are said.
    pub args: Vec<DefElem>,
}

/// CALL (`CallStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CallStmt {
    pub funccall: super::FuncCall,
}

/// RETURN of a function's body (`ReturnStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct ReturnStmt {
    pub returnval: Expr,
}

/// REFERENCING (`TriggerTransition`).
#[derive(Clone, Debug, PartialEq)]
pub struct TriggerTransition {
    pub name: Name,
    pub is_new: bool,
    pub is_table: bool,
}

/// CREATE TRIGGER (`CreateTrigStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTrigStmt {
    pub replace: bool,
    pub isconstraint: bool,
    pub trigname: Name,
    pub relation: RangeVar,
    pub funcname: AnyName,
    pub args: Vec<Name>,
    /// FOR EACH ROW
    pub row: bool,
    pub timing: TriggerTime,
    pub events: Vec<TriggerEvent>,
    /// Of UPDATE OF.
    pub columns: Vec<Name>,
    pub when_clause: Option<Expr>,
    /// Where the condition of WHEN is.
    pub when_range: super::TextRange,
    pub transition_rels: Vec<TriggerTransition>,
    pub deferrable: bool,
    pub initdeferred: bool,
    /// FROM of a constraint trigger.
    pub constrrel: Option<RangeVar>,
}

/// CREATE EVENT TRIGGER (`CreateEventTrigStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateEventTrigStmt {
    pub trigname: Name,
    pub eventname: Name,
    pub whenclause: Vec<DefElem>,
    pub funcname: AnyName,
}

/// ALTER EVENT TRIGGER ENABLE, DISABLE (`AlterEventTrigStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterEventTrigStmt {
    pub trigname: Name,
    pub mode: super::FiringMode,
}

/// What a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleEvent {
    Select,
    Insert,
    Update,
    Delete,
}

/// CREATE RULE (`RuleStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct RuleStmt {
    pub relation: RangeVar,
    pub rulename: Name,
    pub where_clause: Option<Expr>,
    pub event: RuleEvent,
    pub instead: bool,
    pub actions: Vec<Stmt>,
    pub replace: bool,
}

/// CREATE DOMAIN (`CreateDomainStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateDomainStmt {
    pub domainname: AnyName,
    pub type_name: TypeName,
    pub coll_clause: Option<super::CollationName>,
    pub constraints: Vec<Constraint>,
}

/// A change to a domain.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterDomainAction {
    Default(Option<Expr>),
    DropNotNull,
    SetNotNull,
    AddConstraint(Box<Constraint>),
    DropConstraint {
        name: Name,
        missing_ok: bool,
        behavior: super::DropBehavior,
    },
    ValidateConstraint(Name),
}

/// ALTER DOMAIN (`AlterDomainStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterDomainStmt {
    pub type_name: AnyName,
    pub action: AlterDomainAction,
}
