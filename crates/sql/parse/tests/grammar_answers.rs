//! What PostgreSQL 15 answers to statements of our golden scripts and of clients (`answers/statements.tsv`), and to
//! the same with a token changed (`answers/mutants.tsv`): accepted, or refused where and with which message.
//! `tests/grammar/compare.py` has asked it. And what the present parser accepts, the grammar accepts.

use logstead_sql_parse::{grammar, parse};
use std::collections::BTreeMap;

const STATEMENTS: &str = include_str!("answers/statements.tsv");
const MUTANTS: &str = include_str!("answers/mutants.tsv");

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('r')) => out.push('\r'),
            ('\\', Some(other)) => out.push(other),
            (c, _) => out.push(c),
        }
    }
    out
}

/// What is told of a statement: `ok`, or SQLSTATE, position and message.
fn answer(text: &str) -> String {
    match grammar::parse(text) {
        Ok(_) => "ok".to_owned(),
        Err(error) => {
            let fields = error.fields();
            let position = fields.position.map_or("-".to_owned(), |at| at.to_string());
            format!("{}\t{position}\t{}", fields.code.as_str(), fields.message)
        }
    }
}

/// The statements of a file, each with PostgreSQL's answer.
fn answered(file: &str) -> impl Iterator<Item = (String, String)> {
    file.lines().map(|line| match line.split_once('\t') {
        Some(("ok", sql)) => ("ok".to_owned(), unescaped(sql)),
        _ => {
            let (told, sql) = line.rsplit_once('\t').unwrap_or_else(|| panic!("{line}"));
            (unescaped_answer(told), unescaped(sql))
        }
    })
}

/// Code and position stay, the message is unescaped.
fn unescaped_answer(told: &str) -> String {
    let mut parts = told.splitn(3, '\t');
    let (code, position) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    format!(
        "{code}\t{position}\t{}",
        unescaped(parts.next().unwrap_or(""))
    )
}

fn all_agree(file: &str, least: usize) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (theirs, sql) in answered(file) {
        count += 1;
        let ours = answer(&sql);
        // Told at the end of what was sent: there a statement followed, here nothing does.
        let at_end = ours.ends_with("at end of input") && theirs.ends_with("at or near \";\"");
        if ours != theirs && !at_end {
            wrong.push(format!("{sql:?}\n  theirs {theirs}\n  ours   {ours}"));
        }
    }
    assert!(count > least, "{count}");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn statements_are_answered_as_by_postgresql() {
    all_agree(STATEMENTS, 1_000);
}

#[test]
fn changed_statements_are_answered_as_by_postgresql() {
    all_agree(MUTANTS, 1_000);
}

#[test]
fn what_the_present_parser_accepts_is_accepted() {
    let mut refused = BTreeMap::new();
    let mut count = 0;
    for (theirs, sql) in answered(STATEMENTS).chain(answered(MUTANTS)) {
        if parse(&sql).is_err() {
            continue;
        }
        count += 1;
        if let Err(error) = grammar::parse(&sql)
            && theirs == "ok"
        {
            refused.insert(sql, error.fields().message.clone());
        }
    }
    assert!(count > 1_000, "{count}");
    assert!(refused.is_empty(), "{refused:#?}");
}

/// Times of both parsers. Run it alone, optimized: `cargo test --release -p logstead-sql-parse --test grammar_answers
/// -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
#[allow(clippy::disallowed_methods, reason = "it measures real time")]
fn times_of_both_parsers() {
    let long = "SELECT o.id, c.name, sum(l.price * l.quantity) AS total,\n\
        CASE WHEN o.paid THEN 'paid' WHEN o.due < now() THEN 'late' ELSE 'open' END AS state\n\
        FROM orders o JOIN customers c ON c.id = o.customer_id\nLEFT JOIN lines l ON l.order_id = o.id\n\
        WHERE o.created BETWEEN $1 AND $2 AND c.country IN ('de', 'fr', 'it') AND o.note LIKE '%x%'\n\
        AND NOT EXISTS (SELECT 1 FROM refunds r WHERE r.order_id = o.id AND r.amount > 0)\n\
        GROUP BY o.id, c.name, o.paid, o.due\nHAVING sum(l.price * l.quantity) > 100\n\
        ORDER BY total DESC NULLS LAST, o.id\nLIMIT 20 OFFSET 40";
    let forty = [long; 4].join("\nUNION ALL\n").replace(
        "ORDER BY total DESC NULLS LAST, o.id\nLIMIT 20 OFFSET 40",
        "",
    );
    for (name, text) in [
        ("point select", "SELECT v FROM t WHERE id = $1"),
        ("a query of 11 lines", long),
        ("40 lines", &forty),
    ] {
        let time = |run: &dyn Fn()| {
            let best = (0..5).map(|_| {
                let start = std::time::Instant::now();
                (0..20_000).for_each(|_| run());
                start.elapsed().as_nanos() / 20_000
            });
            best.min().unwrap_or(0)
        };
        let present = time(&|| assert!(parse(text).is_ok()));
        let grammar = time(&|| assert!(grammar::parse(text).is_ok()));
        println!("{name}: present parser {present} ns, grammar {grammar} ns");
    }
}
