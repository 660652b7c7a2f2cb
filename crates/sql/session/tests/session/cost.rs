//! What the views of cost tell.

use super::{Script, ask, converse_with, run, session, worker_on};
use logstead_engine::{PriceList, RequestKind};
use logstead_env::Env;
use logstead_home::simulated::{Model, SimulatedOptions};
use logstead_home::{HomeStatus, LogHome, SimulatedHome, Usage};

/// A home that answers at once.
fn home(model: &str, name: &'static str) -> SimulatedHome {
    let mut model = Model::named(model).unwrap();
    model.name = name;
    let mut options = SimulatedOptions::new(model, 1);
    options.scale = 0.0;
    SimulatedHome::in_real_time(&options, &Env::real()).unwrap()
}

fn usage(home: &SimulatedHome) -> Usage {
    HomeStatus::usage(home)[0].usage
}

#[test]
fn requests_and_money_are_those_of_the_home() {
    let home = home("s3express", "s3express");
    let watched = home.clone();
    let worker = || worker_on(LogHome::from(home), Env::real());
    converse_with(true, worker, async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int)").await;
        for i in 0..10 {
            ask(&mut s, &mut c, &format!("INSERT INTO t VALUES ({i})")).await;
            s.settle().await.unwrap();
        }
        let text =
            "SELECT kind, requests, bytes, dollars FROM logstead_cost WHERE provider = 's3express'";
        let said = ask(&mut s, &mut c, text).await;
        // Nobody writes: what was counted then is counted now.
        let usage = usage(&watched);
        let price = PriceList::built_in().of("s3express").unwrap().price;
        assert!(usage.appends >= 10, "{usage:?}");
        let rows: Vec<&String> = said[1..said.len() - 1].iter().collect();
        assert_eq!(rows.len(), RequestKind::ALL.len(), "{said:?}");
        for (row, kind) in rows.into_iter().zip(RequestKind::ALL) {
            let cells: Vec<&str> = row.split('|').collect();
            assert_eq!(cells[0], kind.name());
            assert_eq!(cells[1], usage.requests(kind).to_string(), "{row}");
            let bytes = usage.bytes(kind).map(|bytes| bytes.to_string());
            assert_eq!(cells[2], bytes.unwrap_or_else(|| "-".into()), "{row}");
            let dollars: f64 = cells[3].parse().unwrap();
            assert_eq!(dollars, usage.dollars_of(kind, &price), "{row}");
        }
        let text = "SELECT s.home = k.home, s.provider, s.prices, s.requests = k.requests, s.bytes_up = k.up, s.bytes_down = k.down, \
                    abs(s.dollars - k.dollars) < 1e-12, s.transactions = c.commits, s.retries, s.settled, \
                    abs(s.requests_per_million_transactions * c.commits / 1e6 - k.requests) < 1e-6, \
                    abs(s.dollars_per_million_transactions * c.commits / 1e6 - k.dollars) < 1e-12, \
                    s.stored_bytes > 0, abs(s.storage_dollars_per_month - s.stored_bytes / 1e9 * 0.11) < 1e-12, \
                    abs(s.idle_dollars_per_month - 730 * 3600 / 5 * 1.13e-6) < 1e-9 \
                    FROM logstead_cost_summary s, \
                    (SELECT home, sum(requests) AS requests, sum(bytes) FILTER (WHERE kind IN ('append', 'put')) AS up, \
                     sum(bytes) FILTER (WHERE kind = 'get') AS down, sum(dollars) AS dollars FROM logstead_cost GROUP BY home) k, \
                    (SELECT sum(commits) AS commits FROM logstead_commit) c";
        let said = ask(&mut s, &mut c, text).await;
        assert_eq!(
            said[1],
            "t|s3express|built in, 2026-11-21|t|t|t|t|t|0|0|t|t|t|t|t"
        );
        assert_eq!(said.len(), 3, "one home");
    });
}

#[test]
fn who_is_not_listed_has_no_price() {
    let home = home("s3express", "somebody's");
    let worker = || worker_on(LogHome::from(home), Env::real());
    converse_with(true, worker, async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        for text in [
            "SELECT count(*), count(dollars), count(requests) FROM logstead_cost",
            "SELECT count(*), count(dollars) + count(prices) + count(dollars_per_million_transactions) \
             + count(storage_dollars_per_month) + count(idle_dollars_per_month), count(requests) FROM logstead_cost_summary",
        ] {
            let said = ask(&mut s, &mut c, text).await;
            let cells: Vec<&str> = said[1].split('|').collect();
            assert_eq!(cells[1], "0", "{text}");
            assert_ne!(cells[0], "0", "{text}");
            assert_eq!(cells[0], cells[2], "{text}");
        }
    });
}

#[test]
fn a_home_that_costs_nothing_has_no_row() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        for view in ["logstead_cost", "logstead_cost_summary"] {
            let text = format!("SELECT count(*) FROM {view}");
            assert_eq!(ask(&mut s, &mut c, &text).await[1], "0");
        }
    });
}
