// The first version of a shop's schema: every kind of column and constraint that Drizzle writes.
import { sql } from 'drizzle-orm';
import {
  bigint, bigserial, boolean, char, check, date, doublePrecision, foreignKey, index, integer, interval, json, jsonb, numeric, pgEnum,
  pgTable, pgView, primaryKey, real, serial, smallint, text, time, timestamp, unique, uniqueIndex, uuid, varchar,
} from 'drizzle-orm/pg-core';

export const status = pgEnum('order_status', ['new', 'paid', 'sent']);

export const customer = pgTable('customer', {
  id: serial('id').primaryKey(),
  code: uuid('code').notNull().defaultRandom(),
  name: varchar('name', { length: 80 }).notNull(),
  email: text('email').notNull().unique(),
  tags: text('tags').array().notNull().default(sql`'{}'::text[]`),
  settings: jsonb('settings').$type<Record<string, unknown>>().notNull().default({ theme: 'light' }),
  active: boolean('active').notNull().default(true),
  since: timestamp('since', { withTimezone: true }).notNull().defaultNow(),
}, (table) => [index('customer_name_idx').on(table.name.desc().nullsLast()), uniqueIndex('customer_lower_email').on(sql`lower(${table.email})`)]);

export const product = pgTable('product', {
  id: integer('id').primaryKey().generatedAlwaysAsIdentity({ startWith: 100 }),
  name: text('name').notNull(),
  price: numeric('price', { precision: 10, scale: 2 }).notNull(),
  weight: doublePrecision('weight'),
  rating: real('rating'),
  sku: char('sku', { length: 8 }),
  stock: smallint('stock').notNull().default(0),
  gross: numeric('gross', { precision: 12, scale: 2 }).generatedAlwaysAs(sql`price * 1.19`),
}, (table) => [check('price_positive', sql`${table.price} > 0`), unique('product_name_sku').on(table.name, table.sku).nullsNotDistinct()]);

export const order = pgTable('order', {
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  customerId: integer('customer_id').notNull().references(() => customer.id, { onDelete: 'cascade' }),
  status: status('status').notNull().default('new'),
  placed: timestamp('placed').notNull().defaultNow(),
  due: date('due'),
  at: time('at'),
  grace: interval('grace'),
  total: bigint('total', { mode: 'bigint' }),
  extra: json('extra'),
}, (table) => [index('order_open').on(table.customerId).where(sql`status <> 'sent'`)]);

export const line = pgTable('order_line', {
  orderId: bigint('order_id', { mode: 'number' }).notNull(),
  productId: integer('product_id').notNull().references(() => product.id, { onDelete: 'restrict', onUpdate: 'cascade' }),
  quantity: integer('quantity').notNull().default(1),
}, (table) => [
  primaryKey({ columns: [table.orderId, table.productId] }),
  foreignKey({ name: 'line_of_order', columns: [table.orderId], foreignColumns: [order.id] }).onDelete('cascade'),
]);

export const openOrders = pgView('open_orders').as((query) =>
  query.select({ id: order.id, customerId: order.customerId, status: order.status }).from(order).where(sql`${order.status} <> 'sent'`));
