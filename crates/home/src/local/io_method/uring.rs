//! The home's ring and the thread that owns it: hands writes to the kernel, many at a time, and tells of those that are
//! over.
//!
//! Invariants: every write pushed is completed, also those still waiting when the writer is dropped; the drop waits for
//! that, unless it happens on the ring's own thread. If the ring itself fails, the process ends: nobody could be told.

use super::AppendWrite;
use crate::{Buffer, Completion, Position};
use logstead_env::{
    DIRECT_ALIGNMENT, Env, FileLock, JoinHandle, Ring, RingCompletion, RingWaker, RingWrite,
    abort_on_panic,
};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

pub(super) struct RingWriter {
    shared: Arc<Shared>,
    waker: RingWaker,
    thread: Option<JoinHandle>,
}

struct Shared {
    state: Mutex<State>,
}

struct State {
    writes: VecDeque<AppendWrite>,
    closed: bool,
    /// The thread waits for the kernel, and would take new writes: it has to be woken for them.
    waiting: bool,
}

/// What a write is apart from its bytes.
struct Rest {
    order: Arc<super::LaneWriteOrder>,
    at: Position,
    len: usize,
    done: Completion,
    keep: Arc<dyn Send + Sync>,
}

impl RingWriter {
    /// The ring holds `lock` until the last write is over, also if the process is killed.
    pub(super) fn start(
        env: &Env,
        writes_max: usize,
        lock: Option<&Arc<dyn FileLock>>,
    ) -> io::Result<RingWriter> {
        let ring = Ring::new(writes_max, lock)?;
        let waker = ring.waker();
        let state = State {
            writes: VecDeque::new(),
            closed: false,
            waiting: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
        });
        let of_thread = Arc::clone(&shared);
        let thread = env.spawn("log-ring", None, move || {
            let _watch = abort_on_panic("writing the log");
            of_thread.run(ring);
        })?;
        Ok(RingWriter {
            shared,
            waker,
            thread: Some(thread),
        })
    }

    pub(super) fn push(&self, write: AppendWrite) {
        let waiting = {
            let mut state = self.shared.state.lock();
            state.writes.push_back(write);
            std::mem::take(&mut state.waiting)
        };
        if waiting {
            self.waker.wake();
        }
    }
}

impl Shared {
    fn run(&self, mut ring: Ring<Rest>) {
        let (mut taken, mut done) = (Vec::new(), Vec::new());
        loop {
            {
                let mut state = self.state.lock();
                while ring.in_flight() + taken.len() < super::RING_WRITES
                    && let Some(write) = state.writes.pop_front()
                {
                    taken.push(write);
                }
                if taken.is_empty() && ring.in_flight() == 0 && state.closed {
                    return;
                }
                // Whoever pushes from now on wakes this thread.
                state.waiting = true;
            }
            for write in taken.drain(..) {
                begin(&mut ring, write);
            }
            let waited = ring.wait(&mut done);
            assert!(waited.is_ok(), "the ring of the log failed: {waited:?}");
            self.state.lock().waiting = false;
            for over in done.drain(..) {
                go_on(&mut ring, over);
            }
        }
    }
}

fn begin(ring: &mut Ring<Rest>, write: AppendWrite) {
    if let Err(error) = write.order.check() {
        (write.done)(write.block, Err(error));
        return;
    }
    let bytes = RingWrite {
        file: write.file,
        offset: write.at.offset,
        buffer: write.block,
        from: 0,
        len: write.len,
    };
    let rest = Rest {
        order: write.order,
        at: write.at,
        len: write.len,
        done: write.done,
        keep: write.keep,
    };
    if let Err((bytes, rest)) = ring.start(bytes, rest) {
        // None of the kernel's files (its bytes do not lie together, say): written here.
        let RingWrite { file, buffer, .. } = bytes;
        of(rest, file, buffer).run();
    }
}

fn of(rest: Rest, file: Arc<dyn logstead_env::File>, block: Buffer) -> AppendWrite {
    AppendWrite {
        order: rest.order,
        file,
        at: rest.at,
        block,
        len: rest.len,
        done: rest.done,
        keep: rest.keep,
    }
}

/// A submission is over: all of the write, or part of it.
fn go_on(ring: &mut Ring<Rest>, over: RingCompletion<Rest>) {
    let RingCompletion {
        mut write,
        token: rest,
        result,
    } = over;
    let end = match result {
        Ok(0) => Some(Err(io::ErrorKind::WriteZero.into())),
        Ok(count) if count >= write.len => Some(Ok(())),
        Ok(count) => {
            // A direct write must go on at an aligned place: what is behind it is written again.
            let count = count - count % DIRECT_ALIGNMENT;
            write.offset += count as u64;
            write.from += count;
            write.len -= count;
            None
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
        Err(error) => Some(Err(error)),
    };
    match end {
        Some(result) => {
            let result = rest.order.record(rest.at, result);
            (rest.done)(write.buffer, result);
        }
        None => {
            if let Err((write, rest)) = ring.start(write, rest) {
                // Its slot is free, so it is the file that cannot; it could before.
                let RingWrite { file, buffer, .. } = write;
                of(rest, file, buffer).run();
            }
        }
    }
}

impl Drop for RingWriter {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.waker.wake();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // It cannot have panicked: that ends the process.
            let _ended = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::LaneWriteOrder;
    use super::*;
    use logstead_env::{File, RawFileRange};
    use logstead_types::LaneId;
    use std::sync::mpsc;

    /// A file whose descriptor takes at most so many bytes: a pipe's end, which the kernel fills in part.
    struct Pipe {
        end: std::fs::File,
    }

    impl File for Pipe {
        fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn write_at(&self, _: u64, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
        fn len(&self) -> io::Result<u64> {
            Ok(0)
        }
        fn set_len(&self, _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn is_direct(&self) -> bool {
            true
        }
        fn writes_are_durable(&self) -> bool {
            true
        }
        fn raw(&self, _: u64, _: usize) -> Option<RawFileRange<'_>> {
            use std::os::fd::AsFd;
            Some(RawFileRange {
                descriptor: self.end.as_fd(),
                offset: 0,
            })
        }
    }

    /// A write that the kernel does only in part goes on behind that part; an error is told and nothing follows it.
    #[test]
    fn short_writes_are_completed_and_errors_end_the_lane() {
        use std::io::Read;
        let Ok(writer) = RingWriter::start(&Env::real(), 4, None) else {
            eprintln!("skipped: this machine has no io_uring");
            return;
        };
        let (mut read_end, write_end) = std::io::pipe().expect("a pipe");
        let file: Arc<dyn File> = Arc::new(Pipe {
            end: std::fs::File::from(std::os::fd::OwnedFd::from(write_end)),
        });
        // A pipe takes 64 KiB at first; the rest must follow when there is space.
        let len = 64 * DIRECT_ALIGNMENT;
        let mut block = Buffer::zeroed(len);
        for (index, page) in block
            .as_mut_slice()
            .chunks_exact_mut(DIRECT_ALIGNMENT)
            .enumerate()
        {
            page.fill(index as u8 + 1);
        }
        let expected = block.as_slice().to_vec();
        let order = Arc::new(LaneWriteOrder::new(LaneId(0)));
        let (done, completions) = mpsc::channel();
        let push = |block, len, file| {
            let done = done.clone();
            writer.push(AppendWrite {
                order: Arc::clone(&order),
                file,
                at: Position::default(),
                block,
                len,
                done: Box::new(move |_, result| done.send(result).expect("listens")),
                keep: Arc::new(()),
            });
        };
        push(block, len, Arc::clone(&file));
        let mut got = vec![0; len];
        read_end.read_exact(&mut got).expect("reads");
        assert!(got == expected);
        completions.recv().expect("completes").expect("writes");
        // Nobody reads any more: the write fails. The next one is not even tried.
        drop(read_end);
        for _ in 0..2 {
            push(Buffer::zeroed(4096), 4096, Arc::clone(&file));
            let error = completions.recv().expect("completes").expect_err("fails");
            assert!(error.to_string().contains("append to lane 0"), "{error}");
        }
    }
}
