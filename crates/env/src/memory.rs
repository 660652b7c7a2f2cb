//! How much memory this process may use.

use std::path::Path;

/// The machine's memory, or less if a control group allows less; `None` if the kernel does not tell.
pub fn memory_bytes() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let machine = machine_bytes(&read(Path::new("/proc/meminfo"))?)?;
    let group = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    Some(group_limits(&group, read).fold(machine, u64::min))
}

fn machine_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The limits of the process's control group and all groups around it, of either version of control groups.
fn group_limits(group: &str, read: impl Fn(&Path) -> Option<String>) -> impl Iterator<Item = u64> {
    let mut limits = Vec::new();
    for line in group.lines() {
        // hierarchy-id:controllers:path
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        // Inside a container the path may be one of the host: whatever of it is there counts, the root last.
        for ancestor in Path::new(path.trim_start_matches('/')).ancestors() {
            let text = read(&Path::new(root).join(ancestor).join(file));
            limits.extend(text.and_then(|t| t.trim().parse::<u64>().ok()));
        }
    }
    limits.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_counts() {
        assert_eq!(
            machine_bytes("MemTotal:       24604508 kB\nMemFree: 1 kB\n"),
            Some(24_604_508 * 1024)
        );
        assert_eq!(machine_bytes("MemFree: 1 kB"), None);
        let files = |path: &Path| {
            let text = match path.to_str()? {
                "/sys/fs/cgroup/a/b/memory.max" => "max",
                "/sys/fs/cgroup/a/memory.max" => "2000",
                "/sys/fs/cgroup/memory/v1/memory.limit_in_bytes" => "1500",
                _ => return None,
            };
            Some(format!("{text}\n"))
        };
        let limits: Vec<u64> =
            group_limits("0::/a/b\n5:memory:/v1\n6:cpu:/\nnonsense\n", files).collect();
        assert_eq!(limits, [2000, 1500]);
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(memory_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
