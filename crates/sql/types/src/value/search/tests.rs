//! What no golden script can ask: damaged bytes, the order of stored forms, texts made to be deep.

use super::parser::Parser;
use super::query::Query;
use super::query_parser;
use super::vector::{self, Vector};
use crate::TypeId;
use crate::value::{Datum, SqlType, binary_io, oid, text_io};

fn stored(d: &Datum) -> Vec<u8> {
    match d {
        Datum::TsVector(b) | Datum::TsQuery(b) => b.to_vec(),
        other => panic!("{other:?}"),
    }
}

fn text(d: &Datum, ty: TypeId) -> String {
    text_io::message_text(d, SqlType::of(ty), &text_io::OutputStyle::UTC)
}

const VECTORS: &[&str] = &[
    "",
    "'a'",
    "'a':1",
    "'a':1A,2 'b c':3B",
    "'it''s':16383 'é' '日':5C",
];
const QUERIES: &[&str] = &[
    "",
    "'a'",
    "'a':*AB & !( 'b' | 'c':D )",
    "'a' <-> 'b' & 'c' <3> 'd' <-> ( 'e' <-> 'f' )",
    "!!'it''s' | 'b' <0> 'c'",
];

#[test]
fn forms_give_back_what_they_were_made_of() {
    for (texts, ty) in [(VECTORS, oid::TSVECTOR), (QUERIES, oid::TSQUERY)] {
        for written in texts {
            let d = text_io::input(SqlType::of(ty), written, None).unwrap();
            assert_eq!(text(&d, ty), *written);
            let mut wire = Vec::new();
            binary_io::binary_output(&d, SqlType::of(ty), &mut wire).expect("short");
            let back = binary_io::binary_input(SqlType::of(ty), &wire).unwrap();
            assert_eq!(stored(&back), stored(&d), "{written}");
            for end in 0..wire.len() {
                assert!(binary_io::binary_input(SqlType::of(ty), &wire[..end]).is_err());
            }
        }
    }
}

#[test]
fn damaged_forms_are_errors() {
    for written in VECTORS {
        let good = stored(&vector::parse(written).unwrap());
        for end in 0..good.len() {
            assert!(
                Vector::of_stored(&good[..end]).is_err(),
                "{written} cut at {end}"
            );
        }
        for (at, bit) in (0..good.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            // Some of these are other values; none of them may panic.
            let _ = Vector::of_stored(&bad);
        }
    }
    for written in QUERIES {
        let good = stored(&query_parser::input(written).unwrap());
        for end in 0..good.len() {
            assert!(
                Query::of_stored(&good[..end]).is_err(),
                "{written} cut at {end}"
            );
        }
        for (at, bit) in (0..good.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let _ = Query::of_stored(&bad);
        }
    }
}

#[test]
fn no_text_is_too_deep_to_be_read() {
    for unit in [
        "a.", "a@", "a1@", "/a", "a-", "a-1", "<a '", "../", "a_", "1.", "aa.bb@", "&a",
    ] {
        let whole = unit.repeat(3000);
        let mut parser = Parser::new(&whole);
        let (mut bytes, mut tokens) = (0, 0);
        while let Some(token) = parser.token() {
            bytes += token.text.len();
            tokens += 1;
            assert!(!token.text.is_empty(), "{unit}");
        }
        assert!(bytes >= whole.len() && tokens <= 4 * whole.len(), "{unit}");
    }
    let chain = "a & ".repeat(20_000) + "a";
    let query = query_parser::input(&chain).unwrap();
    assert_eq!(text(&query, oid::TSQUERY).len(), 20_001 * 3 + 20_000 * 3);
    let deep = "(".repeat(100_000);
    assert_eq!(
        query_parser::input(&deep).unwrap_err().code().as_str(),
        "54001"
    );
}
