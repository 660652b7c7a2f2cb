//! Side segments on their way to the disk.
//!
//! Owns: the unfinished file of each, until it gets its name or is removed. Pieces are copied into an aligned buffer
//! and go past the page cache as soon as it is full: a bulk load's records are on the disk when the load is done, and
//! its commit writes the rest and syncs. (Through the page cache the kernel starts writing at the sync, and all of it
//! waits for that.)
//!
//! Invariants: the jobs of one side segment are done in the order they were given, by one thread. After the first error
//! nothing more is written, and the error is told at the end. The file has its name only after it is durable.

use super::{ALIGNMENT, LocalShared};
use crate::{Buffer, HomeError, NoRoom, SideCompletion, SideWriter};
use logstead_env::{Access, File, JobQueue, OpenMode};
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What one write takes.
const WRITE_BYTES: usize = 1 << 20;
/// Buffers kept for the caller to fill again.
const SPARES_MAX: usize = 2;
/// The largest piece that is kept.
const SPARE_BYTES_MAX: usize = 2 * WRITE_BYTES;

/// What the home's thread does for a side segment.
pub(super) enum SideJob {
    Write(Arc<SideFile>, Vec<u8>),
    Finish(Arc<SideFile>, SideCompletion),
    Abandon(Arc<SideFile>),
}

impl SideJob {
    pub(super) fn run(self) {
        match self {
            SideJob::Write(side, piece) => side.write(piece),
            SideJob::Finish(side, done) => done(side.finish().map_err(NoRoom::from_home)),
            SideJob::Abandon(side) => side.abandon(),
        }
    }
}

/// The file of a side segment.
pub(super) struct SideFile {
    home: Arc<LocalShared>,
    lane: LaneId,
    path: PathBuf,
    /// Its name until it is finished. Who copies it anew may begin while an earlier copy has not come to its end.
    unfinished: PathBuf,
    state: Mutex<SideFileState>,
    backlog_bytes: AtomicUsize,
    spares: Mutex<Vec<Vec<u8>>>,
}

struct SideFileState {
    open: Option<Open>,
    error: Option<HomeError>,
}

struct Open {
    file: Box<dyn File>,
    written: u64,
    buffer: Buffer,
    /// Bytes in the buffer.
    filled: usize,
}

impl SideFile {
    fn open<'s>(&self, open: &'s mut Option<Open>) -> Result<&'s mut Open, HomeError> {
        match open {
            Some(open) => Ok(open),
            None => {
                let home = &self.home;
                home.write_allowed()?;
                let (dir, files) = (home.paths.lane(self.lane), &home.env.files);
                home.io("make directory", &dir, files.create_dir(&dir))?;
                let unfinished = &self.unfinished;
                let mode = OpenMode {
                    access: Access::Replace,
                    direct: true,
                    durable_writes: false,
                };
                let file = home.io("make", unfinished, files.open(unfinished, mode))?;
                Ok(open.insert(Open {
                    file,
                    written: 0,
                    buffer: Buffer::zeroed(WRITE_BYTES),
                    filled: 0,
                }))
            }
        }
    }

    fn write_piece(&self, open: &mut Option<Open>, mut piece: &[u8]) -> Result<(), HomeError> {
        let open = self.open(open)?;
        while !piece.is_empty() {
            let room = &mut open.buffer.as_mut_slice()[open.filled..];
            let (now, later) = piece.split_at(piece.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            open.filled += now.len();
            piece = later;
            if open.filled == WRITE_BYTES {
                let home = &self.home;
                home.allow_side(&self.path, WRITE_BYTES as u64)?;
                let wrote = open.file.write_all_at(open.written, open.buffer.as_slice());
                home.io("write", &self.path, wrote)?;
                open.written += WRITE_BYTES as u64;
                open.filled = 0;
                home.reserve.add_side(WRITE_BYTES as u64);
                home.look_at_space();
            }
        }
        Ok(())
    }

    fn write(&self, mut piece: Vec<u8>) {
        let mut state = self.state.lock();
        if state.error.is_none() {
            let SideFileState { open, error } = &mut *state;
            *error = self.write_piece(open, &piece).err();
            if error.is_some() {
                // Its commit will fail, however much later: until then others have the room.
                self.let_go(open);
            }
        }
        drop(state);
        self.backlog_bytes.fetch_sub(piece.len(), Ordering::Release);
        // A piece that grew behind a savepoint is freed: spares are not counted.
        if piece.capacity() <= SPARE_BYTES_MAX {
            let mut spares = self.spares.lock();
            if spares.len() < SPARES_MAX {
                piece.clear();
                spares.push(piece);
            }
        }
    }

    fn finish(&self) -> Result<(), HomeError> {
        let result = self.finish_file();
        if result.is_err() {
            self.let_go(&mut self.state.lock().open);
        }
        result
    }

    fn finish_file(&self) -> Result<(), HomeError> {
        let mut state = self.state.lock();
        let SideFileState { open, error } = &mut *state;
        if let Some(error) = error.take() {
            return Err(error);
        }
        let open = self.open(open)?;
        let (home, unfinished) = (&self.home, &self.unfinished);
        let length = open.written + open.filled as u64;
        if open.filled > 0 {
            let padded = open.filled.next_multiple_of(ALIGNMENT);
            home.allow_side(unfinished, padded as u64)?;
            open.buffer.as_mut_slice()[open.filled..padded].fill(0);
            let last = &open.buffer.as_slice()[..padded];
            home.io(
                "write",
                unfinished,
                open.file.write_all_at(open.written, last),
            )?;
            home.io("cut", unfinished, open.file.set_len(length))?;
        }
        home.io("sync", unfinished, open.file.sync())?;
        let files = &home.env.files;
        home.io("rename", unfinished, files.rename(unfinished, &self.path))?;
        let dir = home.paths.lane(self.lane);
        home.io("sync directory", &dir, files.sync_dir(&dir))?;
        // Counted with its whole length from here on, as those are that a start finds.
        home.reserve.add_side(length - open.written);
        home.look_at_space();
        state.open = None;
        Ok(())
    }

    /// Nobody wants it: its space is free again at once.
    fn abandon(&self) {
        self.let_go(&mut self.state.lock().open);
    }

    fn let_go(&self, open: &mut Option<Open>) {
        if let Some(open) = open.take() {
            self.home.reserve.subtract_side(open.written);
            // If it cannot be removed now, it is when the home is opened next.
            let _next_start_removes_it = self.home.env.files.remove(&self.unfinished);
        }
    }
}

/// The caller's end of a side segment.
pub(super) struct LocalSide {
    file: Arc<SideFile>,
    /// `None`: everything happens in the caller.
    queue: Option<Arc<JobQueue<SideJob>>>,
    finished: bool,
}

impl LocalSide {
    pub(super) fn new(
        home: &Arc<LocalShared>,
        queue: Option<Arc<JobQueue<SideJob>>>,
        lane: LaneId,
        id: u64,
    ) -> LocalSide {
        let attempt = home.side_attempts.fetch_add(1, Ordering::Relaxed);
        let file = SideFile {
            home: Arc::clone(home),
            lane,
            path: home.paths.side(lane, id),
            unfinished: home.paths.unfinished_side(lane, id, attempt),
            state: Mutex::new(SideFileState {
                open: None,
                error: None,
            }),
            backlog_bytes: AtomicUsize::new(0),
            spares: Mutex::default(),
        };
        LocalSide {
            file: Arc::new(file),
            queue,
            finished: false,
        }
    }

    fn give(&self, job: SideJob) {
        match &self.queue {
            Some(queue) => queue.push(job),
            None => job.run(),
        }
    }
}

impl SideWriter for LocalSide {
    fn append(&mut self, piece: Vec<u8>) {
        self.file
            .backlog_bytes
            .fetch_add(piece.len(), Ordering::Relaxed);
        self.give(SideJob::Write(Arc::clone(&self.file), piece));
    }

    fn backlog_bytes(&self) -> usize {
        self.file.backlog_bytes.load(Ordering::Acquire)
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        self.file.spares.lock().pop()
    }

    fn finish(mut self: Box<Self>, done: SideCompletion) {
        self.finished = true;
        self.give(SideJob::Finish(Arc::clone(&self.file), done));
    }
}

impl Drop for LocalSide {
    fn drop(&mut self) {
        if !self.finished {
            self.give(SideJob::Abandon(Arc::clone(&self.file)));
        }
    }
}
