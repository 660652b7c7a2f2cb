//! Continuous backup: a storage node copies its volumes to another place, again and again, in the background.
//!
//! The backup of a volume is what `logstead backup` makes of it, below the place's URL. The node reads the volume as
//! any reader beside a server does, as one moment of the log from a read quorum of its nodes; objects it takes from its
//! own disk where it has everything.
//!
//! **Who does it.** All nodes of a volume have the same place. The first in the volume's list that is there, and does
//! not fail, does it; each node asks those before it in the list, every interval ([`at_work_before`]). So nothing is
//! stored at the place to say who it is, and nobody waits for a lease. Two may be at it for a while, where nodes do not
//! reach each other: then one of them stores the next backup and the other one hears that, by compare and swap of the
//! backup's manifest (`logstead_checkpoint::backup`, "Two at once").
//!
//! Invariants:
//! - It keeps nothing of a volume from being removed: a round that is too slow begins with the newer checkpoint.
//! - What is at the place belongs to one database. Another volume of the same name is refused.
//! - Whatever fails, the node serves. What failed is in the node's log once, and in its report ([`STATE`]), and is
//!   tried again after pauses that grow.
//!
//! Does not: back up branches by themselves, or volumes of homes of which some are no nodes.

use logstead_checkpoint::{BackupError, BackupReport, BackupSession, damage_of_object};
use logstead_env::{Env, Instant};
use logstead_home::{
    FleetPeers, HomeError, HomeOptions, ImmutableObjects, LocalOptions, LocalVolume, LogHome,
    ObjectCopies, ObjectId, ObjectInfo, ObjectReader, is_of_further_group, members_in_record,
    url_below,
};
use logstead_storage::{NodeBackground, VolumeNote};
use logstead_types::Csn;
use logstead_wal::recovery::RecoveryError;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tracing::{info, warn};

/// In a node's report: what it does about a volume's backup.
pub(crate) const STATE: &str = "backup";
/// Where to.
pub(crate) const PLACE: &str = "backup place";
/// The highest CSN of the last moment that this node has stored, or found there to be the newest.
pub(crate) const BACKUP_CSN: &str = "backup csn";
/// How many seconds ago that moment was.
pub(crate) const AGE: &str = "backup age";
/// What is wrong.
pub(crate) const ERROR: &str = "backup error";

/// The values of [`STATE`]: this node makes it.
pub(crate) const AT_WORK: &str = "at work";
/// Another one does, and this one would.
pub(crate) const STANDS_BY: &str = "stands by";
/// It cannot, so that another one had better.
pub(crate) const FAILS: &str = "fails";
/// There is nothing to do.
pub(crate) const NOTHING: &str = "nothing";

/// Threads. Volumes are divided among them, so that one that takes long delays few others.
const THREADS: u32 = 4;
/// After so many failures, one after the other, another node had better try.
const FAILURES_MAX: u32 = 2;
/// The place is given up for this time when it was out of reach for so long.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest pause after a failure.
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// The named value of a node's part of a volume that has the list of members.
const RECORD: &str = "manifest";
/// Homes of branches lie below their parent's.
const BRANCHES: &str = "/branches/";

/// What is copied where to.
#[derive(Clone)]
pub(crate) struct BackupOptions {
    /// The place's URL: each volume's backup lies below.
    pub(crate) url: String,
    /// Between the end of a round and the next one.
    pub(crate) interval: Duration,
    /// The fleet's secret.
    pub(crate) secret: Vec<u8>,
    /// The node's own directory.
    pub(crate) data: PathBuf,
}

impl BackupOptions {
    /// Why nothing can be copied to a URL, ever.
    pub(crate) fn check(url: &str) -> Result<(), String> {
        let parts = url.split_once("://");
        if parts.is_some_and(|(_, rest)| rest.split('/').next().unwrap_or_default().contains('@')) {
            return Err(
                "credentials do not belong in a URL: give them in the environment".to_owned(),
            );
        }
        let scheme = parts.map(|(scheme, _)| scheme);
        let is_one = !url.contains(",") && !url.is_empty();
        let takes = ["s3", "s3express", "azure", "az", "file"];
        match scheme.is_none_or(|scheme| takes.contains(&scheme)) && is_one {
            true => url_below(url, "x")
                .map(drop)
                .map_err(|error| error.to_string()),
            false => Err(format!(
                "\"{url}\" is no place for backups: it is the URL of an object store, or a directory"
            )),
        }
    }
}

/// Where the backup of a volume lies. Names of volumes have no dots.
pub(crate) fn place_of(url: &str, volume: &str) -> Result<String, HomeError> {
    url_below(url, &volume.replace('/', "."))
}

/// Starts to back up the node's volumes, until it stops.
pub(crate) fn start(
    node: &NodeBackground,
    options: &BackupOptions,
    env: &Env,
) -> std::io::Result<()> {
    for thread in 0..THREADS {
        let mut worker = Worker {
            node: node.clone(),
            options: options.clone(),
            env: env.clone(),
            thread,
            volumes: BTreeMap::new(),
        };
        env.spawn("node-backup", None, move || worker.run())?;
    }
    Ok(())
}

/// Backs up some of a node's volumes.
struct Worker {
    node: NodeBackground,
    options: BackupOptions,
    env: Env,
    thread: u32,
    volumes: BTreeMap<String, VolumeBackup>,
}

/// What is known of a volume's backup.
#[derive(Default)]
struct VolumeBackup {
    session: BackupSession,
    target: Option<LogHome>,
    /// One after the other.
    failures: u32,
    due: Option<Instant>,
    /// The last moment that is there, and when that was.
    last: Option<(Csn, Instant)>,
    /// What was told last.
    told: String,
}

/// What came of a look at a volume.
#[derive(Debug)]
enum Step {
    /// It is backed up.
    Stored(BackupReport),
    /// Another node does it.
    StandsBy(String),
    /// There is nothing to back up.
    Nothing(&'static str),
}

/// Who of the nodes before this one makes the backup in the same place, if one says so. `report` asks one of them.
fn at_work_before<'n>(
    before: &'n [String],
    place: &str,
    mut report: impl FnMut(&str) -> Option<Vec<(String, String)>>,
) -> Option<&'n str> {
    let mut is_at_work = |node: &&String| {
        let report = report(node).unwrap_or_default();
        let has = |name: &str, value: &str| report.iter().any(|(n, v)| n == name && v == value);
        has(STATE, AT_WORK) && has(PLACE, place)
    };
    before
        .iter()
        .find(|node| is_at_work(node))
        .map(String::as_str)
}

/// How long to wait after so many failures.
fn pause_after(failures: u32, interval: Duration) -> Duration {
    let pause = interval.saturating_mul(1 << failures.min(16));
    pause.clamp(interval, PAUSE_MAX.max(interval))
}

impl Worker {
    fn run(&mut self) {
        while self.node.sleep(self.pause()) {
            let names = match self.node.volumes() {
                Ok(names) => names,
                Err(error) => {
                    warn!("backup: {error}");
                    continue;
                }
            };
            let is_mine = |name: &String| crc32c::crc32c(name.as_bytes()) % THREADS == self.thread;
            let mine: Vec<String> = names.into_iter().filter(is_mine).collect();
            self.volumes.retain(|name, _| mine.contains(name));
            for name in mine {
                let now = self.env.clock.monotonic();
                let volume = self.volumes.entry(name.clone()).or_default();
                if volume.due.is_some_and(|due| due > now) {
                    continue;
                }
                let outcome = volume.look(&name, &self.node, &self.options, &self.env);
                let pause = volume.settle(&name, outcome, &self.node, &self.options);
                let ended = self.env.clock.monotonic();
                // It takes half of the time at most.
                volume.due = Some(ended + pause.max(ended.since(now)));
            }
        }
    }

    /// Until something is due, or may have come.
    fn pause(&self) -> Duration {
        let now = self.env.clock.monotonic();
        let due = self.volumes.values().filter_map(|volume| volume.due);
        let left = due.map(|due| {
            if due > now {
                due.since(now)
            } else {
                Duration::ZERO
            }
        });
        let interval = self.options.interval;
        left.min().unwrap_or(interval).min(interval)
    }
}

/// The other nodes of a volume; or why it is not backed up.
fn peers_of(
    name: &str,
    node: &NodeBackground,
    options: &BackupOptions,
) -> Result<Result<FleetPeers, &'static str>, HomeError> {
    if name.contains(BRANCHES) {
        return Ok(Err("a branch: nodes do not back it up"));
    }
    let Some(record) = node.named(name, RECORD)? else {
        return Ok(Err("there is no log in it yet"));
    };
    let members = members_in_record(&record);
    if is_of_further_group(&record) {
        return Ok(Err(
            "it is of a further group of the volume: nodes of group 0 back all of it up",
        ));
    }
    let peers = members.and_then(|list| FleetPeers::new(name, &list, &options.secret));
    let what = "this node is none of the volume's nodes, or some are none: nodes do not back it up";
    Ok(peers.ok_or(what))
}

impl VolumeBackup {
    /// Makes a backup if this node is to.
    fn look(
        &mut self,
        name: &str,
        node: &NodeBackground,
        options: &BackupOptions,
        env: &Env,
    ) -> Result<Step, BackupError> {
        let peers = match peers_of(name, node, options)? {
            Ok(peers) => peers,
            Err(why) => return Ok(Step::Nothing(why)),
        };
        // It is open now. Its own threads, which serve clients, do not give way.
        let own = node.volume(name)?;
        std::thread::scope(|scope| {
            let round = || {
                logstead_env::lower_priority();
                self.round(name, (&peers, own), node, options, env)
            };
            let failed = |error| BackupError::Home(HomeError::io("start a thread", error));
            let thread = logstead_env::spawn_scoped(scope, "node-backup-now", round);
            let ended = thread.map_err(failed)?.join();
            ended.unwrap_or_else(|_| Err(failed(std::io::Error::other("it panicked"))))
        })
    }

    fn round(
        &mut self,
        name: &str,
        (peers, own): (&FleetPeers, Weak<LocalVolume>),
        node: &NodeBackground,
        options: &BackupOptions,
        env: &Env,
    ) -> Result<Step, BackupError> {
        let report = |peer: &str| peers.report_of(peer, env).ok();
        if let Some(peer) = at_work_before(peers.before(), &options.url, report) {
            return Ok(Step::StandsBy(peer.to_owned()));
        }
        if self.failures < FAILURES_MAX {
            // Those behind this one hear of it while the first round, which may be long, goes on.
            node.note(name, self.note(AT_WORK, options, None));
        }
        let (mut from, list) = peers.open(env)?;
        match peers.standing_in(&list) {
            None => {
                return Ok(Step::Nothing(
                    "this node is none of the volume's nodes any more",
                ));
            }
            Some(false) => {}
            Some(true) => {
                from.objects = Arc::new(OwnObjects {
                    own,
                    fleet: Arc::clone(&from.objects),
                });
            }
        }
        let moment = env.clock.monotonic();
        let target = self.target(name, options, env)?;
        let report = self.session.round(&from, &target, env);
        match report {
            Ok(report) => {
                self.last = Some((report.csn, moment));
                Ok(Step::Stored(report))
            }
            Err(BackupError::Log(RecoveryError::NoLog(_))) => {
                Ok(Step::Nothing("there is no log in it yet"))
            }
            Err(error) => Err(error),
        }
    }

    fn target(
        &mut self,
        name: &str,
        options: &BackupOptions,
        env: &Env,
    ) -> Result<LogHome, HomeError> {
        if self.session.has_many_lanes() {
            // A local one is not opened twice.
            self.target = None;
            self.session.opened_anew();
        }
        if let Some(target) = &self.target {
            return Ok(target.clone());
        }
        let url = place_of(&options.url, name)?;
        logstead_home::check_copy(&options.data.display().to_string(), &url, env)?;
        let home_options = HomeOptions {
            // A round stores little.
            local: LocalOptions {
                segment_size_bytes: 16 << 20,
                first_segment_size_bytes: 1 << 20,
                segment_size_bytes_min: 1 << 20,
                ..LocalOptions::default()
            },
            damage: Some(damage_of_object),
            patience: Some(PATIENCE),
            ..HomeOptions::default()
        };
        let target = logstead_home::open(&url, env, &home_options)?;
        Ok(self.target.insert(target).clone())
    }

    fn note(&self, state: &str, options: &BackupOptions, error: Option<&str>) -> VolumeNote {
        let line = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut lines = vec![line(STATE, state), line(PLACE, &options.url)];
        if let Some((csn, _)) = &self.last {
            lines.push(line(BACKUP_CSN, &csn.to_string()));
        }
        lines.extend(error.map(|error| line(ERROR, error)));
        VolumeNote {
            lines,
            age: self.last.map(|(_, moment)| (AGE.to_owned(), moment)),
        }
    }

    /// Tells what came of it, and how long to wait.
    fn settle(
        &mut self,
        name: &str,
        outcome: Result<Step, BackupError>,
        node: &NodeBackground,
        options: &BackupOptions,
    ) -> Duration {
        let mut pause = options.interval;
        if !matches!(outcome, Ok(Step::Stored(_))) {
            // Another one may store there, and a local place has a lock.
            (self.session, self.target) = (BackupSession::new(), None);
        }
        let (told, note) = match outcome {
            Ok(Step::Stored(report)) => {
                self.failures = 0;
                let mut told = format!("this node backs it up to {}", options.url);
                let mut error = None;
                if report.points_left_out > 0 {
                    let count = report.points_left_out;
                    let what = format!("{count} restore points cannot be read, and are left out");
                    told += &format!("; {what}");
                    error = Some(what);
                }
                (told, self.note(AT_WORK, options, error.as_deref()))
            }
            Ok(Step::StandsBy(peer)) => {
                (self.failures, self.last) = (0, None);
                let note = self.note(STANDS_BY, options, None);
                (format!("{peer} backs it up to {}", options.url), note)
            }
            Ok(Step::Nothing(why)) => {
                (self.failures, self.last) = (0, None);
                (why.to_owned(), self.note(NOTHING, options, Some(why)))
            }
            // Whoever is meant to stand by does so soon.
            Err(error) if error.is_of_another_backup() => {
                self.failures = 0;
                let told = format!("another node backs it up to {}, too", options.url);
                (told, self.note(AT_WORK, options, None))
            }
            Err(error) => {
                self.failures += 1;
                pause = pause_after(self.failures, options.interval);
                let error = error.to_string();
                let state = match self.failures < FAILURES_MAX {
                    true => AT_WORK,
                    false => FAILS,
                };
                let note = self.note(state, options, Some(&error));
                (
                    format!("cannot back it up to {}: {error}", options.url),
                    note,
                )
            }
        };
        node.note(name, note);
        if told != self.told {
            match self.failures {
                0 => info!("volume {name}: {told}"),
                _ => warn!("volume {name}: {told}"),
            }
            self.told = told;
        }
        pause
    }
}

/// The objects of a volume, from this node's disk where they are, which has all that was acknowledged, else from the
/// others. What is damaged on the disk is looked for in all copies by who reads it.
struct OwnObjects {
    own: Weak<LocalVolume>,
    fleet: Arc<dyn ImmutableObjects>,
}

impl ObjectReader for OwnObjects {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        let own = self.own.upgrade();
        let read = own.map(|own| own.read_object(id, offset, into));
        match read {
            Some(Ok(count)) => Ok(count),
            _ => self.fleet.read_object(id, offset, into),
        }
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        self.fleet.object_copies()
    }
}

impl ImmutableObjects for OwnObjects {
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        self.fleet.put_object(id, bytes)
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.fleet.list_objects()
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.fleet.remove_object(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of the list that is there and does not fail does it; who is gone, fails, knows nothing of backups or
    /// stores in another place, does not.
    #[test]
    fn the_first_node_that_can_makes_the_backup() {
        let nodes: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
        let says = |state: &str, place: &str| {
            let line = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            Some(vec![
                line("zone", "z"),
                line(STATE, state),
                line(PLACE, place),
            ])
        };
        for (reports, at_work) in [
            ([says(AT_WORK, "p"), None, None, None], Some("a")),
            (
                [None, says(AT_WORK, "p"), says(AT_WORK, "p"), None],
                Some("b"),
            ),
            (
                [
                    says(FAILS, "p"),
                    says(STANDS_BY, "p"),
                    says(AT_WORK, "p"),
                    None,
                ],
                Some("c"),
            ),
            (
                [
                    says(AT_WORK, "other"),
                    Some(Vec::new()),
                    None,
                    says(NOTHING, "p"),
                ],
                None,
            ),
        ] {
            let report = |node: &str| {
                let index = nodes.iter().position(|name| name == node)?;
                reports[index].clone()
            };
            assert_eq!(at_work_before(&nodes, "p", report), at_work);
        }
    }

    #[test]
    fn pauses_grow_to_an_end() {
        let interval = Duration::from_secs(10);
        let pauses = [0, 1, 2, 6, 40].map(|failures| pause_after(failures, interval).as_secs());
        assert_eq!(pauses, [10, 20, 40, 600, 600]);
        let long = Duration::from_secs(3600);
        assert_eq!(pause_after(3, long), long);
    }

    #[test]
    fn places_are_object_stores_and_directories() {
        for url in [
            "s3://bucket/p",
            "azure://c/p",
            "file:///backups",
            "/backups",
        ] {
            assert!(BackupOptions::check(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "memory:",
            "fleet://a:1,b:2/v",
            "node://a:1/v",
            "/a,s3://b",
            "gs://b",
        ] {
            assert!(BackupOptions::check(url).is_err(), "{url}");
        }
        let told = BackupOptions::check("s3://key:hidden@bucket/p").unwrap_err();
        assert!(!told.contains("hidden"), "{told}");
        assert_eq!(
            place_of("s3://b/p?region=r", "a/b").unwrap(),
            "s3://b/p/a.b?region=r"
        );
    }
}
