//! ALTER of everything that is no relation.

use super::Parser;
use super::create_table::option;
use super::object::{by_args, by_name};
use crate::ast::{
    AlterCollationStmt, AlterDomainAction, AlterDomainStmt, AlterEnumStmt, AlterEventTrigStmt,
    AlterExtensionContentsStmt, AlterExtensionStmt, AlterObjectDependsStmt, AlterObjectSchemaStmt,
    AlterOperatorStmt, AlterOwnerStmt, AlterPolicyStmt, AlterStatsStmt, AlterSystemStmt,
    AlterTableSpaceOptionsStmt, AlterTsDictionaryStmt, AlterTypeStmt, AnyName, DefArg,
    DropBehavior, Location, Name, ObjectRef, ObjectType, RenameStmt, Stmt,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

/// What may be altered of a kind of objects by the rules that many kinds share.
#[derive(Clone, Copy)]
pub(super) struct CommonChanges {
    rename: bool,
    owner: bool,
    schema: bool,
    depends: bool,
}

const RENAME_OWNER: CommonChanges = CommonChanges {
    rename: true,
    owner: true,
    schema: false,
    depends: false,
};
const RENAME_OWNER_SCHEMA: CommonChanges = CommonChanges {
    schema: true,
    ..RENAME_OWNER
};
const RENAME_SCHEMA: CommonChanges = CommonChanges {
    owner: false,
    ..RENAME_OWNER_SCHEMA
};
const OWNER_SCHEMA: CommonChanges = CommonChanges {
    rename: false,
    ..RENAME_OWNER_SCHEMA
};
const OF_ROUTINES: CommonChanges = CommonChanges {
    depends: true,
    ..RENAME_OWNER_SCHEMA
};
const RENAME_DEPENDS: CommonChanges = CommonChanges {
    owner: false,
    schema: false,
    ..OF_ROUTINES
};
const RENAME: CommonChanges = CommonChanges {
    owner: false,
    ..RENAME_OWNER
};

impl Parser<'_> {
    /// ALTER
    pub(super) fn alter(&mut self) -> Result<Stmt> {
        self.expect(K::Alter)?;
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        self.pass();
        match word {
            K::Table | K::Index | K::Sequence | K::View => self.alter_relation(word),
            K::Materialized => {
                self.expect(K::View)?;
                self.alter_relation(word)
            }
            K::Foreign => match self.take(K::Table) {
                true => self.alter_relation(word),
                false => {
                    self.expect_all(&[K::Data, K::Wrapper])?;
                    let (name, object) = self.named()?;
                    match self.common_change(ObjectType::Fdw, &object, RENAME_OWNER)? {
                        Some(stmt) => Ok(stmt),
                        None => self.alter_fdw(name),
                    }
                }
            },
            K::Type => self.alter_type(),
            K::Domain => self.alter_domain(),
            K::Function => self.alter_routine(ObjectType::Function),
            K::Procedure => self.alter_routine(ObjectType::Procedure),
            K::Routine => self.alter_routine(ObjectType::Routine),
            K::Aggregate => {
                let object = by_args(self.aggregate_with_argtypes()?);
                self.only_common_change(ObjectType::Aggregate, object, RENAME_OWNER_SCHEMA)
            }
            K::Collation => {
                let collname = self.any_name()?;
                if self.take(K::Refresh) {
                    self.expect(K::Version)?;
                    return Ok(Stmt::AlterCollation(Box::new(AlterCollationStmt {
                        collname,
                    })));
                }
                self.only_common_change(
                    ObjectType::Collation,
                    ObjectRef::Name(collname),
                    RENAME_OWNER_SCHEMA,
                )
            }
            K::Conversion => {
                let object = ObjectRef::Name(self.any_name()?);
                self.only_common_change(ObjectType::Conversion, object, RENAME_OWNER_SCHEMA)
            }
            K::Database => self.alter_database(),
            K::Role => self.alter_role(),
            K::User if self.is(K::Mapping) && self.is_at(1, K::For) => {
                self.pass();
                self.alter_user_mapping()
            }
            K::User => self.alter_role(),
            K::Group => self.alter_group(),
            K::Default => {
                self.expect(K::Privileges)?;
                self.alter_default_privileges()
            }
            K::Extension => self.alter_extension(),
            K::Event => self.alter_event_trigger(),
            K::Procedural | K::Language => {
                if word == K::Procedural {
                    self.expect(K::Language)?;
                }
                let (_, object) = self.named()?;
                self.only_common_change(ObjectType::Language, object, RENAME_OWNER)
            }
            K::Large => {
                self.expect(K::Object)?;
                let object = ObjectRef::LargeObject(self.numeric_only()?);
                let owner = CommonChanges {
                    rename: false,
                    ..RENAME_OWNER
                };
                self.only_common_change(ObjectType::LargeObject, object, owner)
            }
            K::Operator => self.alter_operator(),
            K::Policy => self.alter_policy(),
            K::Publication => {
                let (name, object) = self.named()?;
                match self.common_change(ObjectType::Publication, &object, RENAME_OWNER)? {
                    Some(stmt) => Ok(stmt),
                    None if self.is_any(&[K::Set, K::Add, K::Drop]) => self.alter_publication(name),
                    None => self.unexpected(),
                }
            }
            K::Rule => {
                let object = self.name_on_relation()?;
                self.only_common_change(ObjectType::Rule, object, RENAME)
            }
            K::Trigger => {
                let object = self.name_on_relation()?;
                self.only_common_change(ObjectType::Trigger, object, RENAME_DEPENDS)
            }
            K::Schema => {
                let (_, object) = self.named()?;
                self.only_common_change(ObjectType::Schema, object, RENAME_OWNER)
            }
            K::Server => {
                let (name, object) = self.named()?;
                match self.common_change(ObjectType::ForeignServer, &object, RENAME_OWNER)? {
                    Some(stmt) => Ok(stmt),
                    None => self.alter_foreign_server(name),
                }
            }
            K::Statistics => self.alter_statistics(),
            K::Subscription => {
                let (name, object) = self.named()?;
                let own = [
                    K::Set,
                    K::Add,
                    K::Drop,
                    K::Connection,
                    K::Refresh,
                    K::Enable,
                    K::Disable,
                    K::Skip,
                ];
                match self.common_change(ObjectType::Subscription, &object, RENAME_OWNER)? {
                    Some(stmt) => Ok(stmt),
                    None if self.is_any(&own) => self.alter_subscription(name),
                    None => self.unexpected(),
                }
            }
            K::System => self.alter_system(),
            K::Tablespace => self.alter_tablespace(),
            K::Text => self.alter_text_search(),
            _ => {
                self.at -= 1;
                self.unexpected()
            }
        }
    }

    /// `name`, and as an object.
    fn named(&mut self) -> Result<(Name, ObjectRef)> {
        let location = self.here();
        let name = self.col_id()?;
        let object = by_name(name.clone(), location);
        Ok((name, object))
    }

    /// `name ON qualified_name`
    fn name_on_relation(&mut self) -> Result<ObjectRef> {
        let name = self.col_id()?;
        self.expect(K::On)?;
        let relation = self.qualified_name()?;
        Ok(ObjectRef::OnRelation {
            name,
            relation: names_of(relation),
        })
    }

    /// RENAME TO and OWNER TO of a database.
    pub(super) fn alter_named(&mut self, kind: ObjectType, name: &Name) -> Result<Option<Stmt>> {
        let object = by_name(name.clone(), Location::UNKNOWN);
        self.common_change(kind, &object, RENAME_OWNER)
    }

    /// RENAME TO of a role.
    pub(super) fn rename_role_to(&mut self, name: Name, location: Location) -> Result<Stmt> {
        self.expect_all(&[K::Rename, K::To])?;
        let newname = self.role_id()?;
        Ok(rename(ObjectType::Role, by_name(name, location), newname))
    }

    fn only_common_change(
        &mut self,
        kind: ObjectType,
        object: ObjectRef,
        may: CommonChanges,
    ) -> Result<Stmt> {
        match self.common_change(kind, &object, may)? {
            Some(stmt) => Ok(stmt),
            None => {
                if may.schema && self.is(K::Set) || may.depends && self.is(K::No) {
                    self.pass();
                }
                self.unexpected()
            }
        }
    }

    /// RENAME TO, OWNER TO, SET SCHEMA, DEPENDS ON EXTENSION, if one of these comes next and the kind has it.
    fn common_change(
        &mut self,
        object_type: ObjectType,
        object: &ObjectRef,
        may: CommonChanges,
    ) -> Result<Option<Stmt>> {
        if may.rename && self.take(K::Rename) {
            self.expect(K::To)?;
            let newname = self.col_id()?;
            return Ok(Some(rename(object_type, object.clone(), newname)));
        }
        if may.owner && self.take(K::Owner) {
            self.expect(K::To)?;
            let newowner = self.role_spec()?;
            let object = object.clone();
            return Ok(Some(Stmt::AlterOwner(Box::new(AlterOwnerStmt {
                object_type,
                object,
                newowner,
            }))));
        }
        if may.schema && self.take_all(&[K::Set, K::Schema]) {
            return Ok(Some(self.set_schema(object_type, object.clone(), false)?));
        }
        if may.depends && (self.is(K::Depends) || self.are(&[K::No, K::Depends])) {
            return Ok(Some(
                self.depends_on_extension(object_type, object.clone())?,
            ));
        }
        Ok(None)
    }

    /// The schema behind SET SCHEMA.
    pub(super) fn set_schema(
        &mut self,
        object_type: ObjectType,
        object: ObjectRef,
        missing_ok: bool,
    ) -> Result<Stmt> {
        let newschema = self.col_id()?;
        Ok(Stmt::AlterObjectSchema(Box::new(AlterObjectSchemaStmt {
            object_type,
            object,
            newschema,
            missing_ok,
        })))
    }

    /// `opt_no DEPENDS ON EXTENSION name`
    pub(super) fn depends_on_extension(
        &mut self,
        object_type: ObjectType,
        object: ObjectRef,
    ) -> Result<Stmt> {
        let remove = self.take(K::No);
        self.expect_all(&[K::Depends, K::On, K::Extension])?;
        let extname = self.col_id()?;
        Ok(Stmt::AlterObjectDepends(Box::new(AlterObjectDependsStmt {
            object_type,
            object,
            extname,
            remove,
        })))
    }

    fn alter_routine(&mut self, kind: ObjectType) -> Result<Stmt> {
        let function = self.function_with_argtypes()?;
        // SET SCHEMA is a setting as well, with a literal.
        if self.are(&[K::Set, K::Schema]) && self.kind_at(2) == T::SConst {
            return self.alter_function(kind, function);
        }
        match self.common_change(kind, &by_args(function.clone()), OF_ROUTINES)? {
            Some(stmt) => Ok(stmt),
            None => self.alter_function(kind, function),
        }
    }

    /// ALTER TYPE, behind the word.
    fn alter_type(&mut self) -> Result<Stmt> {
        let type_name = self.any_name()?;
        let object = ObjectRef::Name(type_name.clone());
        let next = self.kind_at(1);
        match self.kind() {
            T::Keyword(K::Rename) if next == T::Keyword(K::Attribute) => {
                self.pass_all(2);
                let subname = Some(self.col_id()?);
                self.expect(K::To)?;
                let newname = self.col_id()?;
                let behavior = self.opt_drop_behavior();
                Ok(Stmt::Rename(Box::new(RenameStmt {
                    rename_type: ObjectType::Attribute,
                    relation_type: Some(ObjectType::Type),
                    object: ObjectRef::Relation(
                        self.range_var(type_name.names, type_name.location)?,
                    ),
                    subname,
                    newname,
                    behavior,
                    missing_ok: false,
                })))
            }
            T::Keyword(K::Rename) if next == T::Keyword(K::Value) => {
                self.pass_all(2);
                let old_val = Some(self.sconst()?);
                self.expect(K::To)?;
                let new_val = self.sconst()?;
                Ok(alter_enum(AlterEnumStmt {
                    old_val,
                    ..new_enum_value(type_name, new_val)
                }))
            }
            T::Keyword(K::Add) if next == T::Keyword(K::Value) => {
                self.pass_all(2);
                let skip_if_new_val_exists = self.opt_if_not_exists()?;
                let new_val = self.sconst()?;
                let new_val_is_after = self.is(K::After);
                let new_val_neighbor = match new_val_is_after || self.is(K::Before) {
                    true => {
                        self.pass();
                        Some(self.sconst()?)
                    }
                    false => None,
                };
                Ok(alter_enum(AlterEnumStmt {
                    skip_if_new_val_exists,
                    new_val_is_after: new_val_is_after || new_val_neighbor.is_none(),
                    new_val_neighbor,
                    ..new_enum_value(type_name, new_val)
                }))
            }
            T::Keyword(K::Set) if next == T::LParen => {
                self.pass();
                let options = self.operator_def_list()?;
                Ok(Stmt::AlterType(Box::new(AlterTypeStmt {
                    type_name,
                    options,
                })))
            }
            T::Keyword(K::Add | K::Drop | K::Alter) => self.alter_composite_type(type_name),
            _ => self.only_common_change(ObjectType::Type, object, RENAME_OWNER_SCHEMA),
        }
    }

    /// ALTER DOMAIN, behind the word.
    fn alter_domain(&mut self) -> Result<Stmt> {
        let type_name = self.any_name()?;
        let object = ObjectRef::Name(type_name.clone());
        let next = self.kind_at(1);
        let action = match (self.kind(), next) {
            (T::Keyword(K::Rename), T::Keyword(K::Constraint)) => {
                self.pass_all(2);
                let subname = Some(self.col_id()?);
                self.expect(K::To)?;
                let newname = self.col_id()?;
                return Ok(Stmt::Rename(Box::new(RenameStmt {
                    rename_type: ObjectType::DomConstraint,
                    relation_type: None,
                    object,
                    subname,
                    newname,
                    behavior: DropBehavior::Restrict,
                    missing_ok: false,
                })));
            }
            (T::Keyword(K::Set), T::Keyword(K::Default)) => {
                self.pass_all(2);
                AlterDomainAction::Default(Some(self.a_expr()?))
            }
            (T::Keyword(K::Set), T::Keyword(K::Not)) => {
                self.pass_all(2);
                self.expect(K::Null)?;
                AlterDomainAction::SetNotNull
            }
            (T::Keyword(K::Drop), T::Keyword(K::Default)) => {
                self.pass_all(2);
                AlterDomainAction::Default(None)
            }
            (T::Keyword(K::Drop), T::Keyword(K::Not)) => {
                self.pass_all(2);
                self.expect(K::Null)?;
                AlterDomainAction::DropNotNull
            }
            (T::Keyword(K::Drop), _) => {
                self.pass();
                self.expect(K::Constraint)?;
                let missing_ok = self.opt_if_exists_before_name();
                let name = self.col_id()?;
                let behavior = self.opt_drop_behavior();
                AlterDomainAction::DropConstraint {
                    name,
                    missing_ok,
                    behavior,
                }
            }
            (T::Keyword(K::Add), _) => {
                self.pass();
                AlterDomainAction::AddConstraint(Box::new(self.table_constraint()?))
            }
            (T::Keyword(K::Validate), _) => {
                self.pass();
                self.expect(K::Constraint)?;
                AlterDomainAction::ValidateConstraint(self.col_id()?)
            }
            _ => return self.only_common_change(ObjectType::Domain, object, RENAME_OWNER_SCHEMA),
        };
        Ok(Stmt::AlterDomain(Box::new(AlterDomainStmt {
            type_name,
            action,
        })))
    }

    /// ALTER EXTENSION, behind the word.
    fn alter_extension(&mut self) -> Result<Stmt> {
        let (extname, object) = self.named()?;
        if self.take(K::Update) {
            let mut options = Vec::new();
            loop {
                let location = self.here();
                if !self.take(K::To) {
                    break;
                }
                let version = DefArg::String(self.non_reserved_word_or_sconst()?);
                options.push(option("new_version", Some(version), location));
            }
            return Ok(Stmt::AlterExtension(Box::new(AlterExtensionStmt {
                extname,
                options,
            })));
        }
        let is_add = self.is(K::Add);
        if is_add || self.is(K::Drop) {
            self.pass();
            let (objtype, object) = self.extension_member()?;
            return Ok(Stmt::AlterExtensionContents(Box::new(
                AlterExtensionContentsStmt {
                    extname,
                    is_add,
                    objtype,
                    object,
                },
            )));
        }
        let schema = CommonChanges {
            rename: false,
            ..RENAME_SCHEMA
        };
        self.only_common_change(ObjectType::Extension, object, schema)
    }

    /// ALTER EVENT TRIGGER, behind EVENT.
    fn alter_event_trigger(&mut self) -> Result<Stmt> {
        self.expect(K::Trigger)?;
        let (trigname, object) = self.named()?;
        if self.is_any(&[K::Enable, K::Disable]) {
            let mode = self.enable_trigger()?;
            return Ok(Stmt::AlterEventTrig(Box::new(AlterEventTrigStmt {
                trigname,
                mode,
            })));
        }
        self.only_common_change(ObjectType::EventTrigger, object, RENAME_OWNER)
    }

    /// ALTER OPERATOR, behind the word.
    fn alter_operator(&mut self) -> Result<Stmt> {
        if let Some(kind) = self.operator_group() {
            let object = self.object_of_method()?;
            let ObjectRef::OfMethod { name, method } = &object else {
                return self.unexpected();
            };
            if kind == ObjectType::OpFamily && self.is_any(&[K::Add, K::Drop]) {
                return self.alter_op_family(name.clone(), method.clone());
            }
            return self.only_common_change(kind, object, RENAME_OWNER_SCHEMA);
        }
        let opername = self.operator_with_argtypes()?;
        if self.is(K::Set) && self.kind_at(1) == T::LParen {
            self.pass();
            let options = self.operator_def_list()?;
            return Ok(Stmt::AlterOperator(Box::new(AlterOperatorStmt {
                opername,
                options,
            })));
        }
        self.only_common_change(ObjectType::Operator, by_args(opername), OWNER_SCHEMA)
    }

    /// ALTER POLICY, behind the word.
    fn alter_policy(&mut self) -> Result<Stmt> {
        let missing_ok = self.opt_if_exists_before_name();
        let policy_name = self.col_id()?;
        self.expect(K::On)?;
        let table = self.qualified_name()?;
        if missing_ok || self.is(K::Rename) {
            self.expect_all(&[K::Rename, K::To])?;
            let newname = self.col_id()?;
            let object = ObjectRef::OnRelation {
                name: policy_name,
                relation: names_of(table),
            };
            let Stmt::Rename(mut stmt) = rename(ObjectType::Policy, object, newname) else {
                return self.unexpected();
            };
            stmt.missing_ok = missing_ok;
            return Ok(Stmt::Rename(stmt));
        }
        let roles = match self.take(K::To) {
            true => self.role_list()?,
            false => Vec::new(),
        };
        let ((qual, qual_range), (with_check, with_check_range)) = self.row_security_exprs()?;
        Ok(Stmt::AlterPolicy(Box::new(AlterPolicyStmt {
            policy_name,
            table,
            roles,
            qual,
            qual_range,
            with_check,
            with_check_range,
        })))
    }

    /// ALTER STATISTICS, behind the word.
    fn alter_statistics(&mut self) -> Result<Stmt> {
        let missing_ok = self.opt_if_exists_before_name();
        let defnames = self.any_name()?;
        if missing_ok || self.are(&[K::Set, K::Statistics]) {
            self.expect_all(&[K::Set, K::Statistics])?;
            let stxstattarget = self.signed_iconst()?;
            return Ok(Stmt::AlterStats(Box::new(AlterStatsStmt {
                defnames,
                stxstattarget,
                missing_ok,
            })));
        }
        self.only_common_change(
            ObjectType::StatisticExt,
            ObjectRef::Name(defnames),
            RENAME_OWNER_SCHEMA,
        )
    }

    /// `AlterSystemStmt`, behind SYSTEM.
    fn alter_system(&mut self) -> Result<Stmt> {
        let setstmt = if self.take(K::Set) {
            self.generic_set(false)?
        } else {
            self.expect(K::Reset)?;
            self.generic_reset()?
        };
        Ok(Stmt::AlterSystem(Box::new(AlterSystemStmt { setstmt })))
    }

    /// ALTER TABLESPACE, behind the word.
    fn alter_tablespace(&mut self) -> Result<Stmt> {
        let (tablespacename, object) = self.named()?;
        let is_reset = self.is(K::Reset);
        if is_reset || self.is(K::Set) {
            self.pass();
            let options = self.reloptions()?;
            return Ok(Stmt::AlterTableSpaceOptions(Box::new(
                AlterTableSpaceOptionsStmt {
                    tablespacename,
                    options,
                    is_reset,
                },
            )));
        }
        self.only_common_change(ObjectType::Tablespace, object, RENAME_OWNER)
    }

    /// ALTER TEXT SEARCH, behind TEXT.
    fn alter_text_search(&mut self) -> Result<Stmt> {
        let kind = self.text_search_kind()?;
        let name = self.any_name()?;
        let object = ObjectRef::Name(name.clone());
        let may = match kind {
            ObjectType::TsParser | ObjectType::TsTemplate => RENAME_SCHEMA,
            _ => RENAME_OWNER_SCHEMA,
        };
        match kind {
            ObjectType::TsDictionary if self.at(T::LParen) => {
                let options = self.definition()?;
                Ok(Stmt::AlterTsDictionary(Box::new(AlterTsDictionaryStmt {
                    dictname: name,
                    options,
                })))
            }
            ObjectType::TsConfiguration if self.is_any(&[K::Add, K::Alter, K::Drop]) => {
                self.alter_ts_configuration(name)
            }
            _ => self.only_common_change(kind, object, may),
        }
    }
}

/// RENAME TO of an object.
pub(super) fn rename(rename_type: ObjectType, object: ObjectRef, newname: Name) -> Stmt {
    Stmt::Rename(Box::new(RenameStmt {
        rename_type,
        relation_type: None,
        object,
        subname: None,
        newname,
        behavior: DropBehavior::Restrict,
        missing_ok: false,
    }))
}

fn alter_enum(stmt: AlterEnumStmt) -> Stmt {
    Stmt::AlterEnum(Box::new(stmt))
}

fn new_enum_value(type_name: AnyName, new_val: Name) -> AlterEnumStmt {
    AlterEnumStmt {
        type_name,
        old_val: None,
        new_val,
        new_val_neighbor: None,
        new_val_is_after: false,
        skip_if_new_val_exists: false,
    }
}

/// A relation's name as a list of names.
fn names_of(relation: crate::ast::RangeVar) -> AnyName {
    let mut names = crate::ast::Names::new();
    if let crate::ast::RelationName::Named {
        catalog,
        schema,
        name,
    } = relation.name
    {
        names.extend(catalog);
        names.extend(schema);
        names.push(name);
    }
    AnyName {
        names,
        location: relation.location,
    }
}
