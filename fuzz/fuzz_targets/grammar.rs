//! The lexer and the grammar of SQL: any text, as one of a client and as one that the catalog keeps. Positions are
//! inside of it.
#![no_main]

use logstead_sql_parse::grammar;
use logstead_sql_parse::lexer::LexerOptions;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let characters = text.chars().count();
    for standard_conforming_strings in [true, false] {
        let options = LexerOptions {
            standard_conforming_strings,
        };
        match grammar::parse_with(&text, options) {
            Ok(statements) => {
                for statement in statements {
                    assert!(statement.start < statement.end && statement.end <= text.len());
                    assert!(text.get(statement.start..statement.end).is_some());
                    assert!(statement.clone() == statement);
                }
            }
            Err(error) => {
                let position = error.fields().position.unwrap_or(1);
                assert!((1..=characters + 1).contains(&position), "{error:?}");
            }
        }
    }
    let _any_answer_will_do = grammar::parse_stored(&text);
    let _any_answer_will_do = grammar::parse_stored_expr(&text);
    let _any_answer_will_do = grammar::parse_stored_type_name(&text);
});
