//! CREATE and ALTER of types, operators, text search, foreign data, publications, subscriptions, languages, casts.

#![allow(missing_docs, reason = "the fields of `parsenodes.h`")]

use super::{
    AnyName, ColumnDefinition, DefElem, Expr, Name, ObjectType, ObjectWithArgs, OperatorName,
    RangeVar, RoleSpec, TextRange, TypeName,
};
use crate::definition::PolicyCommand;

/// What CREATE defines by a list of options (`DefineStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct DefineStmt {
    pub kind: ObjectType,
    pub defnames: AnyName,
    /// Of an operator.
    pub operator: Option<OperatorName>,
    /// Of an aggregate in the form with arguments.
    pub aggregate: Option<ObjectWithArgs>,
    pub definition: Vec<DefElem>,
    /// COLLATION ... FROM
    pub from: Option<AnyName>,
    pub if_not_exists: bool,
    pub replace: bool,
    /// CREATE TYPE of a name alone.
    pub is_shell: bool,
}

/// CREATE TYPE AS (...) (`CompositeTypeStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CompositeTypeStmt {
    pub typevar: RangeVar,
    pub coldeflist: Vec<ColumnDefinition>,
}

/// CREATE TYPE AS ENUM (`CreateEnumStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateEnumStmt {
    pub type_name: AnyName,
    pub vals: Vec<Name>,
}

/// CREATE TYPE AS RANGE (`CreateRangeStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRangeStmt {
    pub type_name: AnyName,
    pub params: Vec<DefElem>,
}

/// ALTER TYPE ... VALUE (`AlterEnumStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterEnumStmt {
    pub type_name: AnyName,
    /// RENAME VALUE
    pub old_val: Option<Name>,
    pub new_val: Name,
    pub new_val_neighbor: Option<Name>,
    pub new_val_is_after: bool,
    pub skip_if_new_val_exists: bool,
}

/// ALTER TYPE ... SET (`AlterTypeStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTypeStmt {
    pub type_name: AnyName,
    pub options: Vec<DefElem>,
}

/// ALTER OPERATOR ... SET (`AlterOperatorStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterOperatorStmt {
    pub opername: ObjectWithArgs,
    pub options: Vec<DefElem>,
}

/// ALTER COLLATION ... REFRESH VERSION (`AlterCollationStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterCollationStmt {
    pub collname: AnyName,
}

/// An item of an operator class (`CreateOpClassItem`).
#[derive(Clone, Debug, PartialEq)]
pub enum OpClassItem {
    Operator {
        number: i32,
        name: ObjectWithArgs,
        order_family: Option<AnyName>,
    },
    Function {
        number: i32,
        class_args: Vec<TypeName>,
        name: ObjectWithArgs,
    },
    Storage(TypeName),
}

/// CREATE OPERATOR CLASS (`CreateOpClassStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateOpClassStmt {
    pub opclassname: AnyName,
    pub opfamilyname: Option<AnyName>,
    pub amname: Name,
    pub datatype: TypeName,
    pub items: Vec<OpClassItem>,
    pub is_default: bool,
}

/// CREATE OPERATOR FAMILY (`CreateOpFamilyStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateOpFamilyStmt {
    pub opfamilyname: AnyName,
    pub amname: Name,
}

/// What ALTER OPERATOR FAMILY does.
#[derive(Clone, Debug, PartialEq)]
pub enum OpFamilyChange {
    Add(Vec<OpClassItem>),
    /// Operators (or functions) by number and types.
    Drop(Vec<(bool, i32, Vec<TypeName>)>),
}

/// ALTER OPERATOR FAMILY (`AlterOpFamilyStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterOpFamilyStmt {
    pub opfamilyname: AnyName,
    pub amname: Name,
    pub change: OpFamilyChange,
}

/// How a cast is made.
#[derive(Clone, Debug, PartialEq)]
pub enum CastMethod {
    Function(ObjectWithArgs),
    WithoutFunction,
    InOut,
}

/// When a cast is made (`CoercionContext`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastContext {
    Implicit,
    Assignment,
    Explicit,
}

/// CREATE CAST (`CreateCastStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateCastStmt {
    pub sourcetype: TypeName,
    pub targettype: TypeName,
    pub method: CastMethod,
    pub context: CastContext,
}

/// CREATE TRANSFORM (`CreateTransformStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTransformStmt {
    pub replace: bool,
    pub type_name: TypeName,
    pub lang: Name,
    pub fromsql: Option<ObjectWithArgs>,
    pub tosql: Option<ObjectWithArgs>,
}

/// CREATE CONVERSION (`CreateConversionStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateConversionStmt {
    pub conversion_name: AnyName,
    pub for_encoding_name: Name,
    pub to_encoding_name: Name,
    pub func_name: AnyName,
    pub def: bool,
}

/// CREATE LANGUAGE (`CreatePLangStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreatePLangStmt {
    pub replace: bool,
    pub plname: Name,
    pub handler: Option<AnyName>,
    pub inline: Option<AnyName>,
    pub validator: Option<AnyName>,
    pub trusted: bool,
}

/// CREATE ACCESS METHOD (`CreateAmStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateAmStmt {
    pub amname: Name,
    pub handler_name: AnyName,
    pub is_index: bool,
}

/// CREATE TABLESPACE (`CreateTableSpaceStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableSpaceStmt {
    pub tablespacename: Name,
    pub owner: Option<RoleSpec>,
    pub location: Name,
    pub options: Vec<DefElem>,
}

/// ALTER TABLESPACE (`AlterTableSpaceOptionsStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTableSpaceOptionsStmt {
    pub tablespacename: Name,
    pub options: Vec<DefElem>,
    pub is_reset: bool,
}

/// CREATE, ALTER FOREIGN DATA WRAPPER (`CreateFdwStmt`, `AlterFdwStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct FdwStmt {
    pub is_alter: bool,
    pub fdwname: Name,
    /// HANDLER, VALIDATOR; without a value for NO.
    pub func_options: Vec<DefElem>,
    pub options: Vec<DefElem>,
}

/// CREATE SERVER (`CreateForeignServerStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateForeignServerStmt {
    pub servername: Name,
    pub servertype: Option<Name>,
    pub version: Option<Name>,
    pub fdwname: Name,
    pub if_not_exists: bool,
    pub options: Vec<DefElem>,
}

/// ALTER SERVER (`AlterForeignServerStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterForeignServerStmt {
    pub servername: Name,
    /// VERSION, if one is said: none for NULL.
    pub version: Option<Option<Name>>,
    pub options: Vec<DefElem>,
}

/// What IMPORT FOREIGN SCHEMA takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportForeignSchemaType {
    All,
    LimitTo,
    Except,
}

/// IMPORT FOREIGN SCHEMA (`ImportForeignSchemaStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct ImportForeignSchemaStmt {
    pub server_name: Name,
    pub remote_schema: Name,
    pub local_schema: Name,
    pub list_type: ImportForeignSchemaType,
    pub table_list: Vec<RangeVar>,
    pub options: Vec<DefElem>,
}

/// What is done to a user mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserMappingAction {
    Create { if_not_exists: bool },
    Alter,
    Drop { missing_ok: bool },
}

/// CREATE, ALTER, DROP USER MAPPING (`CreateUserMappingStmt` and its like).
#[derive(Clone, Debug, PartialEq)]
pub struct UserMappingStmt {
    pub action: UserMappingAction,
    pub user: RoleSpec,
    pub servername: Name,
    pub options: Vec<DefElem>,
}

/// What a publication is of (`PublicationObjSpec`).
#[derive(Clone, Debug, PartialEq)]
pub enum PublicationObject {
    Table {
        relation: RangeVar,
        columns: Vec<Name>,
        where_clause: Option<Expr>,
    },
    TablesInSchema(Name),
    TablesInCurrentSchema,
}

/// CREATE PUBLICATION (`CreatePublicationStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreatePublicationStmt {
    pub pubname: Name,
    pub options: Vec<DefElem>,
    pub pubobjects: Vec<PublicationObject>,
    pub for_all_tables: bool,
}

/// What ALTER PUBLICATION does.
#[derive(Clone, Debug, PartialEq)]
pub enum PublicationChange {
    Options(Vec<DefElem>),
    Add(Vec<PublicationObject>),
    Set(Vec<PublicationObject>),
    Drop(Vec<PublicationObject>),
}

/// ALTER PUBLICATION (`AlterPublicationStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterPublicationStmt {
    pub pubname: Name,
    pub change: PublicationChange,
}

/// CREATE SUBSCRIPTION (`CreateSubscriptionStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSubscriptionStmt {
    pub subname: Name,
    pub conninfo: Name,
    pub publication: Vec<Name>,
    pub options: Vec<DefElem>,
}

/// What ALTER SUBSCRIPTION does (`AlterSubscriptionType`).
#[derive(Clone, Debug, PartialEq)]
pub enum SubscriptionChange {
    Options,
    Connection(Name),
    Refresh,
    AddPublication(Vec<Name>),
    DropPublication(Vec<Name>),
    SetPublication(Vec<Name>),
    Enable(bool),
    Skip,
}

/// ALTER SUBSCRIPTION (`AlterSubscriptionStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterSubscriptionStmt {
    pub subname: Name,
    pub change: SubscriptionChange,
    pub options: Vec<DefElem>,
}

/// ALTER TEXT SEARCH DICTIONARY (`AlterTSDictionaryStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTsDictionaryStmt {
    pub dictname: AnyName,
    pub options: Vec<DefElem>,
}

/// What ALTER TEXT SEARCH CONFIGURATION does (`AlterTSConfigType`).
#[derive(Clone, Debug, PartialEq)]
pub enum TsConfigChange {
    AddMapping {
        tokentype: Vec<Name>,
        dicts: Vec<AnyName>,
    },
    AlterMapping {
        tokentype: Vec<Name>,
        dicts: Vec<AnyName>,
    },
    /// Of all tokens, if none is named.
    ReplaceDict {
        tokentype: Vec<Name>,
        old: AnyName,
        new: AnyName,
    },
    DropMapping {
        tokentype: Vec<Name>,
        missing_ok: bool,
    },
}

/// ALTER TEXT SEARCH CONFIGURATION (`AlterTSConfigurationStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTsConfigurationStmt {
    pub cfgname: AnyName,
    pub change: TsConfigChange,
}

/// CREATE POLICY (`CreatePolicyStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreatePolicyStmt {
    pub policy_name: Name,
    pub table: RangeVar,
    pub command: PolicyCommand,
    pub permissive: bool,
    pub roles: Vec<RoleSpec>,
    /// USING, and where its condition is.
    pub qual: Option<Expr>,
    pub qual_range: TextRange,
    /// WITH CHECK, and where its condition is.
    pub with_check: Option<Expr>,
    pub with_check_range: TextRange,
}

/// ALTER POLICY (`AlterPolicyStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterPolicyStmt {
    pub policy_name: Name,
    pub table: RangeVar,
    /// TO, if it is said.
    pub roles: Vec<RoleSpec>,
    /// USING, and where its condition is.
    pub qual: Option<Expr>,
    pub qual_range: TextRange,
    /// WITH CHECK, and where its condition is.
    pub with_check: Option<Expr>,
    pub with_check_range: TextRange,
}
