import c from './step.cjs';
const { U, step } = c;
import postgres from 'postgres';
import pg from 'pg';
import QS from 'pg-query-stream';
import Cursor from 'pg-cursor';
const notices = [];
const sql = postgres(U, { max: 4, onnotice: (n) => notices.push([n.code, n.message, n.severity]) });
await step(
  'types',
  () =>
    sql`select ${1}::int a, ${'x'} b, ${sql.array([1, 2, 3])}::int[] c, ${sql.json({ a: 1 })} d, ${new Date(0)}::timestamptz e, ${Buffer.from('q')}::bytea f, ${true}::bool g, ${null}::text h, 9007199254740993::int8 i, 1.5::numeric j, ARRAY[ARRAY['a','b']] k, '{"a":"b"}'::json l, 'NaN'::float8 m, date '2024-01-01' n, interval '1 day 02:03:04.5' o`,
);
await step('cols', async () => (await sql`select 1::int a, 'x'::varchar(3) b`).columns);
await step('describe', async () => {
  const d = await sql`select ${1}::int a, ${'b'}::text`.describe();
  return [d.types, d.columns];
});
await step(
  'fetch types',
  () =>
    sql`select b.oid, b.typarray from pg_catalog.pg_type a left join pg_catalog.pg_type b on b.oid = a.typelem where a.typcategory = 'A' and b.typname in ('int4','text','uuid') group by b.oid, b.typarray order by b.oid`,
);
await step(
  'ddl',
  () =>
    sql`create table if not exists pj (id serial primary key, a int not null, b text unique, c jsonb, d text[], ts timestamptz default '2020-01-01 00:00+00')`,
);
await step('ddl2', () => sql`create table if not exists pj (id int)`);
await step('notices', () => notices.splice(0));
await step(
  'ins multi',
  () =>
    sql`insert into pj ${sql(
      [
        { a: 1, b: 'x', c: { q: 1 }, d: ['m', 'n'] },
        { a: 2, b: 'y', c: null, d: [] },
      ],
      'a',
      'b',
      'c',
      'd',
    )} returning *`,
);
await step('upd', () => sql`update pj set ${sql({ a: 5, b: 'z' })} where id = ${1} returning id,a,b`);
await step('in', () => sql`select id from pj where id in ${sql([1, 2, 3])} order by 1`);
await step(
  'upd values',
  () =>
    sql`update pj set a=v.a::int from (values ${sql([
      [1, '7'],
      [2, '8'],
    ])}) as v(id,a) where pj.id=v.id::int returning pj.id,pj.a`,
);
await step('frag', () => sql`select ${sql('id', 'a')} from ${sql('pj')} where ${true ? sql`a>${1}` : sql``} order by id`);
await step('err', () => sql`select * from nope`);
await step('err2', () => sql`insert into pj(a,b) values(1,'z')`);
await step('err3', () => sql`insert into pj(b) values('q')`);
await step('err4', () => sql`select 1/0`);
await step('err5', () => sql`selec 1`);
await step('err6', () => sql`select ${'abc'}::int`);
await step('err7', () => sql.unsafe('select 1; select 1/0; select 2'));
await step('multi', () => sql.unsafe('select 1 a; select 2 b'));
await step('simple', () => sql`select 1 as x; select 2 as y`.simple());
await step('tx', () =>
  sql.begin(async (t) => {
    await t`insert into pj(a) values(9)`;
    try {
      await t.savepoint(async (s) => {
        await s`select 1/0`;
      });
    } catch {}
    const [r] = await t`select count(*)::int n from pj`;
    return r;
  }),
);
await step('tx ser', () => sql.begin('isolation level serializable read only deferrable', (t) => t`show transaction_isolation`));
await step('pipeline', () => sql.begin((t) => [t`select 1 a`, t`select 2 b`, t`select 3 c`]));
await step('prepare tx', () =>
  sql.begin(async (t) => {
    await t`select 1`;
    return t.prepare('gid1');
  }),
);
await step('cursor', async () => {
  let n = [];
  for await (const r of sql`select * from generate_series(1,25) g`.cursor(10)) n.push(r.length);
  return n;
});
await step('forEach', async () => {
  let n = 0;
  await sql`select * from generate_series(1,1000) g`.forEach(() => n++);
  return n;
});
await step('raw', () => sql`select 1,2 union all select 3,4`.raw().then((r) => r.map((x) => x.map(String))));
await step('values', () => sql`select 1,2`.values());
await step('copy out', async () => {
  let s = '';
  for await (const ch of await sql`copy (select id,a from pj order by id) to stdout with (format csv, header)`.readable()) s += ch;
  return s;
});
await step('copy in', async () => {
  const w = await sql`copy pj(a,b) from stdin`.writable();
  await new Promise((res, rej) => {
    w.on('error', rej);
    w.on('finish', res);
    w.write('11\taa\n');
    w.write('12\tbb\n');
    w.end();
  });
  return (await sql`select count(*)::int n from pj`)[0].n;
});
await step('listen', async () => {
  let got;
  const l = await sql.listen('ch', (x) => (got = x));
  await sql.notify('ch', 'hello');
  for (let i = 0; i < 100 && !got; i++) await new Promise((r) => setTimeout(r, 10));
  await l.unlisten();
  return got;
});
await step('params', async () => {
  const o = sql.parameters;
  return Object.keys(o)
    .filter((k) => !['server_version', 'is_superuser', 'TimeZone', 'session_authorization'].includes(k))
    .sort()
    .map((k) => [k, o[k]]);
});
await step('large', async () => {
  const x = 'y'.repeat(1 << 20);
  return (await sql`select length(${x}) n`)[0].n;
});
await step('cancel', async () => {
  const q = sql`select pg_sleep(10)`;
  setTimeout(() => q.cancel(), 100);
  return q;
});
await step('idle', () => sql`select pid>0 p, state, application_name, backend_type from pg_stat_activity where pid=pg_backend_pid()`);
await sql.end({ timeout: 1 });
const cl = new pg.Client({
  connectionString: U,
  application_name: 'np',
  statement_timeout: 30000,
  query_timeout: 30000,
  idle_in_transaction_session_timeout: 30000,
  lock_timeout: 10000,
  options: '-c search_path=public -c work_mem=8MB',
});
const nt = [];
cl.on('notice', (n) => nt.push([n.code, n.message, n.severity]));
await cl.connect();
await step(
  'show',
  async () =>
    (
      await cl.query(
        "select current_setting('work_mem') w, current_setting('search_path') s, current_setting('statement_timeout') t, current_setting('application_name') a",
      )
    ).rows,
);
await step('named', async () => (await cl.query({ name: 'q1', text: 'select $1::int+$2 x', values: [1, 2], rowMode: 'array' })).rows);
await step('named2', async () => (await cl.query({ name: 'q1', text: 'select $1::int+$2 x', values: [3, 4] })).rows);
await step('fields', async () =>
  (await cl.query('select id,a,b,c,d,ts from pj limit 0')).fields.map((f) => ({
    n: f.name,
    t: f.dataTypeID,
    s: f.dataTypeSize,
    m: f.dataTypeModifier,
    c: f.columnID,
    f: f.format,
  })),
);
await step('cmd', async () => {
  const r = [];
  for (const s of [
    'begin',
    'create temp table tt(a int)',
    'insert into tt values(1),(2)',
    'update tt set a=a+1',
    'delete from tt',
    'select 1',
    'truncate tt',
    'savepoint s',
    'release s',
    'rollback',
    "set work_mem='4MB'",
    'show work_mem',
    'explain select 1',
    'vacuum',
    'analyze pj',
    'listen a',
    'notify a',
    'unlisten a',
    'lock table pj',
    'copy pj to stdout',
    'discard temp',
    'reset all',
    'create view vx as select 1 a',
    'drop view vx',
    "comment on table pj is 'x'",
    'deallocate all',
    'begin; declare c cursor for select 1; fetch 1 from c; move 1 from c; close c; commit',
    'values (1),(2)',
    'table pj',
    'create table ct as select 1 a',
    'select 1 a into ct2',
    'drop table ct,ct2',
    'grant select on pj to public',
    'reindex table pj',
    'checkpoint',
    'create role rr',
    'drop role rr',
  ]) {
    try {
      const x = await cl.query(s);
      r.push([s, [].concat(x).map((y) => [y.command, y.rowCount])]);
    } catch (e) {
      r.push([s, e.code, e.message, e.detail, e.hint]);
    }
  }
  return r;
});
await step('nt', () => nt);
await step('stream', async () => {
  const s = cl.query(new QS('select * from generate_series(1,$1) n', [500], { batchSize: 100 }));
  let n = 0;
  for await (const r of s) n += r.n;
  return n;
});
await step('stream abort', async () => {
  const s = cl.query(new QS('select * from generate_series(1,$1) n', [50000], { batchSize: 100 }));
  let n = 0;
  for await (const r of s) {
    if (++n > 250) break;
  }
  return (await cl.query('select 1 a')).rows;
});
await step('cursor', async () => {
  const c = cl.query(new Cursor('select * from generate_series(1,10) n'));
  const a = await c.read(4),
    b = await c.read(100),
    d = await c.read(1);
  await c.close();
  return [a.length, b.length, d.length];
});
await step('cursor err', async () => {
  const c = cl.query(new Cursor('select 1/(5-n) from generate_series(1,10) n'));
  const a = await c.read(2);
  return [a, await c.read(100)];
});
await step('after', async () => (await cl.query('select 1 a')).rows);
await cl.query('drop table pj');
await cl.end();
