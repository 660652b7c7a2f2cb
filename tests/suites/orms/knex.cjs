const { U, step } = require('./step.cjs');
const knex = require('knex');
const fs = require('fs');
(async () => {
  const k = knex({ client: 'pg', connection: U, pool: { min: 1, max: 4 } });
  fs.mkdirSync('migrations');
  fs.writeFileSync(
    'migrations/1_a.js',
    `exports.up=async k=>{ await k.schema.createTable('a',t=>{t.increments();t.string('n').notNullable().comment('c');t.enu('e',['x','y'],{useNative:true,enumName:'e_t'});t.enu('e2',['p','q']);t.timestamps(true,true);t.uuid('u').defaultTo(k.fn.uuid());t.jsonb('j').defaultTo('{}');t.decimal('d',10,2);t.specificType('tags','text[]');t.binary('b');t.boolean('ok').defaultTo(false);t.date('dt');t.time('tm');t.bigInteger('big').unsigned().index();t.float('f');t.double('dd');t.tinyint('ti');t.smallint('si');t.text('tx');t.unique(['n','e2'],{indexName:'un'});t.index(['n'],'ix',{predicate:k.whereNotNull('n')});t.check('?? > ?',['d',0],'dpos');t.comment('tab')}); await k.schema.createTable('b',t=>{t.bigIncrements('bid');t.integer('a_id').references('id').inTable('a').onDelete('CASCADE').deferrable('deferred');t.string('v',10)}) };
exports.down=async k=>{await k.schema.dropTable('b');await k.schema.dropTable('a');await k.raw('drop type e_t')}`,
  );
  fs.writeFileSync(
    'migrations/2_b.js',
    `exports.up=async k=>{ await k.schema.alterTable('a',t=>{t.renameColumn('n','nn');t.string('extra');t.dropColumn('tm');t.setNullable('nn');t.text('tx').alter({alterNullable:false});t.bigInteger('si').notNullable().defaultTo(5).alter()}); await k.schema.createView('va',v=>{v.columns(['id','nn']);v.as(k('a').select('id','nn').where('id','>',0))}); await k.schema.createMaterializedView('ma',v=>{v.as(k('a').count('id as n'))}) };
exports.down=async k=>{ await k.schema.dropView('va'); await k.schema.dropMaterializedView('ma'); await k.schema.alterTable('a',t=>{t.renameColumn('nn','n');t.dropColumn('extra');t.time('tm')}) }`,
  );
  const m = { directory: 'migrations' };
  await step('latest', async () => (await k.migrate.latest(m))[1].map((x) => x));
  await step('status', () => k.migrate.status(m));
  await step('list', async () => (await k.migrate.list(m))[0].map((x) => x.name));
  await step('rollback', async () => (await k.migrate.rollback(m, true))[1]);
  await step('up', async () => (await k.migrate.up(m))[1]);
  await step('up2', async () => (await k.migrate.up(m))[1]);
  await step('hasTable', () => k.schema.hasTable('a'));
  await step('hasColumn', () => k.schema.hasColumn('a', 'extra'));
  await step('hasView', () => k.schema.hasView?.('va'));
  await step('columnInfo', () => k('a').columnInfo());
  await step('insert', async () => {
    const r = await k('a')
      .insert([
        {
          nn: 'x',
          e: 'x',
          d: 1.5,
          tags: ['a', 'b'],
          j: JSON.stringify({ a: 1 }),
          b: Buffer.from([1, 2]),
          dt: '2024-01-01',
          big: '12345678901234',
          f: 1.5,
        },
        { nn: 'y', e2: 'q', d: 2 },
      ])
      .returning(['id', 'nn', 'e', 'd', 'tags', 'j', 'b', 'big', 'f', 'ok']);
    return r;
  });
  await step('insert check', () => k('a').insert({ nn: 'z', d: -1 }));
  await step('insert enum2', () => k('a').insert({ nn: 'z', e2: 'z' }));
  await step('insert native enum', () => k('a').insert({ nn: 'z', e: 'z' }));
  await step('onConflict merge', () =>
    k('a')
      .insert({ id: 1, nn: 'xx' })
      .onConflict('id')
      .merge({ nn: k.raw('excluded.nn || ?', ['!']) })
      .returning('nn'),
  );
  await step('onConflict ignore', () => k('a').insert({ id: 1, nn: 'xx' }).onConflict().ignore().returning('nn'));
  await step('onConflict where', () => k('a').insert({ id: 1, nn: 'xx' }).onConflict('id').merge().where('a.d', '>', 100).returning('nn'));
  await step('batchInsert', () =>
    k
      .batchInsert(
        'b',
        Array.from({ length: 105 }, (_, i) => ({ a_id: 1, v: 'v' + i })),
        50,
      )
      .returning('bid')
      .then((r) => r.length),
  );
  await step('join', () => k('a').leftJoin('b', 'a.id', 'b.a_id').groupBy('a.id').orderBy('a.id').select('a.id').count('b.bid as n').max('b.v as m'));
  await step('json', () => k('a').jsonExtract('j', '$.a', 'ja').orderBy('id').select('id'));
  await step('whereJson', () => k('a').whereJsonPath('j', '$.a', '=', 1).select('id'));
  await step('whereJsonSup', () => k('a').whereJsonSupersetOf('j', { a: 1 }).select('id'));
  await step('jsonSet', () => k('a').jsonSet('j', '$.b', '2', 'r').select('id').orderBy('id'));
  await step('jsonInsert', () => k('a').jsonInsert('j', '$.b', '2', 'r').orderBy('id'));
  await step('jsonRemove', () => k('a').jsonRemove('j', '$.a', 'r').orderBy('id'));
  await step('window', () =>
    k('b')
      .select('bid')
      .rowNumber('rn', (q) => q.orderBy('bid', 'desc'))
      .orderBy('bid')
      .limit(2),
  );
  await step('with rec', () =>
    k
      .withRecursive('t', ['n'], (q) => {
        q.select(k.raw('1')).unionAll((q2) => q2.select(k.raw('n+1')).from('t').where('n', '<', 5));
      })
      .from('t')
      .sum('n as s'),
  );
  await step('with mat', () => k.withMaterialized('t', k('a').select('id')).from('t').orderBy('id'));
  await step('lateral', () =>
    k
      .select('a.id', 'x.bid')
      .from('a')
      .joinRaw('left join lateral (select bid from b where b.a_id=a.id order by bid desc limit 1) x on true')
      .orderBy('a.id'),
  );
  await step('distinctOn', () =>
    k('b')
      .distinctOn('a_id')
      .select('a_id', 'v')
      .orderBy([{ column: 'a_id' }, { column: 'bid', order: 'desc', nulls: 'last' }]),
  );
  await step('stream', async () => {
    let n = 0;
    for await (const r of k('b').stream({ batchSize: 10 })) n++;
    return n;
  });
  await step('trx', () =>
    k.transaction(
      async (t) => {
        await t('a').insert({ nn: 't' });
        try {
          await t.transaction(async (t2) => {
            await t2('a').insert({ id: 1 });
          });
        } catch (e) {}
        return t('a').count();
      },
      { isolationLevel: 'repeatable read' },
    ),
  );
  await step('trx ro', () =>
    k.transaction(
      async (t) => {
        await t('a').insert({ nn: 't' });
      },
      { readOnly: true },
    ),
  );
  await step('forUpdate', () => k.transaction((t) => t('a').forUpdate().skipLocked().select('id').orderBy('id')));
  await step('forNoKey', () => k.transaction((t) => t('a').forNoKeyUpdate().noWait().select('id').orderBy('id')));
  await step('fk deferred', () => k('b').insert({ a_id: 77 }));
  await step('trunc', () =>
    k('b')
      .truncate()
      .then(() => 1),
  );
  await step('upd returning', () => k('a').where('id', 1).update({ nn: 'u' }, ['id', 'nn']));
  await step('upd from', () =>
    k('a')
      .update({ extra: k.ref('b.v') })
      .updateFrom('b')
      .where('b.a_id', k.ref('a.id')),
  );
  await step('del using', () => k('b').using('a').where('a.id', k.ref('b.a_id')).del());
  await step('timeout', () => k.raw('select pg_sleep(2)').timeout(100, { cancel: true }));
  await step('first pluck', async () => [await k('a').first('id').orderBy('id'), await k('a').pluck('id').orderBy('id')]);
  await step('raw', async () => (await k.raw('select ?::int as a, ?? from ??', [1, 'id', 'a'])).rows.length);
  await step('refresh', () => k.schema.refreshMaterializedView('ma'));
  await step('refresh conc', () => k.schema.refreshMaterializedView('ma', true));
  await step('renameTable', () => k.schema.renameTable('b', 'bb'));
  await step('createLike', () => k.schema.createTableLike('a2', 'a'));
  await step('dropIfExists', () => k.schema.dropTableIfExists('nope'));
  await step('createSchema', () => k.schema.createSchemaIfNotExists('ks'));
  await step('drop', () => k.schema.withSchema('ks').dropTableIfExists('x'));
  await step('altercols', () =>
    k.schema.alterTable('a2', (t) => {
      t.primary(['id']);
      t.dropUnique(['nn', 'e2'], 'nope');
    }),
  );
  await step('drops', () =>
    k.schema.alterTable('a2', (t) => {
      t.dropNullable('nn');
      t.dropTimestamps();
    }),
  );
  await step('rollback', async () => {
    await k.schema.dropTable('a2');
    await k.schema.renameTable('bb', 'b');
    return (await k.migrate.rollback(m, true))[1];
  });
  await step('down', () => k.schema.dropSchema('ks'));
  await k.schema.dropTable('knex_migrations');
  await k.schema.dropTable('knex_migrations_lock');
  await k.destroy();
})();
