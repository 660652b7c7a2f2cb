//! `logstead fsck`: checks everything that a home holds, offline: each record, directory node and page of its
//! checkpoints with its checksum and all references between them, the stored indexes against the rows, and the log from
//! where the newest checkpoint needs it. Changes nothing.
//!
//! Which indexes there are, and how their keys are made, follows from the catalog that is in the checkpoint itself; no
//! server is started.
//!
//! Each part is checked against itself: the pages and indexes of one record, which is one moment, and one moment of the
//! log (`wal::recovery::moment`). The two need not be of the same time, and nothing is compared between them.
//!
//! A bucket may be looked at while a server runs. That server may take a new checkpoint and remove what only the one
//! before needed, while it is being read: what looks damaged is looked at again if there is a newer checkpoint by now,
//! or if what is pinned has changed: who gives up a branch or a restore point removes what only that needed. Indexes
//! are looked at again table by table.

use crate::branch::open_branch;
use crate::log_command::verified;
use crate::{EXIT_FAILURE, EXIT_USAGE, fail};
use clap::ArgMatches;
use logstead_checkpoint::{
    CheckpointError, CheckpointRecord, FsckReport, PINS, RecoveryPoint, points_of_now,
};
use logstead_engine::{IndexReport, ScratchFiles, StoredRows};
use logstead_env::Env;
use logstead_home::{LogHome, ObjectId};
use logstead_sql_catalog::stored_indexes;
use logstead_types::{DatabaseId, TableId};
use logstead_wal::inspect::{self, LogReport};
use logstead_wal::manifest::CheckpointRef;
use logstead_wal::recovery::RecoveryError;
use std::collections::BTreeSet;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// How often it begins anew because a server was faster.
const TRIES: u32 = 30;
/// They did not suffice.
const TOO_FAST: &str = "checkpoints are taken faster than they can be read: try again when the server has less to do, or check a backup";

/// What a look has found.
struct Found {
    newest: Option<CheckpointRef>,
    pages: FsckReport,
    indexes: IndexReport,
    log: Result<LogReport, RecoveryError>,
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
struct FsckOptions {
    /// Where entries are sorted that do not fit in memory.
    scratch: ScratchFiles,
    /// Not only the newest checkpoint's indexes, but those of every one that is kept.
    restore_points: bool,
}

type Failed = Box<dyn Error>;

fn look(home: &LogHome) -> Result<Found, Failed> {
    let manifest = inspect::manifest_of(home)?;
    let pages = logstead_checkpoint::fsck(home, manifest.database, manifest.checkpoint.as_ref())?;
    let log = match inspect::verify_home(home) {
        Err(error @ RecoveryError::TooFast(_)) => return Err(error.into()),
        log => log,
    };
    Ok(Found {
        newest: manifest.checkpoint,
        pages,
        indexes: IndexReport::default(),
        log,
    })
}

fn check(home: &LogHome, how: &FsckOptions) -> Result<Found, Failed> {
    let mut tries = 0;
    let mut found = loop {
        let pinned = pins_of_now(home)?;
        let found = look(home)?;
        let is_now = || {
            Ok::<_, Failed>(manifest_of_now(home)? == found.newest && pins_of_now(home)? == pinned)
        };
        if found.is_clean() || is_now()? {
            break found;
        }
        tries += 1;
        if tries == TRIES {
            return Err(TOO_FAST.into());
        }
    };
    found.indexes = newest_indexes(home, how)?;
    if how.restore_points {
        found.indexes.add(older_indexes(home, how)?);
    }
    Ok(found)
}

/// The indexes of the newest checkpoint against its rows, table by table. If what was removed meanwhile is missed, goes
/// on with the checkpoint that is the newest by then.
fn newest_indexes(home: &LogHome, how: &FsckOptions) -> Result<IndexReport, Failed> {
    let mut report = IndexReport::default();
    let mut done = BTreeSet::new();
    let mut tries = 0;
    loop {
        let manifest = inspect::manifest_of(home)?;
        let Some(newest) = &manifest.checkpoint else {
            return Ok(report);
        };
        let known = done.len();
        let of = (newest.object, newest.crc);
        let found = indexes_of(home, manifest.database, of, how, &mut done, &mut report)?;
        let is_newest = || Ok::<_, Failed>(manifest_of_now(home)? == manifest.checkpoint);
        if found.is_clean() || is_newest()? {
            report.add(found);
            return Ok(report);
        }
        tries = if done.len() > known { 0 } else { tries + 1 };
        if tries == TRIES {
            return Err(TOO_FAST.into());
        }
    }
}

fn manifest_of_now(home: &LogHome) -> Result<Option<CheckpointRef>, Failed> {
    Ok(inspect::manifest_of(home)?.checkpoint)
}

/// What says which records are pinned, as it is stored.
fn pins_of_now(home: &LogHome) -> Result<Option<Vec<u8>>, Failed> {
    Ok(home.names.get(PINS)?.map(|(bytes, _)| bytes))
}

/// The restore points there are now; or why they are not known, which is damage.
fn restore_points(home: &LogHome) -> Result<Result<Vec<RecoveryPoint>, String>, Failed> {
    let manifest = || Ok::<_, Failed>(inspect::manifest_of(home)?);
    match points_of_now(home, manifest) {
        Ok(points) => Ok(Ok(points)),
        Err(error) => match error.downcast_ref::<CheckpointError>() {
            None | Some(CheckpointError::Home(_)) => Err(error),
            Some(damage) => Ok(Err(damage.to_string())),
        },
    }
}

/// The indexes of restore points.
fn older_indexes(home: &LogHome, how: &FsckOptions) -> Result<IndexReport, Failed> {
    let manifest = inspect::manifest_of(home)?;
    let mut report = IndexReport::default();
    let points = match restore_points(home)? {
        Ok(points) => points,
        Err(damage) => {
            report.damages = 1;
            let damage = format!("no index of a restore point is compared: {damage}");
            report.damage.push(damage);
            return Ok(report);
        }
    };
    for point in points.iter().filter(|point| !point.is_newest) {
        let record = point.record;
        let (mut own, mut done) = (IndexReport::default(), BTreeSet::new());
        let of = (record.object, record.crc);
        let rest = indexes_of(home, manifest.database, of, how, &mut done, &mut own)?;
        own.add(rest);
        if !own.is_clean() {
            let now = restore_points(home)?;
            if now.is_ok_and(|now| !now.iter().any(|point| point.record == record)) {
                // It was given up while it was being read.
                continue;
            }
        }
        for damage in &mut own.damage {
            *damage = format!("checkpoint record {}: {damage}", record.object);
        }
        report.add(own);
    }
    Ok(report)
}

/// Compares the indexes of one checkpoint with its rows, but for tables that are `done`. What is said of those that are
/// sound goes to `report`, and they are done; given is what is said of the others.
fn indexes_of(
    home: &LogHome,
    database: DatabaseId,
    (object, crc): (ObjectId, u32),
    how: &FsckOptions,
    done: &mut BTreeSet<TableId>,
    report: &mut IndexReport,
) -> Result<IndexReport, Failed> {
    let mut found = IndexReport::default();
    let record = match CheckpointRecord::read(home.objects.as_ref(), database, object, crc) {
        Ok(record) => record,
        Err(CheckpointError::Home(error)) => return Err(error.into()),
        Err(error) => {
            found.damages = 1;
            found.damage.push(format!("no index is compared: {error}"));
            return Ok(found);
        }
    };
    let mut rows = StoredRows::new(home, &record);
    let mut unread = None;
    let catalog = stored_indexes(
        logstead_sql_ddl::pg_catalog::system_catalog(),
        |table, each| {
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
        },
    );
    let catalog = match (unread, catalog) {
        (Some(CheckpointError::Home(error)), _) => return Err(error.into()),
        (None, Ok(catalog)) => catalog,
        (unread, catalog) => {
            let why = unread.map(|error| error.to_string());
            let why = why.or(catalog.err().map(|error| error.to_string()));
            found.damages = 1;
            found.damage.push(format!(
                "no index of the checkpoint at CSN {} is compared with its rows, for its catalog cannot be read: {}",
                record.csn,
                why.unwrap_or_default()
            ));
            return Ok(found);
        }
    };
    let in_use = rows.in_use(&catalog);
    let used: usize = in_use.values().map(Vec::len).sum();
    for (table, indexes) in &in_use {
        if done.contains(table) {
            continue;
        }
        let of_table = rows.check_table(*table, indexes, &how.scratch)?;
        if of_table.is_clean() {
            report.add(of_table);
            done.insert(*table);
        } else {
            found.add(of_table);
        }
    }
    found.not_used = (record.indexes.len() - used) as u64;
    Ok(found)
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
    let how = FsckOptions {
        scratch: ScratchFiles::new(Arc::clone(&env.files), scratch, prefix),
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

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_checkpoint::{Pin, PinKind, Pins, RetainedRecord};
    use logstead_home::{
        HomeError, ImmutableObjects, MemoryHome, NamedValues, ObjectCopies, ObjectInfo,
        ObjectReader, Tag,
    };
    use logstead_types::{Csn, Epoch};
    use logstead_wal::manifest::Manifest;
    use std::sync::atomic::{AtomicBool, Ordering};

    const PINNED: ObjectId = ObjectId::new(Epoch(1), 5);

    /// A home in which somebody gives up a restore point, and removes what only that needed, before its record is read.
    struct GivenUp {
        inner: MemoryHome,
        once: AtomicBool,
    }

    impl ObjectReader for GivenUp {
        fn read_object(
            &self,
            id: ObjectId,
            offset: u64,
            into: &mut [u8],
        ) -> Result<usize, HomeError> {
            if id == PINNED && !self.once.swap(true, Ordering::SeqCst) {
                let (_, tag): (_, Tag) = self.inner.get(PINS)?.expect("pins");
                let none = Pins::default().encode();
                self.inner.compare_and_swap(PINS, tag, &none)?;
            }
            self.inner.read_object(id, offset, into)
        }

        fn object_copies(&self) -> Option<&dyn ObjectCopies> {
            self.inner.object_copies()
        }
    }

    impl ImmutableObjects for GivenUp {
        fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
            self.inner.put_object(id, bytes)
        }

        fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
            self.inner.list_objects()
        }

        fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
            self.inner.remove_object(id)
        }
    }

    #[test]
    fn a_restore_point_that_is_given_up_meanwhile_is_no_damage() {
        let inner = MemoryHome::new(1 << 16);
        let first = Manifest::first(DatabaseId(7));
        inner.put_if_absent("manifest", &first.encode()).unwrap();
        let record = RetainedRecord {
            object: PINNED,
            crc: 1,
            csn: Csn(9),
            taken_at_micros: 1,
        };
        let mut pins = Pins::default();
        pins.put(Pin {
            kind: PinKind::Point,
            name: "point".to_owned(),
            record,
        });
        inner.put_if_absent(PINS, &pins.encode()).unwrap();
        let home = LogHome {
            objects: Arc::new(GivenUp {
                inner: inner.clone(),
                once: AtomicBool::new(false),
            }),
            ..LogHome::from(inner)
        };
        let how = FsckOptions {
            scratch: ScratchFiles::new(Env::real().files, std::env::temp_dir(), "none".to_owned()),
            restore_points: true,
        };
        let found = check(&home, &how).unwrap();
        assert!(found.is_clean(), "{}", found.text());
    }
}
