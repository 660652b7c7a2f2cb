//! Statements that are the same for many kinds of objects: DROP, COMMENT, RENAME, owners, schemas, labels.

#![allow(missing_docs, reason = "the fields of `parsenodes.h`")]

use super::{
    AnyName, DefElem, DropBehavior, FunctionParameter, Name, OperatorName, RangeVar, RoleSpec,
    TypeName, Value,
};

/// Kinds of objects (`ObjectType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectType {
    AccessMethod,
    Aggregate,
    Attribute,
    Cast,
    Column,
    Collation,
    Conversion,
    Database,
    Domain,
    DomConstraint,
    EventTrigger,
    Extension,
    Fdw,
    ForeignServer,
    ForeignTable,
    Function,
    Index,
    Language,
    LargeObject,
    MatView,
    OpClass,
    Operator,
    OpFamily,
    ParameterAcl,
    Policy,
    Procedure,
    Publication,
    Role,
    Routine,
    Rule,
    Schema,
    Sequence,
    Subscription,
    StatisticExt,
    TabConstraint,
    Table,
    Tablespace,
    Transform,
    Trigger,
    TsConfiguration,
    TsDictionary,
    TsParser,
    TsTemplate,
    Type,
    View,
}

/// A function, an aggregate or an operator with the types of its arguments (`ObjectWithArgs`).
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectWithArgs {
    pub objname: AnyName,
    /// The types of what goes in; of an operator none for NONE. Absent if there are no parentheses.
    pub objargs: Option<Vec<Option<TypeName>>>,
    /// All parameters, as they are written.
    pub objfuncargs: Vec<FunctionParameter>,
    /// Of an aggregate, how many of its arguments are direct; none if it has no ORDER BY.
    pub direct_args: Option<usize>,
    /// Of an operator.
    pub operator: Option<OperatorName>,
}

/// Which object a statement names: what PostgreSQL keeps as a `Node *` whose kind goes by the [`ObjectType`].
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectRef {
    /// By a name.
    Name(AnyName),
    /// By a relation's name.
    Relation(RangeVar),
    /// By name and arguments.
    WithArgs(Box<ObjectWithArgs>),
    /// A type.
    Type(Box<TypeName>),
    /// A trigger, a policy, a rule, a constraint of a relation or a domain.
    OnRelation {
        name: Name,
        relation: AnyName,
    },
    Cast {
        source: Box<TypeName>,
        target: Box<TypeName>,
    },
    Transform {
        type_name: Box<TypeName>,
        lang: Name,
    },
    /// An operator class or family of an access method.
    OfMethod {
        name: AnyName,
        method: Name,
    },
    LargeObject(Value),
    Role(RoleSpec),
}

/// DROP (`DropStmt`), also of functions, operators, casts and the rest that has statements of its own in the grammar.
#[derive(Clone, Debug, PartialEq)]
pub struct DropStmt {
    pub remove_type: ObjectType,
    pub objects: Vec<ObjectRef>,
    pub missing_ok: bool,
    pub behavior: DropBehavior,
    pub concurrent: bool,
}

/// COMMENT ON (`CommentStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CommentStmt {
    pub objtype: ObjectType,
    pub object: ObjectRef,
    pub comment: Option<Name>,
}

/// SECURITY LABEL (`SecLabelStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct SecLabelStmt {
    pub objtype: ObjectType,
    pub object: ObjectRef,
    pub provider: Option<Name>,
    pub label: Option<Name>,
}

/// RENAME (`RenameStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct RenameStmt {
    pub rename_type: ObjectType,
    /// Of a column, the kind of its relation.
    pub relation_type: Option<ObjectType>,
    pub object: ObjectRef,
    /// A column, an attribute or a constraint of it.
    pub subname: Option<Name>,
    pub newname: Name,
    pub behavior: DropBehavior,
    pub missing_ok: bool,
}

/// SET SCHEMA (`AlterObjectSchemaStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterObjectSchemaStmt {
    pub object_type: ObjectType,
    pub object: ObjectRef,
    pub newschema: Name,
    pub missing_ok: bool,
}

/// `[NO]` DEPENDS ON EXTENSION (`AlterObjectDependsStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterObjectDependsStmt {
    pub object_type: ObjectType,
    pub object: ObjectRef,
    pub extname: Name,
    pub remove: bool,
}

/// OWNER TO of what is no relation (`AlterOwnerStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterOwnerStmt {
    pub object_type: ObjectType,
    pub object: ObjectRef,
    pub newowner: RoleSpec,
}

/// CREATE EXTENSION (`CreateExtensionStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateExtensionStmt {
    pub extname: Name,
    pub if_not_exists: bool,
    pub options: Vec<DefElem>,
}

/// ALTER EXTENSION UPDATE (`AlterExtensionStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterExtensionStmt {
    pub extname: Name,
    pub options: Vec<DefElem>,
}

/// ALTER EXTENSION ADD, DROP (`AlterExtensionContentsStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterExtensionContentsStmt {
    pub extname: Name,
    pub is_add: bool,
    pub objtype: ObjectType,
    pub object: ObjectRef,
}

/// CREATE SCHEMA (`CreateSchemaStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSchemaStmt {
    pub schemaname: Option<Name>,
    pub authrole: Option<RoleSpec>,
    /// What is made in it, each with where it stands.
    pub schema_elts: Vec<(super::Stmt, super::TextRange)>,
    pub if_not_exists: bool,
}
