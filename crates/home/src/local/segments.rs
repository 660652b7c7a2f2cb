//! Making segments, of nothing or of segments that nobody needs any more.
//!
//! A trimmed segment may be kept as a *spare* of its lane. Renamed, it is the lane's next segment: nothing is written
//! and nothing allocated for it, which halves what a long-running log writes and makes a start quick.
//!
//! Invariants:
//! - A segment has its name only after all of it is written (zeros, or what it held as another segment) and durable.
//! - A spare goes from name to name by renames within its directory, which become durable in order: before the new name
//!   is used it is durable, and then the old one is gone for good.
//! - Spares are few, and give way when the disk fills up.
//! - One segment is made at a time (`making`), and none in the place of one that is there: a copy that is completed may
//!   have made it, with blocks that count.
//!
//! Why stale bytes do no harm: see *Recycled segments* at [`LaneSegments`](crate::LaneSegments).

use super::lane::Segment;
use super::paths::Paths;
use super::reserve::ReserveFor;
use super::{ALIGNMENT, LocalShared, Prepare};
use crate::HomeError;
use logstead_env::{Access, File, OpenMode};
use logstead_types::LaneId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Pieces in which segments are zeroed: small enough that a commit's write never waits long behind one.
const ZERO_PIECE_BYTES: usize = 256 * 1024;
/// Pause between two such pieces while commits go on.
const ZERO_PIECE_PAUSE: Duration = Duration::from_millis(1);

/// Spares of one lane, at most: the next segment, and one more.
const SPARES_MAX: usize = 2;
/// A spare is kept only if the disk has room for so many more like it.
const SPARE_ROOM: u64 = 8;

impl LocalShared {
    /// A segment of a spare, if the lane has one.
    fn recycle(&self, lane: LaneId, segment: u64) -> Result<Option<Segment>, HomeError> {
        self.write_allowed()?;
        let (files, path) = (&self.env.files, self.paths.segment(lane, segment));
        let _alone = self.spares.lock();
        let mut largest: Option<(u64, PathBuf)> = None;
        for spare in self.spares(lane)? {
            let spare = self.paths.spare(lane, spare);
            let size = self.size_of(&spare)?;
            if size < self.options.segment_size_bytes_min {
                // Kept when smaller ones would do.
                self.io("remove", &spare, files.remove(&spare))?;
            } else if largest.as_ref().is_none_or(|(largest, _)| *largest < size) {
                largest = Some((size, spare));
            }
        }
        let Some((size_bytes, spare)) = largest else {
            return Ok(None);
        };
        self.io("rename", &spare, files.rename(&spare, &path))?;
        let dir = self.paths.lane(lane);
        self.io("sync directory", &dir, files.sync_dir(&dir))?;
        let opened = files.open(&path, self.append_mode);
        Ok(Some(Segment {
            number: segment,
            size_bytes,
            file: Arc::from(self.io("open", &path, opened)?),
        }))
    }

    fn spares(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        let names = self.names_in(lane)?;
        Ok(names
            .iter()
            .filter_map(|name| Paths::parse_spare(name))
            .collect())
    }

    fn size_of(&self, path: &Path) -> Result<u64, HomeError> {
        let opened = self.env.files.open(path, OpenMode::buffered(Access::Read));
        let file = self.io("open", path, opened)?;
        self.io("ask for the length of", path, file.len())
    }

    /// Takes a segment out of the lane: it becomes a spare, or is removed.
    pub(super) fn remove_segment(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        let path = self.paths.segment(lane, segment);
        let files = &self.env.files;
        let _alone = self.spares.lock();
        if files.kind(&path).is_ok_and(|kind| kind.is_none()) {
            return Ok(());
        }
        let size = self.size_of(&path)?;
        let free = files.free_space(&self.paths.log());
        let worth_keeping = size.is_multiple_of(ALIGNMENT as u64)
            && (self.options.segment_size_bytes_min..=self.options.segment_size_bytes)
                .contains(&size)
            && free.is_ok_and(|free| free / SPARE_ROOM >= size)
            && self.spares(lane)?.len() < SPARES_MAX;
        if worth_keeping {
            let spare = self.paths.spare(lane, segment);
            self.io("rename", &path, files.rename(&path, &spare))
        } else {
            self.io("remove", &path, files.remove(&path))
        }
    }

    /// Removes every lane's spares. True if there were any.
    pub(super) fn remove_spares(&self) -> Result<bool, HomeError> {
        let _alone = self.spares.lock();
        let mut any = false;
        for lane in self.lane_ids()? {
            for spare in self.spares(lane)? {
                let path = self.paths.spare(lane, spare);
                self.io("remove", &path, self.env.files.remove(&path))?;
                any = true;
            }
        }
        Ok(any)
    }

    /// A segment of a spare, or else a new one of about `size`.
    pub(super) fn segment(
        &self,
        lane: LaneId,
        segment: u64,
        size: u64,
        keep: ReserveFor,
        pause: Duration,
    ) -> Result<Segment, HomeError> {
        let _alone = self.making.lock();
        self.segment_of_spare_or_new(lane, segment, size, keep, pause)
    }

    /// The same for who makes no other one meanwhile.
    fn segment_of_spare_or_new(
        &self,
        lane: LaneId,
        segment: u64,
        size: u64,
        keep: ReserveFor,
        pause: Duration,
    ) -> Result<Segment, HomeError> {
        let path = self.paths.segment(lane, segment);
        let kind = self.io("look at", &path, self.env.files.kind(&path))?;
        if kind.is_some() {
            let there = std::io::ErrorKind::AlreadyExists.into();
            return self.io("make", &path, Err(there));
        }
        match self.recycle(lane, segment)? {
            Some(recycled) => Ok(recycled),
            None => {
                let size = self.affordable_size(size, keep)?;
                self.make_segment(lane, segment, size, pause)
            }
        }
    }

    /// Makes the segment that a copy of a lane lacks, or the end of it that was given back: whatever is behind `end`
    /// may stay missing.
    pub(super) fn make_missing_segment(
        &self,
        lane: LaneId,
        segment: u64,
        end: u64,
    ) -> Result<(), HomeError> {
        self.write_allowed()?;
        let path = self.paths.segment(lane, segment);
        let files = &self.env.files;
        let _alone = self.making.lock();
        match files.open(&path, OpenMode::buffered(Access::ReadWrite)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let dir = self.paths.lane(lane);
                self.io("make directory", &dir, files.create_dir(&dir))?;
                let size = self.options.segment_size_bytes;
                self.segment_of_spare_or_new(
                    lane,
                    segment,
                    size,
                    ReserveFor::Nothing,
                    Duration::ZERO,
                )
                .map(drop)
            }
            other => {
                let file = self.io("open", &path, other)?;
                let size = self.io("ask for the length of", &path, file.len())?;
                if size >= end {
                    return Ok(());
                }
                self.io("lengthen", &path, file.set_len(end))?;
                self.io("sync", &path, file.sync())
            }
        }
    }

    /// Makes a segment: zeros, durable, then its name, durable.
    fn make_segment(
        &self,
        lane: LaneId,
        segment: u64,
        size: u64,
        pause: Duration,
    ) -> Result<Segment, HomeError> {
        self.write_allowed()?;
        let path = self.paths.segment(lane, segment);
        let unfinished = Paths::unfinished(&path);
        let result = self.make_segment_file(lane, &path, &unfinished, size, pause);
        if result.is_err() {
            // A half-made file must not keep a full disk full. What it was worth is known from the first error.
            let _first_error_counts = self.env.files.remove(&unfinished);
        }
        let file = result?;
        Ok(Segment {
            number: segment,
            size_bytes: size,
            file,
        })
    }

    fn make_segment_file(
        &self,
        lane: LaneId,
        path: &Path,
        unfinished: &Path,
        size: u64,
        pause: Duration,
    ) -> Result<Arc<dyn File>, HomeError> {
        let files = &self.env.files;
        let mode = OpenMode {
            access: Access::Replace,
            direct: true,
            durable_writes: false,
        };
        let file = self.io("make", unfinished, files.open(unfinished, mode))?;
        self.io("reserve space for", unfinished, file.reserve(size))?;
        let filled = file.fill_with_zeros(0, size, ZERO_PIECE_BYTES, &mut || {
            if !pause.is_zero() {
                logstead_env::sleep(pause);
            }
        });
        self.io("fill with zeros", unfinished, filled)?;
        self.io("sync", unfinished, file.sync())?;
        drop(file);
        self.io("rename", unfinished, files.rename(unfinished, path))?;
        let dir = self.paths.lane(lane);
        self.io("sync directory", &dir, files.sync_dir(&dir))?;
        let opened = files.open(path, self.append_mode);
        Ok(Arc::from(self.io("open", path, opened)?))
    }

    /// The size to give to the next segment: smaller than asked for on a nearly full disk, rather than none.
    fn affordable_size(&self, wanted: u64, keep: ReserveFor) -> Result<u64, HomeError> {
        let log = self.paths.log();
        let free = self.space()?.left(keep);
        if wanted > free / 2 && self.remove_spares()? {
            return self.affordable_size(wanted, keep);
        }
        let mut size = wanted;
        while size > free / 2 && size / 2 >= self.options.segment_size_bytes_min {
            size /= 2;
        }
        let size = size - size % ALIGNMENT as u64;
        if size > free {
            return self.io(
                "make a segment in",
                &log,
                Err(std::io::ErrorKind::StorageFull.into()),
            );
        }
        Ok(size)
    }

    pub(super) fn prepare_next(&self, job: &Prepare) {
        let pause = if self.options.threads {
            ZERO_PIECE_PAUSE
        } else {
            Duration::ZERO
        };
        let keep = ReserveFor::ForCheckpoint;
        let _alone = self.making.lock();
        if !job.lane.is_preparing() {
            return;
        }
        let made =
            self.segment_of_spare_or_new(job.lane.id, job.segment, job.size_bytes, keep, pause);
        // Recycled or not: a lane that goes on is when somebody looks whether there is room for more.
        self.look_at_space();
        job.lane.end_preparing(made);
    }
}
