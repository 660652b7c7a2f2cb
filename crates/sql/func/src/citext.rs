//! citext: text whose case does not count. Functions of PostgreSQL's extension of this name, which it makes of those of
//! text.

use super::arithmetic::bad_args;
use super::{Rows, like, patterns, strings};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, compare_as, oid};
use std::cmp::Ordering;

/// The order of two values.
pub(super) fn order(a: &[Datum]) -> Result<Ordering> {
    match a {
        [x, y] => Ok(compare_as(oid::CITEXT, x, y)),
        _ => Err(bad_args(a)),
    }
}

/// Comparison of two values: `compared_folded!(is_lt)`.
macro_rules! compared_folded {
    ($f:ident) => {
        |a| Ok(Datum::Bool(crate::citext::order(a)?.$f()))
    };
}
pub(super) use compared_folded;

/// `citext_cmp`
pub(super) fn cmp(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(order(a)? as i32))
}

/// The arguments, with the flag that says that case does not count, unless the last one says that it does.
fn with_flag(a: &[Datum], flags_at: usize) -> Result<Vec<Datum>> {
    let mut args = a.to_vec();
    match args.get_mut(flags_at) {
        Some(flags) => {
            let given = flags.as_str()?;
            if !given.contains('c') {
                *flags = Datum::text(format!("{given}i"));
            }
        }
        None => args.push(Datum::text("i")),
    }
    Ok(args)
}

/// `regexp_match`
pub(super) fn regexp_match(a: &[Datum]) -> Result<Datum> {
    patterns::regexp_match(&with_flag(a, 2)?)
}

/// `regexp_matches`
pub(super) fn regexp_matches(a: &[Datum]) -> Result<Rows> {
    patterns::regexp_matches(&with_flag(a, 2)?)
}

/// `regexp_replace`
pub(super) fn regexp_replace(a: &[Datum]) -> Result<Datum> {
    patterns::regexp_replace(&with_flag(a, 3)?)
}

/// `regexp_split_to_array`
pub(super) fn regexp_split_to_array(a: &[Datum]) -> Result<Datum> {
    patterns::regexp_split_to_array(&with_flag(a, 2)?)
}

/// `regexp_split_to_table`
pub(super) fn regexp_split_to_table(a: &[Datum]) -> Result<Rows> {
    patterns::regexp_split_to_table(&with_flag(a, 2)?)
}

/// `strpos`
pub(super) fn strpos(a: &[Datum]) -> Result<Datum> {
    let lowered: Result<Vec<Datum>> = a
        .iter()
        .map(|text| {
            Ok(Datum::text(logstead_sql_types::value::case::lower_text(
                text.as_str()?,
            )))
        })
        .collect();
    strings::strpos(&lowered?)
}

/// A pattern that matches a text and nothing else.
fn literally(text: &Datum) -> Result<Datum> {
    let mut pattern = String::new();
    for c in text.as_str()?.chars() {
        if !c.is_ascii_alphanumeric() && c != '_' {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    Ok(Datum::text(pattern))
}

/// `replace`
pub(super) fn replace(a: &[Datum]) -> Result<Datum> {
    let [text, from, to] = a else {
        return Err(bad_args(a));
    };
    let args = [
        text.clone(),
        literally(from)?,
        to.clone(),
        Datum::text("gi"),
    ];
    patterns::regexp_replace(&args)
}

/// `split_part`: by number alone, so one that is not there is NULL.
pub(super) fn split_part(a: &[Datum]) -> Result<Datum> {
    let [text, by, number] = a else {
        return Err(bad_args(a));
    };
    let parts = patterns::regexp_split_to_array(&[text.clone(), literally(by)?, Datum::text("i")])?;
    let at = usize::try_from(number.as_i32()?).ok();
    let at = at.and_then(|at| at.checked_sub(1));
    let part = at.and_then(|at| parts.as_array().ok()?.items.get(at).cloned());
    Ok(part.unwrap_or(Datum::Null))
}

/// `translate`
pub(super) fn translate(a: &[Datum]) -> Result<Datum> {
    let [text, from, to] = a else {
        return Err(bad_args(a));
    };
    let lower = strings::lower(std::slice::from_ref(from))?;
    let upper = strings::upper(std::slice::from_ref(from))?;
    let half = strings::translate(&[text.clone(), lower, to.clone()])?;
    strings::translate(&[half, upper, to.clone()])
}

/// `~~`
pub(super) fn like(a: &[Datum]) -> Result<Datum> {
    like::ilike(a)
}

/// `!~~`
pub(super) fn not_like(a: &[Datum]) -> Result<Datum> {
    like::not_ilike(a)
}
