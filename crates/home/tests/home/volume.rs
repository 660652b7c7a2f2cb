//! A node's part of a volume: what was told holds through every crash.

use logstead_env::{Buffer, CrashLoss, Env, Fault, SimFiles};
use logstead_home::{
    HomeError, IoMethod, LocalOptions, LocalVolume, NoRoom, ObjectId, Position, SeenCopy,
};
use logstead_types::{Epoch, LaneId};
use std::sync::mpsc;

const LANE: LaneId = LaneId(2);
const FIRST: u64 = 3 << 32;
const SEGMENT_BYTES: u64 = 16 << 10;
const BLOCK: usize = 4096;

fn open(env: &Env) -> Result<LocalVolume, HomeError> {
    let options = LocalOptions {
        threads: false,
        way: IoMethod::Pwrite,
        ..LocalOptions::default()
    };
    LocalVolume::open("/volume", env, SEGMENT_BYTES, options)
}

/// The place of the so-manieth block of the lane.
fn place(number: u64) -> Position {
    let per_segment = SEGMENT_BYTES / BLOCK as u64;
    Position {
        segment: FIRST + number / per_segment,
        offset: number % per_segment * BLOCK as u64,
    }
}

fn append(volume: &LocalVolume, number: u64) -> Result<(), HomeError> {
    let mut block = Buffer::zeroed(BLOCK);
    block.as_mut_slice().fill(number as u8 + 1);
    let (tell, told) = mpsc::channel();
    let done = Box::new(move |_, result| drop(tell.send(result)));
    volume.append(LANE, place(number), block, BLOCK, done);
    told.recv().expect("is told once")
}

fn byte_at(volume: &LocalVolume, number: u64) -> u8 {
    let mut into = Buffer::zeroed(BLOCK);
    let count = volume.read(LANE, place(number), &mut into).expect("reads");
    if count == BLOCK {
        into.as_slice()[0]
    } else {
        0
    }
}

/// What the volume has told of what it was asked.
#[derive(Default)]
struct Told {
    appended: u64,
    swapped: bool,
    fenced: bool,
}

/// Appends over several segments, a named value and a fence, until something fails.
fn script(env: &Env, told: &mut Told) -> Result<(), HomeError> {
    let volume = open(env)?;
    volume.open_lane(LANE, FIRST).map_err(|error| match error {
        NoRoom::Failed(error) => error,
        other => panic!("{other}"),
    })?;
    for number in 0..10 {
        append(&volume, number)?;
        told.appended = number + 1;
    }
    let tag = volume.put_if_absent("record", b"one")?;
    volume.compare_and_swap("record", tag, b"two")?;
    told.swapped = true;
    volume.fence(LANE, FIRST)?;
    told.fenced = true;
    let late = append(&volume, 10).expect_err("it is fenced");
    assert!(matches!(late, HomeError::Fenced(_)), "{late}");
    Ok(())
}

fn judge(env: &Env, told: &Told, at: u64) {
    let volume = open(env).expect("opens after a crash");
    for number in 0..told.appended {
        assert_eq!(
            byte_at(&volume, number),
            number as u8 + 1,
            "block {number}, crash at {at}"
        );
    }
    assert_eq!(
        byte_at(&volume, 10),
        0,
        "what was fenced out, crash at {at}"
    );
    if told.swapped {
        let record = volume.get("record").expect("reads").expect("is there");
        assert_eq!(record.0, b"two", "crash at {at}");
    }
    let opened = volume.open_lane(LANE, FIRST + 9);
    match told.fenced {
        true => assert!(
            matches!(opened, Err(NoRoom::Failed(HomeError::Fenced(_)))),
            "crash at {at}: {opened:?}"
        ),
        // The fence may have come through without its answer.
        false => assert!(
            matches!(opened, Ok(()) | Err(NoRoom::Failed(HomeError::Fenced(_)))),
            "crash at {at}: {opened:?}"
        ),
    }
    // The next epoch is nobody's but the next server's.
    volume.open_lane(LANE, 4 << 32).expect("opens");
}

#[test]
fn what_was_told_holds_through_a_crash_at_every_operation() {
    let (env, files) = Env::simulated(1);
    let mut whole = Told::default();
    script(&env, &mut whole).expect("nothing goes wrong");
    let operations = files.operations();
    assert!(whole.fenced && operations > 30, "{operations}");
    for loss in [CrashLoss::All, CrashLoss::Random] {
        // The last one is a power cut behind all of it.
        for at in 0..=operations {
            let (mut env, _) = Env::simulated(at);
            let files = SimFiles::new(at);
            files.set_loss(loss);
            files.fail_at(at, Fault::Crash);
            env.files = std::sync::Arc::new(files.clone());
            let mut told = Told::default();
            let ended = script(&env, &mut told);
            assert!(ended.is_err() || told.fenced, "crash at {at}");
            files.reboot();
            judge(&env, &told, at);
        }
    }
}

#[test]
fn a_damaged_record_of_fences_is_no_record_without_fences() {
    let (env, files) = Env::simulated(1);
    script(&env, &mut Told::default()).expect("nothing goes wrong");
    files.reboot();
    let path = std::path::Path::new("/volume/fences");
    let flip = |bytes: &mut Vec<u8>| bytes[20] ^= 1;
    files.tamper(path, flip).expect("is there");
    let error = open(&env).map(drop).expect_err("it is damaged").to_string();
    assert!(error.contains("read the fences"), "{error}");
}

const OBJECT: ObjectId = ObjectId::new(Epoch(3), 1);
const DAMAGED: &[u8] = b"good, but for one bot";
const GOOD: &[u8] = b"good, but for one bit";

fn object(volume: &LocalVolume) -> Vec<u8> {
    let mut bytes = vec![0; 100];
    let count = volume.read_object(OBJECT, 0, &mut bytes).expect("reads");
    bytes.truncate(count);
    let from_disk = volume.read_object_from_disk(OBJECT).expect("reads");
    assert_eq!(
        from_disk, bytes,
        "nothing is read of a file that has no name"
    );
    bytes
}

/// A server that has stood still comes late with a better copy: it hits no copy but the damaged one that it has seen.
#[test]
fn a_damaged_object_is_replaced_and_no_other_one() {
    let (env, _) = Env::simulated(1);
    let volume = open(&env).expect("opens");
    let epoch = Epoch(3);
    let seen = SeenCopy::of(Some(DAMAGED));
    let replace = |seen| volume.replace_object(epoch, OBJECT, seen, GOOD);
    let missing = replace(seen).expect_err("there is none");
    assert!(matches!(missing, HomeError::Missing(_)), "{missing}");
    assert!(volume.list_objects().expect("lists").is_empty());
    volume.put_object(OBJECT, DAMAGED).expect("stores");
    assert_eq!(object(&volume), DAMAGED);
    for other in [SeenCopy::Unreadable, SeenCopy::of(Some(b"something else"))] {
        let refused = replace(other).expect_err("it is not that");
        assert!(matches!(refused, HomeError::Conflict(_)), "{refused}");
        assert_eq!(object(&volume), DAMAGED);
    }
    replace(seen).expect("replaces");
    assert_eq!(object(&volume), GOOD);
    // Asked again because the answer was lost.
    replace(seen).expect("it is done");
    volume.remove_object(OBJECT).expect("removes");
    // Another one has mended it in another way.
    volume.put_object(OBJECT, b"mended").expect("stores");
    let refused = replace(seen).expect_err("it is not that");
    assert!(matches!(refused, HomeError::Conflict(_)), "{refused}");
    assert_eq!(object(&volume), b"mended");
    // Nothing is left of those that were refused.
    assert_eq!(volume.list_objects().expect("lists").len(), 1);
    let files = env.files.list(&volume.dir().join("objects"));
    assert_eq!(files.expect("lists").len(), 1);
}

#[test]
fn who_was_overtaken_replaces_nothing() {
    let (env, _) = Env::simulated(1);
    let volume = open(&env).expect("opens");
    volume.put_object(OBJECT, DAMAGED).expect("stores");
    let replace = |epoch| {
        let seen = SeenCopy::of(Some(DAMAGED));
        volume.replace_object(Epoch(epoch), OBJECT, seen, GOOD)
    };
    // The server of epoch 4 fences the lanes of epoch 3.
    volume.fence(LANE, FIRST).expect("fences");
    let refused = replace(3).expect_err("it is fenced out");
    assert!(matches!(refused, HomeError::Fenced(_)), "{refused}");
    assert_eq!(object(&volume), DAMAGED);
    replace(4).expect("replaces");
    assert_eq!(object(&volume), GOOD);
}

#[test]
fn a_crash_leaves_one_of_the_two_copies() {
    let script = |env: &Env| {
        let volume = open(env)?;
        volume.put_object(OBJECT, DAMAGED)?;
        let seen = SeenCopy::of(Some(DAMAGED));
        volume.replace_object(Epoch(3), OBJECT, seen, GOOD)
    };
    let (env, files) = Env::simulated(1);
    open(&env).expect("opens");
    let opened = files.operations();
    let (env, files) = Env::simulated(1);
    script(&env).expect("nothing goes wrong");
    let operations = files.operations();
    assert!(operations > opened + 10, "{operations}");
    let mut seen = [0, 0];
    for loss in [CrashLoss::All, CrashLoss::Random] {
        for at in opened..=operations {
            let (mut env, _) = Env::simulated(at);
            let files = SimFiles::new(at);
            files.set_loss(loss);
            files.fail_at(at, Fault::Crash);
            env.files = std::sync::Arc::new(files.clone());
            let ended = script(&env);
            files.reboot();
            let volume = open(&env).expect("opens after a crash");
            if volume.list_objects().expect("lists").is_empty() {
                assert!(ended.is_err(), "crash at {at}");
                continue;
            }
            let bytes = object(&volume);
            assert!(bytes == GOOD || ended.is_err(), "crash at {at}");
            assert!(
                bytes == GOOD || bytes == DAMAGED,
                "crash at {at}: {bytes:?}"
            );
            seen[usize::from(bytes == GOOD)] += 1;
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}
