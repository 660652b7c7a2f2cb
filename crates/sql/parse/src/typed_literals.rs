//! `type '...'`, a literal of a type that the grammar library does not know to begin one: any name may be a type's.

use super::rewrite::is_word;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Types whose names are words of some grammar, or have been known for long.
const KNOWN: [&str; 34] = [
    "box",
    "bpchar",
    "cidr",
    "circle",
    "citext",
    "datemultirange",
    "daterange",
    "hstore",
    "inet",
    "int4multirange",
    "int4range",
    "int8multirange",
    "int8range",
    "jsonpath",
    "line",
    "lseg",
    "macaddr",
    "macaddr8",
    "money",
    "name",
    "nummultirange",
    "numrange",
    "oid",
    "path",
    "pg_lsn",
    "point",
    "polygon",
    "tsmultirange",
    "tsrange",
    "tstzmultirange",
    "tstzrange",
    "varbit",
    "xid",
    "xml",
];

/// What statements begin with that hold expressions and no options of the form `word 'text'`.
const HOLDERS: [&str; 13] = [
    "alter", "create", "delete", "execute", "explain", "insert", "merge", "prepare", "select",
    "table", "update", "values", "with",
];

/// Words that a value may stand behind; any other may be a value's name itself.
const BEFORE: [&str; 31] = [
    "all",
    "and",
    "any",
    "as",
    "between",
    "both",
    "by",
    "case",
    "default",
    "distinct",
    "else",
    "escape",
    "for",
    "from",
    "having",
    "ilike",
    "in",
    "leading",
    "like",
    "limit",
    "not",
    "offset",
    "on",
    "or",
    "returning",
    "select",
    "some",
    "then",
    "to",
    "when",
    "where",
];

/// The grammar takes any value behind the name of a geometric type for a literal of it, also an alias in quotes: the name is a name.
pub(super) fn plain_name(token: &mut Token) {
    if let Token::Word(word) = token
        && word.quote_style.is_none()
        && word.keyword != Keyword::NoKeyword
        && KNOWN
            .iter()
            .any(|known| word.value.eq_ignore_ascii_case(known))
    {
        word.keyword = Keyword::NoKeyword;
    }
}

/// `type '...'`, whose name ends at `at`, becomes the cast that it stands for; where it ends then.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>, at: usize) -> Option<usize> {
    let literal = matches!(
        tokens.get(at + 1).map(|t| &t.token),
        Some(Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_))
    );
    let Some(Token::Word(word)) = tokens.get(at).map(|t| &t.token) else {
        return None;
    };
    if !literal {
        return None;
    }
    let mut begin = at;
    while begin >= 2
        && tokens[begin - 1].token == Token::Period
        && matches!(tokens[begin - 2].token, Token::Word(_))
    {
        begin -= 2;
    }
    let known = word.quote_style.is_none()
        && begin == at
        && KNOWN
            .iter()
            .any(|known| word.value.eq_ignore_ascii_case(known));
    if !known {
        let is_name =
            begin < at || word.quote_style.is_some() || word.keyword == Keyword::NoKeyword;
        let holds = tokens.first().is_some_and(|t| t.token == Token::LParen)
            || HOLDERS.iter().any(|first| is_word(tokens.first(), first));
        let before = begin.checked_sub(1).and_then(|before| tokens.get(before));
        if !is_name || !holds || before.is_none_or(is_operand) {
            return None;
        }
    }
    let span = tokens[begin].span;
    let literal = tokens.remove(at + 1);
    let cast = TokenWithSpan {
        token: Token::DoubleColon,
        span,
    };
    tokens.splice(begin..begin, [literal, cast]);
    Some(at + 3)
}

/// Does a value end with this token? Then what follows begins no other.
fn is_operand(token: &TokenWithSpan) -> bool {
    match &token.token {
        Token::Word(_) => !BEFORE.iter().any(|word| is_word(Some(token), word)),
        Token::RParen
        | Token::RBracket
        | Token::Period
        | Token::DoubleColon
        | Token::Number(..)
        | Token::Placeholder(_)
        | Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_) => true,
        _ => false,
    }
}
