//! Opens the home that a run's log goes to.
//!
//! Invariant: a run never writes among somebody's files. A directory given by a user must be empty, or not there; in a
//! bucket a run writes below a prefix of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use logstead_engine::{Env, LocalHome, LocalOptions, LogHome, MemoryHome};
use logstead_env::FileKind;

use logstead_home::HomeOptions;

use crate::BenchError;
use crate::discard::discard_home;
use crate::options::Home;

/// Segments of a log in memory.
const MEMORY_SEGMENT_BYTES: u64 = 16 << 20;

/// The directory of a run: `dir` itself, or one in it if the command makes several runs.
pub(crate) fn directory(dir: &Path, run: Option<usize>, env: &Env) -> Result<PathBuf, BenchError> {
    let dir = place(dir, run);
    if !files(&dir, env).is_empty() {
        return Err(BenchError::NotEmpty(dir));
    }
    Ok(dir)
}

fn place(dir: &Path, run: Option<usize>) -> PathBuf {
    match run {
        None => dir.to_path_buf(),
        Some(run) => dir.join(format!("run-{}", run + 1)),
    }
}

/// Objects removed at a time.
const REMOVED_TOGETHER: usize = 16;
/// Schemes whose homes are no buckets.
const NO_BUCKETS: [&str; 3] = ["file", "sim", "memory"];

/// What a run's objects are called by in a bucket: no two processes at work have one in common.
pub(crate) fn prefix(run: Option<usize>) -> String {
    let run = run.map_or(0, |run| run + 1);
    format!("bench-{}-{run}", std::process::id())
}

/// The buckets in a list of URLs; empty if it names something else.
pub(crate) fn buckets(url: &str) -> Vec<&str> {
    let is_bucket = |url: &&str| {
        url.split_once("://")
            .is_some_and(|(scheme, _)| !NO_BUCKETS.contains(&scheme))
    };
    let urls: Vec<&str> = url.split(',').collect();
    if urls.iter().all(is_bucket) {
        urls
    } else {
        Vec::new()
    }
}

/// The same URL, below the prefix.
pub(crate) fn below(url: &str, prefix: &str) -> String {
    let (place, options) = match url.split_once('?') {
        Some((place, options)) => (place, format!("?{options}")),
        None => (url, String::new()),
    };
    format!("{}/{prefix}{options}", place.trim_end_matches('/'))
}

/// Opens it. `run` tells the runs of one command apart, if there are several.
pub(crate) fn open(home: &Home, run: Option<usize>, env: &Env) -> Result<LogHome, BenchError> {
    Ok(match home {
        Home::Discarded => discard_home(),
        Home::Url(url) => {
            let own: Vec<String> = buckets(url)
                .into_iter()
                .map(|url| below(url, &prefix(run)))
                .collect();
            let url = match own.as_slice() {
                [] => url.clone(),
                own => own.join(","),
            };
            logstead_home::open(&url, env, &HomeOptions::default())
                .map_err(|error| BenchError::Open(error.to_string()))?
        }
        Home::Memory => LogHome::from(MemoryHome::new(MEMORY_SEGMENT_BYTES)),
        Home::Local(dir) => {
            let dir = directory(dir, run, env)?;
            let home = LocalHome::open(dir, env, LocalOptions::default());
            LogHome::from(home.map_err(|error| BenchError::Open(error.to_string()))?)
        }
    })
}

/// Removes what a run left in its directory or its buckets, and says what it could not. Directories stay, empty: they
/// cost nothing, and are in nobody's way.
pub(crate) fn remove(home: &Home, run: Option<usize>, env: &Env) -> Vec<String> {
    let dir = match home {
        Home::Local(dir) => dir,
        Home::Url(url) => {
            let all = buckets(url).into_iter();
            return all
                .filter_map(|url| {
                    let removed = remove_objects(url, &format!("{}/", prefix(run)), env);
                    removed
                        .err()
                        .map(|why| format!("{}: {why}", below(url, &prefix(run))))
                })
                .collect();
        }
        Home::Memory | Home::Discarded => return Vec::new(),
    };
    for file in files(&place(dir, run), env) {
        // What stays fails the next run there, with its name.
        let _stays = env.files.remove(&file);
    }
    Vec::new()
}

/// A runtime for one thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, BenchError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| BenchError::Failed(error.to_string()))
}

/// Removes every object below a prefix.
fn remove_objects(url: &str, prefix: &str, env: &Env) -> Result<(), BenchError> {
    let failed = |error: &dyn std::fmt::Display| BenchError::Failed(error.to_string());
    let bucket = logstead_home::bucket::open(url, env).map_err(|error| failed(&error))?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime()?, async {
        let all = bucket.list(prefix).await.map_err(|error| failed(&error))?;
        for some in all.chunks(REMOVED_TOGETHER) {
            let removals: Vec<_> = some
                .iter()
                .map(|entry| {
                    let (bucket, name) = (Arc::clone(&bucket), entry.name.clone());
                    tokio::task::spawn_local(async move { bucket.delete(&name).await })
                })
                .collect();
            for removal in removals {
                let removed = removal.await.map_err(|error| failed(&error))?;
                removed.map_err(|error| failed(&error))?;
            }
        }
        Ok(())
    })
}

/// Everything in a directory, or in one in it, that is no directory.
fn files(dir: &Path, env: &Env) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let names = env.files.list(dir).unwrap_or_default();
    for path in names.into_iter().map(|name| dir.join(name)) {
        match env.files.kind(&path) {
            Ok(Some(FileKind::Directory)) => found.extend(files(&path, env)),
            _ => found.push(path),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_in_buckets_have_a_prefix_each() {
        assert_eq!(
            buckets("s3://b/p?e=f,azure://c"),
            ["s3://b/p?e=f", "azure://c"]
        );
        for url in [
            "sim://?model=s3express",
            "file:///d,s3://b",
            "memory:",
            "/d",
        ] {
            assert!(buckets(url).is_empty(), "{url}");
        }
        assert_eq!(below("s3://b", "x-1"), "s3://b/x-1");
        assert_eq!(
            below("s3://b/p/?e=http://h/", "x-1"),
            "s3://b/p/x-1?e=http://h/"
        );
        assert_ne!(prefix(None), prefix(Some(0)));
        assert_ne!(prefix(Some(1)), prefix(Some(0)));
    }
}
