//! Functions, procedures, aggregates and operators by their arguments; CREATE and ALTER FUNCTION; DO; CALL.

use super::Parser;
use super::create_table::{number, option};
use super::names::{is_col_id, is_type_function_name};
use crate::ast::{
    AlterFunctionStmt, AnyName, AtomicStmt, CallStmt, CreateFunctionStmt, DefArg, DefElem, DoStmt,
    FunctionParameter, FunctionParameterMode as Mode, Indirection, Location, ObjectType,
    ObjectWithArgs, ReturnStmt, RoutineBody, Stmt, TypeName,
};
use crate::lexer::{Category, Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

impl Parser<'_> {
    /// `arg_class`
    fn arg_class(&mut self) -> Option<Mode> {
        let mode = match self.kind() {
            T::Keyword(K::In) if self.is_at(1, K::Out) => {
                self.pass();
                Mode::InOut
            }
            T::Keyword(K::In) => Mode::In,
            T::Keyword(K::Out) => Mode::Out,
            T::Keyword(K::Inout) => Mode::InOut,
            T::Keyword(K::Variadic) => Mode::Variadic,
            _ => return None,
        };
        self.pass();
        Some(mode)
    }

    /// Is the next token a parameter's name: does a type, or a mode, follow it?
    fn at_param_name(&self) -> bool {
        if !is_type_function_name(self.kind()) {
            return false;
        }
        match self.kind_at(1) {
            T::Keyword(K::Precision) => false,
            T::Keyword(K::In | K::Out | K::Inout | K::Variadic | K::Setof) => true,
            T::Keyword(word) if word.category() == Category::ColName => is_type_word(word),
            next => is_type_function_name(next),
        }
    }

    /// `func_arg`
    pub(super) fn func_arg(&mut self) -> Result<FunctionParameter> {
        let location = self.here();
        let mut mode = self.arg_class();
        let name = match self.at_param_name() {
            true => Some(self.type_function_name()?),
            false => None,
        };
        if mode.is_none() && name.is_some() {
            mode = self.arg_class();
        }
        let arg_type = self.func_type()?;
        Ok(FunctionParameter {
            name,
            arg_type,
            mode: mode.unwrap_or(Mode::Default),
            defexpr: None,
            location,
        })
    }

    /// `func_arg_with_default`
    fn func_arg_with_default(&mut self) -> Result<FunctionParameter> {
        let mut parameter = self.func_arg()?;
        if self.take(K::Default) || self.take_token(T::Equals) {
            parameter.defexpr = Some(self.a_expr()?);
        }
        Ok(parameter)
    }

    /// `function_with_argtypes`
    pub(super) fn function_with_argtypes(&mut self) -> Result<ObjectWithArgs> {
        let location = self.here();
        let kind = self.kind();
        let is_function = is_type_function_name(kind);
        let mut may_have_args = is_function;
        let names = match is_col_id(kind) {
            false => super::primary::name_only(self.type_function_name()?),
            true => {
                let mut names = super::primary::name_only(self.col_id()?);
                if matches!(self.kind(), T::Dot | T::LBracket) {
                    may_have_args = true;
                    for part in self.indirection()? {
                        match part {
                            Indirection::Field(name) => names.push(name),
                            _ => return self.unexpected(),
                        }
                    }
                }
                names
            }
        };
        let objname = AnyName { names, location };
        if !may_have_args || !self.at(T::LParen) {
            return Ok(with_args(objname));
        }
        let parameters = self.parens(|parser| match parser.at(T::RParen) {
            true => Ok(Vec::new()),
            false => parser.list(Self::func_arg),
        })?;
        Ok(ObjectWithArgs {
            objargs: Some(arg_types(&parameters)),
            objfuncargs: parameters,
            ..with_args(objname)
        })
    }

    /// `aggregate_with_argtypes`
    pub(super) fn aggregate_with_argtypes(&mut self) -> Result<ObjectWithArgs> {
        let name = self.func_name()?;
        self.aggr_args(name)
    }

    /// `aggr_args`
    pub(super) fn aggr_args(&mut self, objname: AnyName) -> Result<ObjectWithArgs> {
        let (parameters, direct_args) = self.parens(|parser| {
            if parser.take_token(T::Star) {
                return Ok((Vec::new(), None));
            }
            let mut parameters = match parser.is(K::Order) {
                true => Vec::new(),
                false => parser.list(Self::aggr_arg)?,
            };
            if !parser.take(K::Order) {
                return Ok((parameters, None));
            }
            parser.expect(K::By)?;
            let direct = parameters.len();
            let ordered = parser.list(Self::aggr_arg)?;
            if !parser.at(T::RParen) {
                return parser.unexpected();
            }
            parser.ordered_set_args(&mut parameters, ordered)?;
            Ok((parameters, Some(direct)))
        })?;
        Ok(ObjectWithArgs {
            objargs: Some(arg_types(&parameters)),
            objfuncargs: parameters,
            direct_args,
            ..with_args(objname)
        })
    }

    /// `makeOrderedSetArgs`
    fn ordered_set_args(
        &self,
        direct: &mut Vec<FunctionParameter>,
        ordered: Vec<FunctionParameter>,
    ) -> Result<()> {
        let same = |a: &TypeName, b: &TypeName| {
            a.name == b.name
                && a.setof == b.setof
                && a.pct_type == b.pct_type
                && a.typmods == b.typmods
                && a.array_bounds == b.array_bounds
        };
        let (last, first) = match (direct.last(), ordered.first()) {
            (Some(last), Some(first)) if last.mode == Mode::Variadic => (last, first),
            _ => {
                direct.extend(ordered);
                return Ok(());
            }
        };
        if ordered.len() != 1
            || first.mode != Mode::Variadic
            || !same(&last.arg_type, &first.arg_type)
        {
            let message = "an ordered-set aggregate with a VARIADIC direct argument must have one VARIADIC aggregated argument of the same data type";
            return Err(self.unsupported(message, first.arg_type.location));
        }
        Ok(())
    }

    /// `aggr_arg`
    fn aggr_arg(&mut self) -> Result<FunctionParameter> {
        let parameter = self.func_arg()?;
        match parameter.mode {
            Mode::Default | Mode::In | Mode::Variadic => Ok(parameter),
            _ => {
                let message = "aggregates cannot have output arguments";
                Err(self.unsupported(message, parameter.location))
            }
        }
    }

    /// `operator_with_argtypes`
    pub(super) fn operator_with_argtypes(&mut self) -> Result<ObjectWithArgs> {
        let location = self.here();
        let operator = self.any_operator()?;
        let objargs = Some(self.oper_argtypes()?);
        let objname = AnyName {
            names: Default::default(),
            location,
        };
        Ok(ObjectWithArgs {
            objargs,
            operator: Some(operator),
            ..with_args(objname)
        })
    }

    /// `oper_argtypes`
    fn oper_argtypes(&mut self) -> Result<Vec<Option<TypeName>>> {
        self.parens(|parser| {
            if parser.take(K::None) {
                parser.expect_token(T::Comma)?;
                return Ok(vec![None, Some(parser.type_name()?)]);
            }
            let left = parser.type_name()?;
            if parser.at(T::RParen) {
                let error = parser.syntax_error("missing argument", parser.here());
                return Err(
                    error.hint("Use NONE to denote the missing argument of a unary operator.")
                );
            }
            parser.expect_token(T::Comma)?;
            let right = match parser.take(K::None) {
                true => None,
                false => Some(parser.type_name()?),
            };
            Ok(vec![Some(left), right])
        })
    }

    /// `CreateFunctionStmt`, from FUNCTION or PROCEDURE on.
    pub(super) fn create_function_stmt(&mut self, replace: bool) -> Result<Stmt> {
        let is_procedure = self.pass().kind == T::Keyword(K::Procedure);
        let funcname = self.func_name()?;
        let mut parameters = self.parens(|parser| match parser.at(T::RParen) {
            true => Ok(Vec::new()),
            false => parser.list(Self::func_arg_with_default),
        })?;
        let (mut return_type, mut returns_table) = (None, false);
        // RETURNS NULL ON NULL INPUT is an option.
        if !is_procedure && self.is(K::Returns) && !self.is_at(1, K::Null) {
            self.pass();
            if self.take(K::Table) {
                returns_table = true;
                let columns = self.parens(|parser| parser.list(Self::table_func_column))?;
                return_type = Some(self.table_type(&columns));
                parameters.extend(columns);
            } else {
                return_type = Some(self.func_type()?);
            }
        }
        let mut options = Vec::new();
        while let Some(item) = self.createfunc_opt_item()? {
            options.push(item);
        }
        let (sql_body, range) = self.with_range(Self::opt_routine_body)?;
        let sql_body_range = sql_body.is_some().then_some(range);
        let is_out =
            |parameter: &FunctionParameter| matches!(parameter.mode, Mode::Out | Mode::InOut);
        if returns_table && parameters.iter().any(is_out) {
            if self.at(T::Error) {
                return self.unexpected();
            }
            let message = "OUT and INOUT arguments aren't allowed in TABLE functions";
            return Err(self.syntax_error(message, Location::UNKNOWN));
        }
        Ok(Stmt::CreateFunction(Box::new(CreateFunctionStmt {
            is_procedure,
            replace,
            funcname,
            parameters,
            return_type,
            returns_table,
            options,
            sql_body,
            sql_body_range,
        })))
    }

    /// `table_func_column`
    fn table_func_column(&mut self) -> Result<FunctionParameter> {
        let location = self.here();
        let name = Some(self.type_function_name()?);
        let arg_type = self.func_type()?;
        Ok(FunctionParameter {
            name,
            arg_type,
            mode: Mode::Table,
            defexpr: None,
            location,
        })
    }

    /// `TableFuncTypeName`
    fn table_type(&self, columns: &[FunctionParameter]) -> TypeName {
        let type_name = match columns {
            [column] => column.arg_type.clone(),
            _ => self.system_type("record", Location::UNKNOWN),
        };
        TypeName {
            setof: true,
            ..type_name
        }
    }

    /// `createfunc_opt_item`
    fn createfunc_opt_item(&mut self) -> Result<Option<DefElem>> {
        let location = self.here();
        let (name, arg) = match self.kind() {
            T::Keyword(K::As) => {
                self.pass();
                let first = DefArg::String(self.sconst()?);
                let mut parts = vec![first];
                if self.take_token(T::Comma) {
                    parts.push(DefArg::String(self.sconst()?));
                }
                ("as", DefArg::List(parts))
            }
            T::Keyword(K::Language) => {
                self.pass();
                (
                    "language",
                    DefArg::String(self.non_reserved_word_or_sconst()?),
                )
            }
            T::Keyword(K::Transform) => {
                self.pass();
                let types = self.list(|parser| {
                    parser.expect_all(&[K::For, K::Type])?;
                    Ok(DefArg::Type(Box::new(parser.type_name()?)))
                })?;
                ("transform", DefArg::List(types))
            }
            T::Keyword(K::Window) => {
                self.pass();
                ("window", DefArg::Boolean(true))
            }
            _ => return self.common_func_opt_item(),
        };
        Ok(Some(option(name, Some(arg), location)))
    }

    /// `common_func_opt_item`
    fn common_func_opt_item(&mut self) -> Result<Option<DefElem>> {
        let location = self.here();
        let T::Keyword(word) = self.kind() else {
            return Ok(None);
        };
        if self.at_set_reset() {
            let set = self.function_set_reset_clause()?;
            return Ok(Some(option(
                "set",
                Some(DefArg::Set(Box::new(set))),
                location,
            )));
        }
        let volatility = |word: &str| ("volatility", DefArg::String(word.into()));
        let (name, arg) = match word {
            K::Immutable | K::Stable | K::Volatile => {
                self.pass();
                volatility(word.word())
            }
            K::Strict => {
                self.pass();
                ("strict", DefArg::Boolean(true))
            }
            K::Called => {
                self.pass();
                self.expect_all(&[K::On, K::Null, K::Input])?;
                ("strict", DefArg::Boolean(false))
            }
            K::Returns => {
                self.pass();
                self.expect_all(&[K::Null, K::On, K::Null, K::Input])?;
                ("strict", DefArg::Boolean(true))
            }
            K::External | K::Security => {
                self.pass();
                if word == K::External {
                    self.expect(K::Security)?;
                }
                let definer = self.take(K::Definer);
                if !definer {
                    self.expect(K::Invoker)?;
                }
                ("security", DefArg::Boolean(definer))
            }
            K::Leakproof => {
                self.pass();
                ("leakproof", DefArg::Boolean(true))
            }
            K::Not => {
                self.pass();
                self.expect(K::Leakproof)?;
                ("leakproof", DefArg::Boolean(false))
            }
            K::Cost => {
                self.pass();
                ("cost", number(self.numeric_only()?))
            }
            K::Rows => {
                self.pass();
                ("rows", number(self.numeric_only()?))
            }
            K::Support => {
                self.pass();
                ("support", DefArg::Name(self.any_name()?))
            }
            K::Parallel => {
                self.pass();
                ("parallel", DefArg::String(self.col_id()?))
            }
            _ => return Ok(None),
        };
        Ok(Some(option(name, Some(arg), location)))
    }

    /// `opt_routine_body`
    fn opt_routine_body(&mut self) -> Result<Option<RoutineBody>> {
        if self.is(K::Return) {
            let body = self.return_stmt()?;
            return Ok(Some(RoutineBody::Return(Box::new(body.returnval))));
        }
        if !self.take(K::Begin) {
            return Ok(None);
        }
        self.expect(K::Atomic)?;
        let mut statements = Vec::new();
        loop {
            // `routine_body_stmt` may be empty.
            if self.take_token(T::Semicolon) {
                continue;
            }
            if self.take(K::End) {
                return Ok(Some(RoutineBody::Atomic(statements)));
            }
            let (stmt, (start, end)) =
                self.with_range(|parser| parser.nested(Self::routine_body_stmt))?;
            self.expect_token(T::Semicolon)?;
            statements.push(AtomicStmt { stmt, start, end });
        }
    }

    /// `routine_body_stmt`
    fn routine_body_stmt(&mut self) -> Result<Stmt> {
        match self.is(K::Return) {
            true => Ok(Stmt::Return(Box::new(self.return_stmt()?))),
            false => self.subselect(Self::stmt),
        }
    }

    /// `ReturnStmt`
    fn return_stmt(&mut self) -> Result<ReturnStmt> {
        self.expect(K::Return)?;
        Ok(ReturnStmt {
            returnval: self.a_expr()?,
        })
    }

    /// `AlterFunctionStmt`, behind the function.
    pub(super) fn alter_function(
        &mut self,
        objtype: ObjectType,
        func: ObjectWithArgs,
    ) -> Result<Stmt> {
        let mut actions = Vec::new();
        while let Some(action) = self.common_func_opt_item()? {
            actions.push(action);
        }
        if actions.is_empty() {
            return self.unexpected();
        }
        self.take(K::Restrict);
        Ok(Stmt::AlterFunction(Box::new(AlterFunctionStmt {
            objtype,
            func,
            actions,
        })))
    }

    /// `DoStmt`
    pub(super) fn do_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Do)?;
        let mut args = Vec::new();
        loop {
            let location = self.here();
            if self.at(T::SConst) {
                args.push(option("as", Some(DefArg::String(self.sconst()?)), location));
            } else if self.take(K::Language) {
                let language = self.non_reserved_word_or_sconst()?;
                args.push(option("language", Some(DefArg::String(language)), location));
            } else if args.is_empty() {
                return self.unexpected();
            } else {
                return Ok(Stmt::Do(Box::new(DoStmt { args })));
            }
        }
    }

    /// `CallStmt`
    pub(super) fn call_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Call)?;
        let funccall = self.func_application()?;
        Ok(Stmt::Call(Box::new(CallStmt { funccall })))
    }
}

/// A function without arguments.
fn with_args(objname: AnyName) -> ObjectWithArgs {
    ObjectWithArgs {
        objname,
        objargs: None,
        objfuncargs: Vec::new(),
        direct_args: None,
        operator: None,
    }
}

/// `extractArgTypes`: what goes in.
fn arg_types(parameters: &[FunctionParameter]) -> Vec<Option<TypeName>> {
    let goes_in =
        |parameter: &&FunctionParameter| !matches!(parameter.mode, Mode::Out | Mode::Table);
    parameters
        .iter()
        .filter(goes_in)
        .map(|parameter| Some(parameter.arg_type.clone()))
        .collect()
}

/// Can a type begin with a keyword that may be the name of a column?
fn is_type_word(word: K) -> bool {
    matches!(
        word,
        K::Int
            | K::Integer
            | K::Smallint
            | K::Bigint
            | K::Real
            | K::Float
            | K::Decimal
            | K::Dec
            | K::Numeric
            | K::Boolean
            | K::Bit
            | K::National
            | K::Character
            | K::Char
            | K::Varchar
            | K::Nchar
            | K::Time
            | K::Timestamp
            | K::Interval
            | K::Setof
    )
}
