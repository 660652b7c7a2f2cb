//! Foreign data, publications, subscriptions.

use super::Parser;
use super::create_table::{empty_table, option};
use super::names::is_col_id;
use crate::ast::{
    AlterForeignServerStmt, AlterPublicationStmt, AlterSubscriptionStmt, CreateForeignServerStmt,
    CreatePublicationStmt, CreateSubscriptionStmt, DefArg, DefElem, DefElemAction, Expr, FdwStmt,
    ImportForeignSchemaStmt, ImportForeignSchemaType, Location, Name, Persistence,
    PublicationChange, PublicationObject, RangeVar, RelationName, RoleSpec, RoleSpecKind, Stmt,
    SubscriptionChange, UserMappingAction, UserMappingStmt,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::{Result, SqlError};

/// `PublicationObjSpec`
struct ObjSpec {
    kind: ObjKind,
    /// A schema, or a name alone.
    name: Option<Name>,
    /// A table with its columns and its condition.
    table: Option<(RangeVar, Vec<Name>, Option<Expr>)>,
    location: Location,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ObjKind {
    Table,
    Schema,
    CurrentSchema,
    /// What stands in front of it says what it is.
    Continuation,
}

impl Parser<'_> {
    /// `create_generic_options`
    pub(super) fn create_generic_options(&mut self) -> Result<Vec<DefElem>> {
        match self.take(K::Options) {
            true => self.parens(|parser| parser.list(Self::generic_option_elem)),
            false => Ok(Vec::new()),
        }
    }

    /// `generic_option_elem`
    fn generic_option_elem(&mut self) -> Result<DefElem> {
        let location = self.here();
        let name = self.col_label()?;
        let arg = DefArg::String(self.sconst()?);
        Ok(option(&name, Some(arg), location))
    }

    /// `alter_generic_options`
    pub(super) fn alter_generic_options(&mut self) -> Result<Vec<DefElem>> {
        self.expect(K::Options)?;
        self.parens(|parser| parser.list(Self::alter_generic_option_elem))
    }

    /// `alter_generic_option_elem`
    fn alter_generic_option_elem(&mut self) -> Result<DefElem> {
        // These words are names of options as well, if a value follows them.
        let location = self.here();
        let action = match self.kind() {
            _ if self.kind_at(1) == T::SConst => DefElemAction::Unspecified,
            T::Keyword(K::Set) => DefElemAction::Set,
            T::Keyword(K::Add) => DefElemAction::Add,
            T::Keyword(K::Drop) => DefElemAction::Drop,
            _ => DefElemAction::Unspecified,
        };
        if action == DefElemAction::Unspecified {
            return self.generic_option_elem();
        }
        self.pass();
        let elem = match action {
            DefElemAction::Drop => option(&self.col_label()?, None, location),
            _ => self.generic_option_elem()?,
        };
        Ok(DefElem { action, ..elem })
    }

    /// CREATE FOREIGN DATA WRAPPER, CREATE FOREIGN TABLE, behind FOREIGN.
    pub(super) fn create_foreign(&mut self) -> Result<Stmt> {
        if self.take(K::Data) {
            self.expect(K::Wrapper)?;
            let fdwname = self.col_id()?;
            let func_options = self.fdw_options()?;
            let options = self.create_generic_options()?;
            return Ok(Stmt::Fdw(Box::new(FdwStmt {
                is_alter: false,
                fdwname,
                func_options,
                options,
            })));
        }
        self.expect(K::Table)?;
        let if_not_exists = self.opt_if_not_exists_before_name()?;
        let relation = RangeVar {
            persistence: Persistence::Permanent,
            ..self.qualified_name()?
        };
        let mut stmt = empty_table(relation, if_not_exists);
        if self.take(K::Partition) {
            self.partition_of(&mut stmt)?;
        } else {
            stmt.table_elts = self.opt_table_element_list()?;
            stmt.inh_relations = self.opt_inherit()?;
        }
        self.expect(K::Server)?;
        let server = self.col_id()?;
        stmt.foreign = Some((server, self.create_generic_options()?));
        Ok(Stmt::Create(Box::new(stmt)))
    }

    /// `opt_fdw_options`
    fn fdw_options(&mut self) -> Result<Vec<DefElem>> {
        let mut options = Vec::new();
        loop {
            let location = self.here();
            let no = self.take(K::No);
            let name = match self.kind() {
                T::Keyword(K::Handler) => "handler",
                T::Keyword(K::Validator) => "validator",
                _ if no => return self.unexpected(),
                _ => return Ok(options),
            };
            self.pass();
            let arg = match no {
                true => None,
                false => Some(DefArg::Name(self.handler_name()?)),
            };
            options.push(option(name, arg, location));
        }
    }

    /// `AlterFdwStmt`, behind the wrapper's name.
    pub(super) fn alter_fdw(&mut self, fdwname: Name) -> Result<Stmt> {
        let func_options = self.fdw_options()?;
        let options = match self.is(K::Options) || func_options.is_empty() {
            true => self.alter_generic_options()?,
            false => Vec::new(),
        };
        Ok(Stmt::Fdw(Box::new(FdwStmt {
            is_alter: true,
            fdwname,
            func_options,
            options,
        })))
    }

    /// `foreign_server_version`
    fn foreign_server_version(&mut self) -> Result<Option<Option<Name>>> {
        if !self.take(K::Version) {
            return Ok(None);
        }
        match self.take(K::Null) {
            true => Ok(Some(None)),
            false => Ok(Some(Some(self.sconst()?))),
        }
    }

    /// `CreateForeignServerStmt`, behind SERVER.
    pub(super) fn create_foreign_server_stmt(&mut self) -> Result<Stmt> {
        let if_not_exists = self.opt_if_not_exists_before_name()?;
        let servername = self.col_id()?;
        let servertype = match self.take(K::Type) {
            true => Some(self.sconst()?),
            false => None,
        };
        let version = self.foreign_server_version()?.flatten();
        self.expect_all(&[K::Foreign, K::Data, K::Wrapper])?;
        let fdwname = self.col_id()?;
        let options = self.create_generic_options()?;
        Ok(Stmt::CreateForeignServer(Box::new(
            CreateForeignServerStmt {
                servername,
                servertype,
                version,
                fdwname,
                if_not_exists,
                options,
            },
        )))
    }

    /// `AlterForeignServerStmt`, behind the server's name.
    pub(super) fn alter_foreign_server(&mut self, servername: Name) -> Result<Stmt> {
        let version = self.foreign_server_version()?;
        let options = match self.is(K::Options) || version.is_none() {
            true => self.alter_generic_options()?,
            false => Vec::new(),
        };
        Ok(Stmt::AlterForeignServer(Box::new(AlterForeignServerStmt {
            servername,
            version,
            options,
        })))
    }

    /// `auth_ident`
    fn auth_ident(&mut self) -> Result<RoleSpec> {
        let location = self.here();
        match self.take(K::User) {
            true => Ok(RoleSpec {
                kind: RoleSpecKind::CurrentUser,
                location,
            }),
            false => self.role_spec(),
        }
    }

    fn user_mapping(&mut self, action: UserMappingAction) -> Result<Stmt> {
        self.expect(K::For)?;
        let user = self.auth_ident()?;
        self.expect(K::Server)?;
        let servername = self.col_id()?;
        let options = match action {
            UserMappingAction::Create { .. } => self.create_generic_options()?,
            UserMappingAction::Alter => self.alter_generic_options()?,
            UserMappingAction::Drop { .. } => Vec::new(),
        };
        Ok(Stmt::UserMapping(Box::new(UserMappingStmt {
            action,
            user,
            servername,
            options,
        })))
    }

    /// `CreateUserMappingStmt`, behind USER MAPPING.
    pub(super) fn create_user_mapping(&mut self) -> Result<Stmt> {
        let if_not_exists = self.opt_if_not_exists()?;
        self.user_mapping(UserMappingAction::Create { if_not_exists })
    }

    /// `AlterUserMappingStmt`, behind USER MAPPING.
    pub(super) fn alter_user_mapping(&mut self) -> Result<Stmt> {
        self.user_mapping(UserMappingAction::Alter)
    }

    /// `DropUserMappingStmt`, behind USER MAPPING.
    pub(super) fn drop_user_mapping(&mut self) -> Result<Stmt> {
        let missing_ok = self.opt_if_exists()?;
        self.user_mapping(UserMappingAction::Drop { missing_ok })
    }

    /// `ImportForeignSchemaStmt`
    pub(super) fn import_foreign_schema_stmt(&mut self) -> Result<Stmt> {
        self.expect_all(&[K::Import, K::Foreign, K::Schema])?;
        let remote_schema = self.col_id()?;
        let list_type = if self.take(K::Limit) {
            self.expect(K::To)?;
            ImportForeignSchemaType::LimitTo
        } else if self.take(K::Except) {
            ImportForeignSchemaType::Except
        } else {
            ImportForeignSchemaType::All
        };
        let table_list = match list_type {
            ImportForeignSchemaType::All => Vec::new(),
            _ => self.parens(|parser| parser.list(Self::relation_expr))?,
        };
        self.expect_all(&[K::From, K::Server])?;
        let server_name = self.col_id()?;
        self.expect(K::Into)?;
        let local_schema = self.col_id()?;
        let options = self.create_generic_options()?;
        Ok(Stmt::ImportForeignSchema(Box::new(
            ImportForeignSchemaStmt {
                server_name,
                remote_schema,
                local_schema,
                list_type,
                table_list,
                options,
            },
        )))
    }

    /// `CreatePublicationStmt`, behind PUBLICATION.
    pub(super) fn create_publication_stmt(&mut self) -> Result<Stmt> {
        let pubname = self.col_id()?;
        let (mut for_all_tables, mut specs) = (false, Vec::new());
        if self.take(K::For) {
            for_all_tables = self.take(K::All);
            match for_all_tables {
                true => self.expect(K::Tables)?,
                false => specs = self.pub_obj_list()?,
            }
        }
        let options = self.opt_definition()?;
        let pubobjects = self.checked_pub_objects(specs)?;
        Ok(Stmt::CreatePublication(Box::new(CreatePublicationStmt {
            pubname,
            options,
            pubobjects,
            for_all_tables,
        })))
    }

    /// `AlterPublicationStmt`, behind the publication's name.
    pub(super) fn alter_publication(&mut self, pubname: Name) -> Result<Stmt> {
        let T::Keyword(word) = self.pass().kind else {
            return self.unexpected();
        };
        let change = if word == K::Set && self.at(T::LParen) {
            PublicationChange::Options(self.definition()?)
        } else {
            let specs = self.pub_obj_list()?;
            let objects = self.checked_pub_objects(specs)?;
            match word {
                K::Add => PublicationChange::Add(objects),
                K::Set => PublicationChange::Set(objects),
                _ => PublicationChange::Drop(objects),
            }
        };
        Ok(Stmt::AlterPublication(Box::new(AlterPublicationStmt {
            pubname,
            change,
        })))
    }

    /// `pub_obj_list`
    fn pub_obj_list(&mut self) -> Result<Vec<ObjSpec>> {
        self.list(Self::publication_obj_spec)
    }

    /// `PublicationObjSpec`
    fn publication_obj_spec(&mut self) -> Result<ObjSpec> {
        let location = self.here();
        let spec = |kind, name, table| ObjSpec {
            kind,
            name,
            table,
            location,
        };
        if self.take(K::Table) {
            let relation = self.relation_expr()?;
            let table = self.pub_table(relation)?;
            return Ok(spec(ObjKind::Table, None, Some(table)));
        }
        if self.is(K::Tables) && self.is_at(1, K::In) {
            self.pass_all(2);
            self.expect(K::Schema)?;
            let location = self.here();
            return match self.take(K::CurrentSchema) {
                true => Ok(ObjSpec {
                    location,
                    ..spec(ObjKind::CurrentSchema, None, None)
                }),
                false => {
                    let name = Some(self.col_id()?);
                    Ok(ObjSpec {
                        location,
                        ..spec(ObjKind::Schema, name, None)
                    })
                }
            };
        }
        if self.take(K::CurrentSchema) {
            return Ok(spec(ObjKind::Continuation, None, None));
        }
        let is_extended = self.is(K::Only);
        let relation = self.qualified_or_only()?;
        // Of these PostgreSQL keeps no place.
        let is_extended = self.take_token(T::Star) || is_extended;
        let location = if is_extended {
            Location::at(0)
        } else {
            location
        };
        let (relation, columns, where_clause) = self.pub_table(relation)?;
        let is_plain = !is_extended && columns.is_empty() && where_clause.is_none();
        let table = match &relation.name {
            RelationName::Named {
                catalog: None,
                schema: None,
                name,
            } if is_plain => {
                let name = Some(name.clone());
                return Ok(spec(ObjKind::Continuation, name, None));
            }
            _ => Some((relation, columns, where_clause)),
        };
        Ok(ObjSpec {
            location,
            ..spec(ObjKind::Continuation, None, table)
        })
    }

    fn qualified_or_only(&mut self) -> Result<RangeVar> {
        match self.is(K::Only) || !is_col_id(self.kind()) {
            true => self.relation_expr(),
            false => self.qualified_name(),
        }
    }

    /// `opt_column_list OptWhereClause`
    fn pub_table(&mut self, relation: RangeVar) -> Result<(RangeVar, Vec<Name>, Option<Expr>)> {
        let columns = self.opt_column_list()?;
        let where_clause = match self.take(K::Where) {
            true => Some(self.parens(Self::a_expr)?),
            false => None,
        };
        Ok((relation, columns, where_clause))
    }

    /// `preprocess_pubobj_list`
    fn checked_pub_objects(&self, specs: Vec<ObjSpec>) -> Result<Vec<PublicationObject>> {
        if self.at(T::Error) {
            return self.unexpected();
        }
        let wrong = |message: &str, spec: &ObjSpec| -> SqlError {
            self.syntax_error(message, spec.location)
        };
        if let Some(first) = specs.first()
            && first.kind == ObjKind::Continuation
        {
            return Err(wrong("invalid publication object list", first).detail(
                "One of TABLE or TABLES IN SCHEMA must be specified before a standalone table or schema name.",
            ));
        }
        let mut kind = ObjKind::Continuation;
        let mut objects = Vec::new();
        for spec in specs {
            if spec.kind != ObjKind::Continuation {
                kind = spec.kind;
            }
            if kind == ObjKind::Table {
                let location = spec.location;
                let plain = |name| RangeVar {
                    name: RelationName::Named {
                        catalog: None,
                        schema: None,
                        name,
                    },
                    inh: true,
                    persistence: Persistence::Permanent,
                    alias: None,
                    location,
                };
                let (relation, columns, where_clause) = match (spec.table, spec.name) {
                    (Some(table), _) => table,
                    (None, Some(name)) => (plain(name), Vec::new(), None),
                    (None, None) => return Err(self.syntax_error("invalid table name", location)),
                };
                objects.push(PublicationObject::Table {
                    relation,
                    columns,
                    where_clause,
                });
                continue;
            }
            match &spec.table {
                Some((_, _, Some(_))) => {
                    return Err(wrong("WHERE clause not allowed for schema", &spec));
                }
                Some((_, columns, _)) if !columns.is_empty() => {
                    return Err(wrong("column specification not allowed for schema", &spec));
                }
                Some(_) => return Err(wrong("invalid schema name", &spec)),
                None => {}
            }
            kind = match spec.name {
                Some(name) => {
                    objects.push(PublicationObject::TablesInSchema(name));
                    ObjKind::Schema
                }
                None => {
                    objects.push(PublicationObject::TablesInCurrentSchema);
                    ObjKind::CurrentSchema
                }
            };
        }
        Ok(objects)
    }

    /// `CreateSubscriptionStmt`, behind SUBSCRIPTION.
    pub(super) fn create_subscription_stmt(&mut self) -> Result<Stmt> {
        let subname = self.col_id()?;
        self.expect(K::Connection)?;
        let conninfo = self.sconst()?;
        self.expect(K::Publication)?;
        let publication = self.name_list()?;
        let options = self.opt_definition()?;
        Ok(Stmt::CreateSubscription(Box::new(CreateSubscriptionStmt {
            subname,
            conninfo,
            publication,
            options,
        })))
    }

    /// `AlterSubscriptionStmt`, behind the subscription's name.
    pub(super) fn alter_subscription(&mut self, subname: Name) -> Result<Stmt> {
        let T::Keyword(word) = self.pass().kind else {
            return self.unexpected();
        };
        let mut options = Vec::new();
        let change = match word {
            K::Set if self.at(T::LParen) => {
                options = self.definition()?;
                SubscriptionChange::Options
            }
            K::Skip => {
                options = self.definition()?;
                SubscriptionChange::Skip
            }
            K::Connection => SubscriptionChange::Connection(self.sconst()?),
            K::Enable => SubscriptionChange::Enable(true),
            K::Disable => SubscriptionChange::Enable(false),
            K::Refresh => {
                self.expect(K::Publication)?;
                options = self.opt_definition()?;
                SubscriptionChange::Refresh
            }
            _ => {
                self.expect(K::Publication)?;
                let names = self.name_list()?;
                options = self.opt_definition()?;
                match word {
                    K::Add => SubscriptionChange::AddPublication(names),
                    K::Drop => SubscriptionChange::DropPublication(names),
                    _ => SubscriptionChange::SetPublication(names),
                }
            }
        };
        Ok(Stmt::AlterSubscription(Box::new(AlterSubscriptionStmt {
            subname,
            change,
            options,
        })))
    }
}
