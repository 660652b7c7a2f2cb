//! The golden SQL scripts of `tests/sql` in this process: what psql prints for them is compared with what PostgreSQL 15
//! made it print, in `tests/sql/expected`, as `tests/e2e/test_golden.py` does with a server. A change of binding or of
//! execution shows without one.
//!
//! Each script is four tests, whose names begin with where rows are meanwhile: `present::NAME`, `played::NAME`,
//! `evicted::NAME`, `divided::NAME` ([`server::Rows`]). As usual, a part of a name chooses:
//!
//! ```sh
//! cargo test --workspace --locked --test golden arrays
//! ```
//!
//! A script runs up to the first command of psql's that [`psql`] does not know (`\d`, `\c`), and up to there it is
//! compared. Scripts that ask for what a server has and a session has not are in [`NOT_HERE`].
#![allow(
    clippy::disallowed_methods,
    reason = "the test looks at the repository's files"
)]

#[path = "golden/difference.rs"]
mod difference;
#[path = "golden/message.rs"]
mod message;
#[path = "golden/psql.rs"]
mod psql;
#[path = "golden/replies.rs"]
mod replies;
#[path = "golden/scan.rs"]
mod scan;
#[path = "golden/server.rs"]
mod server;
#[path = "golden/table.rs"]
mod table;

use server::Rows;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Scripts that do not run here, and why.
const NOT_HERE: [(&str, &str); 1] = [(
    "client_encodings",
    "texts are converted by the connection, in crates/wire",
)];

/// Scripts in which rows without ORDER BY are in the order of their insertion. Where tables are divided they are not,
/// and lines are compared as they come by their letters.
const UNORDERED: [&str; 13] = [
    "copy",
    "guarded_rows",
    "hstore",
    "query_forms",
    "row_security",
    "row_subqueries",
    "sublinks",
    "subqueries_places",
    "triggers",
    "types_geometry",
    "types_network",
    "types_user_ranges",
    "views",
];

/// Scripts that do not run where tables are divided, because the order of rows decides what they give.
const NOT_DIVIDED: [(&str, &str); 5] = [
    (
        "current_of",
        "it changes the rows that cursors come to first",
    ),
    (
        "cursors",
        "it fetches the first row of a cursor without ORDER BY",
    ),
    (
        "foreign_keys",
        "of several violations an error tells of the first",
    ),
    ("json_functions", "it aggregates rows in their order"),
    ("statistics", "it shows how rows correlate with their order"),
];

/// Of each kind at least so many scripts run to their ends.
const COMPLETE_MIN: usize = 160;
/// And so many statements.
const STATEMENTS_MIN: usize = 12_000;

/// A script, and where rows are while it runs.
struct Test {
    name: String,
    rows: Rows,
    script: PathBuf,
}

/// What became of a test that succeeded.
struct Run {
    statements: usize,
    is_complete: bool,
    chunks_loaded: u64,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/sql")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn stem(path: &Path) -> &str {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    stem.expect("scripts are named in ASCII")
}

fn tests() -> Vec<Test> {
    let entries = fs::read_dir(directory()).expect("tests/sql can be listed");
    let mut scripts: Vec<PathBuf> = entries
        .map(|entry| entry.expect("tests/sql can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .filter(|path| NOT_HERE.iter().all(|(name, _)| *name != stem(path)))
        .collect();
    scripts.sort();
    let mut tests = Vec::new();
    for (kind, rows) in Rows::ALL {
        let runs = |script: &&PathBuf| {
            rows != Rows::Divided || NOT_DIVIDED.iter().all(|(name, _)| *name != stem(script))
        };
        tests.extend(scripts.iter().filter(runs).map(|script| Test {
            name: format!("{kind}::{}", stem(script)),
            rows,
            script: script.clone(),
        }));
    }
    tests
}

/// The lines of a text in the order of their letters.
fn by_letters(text: &str) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.sort_unstable();
    lines.concat()
}

/// Without what plans of divided tables say of partitions, how wide plans are, and how many lines they have.
fn without_partitions(text: &str) -> String {
    let mut kept = String::new();
    let mut is_plan = false;
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        if words == "QUERY PLAN" {
            is_plan = true;
            kept.push_str("QUERY PLAN\n");
        } else if is_plan && words.starts_with('(') && words.ends_with(')') {
            is_plan = false;
        } else if !is_plan || !words.starts_with("Partitions: ") && !words.starts_with("---") {
            kept.push_str(line);
        }
    }
    kept
}

/// Runs a script; how it differs, if it does.
fn run(test: &Test) -> Result<Run, String> {
    let name = stem(&test.script);
    let text = read(&test.script);
    let (transcript, chunks_loaded) = server::run(test.rows, text, name == "errors");
    let expected = read(&directory().join("expected").join(format!("{name}.out")));
    let is_complete = transcript.stopped_at.is_none();
    // What it has not come to is not compared.
    let lines = transcript.text.split_inclusive('\n').count();
    let lines = if is_complete { usize::MAX } else { lines };
    let expected: String = expected.split_inclusive('\n').take(lines).collect();
    let comparable = |text: &str| match test.rows == Rows::Divided {
        true if UNORDERED.contains(&name) => by_letters(&without_partitions(text)),
        true => without_partitions(text),
        false => text.to_owned(),
    };
    let (expected, found) = (comparable(&expected), comparable(&transcript.text));
    match difference::difference(&expected, &found) {
        None => Ok(Run {
            statements: transcript.statements,
            is_complete,
            chunks_loaded,
        }),
        Some(difference) => Err(format!(
            "--- tests/sql/expected/{name}.out (PostgreSQL 15)\n+++ here\n{difference}"
        )),
    }
}

/// The same; a panic is a failure.
fn run_to_end(test: &Test) -> Result<Run, String> {
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(test)));
    ended.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("it panicked: {}", text.unwrap_or("without a text")))
    })
}

/// What the command line says, of what `cargo test` passes on.
#[derive(Default)]
struct Arguments {
    /// Parts of names, one of which a name has; none choose all.
    names: Vec<String>,
    /// Parts of names that are left out.
    skipped: Vec<String>,
    is_exact: bool,
    is_list: bool,
    /// Only tests that are ignored otherwise, and there are none.
    only_ignored: bool,
    threads: Option<usize>,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> Arguments {
        let mut arguments = Arguments::default();
        while let Some(argument) = given.next() {
            let (option, value) = match argument.split_once('=') {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            match option {
                "--exact" => arguments.is_exact = true,
                "--list" => arguments.is_list = true,
                "--ignored" => arguments.only_ignored = true,
                "--skip" => arguments.skipped.extend(value.or_else(|| given.next())),
                "--test-threads" => {
                    let value = value.or_else(|| given.next());
                    arguments.threads = value.and_then(|value| value.parse().ok());
                }
                "--color" | "--format" | "--logfile" | "-Z" if value.is_none() => {
                    given.next();
                }
                // Of no meaning here.
                option if option.starts_with('-') => {}
                _ => arguments.names.push(argument),
            }
        }
        arguments
    }

    fn choose(&self, name: &str) -> bool {
        let fits = |part: &String| match self.is_exact {
            true => name == part,
            false => name.contains(part.as_str()),
        };
        let is_named = self.names.is_empty() || self.names.iter().any(fits);
        is_named && !self.only_ignored && !self.skipped.iter().any(fits)
    }

    fn is_everything(&self) -> bool {
        self.names.is_empty() && self.skipped.is_empty() && !self.only_ignored
    }
}

/// Runs tests on as many threads, and gives what became of each.
fn run_all(tests: &[Test], threads: usize) -> Vec<Result<Run, String>> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<Run, String>>>> =
        tests.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, tests.len().max(1)) {
            scope.spawn(|| {
                while let Some((test, result)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    tests.get(number).zip(results.get(number))
                } {
                    let run = run_to_end(test);
                    if run.is_err() {
                        println!("test {} ... FAILED", test.name);
                    }
                    *result.lock().expect("nobody panics with it") = Some(run);
                }
            });
        }
    });
    let result = |result: Mutex<Option<Result<Run, String>>>| {
        let result = result.into_inner().expect("nobody panics with it");
        result.expect("every test has run")
    };
    results.into_iter().map(result).collect()
}

/// What a run of all tests has to have done: what is not run is not checked.
fn check_counts(tests: &[Test], results: &[Result<Run, String>]) {
    for (kind, rows) in Rows::ALL {
        let of_kind = tests
            .iter()
            .zip(results)
            .filter(|(test, _)| test.rows == rows);
        let runs: Vec<&Run> = of_kind
            .filter_map(|(_, result)| result.as_ref().ok())
            .collect();
        let complete = runs.iter().filter(|run| run.is_complete).count();
        let statements: usize = runs.iter().map(|run| run.statements).sum();
        let loaded: u64 = runs.iter().map(|run| run.chunks_loaded).sum();
        println!(
            "{kind}: {statements} statements of {} scripts, {complete} of them to the end; {loaded} chunks brought in",
            runs.len(),
        );
        assert!(
            complete >= COMPLETE_MIN,
            "{kind}: not {COMPLETE_MIN} scripts ran to the end"
        );
        assert!(
            statements >= STATEMENTS_MIN,
            "{kind}: not {STATEMENTS_MIN} statements ran"
        );
        assert_eq!(
            rows == Rows::Evicted,
            loaded > 0,
            "{kind}: {loaded} chunks brought in"
        );
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse(std::env::args().skip(1));
    let (tests, left_out): (Vec<Test>, Vec<Test>) = tests()
        .into_iter()
        .partition(|test| arguments.choose(&test.name));
    if arguments.is_list {
        tests
            .iter()
            .for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", tests.len());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let results = run_all(&tests, arguments.threads.unwrap_or(cores));
    let mut failed = 0;
    for (test, result) in tests.iter().zip(&results) {
        if let Err(why) = result {
            failed += 1;
            println!("\n---- {} ----\n{why}", test.name);
        }
    }
    if arguments.is_everything() && failed == 0 {
        check_counts(&tests, &results);
    }
    println!(
        "\ntest result: {}. {} passed; {failed} failed; 0 ignored; 0 measured; {} filtered out\n",
        if failed == 0 { "ok" } else { "FAILED" },
        tests.len() - failed,
        left_out.len(),
    );
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
