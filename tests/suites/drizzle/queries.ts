// Queries through Drizzle, one named test each; results go to $SUITE_RESULTS. Works on the migrated second version of the schema.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { and, asc, avg, count, desc, eq, exists, gt, ilike, inArray, isNull, like, max, not, notInArray, or, relations, sql, sum } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { alias, union, unionAll, except, intersect } from 'drizzle-orm/pg-core';
import { Pool } from 'pg';
import * as tables from './schema2';

const { customer, product, order, line, openOrders } = tables;
const customerRelations = relations(customer, ({ many }) => ({ orders: many(order) }));
const orderRelations = relations(order, ({ one, many }) => ({
  customer: one(customer, { fields: [order.customerId], references: [customer.id] }),
  lines: many(line),
}));
const lineRelations = relations(line, ({ one }) => ({
  order: one(order, { fields: [line.orderId], references: [order.id] }),
  product: one(product, { fields: [line.productId], references: [product.id] }),
}));

const pool = new Pool({ connectionString: process.env.SUITE_URL });
const db = drizzle(pool, { schema: { ...tables, customerRelations, orderRelations, lineRelations } });

function causeOf(error: any): string {
  const cause = error?.cause ?? error;
  return `${cause?.code ?? ''} ${cause?.message ?? cause}\n${error?.message ?? ''}\n${error?.stack ?? ''}`;
}
async function test(name: string, body: () => Promise<void>) {
  let status = 'pass', detail = '';
  try { await body(); } catch (error) { status = 'fail'; detail = causeOf(error); }
  fs.appendFileSync(process.env.SUITE_RESULTS!, JSON.stringify({ name: `query ${name}`, status, detail }) + '\n');
}
async function fails(code: string, work: PromiseLike<unknown>, constraint?: string) {
  try { await work; } catch (error: any) {
    const cause = error.cause ?? error;
    assert.equal(cause.code, code);
    if (constraint) assert.equal(cause.constraint, constraint);
    return;
  }
  assert.fail(`no error ${code}`);
}

async function main() {
  await test('insert returning', async () => {
    const rows = await db.insert(customer).values([
      { name: 'Ada', email: 'ada@example.org', tags: ['a', 'b'], settings: { theme: 'dark', n: 1 } },
      { name: 'Bob', email: 'bob@example.org' },
      { name: 'Cyd', email: 'cyd@example.org', active: true, phone: '1' },
    ]).returning();
    assert.deepEqual(rows.map((row) => row.id), [1, 2, 3]);
    assert.deepEqual(rows[0].tags, ['a', 'b']);
    assert.deepEqual(rows[1].settings, { theme: 'light' });
    assert.equal(rows[1].active, false);
    assert.match(rows[0].code, /^[0-9a-f-]{36}$/);
    assert.ok(rows[0].since instanceof Date);
  });
  await test('identity and generated columns', async () => {
    const rows = await db.insert(product).values([
      { name: 'pen', price: '1.50', sku: 'P1', stock: 10 }, { name: 'ink', price: '10.00', rating: 4.5 }, { name: 'pad', price: '3.33' },
    ]).returning();
    assert.deepEqual(rows.map((row) => [row.id, row.gross, row.sku]), [[100, '1.79', 'P1      '], [101, '11.90', null], [102, '3.96', null]]);
  });
  await test('insert into a quoted table, all types', async () => {
    const [row] = await db.insert(order).values({
      customerId: 1, due: '2026-02-28', at: '12:34:56', grace: '1 day 02:00:00', total: 9007199254740993n, extra: { b: 1, a: [null] }, placed: new Date(Date.UTC(2026, 0, 2, 3, 4, 5)),
    }).returning();
    assert.deepEqual([row.id, row.status, row.due, row.at, row.grace, row.total, JSON.stringify(row.extra), row.placed.toISOString()],
      [1, 'new', '2026-02-28', '12:34:56', '1 day 02:00:00', 9007199254740993n, '{"b":1,"a":[null]}', '2026-01-02T03:04:05.000Z']);
    await db.insert(order).values([{ customerId: 1, status: 'sent' }, { customerId: 2, status: 'packed' }]);
    await db.insert(line).values([{ orderId: 1, productId: 100, quantity: 3 }, { orderId: 1, productId: 101 }, { orderId: 3, productId: 102, quantity: 7 }]);
  });
  await test('errors of constraints', async () => {
    await fails('23505', db.insert(customer).values({ name: 'Eve', email: 'ada@example.org' }), 'customer_email_unique');
    await fails('23505', db.insert(customer).values({ name: 'Eve', email: 'ADA@example.org' }), 'customer_lower_email');
    await fails('23514', db.insert(product).values({ name: 'bad', price: '-1' }), 'price_positive');
    await fails('23505', db.insert(product).values({ name: 'ink', price: '1' }), 'product_name_sku');
    await fails('23503', db.insert(line).values({ orderId: 99, productId: 100 }), 'line_of_order');
    await fails('23503', db.delete(product).where(eq(product.id, 100)), 'order_line_product_id_product_id_fk');
    await fails('22P02', db.execute(sql`insert into "order" (customer_id, status) values (1, 'lost')`));
  });
  await test('upsert', async () => {
    const rows = await db.insert(customer).values({ name: 'Ada L.', email: 'ada@example.org' })
      .onConflictDoUpdate({ target: customer.email, set: { name: sql`excluded.name`, phone: '2' }, setWhere: eq(customer.active, false) }).returning({ id: customer.id, name: customer.name });
    assert.deepEqual(rows, [{ id: 1, name: 'Ada L.' }]);
    assert.deepEqual(await db.insert(customer).values({ name: 'x', email: 'bob@example.org' }).onConflictDoNothing().returning(), []);
  });
  await test('filters', async () => {
    const names = async (where: any) => (await db.select({ name: customer.name }).from(customer).where(where).orderBy(asc(customer.id))).map((row) => row.name);
    assert.deepEqual(await names(ilike(customer.name, 'a%')), ['Ada L.']);
    assert.deepEqual(await names(and(gt(customer.id, 1), isNull(customer.phone))), ['Bob']);
    assert.deepEqual(await names(or(inArray(customer.id, [2, 3]), not(like(customer.name, '%'))) ), ['Bob', 'Cyd']);
    assert.deepEqual(await names(notInArray(customer.name, ['Bob'])), ['Ada L.', 'Cyd']);
    assert.deepEqual(await names(sql`${customer.tags} @> array['a']`), ['Ada L.']);
    assert.deepEqual(await names(sql`${customer.settings}->>'theme' = 'dark'`), ['Ada L.']);
    assert.deepEqual(await names(exists(db.select().from(order).where(eq(order.customerId, customer.id)))), ['Ada L.', 'Bob']);
  });
  await test('joins, groups, having', async () => {
    const rows = await db.select({ name: customer.name, orders: count(order.id), units: sum(line.quantity), worth: sql<string>`sum(${line.quantity} * ${product.price})`, top: max(product.price), mean: avg(line.quantity) })
      .from(customer).leftJoin(order, eq(order.customerId, customer.id)).leftJoin(line, eq(line.orderId, order.id)).leftJoin(product, eq(product.id, line.productId))
      .groupBy(customer.id).having(sql`count(*) > 0`).orderBy(desc(count(order.id)), customer.id);
    assert.deepEqual(rows, [
      { name: 'Ada L.', orders: 3, units: '4', worth: '14.50', top: '10.00', mean: '2.0000000000000000' },
      { name: 'Bob', orders: 1, units: '7', worth: '23.31', top: '3.33', mean: '7.0000000000000000' },
      { name: 'Cyd', orders: 0, units: null, worth: null, top: null, mean: null },
    ]);
  });
  await test('self join by alias, full join', async () => {
    const other = alias(customer, 'other');
    const rows = await db.select({ a: customer.id, b: other.id }).from(customer).innerJoin(other, gt(other.id, customer.id)).orderBy(customer.id, other.id);
    assert.deepEqual(rows, [{ a: 1, b: 2 }, { a: 1, b: 3 }, { a: 2, b: 3 }]);
    const full = await db.select({ c: customer.id, o: order.id }).from(customer).fullJoin(order, and(eq(order.customerId, customer.id), eq(order.status, 'new'))).orderBy(customer.id, order.id);
    assert.deepEqual(full, [{ c: 1, o: 1 }, { c: 2, o: null }, { c: 3, o: null }, { c: null, o: 2 }, { c: null, o: 3 }]);
  });
  await test('with, subquery, lateral', async () => {
    const counts = db.$with('counts').as(db.select({ id: order.customerId, n: count().as('n') }).from(order).groupBy(order.customerId));
    assert.deepEqual(await db.with(counts).select({ name: customer.name, n: counts.n }).from(customer).innerJoin(counts, eq(counts.id, customer.id)).orderBy(counts.n),
      [{ name: 'Bob', n: 1 }, { name: 'Ada L.', n: 2 }]);
    const newest = db.select({ id: order.id }).from(order).where(eq(order.customerId, customer.id)).orderBy(desc(order.id)).limit(1).as('newest');
    assert.deepEqual(await db.select({ c: customer.id, o: newest.id }).from(customer).leftJoinLateral(newest, sql`true`).orderBy(customer.id),
      [{ c: 1, o: 2 }, { c: 2, o: 3 }, { c: 3, o: null }]);
  });
  await test('set operations', async () => {
    // An operation keeps itself in its first operand.
    const a = () => db.select({ id: customer.id }).from(customer), b = () => db.select({ id: order.customerId }).from(order);
    assert.equal((await union(a(), b())).length, 3);
    assert.equal((await unionAll(a(), b())).length, 6);
    assert.deepEqual(await except(a(), b()), [{ id: 3 }]);
    assert.equal((await intersect(a(), b())).length, 2);
  });
  await test('relational queries', async () => {
    const rows = await db.query.customer.findMany({
      columns: { name: true }, orderBy: asc(customer.id),
      with: { orders: { columns: { id: true, status: true }, orderBy: asc(order.id), with: { lines: { columns: { quantity: true }, with: { product: { columns: { name: true } } }, orderBy: asc(line.productId) } } } },
    });
    assert.deepEqual(rows, [
      { name: 'Ada L.', orders: [{ id: 1, status: 'new', lines: [{ quantity: 3, product: { name: 'pen' } }, { quantity: 1, product: { name: 'ink' } }] }, { id: 2, status: 'sent', lines: [] }] },
      { name: 'Bob', orders: [{ id: 3, status: 'packed', lines: [{ quantity: 7, product: { name: 'pad' } }] }] },
      { name: 'Cyd', orders: [] },
    ]);
    const first = await db.query.order.findFirst({ where: eq(order.id, 3), with: { customer: true }, extras: { twice: sql<number>`${order.id} * 2`.as('twice') } });
    assert.equal(first!.customer.name, 'Bob');
    assert.equal(Number(first!.twice), 6);
  });
  await test('view', async () => {
    assert.deepEqual(await db.select().from(openOrders).orderBy(openOrders.id), [{ id: 1, customerId: 1, status: 'new' }, { id: 3, customerId: 2, status: 'packed' }]);
  });
  await test('distinct on, limit, offset', async () => {
    assert.deepEqual(await db.selectDistinctOn([order.customerId], { c: order.customerId, o: order.id }).from(order).orderBy(order.customerId, desc(order.id)), [{ c: 1, o: 2 }, { c: 2, o: 3 }]);
    assert.deepEqual(await db.select({ id: customer.id }).from(customer).orderBy(customer.id).limit(1).offset(1), [{ id: 2 }]);
  });
  await test('update from, delete returning', async () => {
    const rows = await db.update(line).set({ quantity: sql`${line.quantity} + 1` }).from(order).where(and(eq(order.id, line.orderId), eq(order.customerId, 2))).returning({ q: line.quantity });
    assert.deepEqual(rows, [{ q: 8 }]);
    assert.deepEqual(await db.delete(customer).where(eq(customer.id, 2)).returning({ id: customer.id }), [{ id: 2 }]);
    assert.equal(await db.$count(line), 2);
  });
  await test('transactions', async () => {
    await assert.rejects(db.transaction(async (tx) => {
      await tx.update(product).set({ stock: 99 });
      tx.rollback();
    }));
    assert.equal((await db.select({ m: max(product.stock) }).from(product))[0].m, 10);
    await db.transaction(async (tx) => {
      await tx.transaction(async (inner) => { await inner.update(product).set({ stock: 5 }).where(eq(product.id, 100)); inner.rollback(); }).catch(() => {});
      await tx.update(product).set({ stock: 6 }).where(eq(product.id, 101));
    }, { isolationLevel: 'serializable', accessMode: 'read write', deferrable: true });
    assert.deepEqual(await db.select({ s: product.stock }).from(product).orderBy(product.id), [{ s: 10 }, { s: 6 }, { s: 1 }]);
    await db.transaction(async (tx) => {
      assert.equal((await tx.select().from(product).where(eq(product.id, 100)).for('update', { skipLocked: true })).length, 1);
    });
  });
  await test('prepared with placeholders', async () => {
    const prepared = db.select({ name: customer.name }).from(customer).where(eq(customer.id, sql.placeholder('id'))).prepare('by_id');
    for (let i = 0; i < 7; i++) assert.deepEqual(await prepared.execute({ id: 1 }), [{ name: 'Ada L.' }]);
  });
  await pool.end();
}
main().catch((error) => { console.error(error); process.exit(1); });
