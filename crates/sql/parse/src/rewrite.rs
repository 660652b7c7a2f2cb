//! PostgreSQL syntax that the grammar library lacks: tokens are dropped or replaced before it sees them.

use super::alter_sequence::alter_sequence;
use super::conflict_target::conflict_target;
use super::kind::StatementKind;
use logstead_sql_types::error::{Result, SqlError};
use sqlparser::ast::{self, Statement, VisitMut, VisitorMut};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::ops::ControlFlow;

/// What was taken out of the tokens and must be put into the tree.
#[derive(Default)]
pub(super) struct Notes {
    /// OVERRIDING ... VALUE: of which INSERT INTO, counted from 0, and whether SYSTEM.
    overriding: Vec<(usize, bool)>,
    /// Some SELECT has no list.
    of_nothing: bool,
    no_data: bool,
    concurrently: bool,
    set_columns: super::constraints::SetColumns,
    /// [NOT] DEFERRABLE among the modes of a transaction.
    pub(super) deferrable: Option<bool>,
}

pub(super) fn is_word(token: Option<&TokenWithSpan>, word: &str) -> bool {
    matches!(token.map(|t| &t.token), Some(Token::Word(w)) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

pub(super) fn words(tokens: &[TokenWithSpan], at: usize, words: &[&str]) -> bool {
    words
        .iter()
        .enumerate()
        .all(|(i, word)| is_word(tokens.get(at + i), word))
}

/// Does ONLY stand in front of a table here? The grammar knows it in some statements.
fn names_table(tokens: &[TokenWithSpan], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).and_then(|before| tokens.get(before)) else {
        return false;
    };
    let behind = ["from", "join", "update", "into", "using"];
    let follows = before.token == Token::Comma
        || behind.iter().any(|word| is_word(Some(before), word))
        || (is_word(Some(before), "on") && super::index_commands::creates(tokens));
    follows
        && matches!(
            tokens.get(at + 1).map(|t| &t.token),
            Some(Token::Word(_) | Token::LParen)
        )
}

/// Statements recognised without the grammar.
pub(super) fn without_grammar(
    text: &str,
    tokens: &[TokenWithSpan],
) -> Result<Option<(Statement, StatementKind)>> {
    if let Some(kind) = super::roles::roles(text, tokens)? {
        return Ok(Some((Statement::UnlockTables, kind)));
    }
    if let Some(kind) = super::routines::routines(text, tokens)? {
        return Ok(Some((Statement::UnlockTables, kind)));
    }
    if let Some(command) = super::grants::rights(text, tokens)? {
        let kind = StatementKind::Rights(Box::new(command));
        return Ok(Some((Statement::UnlockTables, kind)));
    }
    if let Some(kind) = super::databases::databases(text, tokens)? {
        return Ok(Some((Statement::UnlockTables, kind)));
    }
    if let Some(kind) = super::extensions::extensions(text, tokens)? {
        return Ok(Some((Statement::UnlockTables, kind)));
    }
    if let Some(kind) = super::types::types(text, tokens)? {
        return Ok(Some((Statement::UnlockTables, kind)));
    }
    let command = if is_word(tokens.first(), "reindex") {
        super::index_commands::reindex(text, tokens)?
    } else if is_word(tokens.first(), "cluster") {
        super::index_commands::cluster(text, tokens)?
    } else if words(tokens, 0, &["alter", "index"]) {
        super::index_commands::alter(text, tokens)?
    } else {
        None
    };
    if let Some(command) = command {
        return Ok(Some((
            Statement::UnlockTables,
            StatementKind::Index(Box::new(command)),
        )));
    }
    if let Some(command) = super::views::command(text, tokens)? {
        return Ok(Some((
            Statement::UnlockTables,
            StatementKind::View(Box::new(command)),
        )));
    }
    if let Some(kind) = super::policies::policies(text, tokens)? {
        return Ok(Some((Statement::UnlockTables, kind)));
    }
    if let Some(kind) = super::triggers::triggers(text, tokens)? {
        return Ok(Some((Statement::UnlockTables, kind)));
    }
    if let Some(kind) = super::large_objects::large_objects(text, tokens)? {
        return Ok(Some((Statement::UnlockTables, kind)));
    }
    if let Some(kind) = super::comment::on_constraint(text, tokens)? {
        return Ok(Some((Statement::UnlockTables, kind)));
    }
    if let Some(kind) = super::maintenance::maintenance(text, tokens)? {
        return Ok(Some((Statement::UnlockTables, kind)));
    }
    if let Some(kind) = super::refused::refused(text, tokens)? {
        return Ok(Some((Statement::UnlockTables, kind)));
    }
    let tag = if is_word(tokens.first(), "reindex") {
        "REINDEX"
    } else if is_word(tokens.first(), "cluster") {
        "CLUSTER"
    } else if is_word(tokens.first(), "checkpoint") {
        return match tokens.get(1) {
            Some(token) => Err(super::position::error_at_token(text, token)),
            None => Ok(Some((Statement::UnlockTables, StatementKind::Checkpoint))),
        };
    } else if let Some(kind) = super::do_block::do_block(text, tokens)? {
        return Ok(Some((Statement::UnlockTables, kind)));
    } else if words(tokens, 0, &["alter", "sequence"]) {
        let alter = alter_sequence(text, &tokens[2..])?;
        return Ok(Some((
            Statement::UnlockTables,
            StatementKind::AlterSequence(Box::new(alter)),
        )));
    } else if words(tokens, 0, &["set", "constraints"]) && tokens.len() > 2 {
        let kind = super::constraints::set_constraints(text, tokens)?;
        return Ok(Some((Statement::UnlockTables, kind)));
    } else if words(tokens, 0, &["alter", "table"]) {
        let kind = super::constraints::alter_constraint(text, tokens)?;
        return Ok(kind.map(|kind| (Statement::UnlockTables, kind)));
    } else if let Some(fetch) = super::cursor::fetch(text, tokens)? {
        let kind = StatementKind::Fetch(Box::new(fetch));
        return Ok(Some((Statement::UnlockTables, kind)));
    } else {
        return Ok(None);
    };
    Ok(Some((
        Statement::UnlockTables,
        StatementKind::Maintenance(tag),
    )))
}

/// Where a TABLE command stands: at the beginning, or behind the parenthesis that ends WITH.
fn table_query(tokens: &[TokenWithSpan]) -> Option<usize> {
    if is_word(tokens.first(), "table") {
        return Some(0);
    }
    if !is_word(tokens.first(), "with") {
        return None;
    }
    let behind =
        |pair: &[TokenWithSpan]| pair[0].token == Token::RParen && is_word(pair.get(1), "table");
    tokens.windows(2).position(behind).map(|at| at + 1)
}

/// Words that the grammar takes for types of other products: here they are names like others, of domains say.
const NO_TYPES_HERE: &[Keyword] = &[
    Keyword::BIGDECIMAL,
    Keyword::BIGNUMERIC,
    Keyword::BLOB,
    Keyword::BYTES,
    Keyword::CLOB,
    Keyword::DATE32,
    Keyword::DATETIME,
    Keyword::DATETIME64,
    Keyword::ENUM16,
    Keyword::ENUM8,
    Keyword::FIXEDSTRING,
    Keyword::FLOAT32,
    Keyword::FLOAT64,
    Keyword::HUGEINT,
    Keyword::INT128,
    Keyword::INT16,
    Keyword::INT256,
    Keyword::INT32,
    Keyword::INT64,
    Keyword::LONGBLOB,
    Keyword::LONGTEXT,
    Keyword::LOWCARDINALITY,
    Keyword::MAP,
    Keyword::MEDIUMBLOB,
    Keyword::MEDIUMINT,
    Keyword::MEDIUMTEXT,
    Keyword::NESTED,
    Keyword::NULLABLE,
    Keyword::NVARCHAR,
    Keyword::SIGNED,
    Keyword::STRING,
    Keyword::STRUCT,
    Keyword::TIMESTAMP_NTZ,
    Keyword::TINYBLOB,
    Keyword::TINYINT,
    Keyword::TINYTEXT,
    Keyword::TUPLE,
    Keyword::UBIGINT,
    Keyword::UHUGEINT,
    Keyword::UINT128,
    Keyword::UINT16,
    Keyword::UINT256,
    Keyword::UINT32,
    Keyword::UINT64,
    Keyword::UINT8,
    Keyword::UNSIGNED,
    Keyword::USMALLINT,
    Keyword::UTINYINT,
    Keyword::VARBINARY,
];

/// `schema.word (`: no special form, whatever the word is by itself.
fn is_qualified_call(tokens: &[TokenWithSpan], at: usize) -> bool {
    at > 0
        && tokens[at - 1].token == Token::Period
        && tokens.get(at + 1).is_some_and(|t| t.token == Token::LParen)
}

/// Applies the rewrites. Cheap when there is nothing to do: one pass over the tokens.
pub(super) fn rewrite(
    text: &str,
    mut tokens: Vec<TokenWithSpan>,
) -> Result<(Vec<TokenWithSpan>, Notes)> {
    super::lexing::plain_literals(&mut tokens);
    super::parentheses::rewrite(&mut tokens);
    super::whole_rows::rewrite(&mut tokens);
    super::sequence_options::take_names(&mut tokens);
    super::sequence_options::sort_all(&mut tokens);
    super::generated::rewrite(text, &mut tokens)?;
    super::column_clauses::rewrite(text, &mut tokens)?;
    super::nulls_distinct::rewrite(&mut tokens);
    super::set_schema::rewrite(&mut tokens);
    super::storage_parameters::rewrite(&mut tokens)?;
    super::alter_options::rewrite(&mut tokens);
    super::merge::rewrite(text, &mut tokens)?;
    super::like::rewrite(text, &mut tokens)?;
    super::targets::rewrite(text, &mut tokens);
    let mut notes = Notes {
        no_data: super::create_as::rewrite(&mut tokens),
        set_columns: super::constraints::take_set_columns(&mut tokens)?,
        deferrable: take_deferrable(&mut tokens),
        ..Notes::default()
    };
    if let Some(at) = table_query(&tokens) {
        select_all(&mut tokens, at);
    }
    // The name of a setting, as SET and SHOW have it.
    if words(&tokens, 0, &["reset", "time", "zone"]) {
        tokens.remove(2);
        tokens[1].token = Token::make_word("timezone", None);
    }
    if words(&tokens, 0, &["set", "local", "session", "authorization"]) {
        tokens[2].token = Token::make_word("session_authorization", None);
        tokens[3].token = Token::make_word("to", None);
    }
    super::spellings::rewrite(&mut tokens);
    let mut inserts = 0_usize;
    let mut at = 0;
    while at < tokens.len() {
        if is_word(tokens.get(at), "exclude") && super::windows::exclusion(&mut tokens, at) {
            continue;
        }
        if let Some(behind) = super::typed_literals::rewrite(&mut tokens, at) {
            at = behind;
            continue;
        }
        super::typed_literals::plain_name(&mut tokens[at].token);
        let Token::Word(word) = &tokens[at].token else {
            if tokens[at].token == Token::Assignment {
                // The older way to name an argument.
                tokens[at].token = Token::RArrow;
            }
            // (record).*
            if matches!(tokens[at].token, Token::RParen | Token::RBracket)
                && tokens.get(at + 1).map(|t| &t.token) == Some(&Token::Period)
                && let Some(star) = tokens.get_mut(at + 2)
                && star.token == Token::Mul
            {
                star.token = Token::Word(Word {
                    value: STAR_MARK.to_owned(),
                    quote_style: Some('"'),
                    keyword: Keyword::NoKeyword,
                });
            }
            at += 1;
            continue;
        };
        if word.quote_style.is_some() {
            at += 1;
            continue;
        }
        if word.keyword != Keyword::NoKeyword && is_qualified_call(&tokens, at) {
            let value = word.value.to_ascii_lowercase();
            tokens[at].token = Token::Word(Word {
                value,
                quote_style: Some('"'),
                keyword: Keyword::NoKeyword,
            });
            at += 1;
            continue;
        }
        if NO_TYPES_HERE.contains(&word.keyword) {
            let Token::Word(word) = &mut tokens[at].token else {
                return Err(SqlError::internal("a word that is none"));
            };
            word.keyword = Keyword::NoKeyword;
            at += 1;
            continue;
        }
        match word.keyword {
            Keyword::GROUP if words(&tokens, at + 1, &["by"]) => {
                super::grouping::group_by(&mut tokens, at + 2);
            }
            Keyword::USING => super::aliases::of_using(&mut tokens, at),
            Keyword::AS => super::aliases::of_definitions(&mut tokens, at),
            Keyword::LIKE | Keyword::ILIKE
                if ["any", "some", "all"]
                    .iter()
                    .any(|word| is_word(tokens.get(at + 1), word))
                    && tokens.get(at + 2).is_some_and(|t| t.token == Token::LParen) =>
            {
                at = super::clauses::like_array(&mut tokens, at);
            }
            // No table has OIDs any more.
            Keyword::WITHOUT
                if is_word(tokens.get(at + 1), "oids") && words(&tokens, 0, &["create"]) =>
            {
                tokens.drain(at..at + 2);
                continue;
            }
            Keyword::FETCH => super::clauses::fetch_count(&mut tokens, at),
            Keyword::SUBSTRING => similar_substring(&mut tokens, at + 1),
            Keyword::TRIM => trim_from(&mut tokens, at + 1),
            Keyword::TABLE if is_table_query(&tokens, at) => {
                select_all(&mut tokens, at);
            }
            Keyword::INSERT if is_word(tokens.get(at + 1), "into") => inserts += 1,
            Keyword::SELECT if words(&tokens, at + 1, &["distinct", "from"]) => {
                return Err(super::position::error_at_token(text, &tokens[at + 2]));
            }
            Keyword::SELECT if super::nothing::is_next(&tokens, at + 1) => {
                super::nothing::mark(&mut tokens, at + 1);
                notes.of_nothing = true;
            }
            Keyword::WHERE => super::current_of::rewrite(text, &mut tokens, at)?,
            Keyword::FOR => super::locking::rewrite(&mut tokens, at + 1),
            Keyword::ROWS | Keyword::RANGE | Keyword::GROUPS
                if !words(&tokens, at, &["rows", "from"]) =>
            {
                super::windows::literal_offsets(&mut tokens, at);
            }
            // INTERVAL (p) 'text' is 'text'::interval(p).
            Keyword::INTERVAL
                if matches!(
                    tokens.get(at + 1..at + 5).unwrap_or_default(),
                    [open, digits, close, text]
                        if open.token == Token::LParen
                            && matches!(digits.token, Token::Number(..))
                            && close.token == Token::RParen
                            && matches!(text.token, Token::SingleQuotedString(_))
                ) =>
            {
                let text = tokens.remove(at + 4);
                let span = text.span;
                let token = Token::DoubleColon;
                tokens.splice(at..at, [text, TokenWithSpan { token, span }]);
                at += 5;
            }
            Keyword::CONCURRENTLY if words(&tokens, 0, &["drop", "index"]) && at == 2 => {
                notes.concurrently = true;
                tokens.remove(at);
                continue;
            }
            // `a OPERATOR(pg_catalog.=) ANY (...)`, which the grammar knows without a schema alone.
            Keyword::OPERATOR => own_operator(&mut tokens, at),
            Keyword::ON if words(&tokens, at + 1, &["conflict"]) => {
                at += super::insert_source::end_list(&mut tokens, at);
                conflict_target(text, &mut tokens, at + 2)
            }
            Keyword::BETWEEN if words(&tokens, at + 1, &["symmetric"]) => {
                // Travels as an operator that nobody applies twice; the binder knows it.
                tokens[at + 1].token = Token::AtDashAt;
                let mark = tokens[at + 1].clone();
                tokens.insert(at + 1, mark);
                at += 2;
            }
            Keyword::BETWEEN if words(&tokens, at + 1, &["asymmetric"]) => {
                tokens.remove(at + 1);
            }
            _ if at > 0
                && tokens[at - 1].token == Token::RParen
                && super::clauses::is_graph(&tokens, at) =>
            {
                let clause = word.value.to_uppercase();
                let error = SqlError::unsupported(format!("{clause} of a recursive query"));
                return Err(error.at(super::span_position(text, tokens[at].span)));
            }
            Keyword::ROWS => super::rows_from::rewrite(&mut tokens, at),
            _ if word.value.eq_ignore_ascii_case("overriding")
                && is_word(tokens.get(at + 2), "value") =>
            {
                let system = is_word(tokens.get(at + 1), "system");
                if system || is_word(tokens.get(at + 1), "user") {
                    notes.overriding.push((inserts.saturating_sub(1), system));
                    tokens.drain(at..at + 3);
                    continue;
                }
            }
            // No table has others below it.
            _ if word.value.eq_ignore_ascii_case("only") && names_table(&tokens, at) => {
                tokens.remove(at);
                if tokens.get(at).is_some_and(|t| t.token == Token::LParen)
                    && let Some(length) = tokens[at..].iter().position(|t| t.token == Token::RParen)
                {
                    tokens.remove(at + length);
                    tokens.remove(at);
                }
                continue;
            }
            _ => {
                if mark_variadic(&mut tokens, at) {
                    at += 1;
                }
            }
        }
        at += 1;
    }
    Ok((tokens, notes))
}

/// TABLE t is SELECT * FROM t.
fn select_all(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let Some(span) = tokens.get(at).map(|t| t.span) else {
        return;
    };
    let word = |word: &str, keyword| TokenWithSpan {
        token: Token::Word(Word {
            value: word.to_owned(),
            quote_style: None,
            keyword,
        }),
        span,
    };
    let star = TokenWithSpan {
        token: Token::Mul,
        span,
    };
    tokens.splice(
        at..=at,
        [
            word("SELECT", Keyword::SELECT),
            star,
            word("FROM", Keyword::FROM),
        ],
    );
}

/// Whether TABLE at `at` begins a query within another one.
fn is_table_query(tokens: &[TokenWithSpan], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).and_then(|before| tokens.get(before)) else {
        return false;
    };
    let begins = before.token == Token::LParen
        || ["union", "intersect", "except"]
            .iter()
            .any(|word| is_word(Some(before), word))
        || (is_word(Some(before), "all")
            && at > 1
            && ["union", "intersect", "except"]
                .iter()
                .any(|word| is_word(tokens.get(at - 2), word)));
    begins && matches!(tokens.get(at + 1).map(|t| &t.token), Some(Token::Word(_)))
}

/// The same in an expression alone.
pub(super) fn trims_from(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if is_word(tokens.get(at), "trim") {
            trim_from(tokens, at + 1);
        }
        at += 1;
    }
}

/// `trim(BOTH FROM text)` and `trim(FROM text)`: the grammar library wants FROM behind characters only.
fn trim_from(tokens: &mut Vec<TokenWithSpan>, open: usize) {
    if tokens.get(open).is_none_or(|t| t.token != Token::LParen) {
        return;
    }
    let side = ["both", "leading", "trailing"]
        .iter()
        .any(|side| is_word(tokens.get(open + 1), side));
    let from = open + 1 + usize::from(side);
    if is_word(tokens.get(from), "from") {
        tokens.remove(from);
    }
}

/// `substring(text SIMILAR pattern ESCAPE character)` is a call of three arguments.
fn similar_substring(tokens: &mut [TokenWithSpan], open: usize) {
    if tokens.get(open).is_none_or(|t| t.token != Token::LParen) {
        return;
    }
    let mut depth = 0_usize;
    let mut similar = None;
    for at in open..tokens.len() {
        match &tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => return,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Word(_) if depth == 1 => {
                let word = Some(&tokens[at]);
                if is_word(word, "similar") && !is_word(tokens.get(at + 1), "to") {
                    similar = Some(at);
                } else if is_word(word, "escape")
                    && let Some(similar) = similar
                {
                    tokens[similar].token = Token::Comma;
                    tokens[at].token = Token::Comma;
                    return;
                }
            }
            _ => {}
        }
    }
}

/// The name that an argument has which is VARIADIC.
const VARIADIC_MARK: &str = "\0variadic";

/// VARIADIC before an argument travels as the argument's name. False if it is not what stands there.
fn mark_variadic(tokens: &mut Vec<TokenWithSpan>, at: usize) -> bool {
    let is_variadic = matches!(
        tokens.get(at).map(|t| &t.token),
        Some(Token::Word(word)) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("variadic")
    );
    let before = tokens.get(at.wrapping_sub(1)).map(|t| &t.token);
    if !is_variadic || !matches!(before, Some(Token::LParen | Token::Comma)) {
        return false;
    }
    let span = tokens[at].span;
    let name = Token::Word(Word {
        value: VARIADIC_MARK.to_owned(),
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    });
    let marked = [name, Token::RArrow].map(|token| TokenWithSpan { token, span });
    tokens.splice(at..=at, marked);
    true
}

/// The same of all arguments of an expression that was kept as text.
pub(super) fn mark_variadics(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        mark_variadic(tokens, at);
        at += 1;
    }
}

/// The arguments in front of one that is VARIADIC, which is the last, and its array.
pub fn variadic(args: &[ast::FunctionArg]) -> Option<(&[ast::FunctionArg], &ast::Expr)> {
    let (last, rest) = args.split_last()?;
    match last {
        ast::FunctionArg::Named {
            name,
            arg: ast::FunctionArgExpr::Expr(array),
            ..
        }
        | ast::FunctionArg::ExprNamed {
            name: ast::Expr::Identifier(name),
            arg: ast::FunctionArgExpr::Expr(array),
            ..
        } if name.value == VARIADIC_MARK => Some((rest, array)),
        _ => None,
    }
}

/// The field that stands for all fields of a record, `(record).*`: the grammar has it of names only.
pub(crate) const STAR_MARK: &str = "\0*";

/// The record whose fields an expression stands for, if it is `(record).*`.
pub fn all_fields(expr: &ast::Expr) -> Option<ast::Expr> {
    let ast::Expr::CompoundFieldAccess { root, access_chain } = expr else {
        return None;
    };
    let (last, rest) = access_chain.split_last()?;
    match last {
        ast::AccessExpr::Dot(ast::Expr::Identifier(field)) if field.value == STAR_MARK => {}
        _ => return None,
    }
    Some(match rest {
        [] => ast::Expr::clone(root),
        rest => ast::Expr::CompoundFieldAccess {
            root: root.clone(),
            access_chain: rest.to_vec(),
        },
    })
}

/// Takes [NOT] DEFERRABLE out of a transaction's modes, with the comma that parts it from its neighbour. The last one
/// counts.
fn take_deferrable(tokens: &mut Vec<TokenWithSpan>) -> Option<bool> {
    let modes = [
        &["begin"] as &[&str],
        &["start", "transaction"],
        &["set", "transaction"],
        &["set", "session", "characteristics"],
    ];
    let first = modes.iter().find(|first| words(tokens, 0, first))?;
    let mut deferrable = None;
    let mut at = 1;
    while at < tokens.len() {
        let length = if words(tokens, at, &["deferrable"]) {
            1
        } else if words(tokens, at, &["not", "deferrable"]) {
            2
        } else {
            at += 1;
            continue;
        };
        deferrable = Some(length == 1);
        tokens.drain(at..at + length);
        let comma = |at: Option<usize>| {
            at.and_then(|at| tokens.get(at))
                .is_some_and(|t| t.token == Token::Comma)
        };
        if comma(Some(at)) && at + 1 < tokens.len() {
            tokens.remove(at);
        } else if comma(at.checked_sub(1)) && at == tokens.len() && at > first.len() + 1 {
            at -= 1;
            tokens.remove(at);
        }
    }
    deferrable
}

/// Puts into the tree what [`rewrite`] took out. The tree has no place for OVERRIDING, so two flags of other dialects
/// carry it: `overwrite` is OVERRIDING SYSTEM VALUE, `ignore` OVERRIDING USER VALUE. So does `transient` WITH NO DATA, and
/// `purge` DROP INDEX CONCURRENTLY.
pub(super) fn apply_notes(statement: &mut Statement, notes: &Notes) {
    if !notes.overriding.is_empty() {
        let mut overriding = Overriding {
            notes: &notes.overriding,
            inserts: 0,
        };
        let _all = VisitMut::visit(statement, &mut overriding);
    }
    if notes.of_nothing {
        super::nothing::unmark(statement);
    }
    if let Statement::CreateTable(table) = statement {
        table.transient = notes.no_data;
    }
    if let Statement::Drop { purge, .. } = statement {
        *purge = notes.concurrently;
    }
    super::constraints::put_set_columns(statement, &notes.set_columns);
}

/// Puts OVERRIDING ... VALUE where the binder looks for it.
struct Overriding<'n> {
    notes: &'n [(usize, bool)],
    inserts: usize,
}

impl VisitorMut for Overriding<'_> {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        if let Statement::Insert(insert) = statement {
            let own = self.notes.iter().filter(|(of, _)| *of == self.inserts);
            for (_, system) in own {
                insert.overwrite |= system;
                insert.ignore |= !system;
            }
            self.inserts += 1;
        }
        ControlFlow::Continue(())
    }
}

/// Takes the schema of an operator in front of ANY, SOME or ALL out, if that is PostgreSQL's own.
fn own_operator(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let is = |at: usize, token: &Token| tokens.get(at).is_some_and(|t| t.token == *token);
    let quantified = ["any", "some", "all"];
    if is(at + 1, &Token::LParen)
        && is_word(tokens.get(at + 2), "pg_catalog")
        && is(at + 3, &Token::Period)
        && is(at + 5, &Token::RParen)
        && quantified
            .iter()
            .any(|word| is_word(tokens.get(at + 6), word))
    {
        tokens.remove(at + 5);
        tokens.drain(at..at + 4);
    }
}
