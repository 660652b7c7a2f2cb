//! CREATE: which rule reads it; schemas, languages, casts, policies and what else is small.

use super::create_table::TableRules;
use super::{Condition, Parser};
use crate::ast::{
    CastContext, CastMethod, CreateAmStmt, CreateCastStmt, CreateConversionStmt, CreateDomainStmt,
    CreateExtensionStmt, CreatePLangStmt, CreatePolicyStmt, CreateSchemaStmt, CreateTableSpaceStmt,
    CreateTransformStmt, DefArg, Persistence, RoleSpec, RoleSpecKind, RoleStmtType, Stmt,
};
use crate::definition::PolicyCommand;
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

/// A table of which GLOBAL was said, if that is the first word.
fn with_global(mut stmt: Stmt, first: K) -> Stmt {
    match &mut stmt {
        Stmt::Create(create) => create.global = first == K::Global,
        Stmt::CreateTableAs(create) => create.into.global = first == K::Global,
        _ => {}
    }
    stmt
}

impl Parser<'_> {
    /// CREATE
    pub(super) fn create(&mut self) -> Result<Stmt> {
        self.expect(K::Create)?;
        if self.is(K::Or) {
            self.pass();
            self.expect(K::Replace)?;
            return self.create_or_replace();
        }
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        let is_also_replaced = matches!(
            word,
            K::Aggregate
                | K::Function
                | K::Procedure
                | K::Trigger
                | K::Rule
                | K::Transform
                | K::Language
                | K::Procedural
                | K::Trusted
        );
        if is_also_replaced {
            return self.create_replaceable(false);
        }
        self.pass();
        match word {
            K::Temporary | K::Temp | K::Local | K::Global | K::Unlogged => {
                let persistence = self.rest_of_opt_temp(word)?;
                self.create_persistent(word, persistence, false)
            }
            K::Table => self.create_table(Persistence::Permanent, TableRules::All),
            K::Sequence => self.create_seq_stmt(Persistence::Permanent),
            K::View => self.view_stmt(Persistence::Permanent, false, false),
            K::Recursive => {
                self.expect(K::View)?;
                self.view_stmt(Persistence::Permanent, false, true)
            }
            K::Materialized => {
                self.expect(K::View)?;
                self.create_mat_view(Persistence::Permanent)
            }
            K::Unique => {
                self.expect(K::Index)?;
                self.index_stmt(true)
            }
            K::Index => self.index_stmt(false),
            K::Constraint => {
                self.expect(K::Trigger)?;
                self.create_constraint_trigger(false)
            }
            K::Schema => self.create_schema_stmt(),
            K::Database => self.createdb_stmt(),
            K::Role => self.create_role_stmt(RoleStmtType::Role),
            K::Group => self.create_role_stmt(RoleStmtType::Group),
            // A role may have that name.
            K::User if self.is(K::Mapping) && (self.is_at(1, K::For) || self.is_at(1, K::If)) => {
                self.pass();
                self.create_user_mapping()
            }
            K::User => self.create_role_stmt(RoleStmtType::User),
            K::Domain => self.create_domain_stmt(),
            K::Type => self.create_type(),
            K::Operator => self.create_operator(),
            K::Collation => self.create_collation(),
            K::Text => self.create_text_search(),
            K::Statistics => self.create_stats_stmt(),
            K::Extension => self.create_extension_stmt(),
            K::Event => {
                self.expect(K::Trigger)?;
                self.create_event_trig_stmt()
            }
            K::Cast => self.create_cast_stmt(),
            K::Conversion => self.create_conversion_stmt(false),
            K::Default => {
                self.expect(K::Conversion)?;
                self.create_conversion_stmt(true)
            }
            K::Access => self.create_am_stmt(),
            K::Tablespace => self.create_table_space_stmt(),
            K::Policy => self.create_policy_stmt(),
            K::Foreign => self.create_foreign(),
            K::Server => self.create_foreign_server_stmt(),
            K::Publication => self.create_publication_stmt(),
            K::Subscription => self.create_subscription_stmt(),
            K::Assertion => self.create_assertion_stmt(),
            _ => {
                self.at -= 1;
                self.unexpected()
            }
        }
    }

    /// CREATE OR REPLACE
    fn create_or_replace(&mut self) -> Result<Stmt> {
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        match word {
            K::Temporary | K::Temp | K::Local | K::Global | K::Unlogged => {
                self.pass();
                let persistence = self.rest_of_opt_temp(word)?;
                match self.is_any(&[K::View, K::Recursive]) {
                    true => self.create_persistent(word, persistence, true),
                    false => self.unexpected(),
                }
            }
            K::View | K::Recursive => self.create_persistent(word, Persistence::Permanent, true),
            K::Constraint => {
                self.pass();
                self.expect(K::Trigger)?;
                self.create_constraint_trigger(true)
            }
            _ => self.create_replaceable(true),
        }
    }

    /// What may have OR REPLACE in front.
    fn create_replaceable(&mut self, replace: bool) -> Result<Stmt> {
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        match word {
            K::Aggregate => self.create_aggregate(replace),
            K::Function => self.create_function_stmt(replace),
            K::Procedure => self.create_function_stmt(replace),
            K::Trigger => {
                self.pass();
                self.create_trig_stmt(replace)
            }
            K::Rule => self.rule_stmt(replace),
            K::Transform => self.create_transform_stmt(replace),
            K::Language | K::Procedural | K::Trusted => self.create_plang_stmt(replace),
            _ => self.unexpected(),
        }
    }

    /// `OptTemp`, behind its first word.
    fn rest_of_opt_temp(&mut self, word: K) -> Result<Persistence> {
        match word {
            K::Unlogged => Ok(Persistence::Unlogged),
            K::Local | K::Global => {
                if !self.take(K::Temporary) {
                    self.expect(K::Temp)?;
                }
                Ok(Persistence::Temporary)
            }
            _ => Ok(Persistence::Temporary),
        }
    }

    /// What `OptTemp` or nothing stands in front of.
    fn create_persistent(
        &mut self,
        first: K,
        persistence: Persistence,
        replace: bool,
    ) -> Result<Stmt> {
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        match word {
            K::Table if !replace => {
                self.pass();
                let stmt = self.create_table(persistence, TableRules::All)?;
                Ok(with_global(stmt, first))
            }
            K::Sequence if !replace => {
                self.pass();
                self.create_seq_stmt(persistence)
            }
            K::View => {
                self.pass();
                self.view_stmt(persistence, replace, false)
            }
            K::Recursive => {
                self.pass();
                self.expect(K::View)?;
                self.view_stmt(persistence, replace, true)
            }
            K::Materialized if first == K::Unlogged => {
                self.pass();
                self.expect(K::View)?;
                self.create_mat_view(persistence)
            }
            _ => self.unexpected(),
        }
    }

    /// `CreateSchemaStmt`, behind SCHEMA.
    fn create_schema_stmt(&mut self) -> Result<Stmt> {
        let if_not_exists = self.opt_if_not_exists_before_name()?;
        let schemaname = match self.is(K::Authorization) {
            true => None,
            false => Some(self.col_id()?),
        };
        let authrole = match self.take(K::Authorization) {
            true => Some(self.role_spec()?),
            false => None,
        };
        let elements_at = self.here();
        let mut schema_elts = Vec::new();
        while self.is_any(&[K::Create, K::Grant]) {
            let start = self.here();
            let element = self.nested(Self::schema_stmt)?;
            schema_elts.push((element, self.range_from(start)));
        }
        if if_not_exists && !schema_elts.is_empty() {
            if self.at(T::Error) {
                return self.unexpected();
            }
            let message = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
            return Err(self.unsupported(message, elements_at));
        }
        Ok(Stmt::CreateSchema(Box::new(CreateSchemaStmt {
            schemaname,
            authrole,
            schema_elts,
            if_not_exists,
        })))
    }

    /// `schema_stmt`
    fn schema_stmt(&mut self) -> Result<Stmt> {
        if self.is(K::Grant) {
            return self.grant_in_schema();
        }
        self.pass();
        let replace = self.take(K::Or);
        if replace {
            self.expect(K::Replace)?;
        }
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        match word {
            K::Trigger => {
                self.pass();
                self.create_trig_stmt(replace)
            }
            K::Constraint => {
                self.pass();
                self.expect(K::Trigger)?;
                self.create_constraint_trigger(replace)
            }
            K::Unique if !replace => {
                self.pass();
                self.expect(K::Index)?;
                self.index_stmt(true)
            }
            K::Index if !replace => {
                self.pass();
                self.index_stmt(false)
            }
            K::Temporary | K::Temp | K::Local | K::Global | K::Unlogged => {
                self.pass();
                let persistence = self.rest_of_opt_temp(word)?;
                let stmt = self.schema_relation(persistence, replace)?;
                Ok(with_global(stmt, word))
            }
            _ => self.schema_relation(Persistence::Permanent, replace),
        }
    }

    /// A table, a sequence or a view of CREATE SCHEMA.
    fn schema_relation(&mut self, persistence: Persistence, replace: bool) -> Result<Stmt> {
        match self.kind() {
            T::Keyword(K::Table) if !replace => {
                self.pass();
                self.create_table(persistence, TableRules::Definition)
            }
            T::Keyword(K::Sequence | K::View | K::Recursive) => {
                // As elsewhere, without what CREATE TABLE may be besides.
                self.create_persistent(K::Create, persistence, replace)
            }
            _ => self.unexpected(),
        }
    }

    /// `CreateDomainStmt`, behind DOMAIN.
    fn create_domain_stmt(&mut self) -> Result<Stmt> {
        let domainname = self.any_name()?;
        self.take(K::As);
        let type_name = self.type_name()?;
        let (constraints, coll_clause) = self.col_qual_list()?;
        Ok(Stmt::CreateDomain(Box::new(CreateDomainStmt {
            domainname,
            type_name,
            coll_clause,
            constraints,
        })))
    }

    /// `CreateExtensionStmt`, behind EXTENSION.
    fn create_extension_stmt(&mut self) -> Result<Stmt> {
        let if_not_exists = self.opt_if_not_exists_before_name()?;
        let extname = self.col_id()?;
        self.opt_with();
        let mut options = Vec::new();
        loop {
            let location = self.here();
            let (name, arg) = match self.kind() {
                T::Keyword(K::Schema) => {
                    self.pass();
                    ("schema", DefArg::String(self.col_id()?))
                }
                T::Keyword(K::Version) => {
                    self.pass();
                    (
                        "new_version",
                        DefArg::String(self.non_reserved_word_or_sconst()?),
                    )
                }
                T::Keyword(K::From) => {
                    self.pass();
                    self.non_reserved_word_or_sconst()?;
                    let message = "CREATE EXTENSION ... FROM is no longer supported";
                    return Err(self.unsupported(message, location));
                }
                T::Keyword(K::Cascade) => {
                    self.pass();
                    ("cascade", DefArg::Boolean(true))
                }
                _ => break,
            };
            options.push(super::create_table::option(name, Some(arg), location));
        }
        Ok(Stmt::CreateExtension(Box::new(CreateExtensionStmt {
            extname,
            if_not_exists,
            options,
        })))
    }

    /// `CreateCastStmt`, behind CAST.
    fn create_cast_stmt(&mut self) -> Result<Stmt> {
        let (sourcetype, targettype) = self.cast_types()?;
        let method = if self.take(K::Without) {
            self.expect(K::Function)?;
            CastMethod::WithoutFunction
        } else {
            self.expect(K::With)?;
            match self.take(K::Inout) {
                true => CastMethod::InOut,
                false => {
                    self.expect(K::Function)?;
                    CastMethod::Function(self.function_with_argtypes()?)
                }
            }
        };
        // `cast_context`
        let context = match self.take(K::As) {
            true if self.take(K::Implicit) => CastContext::Implicit,
            true => {
                self.expect(K::Assignment)?;
                CastContext::Assignment
            }
            false => CastContext::Explicit,
        };
        Ok(Stmt::CreateCast(Box::new(CreateCastStmt {
            sourcetype,
            targettype,
            method,
            context,
        })))
    }

    /// `'(' Typename AS Typename ')'`
    pub(super) fn cast_types(&mut self) -> Result<(crate::ast::TypeName, crate::ast::TypeName)> {
        self.parens(|parser| {
            let source = parser.type_name()?;
            parser.expect(K::As)?;
            Ok((source, parser.type_name()?))
        })
    }

    /// `CreateTransformStmt`
    fn create_transform_stmt(&mut self, replace: bool) -> Result<Stmt> {
        self.pass();
        self.expect(K::For)?;
        let type_name = self.type_name()?;
        self.expect(K::Language)?;
        let lang = self.col_id()?;
        let (fromsql, tosql) = self.parens(|parser| {
            let (mut fromsql, mut tosql) = (None, None);
            loop {
                let is_from = match parser.kind() {
                    T::Keyword(K::From) if fromsql.is_none() => true,
                    T::Keyword(K::To) if tosql.is_none() => false,
                    _ => return parser.unexpected(),
                };
                parser.pass();
                parser.expect_all(&[K::Sql, K::With, K::Function])?;
                let function = Some(parser.function_with_argtypes()?);
                match is_from {
                    true => fromsql = function,
                    false => tosql = function,
                }
                if fromsql.is_some() && tosql.is_some() || !parser.take_token(T::Comma) {
                    return Ok((fromsql, tosql));
                }
            }
        })?;
        Ok(Stmt::CreateTransform(Box::new(CreateTransformStmt {
            replace,
            type_name,
            lang,
            fromsql,
            tosql,
        })))
    }

    /// `CreateConversionStmt`, behind CONVERSION.
    fn create_conversion_stmt(&mut self, def: bool) -> Result<Stmt> {
        let conversion_name = self.any_name()?;
        self.expect(K::For)?;
        let for_encoding_name = self.sconst()?;
        self.expect(K::To)?;
        let to_encoding_name = self.sconst()?;
        self.expect(K::From)?;
        let func_name = self.any_name()?;
        Ok(Stmt::CreateConversion(Box::new(CreateConversionStmt {
            conversion_name,
            for_encoding_name,
            to_encoding_name,
            func_name,
            def,
        })))
    }

    /// `CreatePLangStmt`
    fn create_plang_stmt(&mut self, replace: bool) -> Result<Stmt> {
        let trusted = self.take(K::Trusted);
        self.take(K::Procedural);
        self.expect(K::Language)?;
        let plname = self.col_id()?;
        let mut stmt = CreatePLangStmt {
            replace,
            plname,
            handler: None,
            inline: None,
            validator: None,
            trusted,
        };
        if self.take(K::Handler) {
            stmt.handler = Some(self.handler_name()?);
            if self.take(K::Inline) {
                stmt.inline = Some(self.handler_name()?);
            }
            if self.take(K::Validator) {
                stmt.validator = Some(self.handler_name()?);
            } else if self.take(K::No) {
                self.expect(K::Validator)?;
            }
        }
        Ok(Stmt::CreatePLang(Box::new(stmt)))
    }

    /// `CreateAmStmt`, behind ACCESS.
    fn create_am_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Method)?;
        let amname = self.col_id()?;
        self.expect(K::Type)?;
        let is_index = self.take(K::Index);
        if !is_index {
            self.expect(K::Table)?;
        }
        self.expect(K::Handler)?;
        let handler_name = self.handler_name()?;
        Ok(Stmt::CreateAm(Box::new(CreateAmStmt {
            amname,
            handler_name,
            is_index,
        })))
    }

    /// `CreateTableSpaceStmt`, behind TABLESPACE.
    fn create_table_space_stmt(&mut self) -> Result<Stmt> {
        let tablespacename = self.col_id()?;
        let owner = match self.take(K::Owner) {
            true => Some(self.role_spec()?),
            false => None,
        };
        self.expect(K::Location)?;
        let location = self.sconst()?;
        let options = self.opt_reloptions()?;
        Ok(Stmt::CreateTableSpace(Box::new(CreateTableSpaceStmt {
            tablespacename,
            owner,
            location,
            options,
        })))
    }

    /// `CreatePolicyStmt`, behind POLICY.
    fn create_policy_stmt(&mut self) -> Result<Stmt> {
        let policy_name = self.col_id()?;
        self.expect(K::On)?;
        let table = self.qualified_name()?;
        let permissive = self.row_security_default_permissive()?;
        let command = match self.take(K::For) {
            true => self.row_security_cmd()?,
            false => PolicyCommand::All,
        };
        let roles_at = self.here();
        let roles = match self.take(K::To) {
            true => self.role_list()?,
            false => vec![RoleSpec {
                kind: RoleSpecKind::Public,
                location: roles_at,
            }],
        };
        let ((qual, qual_range), (with_check, with_check_range)) = self.row_security_exprs()?;
        Ok(Stmt::CreatePolicy(Box::new(CreatePolicyStmt {
            policy_name,
            table,
            command,
            permissive,
            roles,
            qual,
            qual_range,
            with_check,
            with_check_range,
        })))
    }

    /// `RowSecurityDefaultPermissive`
    fn row_security_default_permissive(&mut self) -> Result<bool> {
        if !self.take(K::As) {
            return Ok(true);
        }
        let location = self.here();
        if !matches!(self.kind(), T::Ident | T::QuotedIdent) {
            return self.unexpected();
        }
        let name = self.col_id()?;
        match &*name {
            "permissive" => Ok(true),
            "restrictive" => Ok(false),
            _ => {
                let message = format!("unrecognized row security option \"{name}\"");
                let error = self.syntax_error(message, location);
                Err(error.hint("Only PERMISSIVE or RESTRICTIVE policies are supported currently."))
            }
        }
    }

    /// `row_security_cmd`
    fn row_security_cmd(&mut self) -> Result<PolicyCommand> {
        let command = match self.kind() {
            T::Keyword(K::All) => PolicyCommand::All,
            T::Keyword(K::Select) => PolicyCommand::Select,
            T::Keyword(K::Insert) => PolicyCommand::Insert,
            T::Keyword(K::Update) => PolicyCommand::Update,
            T::Keyword(K::Delete) => PolicyCommand::Delete,
            _ => return self.unexpected(),
        };
        self.pass();
        Ok(command)
    }

    /// `RowSecurityOptionalExpr RowSecurityOptionalWithCheck`
    pub(super) fn row_security_exprs(&mut self) -> Result<(Condition, Condition)> {
        let is_using = self.take(K::Using);
        let qual = self.opt_condition(is_using)?;
        let is_with = self.take(K::With);
        if is_with {
            self.expect(K::Check)?;
        }
        Ok((qual, self.opt_condition(is_with)?))
    }

    /// `CreateAssertionStmt`, behind ASSERTION.
    fn create_assertion_stmt(&mut self) -> Result<Stmt> {
        self.any_name()?;
        self.expect(K::Check)?;
        self.parens(Self::a_expr)?;
        self.constraint_attributes()?;
        if self.at(T::Error) {
            return self.unexpected();
        }
        Err(self.unsupported(
            "CREATE ASSERTION is not yet implemented",
            crate::ast::Location::UNKNOWN,
        ))
    }
}
