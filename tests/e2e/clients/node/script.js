// Create / insert / select / update through node-postgres; exits with 0 when every answer is the expected one.
'use strict';
const assert = require('node:assert/strict');
const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor');

const config = { host: process.env.PGHOST, port: Number(process.env.PGPORT), user: 'postgres', database: 'postgres' };

async function basics() {
  const client = new Client(config);
  await client.connect();
  await client.query('DROP TABLE IF EXISTS node_item');
  await client.query(`CREATE TABLE node_item (
    id serial PRIMARY KEY, name varchar(50) NOT NULL UNIQUE, price numeric(10,2), active boolean DEFAULT true,
    data bytea, code uuid, at timestamptz, big bigint, ratio double precision)`);

  const uuid = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11';
  const at = new Date(Date.UTC(2024, 1, 29, 12, 30, 45, 678));
  let result = await client.query(
    'INSERT INTO node_item (name, price, data, code, at, big, ratio) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *',
    ['Zoë', '19.90', Buffer.from([0, 1, 254, 255]), uuid, at, '9007199254740993', 0.1]);
  assert.equal(result.command, 'INSERT');
  assert.equal(result.rowCount, 1);
  const row = result.rows[0];
  assert.deepEqual({ ...row, data: [...row.data], at: row.at.toISOString() }, {
    id: 1, name: 'Zoë', price: '19.90', active: true, data: [0, 1, 254, 255], code: uuid,
    at: '2024-02-29T12:30:45.678Z', big: '9007199254740993', ratio: 0.1 });
  assert.deepEqual(result.fields.map((field) => field.dataTypeID), [23, 1043, 1700, 16, 17, 2950, 1184, 20, 701]);

  result = await client.query('UPDATE node_item SET price = price * 2, active = $2 WHERE id = $1', [1, false]);
  assert.equal(result.rowCount, 1);
  result = await client.query({ name: 'by-id', text: 'SELECT price, active FROM node_item WHERE id = $1', values: [1], rowMode: 'array' });
  assert.deepEqual(result.rows, [['39.80', false]]);
  result = await client.query({ name: 'by-id', text: 'SELECT price, active FROM node_item WHERE id = $1', values: [2], rowMode: 'array' });
  assert.deepEqual(result.rows, []);
  result = await client.query('SELECT count(*)::int AS n FROM node_item WHERE id IN ($1, $2)', [1, 2]);
  assert.equal(result.rows[0].n, 1);

  // Several statements in one simple query.
  const several = await client.query("INSERT INTO node_item (name) VALUES ('b'), ('c'); SELECT count(*)::int AS n FROM node_item");
  assert.equal(several[1].rows[0].n, 3);

  // Errors carry the fields that frameworks read, and the connection goes on.
  await assert.rejects(client.query("INSERT INTO node_item (name) VALUES ('b')"), (error) => {
    assert.equal(error.code, '23505');
    assert.equal(error.constraint, 'node_item_name_key');
    assert.equal(error.table, 'node_item');
    assert.equal(error.schema, 'public');
    assert.match(error.detail, /Key \(name\)=\(b\) already exists\./);
    return true;
  });
  await assert.rejects(client.query('SELECT * FROM node_missing WHERE id = $1', [1]), { code: '42P01' });

  // A transaction that rolls back.
  await client.query('BEGIN');
  await client.query('DELETE FROM node_item');
  await client.query('ROLLBACK');
  assert.equal((await client.query('SELECT count(*)::int AS n FROM node_item')).rows[0].n, 3);

  // A cursor: a portal with a row limit.
  const cursor = client.query(new Cursor('SELECT id FROM node_item ORDER BY id'));
  assert.equal((await cursor.read(2)).length, 2);
  assert.equal((await cursor.read(2)).length, 1);
  await cursor.close();
  await client.end();
}

async function pool() {
  const clients = new Pool({ ...config, max: 8 });
  const sums = await Promise.all(Array.from({ length: 100 }, (_, i) => clients.query('SELECT $1::int + 1 AS n', [i])));
  sums.forEach((result, i) => assert.equal(result.rows[0].n, i + 1));
  await clients.query('DROP TABLE node_item');
  await clients.end();
}

basics().then(pool).then(() => console.log('node-postgres: ok'), (error) => { console.error(error); process.exit(1); });
