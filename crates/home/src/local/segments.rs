//! Making segments.
//!
//! Invariant: a segment has its name only after all of it is written (zeros) and durable.

use super::lane::Segment;
use super::paths::Paths;
use super::{ALIGNMENT, Prepare, Shared};
use crate::HomeError;
use logstead_env::{Access, File, OpenMode};
use logstead_types::LaneId;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Pieces in which segments are zeroed: small enough that a commit's write never waits long behind one.
const ZERO_PIECE_BYTES: usize = 256 * 1024;
/// Pause between two such pieces while commits go on.
const ZERO_PIECE_PAUSE: Duration = Duration::from_millis(1);

impl Shared {
    /// Makes a segment: zeros, durable, then its name, durable.
    pub(super) fn make_segment(
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
    pub(super) fn affordable_size(&self, wanted: u64) -> Result<u64, HomeError> {
        let log = self.paths.log();
        let free = self.io(
            "ask for free space of",
            &log,
            self.env.files.free_space(&log),
        )?;
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
        let made = self
            .affordable_size(job.size_bytes)
            .and_then(|size| self.make_segment(job.lane.id, job.segment, size, pause));
        job.lane.end_preparing(made, self.env.clock.monotonic());
    }
}
