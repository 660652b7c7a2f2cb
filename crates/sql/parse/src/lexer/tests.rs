//! Tests of the lexer, with PostgreSQL's answers.

use super::*;

/// The kinds of the tokens and what each says.
fn tokens(text: &str) -> Vec<(TokenKind, String)> {
    let tokens = Lexer::client(text, LexerOptions::default());
    assert!(tokens.error.is_none(), "{text}: {:?}", tokens.error);
    let said = |token: &Token| (token.kind, tokens.value(*token).into_owned());
    let all = tokens.tokens.iter().map(said);
    all.filter(|(kind, _)| *kind != TokenKind::End).collect()
}

fn values(text: &str) -> Vec<String> {
    tokens(text).into_iter().map(|(_, value)| value).collect()
}

fn error_with(text: &str, options: LexerOptions) -> (String, usize) {
    let tokens = Lexer::client(text, options);
    let error = tokens.error.unwrap_or_else(|| panic!("{text}"));
    assert_eq!(tokens.tokens.last().map(|t| t.kind), Some(TokenKind::Error));
    let fields = error.fields();
    (fields.message.clone(), fields.position.unwrap_or(0))
}

fn error(text: &str) -> (String, usize) {
    error_with(text, LexerOptions::default())
}

fn told(message: &str, position: usize) -> (String, usize) {
    (message.to_owned(), position)
}

#[test]
fn names_are_folded_and_quoted_ones_are_not() {
    assert_eq!(
        values(r#"Abc "Abc" "a""b" Ärger _x$1"#),
        ["abc", "Abc", "a\"b", "Ärger", "_x$1"]
    );
    assert_eq!(
        values(r#"U&"d\0061t\+000061" U&"d!0061" UESCAPE '!'"#),
        ["data", "da"]
    );
    assert_eq!(
        error(r#"SELECT """#),
        told(r#"zero-length delimited identifier at or near """""#, 8)
    );
    assert_eq!(
        error(r#"a "b"#),
        told(r#"unterminated quoted identifier at or near ""b""#, 3)
    );
    // No-break spaces are parts of names, as PostgreSQL has it.
    assert_eq!(values("a\u{a0}b"), ["a\u{a0}b"]);
}

#[test]
fn literals_of_all_forms() {
    assert_eq!(
        values("'it''s' E'a\\n\\x41\\101\\u0041\\'' $$a$b$$ $t$x$$y$t$"),
        ["it's", "a\nAAA'", "a$b", "x$$y"]
    );
    assert_eq!(values("'a'\n 'b' -- c\n'd'"), ["abd"]);
    assert_eq!(values("'a' 'b'"), ["a", "b"]);
    assert_eq!(values("'a' /* x */\n'b'"), ["a", "b"]);
    assert_eq!(values("E'\\uD83D\\uDE00' U&'\\D83D\\DE00'"), ["😀", "😀"]);
    assert_eq!(
        tokens("b'01' X'1f' N'x'"),
        [
            (TokenKind::BConst, "01".into()),
            (TokenKind::XConst, "1f".into()),
            (TokenKind::Keyword(Keyword::Nchar), "N".into()),
            (TokenKind::SConst, "x".into()),
        ]
    );
    assert_eq!(
        error("SELECT 'a"),
        told("unterminated quoted string at or near \"'a\"", 8)
    );
    assert_eq!(
        error("$a$ b"),
        told("unterminated dollar-quoted string at or near \"$a$ b\"", 1)
    );
    assert_eq!(
        error("E'\\uD83D'"),
        told("invalid Unicode surrogate pair at or near \"'\"", 9)
    );
    assert_eq!(error("E'\\u12'"), told("invalid Unicode escape", 3));
    assert_eq!(
        error("E'\\xff'").0,
        "invalid byte sequence for encoding \"UTF8\": 0xff"
    );
    assert_eq!(error("U&'\\zz'"), told("invalid Unicode escape", 4));
    assert_eq!(
        error("U&'a' UESCAPE 'ab'"),
        told("invalid Unicode escape character at or near \"'ab'\"", 15)
    );
    assert_eq!(
        error("U&'a' UESCAPE 1"),
        told(
            "UESCAPE must be followed by a simple string literal at or near \"1\"",
            15
        )
    );
}

#[test]
fn backslashes_where_literals_do_not_conform() {
    let options = LexerOptions {
        standard_conforming_strings: false,
    };
    let tokens = Lexer::client("'a\\tb'", options);
    assert_eq!(tokens.value(tokens.tokens[0]), "a\tb");
    assert_eq!(
        error_with("U&'a'", options).0,
        "unsafe use of string constant with Unicode escapes"
    );
}

#[test]
fn operators_end_as_in_postgresql() {
    use TokenKind as T;
    let kinds = |text: &str| {
        tokens(text)
            .into_iter()
            .map(|(kind, _)| kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(values("a<>-1"), ["a", "<>", "-", "1"]);
    assert_eq!(values("a@-1"), ["a", "@-", "1"]);
    assert_eq!(values("1+/* c */2*--x\n3"), ["1", "+", "2", "*", "3"]);
    assert_eq!(
        kinds("=> <= >= <> != :: := .. =+-"),
        [
            T::EqualsGreater,
            T::LessEquals,
            T::GreaterEquals,
            T::NotEquals,
            T::NotEquals,
            T::TypeCast,
            T::ColonEquals,
            T::DotDot,
            T::Equals,
            T::Plus,
            T::Minus,
        ]
    );
    assert_eq!(values("a /* b /* c */ d */ e"), ["a", "e"]);
    assert_eq!(
        error("a /* b"),
        told("unterminated /* comment at or near \"/* b\"", 3)
    );
}

#[test]
fn numbers_and_what_is_none() {
    use TokenKind as T;
    assert_eq!(
        tokens("1 2147483648 1. .5 1e3 1..2 $12"),
        [
            (T::IConst, "1".into()),
            (T::FConst, "2147483648".into()),
            (T::FConst, "1.".into()),
            (T::FConst, ".5".into()),
            (T::FConst, "1e3".into()),
            (T::IConst, "1".into()),
            (T::DotDot, "..".into()),
            (T::IConst, "2".into()),
            (T::Param, "$12".into()),
        ]
    );
    let junk = |near: &str| {
        told(
            &format!("trailing junk after numeric literal at or near \"{near}\""),
            1,
        )
    };
    for (text, near) in [
        ("1a", "1a"),
        ("0x1F", "0x1F"),
        ("1.5e", "1.5e"),
        ("1e+x", "1e+"),
        ("1_0", "1_0"),
        ("1e5$a$", "1e5$a$"),
    ] {
        assert_eq!(error(text), junk(near), "{text}");
    }
    assert_eq!(
        error("$1a"),
        told("trailing junk after parameter at or near \"$1a\"", 1)
    );
}

#[test]
fn words_are_other_tokens_by_what_follows() {
    use TokenKind as T;
    let first = |text: &str| tokens(text)[0].0;
    assert_eq!(first("NOT IN"), T::NotLa);
    assert_eq!(first("NOT x"), T::Keyword(Keyword::Not));
    assert_eq!(first("NULLS /* c */ LAST"), T::NullsLa);
    assert_eq!(first("WITH ORDINALITY"), T::WithLa);
    assert_eq!(first("WITH x"), T::Keyword(Keyword::With));
}

#[test]
fn marks_are_for_the_catalog_only() {
    let text = "\"\u{3}7:f\"";
    assert_eq!(
        error(text).0,
        "an identifier that begins with a control character is not supported"
    );
    assert!(Lexer::stored(text).error.is_none());
    assert_eq!(error("U&\"\\0001x\"").1, 1);
}

#[test]
fn names_are_cut_to_63_bytes() {
    let long = format!("{}ä{}", "n".repeat(62), "x".repeat(9));
    let cut = "n".repeat(62);
    let text = format!("{} \"{long}\" '{long}' U&\"{long}\"", long.to_uppercase());
    let all = Lexer::client(&text, LexerOptions::default());
    let values: Vec<_> = all.tokens.iter().map(|token| all.value(*token)).collect();
    let folded = format!("{cut}Ä");
    assert_eq!(values[1..4], [cut.as_str(), &long, &cut]);
    assert!(folded.starts_with(&*values[0]));
    let told: Vec<_> = all.truncated.iter().map(|name| name.truncated()).collect();
    assert_eq!(told, [&*values[0], &cut, &cut]);
    assert_eq!(*all.truncated[1].name, *long);
    // What is said by number is whole.
    let stored = format!("\"\u{3}1:{long}\"");
    let all = Lexer::stored(&stored);
    assert!(all.truncated.is_empty());
    assert_eq!(all.value(all.tokens[0]).len(), long.len() + 3);
}
