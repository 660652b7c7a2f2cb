//! What is made is kept from other accounts, whatever the umask; directories of data are closed, refused or taken as
//! they are.
#![allow(clippy::disallowed_methods, reason = "the test looks at real files")]

use logstead_env::{Access, DataDirMode, DirectoryEntries, Files, OpenMode, RealFiles};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The umask belongs to the whole process, so one test runs at a time.
static UMASK: Mutex<()> = Mutex::new(());

const CONTENTS: DirectoryEntries<'static> = DirectoryEntries {
    lock: "lock",
    names: &["manifest", "log"],
};

fn with_umask<T>(umask: u32, run: impl FnOnce() -> T) -> T {
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
    let done = run();
    rustix::process::umask(before);
    done
}

fn mode(path: &Path) -> u32 {
    let metadata = std::fs::symlink_metadata(path).unwrap();
    metadata.permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn whatever_the_umask_only_readers_can_open_what_is_made() {
    let _umask = UMASK.lock().unwrap_or_else(PoisonError::into_inner);
    for umask in [0, 0o022, 0o077, 0o777] {
        for readers in [DataDirMode::Owner, DataDirMode::Group] {
            let root = tempfile::tempdir().unwrap();
            let files = RealFiles::readable_by(readers);
            let dir = root.path().join("a/b");
            let (new, replaced) = (dir.join("new"), dir.join("replaced"));
            let (direct, lock) = (dir.join("direct"), dir.join("lock"));
            with_umask(umask, || {
                files.create_dir(&dir).unwrap();
                std::fs::write(&replaced, "open to all").unwrap();
                set_mode(&replaced, 0o666);
                let open = |path: &Path, access, direct| {
                    let mode = OpenMode {
                        direct,
                        ..OpenMode::buffered(access)
                    };
                    drop(files.open(path, mode).unwrap());
                };
                open(&new, Access::CreateNew, false);
                open(&replaced, Access::Replace, false);
                open(&direct, Access::Replace, true);
                drop(files.lock(&lock).unwrap().unwrap());
                // What is opened is not changed.
                drop(files.lock(&lock).unwrap().unwrap());
            });
            let (directory, file) = match readers {
                DataDirMode::Owner => (0o700, 0o600),
                DataDirMode::Group => (0o750, 0o640),
            };
            for made in [root.path().join("a"), dir] {
                assert_eq!(mode(&made), directory, "umask {umask:o}: {made:?}");
            }
            for made in [new, replaced, direct, lock] {
                assert_eq!(mode(&made), file, "umask {umask:o}: {made:?}");
            }
        }
    }
}

fn entered(dir: &Path, readers: DataDirMode) -> Result<Option<String>, String> {
    let entered = RealFiles::default().data_directory(dir, CONTENTS, readers);
    match entered {
        Ok(entered) => Ok(entered.told),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied);
            Err(error.to_string())
        }
    }
}

/// As a server of before left it, under umask 022.
fn left_open(dir: &Path) {
    std::fs::create_dir_all(dir.join("log/lane-0000")).unwrap();
    for name in ["lock", "manifest", "log/lane-0000/0.seg", "notes"] {
        std::fs::write(dir.join(name), name).unwrap();
        set_mode(&dir.join(name), 0o644);
    }
    for name in ["", "log", "log/lane-0000"] {
        set_mode(&dir.join(name), 0o755);
    }
}

#[test]
fn what_an_older_version_left_open_is_closed_and_told() {
    let _umask = UMASK.lock().unwrap_or_else(PoisonError::into_inner);
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("data");
    left_open(&dir);
    // What a link leads to is not ours to change, though it is named as ours.
    let elsewhere = root.path().join("elsewhere");
    std::fs::write(&elsewhere, "").unwrap();
    set_mode(&elsewhere, 0o644);
    symlink(&elsewhere, dir.join("log/lane-0000/1.seg")).unwrap();
    let told = entered(&dir, DataDirMode::Owner).unwrap();
    assert!(told.unwrap().contains("closed to them now"));
    for name in ["", "log", "log/lane-0000"] {
        assert_eq!(mode(&dir.join(name)), 0o700, "{name}");
    }
    for name in ["lock", "manifest", "log/lane-0000/0.seg"] {
        assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&dir.join("notes")), 0o644, "not ours");
    assert_eq!(mode(&elsewhere), 0o644, "behind a link");
    assert_eq!(entered(&dir, DataDirMode::Owner), Ok(None), "once");
}

/// The lock file is the last: while it is open, not all is done.
#[test]
fn a_closing_that_was_interrupted_is_finished() {
    let _umask = UMASK.lock().unwrap_or_else(PoisonError::into_inner);
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("data");
    left_open(&dir);
    set_mode(&dir, 0o700);
    set_mode(&dir.join("manifest"), 0o600);
    assert!(entered(&dir, DataDirMode::Owner).unwrap().is_some());
    assert_eq!(mode(&dir.join("log/lane-0000/0.seg")), 0o600);
    assert_eq!(mode(&dir.join("lock")), 0o600);
}

#[test]
fn one_that_was_opened_to_others_afterwards_is_refused_in_postgresqls_words() {
    let _umask = UMASK.lock().unwrap_or_else(PoisonError::into_inner);
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("data");
    entered(&dir, DataDirMode::Owner).unwrap();
    drop(RealFiles::default().lock(&dir.join("lock")).unwrap());
    for exposed in [0o755, 0o701, 0o770, 0o720, 0o777] {
        set_mode(&dir, exposed);
        let refused = entered(&dir, DataDirMode::Owner).unwrap_err();
        let words = format!(
            "data directory \"{}\" has invalid permissions\nDETAIL:  Permissions should be u=rwx (0700) or u=rwx,g=rx (0750).",
            dir.display()
        );
        assert_eq!(refused, words, "{exposed:o}");
        assert_eq!(mode(&dir), exposed, "it is left as it is");
    }
}

/// Whoever names the wrong directory loses nothing: not /tmp, and not a project's.
#[test]
fn a_directory_with_other_things_is_refused_as_it_is_and_an_empty_one_becomes_private() {
    let _umask = UMASK.lock().unwrap_or_else(PoisonError::into_inner);
    let root = tempfile::tempdir().unwrap();
    let (other, empty) = (root.path().join("other"), root.path().join("empty"));
    for dir in [&other, &empty] {
        std::fs::create_dir(dir).unwrap();
        set_mode(dir, 0o755);
    }
    std::fs::write(other.join("notes"), "").unwrap();
    assert!(entered(&other, DataDirMode::Owner).is_err());
    assert_eq!(mode(&other), 0o755);
    std::fs::create_dir(empty.join("lost+found")).unwrap();
    assert_eq!(entered(&empty, DataDirMode::Owner), Ok(None));
    assert_eq!(mode(&empty), 0o700);
}

/// As with initdb -g: said when it is made, and later by its mode.
#[test]
fn the_group_may_read_what_is_made_for_it() {
    let _umask = UMASK.lock().unwrap_or_else(PoisonError::into_inner);
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("data");
    entered(&dir, DataDirMode::Group).unwrap();
    drop(
        RealFiles::readable_by(DataDirMode::Group)
            .lock(&dir.join("lock"))
            .unwrap(),
    );
    assert_eq!(mode(&dir), 0o750);
    let again = RealFiles::default()
        .data_directory(&dir, CONTENTS, DataDirMode::Owner)
        .unwrap();
    assert_eq!(mode(&dir), 0o750, "it was made so");
    let files = again.files.unwrap();
    files.create_dir(&dir.join("log")).unwrap();
    drop(
        files
            .open(
                &dir.join("log/0.seg"),
                OpenMode::buffered(Access::CreateNew),
            )
            .unwrap(),
    );
    assert_eq!(mode(&dir.join("log")), 0o750);
    assert_eq!(mode(&dir.join("log/0.seg")), 0o640);
}
