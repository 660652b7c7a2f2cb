//! Every workload, short, with what must hold afterwards. Times are never asserted.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use logstead_bench::options::Label;
use logstead_bench::report::Document;
use logstead_bench::{
    BenchError, BenchOptions, NoProgress, ProgressListener, Results, command, report_files, run,
};
use logstead_engine::Env;

fn options(line: &str) -> BenchOptions {
    let words = std::iter::once("bench").chain(line.split_whitespace());
    let matches = command().try_get_matches_from(words).expect("an option");
    BenchOptions::read(&matches).expect("a value")
}

fn ran(line: &str) -> Results {
    let stop = Arc::default();
    let results = run(&options(line), &Env::real(), &stop, &mut NoProgress).expect("runs");
    let broken: Vec<_> = results.broken().collect();
    assert!(broken.is_empty(), "{line}: {broken:?}");
    results
}

/// Runs with a given number of transactions: each must have ended in one way or the other.
fn ran_all(line: &str, transactions: u64) -> Results {
    let results = ran(&format!("{line} --transactions {transactions}"));
    for outcome in &results.outcomes {
        let total = outcome.measured.total();
        assert_eq!(total.committed + total.rolled_back, transactions, "{line}");
        assert_eq!(total.whole.len(), transactions, "{line}");
        assert_eq!(
            outcome.measured.timeline.iter().sum::<u64>(),
            transactions,
            "{line}"
        );
        assert!(!outcome.checks.is_empty());
    }
    results
}

#[test]
fn ycsb_of_every_kind() {
    for (line, workers) in [
        ("--mix A", "1,2"),
        ("--mix B --distribution zipfian", "2"),
        ("--mix C --ops 10", "2"),
        ("--mix F --distribution hotspot", "2"),
        (
            "--read-ratio 0.2 --ops 4 --in-flight 8 --distribution zipfian",
            "3",
        ),
        (
            "--mix A --isolation repeatable-read --distribution zipfian",
            "2",
        ),
    ] {
        for log in ["none", "memory"] {
            let line = format!("ycsb --table-size 500 --workers {workers} --log {log} {line}");
            ran_all(&line, 2_000);
        }
    }
}

#[test]
fn tpcc_at_every_level() {
    for isolation in ["read-committed", "repeatable-read", "serializable"] {
        let results = ran_all(
            &format!(
                "tpcc --warehouses 2 --items 200 --customers 30 --workers 2 --log memory --isolation {isolation}"
            ),
            2_000,
        );
        let outcome = &results.outcomes[0];
        for (kind, counts) in outcome.kinds.iter().zip(&outcome.measured.kinds) {
            assert!(counts.committed > 0, "no {kind}");
        }
        assert!(
            outcome.measured.kinds[0].rolled_back > 0,
            "no new order was rolled back"
        );
        // Twelve conditions of the specification, and three of ours.
        assert_eq!(outcome.checks.len(), 15);
    }
}

#[test]
fn tatp_and_smallbank() {
    for isolation in ["read-committed", "repeatable-read", "serializable"] {
        for line in [
            "tatp --subscribers 200",
            "smallbank --accounts 50",
            "smallbank --accounts 200 --distribution hotspot --hot-keys 0.05",
        ] {
            ran_all(
                &format!("{line} --workers 2 --log memory --isolation {isolation}"),
                3_000,
            );
        }
    }
}

/// Sessions keep to the keys of their instances, but for the share that is to cross: as the engine counts it. What the
/// workloads' checks find is the same.
#[test]
fn sessions_keep_to_their_instances() {
    let stats = |line: &str| {
        let line = format!("{line} --workers 2 --log memory");
        ran_all(&line, 2_000).outcomes[0].stats
    };
    let ycsb = "ycsb --table-size 500 --mix A --instances 2";
    let inside = stats(ycsb);
    assert_eq!(inside.transactions_across, 0);
    assert_eq!(inside.transactions_inside, 2_000);
    let across = stats(&format!("{ycsb} --cross-instance 1"));
    assert_eq!(across.transactions_inside, 0);
    assert_eq!(across.transactions_across, 2_000);
    // What threads leave behind at their end is collected by whoever comes next.
    assert!(
        inside.foreign_accesses * 10 < across.foreign_accesses,
        "{inside:?}"
    );
    let some = stats(&format!("{ycsb} --cross-instance 0.3"));
    assert!((400..800).contains(&some.transactions_across), "{some:?}");
    // Remote warehouses, and the items, which belong to one instance.
    let tpcc = stats("tpcc --warehouses 4 --items 200 --customers 30 --instances 2");
    assert!(tpcc.transactions_inside > 0 && tpcc.transactions_across > 0);
    let bank = stats("smallbank --accounts 200 --instances 2");
    assert!(bank.foreign_accesses > 0);
    // With one instance nothing is counted.
    let alone = stats("ycsb --table-size 500 --mix A");
    assert_eq!(
        (alone.transactions_inside, alone.transactions_across),
        (0, 0)
    );
}

#[test]
fn tatp_fails_as_often_as_specified() {
    let results = ran_all("tatp --subscribers 1000 --workers 1", 20_000);
    let outcome = &results.outcomes[0];
    let failed = |name: &str| {
        let at = outcome.kinds.iter().position(|kind| *kind == name);
        let counts = &outcome.measured.kinds[at.expect("a kind")];
        counts.rolled_back as f64 / (counts.committed + counts.rolled_back) as f64
    };
    // A subscriber has 2.5 of 4 access infos and special facilities on average, 85 % of which are active, and half of
    // the three call forwardings to each; the probability that one of those fits the times drawn is 0.278.
    assert_eq!(failed("get subscriber data"), 0.0);
    assert_eq!(failed("update location"), 0.0);
    assert!((failed("get access data") - 0.375).abs() < 0.05);
    assert!((failed("update subscriber data") - 0.375).abs() < 0.1);
    assert!((failed("get new destination") - 0.852).abs() < 0.05);
    assert!((failed("delete call forwarding") - 0.6875).abs() < 0.1);
}

#[test]
fn one_worker_and_a_seed_give_the_same_run() {
    for line in [
        "ycsb --table-size 300 --distribution zipfian --ops 4",
        "tpcc --warehouses 1 --items 100 --customers 20",
        "tatp --subscribers 100",
        "smallbank --accounts 30",
    ] {
        let counted = |seed: u64| {
            let results = ran_all(&format!("{line} --workers 1 --log none --seed {seed}"), 500);
            let outcome = &results.outcomes[0];
            let kinds = outcome.measured.kinds.iter();
            let counts: Vec<_> = kinds.map(|k| (k.committed, k.rolled_back)).collect();
            // Not the log's bytes: which row numbers are free again when somebody wants one is up to collectors.
            (counts, outcome.rows, outcome.stats.versions_installed)
        };
        assert_eq!(counted(5), counted(5), "{line}");
        assert_ne!(counted(5), counted(6), "{line}");
    }
}

#[test]
fn a_log_on_disk_and_an_empty_directory_only() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = dir.path().join("log");
    let line = format!(
        "smallbank --accounts 100 --workers 1,2 --log local:{} --in-flight 8",
        log.display()
    );
    let results = ran_all(&line, 200);
    assert_eq!(results.outcomes.len(), 2);
    let stop = Arc::default();
    let again = run(&options(&line), &Env::real(), &stop, &mut NoProgress);
    assert!(matches!(again, Err(BenchError::NotEmpty(_))));
}

#[test]
fn an_open_loop_serves_its_arrivals_or_says_how_many_it_did_not() {
    let results = ran(
        "ycsb --table-size 100 --workers 2 --open-loop 400 --seconds 1 --warmup 0 --log memory",
    );
    let measured = &results.outcomes[0].measured;
    let total = measured.total();
    // Each arrival is counted once: served, or not.
    assert_eq!(
        total.whole.len(),
        total.commit.len() + measured.backlog,
        "{measured:?}"
    );
    let arrivals = total.whole.len();
    assert!((200..800).contains(&arrivals), "{arrivals} arrivals");

    let results =
        ran("ycsb --table-size 100 --workers 1 --open-loop 100000000 --seconds 0.1 --warmup 0");
    let measured = &results.outcomes[0].measured;
    assert!(measured.backlog > 0);
    // Who was not served has waited, and its wait is in the latencies.
    assert_eq!(
        measured.total().whole.len(),
        measured.total().commit.len() + measured.backlog
    );
}

#[test]
fn two_workloads_on_one_engine() {
    let results = ran_all(
        "mixed --workers 3 --tpcc-workers 1 --warehouses 1 --items 100 --customers 20 --table-size 300 --log memory",
        3_000,
    );
    let outcome = &results.outcomes[0];
    let of = |name: &str| {
        let at = outcome.kinds.iter().position(|kind| *kind == name);
        outcome.measured.kinds[at.expect("a kind")].committed
    };
    assert!(of("new order") > 0 && of("ycsb with updates") > 0);
    // Each of three workers had a third.
    assert_eq!(of("ycsb read only") + of("ycsb with updates"), 2_000);
    assert_eq!(outcome.checks.len(), 15 + 3);
}

#[test]
fn several_values_and_repetitions_are_all_run_and_reported() {
    let dir = tempfile::tempdir().expect("a directory");
    let (json, html) = (dir.path().join("r.json"), dir.path().join("r.html"));
    let line = format!(
        "smallbank --accounts 50 --workers 1,2 --flush-unit 4k,16k --workers-per-lane all --repeat 2 --log memory \
         --json {}",
        json.display()
    );
    let results = ran_all(&line, 200);
    assert_eq!(results.outcomes.len(), 2 * 2 * 2);
    // The second time the other way round.
    let order: Vec<(usize, usize, u32)> = results
        .outcomes
        .iter()
        .map(|o| {
            (
                o.workers(),
                o.cell.common.commit.flush_unit_bytes,
                o.repetition,
            )
        })
        .collect();
    assert_eq!(order[0], (1, 4096, 0));
    assert_eq!(order[3], (2, 16384, 0));
    assert_eq!(order[4], (2, 16384, 1));
    assert_eq!(order[7], (1, 4096, 1));
    let text = results.text();
    for named in [
        "flush unit 16 KiB",
        "flush-unit 16 KiB, workers 2",
        "commit p99.99",
    ] {
        assert!(text.contains(named), "{named} in {text}");
    }

    results.write_files(&Env::real()).expect("writes");
    let files = [json.clone(), json.clone()];
    let said = report_files(&files, &html, &Env::real()).expect("reports");
    assert!(said.ends_with("16 runs"), "{said}");
    let report = read(&html);
    // Two documents; two curves over two numbers of workers in each.
    for named in [
        "flush-unit 4 KiB, workers 2",
        "flush-unit 16 KiB, workers 1",
        "Commit latency p99.99",
    ] {
        assert!(report.contains(named), "{named}");
    }
    assert!(!report.contains("NaN"));

    tamper(&json);
    let refused = report_files(&files, &html, &Env::real());
    assert!(
        matches!(refused, Err(BenchError::Read { .. })),
        "{refused:?}"
    );
}

#[test]
fn every_commit_path_and_what_it_counts() {
    // Four protocols, four trackings, two queues: each run's own checks find a lost or doubled update.
    let results = ran_all(
        "ycsb --table-size 200 --ops 3 --workers 3 --in-flight 4 --log memory --protocol \
         group,pipelined,autonomous,grouped-lanes --tracking horizon,gsn,dsn,exact --queue lock-free,latched \
         --workers-per-lane 2 --delta off",
        300,
    );
    assert_eq!(results.outcomes.len(), 32);
    for outcome in &results.outcomes {
        let label = &outcome.cell.label.series;
        let path = &outcome.path;
        assert!(path.appends > 0 && path.entries > 0, "{label}: {path:?}");
        let total = outcome.measured.total();
        assert_eq!(total.writing.len(), outcome.stats.commits, "{label}");
        // Every entry of the run is one of its transactions'.
        assert_eq!(path.entries, outcome.stats.commits, "{label}");
        assert!(path.appended_bytes > outcome.stats.log_bytes, "{label}");
    }
    let document = Document::of(&results);
    for run in &document.runs {
        let names: Vec<&str> = run.shares.iter().map(|share| share.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "execution",
                "lane wait",
                "flush",
                "dependency wait",
                "acknowledgment"
            ]
        );
        assert!(run.figures["appends per commit"] > 0.0);
    }
    assert!(results.html().contains("Where a transaction's time goes"));
}

#[test]
fn needless_waits_are_found() {
    // Lanes whose appends take 8 ms and more, out of step: whoever waits for the horizon waits for strangers.
    let results = ran_all(
        "ycsb --table-size 100000 --ops 2 --workers 4 --in-flight 4 --log sim://?model=s3express --trace-waits \
         --tracking horizon,exact",
        600,
    );
    let of = |at: usize, name: &str| results.outcomes[at].figures[name];
    for at in [0, 1] {
        assert!(of(at, "commits traced") > 400.0);
        assert_eq!(results.outcomes[at].checks.len(), 3);
    }
    // Counted, not timed: under exact tracking hardly anybody waits at all, since few meet in so many rows.
    let waited = "waited when hardened, % of commits";
    assert!(
        of(0, waited) > 2.0 * of(1, waited),
        "{} {}",
        of(0, waited),
        of(1, waited)
    );
}

#[test]
fn whole_rows_in_the_log_are_larger() {
    let results = ran_all(
        "tpcc --warehouses 1 --items 100 --customers 20 --workers 1 --log memory --delta on,off",
        500,
    );
    let bytes = |at: usize| results.outcomes[at].stats.log_bytes;
    assert!(bytes(0) * 3 < bytes(1) * 2, "{} and {}", bytes(0), bytes(1));
}

#[test]
fn what_was_acknowledged_before_a_crash_is_there_after_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let line = format!(
        "recovery --table-size 500 --tail 300 --ops 2 --workers 2 --protocol autonomous,grouped-lanes --transactions 50 \
         --home {}",
        dir.path().display()
    );
    let results = ran(&line);
    assert_eq!(results.outcomes.len(), 2);
    for outcome in &results.outcomes {
        assert!(outcome.figures["until the first query, ms"] > 0.0);
        // Rows were loaded in batches of 500: two workers, one each.
        assert!(outcome.figures["entries applied"] >= 100.0);
        assert_eq!(outcome.checks.len(), 3);
    }
    let stop = Arc::default();
    let nowhere = options("recovery --tail 1");
    let refused = run(&nowhere, &Env::real(), &stop, &mut NoProgress);
    assert!(refused.is_err_and(|error| error.to_string().contains("directory")));
}

#[test]
fn experiments_run_again_and_leave_no_logs() {
    let dir = tempfile::tempdir().expect("a directory");
    // The second time in the same directory: nothing is in the way.
    for _ in 0..2 {
        let line = format!(
            "experiment bare --quick --seconds 0.01 --dir {}",
            dir.path().display()
        );
        let results = ran(&line);
        let sections: HashSet<&str> = results
            .outcomes
            .iter()
            .map(|outcome| outcome.cell.label.section.as_str())
            .collect();
        assert!(sections.contains("this disk") && sections.contains("model io2"));
        let mut directories = vec![dir.path().to_path_buf()];
        while let Some(path) = directories.pop() {
            let names = Env::real().files.list(&path).expect("no file is left");
            directories.extend(names.into_iter().map(|name| path.join(name)));
        }
    }
}

#[test]
fn bare_appends_of_every_way() {
    let dir = tempfile::tempdir().expect("a directory");
    for way in ["file", "inline", "handoff"] {
        let home = dir.path().join(way);
        let line = format!(
            "bare --way {way} --size 4k,16k --workers 1,3 --home {} --transactions 30",
            home.display()
        );
        let results = ran(&line);
        assert_eq!(results.outcomes.len(), 4);
        for outcome in &results.outcomes {
            let total = outcome.measured.total();
            assert_eq!((total.committed, total.commit.len()), (30, 30), "{line}");
        }
        assert!(results.html().contains(&format!("{way}, 16 KiB")));
    }
    let results =
        ran("bare --way handoff --home memory --workers 4 --workers-per-lane 4 --transactions 100");
    assert_eq!(results.outcomes[0].measured.total().committed, 100);

    ran("bare --way handoff --home sim://?model=nvme --workers 2 --transactions 20");
    let refused = |line: &str| {
        let stop = Arc::default();
        let result = run(&options(line), &Env::real(), &stop, &mut NoProgress);
        result.map(|_| ()).expect_err(line).to_string()
    };
    let error = refused("bare --way file --home memory --transactions 1");
    assert!(error.contains("directory"), "{error}");
    let error = refused(
        "bare --way handoff --home sim://?model=s3express --workers 2 --workers-per-lane 2 --transactions 1",
    );
    assert!(error.contains("1 appends"), "{error}");
}

#[test]
fn single_operations_and_loading() {
    let results = ran("micro --table-size 2000 --workers 1,2 --transactions 100");
    assert_eq!(results.micro.len(), 2 * 4 * 2);
    assert!(results.micro.iter().all(|figure| figure.operations > 0));
    let results = ran("load --rows 5000 --workers 2 --log memory");
    assert_eq!(results.loads[0].rows, 5000);
    assert!(results.loads[0].log_bytes > 5000 * 100);
}

fn read(path: &std::path::Path) -> String {
    let bytes = Env::real().files.read(path).expect("was written");
    String::from_utf8(bytes).expect("is text")
}

#[expect(
    clippy::disallowed_methods,
    reason = "what somebody else did to the file"
)]
fn tamper(path: &std::path::Path) {
    std::fs::write(path, "{}").expect("writes");
}

/// Stops a run when it has begun.
struct StopAt(Arc<AtomicBool>, &'static str);

impl ProgressListener for StopAt {
    fn begin(&mut self, _number: usize, _total: usize, _label: &Label) {}
    fn loading(&mut self, _rows: u64) {
        if self.1 == "loading" {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    fn running(&mut self, transactions: u64, _part: f64) {
        if self.1 == "running" && transactions > 0 {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    fn checking(&mut self) {}
    fn end(&mut self) {}
}

#[test]
fn an_interrupted_run_gives_what_there_is() {
    let stop = Arc::default();
    let line =
        "tpcc --warehouses 1 --items 100 --customers 20 --workers 2 --seconds 1000 --warmup 0";
    let mut progress = StopAt(Arc::clone(&stop), "running");
    let results = run(&options(line), &Env::real(), &stop, &mut progress).expect("has results");
    assert!(results.interrupted());
    assert!(!results.outcomes[0].measured.total().whole.is_empty());
    assert_eq!(results.broken().count(), 0, "{:?}", results.broken().next());
    assert!(results.text().contains("INTERRUPTED"));

    let stop = Arc::default();
    let mut progress = StopAt(Arc::clone(&stop), "loading");
    let line = "ycsb --table-size 10000000 --workers 2";
    let result = run(&options(line), &Env::real(), &stop, &mut progress);
    assert!(matches!(result, Err(BenchError::Interrupted)));
}

#[test]
fn reports_name_machine_configuration_and_commit() {
    let dir = tempfile::tempdir().expect("a directory");
    let (json, html) = (dir.path().join("r.json"), dir.path().join("r.html"));
    let line = format!(
        "ycsb --table-size 100 --workers 1,64 --in-flight 2 --transactions 500 --json {} --html {}",
        json.display(),
        html.display()
    );
    let results = ran(&line);
    results.write_files(&Env::real()).expect("writes");
    let text = results.text();
    let json = read(&json);
    let html = read(&html);
    assert_eq!((&json, &html), (&results.json(), &results.html()));
    for report in [&text, &json, &html] {
        for named in [
            results.machine.commit,
            &results.machine.kernel,
            "read-committed",
            "none (entries are made and dropped",
            "500 transactions",
        ] {
            assert!(report.contains(named), "{named} in {report}");
        }
    }
    assert!(text.contains("64 workers (more than cores)"), "{text}");
    assert!(json.contains("\"more_workers_than_cores\": true"));
    // Nothing is loaded from anywhere.
    for tag in ["<script", "http:", "https:", "src=", "@import", "url("] {
        assert!(!html.contains(tag), "{tag}");
    }
    assert!(!html.contains("NaN"));

    let nowhere = options("ycsb --table-size 10 --transactions 1 --json /nonexistent/r.json");
    let stop = Arc::default();
    let result = run(&nowhere, &Env::real(), &stop, &mut NoProgress);
    assert!(matches!(result, Err(BenchError::Write { .. })));
}
