//! The formats, pinned: golden files that a person can read, properties, and hostile bytes.
//!
//! If a golden test fails, the format has changed. That needs a new format version, never a new golden file alone.

use crate::rig;

use logstead_home::{ObjectId, Position};
use logstead_types::{BlockNo, Csn, DatabaseId, Epoch, LaneId, Rid, TableId};
use logstead_wal::block::{
    FORMAT_VERSION, FORMAT_VERSION_WITHOUT_HORIZON, HEADER_LEN, HEADER_LEN_V1, Header,
};
use logstead_wal::entry::EntryReader;
use logstead_wal::manifest::{CheckpointRef, Manifest, ManifestError, RedoPoint};
use logstead_wal::recovery::{RecoveryError, RecoveryOptions};
use logstead_wal::{
    Entry, EntryBody, EntryDependencies, RecordReader, RowRecord, SideRef, inspect,
};
use proptest::prelude::*;
use std::fmt::Write;

fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    for line in bytes.chunks(16) {
        let line: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "{}", line.join(" ")).unwrap();
    }
    out
}

/// A payload with every kind of entry and record, and its header.
fn sample() -> (Header, Vec<u8>) {
    let mut records = Vec::new();
    let (table, rid) = (TableId(16_384), Rid(300));
    RowRecord::Insert {
        table,
        rid,
        row: b"whole row",
    }
    .encode(&mut records);
    RowRecord::Update {
        table,
        rid,
        delta: b"delta",
    }
    .encode(&mut records);
    RowRecord::Delete {
        table,
        rid: Rid(u64::MAX),
    }
    .encode(&mut records);
    let list = [Csn(900), Csn(997)].into_iter().collect();
    let side = SideRef {
        lane: LaneId(3),
        id: 5 << 32 | 1,
        length: 1 << 21,
        crc: 0x1234_5678,
    };
    let entries = [
        Entry {
            csn: Csn(1000),
            deps: EntryDependencies {
                floor: Csn(999),
                list,
            },
            body: EntryBody::Inline(&records),
        },
        Entry {
            csn: Csn(998),
            deps: EntryDependencies::floor(Csn(0)),
            body: EntryBody::Inline(&[]),
        },
        Entry {
            csn: Csn(1001),
            deps: EntryDependencies::floor(Csn(1000)),
            body: EntryBody::Side(side),
        },
    ];
    let mut payload = Vec::new();
    entries.iter().for_each(|entry| entry.encode(&mut payload));
    let decoded: Result<Vec<_>, _> = EntryReader::new(&payload).collect();
    assert_eq!(decoded.unwrap(), entries);
    let header = Header {
        version: FORMAT_VERSION,
        database: DatabaseId(0x0123_4567_89ab_cdef),
        epoch: Epoch(7),
        lane: LaneId(3),
        block: BlockNo(41),
        durable_through: 40,
        payload_len: payload.len() as u32,
        entries: 3,
        csn_lowest: Csn(998),
        csn_highest: Csn(1001),
        payload_crc: crc32c::crc32c(&payload),
        previous_header_crc: 0xdead_beef,
        horizon: Csn(998),
    };
    (header, payload)
}

#[test]
fn golden_block() {
    let (header, payload) = sample();
    let (bytes, crc) = header.encode();
    assert_eq!(Header::decode(&bytes).unwrap(), (header, crc));
    let text = format!("header\n{}payload\n{}", hex(&bytes), hex(&payload));
    assert_eq!(text, include_str!("golden/block.txt"), "\n{text}");
}

/// What a server wrote before headers recorded the horizon is read, and says nothing of it.
#[test]
fn golden_block_without_a_horizon() {
    let (header, payload) = sample();
    let header = Header {
        version: FORMAT_VERSION_WITHOUT_HORIZON,
        horizon: Csn::ZERO,
        ..header
    };
    let (bytes, crc) = header.encode();
    let bytes = &bytes[..header.header_len()];
    assert_eq!(bytes.len(), HEADER_LEN_V1);
    assert_eq!(Header::decode(bytes).unwrap(), (header, crc));
    assert_eq!(
        header.block_len(),
        HEADER_LEN_V1 as u64 + payload.len() as u64
    );
    let text = format!("header\n{}payload\n{}", hex(bytes), hex(&payload));
    assert_eq!(text, include_str!("golden/block-1.txt"), "\n{text}");
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.to_vec();
        bad[bit / 8] ^= 1 << (bit % 8);
        // The version itself, made the other one, has its checksums wrong.
        assert!(Header::decode(&bad).is_err(), "bit {bit}");
    }
}

#[test]
fn golden_dump() {
    let machine = rig::Machine::new(1);
    let server = machine.start(2).unwrap();
    assert!(server.commit(0, 1) && server.commit(1, 2) && server.push(1, 3) && server.commit(0, 4));
    drop(server);
    machine.files.reboot();
    let server = machine.start(1).unwrap();
    assert!(server.commit(0, 5));
    drop(server);
    let mut out = Vec::new();
    inspect::dump("/db", &machine.env, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text, include_str!("golden/dump.txt"), "\n{text}");
    let manifest = text
        .split_inclusive('\n')
        .take_while(|line| line.len() > 1)
        .collect::<String>();
    assert_eq!(
        Manifest::decode(manifest.as_bytes()).unwrap().encode(),
        manifest.as_bytes()
    );
}

#[test]
fn golden_leased_manifest() {
    let golden = include_str!("golden/manifest-leased.txt");
    let manifest = Manifest::decode(golden.as_bytes()).unwrap();
    let holder = manifest.holder.clone().unwrap();
    assert_eq!((holder.owner, holder.renewals), (0x0f1e_2d3c_4b5a_6978, 41));
    assert_eq!((holder.duration_ms, holder.owed_ms), (10_000, 0));
    assert_eq!(holder.since_utc(), "2026-01-01 00:00:00 UTC");
    let process = &holder.process;
    assert_eq!((process.host.as_str(), process.process), ("db-1", 4711));
    assert_eq!(
        (process.started, process.boot),
        (90_210, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef)
    );
    let namespaces = (process.process_namespace, process.time_namespace);
    assert_eq!(namespaces, (4_026_531_836, 4_026_531_834));
    assert_eq!(manifest.encode(), golden.as_bytes());
    for (since, text) in [
        (0, "1970-01-01 00:00:00 UTC"),
        (951_782_399, "2000-02-28 23:59:59 UTC"),
        (951_782_400, "2000-02-29 00:00:00 UTC"),
        (4_107_542_400, "2100-03-01 00:00:00 UTC"),
    ] {
        let holder = logstead_wal::manifest::LeaseHolder {
            since,
            ..holder.clone()
        };
        assert_eq!(holder.since_utc(), text);
    }
}

#[test]
fn golden_manifest_with_a_checkpoint() {
    let golden = include_str!("golden/manifest-checkpoint.txt");
    let manifest = Manifest::decode(golden.as_bytes()).unwrap();
    let checkpoint = manifest.checkpoint.clone().unwrap();
    assert_eq!(checkpoint.object, ObjectId(2 << 32 | 42));
    assert_eq!(checkpoint.crc, 0x00c0_ffee);
    assert_eq!((checkpoint.csn, checkpoint.epoch), (Csn(1200), Epoch(2)));
    let start = RedoPoint {
        lane: LaneId(0),
        at: Position {
            segment: 4,
            offset: 12_288,
        },
        block: 3,
        previous_header_crc: 0x0bad_cafe,
    };
    assert_eq!(checkpoint.start_of(LaneId(0)), Some(&start));
    assert_eq!(manifest.start_of(Epoch(2), LaneId(0)), Some(&start));
    assert_eq!(manifest.start_of(Epoch(3), LaneId(0)), None);
    assert_eq!(manifest.base(), Csn(1240));
    for (epoch, kept) in [(1, true), (2, true), (3, false), (4, false)] {
        assert_eq!(manifest.is_evidence(Epoch(epoch)), kept, "epoch {epoch}");
    }
    assert_eq!(manifest.encode(), golden.as_bytes());
}

/// The text with its right checksum.
fn summed(lines: &str) -> Vec<u8> {
    let crc = crc32c::crc32c(lines.as_bytes());
    format!("{lines}crc {crc:08x}\n").into_bytes()
}

#[test]
fn a_manifest_without_a_checkpoint_has_the_format_from_before_there_were_any() {
    let golden = include_str!("golden/manifest-leased.txt");
    assert!(golden.starts_with("logstead manifest 1\n"));
    let mut manifest = Manifest::decode(golden.as_bytes()).unwrap();
    manifest.set_checkpoint(CheckpointRef {
        object: ObjectId(7),
        crc: 1,
        csn: Csn(5),
        epoch: Epoch(2),
        starts: vec![RedoPoint {
            lane: LaneId(0),
            at: Position::start_of(8_589_934_592),
            block: 0,
            previous_header_crc: 0,
        }],
    });
    let text = String::from_utf8(manifest.encode()).unwrap();
    assert!(text.starts_with("logstead manifest 2\n"), "{text}");
    assert_eq!(Manifest::decode(text.as_bytes()).unwrap(), manifest);
    // A number that says less than the text holds is no form of it, and one that nobody needs neither.
    let (_, rest) = text.rsplit_once("crc ").unwrap();
    let old = text.replace("manifest 2", "manifest 1");
    let bad = summed(old.strip_suffix(&format!("crc {rest}")).unwrap());
    assert!(Manifest::decode(&bad).is_err());
    let (lines, _) = golden.rsplit_once("crc ").unwrap();
    let bad = summed(&lines.replace("manifest 1", "manifest 2"));
    assert!(Manifest::decode(&bad).is_err());
}

#[test]
fn a_manifest_of_a_newer_format_is_refused_by_its_number() {
    let bad = summed("logstead manifest 3\nsomething new\n");
    assert_eq!(Manifest::decode(&bad), Err(ManifestError::Newer(3)));
    let machine = rig::Machine::new(1);
    let server = machine.start(1).unwrap();
    let (_, tag) = server.home.names.get("manifest").unwrap().unwrap();
    server
        .home
        .names
        .compare_and_swap("manifest", tag, &bad)
        .unwrap();
    drop(server);
    let Err(error @ RecoveryError::NewerFormat { .. }) = machine.start(1).map(drop) else {
        panic!("it starts")
    };
    let text = error.to_string();
    assert!(
        text.contains("its format version is 3, and this server knows versions up to 2"),
        "{text}"
    );
    assert!(Manifest::decode(&summed("logstead manifest 0\n")).is_err());
}

/// Where an older server meets a newer one's block, nothing ends there, and no loss can be accepted there.
#[test]
fn a_block_of_a_newer_format_is_refused_by_its_number() {
    const BLOCKS: u64 = 3;
    for (bad, gone) in [(2, None), (0, None), (2, Some(1))] {
        let machine = rig::Machine::new(1);
        let server = machine.start(1).unwrap();
        (1..=BLOCKS).for_each(|csn| assert!(server.commit(0, csn)));
        drop(server);
        let segment = rig::Machine::segment(0, 0);
        machine
            .files
            .tamper(&segment, |file| {
                let block = &mut file[4096 * bad..4096 * bad + HEADER_LEN];
                assert!(Header::decode(block).is_ok());
                block[8] = FORMAT_VERSION as u8 + 1;
                let crc = crc32c::crc32c(&block[..72]);
                block[72..76].copy_from_slice(&crc.to_le_bytes());
                if let Some(gone) = gone {
                    // Lost without proof that it was durable: an end, were it not for what lies behind.
                    file[4096 * gone..4096 * (gone + 1)].fill(0);
                }
            })
            .unwrap();
        for accept_data_loss in [false, true] {
            let options = RecoveryOptions {
                accept_data_loss,
                ..rig::options()
            };
            let Err(error @ RecoveryError::NewerFormat { .. }) =
                machine.start_with(options).map(drop)
            else {
                panic!("it starts")
            };
            let text = error.to_string();
            let versions = format!(
                "lane 0 at segment 0 offset {} is {}, and this server knows versions up to {FORMAT_VERSION}",
                4096 * bad,
                FORMAT_VERSION + 1
            );
            assert!(text.contains(&versions), "{text}");
        }
        let error = inspect::verify("/db", &machine.env).unwrap_err();
        assert!(
            matches!(error, RecoveryError::NewerFormat { .. }),
            "{error}"
        );
        // An earlier life's, which a recycled segment holds, are no more than other stale bytes.
        machine
            .files
            .tamper(&segment, |file| {
                let block = &mut file[4096 * bad..4096 * bad + HEADER_LEN];
                block[12] = 0;
                let crc = crc32c::crc32c(&block[..72]);
                block[72..76].copy_from_slice(&crc.to_le_bytes());
            })
            .unwrap();
        if bad == 0 {
            // The blocks behind it prove that it was durable.
            assert!(matches!(machine.start(1), Err(RecoveryError::Corrupt(_))));
            continue;
        }
        let survivors = machine.start(1).unwrap().survivors;
        assert_eq!(survivors.len(), gone.unwrap_or(bad));
    }
}

/// Each rule of a manifest with a checkpoint, broken.
#[test]
fn a_manifest_whose_checkpoint_does_not_fit_is_damaged() {
    let golden = include_str!("golden/manifest-checkpoint.txt");
    let (lines, _) = golden.rsplit_once("crc ").unwrap();
    assert!(Manifest::decode(&summed(lines)).is_ok());
    for (from, to, what) in [
        ("csn 1200 epoch 2", "csn 1200 epoch 5", "of no epoch"),
        ("csn 1200 epoch 2", "csn 1200 epoch 0", "of no epoch"),
        ("csn 1200 epoch 2", "csn 0 epoch 2", "of no epoch"),
        ("csn 1200 epoch 2", "csn 1201 epoch 2", "do not follow"),
        (
            "csn 1200 epoch 2",
            "csn 1200 epoch 3",
            "order of their epochs",
        ),
        (
            "csn 1200 epoch 2",
            "csn 1200 epoch 4",
            "not those of its epoch",
        ),
        ("start lane 1", "start lane 0", "order of their lanes"),
        ("offset 12288 block 3", "offset 0 block 3", "no place"),
        (
            "offset 12288 block 3",
            "offset 12288 block 21",
            "a span does not begin",
        ),
        (
            "segment 4 offset",
            "segment 5 offset",
            "a span does not begin",
        ),
        ("segment 2 offset 0", "segment 2 offset 4096", "no place"),
        ("-crc 00000000", "-crc 00000001", "no place"),
        ("last-epoch 1", "last-epoch 2", "still needed"),
        ("last-epoch 1", "last-epoch 0", "still needed"),
        ("crc 00c0ffee", "crc 100c0ffee", "too large"),
        ("crc 00c0ffee", "crc c0ffee", "one form"),
    ] {
        let bad = summed(&lines.replacen(from, to, 1));
        let error = Manifest::decode(&bad).expect_err(to).to_string();
        assert!(error.contains(what), "{to}: {error}");
    }
}

#[test]
fn a_flipped_bit_anywhere_in_a_header_or_manifest_is_found() {
    let (header, _) = sample();
    let (bytes, _) = header.encode();
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes;
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(Header::decode(&bad).is_err(), "bit {bit}");
    }
    assert!(Header::decode(&bytes[..HEADER_LEN - 1]).is_err());
    let dump = include_str!("golden/dump.txt");
    let manifest = dump
        .split_inclusive('\n')
        .take_while(|line| line.len() > 1)
        .collect::<String>();
    let newest = include_str!("golden/manifest-checkpoint.txt");
    for manifest in [&manifest, newest] {
        for bit in 0..manifest.len() * 8 {
            let mut bad = manifest.as_bytes().to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&bad).is_err(), "bit {bit}");
        }
    }
}

fn record() -> impl Strategy<Value = (u8, u32, u64, Vec<u8>)> {
    (
        0..3u8,
        any::<u32>(),
        any::<u64>(),
        prop::collection::vec(any::<u8>(), 0..300),
    )
}

fn build((kind, table, rid, bytes): &(u8, u32, u64, Vec<u8>)) -> RowRecord<'_> {
    let (table, rid) = (TableId(*table), Rid(*rid));
    match kind {
        0 => RowRecord::Insert {
            table,
            rid,
            row: bytes,
        },
        1 => RowRecord::Update {
            table,
            rid,
            delta: bytes,
        },
        _ => RowRecord::Delete { table, rid },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_encoded_decodes(
        rows in prop::collection::vec(record(), 0..5),
        csn in 1..u64::MAX,
        floor in any::<u64>(),
        list in prop::collection::vec(any::<u64>(), 0..32),
    ) {
        let mut records = Vec::new();
        rows.iter().for_each(|row| build(row).encode(&mut records));
        let deps = EntryDependencies { floor: Csn(floor), list: list.into_iter().map(Csn).collect() };
        let entry = Entry { csn: Csn(csn), deps, body: EntryBody::Inline(&records) };
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        prop_assert!(bytes.len() <= records.len() + logstead_wal::entry::OVERHEAD_MAX);
        let back: Vec<_> = EntryReader::new(&bytes).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(&back, &[entry]);
        let back: Vec<_> = RecordReader::new(&records).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(back, rows.iter().map(build).collect::<Vec<_>>());
    }

    #[test]
    fn hostile_bytes_give_errors_and_nothing_else(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = bytes;
        // Small numbers reach deeper.
        bytes.iter_mut().step_by(3).for_each(|byte| *byte &= 0x0f);
        let _any_answer = Header::decode(&bytes);
        let _any_answer = Manifest::decode(&bytes);
        for entry in EntryReader::new(&bytes).flatten() {
            if let EntryBody::Inline(records) = entry.body {
                RecordReader::new(records).for_each(drop);
            }
        }
        RecordReader::new(&bytes).for_each(drop);
    }
}
