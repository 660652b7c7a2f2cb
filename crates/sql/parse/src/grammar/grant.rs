//! GRANT, REVOKE, ALTER DEFAULT PRIVILEGES.

use super::Parser;
use super::create_table::option;
use super::object::{by_args, by_name};
use crate::ast::{
    AccessPriv, AlterDefaultPrivilegesStmt, AnyName, DefArg, DropBehavior, GrantRoleStmt,
    GrantStmt, GrantTarget, ObjectRef, ObjectType, RoleSpec, Stmt,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

impl Parser<'_> {
    /// GRANT
    pub(super) fn grant(&mut self) -> Result<Stmt> {
        self.expect(K::Grant)?;
        let privileges = self.privileges()?;
        let is_all = privileges.is_empty() || privileges.iter().any(|p| p.priv_name.is_none());
        if !is_all && self.take(K::To) {
            return self.grant_role(privileges);
        }
        self.grant_on(privileges)
    }

    /// GRANT among the elements of CREATE SCHEMA: of privileges only.
    pub(super) fn grant_in_schema(&mut self) -> Result<Stmt> {
        self.expect(K::Grant)?;
        let privileges = self.privileges()?;
        self.grant_on(privileges)
    }

    fn grant_on(&mut self, privileges: Vec<AccessPriv>) -> Result<Stmt> {
        self.expect(K::On)?;
        let target = self.privilege_target()?;
        self.expect(K::To)?;
        let grantees = self.grantee_list()?;
        let grant_option = self.with_option(K::Grant)?;
        let grantor = self.opt_granted_by()?;
        Ok(Stmt::Grant(Box::new(GrantStmt {
            is_grant: true,
            privileges,
            target,
            grantees,
            grant_option,
            grantor,
            behavior: DropBehavior::Restrict,
        })))
    }

    /// `GrantRoleStmt`, behind TO.
    fn grant_role(&mut self, granted_roles: Vec<AccessPriv>) -> Result<Stmt> {
        let grantee_roles = self.role_list()?;
        let admin_opt = self.with_option(K::Admin)?;
        let grantor = self.opt_granted_by()?;
        Ok(Stmt::GrantRole(Box::new(GrantRoleStmt {
            is_grant: true,
            granted_roles,
            grantee_roles,
            admin_opt,
            grantor,
            behavior: DropBehavior::Restrict,
        })))
    }

    /// `WITH GRANT OPTION`, `WITH ADMIN OPTION`
    fn with_option(&mut self, word: K) -> Result<bool> {
        if !self.take(K::With) {
            return Ok(false);
        }
        self.expect_all(&[word, K::Option])?;
        Ok(true)
    }

    /// `opt_granted_by`
    fn opt_granted_by(&mut self) -> Result<Option<RoleSpec>> {
        if !self.take(K::Granted) {
            return Ok(None);
        }
        self.expect(K::By)?;
        Ok(Some(self.role_spec()?))
    }

    /// REVOKE
    pub(super) fn revoke(&mut self) -> Result<Stmt> {
        self.expect(K::Revoke)?;
        let grant_option = self.take(K::Grant);
        // A role may be named ADMIN.
        let admin_opt = !grant_option && self.are(&[K::Admin, K::Option]);
        if admin_opt {
            self.pass();
        }
        if grant_option || admin_opt {
            self.expect_all(&[K::Option, K::For])?;
        }
        let privileges = match admin_opt {
            true => self.list(Self::privilege)?,
            false => self.privileges()?,
        };
        let is_all = privileges.is_empty() || privileges.iter().any(|p| p.priv_name.is_none());
        if admin_opt || (!is_all && !grant_option && self.is(K::From)) {
            self.expect(K::From)?;
            let grantee_roles = self.role_list()?;
            let grantor = self.opt_granted_by()?;
            let behavior = self.opt_drop_behavior();
            return Ok(Stmt::GrantRole(Box::new(GrantRoleStmt {
                is_grant: false,
                granted_roles: privileges,
                grantee_roles,
                admin_opt,
                grantor,
                behavior,
            })));
        }
        self.expect(K::On)?;
        let target = self.privilege_target()?;
        self.expect(K::From)?;
        let grantees = self.grantee_list()?;
        let grantor = self.opt_granted_by()?;
        let behavior = self.opt_drop_behavior();
        Ok(Stmt::Grant(Box::new(GrantStmt {
            is_grant: false,
            privileges,
            target,
            grantees,
            grant_option,
            grantor,
            behavior,
        })))
    }

    /// `privileges`; none for ALL.
    fn privileges(&mut self) -> Result<Vec<AccessPriv>> {
        let location = self.here();
        if !self.take(K::All) {
            return self.list(Self::privilege);
        }
        self.take(K::Privileges);
        Ok(match self.at(T::LParen) {
            true => vec![AccessPriv {
                priv_name: None,
                cols: self.opt_column_list()?,
                location,
            }],
            false => Vec::new(),
        })
    }

    /// `privilege`
    fn privilege(&mut self) -> Result<AccessPriv> {
        let location = self.here();
        if self.is(K::Alter) && self.is_at(1, K::System) {
            self.pass_all(2);
            return Ok(AccessPriv {
                priv_name: Some("alter system".into()),
                cols: Vec::new(),
                location,
            });
        }
        let name = match self.kind() {
            T::Keyword(word @ (K::Select | K::References | K::Create)) => {
                self.pass();
                word.word().into()
            }
            _ => self.col_id()?,
        };
        Ok(AccessPriv {
            priv_name: Some(name),
            cols: self.opt_column_list()?,
            location,
        })
    }

    /// `grantee_list`
    fn grantee_list(&mut self) -> Result<Vec<RoleSpec>> {
        self.list(|parser| {
            parser.take(K::Group);
            parser.role_spec()
        })
    }

    /// Names, as objects.
    fn named_objects(&mut self, kind: ObjectType) -> Result<GrantTarget> {
        let objects = self.list(|parser| {
            let location = parser.here();
            Ok(by_name(parser.col_id()?, location))
        })?;
        Ok(GrantTarget::Objects(kind, objects))
    }

    /// Relations, as objects.
    fn relation_objects(&mut self, kind: ObjectType) -> Result<GrantTarget> {
        let objects = self.list(|parser| Ok(ObjectRef::Relation(parser.qualified_name()?)))?;
        Ok(GrantTarget::Objects(kind, objects))
    }

    fn function_objects(&mut self, kind: ObjectType) -> Result<GrantTarget> {
        let objects = self.list(|parser| Ok(by_args(parser.function_with_argtypes()?)))?;
        Ok(GrantTarget::Objects(kind, objects))
    }

    fn any_name_objects(&mut self, kind: ObjectType) -> Result<GrantTarget> {
        let objects = self.list(|parser| Ok(ObjectRef::Name(parser.any_name()?)))?;
        Ok(GrantTarget::Objects(kind, objects))
    }

    /// `privilege_target`
    fn privilege_target(&mut self) -> Result<GrantTarget> {
        let T::Keyword(word) = self.kind() else {
            return self.relation_objects(ObjectType::Table);
        };
        // Tables may have these names.
        let is_name = matches!(
            self.kind_at(1),
            T::Comma | T::Dot | T::LBracket | T::Keyword(K::To | K::From) | T::End | T::Semicolon
        );
        let is_kind = !is_name
            && matches!(
                word,
                K::Sequence
                    | K::Function
                    | K::Procedure
                    | K::Routine
                    | K::Database
                    | K::Domain
                    | K::Language
                    | K::Large
                    | K::Parameter
                    | K::Schema
                    | K::Tablespace
                    | K::Type
            )
            || matches!(word, K::Table | K::Foreign | K::All);
        if !is_kind {
            return self.relation_objects(ObjectType::Table);
        }
        self.pass();
        match word {
            K::Table => self.relation_objects(ObjectType::Table),
            K::Sequence => self.relation_objects(ObjectType::Sequence),
            K::Function => self.function_objects(ObjectType::Function),
            K::Procedure => self.function_objects(ObjectType::Procedure),
            K::Routine => self.function_objects(ObjectType::Routine),
            K::Database => self.named_objects(ObjectType::Database),
            K::Language => self.named_objects(ObjectType::Language),
            K::Schema => self.named_objects(ObjectType::Schema),
            K::Tablespace => self.named_objects(ObjectType::Tablespace),
            K::Domain => self.any_name_objects(ObjectType::Domain),
            K::Type => self.any_name_objects(ObjectType::Type),
            K::Large => {
                self.expect(K::Object)?;
                let objects =
                    self.list(|parser| Ok(ObjectRef::LargeObject(parser.numeric_only()?)))?;
                Ok(GrantTarget::Objects(ObjectType::LargeObject, objects))
            }
            K::Parameter => self.parameter_objects(),
            K::Foreign => {
                if self.take(K::Server) {
                    return self.named_objects(ObjectType::ForeignServer);
                }
                self.expect_all(&[K::Data, K::Wrapper])?;
                self.named_objects(ObjectType::Fdw)
            }
            _ => self.all_in_schema(),
        }
    }

    /// `parameter_name_list`
    fn parameter_objects(&mut self) -> Result<GrantTarget> {
        let objects = self.list(|parser| {
            let location = parser.here();
            let name = parser.var_name()?;
            let names = super::primary::name_only(name);
            Ok(ObjectRef::Name(AnyName { names, location }))
        })?;
        Ok(GrantTarget::Objects(ObjectType::ParameterAcl, objects))
    }

    /// `ALL ... IN_P SCHEMA name_list`, behind ALL.
    fn all_in_schema(&mut self) -> Result<GrantTarget> {
        let kind = match self.kind() {
            T::Keyword(K::Tables) => ObjectType::Table,
            T::Keyword(K::Sequences) => ObjectType::Sequence,
            T::Keyword(K::Functions) => ObjectType::Function,
            T::Keyword(K::Procedures) => ObjectType::Procedure,
            T::Keyword(K::Routines) => ObjectType::Routine,
            _ => return self.unexpected(),
        };
        self.pass();
        self.expect_all(&[K::In, K::Schema])?;
        Ok(GrantTarget::AllInSchema(kind, self.name_list()?))
    }

    /// `AlterDefaultPrivilegesStmt`, behind these words.
    pub(super) fn alter_default_privileges(&mut self) -> Result<Stmt> {
        let mut options = Vec::new();
        loop {
            let location = self.here();
            if self.take(K::In) {
                self.expect(K::Schema)?;
                let schemas = self.name_list()?.into_iter().map(DefArg::String).collect();
                options.push(option("schemas", Some(DefArg::List(schemas)), location));
            } else if self.take(K::For) {
                if !self.take(K::Role) {
                    self.expect(K::User)?;
                }
                let roles = self.role_list()?;
                options.push(option("roles", Some(DefArg::Roles(roles)), location));
            } else {
                break;
            }
        }
        let action = Box::new(self.def_acl_action()?);
        Ok(Stmt::AlterDefaultPrivileges(Box::new(
            AlterDefaultPrivilegesStmt { options, action },
        )))
    }

    /// `DefACLAction`
    fn def_acl_action(&mut self) -> Result<GrantStmt> {
        let is_grant = self.take(K::Grant);
        let mut grant_option = false;
        if !is_grant {
            self.expect(K::Revoke)?;
            grant_option = self.take(K::Grant);
            if grant_option {
                self.expect_all(&[K::Option, K::For])?;
            }
        }
        let privileges = self.privileges()?;
        self.expect(K::On)?;
        // `defacl_privilege_target`
        let kind = match self.kind() {
            T::Keyword(K::Tables) => ObjectType::Table,
            T::Keyword(K::Functions | K::Routines) => ObjectType::Function,
            T::Keyword(K::Sequences) => ObjectType::Sequence,
            T::Keyword(K::Types) => ObjectType::Type,
            T::Keyword(K::Schemas) => ObjectType::Schema,
            _ => return self.unexpected(),
        };
        self.pass();
        self.expect(if is_grant { K::To } else { K::From })?;
        let grantees = self.grantee_list()?;
        let mut behavior = DropBehavior::Restrict;
        match is_grant {
            true => grant_option = self.with_option(K::Grant)?,
            false => behavior = self.opt_drop_behavior(),
        }
        Ok(GrantStmt {
            is_grant,
            privileges,
            target: GrantTarget::Defaults(kind),
            grantees,
            grant_option,
            grantor: None,
            behavior,
        })
    }
}
