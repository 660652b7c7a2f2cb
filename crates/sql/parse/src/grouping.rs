//! GROUP BY: grouping sets travel as calls of functions that nobody can name, so that they may stand in each other.

use super::conflict_target::EXPRESSION_MARK;
use super::rewrite::{is_word, words};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// What a call in GROUP BY stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupingWord {
    /// GROUPING SETS.
    Sets,
    /// ROLLUP.
    Rollup,
    /// CUBE.
    Cube,
    /// `()`.
    Empty,
    /// GROUP BY DISTINCT; the first of the list.
    Distinct,
}

impl GroupingWord {
    const ALL: [(GroupingWord, &'static str); 5] = [
        (GroupingWord::Sets, "sets"),
        (GroupingWord::Rollup, "rollup"),
        (GroupingWord::Cube, "cube"),
        (GroupingWord::Empty, "empty"),
        (GroupingWord::Distinct, "distinct"),
    ];

    /// What a function's name stands for, if it is none.
    pub fn of(name: &str) -> Option<GroupingWord> {
        let name = name.strip_prefix(EXPRESSION_MARK)?;
        let mut all = GroupingWord::ALL.iter();
        all.find(|(_, word)| *word == name).map(|(word, _)| *word)
    }

    fn token(self) -> Token {
        let mut all = GroupingWord::ALL.iter();
        let word = all
            .find(|(word, _)| *word == self)
            .map_or("", |(_, word)| word);
        Token::Word(Word {
            value: format!("{EXPRESSION_MARK}{word}"),
            quote_style: Some('"'),
            keyword: Keyword::NoKeyword,
        })
    }
}

/// Rewrites the list of a GROUP BY whose first token stands at `at`.
pub(super) fn group_by(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let mut at = at;
    if is_word(tokens.get(at), "all") {
        tokens.remove(at);
    } else if is_word(tokens.get(at), "distinct") {
        let span = tokens[at].span;
        let with = |token| TokenWithSpan { token, span };
        let call = [
            with(GroupingWord::Distinct.token()),
            with(Token::LParen),
            with(Token::RParen),
            with(Token::Comma),
        ];
        tokens.splice(at..=at, call);
        at += 4;
    }
    loop {
        at = element(tokens, at);
        if !matches!(tokens.get(at).map(|t| &t.token), Some(Token::Comma)) {
            return;
        }
        at += 1;
    }
}

/// Rewrites one element; the place after it: a comma, a closing parenthesis, or what ends the list.
fn element(tokens: &mut Vec<TokenWithSpan>, at: usize) -> usize {
    let is = |tokens: &[TokenWithSpan], at: usize, token: Token| {
        tokens.get(at).is_some_and(|t| t.token == token)
    };
    if words(tokens, at, &["grouping", "sets"]) && is(tokens, at + 2, Token::LParen) {
        tokens.remove(at);
        tokens[at].token = GroupingWord::Sets.token();
        let mut inner = at + 2;
        loop {
            inner = element(tokens, inner);
            match tokens.get(inner).map(|t| &t.token) {
                Some(Token::Comma) => inner += 1,
                Some(Token::RParen) => return inner + 1,
                _ => return inner,
            }
        }
    }
    for (word, name) in [
        (GroupingWord::Rollup, "rollup"),
        (GroupingWord::Cube, "cube"),
    ] {
        if is_word(tokens.get(at), name) && is(tokens, at + 1, Token::LParen) {
            tokens[at].token = word.token();
        }
    }
    if is(tokens, at, Token::LParen) && is(tokens, at + 1, Token::RParen) {
        let span = tokens[at].span;
        let token = GroupingWord::Empty.token();
        tokens.insert(at, TokenWithSpan { token, span });
        return at + 3;
    }
    let mut depth = 0_usize;
    let mut at = at;
    while let Some(token) = tokens.get(at) {
        match &token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket if depth == 0 => break,
            Token::RParen | Token::RBracket => depth -= 1,
            Token::Comma if depth == 0 => break,
            _ => {}
        }
        at += 1;
    }
    at
}
