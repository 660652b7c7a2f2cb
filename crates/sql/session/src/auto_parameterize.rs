//! Plain text as if it were prepared: the integers of a simple query are lifted out of it.
//!
//! A client that writes values into its statements sends a new text each time, and parsing and planning cost several
//! times what a statement by key costs. `UPDATE t SET v = v + 7 WHERE id = 4711` is looked up as
//! `UPDATE t SET v = v + $1 WHERE id = $2` with two parameters of type integer: the text of its kind is parsed once and
//! planned once per catalog.
//!
//! Why the answer is the same: an integer literal that fits is of type integer, as the parameter is, and the two are
//! equal wherever an expression is expected. Where a literal means something else (a position in ORDER BY, a length in
//! a type, a LIMIT) a parameter is refused, or the plan is no statement by key; only statements by key are run with
//! parameters ([`Prepared::is_by_key`](logstead_sql_exec::Prepared::is_by_key)), and those give or write one row at
//! most, so that neither order nor grouping can show, and no plan could be better for knowing the value.
//!
//! Invariant: whatever goes wrong before the parameterized statement is planned and locked, the text is run as it
//! stands: errors of syntax and meaning, with their positions, are those of the text that the client sent.

use super::cached_plan::Statement;
use super::plan_cache::AutoParameterize;
use super::{Client, Session, run};
use crate::open_transaction::BlockState;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, oid};

/// Longer texts, or texts with more integers, are data.
const TEXT_BYTES_MAX: usize = 2048;
const LITERALS_MAX: usize = 32;

/// A text without its integers.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ParameterizedText {
    /// The text with `$1`, `$2`... in their place.
    pub(super) text: String,
    /// The integers.
    pub(super) params: Vec<Datum>,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Lifts all integers; `None` if there are none, or if the text has anything that would need a real tokenizer:
/// comments, backslashes, dollars, numbers that are no integers.
pub(super) fn parameterize(text: &str) -> Option<ParameterizedText> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let bytes = text.as_bytes();
    let mut parameterized = ParameterizedText {
        text: String::with_capacity(text.len() + 8),
        params: Vec::with_capacity(8),
    };
    let (mut at, mut copied) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied().unwrap_or(0);
        match byte {
            b'$' | b'\\' => return None,
            b'-' if next == b'-' => return None,
            b'/' if next == b'*' => return None,
            b'\'' | b'"' => {
                let inside = &bytes[at + 1..];
                let length = inside.iter().position(|b| *b == byte)?;
                if inside[..length].contains(&b'\\') {
                    return None;
                }
                // A doubled quote begins the next piece at once.
                at += length + 2;
            }
            b'0'..=b'9' => {
                let length = bytes[at..]
                    .iter()
                    .take_while(|b| b.is_ascii_digit())
                    .count();
                let end = at + length;
                let after = bytes.get(end).copied().unwrap_or(0);
                let before = at.checked_sub(1).map_or(0, |before| bytes[before]);
                if is_word(after) || after == b'.' || before == b'.' {
                    return None;
                }
                let value: i32 = text[at..end].parse().ok()?;
                if parameterized.params.len() == LITERALS_MAX {
                    return None;
                }
                parameterized.text.push_str(&text[copied..at]);
                parameterized.params.push(Datum::Int4(value));
                parameterized.text.push('$');
                push_small(parameterized.params.len(), &mut parameterized.text);
                (at, copied) = (end, end);
            }
            byte if is_word(byte) => {
                at += bytes[at..].iter().take_while(|b| is_word(**b)).count();
            }
            _ => at += 1,
        }
    }
    if parameterized.params.is_empty() {
        return None;
    }
    parameterized.text.push_str(&text[copied..]);
    Some(parameterized)
}

/// Appends a number of at most two digits.
fn push_small(number: usize, text: &mut String) {
    let digit = |digit: usize| char::from(b'0' + (digit % 10) as u8);
    if number >= 10 {
        text.push(digit(number / 10));
    }
    text.push(digit(number));
}

impl Session {
    /// Runs `text` with parameters; false if it is to be run as it stands.
    pub(super) async fn run_parameterized(
        &mut self,
        text: &str,
        client: &mut dyn Client,
    ) -> Result<bool> {
        let Some((statement, params)) = self.lifted(text) else {
            return Ok(false);
        };
        self.report_activity(text);
        self.begin_timing(&statement);
        let plan = self.prepare_run(&statement).await?;
        // DDL may have come between: then it is another plan.
        if !plan.is_by_key() {
            return Ok(false);
        }
        self.tell_of_truncated(&statement.text, client);
        let rows = self.run_to_end(&plan, &params, client).await?;
        if self.block == BlockState::None {
            self.commit(client).await?;
        }
        client.command_complete(&run::CommandTag(plan.command, rows));
        self.worker.step();
        Ok(true)
    }

    /// The statement that `text` is without its integers, if it is known to be one by key.
    fn lifted(&mut self, text: &str) -> Option<(Statement, Vec<Datum>)> {
        if self.block == BlockState::Failed || self.has_private_catalog() || self.is_held_by_as_of()
        {
            return None;
        }
        let ParameterizedText { text, params } = parameterize(text)?;
        let catalog = self.catalog().ok()?.csn;
        let parameterization = self
            .worker
            .caches
            .borrow_mut()
            .parameterization(&text, catalog);
        let parsed = match parameterization {
            AutoParameterize::No => return None,
            AutoParameterize::Yes(parsed) => parsed,
        };
        let types = vec![Some(oid::INT4); params.len()];
        let statement = Statement::new(parsed, Some(0), types);
        self.begin_statement();
        let by_key = statement.is_query()
            && statement.as_of().is_none()
            && self.plan(&statement).is_ok_and(|plan| {
                plan.is_by_key()
                    && plan.param_types.len() == params.len()
                    && plan.param_types.iter().all(|ty| ty.oid == oid::INT4)
            });
        if !by_key {
            let mut caches = self.worker.caches.borrow_mut();
            caches.refuse_parameterization(&statement.text.text, catalog);
            return None;
        }
        Some((statement, params))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameterized(text: &str) -> Option<(String, Vec<i32>)> {
        let numbers = |parameterized: ParameterizedText| {
            let params = parameterized.params.iter().map(|datum| match datum {
                Datum::Int4(number) => *number,
                other => panic!("not an integer: {other:?}"),
            });
            (parameterized.text.clone(), params.collect())
        };
        parameterize(text).map(numbers)
    }

    fn some(text: &str, params: &[i32]) -> Option<(String, Vec<i32>)> {
        Some((text.to_owned(), params.to_vec()))
    }

    #[test]
    fn integers_are_lifted_and_nothing_else() {
        assert_eq!(
            parameterized("UPDATE t1 SET v2=v2+-7 WHERE id = 4711;"),
            some("UPDATE t1 SET v2=v2+-$1 WHERE id = $2;", &[7, 4711])
        );
        assert_eq!(
            parameterized("SELECT \"a 1\", '2''3' FROM tä9 WHERE x IN (4,05) AND y='6'"),
            some(
                "SELECT \"a 1\", '2''3' FROM tä9 WHERE x IN ($1,$2) AND y='6'",
                &[4, 5]
            )
        );
        assert_eq!(
            parameterized("SELECT 2147483647"),
            some("SELECT $1", &[i32::MAX])
        );
        let many: Vec<String> = (1..=12).map(|i| i.to_string()).collect();
        let (text, params) = parameterized(&many.join(",")).expect("twelve");
        assert!(text.ends_with(",$9,$10,$11,$12"), "{text}");
        assert_eq!(params, (1..=12).collect::<Vec<_>>());
    }

    #[test]
    fn what_needs_a_tokenizer_is_left_alone() {
        for text in [
            "SELECT a FROM t",
            "SELECT 2147483648",
            "SELECT 1.5",
            "SELECT .5",
            "SELECT 1e-5",
            "SELECT 1_000",
            "SELECT 1x",
            "SELECT 1 -- 2",
            "SELECT 1 /* 2 */",
            "SELECT $1, 2",
            "SELECT $$ 1 $$, 2",
            "SELECT E'\\'', 1",
            "SELECT 'open 1",
            "SELECT \"open 1",
            "SELECT 1é",
        ] {
            assert_eq!(parameterized(text), None, "{text}");
        }
        assert_eq!(
            parameterized(&format!("SELECT 1 {}", " ".repeat(TEXT_BYTES_MAX))),
            None
        );
        assert_eq!(parameterized(&"1,".repeat(LITERALS_MAX + 1)), None);
    }

    proptest::proptest! {
        /// Whatever the text: nothing panics, and putting the integers back gives a text that means the same.
        #[test]
        fn integers_put_back_are_lifted_again(text in "([a-z_ä.,;=()\\-+ ]|'|\"|[0-9]{1,3}|SELECT |''|\\\\|--|/\\*){0,30}") {
            if let Some((kind, params)) = parameterized(&text) {
                let mut back = String::new();
                let mut rest = params.iter();
                for piece in kind.split_inclusive('$') {
                    let piece = piece.trim_start_matches(|c: char| !back.is_empty() && c.is_ascii_digit());
                    back.push_str(piece.trim_end_matches('$'));
                    if piece.ends_with('$') {
                        let number = rest.next().expect("a parameter per dollar");
                        back.push_str(&number.to_string());
                    }
                }
                proptest::prop_assert!(rest.next().is_none());
                proptest::prop_assert_eq!(parameterized(&back), Some((kind, params)));
            }
        }
    }
}
