//! CREATE, ALTER and DROP AGGREGATE, and COMMENT ON it: what is not as of functions.

use super::ArgMode;
use super::position::byte_of;
use super::roles::Words;
use super::routines::{ArgClause, RoutineRef};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast::{self, ObjectName};
use sqlparser::tokenizer::Token;

/// What a property of CREATE AGGREGATE says.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the kinds of values that there are")]
pub enum AggregateValue {
    /// Nothing: it is named alone.
    None,
    Function(ObjectName),
    /// A type, and whether it is a word or a text `ANY`.
    Type(ast::DataType),
    Any,
    /// A number, a word or a text as it stands.
    Text(String),
    /// An operator, with its schema.
    Operator(Option<String>, String),
}

/// CREATE AGGREGATE.
#[derive(Clone, Debug)]
pub struct CreateAggregate {
    /// OR REPLACE.
    pub or_replace: bool,
    /// Its name.
    pub name: ObjectName,
    /// Its arguments; none in the old form, which has them in a property.
    pub args: Option<Vec<ArgClause>>,
    /// How many of them stand before ORDER BY.
    pub direct: Option<usize>,
    /// Properties by name.
    pub properties: Vec<(String, AggregateValue)>,
}

/// Properties that name a function.
const FUNCTIONS: [&str; 9] = [
    "sfunc",
    "sfunc1",
    "finalfunc",
    "combinefunc",
    "serialfunc",
    "deserialfunc",
    "msfunc",
    "minvfunc",
    "mfinalfunc",
];

/// Properties that name a type.
const TYPES: [&str; 4] = ["stype", "stype1", "mstype", "basetype"];

impl Words<'_> {
    /// An aggregate by name and arguments.
    pub(super) fn aggregate_ref(&mut self) -> Result<RoutineRef> {
        let name = self.object()?;
        let (args, _) = self.aggregate_args()?;
        Ok(RoutineRef {
            name,
            args: Some(args),
        })
    }

    /// Arguments of an aggregate, and how many stand before ORDER BY.
    fn aggregate_args(&mut self) -> Result<(Vec<ArgClause>, Option<usize>)> {
        if !self.take_token(&Token::LParen) {
            return Err(self.error());
        }
        if self.take_token(&Token::Mul) {
            return match self.take_token(&Token::RParen) {
                true => Ok((Vec::new(), None)),
                false => Err(self.error()),
            };
        }
        let mut args: Vec<ArgClause> = Vec::new();
        let mut direct = None;
        loop {
            if direct.is_none() && self.take_all(&["order", "by"]) {
                direct = Some(args.len());
            }
            let arg = self.arg()?;
            if arg.default.is_some() {
                return Err(self.error());
            }
            if matches!(arg.mode, ArgMode::Out | ArgMode::InOut) {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "aggregates cannot have output arguments",
                ));
            }
            args.push(arg);
            if self.take_token(&Token::RParen) {
                break;
            }
            let ordered = direct.is_none() && self.is("order");
            if !ordered && !self.take_token(&Token::Comma) {
                return Err(self.error());
            }
        }
        // A VARIADIC "any" before ORDER BY stands for what is behind it, too.
        if let Some(at) = direct
            && at > 0
            && let Some(last) = args.get(at - 1)
            && last.mode == ArgMode::Variadic
        {
            if args.len() != at + 1 || args.last().map(|a| a.mode) != Some(ArgMode::Variadic) {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "an ordered-set aggregate with a VARIADIC direct argument must have one VARIADIC aggregated argument of the same data type",
                ));
            }
            return Err(SqlError::unsupported(
                "an ordered-set aggregate with a VARIADIC direct argument",
            ));
        }
        Ok((args, direct))
    }

    pub(super) fn create_aggregate(&mut self, or_replace: bool) -> Result<CreateAggregate> {
        let name = self.object()?;
        // The old form has nothing but properties.
        let old = self.token() == Some(&Token::LParen)
            && self.tokens.get(self.at + 2).map(|t| &t.token) == Some(&Token::Eq);
        let (mut args, mut direct) = (None, None);
        if !old {
            let (given, behind) = self.aggregate_args()?;
            (args, direct) = (Some(given), behind);
        }
        if !self.take_token(&Token::LParen) {
            return Err(self.error());
        }
        let mut properties = Vec::new();
        loop {
            let name = self.ident()?;
            let value = match self.take_token(&Token::Eq) {
                true => self.aggregate_value(&name)?,
                false => AggregateValue::None,
            };
            properties.push((name, value));
            if self.take_token(&Token::RParen) {
                break;
            }
            if !self.take_token(&Token::Comma) {
                return Err(self.error());
            }
        }
        Ok(CreateAggregate {
            or_replace,
            name,
            args,
            direct,
            properties,
        })
    }

    fn aggregate_value(&mut self, name: &str) -> Result<AggregateValue> {
        let text = matches!(
            self.token(),
            Some(Token::SingleQuotedString(_) | Token::DollarQuotedString(_))
        );
        if TYPES.contains(&name) {
            let any = match self.token() {
                Some(Token::Word(word)) => word.value.eq_ignore_ascii_case("any"),
                Some(Token::SingleQuotedString(word)) => word.eq_ignore_ascii_case("any"),
                _ => false,
            };
            if any {
                self.at += 1;
                return Ok(AggregateValue::Any);
            }
            if text {
                let named = ast::Ident::with_quote('"', self.string()?);
                let named = ObjectName(vec![ast::ObjectNamePart::Identifier(named)]);
                return Ok(AggregateValue::Type(ast::DataType::Custom(
                    named,
                    Vec::new(),
                )));
            }
            return Ok(AggregateValue::Type(self.data_type()?));
        }
        if FUNCTIONS.contains(&name) {
            if text {
                let part = ast::Ident::with_quote('"', self.string()?);
                return Ok(AggregateValue::Function(ObjectName(vec![
                    ast::ObjectNamePart::Identifier(part),
                ])));
            }
            let name = self.object()?;
            // Types behind it would be a type's modifiers for PostgreSQL, which looks at the name only.
            if self.take_token(&Token::LParen) {
                let mut depth = 1_usize;
                while depth > 0 {
                    match self.token() {
                        Some(Token::LParen) => depth += 1,
                        Some(Token::RParen) => depth -= 1,
                        Some(_) => {}
                        None => return Err(self.error()),
                    }
                    self.at += 1;
                }
            }
            return Ok(AggregateValue::Function(name));
        }
        if text {
            return Ok(AggregateValue::Text(self.string()?));
        }
        // To the comma or parenthesis that ends it.
        let from = self.at;
        let mut depth = 0_usize;
        while let Some(token) = self.token() {
            match token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => break,
                Token::RParen => depth -= 1,
                Token::Comma if depth == 0 => break,
                _ => {}
            }
            self.at += 1;
        }
        let last = self.at.checked_sub(1).filter(|last| *last >= from);
        let (Some(first), Some(last)) = (
            self.tokens.get(from),
            last.and_then(|last| self.tokens.get(last)),
        ) else {
            return Err(self.error());
        };
        let range = byte_of(self.text, first.span.start)..byte_of(self.text, last.span.end);
        let written = self.text.get(range).unwrap_or_default();
        if name == "sortop" {
            let inner = written
                .get(..8)
                .filter(|w| w.eq_ignore_ascii_case("operator"));
            let inner = inner.and_then(|_| written.get(8..)?.trim().strip_prefix('('));
            let inner = inner.and_then(|inner| inner.strip_suffix(')'));
            return Ok(
                match inner.and_then(|inner| inner.trim().rsplit_once('.')) {
                    Some((schema, operator)) => AggregateValue::Operator(
                        Some(schema.trim().trim_matches('"').to_lowercase()),
                        operator.trim().to_owned(),
                    ),
                    None => AggregateValue::Operator(
                        None,
                        inner
                            .map_or(written, str::trim)
                            .trim_matches('"')
                            .to_owned(),
                    ),
                },
            );
        }
        Ok(AggregateValue::Text(written.to_owned()))
    }
}
