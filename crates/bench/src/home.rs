//! Opens the home that a run's log goes to.
//!
//! Invariant: a run never writes among somebody's files. A directory given by a user must be empty, or not there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use logstead_engine::{Env, LocalHome, LocalOptions, LogHome, MemoryHome};

use logstead_home::HomeOptions;

use crate::BenchError;
use crate::discard::DiscardHome;
use crate::options::Home;

/// Segments of a log in memory.
const MEMORY_SEGMENT_BYTES: u64 = 16 << 20;

/// The directory of a run: `dir` itself, or one in it if the command makes several runs.
pub(crate) fn directory(dir: &Path, run: Option<usize>, env: &Env) -> Result<PathBuf, BenchError> {
    let dir = match run {
        None => dir.to_path_buf(),
        Some(run) => dir.join(format!("run-{}", run + 1)),
    };
    if env.files.list(&dir).is_ok_and(|names| !names.is_empty()) {
        return Err(BenchError::NotEmpty(dir));
    }
    Ok(dir)
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
