//! The conformance suite, and opening and refusing, against real object stores on this machine.
//!
//! `./test` installs the stores and names them in E2E_AZURITE, E2E_VERSITYGW and E2E_MOTO, with the Python in
//! E2E_PYTHON that runs `tests/e2e/objectstores.py`, which starts them. Without these variables a test is skipped and
//! says so; with E2E_OBJECT_STORES, which `./test` sets, that is a failure. The development bucket runs in the test
//! itself, always.
//!
//! Credentials come from the environment, as a server's do: each suite runs in a process of its own, this same program.

use logstead_devbucket::{DevBucket, DevBucketOptions};
use logstead_env::Env;
use logstead_home::{
    HomeError, HomeOptions, LogHome, OBJECT_BYTES_MAX, ObjectOptions, conformance, open,
    open_read_only,
};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What the child process does: a suite's name, and a URL without a prefix.
const CHILD: &str = "LOGSTEAD_TEST_SERVERS_CHILD";
/// Objects of every store; of the quicker ones also the largest.
const OBJECT_BYTES: usize = (5 << 20) + 1;
/// Generous: a suite takes seconds.
const SUITE_SECONDS_MAX: u32 = 300;
const KEYS: (&str, &str) = ("TESTACCESSKEY", "test-secret-key");

/// A store that answers.
struct Store {
    /// Of its bucket, without a prefix.
    url: String,
    environment: Vec<(String, String)>,
    _running: Running,
}

enum Running {
    Here { _bucket: DevBucket },
    There(Child),
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Running::There(child) = self {
            // The end of its input is what it waits for.
            drop(child.stdin.take());
            let ended = child.wait();
            assert!(ended.is_ok(), "{ended:?}");
        }
    }
}

fn dev_bucket(scheme: &str, bucket: &str) -> Store {
    let mut options = DevBucketOptions::new(KEYS.0, KEYS.1);
    options.buckets = vec![bucket.to_owned()];
    let running = DevBucket::start(options, &Env::real()).unwrap();
    let endpoint = running.endpoint();
    let environment = [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ACCESS_KEY_ID", KEYS.0),
        ("AWS_SECRET_ACCESS_KEY", KEYS.1),
        ("AWS_REGION", "us-east-1"),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Store {
        url: format!("{scheme}://{bucket}"),
        environment: environment.to_vec(),
        _running: Running::Here { _bucket: running },
    }
}

/// Starts a store by its name in `objectstores.py`; `None`: it is not installed, and need not be.
fn installed(name: &str, variable: &str, dir: &Path) -> Option<Store> {
    let missing = [variable, "E2E_PYTHON"]
        .into_iter()
        .find(|variable| std::env::var_os(variable).is_none());
    if let Some(missing) = missing {
        assert!(
            std::env::var_os("E2E_OBJECT_STORES").is_none(),
            "./test installs {name}, but {missing} is not set"
        );
        eprintln!("skipped: {missing} is not set: ./test installs {name}");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/e2e/objectstores.py");
    let mut child = Command::new(std::env::var_os("E2E_PYTHON")?)
        .arg(script)
        .arg(name)
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: Vec<String> = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap)
        .take_while(|line| !line.is_empty())
        .collect();
    let (url, environment) = lines.split_first().expect("it started");
    let environment = environment.iter().map(|line| {
        let (name, value) = line.split_once('=').expect("NAME=VALUE");
        (name.to_owned(), value.to_owned())
    });
    Some(Store {
        url: url.clone(),
        environment: environment.collect(),
        _running: Running::There(child),
    })
}

impl Store {
    /// Runs a suite against it.
    fn suite(&self, suite: &str, url: &str) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "servers::child", "--nocapture"])
            .env(CHILD, format!("{suite} {url}"))
            .envs(self.environment.iter().cloned())
            .env_remove("AWS_PROFILE")
            .env("AWS_CONFIG_FILE", "/nonexistent")
            .env("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
            .spawn()
            .unwrap();
        // A home repeats what fails without an end: a suite that hangs has failed.
        for _ in 0..SUITE_SECONDS_MAX * 10 {
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success(), "{suite} {url}: {status}");
                return;
            }
            logstead_env::sleep(Duration::from_millis(100));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("{suite} {url}: not within {SUITE_SECONDS_MAX} s");
    }
}

#[test]
fn the_development_bucket_s_appendable_objects() {
    let store = dev_bucket("s3express", "b--z1--x-s3");
    store.suite("home", &store.url);
}

#[test]
fn the_development_bucket_s_plain_objects() {
    let store = dev_bucket("s3", "general");
    store.suite("home", &store.url);
    store.suite("large", &store.url);
    // A general bucket takes no appends, and says so.
    store.suite("refused", "s3express://general");
}

#[test]
fn azurite_s_append_blobs() {
    let dir = tempfile::tempdir().unwrap();
    if let Some(store) = installed("azurite", "E2E_AZURITE", dir.path()) {
        store.suite("home", &store.url);
        store.suite(
            "home",
            &store
                .url
                .replace("azure:", "az:")
                .replace("logstead", "logstead/az"),
        );
    }
}

#[test]
fn versitygw_s_objects() {
    let dir = tempfile::tempdir().unwrap();
    if let Some(store) = installed("versitygw", "E2E_VERSITYGW", dir.path()) {
        store.suite("home", &store.url);
        store.suite("large", &store.url);
        store.suite("overwrites", &store.url.replace("s3:", "s3express:"));
    }
}

#[test]
fn moto_s_objects() {
    let dir = tempfile::tempdir().unwrap();
    if let Some(store) = installed("moto", "E2E_MOTO", dir.path()) {
        store.suite("home", &store.url);
        store.suite("overwrites", &store.url.replace("s3:", "s3express:"));
    }
}

/// The suites: does nothing unless one of the tests above runs it.
#[test]
fn child() {
    let Ok(told) = std::env::var(CHILD) else {
        return;
    };
    let (suite, url) = told.split_once(' ').unwrap();
    match suite {
        "home" => home(url),
        "large" => large(url),
        "refused" => refused(url, "does not append"),
        "overwrites" => refused(url, "use s3:// for this server"),
        other => panic!("there is no suite {other}"),
    }
}

fn small() -> HomeOptions {
    HomeOptions {
        objects: ObjectOptions {
            appends_per_segment_max: 10,
            ..ObjectOptions::default()
        },
        ..HomeOptions::default()
    }
}

fn opened(url: &str) -> Result<LogHome, HomeError> {
    open(url, &Env::real(), &small())
}

fn error(opened: Result<LogHome, HomeError>) -> String {
    match opened {
        Ok(home) => panic!("{} was opened", home.describe()),
        Err(error) => error.to_string(),
    }
}

fn home(bucket: &str) {
    let url = format!("{bucket}/some/log");
    let env = Env::real();
    let none = open_read_only(&url, &env);
    assert!(matches!(none, Err(HomeError::Missing(_))), "nothing yet");
    let home = opened(&url).unwrap();
    let described = home.describe();
    assert!(home.capabilities().leased);
    for secret in [KEYS.0, KEYS.1, "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1"] {
        assert!(!described.contains(secret), "{described}");
        assert!(!format!("{:?}", home.status.report()).contains(secret));
    }
    conformance::check(&home);
    drop(home);
    // There are objects and no manifest: what the log was cannot be known.
    let refused = error(opened(&url));
    assert!(refused.contains("no manifest"), "{refused}");
    // A prefix around or beside it: somebody else's data, and nothing.
    let around = error(opened(&format!("{bucket}/some")));
    assert!(around.contains("no manifest"), "{around}");
    let beside = opened(&format!("{bucket}/some/log2")).unwrap();
    beside.names.put_if_absent("manifest", b"told").unwrap();
    let again = opened(&format!("{bucket}/some/log2")).unwrap();
    assert_eq!(again.names.get("manifest").unwrap().unwrap().0, b"told");
    // Objects, and a log that is truncated while it is written, over two lives.
    let third = format!("{bucket}/some/log3");
    let first = opened(&third).unwrap();
    first.names.put_if_absent("manifest", b"told").unwrap();
    conformance::check_objects(&first, OBJECT_BYTES);
    let kept = conformance::check_trimmed_life(&first, &|| false, 0, &[]);
    drop(first);
    conformance::check_trimmed_life(&opened(&third).unwrap(), &|| false, 1, &kept);
    // Reading only: nothing is written, whoever else has it open.
    let reader = open_read_only(&format!("{bucket}/some/log2"), &env).unwrap();
    assert_eq!(reader.names.get("manifest").unwrap().unwrap().0, b"told");
    assert!(reader.segments.list_lanes().unwrap().is_empty());
    for told in reader.status.usage() {
        let written = told.usage.appends + told.usage.writes + told.usage.deletes;
        assert_eq!(written, 0, "{:?}", told.usage);
    }
}

/// The largest objects there may be.
fn large(bucket: &str) {
    let home = opened(&format!("{bucket}/large")).unwrap();
    conformance::check_objects(&home, OBJECT_BYTES_MAX);
}

fn refused(url: &str, why: &str) {
    let refused = error(opened(&format!("{url}/log")));
    assert!(refused.contains(why), "{refused}");
    let left = open_read_only(&format!("{url}/log"), &Env::real());
    assert!(
        matches!(left, Err(HomeError::Missing(_))),
        "nothing is left"
    );
}
