//! TPC-C on some workers and YCSB on the others, on one engine: what small transactions suffer from large ones.
//!
//! The two share no table, so every wait of a YCSB transaction that comes from TPC-C is the commit path's.

use logstead_engine::{Csn, Txn};

use crate::access::TxnError;
use crate::driver::{ConsistencyCheck, Loader, TransactionEnd, WorkShare, Workload};
use crate::random::Rng;
use crate::tpcc::{self, Tpcc};
use crate::ycsb::{self, Ycsb};

/// See the module's documentation.
pub(crate) struct Mixed {
    /// The first workers run TPC-C.
    tpcc_workers: usize,
    tpcc: Tpcc,
    ycsb: Ycsb,
}

pub(crate) enum Client {
    Tpcc(Box<tpcc::Client>),
    Ycsb(Box<ycsb::Client>),
}

/// Where YCSB's kinds begin.
const YCSB_KIND: usize = Tpcc::KINDS.len();

impl Mixed {
    pub(crate) fn new(tpcc_workers: usize, tpcc: Tpcc, ycsb: Ycsb) -> Mixed {
        Mixed {
            tpcc_workers,
            tpcc,
            ycsb,
        }
    }
}

impl Workload for Mixed {
    type Client = Client;

    const KINDS: &'static [&'static str] = &[
        "new order",
        "payment",
        "order status",
        "delivery",
        "stock level",
        "ycsb read only",
        "ycsb with updates",
    ];

    async fn load(&self, seat: WorkShare, mut rng: Rng, into: &mut Loader) -> Result<(), TxnError> {
        let ycsb_rng = Rng::of_part(rng.bits(), 0);
        self.tpcc.load(seat, rng, into).await?;
        self.ycsb.load(seat, ycsb_rng, into).await
    }

    fn client(&self, seat: WorkShare, rng: Rng) -> Client {
        if seat.worker < self.tpcc_workers {
            let seat = WorkShare {
                workers: self.tpcc_workers,
                ..seat
            };
            Client::Tpcc(Box::new(self.tpcc.client(seat, rng)))
        } else {
            let seat = WorkShare {
                worker: seat.worker - self.tpcc_workers,
                workers: seat.workers - self.tpcc_workers,
                ..seat
            };
            Client::Ycsb(Box::new(self.ycsb.client(seat, rng)))
        }
    }

    fn draw(&self, client: &mut Client) -> usize {
        match client {
            Client::Tpcc(client) => self.tpcc.draw(client),
            Client::Ycsb(client) => YCSB_KIND + self.ycsb.draw(client),
        }
    }

    async fn execute(
        &self,
        client: &mut Client,
        txn: &mut Txn,
    ) -> Result<TransactionEnd, TxnError> {
        match client {
            Client::Tpcc(client) => self.tpcc.execute(client, txn).await,
            Client::Ycsb(client) => self.ycsb.execute(client, txn).await,
        }
    }

    fn committed(&self, client: &mut Client, csn: Option<Csn>) {
        match client {
            Client::Tpcc(client) => self.tpcc.committed(client, csn),
            Client::Ycsb(client) => self.ycsb.committed(client, csn),
        }
    }

    fn check(&self, txn: &mut Txn) -> Vec<ConsistencyCheck> {
        let mut checks = self.tpcc.check(txn);
        checks.extend(self.ycsb.check(txn));
        checks
    }
}

const _: () = assert!(Mixed::KINDS.len() == YCSB_KIND + Ycsb::KINDS.len());
