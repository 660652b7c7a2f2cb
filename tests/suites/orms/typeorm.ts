import 'reflect-metadata';
import {
  DataSource,
  Entity,
  PrimaryGeneratedColumn,
  PrimaryColumn,
  Column,
  ManyToOne,
  OneToMany,
  ManyToMany,
  JoinTable,
  Index,
  Unique,
  Check,
  CreateDateColumn,
  UpdateDateColumn,
  VersionColumn,
  DeleteDateColumn,
  Tree,
  TreeChildren,
  TreeParent,
  ViewEntity,
  ViewColumn,
  Generated,
  OneToOne,
  JoinColumn,
  Table,
  TableColumn,
  TableIndex,
  TableForeignKey,
  TableCheck,
  TableUnique,
  Like,
  In,
  ArrayContains,
  ILike,
  JsonContains,
  Raw,
  Between,
  IsNull,
  Not,
} from 'typeorm';
// @ts-ignore
import { U, step } from './step.cjs';
enum Role {
  A = 'admin',
  U = 'user',
}
@Entity({ comment: 'the users' })
@Index('lower_ix', ['name', 'age'])
@Check('age_pos', '"age" >= 0')
@Unique('uq_ne', ['name', 'email'])
class User {
  @PrimaryGeneratedColumn() id!: number;
  @Column({ type: 'varchar', length: 40 }) name!: string;
  @Column({ nullable: true, unique: true }) email!: string;
  @Column({ type: 'int', default: 0 }) age!: number;
  @Column({ type: 'enum', enum: Role, default: Role.U }) role!: Role;
  @Column({ type: 'enum', enum: Role, array: true, default: [Role.U] }) roles!: Role[];
  @Column('simple-array', { nullable: true }) sa!: string[];
  @Column('simple-json', { nullable: true }) sj!: any;
  @Column('jsonb', { default: { a: 1 } }) meta!: any;
  @Column('text', { array: true, default: () => "'{}'" }) tags!: string[];
  @Column('decimal', { precision: 10, scale: 2, nullable: true }) bal!: string;
  @Column('bigint', { nullable: true }) big!: string;
  @Column('bytea', { nullable: true }) b!: Buffer;
  @Column('timestamptz', { default: () => 'now()' }) ts!: Date;
  @Column('timestamp', { precision: 3, nullable: true }) ts3!: Date;
  @Column('date', { nullable: true }) d!: string;
  @Column('time', { nullable: true }) t!: string;
  @Column('interval', { nullable: true }) iv!: any;
  @Column('uuid', { nullable: true }) @Generated('uuid') u!: string;
  @Column('inet', { nullable: true }) ip!: string;
  @Column('tsvector', { nullable: true }) tsv!: string;
  @Column('varchar', { generatedType: 'STORED', asExpression: `upper(name)`, nullable: true }) up!: string;
  @Column('char', { length: 3, nullable: true }) c!: string;
  @Column('float', { nullable: true }) f!: number;
  @Column('money', { nullable: true }) mon!: string;
  @Column('bit', { length: 4, nullable: true }) bi!: string;
  @Column('real', { nullable: true, comment: 'rr' }) r!: number;
  @CreateDateColumn() c1!: Date;
  @UpdateDateColumn() u1!: Date;
  @DeleteDateColumn() d1!: Date;
  @VersionColumn() v!: number;
  @OneToMany(() => Post, (p) => p.author, { cascade: true }) posts!: any;
  @OneToOne(() => Profile, (p) => p.user, { cascade: true }) profile!: any;
}
@Entity()
class Profile {
  @PrimaryGeneratedColumn('uuid') id!: string;
  @Column() bio!: string;
  @OneToOne(() => User, (u) => u.profile, { onDelete: 'CASCADE' }) @JoinColumn() user!: User;
}
@Entity()
class Post {
  @PrimaryGeneratedColumn('identity', { generatedIdentity: 'ALWAYS' } as any) id!: number;
  @Column() title!: string;
  @Column({ type: 'int', nullable: true }) rating!: number;
  @ManyToOne(() => User, (u) => u.posts, { onDelete: 'CASCADE', deferrable: 'INITIALLY DEFERRED' }) @Index() author!: any;
  @ManyToMany(() => Tag, { cascade: true }) @JoinTable() tags!: Tag[];
}
@Entity()
class Tag {
  @PrimaryColumn('text') label!: string;
}
@Entity()
@Tree('closure-table')
class Cat {
  @PrimaryGeneratedColumn() id!: number;
  @Column() name!: string;
  @TreeChildren() children!: Cat[];
  @TreeParent() parent!: any;
}
@ViewEntity({ expression: `SELECT u.id AS id, u.name AS name, count(p.id) AS n FROM "user" u LEFT JOIN post p ON p."authorId"=u.id GROUP BY u.id` })
class UV {
  @ViewColumn() id!: number;
  @ViewColumn() name!: string;
  @ViewColumn() n!: string;
}
@ViewEntity({ materialized: true, expression: `SELECT count(*) AS n FROM "post"` })
class MV {
  @ViewColumn() n!: string;
}
(async () => {
  const ents = [User, Profile, Post, Tag, Cat, UV, MV];
  const ds = new DataSource({ type: 'postgres', url: U, entities: ents, synchronize: false });
  await step('init', async () => {
    await ds.initialize();
  });
  await step('sync', async () => {
    await ds.synchronize(true);
  });
  await step('sync2', async () => {
    const l = await ds.driver.createSchemaBuilder().log();
    return l.upQueries.map((q) => q.query);
  });
  const M = ds.manager;
  await step('save', async () => {
    const u = M.create(User, {
      name: 'Ada',
      email: 'a@x',
      age: 3,
      tags: ['x'],
      sa: ['p', 'q'],
      sj: { z: 1 },
      bal: '1.50',
      big: '9007199254740993',
      b: Buffer.from('hi'),
      d: '2024-02-29',
      t: '10:11:12',
      iv: '1 day 2 hours',
      ip: '10.0.0.1',
      tsv: "'fat' 'cat'",
      c: 'ab',
      f: 1.5,
      mon: '$12.50',
      bi: '1010',
      r: 2.5,
      roles: [Role.A, Role.U],
      posts: [
        { title: 'p1', rating: 1, tags: [{ label: 't1' }, { label: 't2' }] },
        { title: 'p2', rating: 5 },
      ],
      profile: { bio: 'b' },
    } as any);
    await M.save(u);
    return u.posts.map((p) => p.id);
  });
  const strip = (u: any) => {
    if (!u) return u;
    for (const k of ['ts', 'c1', 'u1', 'u']) delete u[k];
    if (u.profile) delete u.profile.id;
    return u;
  };
  await step('find', async () =>
    (
      await M.find(User, { relations: { posts: { tags: true }, profile: true }, order: { id: 'ASC', posts: { id: 'ASC', tags: { label: 'ASC' } } } })
    ).map(strip),
  );
  await step(
    'insert many',
    async () =>
      (
        await M.insert(User, [
          { name: 'B', email: 'b@x' },
          { name: 'C', email: 'c@x', age: 9, meta: { q: [1] } },
        ])
      ).identifiers,
  );
  await step('dup', () => M.insert(User, { name: 'B', email: 'b@x' }));
  await step('check', () => M.insert(User, { name: 'B2', age: -1 }));
  await step('null', () => M.insert(User, { email: 'n@x' } as any));
  await step('enum', () => M.insert(User, { name: 'q', role: 'zz' } as any));
  await step('too long', () => M.insert(User, { name: 'q'.repeat(50) }));
  await step('upsert', async () => {
    await M.upsert(
      User,
      [
        { email: 'b@x', name: 'BB', age: 1 },
        { email: 'd@x', name: 'D' },
      ],
      { conflictPaths: ['email'], skipUpdateIfNoValuesChanged: true },
    );
    return (await M.findBy(User, { email: In(['b@x', 'd@x']) })).map((u) => u.name).sort();
  });
  await step(
    'orIgnore',
    async () =>
      (
        await M.createQueryBuilder()
          .insert()
          .into(Tag)
          .values([{ label: 't1' }, { label: 't9' }])
          .orIgnore()
          .returning('*')
          .execute()
      ).raw,
  );
  await step(
    'orUpdate',
    async () =>
      (
        await M.createQueryBuilder()
          .insert()
          .into(User)
          .values({ name: 'E', email: 'd@x', age: 4 })
          .orUpdate(['name', 'age'], ['email'], { indexPredicate: undefined as any })
          .returning(['id', 'name'])
          .execute()
      ).raw,
  );
  await step('find ops', async () => [
    (await M.findBy(User, { name: ILike('a%') })).length,
    (await M.findBy(User, { tags: ArrayContains(['x']) })).length,
    (await M.findBy(User, { meta: JsonContains({ a: 1 }) })).length,
    (await M.findBy(User, { age: Between(1, 9), email: Not(IsNull()) })).length,
    (await M.findBy(User, { age: Raw((a) => `${a} > :x`, { x: 2 }) })).length,
  ]);
  await step('pagination', async () => {
    const [r, n] = await M.findAndCount(User, { relations: { posts: true }, take: 2, skip: 1, order: { id: 'ASC' } });
    return [r.length, n];
  });
  await step('qb', () =>
    M.createQueryBuilder(User, 'u')
      .leftJoin('u.posts', 'p')
      .select('u.id', 'id')
      .addSelect('count(p.id)', 'n')
      .addSelect('json_agg(p.title ORDER BY p.id)', 'ts')
      .groupBy('u.id')
      .having('count(p.id)>=0')
      .orderBy('u.id')
      .getRawMany(),
  );
  await step('qb distinctOn', () =>
    M.createQueryBuilder(Post, 'p').distinctOn(['p.authorId']).orderBy('p.authorId').addOrderBy('p.id', 'DESC', 'NULLS LAST').getMany(),
  );
  await step('cte', () =>
    M.createQueryBuilder().addCommonTableExpression('SELECT 1 AS x UNION ALL SELECT 2', 'c').select('x').from('c', 'c').orderBy('x').getRawMany(),
  );
  await step('lock', () =>
    ds.transaction(
      'SERIALIZABLE',
      async (m) => (await m.find(User, { lock: { mode: 'pessimistic_write', onLocked: 'skip_locked' }, order: { id: 'ASC' } })).length,
    ),
  );
  await step('lock2', () =>
    ds.transaction(
      async (m) =>
        (await m.find(User, { lock: { mode: 'for_no_key_update', onLocked: 'nowait', tables: ['user'] }, relations: { posts: true } })).length,
    ),
  );
  await step('lock3', () => ds.transaction(async (m) => (await m.find(User, { lock: { mode: 'pessimistic_read' } })).length));
  await step('nested tx', () =>
    ds.transaction(async (m) => {
      await m.insert(Tag, { label: 'n1' });
      try {
        await m.transaction(async (m2) => {
          await m2.insert(Tag, { label: 'n2' });
          throw new Error('x');
        });
      } catch {}
      return (await m.find(Tag, { order: { label: 'ASC' } })).map((t) => t.label);
    }),
  );
  await step('softDelete', async () => {
    await M.softDelete(User, { email: 'c@x' });
    const a = await M.count(User);
    await M.restore(User, { email: 'c@x' });
    return [a, await M.count(User)];
  });
  await step('increment', async () => {
    await M.increment(User, { id: 1 }, 'age', 5);
    return (await M.findOneByOrFail(User, { id: 1 })).age;
  });
  await step('version', async () => {
    const u = await M.findOneByOrFail(User, { id: 1 });
    u.age = 1;
    await M.save(u);
    return u.v;
  });
  await step(
    'update returning',
    async () =>
      (
        await M.createQueryBuilder()
          .update(User)
          .set({ age: () => 'age+1' })
          .where('id=:i', { i: 1 })
          .returning(['id', 'age'])
          .execute()
      ).raw,
  );
  await step('delete', async () => (await M.createQueryBuilder().delete().from(Tag).where('label=:l', { l: 'n1' }).returning('*').execute()).raw);
  await step('tree', async () => {
    const r = M.getTreeRepository(Cat);
    const a = await r.save(M.create(Cat, { name: 'a' }));
    const b = await r.save(M.create(Cat, { name: 'b', parent: a }));
    await r.save(M.create(Cat, { name: 'c', parent: b }));
    return [await r.findTrees(), await r.countDescendants(a), (await r.findAncestors(b)).length];
  });
  await step('view', () => M.find(UV, { order: { id: 'ASC' } }));
  await step('mview', async () => {
    await ds.query('REFRESH MATERIALIZED VIEW mv');
    return M.find(MV);
  });
  await step('stream', async () => {
    const s = await M.createQueryBuilder(User, 'u').stream();
    let n = 0;
    for await (const _ of s) n++;
    return n;
  });
  await step('exist', async () => [await M.existsBy(User, { id: 1 }), await M.sum(User, 'age'), await M.maximum(User, 'age')]);
  const q = ds.createQueryRunner();
  await step('getTable', async () => {
    const t = await q.getTable('user');
    return {
      c: t!.columns.map((c) => [
        c.name,
        c.type,
        c.length,
        c.precision,
        c.scale,
        c.isNullable,
        c.default,
        c.isGenerated,
        c.generationStrategy,
        c.isArray,
        c.enum,
        c.enumName,
        c.comment,
        c.isUnique,
        c.isPrimary,
        c.generatedType,
        c.asExpression,
        c.generatedIdentity,
      ]),
      i: t!.indices.map((i) => [i.name, [...i.columnNames].sort(), i.isUnique, i.where, i.isSpatial]).sort(),
      f: t!.foreignKeys.length,
      ch: t!.checks.map((c) => [c.name, c.expression]),
      u: t!.uniques.map((u) => [u.name, [...u.columnNames].sort()]).sort(),
      co: t!.comment,
    };
  });
  await step('getTable post', async () => {
    const t = await q.getTable('post');
    return {
      c: t!.columns.map((c) => [c.name, c.type, c.isGenerated, c.generationStrategy, c.generatedIdentity, c.default]),
      f: t!.foreignKeys
        .map((f) => [f.name, f.columnNames, f.referencedTableName, f.referencedColumnNames, f.onDelete, f.onUpdate, f.deferrable])
        .sort(),
    };
  });
  await step('getViews', async () => (await q.getViews([])).map((v) => [v.name, v.materialized]).sort());
  await step('getDatabases', () => q.getSchemas().catch((e: any) => String(e)));
  await step('hasDb', () => q.hasDatabase('postgres'));
  await step('cur', async () => [await q.getCurrentDatabase(), await q.getCurrentSchema()]);
  await step('ddl create', async () => {
    await q.createTable(
      new Table({
        name: 'dt',
        columns: [
          { name: 'id', type: 'int', isPrimary: true, isGenerated: true, generationStrategy: 'increment' },
          { name: 'n', type: 'varchar', length: '10', isNullable: true },
          { name: 'e', type: 'enum', enum: ['a', 'b'], isNullable: true },
          { name: 'uid', type: 'int', isNullable: true },
        ],
        comment: 'cc',
      }),
      true,
    );
  });
  await step('ddl add', async () => {
    await q.addColumn('dt', new TableColumn({ name: 'x', type: 'numeric', precision: 5, scale: 1, isNullable: true, default: '1.5', comment: 'cx' }));
    await q.createIndex('dt', new TableIndex({ name: 'dtx', columnNames: ['n'], where: 'n is not null', isUnique: true }));
    await q.createForeignKey(
      'dt',
      new TableForeignKey({ columnNames: ['uid'], referencedTableName: 'user', referencedColumnNames: ['id'], onDelete: 'SET NULL' }),
    );
    await q.createCheckConstraint('dt', new TableCheck({ name: 'ck', expression: 'x>0' }));
    await q.createUniqueConstraint('dt', new TableUnique({ name: 'uu', columnNames: ['n', 'x'] }));
  });
  await step('ddl change', async () => {
    await q.changeColumn('dt', 'n', new TableColumn({ name: 'nn', type: 'text', isNullable: false, default: "'q'" }));
  });
  await step('ddl enum change', async () => {
    await q.changeColumn('dt', 'e', new TableColumn({ name: 'e', type: 'enum', enum: ['a', 'b', 'c'], isNullable: true }));
  });
  await step('ddl rename', async () => {
    await q.renameTable('dt', 'dt2');
  });
  await step('ddl drop col', async () => {
    await q.dropColumn('dt2', 'x');
  });
  await step('ddl drop', async () => {
    await q.dropTable('dt2', true);
  });
  await step('clearTable', async () => {
    await q.clearTable('profile');
  });
  await step('schema', async () => {
    await q.createSchema('tsch', true);
    await q.dropSchema('tsch', true, true);
  });
  await q.release();
  // migrations
  class M1 {
    name = 'M11700000000001';
    async up(q: any) {
      await q.query('create table mm(a int)');
      await q.query("comment on table mm is 'x'");
    }
    async down(q: any) {
      await q.query('drop table mm');
    }
  }
  const d2 = new DataSource({
    type: 'postgres',
    url: U,
    entities: ents,
    migrations: [M1 as any],
    schema: 'public',
    applicationName: 'tt',
    extra: { max: 2 },
    uuidExtension: 'pgcrypto',
  });
  await step('init2', async () => {
    await d2.initialize();
  });
  await step('show', () => d2.showMigrations());
  await step('run', async () => (await d2.runMigrations({ transaction: 'each' })).map((m) => m.name));
  await step('undo', async () => {
    await d2.undoLastMigration();
  });
  await step('drop db', async () => {
    await d2.dropDatabase();
  });
  await d2.destroy();
  await ds.destroy();
})();
