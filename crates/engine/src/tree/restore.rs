//! A tree from where its leaves begin: inner pages, and all leaves absent.
//!
//! Pages are filled from left to right, on all levels at once; each is closed when it is full, and takes its place in the one
//! above. A tree of a single leaf has a root above it, for a leaf that is the root is never absent; it makes way when the
//! leaf is loaded.

use super::cell::{Pin, Taken};
use super::edit::{Image, boxed, fresh};
use super::page::{HEAP_END, LINKS_MAX, Page};
use super::{Relaxed, Tree};
use crate::memory::Memory;

/// Left free in each page, for splits.
const SPARE_BYTES: usize = HEAP_END / 8;
const SPARE_LINKS: usize = LINKS_MAX / 8;

/// What is wrong with the places where leaves are said to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotLeaves {
    /// There are none, or the first one does not begin with the tree.
    Start,
    /// One is not above the one before it.
    Order,
}

/// A page that is being filled.
#[derive(Default)]
struct Open {
    /// Where it begins; empty: with the tree.
    low: Vec<u8>,
    separators: Image,
    links: Vec<Option<Taken<Page>>>,
}

/// Pages that are being filled, by level from 1 on.
struct Builder {
    tree: Tree,
    open: Vec<Open>,
    pin: Pin,
}

impl Builder {
    /// Adds a child of a page of level `at + 1`.
    fn add(&mut self, at: usize, low: &[u8], child: Option<Taken<Page>>) {
        if at == self.open.len() {
            self.open.push(Open::default());
        }
        let open = &mut self.open[at];
        if !open.links.is_empty() {
            let separators = &mut open.separators;
            separators.insert(separators.len(), low, &self.tree.usage);
            let count = separators.len();
            if count + SPARE_LINKS < LINKS_MAX && separators.fits(0..count, SPARE_BYTES) {
                open.links.push(child);
                return;
            }
            separators.remove(count - 1);
            self.close(at, Some(low));
        }
        let open = &mut self.open[at];
        open.low = low.to_vec();
        open.links.push(child);
    }

    /// Makes a page of what is open at a level and puts it into the one above.
    fn close(&mut self, at: usize, high: Option<&[u8]>) {
        let (low, page) = self.page(at, high);
        self.add(at + 1, &low, Some(page));
    }

    fn page(&mut self, at: usize, high: Option<&[u8]>) -> (Vec<u8>, Taken<Page>) {
        let open = std::mem::take(&mut self.open[at]);
        let level = at as u8 + 1;
        let page = fresh(level, &self.tree.usage);
        self.tree.count_pages(level).fetch_add(1, Relaxed);
        if let Ok(mut page) = page.lock_now() {
            let low = Some(&open.low[..]).filter(|low| !low.is_empty());
            let all = 0..open.separators.len();
            let usage = &self.tree.usage;
            page.rebuild(&open.separators, all, low, high, usage, &self.pin);
            page.put_links(open.links, &self.pin);
        }
        (open.low, boxed(page))
    }
}

impl Tree {
    /// A tree whose leaves begin at `lows` and are all absent, as published. The first one begins with the tree: it is empty.
    pub(crate) fn restore<E: From<NotLeaves>>(
        memory: &'static Memory,
        lows: impl IntoIterator<Item = Result<Vec<u8>, E>>,
    ) -> Result<Tree, E> {
        let mut builder = Builder {
            tree: Tree::bare(memory),
            open: Vec::new(),
            pin: Pin::new(),
        };
        let mut last: Option<Vec<u8>> = None;
        let mut leaves = 0;
        for low in lows {
            let low = low?;
            match &last {
                None if !low.is_empty() => return Err(NotLeaves::Start.into()),
                Some(last) if *last >= low => return Err(NotLeaves::Order.into()),
                _ => {}
            }
            builder.add(0, &low, None);
            leaves += 1;
            last = Some(low);
        }
        if last.is_none() {
            return Err(NotLeaves::Start.into());
        }
        let mut at = 0;
        // The top is the first level with a single page.
        while at + 1 < builder.open.len() {
            builder.close(at, None);
            at += 1;
        }
        let (_, root) = builder.page(at, None);
        let Builder { mut tree, pin, .. } = builder;
        tree.root.put(root, &pin);
        *tree.absent_leaves.get_mut() = leaves;
        *tree.walks.get_mut() = LOADED;
        *tree.published.get_mut() = LOADED;
        Ok(tree)
    }
}

/// The checkpoint that a tree is restored from counts as its first walk.
const LOADED: u32 = 1;
