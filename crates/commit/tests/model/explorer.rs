//! Depth first over interleavings: every run follows a list of choices, and the next run changes the last one that can
//! be.
//!
//! A task runs until it comes to a point; there the task that goes on is a choice. By default it is the one that runs,
//! and when that waits the next one that can go on. Anything else is a *deviation*, and their number bounds the search
//! (delay bounding): all runs with at most so many of them are made. A choice is named by its number, 0 is the default.

use std::sync::{Arc, Mutex, MutexGuard};

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

/// How far to look.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Search {
    /// Every run with at most so many deviations.
    Deviations(usize),
    /// So many runs with any number of them, by chance.
    Random { seed: u64, runs: usize },
}

type Want = Box<dyn Fn() -> bool + Send>;

struct Inner {
    search: Search,
    /// What was chosen of how many, and where this run is in it.
    choices: Vec<(usize, usize)>,
    at: usize,
    runs: usize,
    dice: u64,
    deviations_left: usize,
    /// Points are points: not while a world is made, or when it is over.
    running: bool,
    /// What each task waits for; nothing: it can go on.
    wants: Vec<Option<Want>>,
}

/// Who chooses; shared by the scheduler and the tasks.
#[derive(Clone)]
pub(crate) struct Explorer(Arc<Mutex<Inner>>);

impl Explorer {
    pub(crate) fn new(search: Search) -> Explorer {
        Explorer(Arc::new(Mutex::new(Inner {
            search,
            choices: Vec::new(),
            at: 0,
            runs: 0,
            dice: match search {
                Search::Random { seed, .. } => seed,
                Search::Deviations(_) => 0,
            },
            deviations_left: 0,
            running: false,
            wants: Vec::new(),
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no task panics in the explorer")
    }

    /// From here on tasks, numbered from 1 to `tasks`, take turns.
    pub(crate) fn begin(&self, tasks: usize) {
        let mut inner = self.inner();
        inner.wants = (0..=tasks).map(|_| None).collect();
        inner.running = true;
    }

    /// The run is over: every task goes on to its end.
    pub(crate) fn end(&self) {
        let mut inner = self.inner();
        inner.running = false;
        inner.wants.clear();
    }

    pub(crate) fn is_running(&self) -> bool {
        self.inner().running
    }

    /// Somebody else may have the turn.
    pub(crate) fn point(&self) {
        if self.is_running() {
            shuttle::thread::yield_now();
        }
    }

    /// Waits until `want` holds; false if the run ended before.
    pub(crate) fn wait(
        &self,
        task: usize,
        want: impl Fn() -> bool + Send + Clone + 'static,
    ) -> bool {
        while self.is_running() {
            if want() {
                self.set_want(task, None);
                return true;
            }
            self.set_want(task, Some(Box::new(want.clone())));
            shuttle::thread::yield_now();
        }
        false
    }

    fn set_want(&self, task: usize, want: Option<Want>) {
        if let Some(slot) = self.inner().wants.get_mut(task) {
            *slot = want;
        }
    }

    /// One of `count`, the first by default.
    pub(crate) fn choose(&self, count: usize) -> usize {
        self.inner().choose(count)
    }

    /// Something that need not be done: to do it is a deviation.
    pub(crate) fn dares(&self) -> bool {
        self.choose(2) == 1
    }

    /// How many runs there were, and the choices of the last one.
    pub(crate) fn runs(&self) -> usize {
        self.inner().runs
    }

    /// The choices of this run.
    pub(crate) fn choices(&self) -> Vec<usize> {
        self.inner()
            .choices
            .iter()
            .map(|(chosen, _)| *chosen)
            .collect()
    }
}

impl Inner {
    fn choose(&mut self, count: usize) -> usize {
        if count <= 1 || !self.running {
            return 0;
        }
        if let Search::Random { .. } = self.search {
            self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.dice;
            mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            // Mostly it goes on.
            let chosen = (mixed >> 33) as usize % (count * 2);
            let chosen = if chosen < count { chosen } else { 0 };
            self.choices.push((chosen, count));
            return chosen;
        }
        if self.deviations_left == 0 {
            return 0;
        }
        let at = self.at;
        self.at += 1;
        let chosen = match self.choices.get(at) {
            Some(&(chosen, of)) => {
                assert_eq!(of, count, "a run does not repeat itself at choice {at}");
                chosen
            }
            None => {
                self.choices.push((0, count));
                0
            }
        };
        self.deviations_left -= usize::from(chosen > 0);
        chosen
    }

    fn begin_run(&mut self) -> bool {
        match self.search {
            Search::Random { runs, .. } => {
                if self.runs == runs {
                    return false;
                }
                self.deviations_left = usize::MAX;
                self.choices.clear();
            }
            Search::Deviations(most) => {
                self.deviations_left = most;
                if self.runs > 0 {
                    while self
                        .choices
                        .pop_if(|(chosen, of)| *chosen + 1 == *of)
                        .is_some()
                    {}
                    let Some((chosen, _)) = self.choices.last_mut() else {
                        return false;
                    };
                    *chosen += 1;
                }
            }
        }
        self.at = 0;
        self.runs += 1;
        true
    }
}

impl Scheduler for Explorer {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.inner().begin_run().then(|| Schedule::new(0))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        _is_yielding: bool,
    ) -> Option<TaskId> {
        let mut inner = self.inner();
        let ids = runnable.iter().map(|task| task.id());
        if !inner.running {
            // A world is made by one task, and ends by each in turn.
            let mut ids = ids;
            return ids.clone().find(|id| Some(*id) == current).or(ids.next());
        }
        let can_go_on = |id: &TaskId| {
            let want = inner.wants.get(usize::from(*id)).and_then(Option::as_ref);
            usize::from(*id) != 0 && want.is_none_or(|want| want())
        };
        let mut able: Vec<TaskId> = ids.filter(can_go_on).collect();
        // The first task judges when nobody can go on.
        if able.is_empty() {
            return Some(TaskId::from(0));
        }
        let count = inner.wants.len();
        let now = current.map_or(0, usize::from);
        able.sort_by_key(|id| (usize::from(*id) + count - now) % count);
        let chosen = inner.choose(able.len());
        able.get(chosen).copied()
    }

    fn next_u64(&mut self) -> u64 {
        unreachable!("nothing is left to chance but the choices")
    }
}
