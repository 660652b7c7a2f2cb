//! Constraint syntax that the grammar library lacks: SET CONSTRAINTS, ALTER TABLE ... ALTER CONSTRAINT, and the columns of
//! ON DELETE SET NULL (...).

use super::fold;
use super::kind::StatementKind;
use super::position::error_at_token;
use super::rewrite::{is_word, words};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast::{self, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

/// SET CONSTRAINTS.
#[derive(Clone, Debug)]
pub struct SetConstraints {
    /// Which; `None` is ALL.
    pub names: Option<Vec<ast::ObjectName>>,
    /// DEFERRED, not IMMEDIATE.
    pub deferred: bool,
}

/// ALTER TABLE ... ALTER CONSTRAINT.
#[derive(Clone, Debug)]
pub struct AlterConstraint {
    /// IF EXISTS.
    pub if_exists: bool,
    /// Which table.
    pub table: ast::ObjectName,
    /// Which constraint.
    pub constraint: ast::Ident,
    /// DEFERRABLE and INITIALLY as written.
    pub characteristics: ast::ConstraintCharacteristics,
}

pub(super) fn error_at(text: &str, tokens: &[TokenWithSpan], at: usize) -> SqlError {
    match tokens.get(at) {
        Some(token) => error_at_token(text, token),
        None => error_at_token(text, &TokenWithSpan::new_eof()),
    }
}

pub(super) fn name(tokens: &[TokenWithSpan], at: &mut usize) -> Option<ast::ObjectName> {
    let mut parts = Vec::new();
    loop {
        match tokens.get(*at) {
            Some(TokenWithSpan {
                token: Token::Word(word),
                span,
            }) => parts.push(word.clone().into_ident(*span)),
            _ => return None,
        }
        *at += 1;
        if !matches!(tokens.get(*at).map(|t| &t.token), Some(Token::Period)) {
            return Some(ast::ObjectName::from(parts));
        }
        *at += 1;
    }
}

/// SET CONSTRAINTS { ALL | name, ... } { DEFERRED | IMMEDIATE }.
pub(super) fn set_constraints(text: &str, tokens: &[TokenWithSpan]) -> Result<StatementKind> {
    let mut at = 2;
    let names = if is_word(tokens.get(at), "all") {
        at += 1;
        None
    } else {
        let mut names = Vec::new();
        loop {
            names.push(name(tokens, &mut at).ok_or_else(|| error_at(text, tokens, at))?);
            if !matches!(tokens.get(at).map(|t| &t.token), Some(Token::Comma)) {
                break Some(names);
            }
            at += 1;
        }
    };
    let deferred = is_word(tokens.get(at), "deferred");
    if !(deferred || is_word(tokens.get(at), "immediate")) || tokens.len() > at + 1 {
        let wrong = if deferred || is_word(tokens.get(at), "immediate") {
            at + 1
        } else {
            at
        };
        return Err(error_at(text, tokens, wrong));
    }
    Ok(StatementKind::SetConstraints(Box::new(SetConstraints {
        names,
        deferred,
    })))
}

/// ALTER TABLE name ALTER CONSTRAINT name [NOT] DEFERRABLE INITIALLY ...; `None` for any other ALTER TABLE.
pub(super) fn alter_constraint(
    text: &str,
    tokens: &[TokenWithSpan],
) -> Result<Option<StatementKind>> {
    let mut at = 2;
    let if_exists = words(tokens, at, &["if", "exists"]);
    if if_exists {
        at += 2;
    }
    if is_word(tokens.get(at), "only") {
        at += 1;
    }
    let Some(table) = name(tokens, &mut at) else {
        return Ok(None);
    };
    if !words(tokens, at, &["alter", "constraint"]) {
        return Ok(None);
    }
    at += 2;
    let constraint = match tokens.get(at) {
        Some(TokenWithSpan {
            token: Token::Word(word),
            span,
        }) => word.clone().into_ident(*span),
        _ => return Err(error_at(text, tokens, at)),
    };
    at += 1;
    let mut characteristics = ast::ConstraintCharacteristics::default();
    while at < tokens.len() {
        if words(tokens, at, &["not", "deferrable"]) && characteristics.deferrable.is_none() {
            characteristics.deferrable = Some(false);
            at += 2;
        } else if is_word(tokens.get(at), "deferrable") && characteristics.deferrable.is_none() {
            characteristics.deferrable = Some(true);
            at += 1;
        } else if words(tokens, at, &["initially", "deferred"])
            && characteristics.initially.is_none()
        {
            characteristics.initially = Some(ast::DeferrableInitial::Deferred);
            at += 2;
        } else if words(tokens, at, &["initially", "immediate"])
            && characteristics.initially.is_none()
        {
            characteristics.initially = Some(ast::DeferrableInitial::Immediate);
            at += 2;
        } else if matches!(tokens.get(at).map(|t| &t.token), Some(Token::Comma)) {
            return Err(SqlError::unsupported(
                "ALTER CONSTRAINT together with other changes of a table",
            ));
        } else {
            return Err(error_at(text, tokens, at));
        }
    }
    Ok(Some(StatementKind::AlterConstraint(Box::new(
        AlterConstraint {
            if_exists,
            table,
            constraint,
            characteristics,
        },
    ))))
}

/// Column lists of ON DELETE SET NULL / SET DEFAULT, by the place of the referenced table's name.
pub(super) type SetColumns = Vec<(Location, String)>;

/// Ends each name in a list of columns that travels in one name: no name contains it.
pub const NAME_END: char = '\0';

/// Takes the column lists out of the tokens.
pub(super) fn take_set_columns(tokens: &mut Vec<TokenWithSpan>) -> Result<SetColumns> {
    let mut found = Vec::new();
    let mut referenced = None;
    let mut at = 0;
    while at < tokens.len() {
        let keyword = match &tokens[at].token {
            Token::Word(word) if word.quote_style.is_none() => word.keyword,
            _ => Keyword::NoKeyword,
        };
        if keyword == Keyword::REFERENCES {
            referenced = tokens.get(at + 1).map(|t| t.span.start);
        }
        let action = (keyword == Keyword::ON
            && (words(tokens, at + 2, &["set", "null"])
                || words(tokens, at + 2, &["set", "default"]))
            && matches!(tokens.get(at + 4).map(|t| &t.token), Some(Token::LParen)))
        .then_some(at + 4);
        if let (Some(open), Some(place)) = (action, referenced) {
            if !is_word(tokens.get(at + 1), "delete") {
                let kind = if is_word(tokens.get(at + 3), "null") {
                    "SET NULL"
                } else {
                    "SET DEFAULT"
                };
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("a column list with {kind} is only supported for ON DELETE actions"),
                ));
            }
            let mut list = String::new();
            let mut end = open + 1;
            while let Some(Token::Word(word)) = tokens.get(end).map(|t| &t.token) {
                list.push_str(&fold(&word.clone().into_ident(tokens[end].span)));
                list.push(NAME_END);
                end += 1;
                if !matches!(tokens.get(end).map(|t| &t.token), Some(Token::Comma)) {
                    break;
                }
                end += 1;
            }
            if !list.is_empty() && matches!(tokens.get(end).map(|t| &t.token), Some(Token::RParen))
            {
                tokens.drain(open..=end);
                found.push((place, list));
            }
        }
        at += 1;
    }
    Ok(found)
}

/// Puts the column lists into the tree, which has no place for them: they travel as the name of an index, which is
/// another dialect's.
pub(super) fn put_set_columns(statement: &mut Statement, lists: &SetColumns) {
    if lists.is_empty() {
        return;
    }
    let put = |key: &mut ast::ForeignKeyConstraint| {
        let place = match key.foreign_table.0.first() {
            Some(ast::ObjectNamePart::Identifier(ident)) => ident.span.start,
            _ => return,
        };
        if let Some((_, list)) = lists.iter().find(|(at, _)| *at == place) {
            key.index_name = Some(ast::Ident::new(list.clone()));
        }
    };
    let in_column = |column: &mut ast::ColumnDef| {
        for option in &mut column.options {
            if let ast::ColumnOption::ForeignKey(key) = &mut option.option {
                put(key);
            }
        }
    };
    match statement {
        Statement::CreateTable(table) => {
            table.columns.iter_mut().for_each(in_column);
            for constraint in &mut table.constraints {
                if let ast::TableConstraint::ForeignKey(key) = constraint {
                    put(key);
                }
            }
        }
        Statement::AlterTable(alter) => {
            for operation in &mut alter.operations {
                match operation {
                    ast::AlterTableOperation::AddColumn { column_def, .. } => in_column(column_def),
                    ast::AlterTableOperation::AddConstraint {
                        constraint: ast::TableConstraint::ForeignKey(key),
                        ..
                    } => put(key),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}
