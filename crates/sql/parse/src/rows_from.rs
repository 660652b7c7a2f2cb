//! ROWS FROM (f(...), g(...)), which the grammar library lacks: it travels as a call, by a name that nobody can
//! write, of these calls. A column
//! definition list travels behind its function, as a call by another such name: of each column's name, and of NULL
//! cast to its type.

use super::rewrite::words;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

const MARK: &str = "\0rows from";
const COLUMNS: &str = "\0columns";

/// A function of ROWS FROM.
pub struct RowsFunction {
    /// The call.
    pub function: ast::Function,
    /// Its column definition list; empty if it has none.
    pub columns: Vec<ast::TableAliasColumnDef>,
}

fn word(value: &str, quoted: bool, keyword: Keyword) -> Token {
    Token::Word(Word {
        value: value.to_owned(),
        quote_style: quoted.then_some('"'),
        keyword,
    })
}

/// Rewrites ROWS FROM at `at`, if it stands there with its parenthesis.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let opens = tokens.get(at + 2).is_some_and(|t| t.token == Token::LParen);
    if !words(tokens, at, &["rows", "from"]) || !opens {
        return;
    }
    let mut depth = 0_usize;
    let mut place = at + 2;
    // In a column definition list, which is one parenthesis deeper.
    let mut defines = false;
    while let Some(found) = tokens.get(place) {
        let span = found.span;
        let spanned = |token| TokenWithSpan { token, span };
        match &found.token {
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => break,
            Token::RParen => {
                depth -= 1;
                defines &= depth > 1;
            }
            Token::Word(name) if depth == 1 && name.keyword == Keyword::AS => {
                let mark = spanned(word(COLUMNS, true, Keyword::NoKeyword));
                tokens.splice(place..=place, [spanned(Token::Comma), mark]);
                defines = true;
                place += 1;
            }
            _ => {}
        }
        let starts =
            defines && depth == 2 && matches!(tokens[place].token, Token::LParen | Token::Comma);
        place += 1;
        if starts {
            // Behind the column's name.
            let null = spanned(word("NULL", false, Keyword::NULL));
            let cast = [spanned(Token::Comma), null, spanned(Token::DoubleColon)];
            let behind = (place + 1).min(tokens.len());
            tokens.splice(behind..behind, cast);
            place = behind + 3;
        }
    }
    tokens[at].token = word(MARK, true, Keyword::NoKeyword);
    tokens.remove(at + 1);
}

/// The functions of ROWS FROM, if a call in FROM stands for it.
pub fn rows_from(
    name: &ast::ObjectName,
    args: &[ast::FunctionArg],
) -> Option<Result<Vec<RowsFunction>>> {
    is_named(name, MARK).then(|| functions(args))
}

fn is_named(name: &ast::ObjectName, mark: &str) -> bool {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => name.value == mark,
        _ => false,
    }
}

fn functions(args: &[ast::FunctionArg]) -> Result<Vec<RowsFunction>> {
    let wrong = || SqlError::new(SqlState::SYNTAX_ERROR, "syntax error");
    let mut functions: Vec<RowsFunction> = Vec::new();
    for arg in args {
        let function = match arg {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Function(
                function,
            ))) => function,
            _ => return Err(wrong()),
        };
        if !is_named(&function.name, COLUMNS) {
            functions.push(RowsFunction {
                function: function.clone(),
                columns: Vec::new(),
            });
            continue;
        }
        let defined = functions.last_mut().ok_or_else(wrong)?;
        defined.columns = definitions(function).ok_or_else(wrong)?;
    }
    Ok(functions)
}

/// The columns of a definition list.
fn definitions(list: &ast::Function) -> Option<Vec<ast::TableAliasColumnDef>> {
    let ast::FunctionArguments::List(list) = &list.args else {
        return None;
    };
    let pairs = list.args.chunks(2).map(|pair| match pair {
        [
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Identifier(name))),
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Cast {
                data_type,
                ..
            })),
        ] => Some(ast::TableAliasColumnDef {
            name: name.clone(),
            data_type: Some(data_type.clone()),
        }),
        _ => None,
    });
    pairs.collect()
}
