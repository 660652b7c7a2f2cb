//! Opens the home that a run's log goes to.
//!
//! Invariant: a run never writes among somebody's files. A directory given by a user must be empty, or not there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use logstead_engine::{Env, LocalHome, LocalOptions, LogHome, MemoryHome};
use logstead_env::FileKind;

use logstead_home::HomeOptions;

use crate::BenchError;
use crate::discard::DiscardHome;
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

/// Opens it. `run` tells the runs of one command apart, if there are several.
pub(crate) fn open(
    home: &Home,
    run: Option<usize>,
    env: &Env,
) -> Result<Arc<dyn LogHome>, BenchError> {
    Ok(match home {
        Home::Discarded => Arc::new(DiscardHome::default()),
        Home::Url(url) => logstead_home::open(url, env, &HomeOptions::default())
            .map_err(|error| BenchError::Open(error.to_string()))?,
        Home::Memory => Arc::new(MemoryHome::new(MEMORY_SEGMENT_BYTES)),
        Home::Local(dir) => {
            let dir = directory(dir, run, env)?;
            let home = LocalHome::open(dir, env, LocalOptions::default());
            Arc::new(home.map_err(|error| BenchError::Open(error.to_string()))?)
        }
    })
}

/// Removes what a run left in its directory. Directories stay, empty: they cost nothing, and are in nobody's way.
pub(crate) fn remove(home: &Home, run: Option<usize>, env: &Env) {
    let Home::Local(dir) = home else { return };
    for file in files(&place(dir, run), env) {
        // What stays fails the next run there, with its name.
        let _stays = env.files.remove(&file);
    }
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
