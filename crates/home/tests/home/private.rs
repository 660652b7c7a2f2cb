//! Nobody but its owner can read a local home. (The umask is env's test.)
#![allow(clippy::disallowed_methods, reason = "the test looks at real files")]

use logstead_env::{DataDirMode, Env};
use logstead_home::{
    Buffer, HomeError, ImmutableObjects, InlineAppends, LaneAppends, LocalHome, LocalOptions,
    NamedValues, ObjectId, SideSegments,
};
use logstead_types::{Epoch, LaneId};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

fn walk(dir: &Path, found: &mut Vec<(PathBuf, u32, bool)>) {
    let metadata = std::fs::symlink_metadata(dir).unwrap();
    let mode = metadata.permissions().mode() & 0o777;
    found.push((dir.to_owned(), mode, metadata.is_dir()));
    if metadata.is_dir() {
        for entry in std::fs::read_dir(dir).unwrap() {
            walk(&entry.unwrap().path(), found);
        }
    }
}

/// Every kind of file that a home makes.
fn fill(dir: &Path, readers: DataDirMode) {
    let options = LocalOptions {
        segment_size_bytes: 64 * 1024,
        first_segment_size_bytes: 32 * 1024,
        segment_size_bytes_min: 32 * 1024,
        readers,
        ..LocalOptions::default()
    };
    let home = LocalHome::open(dir, &Env::real(), options).unwrap();
    let lane = LaneId(0);
    home.open_lane(lane, 1).unwrap();
    let at = home.place(lane, 4096).unwrap();
    let block = Buffer::zeroed(4096);
    home.append_inline(lane, at, &block, 4096).unwrap();
    let mut side = home.begin_side_segment(lane, 7);
    side.append(vec![7; 5000]);
    let (done, told) = mpsc::channel();
    side.finish(Box::new(move |result| done.send(result.is_ok()).unwrap()));
    assert!(told.recv().unwrap());
    home.put_object(ObjectId::new(Epoch(1), 1), b"object")
        .unwrap();
    home.put_if_absent("manifest", b"manifest").unwrap();
    home.put_if_absent("pins", b"pins").unwrap();
}

#[test]
fn nothing_in_a_local_home_is_for_others() {
    for readers in [DataDirMode::Owner, DataDirMode::Group] {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("data");
        fill(&dir, readers);
        let mut found = Vec::new();
        walk(&dir, &mut found);
        // The directory, log, lane, objects; lock, segment, side segment, object, two names.
        assert!(found.len() >= 10, "{found:?}");
        for (path, mode, is_dir) in found {
            let wanted = match is_dir {
                true => readers.directory_mode(),
                false => readers.file_mode(),
            };
            assert_eq!(mode, wanted, "{}", path.display());
        }
    }
}

#[test]
fn a_home_that_others_can_read_does_not_open() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("data");
    fill(&dir, DataDirMode::Owner);
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    let opened = LocalHome::open(&dir, &Env::real(), LocalOptions::default());
    assert!(matches!(opened.err(), Some(HomeError::Exposed(_))));
    // Who only reads changes nothing, and keeps nobody out.
    LocalHome::open_read_only(&dir, &Env::real()).unwrap();
}

/// A file in the place of a directory, made by its administrator as the umask had it.
#[test]
fn a_preallocated_file_is_closed_to_others() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("device");
    std::fs::write(&path, vec![0; 16 << 20]).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let opened = LocalHome::open(&path, &Env::real(), LocalOptions::default());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A file system without direct I/O has no devices.
    drop(opened);
}
