//! What the run took place on: every kept result names it.

use std::path::Path;

use logstead_env::{Access, Env, OpenMode, core_count};

/// Most bytes read of a file that describes the machine.
const FACTS_BYTES: usize = 1 << 16;

/// The machine, the build and the commit.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The kernel.
    pub kernel: String,
    /// The commit that was built.
    pub commit: &'static str,
    /// Built with optimisation?
    pub optimised: bool,
}

/// A file of the kernel's; its length is not known before it is read.
fn read(env: &Env, path: &str) -> Option<String> {
    let file = env
        .files
        .open(Path::new(path), OpenMode::buffered(Access::Read))
        .ok()?;
    let mut bytes = vec![0; FACTS_BYTES];
    let count = file.read_full_at(0, &mut bytes).ok()?;
    bytes.truncate(count);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Ticks of the processor's time in a second: the kernel's interface has it so on every machine that we know.
const TICKS_PER_SECOND: f64 = 100.0;

/// The processor's time that this process has taken, in its own code and in the kernel's.
pub(crate) fn cpu_seconds(env: &Env) -> Option<f64> {
    let text = read(env, "/proc/self/stat")?;
    // The name, in parentheses, may have spaces in it.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

/// The value after `name` and a colon, on a line of its own.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn kibibytes(text: &str) -> Option<u64> {
    let number: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(number * 1024)
}

impl Machine {
    /// This one.
    pub fn this(env: &Env) -> Machine {
        let processors = read(env, "/proc/cpuinfo").unwrap_or_default();
        let memory = read(env, "/proc/meminfo").unwrap_or_default();
        let kernel = read(env, "/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            processor: field(&processors, "model name")
                .unwrap_or("unknown processor")
                .to_owned(),
            cores: core_count(),
            memory_bytes: field(&memory, "MemTotal").and_then(kibibytes).unwrap_or(0),
            kernel: kernel.trim().to_owned(),
            commit: env!("LOGSTEAD_COMMIT"),
            optimised: !cfg!(debug_assertions),
        }
    }

    /// In one line.
    pub fn describe(&self) -> String {
        format!(
            "{}, {} cores, {:.0} GiB, kernel {}; commit {}{}",
            self.processor,
            self.cores,
            self.memory_bytes as f64 / f64::from(1 << 30),
            self.kernel,
            self.commit,
            if self.optimised {
                ""
            } else {
                ", DEBUG BUILD: the figures mean nothing"
            }
        )
    }
}

/// Resident memory of this process.
pub(crate) fn resident_bytes(env: &Env) -> Option<u64> {
    field(&read(env, "/proc/self/status")?, "VmRSS").and_then(kibibytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let env = Env::real();
        let machine = Machine::this(&env);
        assert!(machine.memory_bytes > 0);
        assert!(machine.cores > 0);
        assert!(!machine.kernel.is_empty());
        assert!(resident_bytes(&env).is_some_and(|bytes| bytes > 1 << 16));
    }

    #[test]
    fn fields_are_found() {
        let text = "MemTotal:   1024 kB\nModel name : x: y\n";
        assert_eq!(field(text, "MemTotal").and_then(kibibytes), Some(1 << 20));
        assert_eq!(field(text, "Model name"), Some("x: y"));
        assert_eq!(field(text, "Model"), None);
    }
}
