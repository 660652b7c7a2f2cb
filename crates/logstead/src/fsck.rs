//! `logstead fsck`: checks everything that a home holds, offline: each record, directory node and page of its checkpoints with its
//! checksum and all references between them, and the log from where the newest checkpoint needs it. Changes nothing.
//!
//! A bucket may be looked at while a server runs. That server may take a new checkpoint and remove what only the one before
//! needed, while it is being read: what looks damaged is looked at again if there is a newer checkpoint by now.

use crate::branch::open_branch;
use crate::log::verified;
use crate::{EXIT_FAILURE, EXIT_USAGE, fail};
use clap::ArgMatches;
use logstead_checkpoint::{BranchError, Report};
use logstead_env::Env;
use logstead_home::LogHome;
use logstead_wal::inspect::{self, Verified};
use logstead_wal::manifest::Checkpoint;
use logstead_wal::recovery::RecoveryError;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// How often it begins anew because a server was faster.
const TRIES: u32 = 10;

/// What a look has found.
struct Found {
    newest: Option<Checkpoint>,
    pages: Report,
    log: Result<Verified, RecoveryError>,
}

impl Found {
    fn is_clean(&self) -> bool {
        self.pages.is_clean() && self.log.is_ok()
    }

    /// For people: what is wrong first, one line each, then the counts.
    fn text(&self) -> String {
        let mut text = String::new();
        for damage in &self.pages.damage {
            text += &format!("DAMAGED: {damage}\n");
        }
        let listed = self.pages.damage.len() as u64;
        if self.pages.damages > listed {
            text += &format!("DAMAGED: {} more\n", self.pages.damages - listed);
        }
        if let Err(error) = &self.log {
            text += &format!("DAMAGED: the log: {error}\n");
        }
        match &self.newest {
            Some(newest) => {
                text += &format!(
                    "the checkpoint at CSN {} of epoch {}: {}\n",
                    newest.csn, newest.epoch, self.pages
                );
            }
            None => text += &format!("no checkpoint: {}\n", self.pages),
        }
        if let Ok(found) = &self.log {
            text += &verified(found);
        }
        text
    }
}

fn look(home: &Arc<dyn LogHome>) -> Result<Found, RecoveryError> {
    let manifest = inspect::manifest_of(home.as_ref())?;
    let pages = logstead_checkpoint::fsck(home, manifest.database, manifest.checkpoint.as_ref())?;
    Ok(Found {
        newest: manifest.checkpoint,
        pages,
        log: inspect::verify_home(home.as_ref()),
    })
}

fn check(home: &Arc<dyn LogHome>) -> Result<Found, RecoveryError> {
    let mut tries = 1;
    loop {
        let found = look(home)?;
        if found.is_clean()
            || tries == TRIES
            || inspect::manifest_of(home.as_ref())?.checkpoint == found.newest
        {
            return Ok(found);
        }
        tries += 1;
    }
}

pub(crate) fn run(arguments: &ArgMatches) -> ExitCode {
    let Some(url) = arguments.get_one::<String>("URL") else {
        return ExitCode::from(EXIT_USAGE);
    };
    let env = Env::real();
    let open = |url: &str| logstead_home::open_read_only(url, &env);
    let home = match arguments.get_one::<String>("branch") {
        Some(branch) => open_branch(url, branch, &env, open),
        None => open(url).map_err(BranchError::from),
    };
    let found = home.and_then(|home| Ok(check(&home)?));
    match found {
        Ok(found) => {
            // A reader that closed the pipe has read enough.
            let _pipe_may_be_closed = std::io::stdout().write_all(found.text().as_bytes());
            if found.is_clean() {
                ExitCode::SUCCESS
            } else {
                fail(EXIT_FAILURE, &format!("{url} is damaged"))
            }
        }
        Err(error) => fail(EXIT_FAILURE, &error.to_string()),
    }
}
