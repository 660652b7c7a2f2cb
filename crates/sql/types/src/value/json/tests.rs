//! Tests of jsonb's form: it prints what it was made from, orders as PostgreSQL's does, and damaged bytes are errors.

use super::*;
use crate::value::key::encode_key;
use crate::value::{Datum, compare, hash};
use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hasher};

fn jsonb(text: &str) -> Jsonb {
    Jsonb::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// In PostgreSQL's order, equal ones side by side on a line.
const ORDERED: &[&[&str]] = &[
    &["[]"],
    &["null"],
    &["\"\""],
    &["\"a\""],
    &["\"a\\u0001\""],
    &["\"aa\""],
    &["-1e30"],
    &["-1.5", "-1.50"],
    &["0", "0.0", "-0"],
    &["2"],
    &["10", "1e1"],
    &["false"],
    &["true"],
    &["[null]"],
    &["[\"b\"]"],
    &["[[]]"],
    &["[[null]]"],
    &["[{}]"],
    &["[null, 1]"],
    &["[1, 2]"],
    &["{}"],
    &["{\"a\": 1}", "{\"a\": 2, \"a\": 1.0}"],
    &["{\"a\": {}}"],
    &["{\"b\": null}"],
    &["{\"aa\": 1, \"b\": 1}"],
    &["{\"b\": 1, \"c\": 1}"],
];

#[test]
fn prints_what_it_was_made_from() {
    for (text, printed) in [
        ("{}", "{}"),
        ("[ ]", "[]"),
        (" null ", "null"),
        (
            "{\"bb\":1,\"a\":[true,{\"x\":null}],\"bb\":2}",
            "{\"a\": [true, {\"x\": null}], \"bb\": 2}",
        ),
        ("{\"aa\":1,\"b\":2}", "{\"b\": 2, \"aa\": 1}"),
        ("[1.50, 1e3, -0, 1E-2]", "[1.50, 1000, 0, 0.01]"),
        (
            "\"\\u00e4\\ud83d\\ude00\\/\\b\\n\\u0001\\\"\"",
            "\"ä😀/\\b\\n\\u0001\\\"\"",
        ),
    ] {
        let value = jsonb(text);
        assert_eq!(value.view().to_string(), printed);
        let again = Jsonb::from_stored(value.bytes()).unwrap();
        assert_eq!(again.view().to_string(), printed);
        assert_eq!(jsonb(printed).bytes(), value.bytes());
    }
}

#[test]
fn values_hashes_and_keys_order_alike() {
    let all: Vec<(usize, Datum)> = ORDERED
        .iter()
        .enumerate()
        .flat_map(|(i, equal)| equal.iter().map(move |text| (i, Datum::Jsonb(jsonb(text)))))
        .collect();
    let key = |d: &Datum| {
        let mut key = Vec::new();
        encode_key(crate::value::oid::JSONB, d, false, false, &mut key);
        encode_key(
            crate::value::oid::INT4,
            &Datum::Int4(7),
            false,
            false,
            &mut key,
        );
        key
    };
    let hashed = |d: &Datum| {
        let mut h = DefaultHasher::new();
        hash(d, &mut h);
        h.finish()
    };
    for (i, a) in &all {
        for (j, b) in &all {
            assert_eq!(compare(a, b), i.cmp(j), "{a:?} {b:?}");
            assert_eq!(key(a).cmp(&key(b)), i.cmp(j), "keys of {a:?} {b:?}");
            if i.cmp(j) == Ordering::Equal {
                assert_eq!(hashed(a), hashed(b), "{a:?} {b:?}");
            }
        }
    }
}

#[test]
fn members_and_elements_are_found() {
    let value = jsonb("{\"a\": [10, 20, 30], \"bb\": \"x\", \"b\": null}");
    let view = value.view();
    assert_eq!(view.len(), 3);
    let list = view.member("a").unwrap();
    assert_eq!(list.element_at(1).unwrap().to_string(), "20");
    assert_eq!(list.element_at(-1).unwrap().to_string(), "30");
    assert!(list.element_at(3).is_none() && list.element_at(-4).is_none());
    assert!(list.element_at(i64::MIN).is_none());
    assert_eq!(view.member("bb").unwrap().to_text().unwrap().unwrap(), "x");
    assert!(view.member("b").unwrap().to_text().unwrap().is_none());
    assert!(view.member("c").is_none() && list.member("a").is_none());
}

#[test]
fn damaged_bytes_are_errors() {
    let value = jsonb("{\"a\": [1, \"two\", [true]], \"b\": {\"c\": null}}");
    let bytes = value.bytes();
    for end in 0..bytes.len() {
        assert!(Jsonb::from_stored(&bytes[..end]).is_err(), "cut at {end}");
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut wrong = bytes.to_vec();
            wrong[at] ^= 1 << bit;
            // What passes is a value like any other: it prints and its text reads back.
            if let Ok(value) = Jsonb::from_stored(&wrong) {
                let text = value.view().to_string();
                assert_eq!(jsonb(&text).view().to_string(), text);
            }
        }
    }
    let swapped = |a: &str, b: &str| {
        let mut wrong = jsonb(&format!("{{\"{a}\": 1, \"{b}\": 2}}"))
            .bytes()
            .to_vec();
        let at = wrong
            .iter()
            .position(|byte| *byte == a.as_bytes()[0])
            .unwrap();
        wrong.swap(at, at + 1);
        wrong
    };
    assert!(
        Jsonb::from_stored(&swapped("x", "y")).is_err(),
        "keys out of order"
    );
}

#[test]
fn nesting_is_bounded() {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let run = move || {
        let deepest = jsonb(&deep(NESTING_MAX));
        assert_eq!(deepest.view().to_string().len(), 2 * NESTING_MAX);
        assert!(Jsonb::from_stored(deepest.bytes()).is_ok());
        let higher = JsonbValue::Array(vec![JsonbValue::View(deepest.view())]).finish();
        assert_eq!(higher.unwrap_err().code(), SqlState::STATEMENT_TOO_COMPLEX);
        let error = text::parse(&deep(100_000), false).unwrap_err();
        assert_eq!(error.code(), SqlState::STATEMENT_TOO_COMPLEX);
    };
    // As deep as the threads of the server are.
    let thread = std::thread::Builder::new().stack_size(16 << 20);
    thread.spawn(run).unwrap().join().unwrap();
}
