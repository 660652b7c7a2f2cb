//! Which process this is, and whether another one is known to be gone.
//!
//! A process number alone says little: numbers are used again, and other machines and containers have the same ones. An
//! identity therefore names the machine since its last start (the kernel's boot id), the namespaces that process
//! numbers and times belong to, and when the process began.
//!
//! Invariant: [`Processes::is_gone`] says yes only of a process of this machine that has surely ended; in any doubt,
//! no. A copy of a running virtual machine is the same machine to everything that can be asked here: there, a process
//! may have ended that goes on in the original. Who acts on the answer has to know that there is no copy.

use parking_lot::Mutex;
use std::io::Read;

/// What tells a process from every other one, on any machine.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProcessIdentity {
    /// The machine's name, for people only: letters, digits, dots, dashes and underscores.
    pub host: String,
    /// Its number.
    pub process: u32,
    /// When it began, in the kernel's ticks since boot.
    pub started: u64,
    /// The machine and its last start: the kernel's boot id; 0 if it is not known.
    pub boot: u128,
    /// The namespace of process numbers.
    pub process_namespace: u64,
    /// The namespace of times; 0 where the kernel has none.
    pub time_namespace: u64,
}

/// Knows processes.
pub trait Processes: Send + Sync {
    /// This process.
    fn identity(&self) -> ProcessIdentity;

    /// Has this process surely ended on this machine? Never true of one on another machine; true of one that goes on in
    /// the machine that this one is a copy of.
    fn is_gone(&self, process: &ProcessIdentity) -> bool;
}

/// The machine's.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealProcesses;

/// A file of the kernel's, read once: its size is not known before.
fn kernel_text(path: &str) -> Option<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(64 << 10).read_to_string(&mut text).ok()?;
    Some(text)
}

fn boot_id() -> u128 {
    let text = kernel_text("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.trim().chars().filter(|&c| c != '-').collect();
    u128::from_str_radix(&digits, 16).unwrap_or(0)
}

/// The number in a link like `pid:[4026531836]`; 0 if there is none.
fn namespace(kind: &str) -> u64 {
    let link = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap_or_default();
    let text = link.to_string_lossy();
    let number = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    number
        .and_then(|(number, _)| number.parse().ok())
        .unwrap_or(0)
}

/// What the kernel says about a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// It has ended; its parent has not asked how.
    ended: bool,
    started: u64,
}

fn stat(process: u32) -> Option<Stat> {
    parse_stat(&kernel_text(&format!("/proc/{process}/stat"))?)
}

/// `/proc/PID/stat`: the second field is a name in parentheses that may hold anything.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Fields are counted from 1 and these begin with the third: state 3, threads 20, start time 22.
    let threads: u64 = fields.get(17)?.parse().ok()?;
    Some(Stat {
        // The first thread may end before the others.
        ended: matches!(*fields.first()?, "Z" | "X") && threads <= 1,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// A name that can stand in a line of words.
fn plain(host: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = host.trim().chars().take(64).collect();
    let name = name.replace(|c: char| !allowed(c), "-");
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}

impl Processes for RealProcesses {
    fn identity(&self) -> ProcessIdentity {
        let process = std::process::id();
        let began = stat(process).map(|stat| stat.started);
        ProcessIdentity {
            host: plain(&kernel_text("/proc/sys/kernel/hostname").unwrap_or_default()),
            process,
            started: began.unwrap_or(0),
            // Without all of it nobody could be sure.
            boot: began.map_or(0, |_| boot_id()),
            process_namespace: namespace("pid"),
            time_namespace: namespace("time"),
        }
    }

    fn is_gone(&self, process: &ProcessIdentity) -> bool {
        let here = self.identity();
        let same_machine = here.boot != 0
            && here.process_namespace != 0
            && (here.boot, here.process_namespace, here.time_namespace)
                == (
                    process.boot,
                    process.process_namespace,
                    process.time_namespace,
                );
        if !same_machine {
            return false;
        }
        let number = i32::try_from(process.process).ok();
        let Some(pid) = number.and_then(rustix::process::Pid::from_raw) else {
            return false;
        };
        // The kernel answers for every process of the namespace, whatever /proc shows to whom.
        if rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
            return true;
        }
        // Number in use: by this process, or by one that began at another time.
        stat(process.process).is_some_and(|now| now.ended || now.started != process.started)
    }
}

/// Processes of a simulated machine: this one, and those of which a test says that they are gone.
#[derive(Debug, Default)]
pub struct SimProcesses {
    identity: ProcessIdentity,
    gone: Mutex<Vec<ProcessIdentity>>,
}

impl SimProcesses {
    /// A machine on which this process has the number `process`.
    pub fn new(process: u32) -> SimProcesses {
        let identity = ProcessIdentity {
            host: "simulated".to_owned(),
            process,
            boot: 1,
            ..ProcessIdentity::default()
        };
        SimProcesses {
            identity,
            gone: Mutex::default(),
        }
    }

    /// This process has ended.
    pub fn set_gone(&self, process: ProcessIdentity) {
        self.gone.lock().push(process);
    }
}

impl Processes for SimProcesses {
    fn identity(&self) -> ProcessIdentity {
        self.identity.clone()
    }

    fn is_gone(&self, process: &ProcessIdentity) -> bool {
        self.gone.lock().contains(process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_not_gone_and_one_that_ended_is() {
        let me = RealProcesses.identity();
        assert_ne!((me.boot, me.started, me.process_namespace), (0, 0, 0));
        assert!(!RealProcesses.is_gone(&me));
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let of_child = ProcessIdentity {
            process: child.id(),
            started: stat(child.id()).unwrap().started,
            ..me.clone()
        };
        assert!(!RealProcesses.is_gone(&of_child));
        child.kill().unwrap();
        // Dead, and nobody has asked how: it stays in the table.
        while !stat(child.id()).unwrap().ended {
            std::thread::yield_now();
        }
        assert!(RealProcesses.is_gone(&of_child));
        child.wait().unwrap();
        assert!(RealProcesses.is_gone(&of_child));
    }

    #[test]
    fn a_number_used_again_is_another_process_and_another_machine_is_unknown() {
        let me = RealProcesses.identity();
        let earlier = ProcessIdentity {
            started: me.started - 1,
            ..me.clone()
        };
        assert!(RealProcesses.is_gone(&earlier));
        for elsewhere in [
            ProcessIdentity {
                boot: me.boot ^ 1,
                ..earlier.clone()
            },
            ProcessIdentity {
                boot: 0,
                ..earlier.clone()
            },
            ProcessIdentity {
                process_namespace: 7,
                ..earlier.clone()
            },
            ProcessIdentity {
                time_namespace: 7,
                ..earlier.clone()
            },
        ] {
            assert!(!RealProcesses.is_gone(&elsewhere), "{elsewhere:?}");
        }
    }

    #[test]
    fn a_process_may_have_any_name() {
        let text = "7 (a) Z 1 (b) S 1 1 1 0 -1 4194304 102 0 0 0 0 0 0 0 20 0 3 0 2581529 0\n";
        let found = Stat {
            ended: false,
            started: 2_581_529,
        };
        assert_eq!(parse_stat(text), Some(found));
        assert_eq!(parse_stat("7 (a) S"), None);
        assert_eq!(plain("a b\n"), "a-b");
        assert_eq!(plain(" "), "unknown");
    }
}
