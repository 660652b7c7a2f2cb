//! Checking a home's checkpoints offline: every record, node and page, every checksum and reference, and the counts
//! that go by them.
//!
//! Goes on behind damage: everything that can be read is checked, and everything that cannot is named.
//!
//! Does not: read the log (`log verify` does), look into rows and entries (crate `logstead` compares them), or repair
//! anything.

use crate::directory::{Directory, LiveChanges};
use crate::error::CheckpointError;
use crate::error::PinsError;
use crate::fork::Fork;
use crate::frame::KEY_BYTES_MAX;
use crate::index_tile::Leaf;
use crate::node::Entries;
use crate::node_cache::{DirectoryRoot, NodeCache};
use crate::page_ref::{KeyBytes, PageChain, PageKey, PageRef};
use crate::pins::{BranchState, PinKind, Pins};
use crate::read::PageReader;
use crate::record::{CheckpointRecord, ObjectUse};
use logstead_home::{HomeError, LogHome, ObjectId};
use logstead_types::{DatabaseId, IndexId, TableId};
use logstead_wal::manifest::CheckpointRef;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// Findings that are told one by one; the rest is counted.
const FINDINGS_MAX: usize = 1_000;

/// What [`fsck`] has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FsckReport {
    /// Checkpoints checked: the newest one, and older ones that are kept.
    pub records: u64,
    /// Nodes of directories.
    pub nodes: u64,
    /// Chunks.
    pub chunks: u64,
    /// Indexes of the newest checkpoint.
    pub indexes: u64,
    /// Tiles of indexes.
    pub tiles: u64,
    /// Entries of the newest checkpoint's indexes.
    pub entries: u64,
    /// Pages.
    pub pages: u64,
    /// Rows of the newest checkpoint.
    pub rows: u64,
    /// Bytes of everything checked.
    pub bytes: u64,
    /// Objects that a checkpoint names.
    pub objects: u64,
    /// Objects that none names: what a crash has left, or a checkpoint under way. They are removed by servers.
    pub unneeded_objects: u64,
    /// Their bytes.
    pub unneeded_bytes: u64,
    /// What is wrong, the first thousand.
    pub damage: Vec<String>,
    /// How much is wrong.
    pub damages: u64,
}

impl FsckReport {
    /// Is everything as it should be?
    pub fn is_clean(&self) -> bool {
        self.damages == 0
    }
}

impl fmt::Display for FsckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} checkpoints, {} directory nodes, {} chunks with {} rows, {} indexes in {} tiles with {} entries, {} pages, {} bytes in {} objects; {} objects with {} bytes not needed; {} damages",
            self.records,
            self.nodes,
            self.chunks,
            self.rows,
            self.indexes,
            self.tiles,
            self.entries,
            self.pages,
            self.bytes,
            self.objects,
            self.unneeded_objects,
            self.unneeded_bytes,
            self.damages
        )
    }
}

/// Checks the checkpoint that the manifest names, and all that its record keeps. An error is one of the home's: damage
/// is in the report.
pub fn fsck(
    home: &LogHome,
    database: DatabaseId,
    newest: Option<&CheckpointRef>,
) -> Result<FsckReport, HomeError> {
    let listed = home.objects.list_objects()?;
    let mut check = Check {
        sizes: listed
            .iter()
            .map(|info| (info.id, info.size_bytes))
            .collect(),
        home,
        nodes: NodeCache::new(home.objects.clone(), 0),
        reader: PageReader::new(home.objects.clone()),
        seen: HashSet::new(),
        highs: HashMap::new(),
        leaf: Leaf::default(),
        named: BTreeSet::new(),
        report: FsckReport::default(),
    };
    let mut had_pins = false;
    if let Some(CheckpointRef {
        object,
        crc,
        csn,
        epoch,
        starts,
    }) = newest
    {
        check.named.insert(*object);
        let record = check.record(database, *object, *crc)?;
        had_pins = record.as_ref().is_some_and(|record| record.has_pins);
        for kept in record.iter().flat_map(|record| &record.kept) {
            check.named.insert(kept.object);
            if let Some(older) = check.record(database, kept.object, kept.crc)?
                && (older.csn, older.taken_at_micros) != (kept.csn, kept.taken_at_micros)
            {
                check.wrong(format!(
                    "checkpoint record {}: not the one that is kept",
                    kept.object
                ));
            }
        }
        if let Some(record) = record
            && (record.csn, record.epoch, &record.starts) != (*csn, *epoch, starts)
        {
            check.wrong(format!(
                "checkpoint record {object}: does not say what the manifest says of it"
            ));
        }
    }
    match Pins::read_of(home.names.as_ref(), had_pins) {
        Ok((pins, _)) => {
            for pin in pins.iter() {
                let in_making = matches!(
                    pin.kind,
                    PinKind::Branch {
                        state: BranchState::Making,
                        ..
                    }
                );
                // Whoever makes that branch looks whether its record is still there.
                if in_making {
                    continue;
                }
                if check.named.insert(pin.record.object) {
                    check.record(database, pin.record.object, pin.record.crc)?;
                }
            }
        }
        Err(PinsError::Home(error)) => return Err(error),
        Err(error) => check.wrong(error.to_string()),
    }
    let Check {
        mut report, named, ..
    } = check;
    report.objects = named.len() as u64;
    for info in listed.iter().filter(|info| !named.contains(&info.id)) {
        report.unneeded_objects += 1;
        report.unneeded_bytes += info.size_bytes;
    }
    Ok(report)
}

struct Check<'a> {
    home: &'a LogHome,
    nodes: NodeCache,
    reader: PageReader,
    sizes: BTreeMap<ObjectId, u64>,
    /// Last pages of chains that were checked with another record: their chunks need not be read again.
    seen: HashSet<(PageRef, PageRef, usize)>,
    /// Where the tiles that were checked end, by their first page: for the older records, if any are kept.
    highs: HashMap<PageRef, Option<Vec<u8>>>,
    leaf: Leaf,
    named: BTreeSet<ObjectId>,
    report: FsckReport,
}

/// What is known of the record that is being walked.
struct Walk<'a> {
    record: &'a CheckpointRecord,
    rid_ends: BTreeMap<TableId, u64>,
    is_newest: bool,
    live: LiveChanges,
    /// A node could not be read, so the counts are too small.
    is_cut: bool,
    /// The index whose tiles are being walked, and where the next one must begin, as far as that is known.
    index: Option<(TableId, IndexId)>,
    next: Next,
    indexes_met: BTreeSet<(TableId, IndexId)>,
    /// What lies over the tree that is being walked: what it speaks of is not as the tree has it.
    fork: Option<Arc<Fork>>,
}

impl Walk<'_> {
    /// Do some tiles of the index lie over the tree? Then those in the tree are not all that there are, and their order
    /// tells nothing.
    fn is_partly_over(&self, (table, index): (TableId, IndexId)) -> bool {
        let low = Vec::new();
        let prefix = PageKey::Leaf { table, index, low }.encode();
        let fork = self.fork.as_ref();
        fork.is_some_and(|fork| fork.has_prefix(&prefix))
    }
}

/// Where a tile must begin.
#[derive(Default)]
enum Next {
    At(Vec<u8>),
    /// There must be no more of them.
    End,
    /// The one before could not be read.
    #[default]
    Unknown,
    /// Some before it cannot be found.
    Lost,
}

impl Check<'_> {
    fn wrong(&mut self, what: String) {
        self.report.damages += 1;
        if self.report.damage.len() < FINDINGS_MAX {
            self.report.damage.push(what);
        }
    }

    /// Damage goes to the report, trouble with the home to the caller.
    fn sort<T>(
        &mut self,
        result: Result<T, CheckpointError>,
        then: &str,
    ) -> Result<Option<T>, HomeError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(CheckpointError::Home(error)) => Err(error),
            Err(error) => {
                self.wrong(format!("{error}{then}"));
                Ok(None)
            }
        }
    }

    fn record(
        &mut self,
        database: DatabaseId,
        object: ObjectId,
        crc: u32,
    ) -> Result<Option<CheckpointRecord>, HomeError> {
        let read = CheckpointRecord::read(self.home.objects.as_ref(), database, object, crc);
        let Some(record) = self.sort(read, "; its checkpoint is lost")? else {
            return Ok(None);
        };
        self.report.bytes += self.sizes.get(&object).copied().unwrap_or(0);
        for used in &record.objects {
            self.named.insert(used.object);
            match self.sizes.get(&used.object) {
                Some(size) if *size == used.size_bytes => {}
                Some(size) => {
                    let (object, expected) = (used.object, used.size_bytes);
                    self.wrong(format!(
                        "object {object}: {size} bytes long, not {expected}"
                    ));
                }
                None if self.home.inherits(used.object) => self.inherited(used)?,
                None => self.wrong(format!("object {}: missing", used.object)),
            }
        }
        let mut walk = Walk {
            rid_ends: record
                .tables
                .iter()
                .map(|info| (info.table, info.rid_end))
                .collect(),
            is_newest: self.report.records == 0,
            record: &record,
            live: LiveChanges::new(),
            is_cut: false,
            index: None,
            next: Next::Unknown,
            indexes_met: BTreeSet::new(),
            fork: None,
        };
        self.report.records += 1;
        if let Some(root) = &record.root {
            self.root(&mut walk, root)?;
        }
        self.end_of_index(&mut walk);
        if walk.is_newest {
            self.report.indexes = walk.indexes_met.len() as u64;
        }
        if !walk.is_cut {
            for info in &record.indexes {
                if !walk.indexes_met.contains(&(info.table, info.index)) {
                    let (table, index) = (info.table, info.index);
                    self.wrong(format!(
                        "table {table} index {index}: the record of CSN {} names it, its directory leads to none of it",
                        record.csn
                    ));
                }
            }
            let counted: LiveChanges = record
                .objects
                .iter()
                .map(|used| (used.object, used.live_bytes as i64))
                .collect();
            for object in counted
                .keys()
                .chain(walk.live.keys())
                .copied()
                .collect::<BTreeSet<_>>()
            {
                let says = counted.get(&object).copied().unwrap_or(0);
                let has = walk.live.get(&object).copied().unwrap_or(0);
                if says != has {
                    self.wrong(format!(
                        "object {object}: the record of CSN {} counts {says} live bytes, its directory leads to {has}",
                        record.csn
                    ));
                }
            }
        }
        Ok(Some(record))
    }

    /// Another home has it: it is not listed here.
    fn inherited(&mut self, used: &ObjectUse) -> Result<(), HomeError> {
        let last = used.size_bytes.saturating_sub(1);
        match self
            .home
            .objects
            .read_object(used.object, last, &mut [0, 0])
        {
            Ok(1) => {}
            Ok(_) => self.wrong(format!(
                "object {} of the branch's parent: not {} bytes long",
                used.object, used.size_bytes
            )),
            Err(HomeError::Missing(_)) => self.wrong(format!(
                "object {} of the branch's parent: missing",
                used.object
            )),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The root: a node, or what lies over one ([`crate::fork`]).
    fn root(&mut self, walk: &mut Walk<'_>, at: &PageRef) -> Result<(), HomeError> {
        let read = self.nodes.root(at);
        let fork = match self.sort(read, &lost(None, None))? {
            Some(DirectoryRoot::Node) => return self.node(walk, at, None, None),
            Some(DirectoryRoot::Fork(fork)) => fork,
            None => {
                walk.is_cut = true;
                walk.next = Next::Lost;
                return Ok(());
            }
        };
        *walk.live.entry(at.object).or_default() += i64::from(at.len);
        self.report.nodes += 1;
        self.report.bytes += u64::from(at.len);
        walk.fork = Some(Arc::clone(&fork));
        self.root(walk, &fork.under)?;
        let directory = Directory::with_cache(self.home.objects.clone(), Some(*at), 0);
        for (key, above) in &fork.over {
            for page in above.iter().flat_map(PageChain::pages) {
                if !page.is_special() {
                    *walk.live.entry(page.object).or_default() += i64::from(page.len);
                }
            }
            let Ok(key) = PageKey::decode(key) else {
                self.wrong(format!("a key over the page directory in {at}: unknown"));
                continue;
            };
            let chain = self.sort(directory.get(&key), "")?.flatten();
            match (&key, chain) {
                (PageKey::Rows { table, chunk }, Some(chain)) => {
                    self.chunk(walk, &key, (*table, *chunk), &chain)?;
                }
                (PageKey::Leaf { table, index, .. }, Some(chain)) => {
                    walk.indexes_met.insert((*table, *index));
                    let read = self.reader.leaf(&key, &chain, &mut self.leaf);
                    self.sort(read, "")?;
                }
                (_, None) => {}
            }
        }
        Ok(())
    }

    fn node(
        &mut self,
        walk: &mut Walk<'_>,
        at: &PageRef,
        expected: Option<(u8, &[u8])>,
        end: Option<&KeyBytes>,
    ) -> Result<(), HomeError> {
        *walk.live.entry(at.object).or_default() += i64::from(at.len);
        let read = self.nodes.read(at, expected);
        let Some(node) = self.sort(read, &lost(expected, end))? else {
            walk.is_cut = true;
            walk.next = Next::Lost;
            return Ok(());
        };
        self.report.nodes += 1;
        self.report.bytes += u64::from(at.len);
        match node.entries {
            Entries::Inner(children) => {
                self.last_key(at, children.last().map(|(key, _)| key), end);
                for (index, (first, child)) in children.iter().enumerate() {
                    let end = children.get(index + 1).map(|(next, _)| next).or(end);
                    self.node(walk, child, Some((node.level - 1, first)), end)?;
                }
            }
            Entries::Leaf(entries) => {
                self.last_key(at, entries.last().map(|(key, _)| key), end);
                for (key, chain) in &entries {
                    for page in chain.pages() {
                        *walk.live.entry(page.object).or_default() += i64::from(page.len);
                    }
                    let fork = walk.fork.as_ref();
                    if fork.is_some_and(|fork| fork.get(key).is_some()) {
                        continue;
                    }
                    match PageKey::decode(key) {
                        Ok(key @ PageKey::Rows { table, chunk }) => {
                            self.chunk(walk, &key, (table, chunk), chain)?;
                        }
                        Ok(key @ PageKey::Leaf { table, index, .. }) => {
                            self.tile(walk, &key, (table, index), chain)?;
                        }
                        Err(why) => self.wrong(format!(
                            "a key in a leaf of the page directory in {at}: {why}"
                        )),
                    }
                }
            }
        }
        Ok(())
    }

    /// Every key of a node is below the next node's first.
    fn last_key(&mut self, at: &PageRef, last: Option<&KeyBytes>, end: Option<&KeyBytes>) {
        if end.zip(last).is_some_and(|(end, last)| last >= end) {
            self.wrong(format!(
                "a node of the page directory in {at}: reaches into its neighbour"
            ));
        }
    }

    fn chunk(
        &mut self,
        walk: &Walk<'_>,
        key: &PageKey,
        (table, chunk): (TableId, u64),
        chain: &PageChain,
    ) -> Result<(), HomeError> {
        let last = chain.pages().next_back().copied().unwrap_or(chain.base());
        if !self
            .seen
            .insert((chain.base(), last, chain.pages().count()))
        {
            return Ok(());
        }
        let rid_end = walk.rid_ends.get(&table).copied();
        let size = walk.record.chunk_size;
        let (mut rows, mut beyond, mut newer) = (0, 0, 0);
        let none = |_| false;
        let read = self.reader.rows_of(size, key, chain, none, |slot, csn, _| {
            let rid = chunk
                .saturating_mul(u64::from(size.slots()))
                .saturating_add(u64::from(slot));
            rows += 1;
            beyond += u64::from(rid_end.is_none_or(|end| rid >= end));
            newer += u64::from(csn >= walk.record.csn);
        });
        self.report.chunks += 1;
        if self.sort(read, "")?.is_none() {
            return Ok(());
        }
        self.report.pages += chain.pages().count() as u64;
        self.report.bytes += chain.len_bytes();
        if walk.is_newest {
            self.report.rows += rows;
        }
        if beyond > 0 {
            self.wrong(match rid_end {
                Some(end) => format!("{key}: {beyond} rows behind the table's end, row id {end}"),
                None => format!("{key}: rows of a table that the record does not name"),
            });
        }
        if newer > 0 {
            self.wrong(format!(
                "{key}: {newer} rows that are newer than the checkpoint"
            ));
        }
        Ok(())
    }

    /// There are no more tiles of the index that was being walked.
    fn end_of_index(&mut self, walk: &mut Walk<'_>) {
        let ended = walk.index.take();
        if let (Some((table, index)), Next::At(_)) = (ended, std::mem::take(&mut walk.next)) {
            self.wrong(format!(
                "table {table} index {index}: its last tiles are missing"
            ));
        }
    }

    /// A tile begins where the one before ends.
    fn tile(
        &mut self,
        walk: &mut Walk<'_>,
        key: &PageKey,
        of: (TableId, IndexId),
        chain: &PageChain,
    ) -> Result<(), HomeError> {
        if walk.index != Some(of) {
            let first = match walk.next {
                Next::Lost => Next::Lost,
                _ if walk.is_partly_over(of) => Next::Unknown,
                _ => Next::At(Vec::new()),
            };
            self.end_of_index(walk);
            walk.index = Some(of);
            walk.indexes_met.insert(of);
            walk.next = first;
            if walk.record.index(of.0, of.1).is_none() {
                self.wrong(format!(
                    "{key}: tiles of an index that the record does not name"
                ));
            }
        }
        let PageKey::Leaf { low, .. } = key else {
            return Ok(());
        };
        match &walk.next {
            Next::At(next) if next == low => {}
            Next::Unknown | Next::Lost => {}
            Next::At(_) | Next::End => {
                self.wrong(format!("{key}: does not begin where the tile before ends"));
            }
        }
        let last = chain.pages().next_back().copied().unwrap_or(chain.base());
        let seen = !self
            .seen
            .insert((chain.base(), last, chain.pages().count()));
        let high = match self.highs.get(&chain.base()) {
            Some(high) if seen => Some(high.clone()),
            _ => {
                let read = self.reader.leaf(key, chain, &mut self.leaf);
                let read = self.sort(read, "")?.is_some();
                read.then(|| self.leaf.high().map(<[u8]>::to_vec))
            }
        };
        if !seen {
            self.report.tiles += 1;
            if let Some(high) = &high {
                self.report.pages += chain.pages().count() as u64;
                self.report.bytes += chain.len_bytes();
                if walk.is_newest {
                    self.report.entries += self.leaf.len() as u64;
                }
                if walk.is_newest && !walk.record.kept.is_empty() {
                    self.highs.insert(chain.base(), high.clone());
                }
            }
        }
        walk.next = match high {
            _ if walk.is_partly_over(of) => Next::Unknown,
            None => Next::Unknown,
            Some(None) => Next::End,
            Some(Some(high)) => Next::At(high),
        };
        Ok(())
    }
}

/// What cannot be found any more without a node.
fn lost(expected: Option<(u8, &[u8])>, end: Option<&KeyBytes>) -> String {
    let name = |key: &[u8]| match PageKey::decode(key) {
        Ok(key) => key.to_string(),
        Err(_) => format!("key {:02x?}", &key[..key.len().min(KEY_BYTES_MAX)]),
    };
    let from = expected.map_or_else(|| "the first page".to_owned(), |(_, first)| name(first));
    match end {
        Some(end) => format!(
            "; pages from {from} to before {} cannot be found",
            name(end)
        ),
        None => format!("; pages from {from} on cannot be found"),
    }
}
