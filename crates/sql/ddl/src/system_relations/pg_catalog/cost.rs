//! Views of what the log costs: requests and bytes by home and kind, and money by the price list.
//!
//! Counts are the home's own since it was opened: recovery's reads and requests that were repeated are among them,
//! since providers charge for them. Without a price (a provider that is not listed) money is NULL, never 0.

use super::cells::row;
use logstead_engine::RequestKind;
use logstead_sql_catalog::{VirtualContext, VirtualTable};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;

type Rows = Result<Vec<Vec<Datum>>>;

/// The views. No relation of PostgreSQL 15 has these OIDs.
pub(super) static VIEWS: &[VirtualTable] = virtual_tables! {
    "pg_catalog";
    12910 logstead_cost = kinds {
        home TEXT, provider TEXT, kind TEXT, requests INT8, bytes INT8, dollars FLOAT8,
    }
    12911 logstead_cost_summary = homes {
        home TEXT, provider TEXT, prices TEXT, requests INT8, bytes_up INT8, bytes_down INT8, retries INT8, settled INT8,
        dollars FLOAT8, transactions INT8, requests_per_million_transactions FLOAT8, dollars_per_million_transactions FLOAT8,
        stored_bytes INT8, storage_dollars_per_month FLOAT8, idle_dollars_per_month FLOAT8,
    }
};

fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// `logstead_cost`
fn kinds(cx: &VirtualContext<'_>) -> Rows {
    let Some(live) = cx.catalog.notes.live.as_ref() else {
        return Ok(Vec::new());
    };
    let (Some(homes), Some(tariff)) = (live.home_usage(), live.tariff()) else {
        return Ok(Vec::new());
    };
    let rows = homes.iter().flat_map(|home| {
        let listed = tariff.prices.of(&home.provider);
        RequestKind::ALL.map(|kind| {
            row![
                &home.home,
                &home.provider,
                kind.name(),
                count(home.usage.requests(kind)),
                home.usage.bytes(kind).map(count),
                listed.map(|listed| home.usage.dollars_of(kind, &listed.price)),
            ]
        })
    });
    Ok(rows.collect())
}

/// `logstead_cost_summary`
fn homes(cx: &VirtualContext<'_>) -> Rows {
    let Some(live) = cx.catalog.notes.live.as_ref() else {
        return Ok(Vec::new());
    };
    let (Some(path), Some(homes), Some(tariff)) =
        (live.commit_path(), live.home_usage(), live.tariff())
    else {
        return Ok(Vec::new());
    };
    let transactions: u64 = path.lane_stats().iter().map(|lane| lane.commits).sum();
    let per_million = |value: f64| (transactions > 0).then(|| value * 1e6 / transactions as f64);
    let rows = homes.iter().map(|home| {
        let usage = &home.usage;
        let listed = tariff.prices.of(&home.provider);
        let price = listed.map(|listed| &listed.price);
        let dollars = price.map(|price| usage.dollars(price));
        let stored_gb = usage.stored_bytes.map(|bytes| bytes as f64 / 1e9);
        row![
            &home.home,
            &home.provider,
            listed.map(|listed| &*listed.source),
            count(usage.requests_all()),
            count(usage.uploaded_bytes()),
            count(usage.read_bytes),
            count(usage.retries),
            count(usage.settled),
            dollars,
            count(transactions),
            per_million(usage.requests_all() as f64),
            dollars.and_then(per_million),
            usage.stored_bytes.map(count),
            price.zip(stored_gb).map(|(price, gb)| price.gb_month * gb),
            price.map(|price| tariff.idle_puts() / 1e6 * price.million(RequestKind::Put)),
        ]
    });
    Ok(rows.collect())
}
