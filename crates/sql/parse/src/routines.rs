//! CREATE, ALTER and DROP of functions and procedures, and COMMENT ON them.
//!
//! The grammar library reads some of it, but keeps neither where things stand nor all that PostgreSQL has.

use super::ArgMode;
use super::StatementKind;
use super::Volatility;
use super::aggregates::CreateAggregate;
use super::grants::RightsCommand;
use super::position::byte_of;
use super::rewrite::{is_word, words};
use super::roles::{RoleName, Words};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

/// The word that a statement has for what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum RoutineWord {
    Function,
    Procedure,
    Routine,
    Aggregate,
}

impl RoutineWord {
    /// In small letters.
    pub fn text(self) -> &'static str {
        match self {
            RoutineWord::Function => "function",
            RoutineWord::Procedure => "procedure",
            RoutineWord::Routine => "routine",
            RoutineWord::Aggregate => "aggregate",
        }
    }
}

/// A type as a signature names it.
#[derive(Clone, Debug)]
pub struct TypeClause {
    /// SETOF.
    pub set: bool,
    /// The type, or with `of_column` a column as `table.column`.
    pub data_type: ast::DataType,
    /// %TYPE.
    pub of_column: bool,
    /// Where it stands.
    pub span: Span,
}

/// An argument.
#[derive(Clone, Debug)]
pub struct ArgClause {
    /// What it is for.
    pub mode: ArgMode,
    /// Its name.
    pub name: Option<String>,
    /// Its type.
    pub ty: TypeClause,
    /// DEFAULT.
    pub default: Option<ast::Expr>,
    /// Where it stands.
    pub span: Span,
}

/// A function or procedure by name, and by its arguments if they are said.
#[derive(Clone, Debug)]
pub struct RoutineRef {
    /// The name.
    pub name: ast::ObjectName,
    /// The arguments.
    pub args: Option<Vec<ArgClause>>,
}

/// A SET clause.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum ConfigClause {
    Set(String, Vec<String>),
    FromCurrent(String),
    /// RESET, or SET ... TO DEFAULT.
    Reset(String),
    ResetAll,
}

/// A property of a function.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum RoutineOption {
    Volatility(Volatility),
    Strict(bool),
    Definer(bool),
    Leakproof(bool),
    Parallel(String),
    Cost(f64),
    Rows(f64),
    Config(ConfigClause),
    Language(String),
    /// AS: one text, or an object file and a symbol.
    As(Vec<String>),
    Window,
    Transform,
    Support,
}

/// CREATE FUNCTION, CREATE PROCEDURE.
#[derive(Clone, Debug)]
pub struct CreateRoutine {
    /// It is a procedure.
    pub procedure: bool,
    /// OR REPLACE.
    pub or_replace: bool,
    /// Its name.
    pub name: ast::ObjectName,
    /// Its arguments.
    pub args: Vec<ArgClause>,
    /// RETURNS type.
    pub returns: Option<TypeClause>,
    /// The columns of RETURNS TABLE.
    pub table: Option<Vec<ArgClause>>,
    /// Properties, each with where it stands.
    pub options: Vec<(RoutineOption, Span)>,
    /// The body is RETURN or BEGIN ATOMIC: where it stands in the text.
    pub inline: Option<(usize, usize)>,
}

/// What ALTER FUNCTION does.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum AlterRoutine {
    Options(Vec<(RoutineOption, Span)>),
    Rename(String),
    Owner(RoleName),
    SetSchema(String),
}

/// A statement about functions and procedures.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum RoutineCommand {
    Create(CreateRoutine),
    CreateAggregate(CreateAggregate),
    Alter {
        word: RoutineWord,
        target: RoutineRef,
        alter: AlterRoutine,
    },
    Drop {
        word: RoutineWord,
        if_exists: bool,
        targets: Vec<RoutineRef>,
        cascade: bool,
    },
    Comment {
        word: RoutineWord,
        target: RoutineRef,
        text: Option<String>,
    },
}

impl RoutineCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        use RoutineWord as W;
        match self {
            RoutineCommand::Create(create) if create.procedure => "CREATE PROCEDURE",
            RoutineCommand::Create(_) => "CREATE FUNCTION",
            RoutineCommand::CreateAggregate(_) => "CREATE AGGREGATE",
            RoutineCommand::Alter { word, .. } => match word {
                W::Function => "ALTER FUNCTION",
                W::Procedure => "ALTER PROCEDURE",
                W::Routine => "ALTER ROUTINE",
                W::Aggregate => "ALTER AGGREGATE",
            },
            RoutineCommand::Drop { word, .. } => match word {
                W::Function => "DROP FUNCTION",
                W::Procedure => "DROP PROCEDURE",
                W::Routine => "DROP ROUTINE",
                W::Aggregate => "DROP AGGREGATE",
            },
            RoutineCommand::Comment { .. } => "COMMENT",
        }
    }
}

const WORDS: [RoutineWord; 4] = [
    RoutineWord::Function,
    RoutineWord::Procedure,
    RoutineWord::Routine,
    RoutineWord::Aggregate,
];

/// True for tokens that begin a function whose body, BEGIN ATOMIC, has not ended: a semicolon there ends no statement.
pub(super) fn in_atomic_body(tokens: &[TokenWithSpan]) -> bool {
    if !is_word(tokens.first(), "create") {
        return false;
    }
    let at = if words(tokens, 1, &["or", "replace"]) {
        3
    } else {
        1
    };
    if !is_word(tokens.get(at), "function") && !is_word(tokens.get(at), "procedure") {
        return false;
    }
    let begin = (at..tokens.len()).find(|at| words(tokens, *at, &["begin", "atomic"]));
    let Some(begin) = begin else {
        return false;
    };
    let mut depth = 1_i32;
    for token in tokens.get(begin + 2..).unwrap_or_default() {
        if is_word(Some(token), "case") {
            depth += 1;
        } else if is_word(Some(token), "end") {
            depth -= 1;
        }
    }
    depth > 0
}

/// The statement, if it is about functions or procedures.
pub(super) fn routines(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    let mut w = Words {
        text,
        tokens,
        at: 0,
    };
    let command = if w.take("create") {
        let or_replace = w.take_all(&["or", "replace"]);
        let procedure = w.is("procedure");
        if w.take("aggregate") {
            RoutineCommand::CreateAggregate(w.create_aggregate(or_replace)?)
        } else if procedure || w.is("function") {
            w.at += 1;
            RoutineCommand::Create(w.create_routine(procedure, or_replace)?)
        } else {
            return Ok(None);
        }
    } else if w.take("alter") {
        let Some(word) = w.routine_word() else {
            return Ok(None);
        };
        let target = w.ref_of(word)?;
        let alter = w.alter_routine(word)?;
        RoutineCommand::Alter {
            word,
            target,
            alter,
        }
    } else if w.take("drop") {
        let Some(word) = w.routine_word() else {
            return Ok(None);
        };
        let if_exists = w.take_all(&["if", "exists"]);
        let targets = w.refs_of(word)?;
        let cascade = w.take("cascade");
        if !cascade {
            w.take("restrict");
        }
        RoutineCommand::Drop {
            word,
            if_exists,
            targets,
            cascade,
        }
    } else if w.take_all(&["comment", "on"]) {
        let Some(word) = w.routine_word() else {
            return Ok(None);
        };
        let target = w.ref_of(word)?;
        w.expect("is")?;
        let text = match w.take("null") {
            true => None,
            false => Some(w.string()?),
        };
        RoutineCommand::Comment { word, target, text }
    } else {
        return Ok(None);
    };
    w.end()?;
    if let RoutineCommand::Alter {
        word,
        target,
        alter: AlterRoutine::Owner(owner),
    } = command
    {
        return Ok(Some(StatementKind::Rights(Box::new(
            RightsCommand::RoutineOwner {
                word,
                target,
                owner,
            },
        ))));
    }
    Ok(Some(StatementKind::Routine(Box::new(command))))
}

/// The words of a property, and what they say.
type Wording = (&'static [&'static str], fn() -> RoutineOption);

/// Words that are the first of a type's two.
fn goes_on(first: &str, second: &str) -> bool {
    match first {
        "double" => second == "precision",
        "character" | "char" | "bit" => second == "varying",
        "national" => second == "character" || second == "char",
        "timestamp" | "time" => second == "with" || second == "without",
        "interval" => ["year", "month", "day", "hour", "minute", "second"].contains(&second),
        "setof" => true,
        _ => false,
    }
}

impl Words<'_> {
    fn routine_word(&mut self) -> Option<RoutineWord> {
        let word = WORDS.into_iter().find(|word| self.is(word.text()))?;
        self.at += 1;
        Some(word)
    }

    pub(super) fn here(&self) -> Span {
        self.tokens
            .get(self.at)
            .or_else(|| self.tokens.last())
            .map_or_else(Span::empty, |token| token.span)
    }

    fn word_at(&self, at: usize) -> Option<String> {
        match self.tokens.get(at).map(|t| &t.token) {
            Some(Token::Word(word)) if word.quote_style.is_none() => {
                Some(word.value.to_lowercase())
            }
            _ => None,
        }
    }

    fn is_any_word(&self, at: usize) -> bool {
        matches!(self.tokens.get(at).map(|t| &t.token), Some(Token::Word(_)))
    }

    /// Functions or procedures, each with its arguments or without.
    pub(super) fn routine_refs(&mut self) -> Result<Vec<RoutineRef>> {
        let mut all = vec![self.routine_ref()?];
        while self.take_token(&Token::Comma) {
            all.push(self.routine_ref()?);
        }
        Ok(all)
    }

    fn ref_of(&mut self, word: RoutineWord) -> Result<RoutineRef> {
        match word {
            RoutineWord::Aggregate => self.aggregate_ref(),
            _ => self.routine_ref(),
        }
    }

    fn refs_of(&mut self, word: RoutineWord) -> Result<Vec<RoutineRef>> {
        let mut all = vec![self.ref_of(word)?];
        while self.take_token(&Token::Comma) {
            all.push(self.ref_of(word)?);
        }
        Ok(all)
    }

    fn routine_ref(&mut self) -> Result<RoutineRef> {
        let name = self.object()?;
        let args = match self.token() {
            Some(Token::LParen) => Some(self.arg_list(false)?),
            _ => None,
        };
        Ok(RoutineRef { name, args })
    }

    /// Arguments in parentheses; of `columns`, those of RETURNS TABLE, each has a name.
    fn arg_list(&mut self, columns: bool) -> Result<Vec<ArgClause>> {
        if !self.take_token(&Token::LParen) {
            return Err(self.error());
        }
        let mut args = Vec::new();
        if !columns && self.take_token(&Token::RParen) {
            return Ok(args);
        }
        loop {
            args.push(match columns {
                true => {
                    let span = self.here();
                    let name = Some(self.ident()?);
                    ArgClause {
                        mode: ArgMode::Table,
                        name,
                        ty: self.type_clause()?,
                        default: None,
                        span,
                    }
                }
                false => self.arg()?,
            });
            if self.take_token(&Token::RParen) {
                return Ok(args);
            }
            if !self.take_token(&Token::Comma) {
                return Err(self.error());
            }
        }
    }

    fn arg_mode(&mut self) -> Option<ArgMode> {
        if self.take_all(&["in", "out"]) || self.take("inout") {
            return Some(ArgMode::InOut);
        }
        let modes = [
            ("in", ArgMode::In),
            ("out", ArgMode::Out),
            ("variadic", ArgMode::Variadic),
        ];
        modes
            .into_iter()
            .find(|(word, _)| self.take(word))
            .map(|(_, mode)| mode)
    }

    pub(super) fn arg(&mut self) -> Result<ArgClause> {
        let span = self.here();
        let mut mode = self.arg_mode();
        let mut name = None;
        let next_is_type = self.is_any_word(self.at + 1)
            && !is_word(self.tokens.get(self.at + 1), "default")
            && !words(self.tokens, self.at + 1, &["order", "by"])
            && match (self.word_at(self.at), self.word_at(self.at + 1)) {
                (Some(first), Some(second)) => !goes_on(&first, &second),
                _ => true,
            };
        if self.is_any_word(self.at) && next_is_type {
            name = Some(self.ident()?);
            if mode.is_none() {
                mode = self.arg_mode();
            }
        }
        let ty = self.type_clause()?;
        let mut default = None;
        if self.take("default")
            || self.take_token(&Token::Eq)
            || self.take_token(&Token::Assignment)
        {
            default = Some(self.by_grammar(|parser| parser.parse_expr())?);
        }
        Ok(ArgClause {
            mode: mode.unwrap_or(ArgMode::In),
            name,
            ty,
            default,
            span,
        })
    }

    fn type_clause(&mut self) -> Result<TypeClause> {
        let set = self.take("setof");
        let span = self.here();
        let data_type = self.data_type()?;
        let of_column =
            self.token() == Some(&Token::Mod) && is_word(self.tokens.get(self.at + 1), "type");
        if of_column {
            self.at += 2;
        }
        Ok(TypeClause {
            set,
            data_type,
            of_column,
            span,
        })
    }

    fn create_routine(&mut self, procedure: bool, or_replace: bool) -> Result<CreateRoutine> {
        let name = self.object()?;
        let args = self.arg_list(false)?;
        let (mut returns, mut table) = (None, None);
        if !procedure
            && self.is("returns")
            && !words(self.tokens, self.at, &["returns", "null", "on"])
        {
            self.at += 1;
            match self.is("table")
                && self.tokens.get(self.at + 1).map(|t| &t.token) == Some(&Token::LParen)
            {
                true => {
                    self.at += 1;
                    table = Some(self.arg_list(true)?);
                }
                false => returns = Some(self.type_clause()?),
            }
        }
        let mut options = Vec::new();
        let mut inline = None;
        while !self.done() {
            if self.is("return") || words(self.tokens, self.at, &["begin", "atomic"]) {
                inline = Some(self.inline_body()?);
                break;
            }
            let span = self.here();
            match self.routine_option(true)? {
                Some(option) => options.push((option, span)),
                None => return Err(self.error()),
            }
        }
        Ok(CreateRoutine {
            procedure,
            or_replace,
            name,
            args,
            returns,
            table,
            options,
            inline,
        })
    }

    /// RETURN or BEGIN ATOMIC, to the statement's end.
    fn inline_body(&mut self) -> Result<(usize, usize)> {
        let (first, last) = (self.tokens.get(self.at), self.tokens.last());
        let (Some(first), Some(last)) = (first, last) else {
            return Err(self.error());
        };
        let range = (
            byte_of(self.text, first.span.start),
            byte_of(self.text, last.span.end),
        );
        self.at = self.tokens.len();
        Ok(range)
    }

    fn amount(&mut self) -> Result<f64> {
        let negative = self.take_token(&Token::Minus);
        let value = match self.token() {
            Some(Token::Number(digits, _)) => digits.parse::<f64>().ok(),
            _ => None,
        };
        let value = value.ok_or_else(|| self.error())?;
        self.at += 1;
        Ok(if negative { -value } else { value })
    }

    /// The next property; of CREATE, or of ALTER.
    fn routine_option(&mut self, create: bool) -> Result<Option<RoutineOption>> {
        use RoutineOption as O;
        let plain: [Wording; 14] = [
            (&["immutable"], || O::Volatility(Volatility::Immutable)),
            (&["stable"], || O::Volatility(Volatility::Stable)),
            (&["volatile"], || O::Volatility(Volatility::Volatile)),
            (&["strict"], || O::Strict(true)),
            (&["returns", "null", "on", "null", "input"], || {
                O::Strict(true)
            }),
            (&["called", "on", "null", "input"], || O::Strict(false)),
            (&["security", "definer"], || O::Definer(true)),
            (&["security", "invoker"], || O::Definer(false)),
            (&["external", "security", "definer"], || O::Definer(true)),
            (&["external", "security", "invoker"], || O::Definer(false)),
            (&["leakproof"], || O::Leakproof(true)),
            (&["not", "leakproof"], || O::Leakproof(false)),
            (&["window"], || O::Window),
            (&["support"], || O::Support),
        ];
        for (words, make) in plain {
            if self.take_all(words) {
                let option = make();
                if matches!(option, O::Support) {
                    self.object()?;
                }
                return Ok(Some(option));
            }
        }
        if self.take("parallel") {
            return Ok(Some(O::Parallel(self.ident()?)));
        }
        if self.take("cost") {
            return Ok(Some(O::Cost(self.amount()?)));
        }
        if self.take("rows") {
            return Ok(Some(O::Rows(self.amount()?)));
        }
        if self.take("set") {
            return Ok(Some(O::Config(self.config()?)));
        }
        if !create && self.take("reset") {
            return Ok(Some(O::Config(match self.take("all") {
                true => ConfigClause::ResetAll,
                false => ConfigClause::Reset(self.setting_name()?),
            })));
        }
        if create && self.take("language") {
            let name = match self.token() {
                Some(Token::Word(_)) => self.ident()?,
                _ => self.string()?,
            };
            return Ok(Some(O::Language(name)));
        }
        if create && self.take("as") {
            let mut texts = vec![self.string()?];
            if self.take_token(&Token::Comma) {
                texts.push(self.string()?);
            }
            return Ok(Some(O::As(texts)));
        }
        if create && self.take("transform") {
            loop {
                self.expect("for")?;
                self.expect("type")?;
                self.data_type()?;
                if !self.take_token(&Token::Comma) {
                    return Ok(Some(O::Transform));
                }
            }
        }
        Ok(None)
    }

    /// What follows SET.
    fn config(&mut self) -> Result<ConfigClause> {
        let name = self.setting_name()?;
        if self.take_all(&["from", "current"]) {
            return Ok(ConfigClause::FromCurrent(name));
        }
        if !self.take("to") && !self.take_token(&Token::Eq) && name != "timezone" {
            return Err(self.error());
        }
        if self.take("default") {
            return Ok(ConfigClause::Reset(name));
        }
        let mut values = Vec::new();
        loop {
            let negative = self.take_token(&Token::Minus);
            let value = match self.token() {
                Some(Token::Number(digits, _)) => {
                    let digits = digits.clone();
                    self.at += 1;
                    digits
                }
                Some(Token::Word(_)) => self.ident()?,
                _ => self.string()?,
            };
            values.push(if negative { format!("-{value}") } else { value });
            if !self.take_token(&Token::Comma) {
                return Ok(ConfigClause::Set(name, values));
            }
        }
    }

    fn alter_routine(&mut self, word: RoutineWord) -> Result<AlterRoutine> {
        if self.take_all(&["rename", "to"]) {
            return Ok(AlterRoutine::Rename(self.ident()?));
        }
        if self.take_all(&["owner", "to"]) {
            return Ok(AlterRoutine::Owner(self.role()?));
        }
        if self.take_all(&["set", "schema"]) {
            return Ok(AlterRoutine::SetSchema(self.ident()?));
        }
        if word == RoutineWord::Aggregate {
            return Err(self.error());
        }
        if self.is("depends") || self.is("no") {
            return Err(SqlError::unsupported("DEPENDS ON EXTENSION"));
        }
        let mut options = Vec::new();
        loop {
            let span = self.here();
            match self.routine_option(false)? {
                Some(option) => options.push((option, span)),
                None => break,
            }
        }
        if options.is_empty() {
            return Err(self.error());
        }
        self.take("restrict");
        Ok(AlterRoutine::Options(options))
    }
}

/// 42601 for what is said twice.
pub fn redundant() -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")
}
