//! The initial population (4.3.3 of the specification).

use std::sync::atomic::Ordering;

use logstead_engine::RowBuilder;

use super::columns::{customer, district, history, item, line, order, stock, warehouse};
use super::inputs::{Constants, last_name};
use super::{DISTRICTS, Tpcc};
use crate::access::TxnError;
use crate::driver::Loader;
use crate::random::Rng;

/// What every customer has paid at first.
pub(super) const PAID: i64 = 1_000;
/// Of ten first orders seven are delivered.
const DELIVERED_TENTHS: u32 = 7;
/// The first delivery date: any value will do.
const LOADED: [u8; 8] = [0; 8];
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// A text of a length between two bounds.
fn text(low: u32, high: u32, rng: &mut Rng) -> Vec<u8> {
    let length = rng.between(low, high);
    (0..length)
        .map(|_| LETTERS[rng.below(LETTERS.len() as u64) as usize])
        .collect()
}

/// Digits.
fn digits(count: usize, rng: &mut Rng) -> Vec<u8> {
    (0..count).map(|_| b'0' + rng.below(10) as u8).collect()
}

/// Data of items and stock: one in ten has ORIGINAL in it.
fn data(rng: &mut Rng) -> Vec<u8> {
    let mut data = text(26, 50, rng);
    if rng.percent(10) {
        let at = rng.below(data.len() as u64 - 8 + 1) as usize;
        data[at..at + 8].copy_from_slice(b"ORIGINAL");
    }
    data
}

/// An address: five columns.
fn push_address(builder: &mut RowBuilder, rng: &mut Rng) {
    builder.push(Some(&text(10, 20, rng)));
    builder.push(Some(&text(10, 20, rng)));
    builder.push(Some(&text(10, 20, rng)));
    builder.push(Some(&text(2, 2, rng)));
    let mut zip = digits(4, rng);
    zip.extend_from_slice(b"11111");
    builder.push(Some(&zip));
}

impl Tpcc {
    /// Orders of a district that are delivered at first.
    pub(super) fn delivered_at_first(&self) -> u32 {
        self.scale.customers * DELIVERED_TENTHS / 10
    }

    pub(super) async fn load_item(
        &self,
        i_id: u32,
        rng: &mut Rng,
        into: &mut Loader,
    ) -> Result<(), TxnError> {
        let mut builder = RowBuilder::new();
        builder.start(1, item::COUNT);
        builder.push(Some(&i_id.to_be_bytes()));
        builder.push(Some(&rng.between(1, 10_000).to_be_bytes()));
        builder.push(Some(&text(14, 24, rng)));
        builder.push(Some(&i64::from(rng.between(100, 10_000)).to_be_bytes()));
        builder.push(Some(&data(rng)));
        into.insert(&self.item.table, builder.finish()).await
    }

    pub(super) async fn load_warehouse(
        &self,
        w_id: u32,
        rng: &mut Rng,
        into: &mut Loader,
    ) -> Result<(), TxnError> {
        let mut builder = RowBuilder::new();
        let id = w_id.to_be_bytes();
        let paid = PAID * i64::from(self.scale.customers);
        builder.start(1, warehouse::COUNT);
        builder.push(Some(&id));
        builder.push(Some(&text(6, 10, rng)));
        push_address(&mut builder, rng);
        builder.push(Some(&i64::from(rng.between(0, 2000)).to_be_bytes()));
        builder.push(Some(&(paid * i64::from(DISTRICTS)).to_be_bytes()));
        into.insert(&self.warehouse.table, builder.finish()).await?;
        for i_id in 1..=self.scale.items {
            builder.start(1, stock::COUNT);
            builder.push(Some(&id));
            builder.push(Some(&i_id.to_be_bytes()));
            builder.push(Some(&i64::from(rng.between(10, 100)).to_be_bytes()));
            for _ in 0..DISTRICTS {
                builder.push(Some(&text(24, 24, rng)));
            }
            for _ in [stock::YTD, stock::ORDERS, stock::REMOTE] {
                builder.push(Some(&0_i64.to_be_bytes()));
            }
            builder.push(Some(&data(rng)));
            into.insert(&self.stock.table, builder.finish()).await?;
        }
        for d_id in 1..=DISTRICTS {
            builder.start(1, district::COUNT);
            builder.push(Some(&id));
            builder.push(Some(&d_id.to_be_bytes()));
            builder.push(Some(&text(6, 10, rng)));
            push_address(&mut builder, rng);
            builder.push(Some(&i64::from(rng.between(0, 2000)).to_be_bytes()));
            builder.push(Some(&paid.to_be_bytes()));
            builder.push(Some(&(self.scale.customers + 1).to_be_bytes()));
            into.insert(&self.district.table, builder.finish()).await?;
            self.load_customers(w_id, d_id, rng, into).await?;
            self.load_orders(w_id, d_id, rng, into).await?;
        }
        Ok(())
    }

    async fn load_customers(
        &self,
        w_id: u32,
        d_id: u32,
        rng: &mut Rng,
        into: &mut Loader,
    ) -> Result<(), TxnError> {
        let mut builder = RowBuilder::new();
        let mut name = Vec::new();
        for c_id in 1..=self.scale.customers {
            name.clear();
            let number = if c_id <= Constants::names(&self.scale) {
                c_id - 1
            } else {
                self.constants.name_to_load(&self.scale, rng)
            };
            last_name(number, &mut name);
            builder.start(1, customer::COUNT);
            for id in [w_id, d_id, c_id] {
                builder.push(Some(&id.to_be_bytes()));
            }
            builder.push(Some(&text(8, 16, rng)));
            builder.push(Some(b"OE"));
            builder.push(Some(&name));
            push_address(&mut builder, rng);
            builder.push(Some(&digits(16, rng)));
            builder.push(Some(&LOADED));
            builder.push(Some(if rng.percent(10) { b"BC" } else { b"GC" }));
            builder.push(Some(&5_000_000_i64.to_be_bytes()));
            builder.push(Some(&i64::from(rng.between(0, 5000)).to_be_bytes()));
            builder.push(Some(&(-PAID).to_be_bytes()));
            builder.push(Some(&PAID.to_be_bytes()));
            builder.push(Some(&1_i64.to_be_bytes()));
            builder.push(Some(&0_i64.to_be_bytes()));
            builder.push(Some(&text(300, 500, rng)));
            into.insert(&self.customer.table, builder.finish()).await?;
            self.build_history(
                &mut builder,
                [c_id, d_id, w_id, d_id, w_id],
                PAID,
                &text(12, 24, rng),
            );
            into.insert(&self.history.table, builder.finish()).await?;
        }
        Ok(())
    }

    /// A row of the history: customer, its district and warehouse, district and warehouse of the payment.
    pub(super) fn build_history(
        &self,
        builder: &mut RowBuilder,
        ids: [u32; 5],
        amount: i64,
        data: &[u8],
    ) {
        let number = self.history_rows.fetch_add(1, Ordering::Relaxed);
        builder.start(1, history::COUNT + 1);
        for id in ids {
            builder.push(Some(&id.to_be_bytes()));
        }
        builder.push(Some(&self.now()));
        builder.push(Some(&amount.to_be_bytes()));
        builder.push(Some(data));
        builder.push(Some(&number.to_be_bytes()));
    }

    async fn load_orders(
        &self,
        w_id: u32,
        d_id: u32,
        rng: &mut Rng,
        into: &mut Loader,
    ) -> Result<(), TxnError> {
        let mut builder = RowBuilder::new();
        // Every customer has one order, in random order.
        let mut customers: Vec<u32> = (1..=self.scale.customers).collect();
        for at in (1..customers.len()).rev() {
            customers.swap(at, rng.below(at as u64 + 1) as usize);
        }
        for (o_id, c_id) in (1..).zip(customers) {
            let is_delivered = o_id <= self.delivered_at_first();
            let lines = rng.between(5, 15);
            builder.start(1, order::COUNT);
            for id in [w_id, d_id, o_id, c_id] {
                builder.push(Some(&id.to_be_bytes()));
            }
            builder.push(Some(&LOADED));
            let carrier = rng.between(1, 10).to_be_bytes();
            builder.push(is_delivered.then_some(&carrier[..]));
            builder.push(Some(&lines.to_be_bytes()));
            builder.push(Some(&[1]));
            into.insert(&self.order.table, builder.finish()).await?;
            for number in 1..=lines {
                let amount = if is_delivered {
                    0
                } else {
                    i64::from(rng.between(1, 999_999))
                };
                builder.start(1, line::COUNT);
                for id in [
                    w_id,
                    d_id,
                    o_id,
                    number,
                    rng.between(1, self.scale.items),
                    w_id,
                ] {
                    builder.push(Some(&id.to_be_bytes()));
                }
                builder.push(is_delivered.then_some(&LOADED[..]));
                builder.push(Some(&5_i64.to_be_bytes()));
                builder.push(Some(&amount.to_be_bytes()));
                builder.push(Some(&text(24, 24, rng)));
                into.insert(&self.line.table, builder.finish()).await?;
            }
            if !is_delivered {
                builder.start(1, 3);
                for id in [w_id, d_id, o_id] {
                    builder.push(Some(&id.to_be_bytes()));
                }
                into.insert(&self.new_order.table, builder.finish()).await?;
            }
        }
        Ok(())
    }
}
