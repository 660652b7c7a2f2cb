//! Newtypes for every counter and identifier.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($raw:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $raw);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl $name {
            /// The raw number.
            #[inline]
            pub const fn get(self) -> $raw {
                self.0
            }
        }
    };
}

id! {
    /// Commit sequence number: one global counter, one draw per updating transaction, at pre-commit. The first drawn
    /// CSN is 1; 0 means "before everything".
    Csn(u64)
}
id! {
    /// Dependency sequence number: the largest CSN of any version a transaction read or overwrote (Milliscale §4).
    Dsn(u64)
}
id! {
    /// A lane: one append-only stream of the log.
    LaneId(u16)
}
id! {
    /// Number of a block in its lane and epoch, counted from 0.
    BlockNo(u64)
}
id! {
    /// One life of the server on a log; every start with recovery begins the next one. The first is 1.
    Epoch(u32)
}
id! {
    /// Row id: the number of a row's slot in its table.
    Rid(u64)
}
id! {
    /// A table (its storage, not its name). Numbers below 16384 belong to the system catalog.
    TableId(u32)
}
id! {
    /// An index. Shares the number space of tables (PostgreSQL's relation OIDs).
    IndexId(u32)
}
id! {
    /// A worker thread, counted from 0.
    WorkerId(u16)
}
id! {
    /// An instance: a block of workers with memory of their own, counted from 0.
    InstanceId(u16)
}
id! {
    /// A virtual partition: what an instance owns of all divided tables, counted from 0.
    PartitionId(u16)
}
id! {
    /// Random identity of one database directory, written into every block so that foreign bytes are never replayed.
    DatabaseId(u64)
}

impl Csn {
    /// Before every drawn CSN: rows made at bootstrap carry it.
    pub const ZERO: Csn = Csn(0);

    /// The CSN after this one.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Csn {
        Csn(self.0 + 1)
    }
}

impl Dsn {
    /// Raises this DSN to cover a version with `csn`.
    #[inline]
    pub fn cover(&mut self, csn: Csn) {
        if csn.0 > self.0 {
            self.0 = csn.0;
        }
    }
}
