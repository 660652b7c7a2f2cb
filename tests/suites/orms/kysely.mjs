import c from './step.cjs';
const { U, step } = c;
import pg from 'pg';
import Cursor from 'pg-cursor';
import { Kysely, PostgresDialect, sql, Migrator } from 'kysely';
import { jsonArrayFrom, jsonObjectFrom, jsonBuildObject, mergeAction } from 'kysely/helpers/postgres';
const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: U, max: 4 }), cursor: Cursor }) });
const mig = new Migrator({
  db,
  provider: {
    getMigrations: async () => ({
      a: {
        up: async (d) => {
          await d.schema.createType('sp').asEnum(['cat', 'dog']).execute();
          await d.schema
            .createTable('person')
            .addColumn('id', 'integer', (c) => c.primaryKey().generatedAlwaysAsIdentity())
            .addColumn('name', 'varchar(20)', (c) => c.notNull())
            .addColumn('s', sql`sp`)
            .addColumn('created', 'timestamptz', (c) => c.defaultTo(sql`now()`))
            .addColumn('up', 'text', (c) => c.generatedAlwaysAs(sql`upper(name)`).stored())
            .addUniqueConstraint('pn', ['name'], (u) => u.nullsNotDistinct())
            .addCheckConstraint('nl', sql`length(name)>0`)
            .execute();
          await d.schema
            .createTable('pet')
            .addColumn('id', 'serial', (c) => c.primaryKey())
            .addColumn('owner', 'integer', (c) => c.references('person.id').onDelete('cascade').onUpdate('cascade'))
            .addColumn('name', 'text')
            .addColumn('j', 'jsonb')
            .execute();
          await d.schema.createIndex('po').on('pet').column('owner').where('owner', 'is not', null).execute();
          await d.schema
            .createIndex('pl')
            .on('pet')
            .expression(sql`lower(name)`)
            .using('btree')
            .execute();
          await d.schema.createView('vv').columns(['n']).as(d.selectFrom('person').select('name')).execute();
          await d.schema.createView('mvv').materialized().as(d.selectFrom('person').select('name')).execute();
        },
        down: async (d) => {
          await d.schema.dropView('mvv').materialized().execute();
          await d.schema.dropView('vv').execute();
          await d.schema.dropTable('pet').execute();
          await d.schema.dropTable('person').execute();
          await d.schema.dropType('sp').execute();
        },
      },
      b: {
        up: async (d) => {
          await d.schema
            .alterTable('pet')
            .addColumn('age', 'smallint', (c) => c.defaultTo(1))
            .alterColumn('name', (c) => c.setNotNull())
            .execute();
          await d.schema.alterTable('pet').renameColumn('age', 'years').execute();
          await d.schema
            .alterTable('pet')
            .alterColumn('years', (c) => c.setDataType('bigint'))
            .execute();
          await d.schema.alterTable('pet').addUniqueConstraint('pu', ['owner', 'name']).execute();
        },
        down: async (d) => {
          await d.schema.alterTable('pet').dropColumn('years').dropConstraint('pu').execute();
        },
      },
    }),
  },
});
await step('migrate', async () => (await mig.migrateToLatest()).results?.map((r) => [r.migrationName, r.status]));
await step('err', async () => {
  const r = await mig.migrateToLatest();
  if (r.error) throw r.error;
  return r.results;
});
await step('down', async () => (await mig.migrateDown()).results);
await step('up', async () => (await mig.migrateUp()).results);
await step('introspect', async () => await db.introspection.getTables({ withInternalKyselyTables: true }));
await step('schemas', () => db.introspection.getSchemas());
await step('ins', () =>
  db
    .insertInto('person')
    .values([{ name: 'A', s: 'cat' }, { name: 'B' }])
    .returning(['id', 'name', 'up'])
    .execute(),
);
await step('pets', () =>
  db
    .insertInto('pet')
    .values([
      { owner: 1, name: 'x', j: JSON.stringify({ a: [1] }) },
      { owner: 1, name: 'y', j: null },
    ])
    .returningAll()
    .execute(),
);
await step('dup', () => db.insertInto('person').values({ name: 'A' }).execute());
await step('gen', () => db.insertInto('person').values({ id: 5, name: 'A' }).execute());
await step('gencol', () => db.insertInto('person').values({ up: '5', name: 'A' }).execute());
await step('conf', () =>
  db
    .insertInto('person')
    .values({ name: 'A' })
    .onConflict((o) => o.constraint('pn').doUpdateSet((e) => ({ name: e.ref('excluded.name'), s: 'dog' })))
    .returningAll()
    .executeTakeFirst()
    .then((r) => [r.id, r.s]),
);
await step('conf where', () =>
  db
    .insertInto('person')
    .values({ name: 'A' })
    .onConflict((o) => o.column('name').doUpdateSet({ s: 'cat' }).where('person.s', '=', 'cat'))
    .returningAll()
    .executeTakeFirst(),
);
await step('doNothing', () =>
  db
    .insertInto('person')
    .values({ name: 'A' })
    .onConflict((o) => o.doNothing())
    .executeTakeFirst(),
);
await step('json helpers', () =>
  db
    .selectFrom('person')
    .select((e) => [
      'id',
      jsonArrayFrom(e.selectFrom('pet').select(['pet.name', 'pet.j']).whereRef('pet.owner', '=', 'person.id').orderBy('pet.id')).as('pets'),
      jsonObjectFrom(e.selectFrom('pet').select('pet.name').whereRef('pet.owner', '=', 'person.id').limit(1)).as('one'),
      jsonBuildObject({ f: e.ref('name') }).as('o'),
    ])
    .orderBy('id')
    .execute(),
);
await step('json path', () =>
  db
    .selectFrom('pet')
    .select((e) => [e.ref('j', '->').key('a').at(0).as('x')])
    .orderBy('id')
    .execute(),
);
await step('merge', () =>
  db
    .mergeInto('person')
    .using('pet', 'pet.owner', 'person.id')
    .whenMatched()
    .thenUpdateSet({ s: 'dog' })
    .whenNotMatched()
    .thenDoNothing()
    .executeTakeFirst()
    .then(String)
    .catch((e) => {
      throw e;
    }),
);
await step('agg', () =>
  db
    .selectFrom('pet')
    .select((e) => [
      e.fn.countAll().as('n'),
      e.fn.agg('array_agg', ['name']).orderBy('name').as('l'),
      e.fn.count('id').filterWhere('name', '=', 'x').as('fx'),
      e.fn
        .max('id')
        .over((o) => o.partitionBy('owner'))
        .as('w'),
    ])
    .groupBy(['owner', 'id'])
    .orderBy('id')
    .execute(),
);
await step('cte', () =>
  db
    .with('d', (d) => d.deleteFrom('pet').where('name', '=', 'y').returningAll())
    .selectFrom('d')
    .select('name')
    .execute(),
);
await step('rec', () =>
  db
    .withRecursive('t(n)', (d) =>
      d.selectNoFrom(sql`1`.as('n')).unionAll(
        d
          .selectFrom('t')
          .select(sql`n+1`.as('n'))
          .where('n', '<', 3),
      ),
    )
    .selectFrom('t')
    .selectAll()
    .execute(),
);
await step('stream', async () => {
  let n = 0;
  for await (const r of db
    .selectFrom(sql`generate_series(1,250)`.as('g'))
    .selectAll()
    .stream(100))
    n++;
  return n;
});
await step('tx', () =>
  db
    .transaction()
    .setIsolationLevel('serializable')
    .setAccessMode('read write')
    .execute(async (t) => (await t.selectFrom('person').selectAll().forUpdate().of('person').skipLocked().execute()).length),
);
await step('ctx', async () => {
  const t = await db.startTransaction().execute();
  const sp = await t.savepoint('s1').execute();
  await sp.rollbackToSavepoint('s1').execute();
  await t.rollback().execute();
});
await step('explain', async () => Object.keys((await db.selectFrom('person').selectAll().explain('json'))[0]));
await step('lateral', () =>
  db
    .selectFrom('person')
    .leftJoinLateral(
      (e) => e.selectFrom('pet').whereRef('pet.owner', '=', 'person.id').select('pet.name as pn').as('x'),
      (j) => j.onTrue(),
    )
    .select(['person.id', 'pn'])
    .orderBy('id')
    .execute(),
);
await step('tuple', () =>
  db
    .selectFrom('pet')
    .selectAll()
    .where((e) => e(e.refTuple('owner', 'name'), 'in', [e.tuple(1, 'x')]))
    .execute(),
);
await step('distinctOn', () => db.selectFrom('pet').distinctOn('owner').selectAll().execute());
await step('update from', () =>
  db
    .updateTable('pet')
    .from('person')
    .set({ name: sql`pet.name||person.name` })
    .whereRef('person.id', '=', 'pet.owner')
    .returning('pet.name')
    .execute(),
);
await step('values', () =>
  db
    .selectFrom(sql`(values (1,'a'),(2,'b')) as v(i,t)`)
    .selectAll()
    .execute(),
);
await step('refresh', () => db.schema.refreshMaterializedView('mvv').execute());
await step('addIndex', () => db.schema.createIndex('nn').on('person').column('name').unique().nullsNotDistinct().execute());
await db.destroy();
