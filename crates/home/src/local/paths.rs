//! Names of the files in a local home; the only place that spells them.

use crate::ObjectId;
use logstead_types::LaneId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(super) const UNFINISHED: &str = ".new";
const SEGMENT: &str = ".seg";
const SIDE: &str = ".rec";
const SPARE: &str = ".free";

/// The directory and what lies where in it.
pub(super) struct Paths {
    dir: PathBuf,
}

impl Paths {
    pub(super) fn new(dir: PathBuf) -> Paths {
        Paths { dir }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// What is tried out goes here; gone when the home is opened again.
    pub(super) fn scratch(&self) -> PathBuf {
        Paths::unfinished(&self.dir.join("scratch"))
    }

    pub(super) fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    pub(super) fn lane(&self, lane: LaneId) -> PathBuf {
        self.log().join(format!("lane-{:04}", lane.get()))
    }

    pub(super) fn parse_lane(name: &str) -> Option<LaneId> {
        name.strip_prefix("lane-")?.parse().ok().map(LaneId)
    }

    pub(super) fn segment(&self, lane: LaneId, segment: u64) -> PathBuf {
        self.lane(lane).join(format!("{segment:012}{SEGMENT}"))
    }

    pub(super) fn parse_segment(name: &str) -> Option<u64> {
        name.strip_suffix(SEGMENT)?.parse().ok()
    }

    /// A segment that nobody needs any more, kept to become another one.
    pub(super) fn spare(&self, lane: LaneId, segment: u64) -> PathBuf {
        self.lane(lane).join(format!("{segment:012}{SPARE}"))
    }

    pub(super) fn parse_spare(name: &str) -> Option<u64> {
        name.strip_suffix(SPARE)?.parse().ok()
    }

    pub(super) fn side(&self, lane: LaneId, id: u64) -> PathBuf {
        self.lane(lane).join(format!("side-{id:016x}{SIDE}"))
    }

    pub(super) fn parse_side(name: &str) -> Option<u64> {
        u64::from_str_radix(name.strip_prefix("side-")?.strip_suffix(SIDE)?, 16).ok()
    }

    pub(super) fn objects(&self) -> PathBuf {
        self.dir.join("objects")
    }

    pub(super) fn object(&self, id: ObjectId) -> PathBuf {
        self.objects().join(id.to_string())
    }

    /// The name under which an object is made; several attempts may go on at once.
    pub(super) fn unfinished_object(&self, id: ObjectId, attempt: u64) -> PathBuf {
        Paths::unfinished(&self.objects().join(format!("{id}.{attempt}")))
    }

    /// The name under which a side segment is made; several attempts may go on at once.
    pub(super) fn unfinished_side(&self, lane: LaneId, id: u64, attempt: u64) -> PathBuf {
        let mut name = OsString::from(self.side(lane, id));
        name.push(format!(".{attempt}"));
        Paths::unfinished(&PathBuf::from(name))
    }

    /// The name under which a file is made, before it is renamed to `path`.
    pub(super) fn unfinished(path: &Path) -> PathBuf {
        let mut name = OsString::from(path);
        name.push(UNFINISHED);
        PathBuf::from(name)
    }

    pub(super) fn is_unfinished(name: &str) -> bool {
        name.ends_with(UNFINISHED)
    }
}
