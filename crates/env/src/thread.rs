//! Threads: named, optionally pinned to a core. Of a simulated thread they are simulated too
//! ([`simulated_threads`](crate::simulated_threads)).

use crate::simulated_threads::current;

use std::io;

/// A running thread. Dropping the handle detaches the thread.
#[derive(Debug)]
pub struct JoinHandle {
    inner: std::thread::JoinHandle<()>,
    /// Its number among the simulated ones.
    simulated: Option<u64>,
}

impl JoinHandle {
    /// Waits for the thread to end; an error means that it panicked.
    pub fn join(self) -> io::Result<()> {
        if let (Some(number), Some(current)) = (self.simulated, current()) {
            current.join(number);
        }
        self.inner
            .join()
            .map_err(|_| io::Error::other("the thread panicked"))
    }

    /// True once the thread's body has returned.
    pub fn is_finished(&self) -> bool {
        self.inner.is_finished()
    }

    /// The thread, to unpark it.
    pub fn thread(&self) -> &std::thread::Thread {
        self.inner.thread()
    }
}

/// How much a thread gives way that works in the background.
const BACKGROUND_NICE: i32 = 10;
/// Stack of each thread: statements nested to their limits are parsed, planned and evaluated recursively. Only touched
/// pages take memory.
const STACK_BYTES: usize = 16 << 20;

/// Starts a thread called `name`, pinned to the `core`-th of the cores this process may use (modulo their number) if
/// one is given. A pin that the kernel refuses is no error: pinning is for speed, and some sandboxes forbid it.
pub fn spawn<F>(name: &str, core: Option<usize>, body: F) -> io::Result<JoinHandle>
where
    F: FnOnce() + Send + 'static,
{
    match current() {
        Some(current) => {
            let process = current.process();
            let started = current.threads.spawn_in(process, name, body)?;
            Ok(JoinHandle {
                inner: started.inner,
                simulated: Some(started.number),
            })
        }
        None => Ok(JoinHandle {
            inner: spawn_real(name, core, body)?,
            simulated: None,
        }),
    }
}

/// A thread of the machine.
fn spawn_real<F>(
    name: &str,
    core: Option<usize>,
    body: F,
) -> io::Result<std::thread::JoinHandle<()>>
where
    F: FnOnce() + Send + 'static,
{
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            if let Some(core) = core {
                pin(core);
            }
            body();
        })
}

/// The same for a thread that ends before `scope` does and may borrow what outlives it; not pinned. In a simulation
/// there is none: who asks does it by itself, as on a machine that has no thread left.
pub fn spawn_scoped<'scope, F, T>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    name: &str,
    body: F,
) -> io::Result<std::thread::ScopedJoinHandle<'scope, T>>
where
    F: FnOnce() -> T + Send + 'scope,
    T: Send + 'scope,
{
    if current().is_some() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn_scoped(scope, body)
}

/// Lets the calling thread do nothing for a while. For background threads only, never for a worker.
pub fn sleep(time: std::time::Duration) {
    match current() {
        None => std::thread::sleep(time),
        Some(current) => current.sleep(time),
    }
}

/// Lets the calling thread's timed waits end when they are over, and not up to 50 us later: for who plays the part of a
/// device. A kernel that refuses leaves them late.
pub fn minimize_timer_slack() {
    let _refusal_is_harmless = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
}

/// Number of cores this process may use.
pub fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The cores that this process may use, by the node of memory they are next to, as [`spawn`] counts them. One node
/// where the kernel tells of none.
pub fn cores_by_node() -> Vec<Vec<usize>> {
    let allowed = allowed_cores();
    let list = |node: usize| {
        let path = format!("/sys/devices/system/node/node{node}/cpulist");
        std::fs::read_to_string(path).ok()
    };
    // Their numbers may have gaps.
    let nodes = (0..NODES_MAX).filter_map(list);
    by_node(&allowed, nodes)
}

/// Nodes with a higher number are not looked for.
const NODES_MAX: usize = 256;

fn by_node(allowed: &[usize], lists: impl Iterator<Item = String>) -> Vec<Vec<usize>> {
    let mut left: Vec<(usize, usize)> = allowed.iter().copied().enumerate().collect();
    let mut nodes = Vec::new();
    for list in lists {
        let of_node: Vec<(usize, usize)> = left
            .extract_if(.., |(_, cpu)| is_in_list(*cpu, &list))
            .collect();
        if !of_node.is_empty() {
            nodes.push(of_node.into_iter().map(|(number, _)| number).collect());
        }
    }
    // What no node names is one.
    if !left.is_empty() || nodes.is_empty() {
        nodes.push(left.into_iter().map(|(number, _)| number).collect());
    }
    nodes
}

/// Is a processor in a list as the kernel writes them, `0-3,8`?
fn is_in_list(cpu: usize, list: &str) -> bool {
    list.trim().split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
            (Ok(first), Ok(last)) => (first..=last).contains(&cpu),
            _ => false,
        }
    })
}

/// The processors that this thread may use, by the kernel's numbers.
fn allowed_cores() -> Vec<usize> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(allowed) => (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|&cpu| allowed.is_set(cpu))
            .collect(),
        Err(_) => Vec::new(),
    }
}

/// From now on this thread, and those that it starts, give way to others. That it is refused is no error: it is for
/// speed.
pub fn lower_priority() {
    // Of Linux' threads each has its own; 0 is the one that asks.
    let _refusal_is_harmless = rustix::process::setpriority_process(None, BACKGROUND_NICE);
}

fn pin(core: usize) {
    let cores = allowed_cores();
    if cores.is_empty() {
        return;
    }
    let mut set = rustix::thread::CpuSet::new();
    set.set(cores[core % cores.len()]);
    let _refusal_is_harmless = rustix::thread::sched_setaffinity(None, &set);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(allowed: &[usize], lists: &[&str]) -> Vec<Vec<usize>> {
        by_node(allowed, lists.iter().map(|list| (*list).to_owned()))
    }

    #[test]
    fn cores_are_found_by_node() {
        assert_eq!(nodes(&[0, 1, 2, 3], &["0-1\n", "2-3\n"]), [[0, 1], [2, 3]]);
        // Numbers are those of the processors that may be used, not the kernel's.
        assert_eq!(
            nodes(&[4, 5, 12, 13], &["0-3,8-11", "4-7,12-15"]),
            [[0, 1, 2, 3]]
        );
        assert_eq!(
            nodes(&[1, 2, 9], &["0,2,4", "1,3,9"]),
            [vec![1], vec![0, 2]]
        );
        assert_eq!(nodes(&[0, 1], &[]), [[0, 1]]);
        assert_eq!(nodes(&[0, 1], &["", "no list", "5-"]), [[0, 1]]);
        assert_eq!(nodes(&[0, 1, 2], &["0-1"]), [vec![0, 1], vec![2]]);
        assert_eq!(nodes(&[], &["0-1"]), [Vec::<usize>::new()]);
    }

    #[test]
    fn this_machine_has_its_cores_once() {
        let mut all = cores_by_node().concat();
        all.sort_unstable();
        assert_eq!(all, (0..allowed_cores().len()).collect::<Vec<_>>());
    }
}
