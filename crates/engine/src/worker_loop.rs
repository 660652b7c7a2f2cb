//! A thread for a worker, without SQL: runs tasks, flushes the lane, collects garbage.
//!
//! Owns: the tasks of one worker. The rule: what is ready runs first. The commit path hears of every commit, and of the
//! moment when no task is ready; who flushes then is its protocol's affair ([`logstead_commit::protocol`]).
//!
//! Invariants:
//! - The thread parks only when no task is ready and the commit path has been told so since: a commit that is waited
//!   for is always on its way, or the path wakes the thread.
//! - A task is polled only after it was woken; a wake during its own poll is not lost.
//!
//! Does not: read the clock. Who needs timers looks after them in the `turn` given to [`WorkerLoop::run_with`].

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use logstead_types::WorkerId;
use logstead_wal::FlushMode;
use parking_lot::Mutex;

use crate::engine::Engine;
use crate::worker::Worker;

/// The newest idle time counts one in so many in the average.
const IDLE_WEIGHT: u64 = 8;
/// Polls between two rounds of garbage collection while tasks are ready.
const COLLECT_POLLS: u32 = 64;
/// Rows looked at by one step of collection, and steps of a round at most: a round is what ready tasks wait for, one or
/// two milliseconds.
const COLLECT_ROWS: usize = 256;
const COLLECT_STEPS: usize = 4;
/// Pause between two questions to the commit path of one who goes on by itself.
const ASK_NS: u64 = 50_000;
/// The number of the future given to [`WorkerLoop::block_on`].
const ROOT: usize = usize::MAX;

/// What [`WorkerLoop::run_with`] does next; the answer counts only when nothing is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleAction {
    /// Park until a task is woken.
    Park,
    /// The same, but for so long at most.
    ParkFor(Duration),
    /// Look again at once.
    Recheck,
}

/// What wakers share with the thread.
struct Ready {
    queue: Mutex<Vec<usize>>,
    thread: Thread,
}

struct TaskWaker {
    ready: Arc<Ready>,
    number: usize,
    /// In the queue already.
    queued: AtomicBool,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::SeqCst) {
            let first = {
                let mut queue = self.ready.queue.lock();
                queue.push(self.number);
                queue.len() == 1
            };
            // Whoever made the queue non-empty has unparked the thread already.
            if first {
                self.ready.thread.unpark();
            }
        }
    }
}

type Boxed = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    /// Taken out while it is polled.
    future: Option<Boxed>,
    shared: Arc<TaskWaker>,
    waker: Waker,
}

/// Runs the tasks of one worker on the thread that made it.
///
/// ```
/// # use logstead_engine::{Engine, EngineOptions, Env, MemoryHome, WorkerLoop};
/// # use std::{cell::Cell, rc::Rc, sync::Arc};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (engine, _) = Engine::open(EngineOptions::default(), MemoryHome::new(4 << 20).into(), Env::real())?;
/// let worker_loop = WorkerLoop::new(&engine, logstead_engine::WorkerId(0));
/// let done = Rc::new(Cell::new(0));
/// for _ in 0..3 {
///     let done = Rc::clone(&done);
///     worker_loop.spawn(async move { done.set(done.get() + 1) });
/// }
/// worker_loop.run();
/// assert_eq!(done.get(), 3);
/// # Ok(())
/// # }
/// ```
pub struct WorkerLoop {
    worker: Worker,
    ready: Arc<Ready>,
    tasks: RefCell<Vec<Option<Task>>>,
    /// Numbers of tasks that have ended.
    free: RefCell<Vec<usize>>,
    live: Cell<usize>,
    root: Arc<TaskWaker>,
    /// When the worker became idle, if it is, and how long it has been so on average; nanoseconds.
    idle_since: Cell<Option<u64>>,
    idle_average: Cell<u64>,
    /// Who goes on by itself asks the commit path again at this moment.
    ask_at: Cell<u64>,
    polls: Cell<u32>,
    /// The queue's last content, to be swapped with it again.
    batch: RefCell<Vec<usize>>,
}

impl WorkerLoop {
    /// The loop of worker `id` on this thread.
    ///
    /// # Panics
    /// As [`Engine::worker`].
    pub fn new(engine: &Engine, id: WorkerId) -> WorkerLoop {
        let ready = Arc::new(Ready {
            queue: Mutex::default(),
            thread: std::thread::current(),
        });
        let worker = engine.worker(id);
        let thread = ready.thread.clone();
        worker.set_wake_hook(Arc::new(move || thread.unpark()));
        WorkerLoop {
            worker,
            tasks: RefCell::default(),
            free: RefCell::default(),
            live: Cell::new(0),
            root: Arc::new(TaskWaker {
                ready: ready.clone(),
                number: ROOT,
                queued: AtomicBool::new(false),
            }),
            ready,
            idle_since: Cell::new(None),
            idle_average: Cell::new(0),
            ask_at: Cell::new(0),
            polls: Cell::new(0),
            batch: RefCell::default(),
        }
    }

    /// The worker, to begin transactions on.
    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Adds a task. It runs within [`WorkerLoop::run`], [`WorkerLoop::run_with`] or [`WorkerLoop::block_on`].
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let number = match self.free.borrow_mut().pop() {
            Some(number) => number,
            None => {
                self.tasks.borrow_mut().push(None);
                self.tasks.borrow().len() - 1
            }
        };
        let shared = Arc::new(TaskWaker {
            ready: self.ready.clone(),
            number,
            queued: AtomicBool::new(false),
        });
        let waker = Waker::from(shared.clone());
        self.tasks.borrow_mut()[number] = Some(Task {
            future: Some(Box::pin(task)),
            shared,
            waker: waker.clone(),
        });
        self.live.set(self.live.get() + 1);
        waker.wake();
    }

    /// How many tasks have not ended.
    pub fn task_count(&self) -> usize {
        self.live.get()
    }

    /// Runs until every task has ended. What they have committed is then durable or being written.
    pub fn run(&self) {
        self.run_with(&mut |_| IdleAction::Park);
    }

    /// Runs until every task has ended, calling `turn` after each round of ready tasks; it is told whether the thread
    /// would park now.
    pub fn run_with(&self, turn: &mut dyn FnMut(bool) -> IdleAction) {
        while self.live.get() > 0 {
            self.round(turn, &mut || ());
        }
        self.flush_rest();
    }

    /// Runs `future` and all tasks until `future` is ready, and gives what it gave. Tasks that have not ended go on
    /// with the next call.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let waker = Waker::from(self.root.clone());
        let mut output = None;
        waker.wake_by_ref();
        loop {
            let mut poll_root = || {
                if output.is_none()
                    && let Poll::Ready(value) =
                        future.as_mut().poll(&mut Context::from_waker(&waker))
                {
                    output = Some(value);
                }
            };
            self.round(&mut |_| IdleAction::Park, &mut poll_root);
            if let Some(output) = output.take() {
                self.flush_rest();
                return output;
            }
        }
    }

    /// Runs what is ready; if nothing is, sees to the lane, collects garbage, or parks.
    fn round(&self, turn: &mut dyn FnMut(bool) -> IdleAction, poll_root: &mut dyn FnMut()) {
        let mut batch = self.batch.take();
        std::mem::swap(&mut *self.ready.queue.lock(), &mut batch);
        if batch.is_empty() {
            self.batch.replace(batch);
            return self.idle(turn);
        }
        if let Some(since) = self.idle_since.take() {
            self.worker.busy();
            let idle = self.now().saturating_sub(since);
            let average = self.idle_average.get();
            self.idle_average
                .set(average - average / IDLE_WEIGHT + idle / IDLE_WEIGHT);
        }
        for number in batch.drain(..) {
            if number == ROOT {
                self.root.queued.store(false, Ordering::SeqCst);
                poll_root();
            } else {
                self.poll(number);
            }
            let polls = self.polls.get() + 1;
            self.polls.set(polls % COLLECT_POLLS);
            if polls == COLLECT_POLLS {
                let mut steps = 0..COLLECT_STEPS;
                while steps.next().is_some() && self.worker.collect_garbage(COLLECT_ROWS) {}
            }
        }
        self.batch.replace(batch);
        self.worker.between_tasks();
        turn(false);
    }

    fn poll(&self, number: usize) {
        let taken = self.tasks.borrow_mut()[number].as_mut().and_then(|task| {
            task.shared.queued.store(false, Ordering::SeqCst);
            Some((task.future.take()?, task.waker.clone()))
        });
        // A late wake of a task that has ended.
        let Some((mut future, waker)) = taken else {
            return;
        };
        if future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
        {
            if let Some(task) = &mut self.tasks.borrow_mut()[number] {
                task.future = Some(future);
            }
        } else {
            drop(future);
            self.tasks.borrow_mut()[number] = None;
            self.free.borrow_mut().push(number);
            self.live.set(self.live.get() - 1);
        }
    }

    fn now(&self) -> u64 {
        self.worker.engine().commit_path().now()
    }

    fn idle(&self, turn: &mut dyn FnMut(bool) -> IdleAction) {
        let next = turn(true);
        let now = self.worker.engine().commit_path().clock();
        if next == IdleAction::Recheck && self.idle_since.get().is_some() && self.ask_at.get() > now
        {
            return;
        }
        let since = self.idle_since.get().unwrap_or(now);
        self.idle_since.set(Some(since));
        // It will be idle for as long as it has been already, at least.
        let expected = self.idle_average.get().max(now.saturating_sub(since));
        let again = self.worker.idle(true, Some(expected));
        let wait_ns = again.map_or(ASK_NS, |again| {
            u64::try_from(again.as_nanos()).unwrap_or(u64::MAX)
        });
        self.ask_at.set(now.saturating_add(wait_ns));
        if next == IdleAction::Recheck || !self.ready.queue.lock().is_empty() {
            return;
        }
        if self.worker.collect_garbage(COLLECT_ROWS) {
            return;
        }
        let limit = match next {
            IdleAction::ParkFor(time) => Some(again.map_or(time, |again| again.min(time))),
            IdleAction::Park | IdleAction::Recheck => again,
        };
        if self.ready.queue.lock().is_empty() {
            // A wake from here on has left its token with the thread.
            match limit {
                Some(time) => std::thread::park_timeout(time),
                None => std::thread::park(),
            }
        }
    }

    /// Starts the write of what nobody waited for.
    fn flush_rest(&self) {
        if self.worker.lane_dirty() {
            self.worker.flush(FlushMode::Handoff);
        }
    }
}

/// Lets the other ready tasks run first.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            Poll::Ready(())
        } else {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}
