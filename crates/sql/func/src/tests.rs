//! Tests of the registry: rows point at each other, resolution finds what PostgreSQL's rules find.

use super::*;
use logstead_sql_types::TypeId;
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{info, oid};
use std::collections::HashSet;

#[test]
fn rows_point_at_each_other() {
    for o in all_operators() {
        let f = function_by_oid(o.function)
            .unwrap_or_else(|| panic!("operator {} has no function", o.oid));
        assert_eq!(
            f.args.len() + usize::from(f.variadic.is_some()),
            if o.left.is_none() { 1 } else { 2 },
            "operator {} {}",
            o.oid,
            o.name
        );
        for other in [o.commutator, o.negator] {
            assert!(other == 0 || operator_by_oid(other).is_some());
        }
    }
    for c in cast_rows() {
        assert!(
            c.function
                .is_none_or(|function| function_by_oid(function).is_some()),
            "cast {} to {}",
            c.source,
            c.target
        );
    }
    let mut seen = HashSet::new();
    for f in all_functions() {
        assert!(
            seen.insert((f.name, f.args, f.variadic)),
            "{} twice",
            f.name
        );
        for t in f.args.iter().chain(&f.variadic).chain([&f.result]) {
            assert!(info::by_oid(*t).is_some(), "{} names type {t}", f.name);
        }
    }
}

#[test]
fn operators_on_operands_in_place_are_plain() {
    // Nobody asks them whether they are: see `exec::eval`.
    for f in all_functions().filter(|f| matches!(f.body, FunctionImpl::Pair(_))) {
        let plain = f.strict && f.volatility == Volatility::Immutable && f.args.len() == 2;
        assert!(plain, "{}", f.name);
    }
}

#[test]
fn immutable_functions_need_no_session() {
    // An index computes them where there is none. PostgreSQL calls these two immutable, though they read the catalog.
    let read_catalog = ["acldefault", "pg_config"];
    let immutable = all_functions().filter(|f| f.volatility == Volatility::Immutable);
    for f in immutable.filter(|f| !read_catalog.contains(&f.name)) {
        let needs_none = matches!(
            f.body,
            FunctionImpl::Pure(_)
                | FunctionImpl::Pair(_)
                | FunctionImpl::DateTime(_)
                | FunctionImpl::Io(_)
                | FunctionImpl::Typed(_)
                | FunctionImpl::Set(_)
                | FunctionImpl::Series(_)
                | FunctionImpl::TypedSet(_)
        );
        assert!(needs_none, "{}", f.name);
    }
}

#[test]
fn patterns_find_their_places() {
    let matches = |text: &str, pattern: &str| like_match(text, pattern).unwrap();
    for (text, pattern) in [
        ("the special requests", "%special%requests%"),
        ("sspecial rrequests", "%special%requests"),
        ("aab", "%ab"),
        ("éèà", "%è_"),
        ("a%b", "%\\%b"),
        ("", "%"),
        ("abc", "%%c%"),
        ("abab", "%ab"),
    ] {
        assert!(matches(text, pattern), "{text} {pattern}");
    }
    for (text, pattern) in [
        ("requests, special", "%special%requests%"),
        ("specia", "%special%"),
        ("éèà", "%à_"),
        ("ab", "%abc"),
        ("", "%a"),
        ("abac", "%ab"),
    ] {
        assert!(!matches(text, pattern), "{text} {pattern}");
    }
    // The end of the pattern is only looked at by whoever gets there.
    assert!(like_match("xay", "%a\\").is_err());
    assert!(!like_match("xby", "%a\\").unwrap());
}

#[test]
fn comparisons_are_known_to_indexes() {
    let t = SqlType::of;
    for (op, l, r, want) in [
        ("=", oid::INT4, oid::INT8, Some(Comparison::Eq)),
        ("<", oid::TEXT, oid::UNKNOWN, Some(Comparison::Lt)),
        (
            ">=",
            oid::TIMESTAMPTZ,
            oid::TIMESTAMPTZ,
            Some(Comparison::Ge),
        ),
        ("<", oid::DATE, oid::TIMESTAMP, None),
        ("=", oid::VARCHAR, oid::UNKNOWN, Some(Comparison::Eq)),
        ("~~", oid::TEXT, oid::TEXT, None),
    ] {
        let f = resolve_operator(op, Some(t(l)), t(r), UserTypes::default().lookup(&[]))
            .expect("operator");
        assert_eq!(operator_class(f.function.oid).map(|c| c.0), want, "{op}");
    }
}

#[test]
fn common_types_follow_the_manual() {
    let common = |types: &[TypeId]| {
        common_type(
            &types.iter().map(|o| SqlType::of(*o)).collect::<Vec<_>>(),
            UserTypes::default().lookup(&[]),
        )
        .map(|t| t.oid)
    };
    assert_eq!(
        common(&[oid::UNKNOWN, oid::UNKNOWN]).expect("text"),
        oid::TEXT
    );
    assert_eq!(
        common(&[oid::INT4, oid::NUMERIC]).expect("numeric"),
        oid::NUMERIC
    );
    assert_eq!(
        common(&[oid::NUMERIC, oid::FLOAT8, oid::INT4]).expect("float8"),
        oid::FLOAT8
    );
    assert_eq!(
        common(&[oid::VARCHAR, oid::TEXT]).expect("varchar"),
        oid::VARCHAR
    );
    assert_eq!(
        common(&[oid::DATE, oid::TIMESTAMPTZ]).expect("timestamptz"),
        oid::TIMESTAMPTZ
    );
    let e = common_type_for(
        "UNION",
        &[SqlType::of(oid::INT4), SqlType::of(oid::TEXT)],
        UserTypes::default().lookup(&[]),
    )
    .expect_err("mismatch");
    assert_eq!(
        e.fields().message,
        "UNION types integer and text cannot be matched"
    );
}

#[test]
fn like_prefixes_end_at_wildcards() {
    assert_eq!(like_prefix("abc%"), ("abc".to_owned(), false));
    assert_eq!(like_prefix("a\\%b"), ("a%b".to_owned(), true));
    assert_eq!(like_prefix("_x"), (String::new(), false));
}
