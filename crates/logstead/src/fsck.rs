//! `logstead fsck`: checks everything that a home holds, offline: each record, directory node and page of its checkpoints with its
//! checksum and all references between them, the stored indexes against the rows, and the log from where the newest checkpoint needs it. Changes nothing.
//!
//! Which indexes there are, and how their keys are made, follows from the catalog that is in the checkpoint itself; no server is started.
//!
//! A bucket may be looked at while a server runs. That server may take a new checkpoint and remove what only the one before
//! needed, while it is being read: what looks damaged is looked at again if there is a newer checkpoint by now.

use crate::branch::open_branch;
use crate::log::verified;
use crate::{EXIT_FAILURE, EXIT_USAGE, fail};
use clap::ArgMatches;
use logstead_checkpoint::{CheckpointError, Point, Record, Report, points};
use logstead_engine::{IndexReport, Scratch, StoredRows};
use logstead_env::Env;
use logstead_home::{LogHome, ObjectId};
use logstead_sql::catalog::stored_indexes;
use logstead_types::DatabaseId;
use logstead_wal::inspect::{self, Verified};
use logstead_wal::manifest::{Checkpoint, Manifest};
use logstead_wal::recovery::RecoveryError;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// How often it begins anew because a server was faster.
const TRIES: u32 = 10;

/// What a look has found.
struct Found {
    newest: Option<Checkpoint>,
    pages: Report,
    indexes: IndexReport,
    log: Result<Verified, RecoveryError>,
}

impl Found {
    fn is_clean(&self) -> bool {
        self.pages.is_clean() && self.indexes.is_clean() && self.log.is_ok()
    }

    /// For people: what is wrong first, one line each, then the counts.
    fn text(&self) -> String {
        let mut text = String::new();
        let found = [
            (&self.pages.damage, self.pages.damages),
            (&self.indexes.damage, self.indexes.damages),
        ];
        for (listed, all) in found {
            for damage in listed {
                text += &format!("DAMAGED: {damage}\n");
            }
            let listed = listed.len() as u64;
            if all > listed {
                text += &format!("DAMAGED: {} more\n", all - listed);
            }
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
                text += &format!("indexes: {}\n", self.indexes);
            }
            None => text += &format!("no checkpoint: {}\n", self.pages),
        }
        if let Ok(found) = &self.log {
            text += &verified(found);
        }
        text
    }
}

/// How it is to be done.
struct How {
    /// Where entries are sorted that do not fit in memory.
    scratch: Scratch,
    /// Not only the newest checkpoint's indexes, but those of every one that is kept.
    restore_points: bool,
}

type Failed = Box<dyn Error>;

fn look(home: &Arc<dyn LogHome>, how: &How) -> Result<Found, Failed> {
    let manifest = inspect::manifest_of(home.as_ref())?;
    let pages = logstead_checkpoint::fsck(home, manifest.database, manifest.checkpoint.as_ref())?;
    Ok(Found {
        pages,
        indexes: indexes(home, &manifest, how)?,
        newest: manifest.checkpoint,
        log: inspect::verify_home(home.as_ref()),
    })
}

/// The indexes of the checkpoints that are asked for.
fn indexes(home: &Arc<dyn LogHome>, manifest: &Manifest, how: &How) -> Result<IndexReport, Failed> {
    let Some(newest) = &manifest.checkpoint else {
        return Ok(IndexReport::default());
    };
    let database = manifest.database;
    let mut report = indexes_of(home, database, (newest.object, newest.crc), how)?;
    let older = match how.restore_points {
        // What cannot be read of them is told by who reads all pages.
        true => match points(home.as_ref(), manifest) {
            Err(CheckpointError::Home(error)) => return Err(error.into()),
            points => points.unwrap_or_default(),
        },
        false => Vec::new(),
    };
    let named = |point: &Point| (point.record.object, point.record.crc);
    for (object, crc) in older.iter().map(named) {
        if object == newest.object {
            continue;
        }
        let mut found = indexes_of(home, database, (object, crc), how)?;
        for damage in &mut found.damage {
            *damage = format!("checkpoint record {object}: {damage}");
        }
        report.add(found);
    }
    Ok(report)
}

/// The indexes of one checkpoint against its rows.
fn indexes_of(
    home: &Arc<dyn LogHome>,
    database: DatabaseId,
    (object, crc): (ObjectId, u32),
    how: &How,
) -> Result<IndexReport, Failed> {
    let record = match Record::read(home.as_ref(), database, object, crc) {
        Ok(record) => record,
        Err(CheckpointError::Home(error)) => return Err(error.into()),
        // It is told by who reads all pages.
        Err(_) => return Ok(IndexReport::default()),
    };
    let mut rows = StoredRows::new(home, &record);
    let mut unread = None;
    let catalog = stored_indexes(|table, each| {
        let mut wrong = None;
        let read = rows.each(table, |rid, row| {
            if wrong.is_none() {
                wrong = each(rid, row).err();
            }
        });
        // What was handed out of a damaged page counts for nothing, and may be why it does not decode.
        if let Err(error) = read {
            unread.get_or_insert(error);
            return Ok(());
        }
        wrong.map_or(Ok(()), Err)
    });
    let why = match (unread, catalog) {
        (Some(CheckpointError::Home(error)), _) => return Err(error.into()),
        (Some(error), _) => error.to_string(),
        (None, Err(error)) => error.to_string(),
        (None, Ok(catalog)) => return Ok(rows.check_indexes(&catalog, &how.scratch)?),
    };
    Ok(IndexReport {
        damage: vec![format!(
            "no index of the checkpoint at CSN {} is compared with its rows, for its catalog cannot be read: {why}",
            record.csn
        )],
        damages: 1,
        ..IndexReport::default()
    })
}

fn check(home: &Arc<dyn LogHome>, how: &How) -> Result<Found, Failed> {
    let mut tries = 1;
    loop {
        let found = look(home, how)?;
        if found.is_clean() || inspect::manifest_of(home.as_ref())?.checkpoint == found.newest {
            return Ok(found);
        }
        if tries == TRIES {
            let what = "checkpoints are taken faster than one can be read: try again when the server has less to do, or check a backup";
            return Err(what.into());
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
        None => open(url).map_err(Into::into),
    };
    let scratch = match arguments.get_one::<String>("scratch") {
        Some(dir) => PathBuf::from(dir),
        None => std::env::temp_dir(),
    };
    let prefix = format!("logstead-fsck-{}", std::process::id());
    let how = How {
        scratch: Scratch::new(Arc::clone(&env.files), scratch, prefix),
        restore_points: arguments.get_flag("restore-points"),
    };
    let found = home
        .map_err(Failed::from)
        .and_then(|home| check(&home, &how));
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
