//! A replica's start: the newest checkpoint and the log behind it, read beside the server that writes them.
//!
//! As a start of that server, but nothing is taken at the home and nothing is written there: the follower hands over
//! what is below a horizon, and goes on from there. What a replica commits, which is nothing or
//! what its sessions keep in temporary tables, needs no log; so the lanes and the base of checkpoints that every engine
//! has are those of an empty home in memory, and nothing ever comes into them.

use std::sync::Arc;
use std::time::Duration;

use logstead_env::{Env, core_count};
use logstead_home::{LogHome, MemoryHome};
use logstead_types::Csn;
use logstead_wal::recovery::follow::{FollowError, Follower};
use logstead_wal::recovery::{self, RecoveryError, RedoHandler};
use logstead_wal::{LaneConfig, LogAllocationLimit};

use super::partition::{MemoryShortfall, ReplayPartition, ReplayShared};
use super::{Batch, Replay, THREADS_MAX, THREADS_MIN};
use crate::engine::{Engine, EngineOptions, OpenLog};
use crate::error::{OpenError, ReplicaError};
use crate::memory::Account;
use crate::page_store::{CheckpointBase, ReplicaBase, ReplicaStart};
use crate::stored_checkpoint::StoredCheckpoint;

/// Of the home in memory: nothing is appended there.
const SEGMENT_BYTES: u64 = 1 << 20;
/// The same of its lanes' buffers.
const BUFFER_BYTES: usize = 4 << 10;

/// A replica's engine, what it reads from, who goes on with its log, and the CSN below which it has all of it.
pub(crate) fn open_beside<'h>(
    options: &EngineOptions,
    home: &'h LogHome,
    env: &Env,
) -> Result<(Engine, Arc<ReplicaBase>, Follower<'h>, Csn), ReplicaError> {
    let account = Account::open(options.memory_bytes);
    let memory = account.memory();
    let parts = match options.replay_threads {
        0 => core_count().clamp(THREADS_MIN, THREADS_MAX),
        threads => threads.min(THREADS_MAX),
    };
    let shared = ReplayShared::new(options, memory, false);
    let mut follower = Follower::open(home)?;
    let begin = follower.begin().cloned();
    let (next, record) = std::thread::scope(|scope| {
        let mut replay = Replay {
            scope,
            shared: &shared,
            clock: env.clock.as_ref(),
            parts,
            filling: (0..parts).map(|_| Batch::default()).collect(),
            threads: Vec::new(),
            here: ReplayPartition::new(&shared),
            beyond: MemoryShortfall::default(),
            waited: Duration::ZERO,
            home,
            upgraded_bytes: 0,
        };
        let record = match &begin {
            Some(at) => Some(replay.load(follower.database(), at)?),
            None => None,
        };
        let followed = follower.round(&mut |csn, records| Ok(replay.redo(csn, records)?));
        // Threads that were started end in any case.
        let finished = replay.finish();
        if shared.is_full() {
            return Err(ReplicaError::Open(OpenError::Memory {
                needed_bytes: replay.needed_bytes(),
                budget_bytes: options.memory_bytes,
            }));
        }
        let progress = followed.map_err(|error| match error {
            FollowError::Log(RecoveryError::Apply { csn, source }) => {
                match source.downcast::<RecoveryError>() {
                    Ok(error) => ReplicaError::Log(*error),
                    Err(source) => ReplicaError::Log(RecoveryError::Apply { csn, source }),
                }
            }
            error => error.into(),
        })?;
        finished?;
        Ok((progress.next, record))
    })?;
    let directory = shared.loaded().map(|stored| stored.directory.clone());
    let replica_base = Arc::new(ReplicaBase::new(ReplicaStart {
        home: home.clone(),
        database: follower.database(),
        epoch: follower.manifest().epoch,
        followed: follower.progress().epoch,
        stored: StoredCheckpoint {
            publication: 0,
            csn: begin.as_ref().map_or(Csn::ZERO, |at| at.csn),
            directory: directory.unwrap_or_else(|| {
                logstead_checkpoint::Directory::open(home.objects.clone(), None)
            }),
            tables: None,
        },
        record,
        begin: begin.map(|at| at.object),
        next,
        charge: memory.charge(),
    }));
    let tables = shared.tables.into_inner();
    for table in tables.values() {
        table.rows.follow();
    }
    let own = LogHome::from(MemoryHome::new(SEGMENT_BYTES));
    let lanes = options.commit.lanes(options.workers);
    let log = recovery::RecoveryOptions {
        lanes: u16::try_from(lanes).map_err(|_| OpenError::Options("too many lanes".into()))?,
        lane: LaneConfig {
            buffer_size_bytes: BUFFER_BYTES,
            blocks_in_flight_max: Some(1),
            allocation_limit: Some(Arc::new(LogAllocationLimit::new(
                options.commit.log_allocation_limit_bytes,
            ))),
        },
        accept_data_loss: false,
        lease: options.lease.clone(),
    };
    let mut buffers = memory.charge();
    buffers.force(lanes.saturating_mul(log.lane.buffer_bytes_max(&own.capabilities())));
    let empty = recovery::open(&own, env, &log, &mut |_, _| Ok(()))?;
    let base = CheckpointBase::open(
        own,
        empty.database,
        empty.epoch,
        empty.manifest_writer,
        None,
    )
    .map_err(|error| RecoveryError::Refused(error.into()))?;
    let engine = Engine::with_lanes(
        options,
        OpenLog {
            home: home.clone(),
            base,
            lanes: empty.lanes,
            lease: None,
            next,
            database: follower.database(),
            replica_base: Some(Arc::clone(&replica_base)),
            logged: Arc::default(),
        },
        tables,
        account,
        buffers,
        env,
    );
    let engine = engine.map_err(|error| {
        OpenError::Options(format!(
            "a thread of the commit path does not start: {error}"
        ))
    })?;
    Ok((engine, replica_base, follower, next))
}
