//! The views of time zones and of their abbreviations.

use super::cells::row;
use logstead_sql_catalog::VirtualContext;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::abbreviations::{abbreviations, named_zones};
use logstead_sql_types::value::calendar::SECOND;
use logstead_sql_types::value::{Datum, Interval};

type Rows = Result<Vec<Vec<Datum>>>;

fn offset(seconds: i64) -> Datum {
    Datum::Interval(Box::new(Interval {
        months: 0,
        days: 0,
        micros: seconds * SECOND,
    }))
}

/// `pg_timezone_names`
pub(super) fn pg_timezone_names(cx: &VirtualContext<'_>) -> Rows {
    let zones = named_zones(cx.session.transaction_time()?).into_iter();
    Ok(zones
        .map(|(name, word, east, summer)| row![name, word, offset(east), summer])
        .collect())
}

/// `pg_timezone_abbrevs`
pub(super) fn pg_timezone_abbrevs(cx: &VirtualContext<'_>) -> Rows {
    let words = abbreviations(cx.session.transaction_time()?).into_iter();
    Ok(words
        .map(|(word, east, summer)| row![word, offset(east), summer])
        .collect())
}
