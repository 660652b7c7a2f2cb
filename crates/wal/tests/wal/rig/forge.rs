//! Writes blocks at a home as lanes write them, without lanes: which of them arrive, and how, is the test's choice.

use super::row_of;
use crc32c::crc32c;
use logstead_env::Buffer;
use logstead_home::{LogHome, RoomRequest};
use logstead_types::{BlockNo, Csn, DatabaseId, Epoch, LaneId};
use logstead_wal::block::{FORMAT_VERSION, Header};
use logstead_wal::recovery::RecoveredLog;
use logstead_wal::{Entry, EntryBody, EntryDependencies, SideRef};

/// What reaches the disk of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrives {
    Whole,
    /// Its place stays zero.
    Absent,
    /// Only the first bytes of it.
    Torn(usize),
}

/// A transaction to be written. Its records are [`row_of`] its CSN.
#[derive(Clone, Debug)]
pub(crate) struct Tx {
    pub(crate) csn: u64,
    pub(crate) deps: EntryDependencies,
    /// Its records are in a side segment.
    pub(crate) side: bool,
}

/// The lanes of one epoch.
pub(crate) struct Forge {
    home: LogHome,
    database: DatabaseId,
    epoch: Epoch,
    lanes: Vec<Lane>,
    sides: u64,
    /// Of the blocks that come next.
    pub(crate) version: u16,
    /// What they record.
    pub(crate) horizon: Csn,
}

#[derive(Clone, Copy, Default)]
struct Lane {
    blocks: u64,
    previous_header_crc: u32,
}

impl Forge {
    /// Instead of the lanes of `log`, which are given up.
    pub(crate) fn new(home: LogHome, log: &RecoveredLog) -> Forge {
        Forge {
            home,
            database: log.database,
            epoch: log.epoch,
            lanes: vec![Lane::default(); log.lanes.len()],
            sides: 0,
            version: FORMAT_VERSION,
            horizon: Csn::ZERO,
        }
    }

    fn side_of(&mut self, lane: u16, records: &[u8]) -> SideRef {
        let lane = LaneId(lane);
        let id = u64::from(self.epoch.get()) << 32 | self.sides;
        self.sides += 1;
        let (done, finished) = std::sync::mpsc::channel();
        let mut writer = self.home.sides.begin_side_segment(lane, id);
        writer.append(records.to_vec());
        writer.finish(Box::new(move |result| done.send(result.is_ok()).unwrap()));
        assert!(finished.recv().unwrap());
        SideRef {
            lane,
            id,
            length: records.len() as u64,
            crc: crc32c(records),
        }
    }

    /// The next block of a lane.
    pub(crate) fn block(&mut self, lane: u16, durable_through: u64, txs: &[Tx], arrives: Arrives) {
        let mut payload = Vec::new();
        for tx in txs {
            let records = row_of(Csn(tx.csn));
            let body = if tx.side {
                EntryBody::Side(self.side_of(lane, &records))
            } else {
                EntryBody::Inline(&records)
            };
            let (csn, deps) = (Csn(tx.csn), tx.deps.clone());
            Entry { csn, deps, body }.encode(&mut payload);
        }
        let state = &mut self.lanes[usize::from(lane)];
        let csns = || txs.iter().map(|tx| Csn(tx.csn));
        let header = Header {
            version: self.version,
            database: self.database,
            epoch: self.epoch,
            lane: LaneId(lane),
            block: BlockNo(state.blocks),
            durable_through,
            payload_len: payload.len() as u32,
            entries: txs.len() as u32,
            csn_lowest: csns().min().unwrap(),
            csn_highest: csns().max().unwrap(),
            payload_crc: crc32c(&payload),
            previous_header_crc: state.previous_header_crc,
            horizon: self.horizon,
        };
        let (bytes, crc) = header.encode();
        *state = Lane {
            blocks: state.blocks + 1,
            previous_header_crc: crc,
        };
        let alignment = self.home.capabilities().block_alignment;
        let bytes = &bytes[..header.header_len()];
        let len = (bytes.len() + payload.len()).next_multiple_of(alignment);
        let mut block = Buffer::zeroed(len);
        let whole = [bytes, &payload].concat();
        let there = match arrives {
            Arrives::Whole => whole.len(),
            Arrives::Absent => 0,
            Arrives::Torn(at) => at.min(whole.len() / 2),
        };
        block.as_mut_slice()[..there].copy_from_slice(&whole[..there]);
        self.home
            .appends
            .ensure_room(LaneId(lane), len as u64, &mut RoomRequest::default())
            .unwrap();
        let at = self.home.appends.place(LaneId(lane), len as u64).unwrap();
        if there > 0 {
            let inline = self.home.inline_appends.as_ref().unwrap();
            inline.append_inline(LaneId(lane), at, &block, len).unwrap();
        }
    }
}
