//! One file of a device, and handles to it.
//!
//! Invariant: `len` never exceeds the bytes of `extents`. Extents are only added at the end, and cut off there.

use super::Device;
use super::format::Entry;
use super::space::Extent;
use logstead_env::{Access, Buffer, DIRECT_ALIGNMENT, File, OpenMode, RawFileRange};
use parking_lot::{Mutex, RwLock};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ALIGNMENT: u64 = DIRECT_ALIGNMENT as u64;
/// Most that goes through a buffer of ours at a time.
const BOUNCE_BYTES: usize = 256 << 10;

/// A file.
pub(super) struct Inode {
    state: RwLock<State>,
    /// Held by writes that read, change and write back a block.
    patching: Mutex<()>,
    unnamed: AtomicBool,
}

struct State {
    len: u64,
    extents: Vec<Extent>,
}

impl State {
    fn units(&self) -> u64 {
        self.extents
            .iter()
            .map(|extent| u64::from(extent.units))
            .sum()
    }

    /// Where `offset` is on the device, and how many bytes lie together from there on.
    fn place(&self, device: &Device, offset: u64) -> Option<(u64, u64)> {
        let unit = u64::from(device.superblock.unit);
        let mut before = 0;
        for extent in &self.extents {
            let size = u64::from(extent.units) * unit;
            if offset < before + size {
                let inside = offset - before;
                let at = device.superblock.place(extent.start) + inside;
                return Some((at, size - inside));
            }
            before += size;
        }
        None
    }
}

impl Inode {
    pub(super) fn of(len: u64, extents: Vec<Extent>) -> Inode {
        Inode {
            state: RwLock::new(State { len, extents }),
            patching: Mutex::new(()),
            unnamed: AtomicBool::new(false),
        }
    }

    pub(super) fn entry(&self) -> Entry {
        let state = self.state.read();
        Entry::File {
            len: state.len,
            extents: state.extents.clone(),
        }
    }

    pub(super) fn set_unnamed(&self) {
        self.unnamed.store(true, Ordering::Release);
    }

    pub(super) fn is_unnamed(&self) -> bool {
        self.unnamed.load(Ordering::Acquire)
    }

    pub(super) fn into_extents(self) -> Vec<Extent> {
        self.state.into_inner().extents
    }
}

/// A handle.
pub(super) struct DeviceFile {
    device: Arc<Device>,
    /// `None` only while it is dropped.
    inode: Option<Arc<Inode>>,
    mode: OpenMode,
}

impl DeviceFile {
    pub(super) fn new(device: Arc<Device>, inode: Arc<Inode>, mode: OpenMode) -> DeviceFile {
        DeviceFile {
            device,
            inode: Some(inode),
            mode,
        }
    }

    fn inode(&self) -> io::Result<&Inode> {
        self.inode
            .as_deref()
            .ok_or_else(|| io::Error::other("the file is closed"))
    }

    /// Has units for the file's first `len` bytes.
    fn reach(&self, inode: &Inode, len: u64) -> io::Result<()> {
        let wanted = len.div_ceil(u64::from(self.device.superblock.unit));
        if inode.state.read().units() >= wanted {
            return Ok(());
        }
        let _one_grows = inode.patching.lock();
        let (held, last) = {
            let state = inode.state.read();
            (state.units(), state.extents.last().copied())
        };
        let missing = wanted.saturating_sub(held);
        let missing = u32::try_from(missing).map_err(|_| io::ErrorKind::StorageFull)?;
        if missing == 0 {
            return Ok(());
        }
        // The lock of the contents comes before the file's, always.
        let found = self.device.allocate(missing, last)?;
        let mut contents = self.device.contents.lock();
        let mut state = inode.state.write();
        for extent in found {
            match state.extents.last_mut() {
                Some(last) if last.end() == extent.start => last.units += extent.units,
                _ => state.extents.push(extent),
            }
        }
        contents.changed = true;
        Ok(())
    }

    /// Bytes written up to `end`: the length follows. True if it has changed.
    fn lengthen(&self, inode: &Inode, end: u64) -> bool {
        if inode.state.read().len >= end {
            return false;
        }
        let mut contents = self.device.contents.lock();
        let mut state = inode.state.write();
        let longer = state.len < end;
        if longer {
            state.len = end;
            contents.changed = true;
        }
        longer
    }

    /// Reads whole blocks at an aligned offset into aligned memory, up to the end of what lies together.
    fn read_blocks(&self, inode: &Inode, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let place = inode.state.read().place(&self.device, offset);
        let (at, together) = place.ok_or(io::ErrorKind::UnexpectedEof)?;
        let count = usize::try_from(together)
            .unwrap_or(usize::MAX)
            .min(into.len());
        self.device
            .handle(self.mode)
            .read_full_at(at, &mut into[..count])
    }

    /// Writes whole blocks likewise.
    fn write_blocks(&self, inode: &Inode, offset: u64, from: &[u8]) -> io::Result<usize> {
        let place = inode.state.read().place(&self.device, offset);
        let (at, together) = place.ok_or(io::ErrorKind::UnexpectedEof)?;
        let count = usize::try_from(together)
            .unwrap_or(usize::MAX)
            .min(from.len());
        self.device.handle(self.mode).write_at(at, &from[..count])
    }

    /// Bytes at any offset, through a buffer of ours.
    fn write_patching(&self, inode: &Inode, offset: u64, from: &[u8]) -> io::Result<usize> {
        let count = from.len().min(BOUNCE_BYTES);
        let first = offset - offset % ALIGNMENT;
        let end = offset + count as u64;
        self.reach(inode, end)?;
        let _alone = inode.patching.lock();
        let blocks = (end - first).next_multiple_of(ALIGNMENT);
        let mut buffer = Buffer::zeroed(usize::try_from(blocks).map_err(io::Error::other)?);
        let old_len = inode.state.read().len;
        // What lies behind the end of the file is no part of it.
        let known = old_len.saturating_sub(first).min(blocks);
        let mut done = 0;
        while (done as u64) < known {
            let into = &mut buffer.as_mut_slice()[done..];
            match self.read_blocks(inode, first + done as u64, into)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => done += count,
            }
        }
        let known = usize::try_from(known).map_err(io::Error::other)?;
        buffer.as_mut_slice()[known..].fill(0);
        let skip = usize::try_from(offset - first).map_err(io::Error::other)?;
        buffer.as_mut_slice()[skip..skip + count].copy_from_slice(&from[..count]);
        logstead_env::write_all(true, first, buffer.as_slice(), &mut |at, bytes| {
            self.write_blocks(inode, at, bytes)
        })?;
        Ok(count)
    }

    /// Zeros from the end of the file up to `offset`, where something is about to be written.
    fn fill_gap(&self, inode: &Inode, offset: u64) -> io::Result<()> {
        if inode.state.read().len >= offset {
            return Ok(());
        }
        let zeros = Buffer::zeroed(BOUNCE_BYTES);
        loop {
            let len = inode.state.read().len;
            if len >= offset {
                return Ok(());
            }
            let count = usize::try_from(offset - len)
                .unwrap_or(usize::MAX)
                .min(BOUNCE_BYTES);
            let count = self.write_patching(inode, len, &zeros.as_slice()[..count])?;
            self.lengthen(inode, len + count as u64);
        }
    }
}

fn aligned(offset: u64, len: usize) -> io::Result<()> {
    if offset.is_multiple_of(ALIGNMENT) && len.is_multiple_of(DIRECT_ALIGNMENT) {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "direct I/O off its alignment",
        ))
    }
}

impl File for DeviceFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let inode = self.inode()?;
        let len = inode.state.read().len;
        let there = usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = there.min(into.len());
        if count == 0 {
            return Ok(0);
        }
        if self.mode.direct {
            aligned(offset, into.len())?;
            // Whole blocks are read; only what belongs to the file counts.
            let blocks = count.next_multiple_of(DIRECT_ALIGNMENT).min(into.len());
            let read = self.read_blocks(inode, offset, &mut into[..blocks])?;
            return Ok(read.min(count));
        }
        let first = offset - offset % ALIGNMENT;
        let skip = usize::try_from(offset - first).map_err(io::Error::other)?;
        let blocks = (skip + count).min(BOUNCE_BYTES);
        let mut buffer = Buffer::zeroed(blocks.next_multiple_of(DIRECT_ALIGNMENT));
        let read = self.read_blocks(inode, first, buffer.as_mut_slice())?;
        let count = count.min(read.saturating_sub(skip));
        into[..count].copy_from_slice(&buffer.as_slice()[skip..skip + count]);
        Ok(count)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<usize> {
        let inode = self.inode()?;
        self.device.writable()?;
        if self.mode.access == Access::Read {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let end = offset
            .checked_add(from.len() as u64)
            .ok_or(io::ErrorKind::InvalidInput)?;
        if from.is_empty() {
            return Ok(0);
        }
        self.fill_gap(inode, offset)?;
        let count = if self.mode.direct {
            aligned(offset, from.len())?;
            self.reach(inode, end)?;
            self.write_blocks(inode, offset, from)?
        } else {
            self.write_patching(inode, offset, from)?
        };
        let longer = self.lengthen(inode, offset + count as u64);
        if longer && self.mode.durable_writes {
            self.device.commit_if_changed()?;
        }
        Ok(count)
    }

    /// Bytes first, then the table that says where they are.
    fn sync(&self) -> io::Result<()> {
        self.device.plain.sync()?;
        self.device.commit_if_changed()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.device.plain.sync_data()?;
        self.device.commit_if_changed()
    }

    fn raw(&self, offset: u64, len: usize) -> Option<RawFileRange<'_>> {
        let state = self.inode().ok()?.state.read();
        let end = offset.checked_add(len as u64)?;
        let (at, together) = state.place(&self.device, offset)?;
        if !self.mode.direct || end > state.len || together < len as u64 {
            return None;
        }
        self.device.handle(self.mode).raw(at, len)
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        self.device.writable()?;
        self.reach(self.inode()?, len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.inode()?.state.read().len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let inode = self.inode()?;
        self.device.writable()?;
        self.fill_gap(inode, len)?;
        let mut contents = self.device.contents.lock();
        let mut state = inode.state.write();
        if len < state.len {
            state.len = len;
            contents.changed = true;
            let mut keep = len.div_ceil(u64::from(self.device.superblock.unit));
            let mut cut = Vec::new();
            state.extents.retain_mut(|extent| {
                let kept = u32::try_from(keep).unwrap_or(u32::MAX).min(extent.units);
                keep -= u64::from(kept);
                if kept < extent.units {
                    cut.push(Extent {
                        start: extent.start + kept,
                        units: extent.units - kept,
                    });
                }
                extent.units = kept;
                kept > 0
            });
            self.device.release(cut);
        }
        Ok(())
    }

    fn is_direct(&self) -> bool {
        self.mode.direct
    }

    fn writes_are_durable(&self) -> bool {
        self.mode.durable_writes
    }
}

impl Drop for DeviceFile {
    fn drop(&mut self) {
        if let Some(inode) = self.inode.take() {
            self.device.released_by(inode);
        }
    }
}
