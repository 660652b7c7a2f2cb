const { U, step } = require('./step.cjs');
const { Sequelize, DataTypes, Op, QueryTypes, Transaction, fn, col, literal } = require('sequelize');
(async () => {
  const s = new Sequelize(U, { logging: false, pool: { max: 5 } });
  await step('auth', () => s.authenticate());
  await step('version', async () => typeof (await s.databaseVersion()));
  const User = s.define(
    'User',
    {
      id: { type: DataTypes.INTEGER, autoIncrement: true, primaryKey: true },
      uid: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 },
      name: { type: DataTypes.STRING(50), allowNull: false },
      email: { type: DataTypes.STRING, unique: true },
      age: DataTypes.INTEGER,
      role: { type: DataTypes.ENUM('admin', 'user', 'guest'), defaultValue: 'user' },
      tags: DataTypes.ARRAY(DataTypes.STRING),
      meta: DataTypes.JSONB,
      js: DataTypes.JSON,
      bal: DataTypes.DECIMAL(10, 2),
      big: DataTypes.BIGINT,
      b: DataTypes.BLOB,
      d: DataTypes.DATEONLY,
      t: DataTypes.TIME,
      f: DataTypes.FLOAT,
      dbl: DataTypes.DOUBLE,
      r: DataTypes.REAL,
      ok: DataTypes.BOOLEAN,
      txt: DataTypes.TEXT,
      ip: DataTypes.INET,
      ci: DataTypes.CIDR,
      mac: DataTypes.MACADDR,
      tsv: DataTypes.TSVECTOR,
    },
    {
      comment: 'people',
      indexes: [
        { fields: ['name'] },
        { unique: true, fields: ['name', 'age'], name: 'nm_age' },
        { fields: [fn('lower', col('name'))], name: 'lower_nm' },
        { fields: ['age'], where: { age: { [Op.gt]: 18 } }, name: 'adult' },
      ],
    },
  );
  const Post = s.define('Post', { title: DataTypes.STRING, body: DataTypes.TEXT, rating: DataTypes.INTEGER }, { paranoid: true });
  const Tag = s.define('Tag', { label: { type: DataTypes.STRING, unique: true } }, { timestamps: false });
  User.hasMany(Post, { as: 'posts', onDelete: 'CASCADE', foreignKey: 'authorId' });
  Post.belongsTo(User, { as: 'author', foreignKey: 'authorId' });
  Post.belongsToMany(Tag, { through: 'PostTags' });
  Tag.belongsToMany(Post, { through: 'PostTags' });
  await step('sync force', async () => {
    await s.sync({ force: true });
  });
  await step('sync again', async () => {
    await s.sync();
  });
  await step('sync alter', async () => {
    await s.sync({ alter: true });
  });
  await step('sync alter 2', async () => {
    await s.sync({ alter: true });
  });
  const q = s.getQueryInterface();
  await step('tables', async () => (await q.showAllTables()).sort());
  await step('describe Users', () => q.describeTable('Users'));
  await step('describe PostTags', () => q.describeTable('PostTags'));
  await step('indexes', () => q.showIndex('Users'));
  await step('constraints', async () =>
    (await q.showConstraint('Posts')).map((c) => `${c.constraintName} ${c.constraintType} ${c.isDeferrable}`).sort(),
  );
  await step('fks', () => q.getForeignKeyReferencesForTable('Posts'));
  await step('fks2', () => q.getForeignKeysForTables(['Posts', 'PostTags']));
  await step('schemas', async () => (await q.showAllSchemas()).sort());
  const T = '2024-01-02T03:04:05.678Z';
  const strip = (m) => {
    const o = m?.toJSON ? m.toJSON() : m;
    if (o) {
      delete o.uid;
      delete o.createdAt;
      delete o.updatedAt;
    }
    return o;
  };
  await step('create', async () =>
    strip(
      await User.create({
        name: 'Ada',
        email: 'a@x',
        age: 30,
        tags: ['x', 'y'],
        meta: { a: 1, n: { b: [1, 2] } },
        js: { z: 1 },
        bal: '12.50',
        big: '9007199254740993',
        b: Buffer.from('hi'),
        d: '2024-02-29',
        t: '10:11:12',
        f: 1.5,
        dbl: 2.25,
        r: 3.5,
        ok: true,
        txt: "it's",
        ip: '10.0.0.1',
        ci: '10.0.0.0/8',
        mac: '08:00:2b:01:02:03',
      }),
    ),
  );
  await step('bulk', async () =>
    (
      await User.bulkCreate([
        { name: 'Bob', email: 'b@x', age: 17 },
        { name: 'Cy', email: 'c@x', age: 40, role: 'admin', meta: { a: 2 } },
      ])
    ).map(strip),
  );
  await step('dup', () => User.create({ name: 'Dup', email: 'a@x' }));
  await step('null', () => User.create({ name: null }, { validate: false }));
  await step('badenum', () => User.create({ name: 'E', role: 'nope' }, { validate: false }));
  await step('long', () => User.create({ name: 'x'.repeat(60) }));
  await step('upsert', async () => {
    const [m, c] = await User.upsert({ id: 1, name: 'Ada2', email: 'a@x', age: 31 });
    return [m.name, c];
  });
  await step('bulk upsert', async () =>
    (await User.bulkCreate([{ email: 'b@x', name: 'Bobby', age: 18 }], { updateOnDuplicate: ['name', 'age'], conflictAttributes: ['email'] })).map(
      (m) => m.name,
    ),
  );
  await step('bulk ignore', async () => (await User.bulkCreate([{ email: 'b@x', name: 'Bobby', age: 18 }], { ignoreDuplicates: true })).length);
  await step('findOrCreate', async () => {
    const [m, c] = await User.findOrCreate({ where: { email: 'zz@x' }, defaults: { name: 'Zed', age: 9 } });
    return [m.name, c];
  });
  await step('findOrCreate2', async () => {
    const [m, c] = await User.findOrCreate({ where: { email: 'zz@x' }, defaults: { name: 'Zed', age: 9 } });
    return [m.name, c];
  });
  await step('json where', async () => (await User.findAll({ where: { 'meta.n.b[0]': 1 } })).length);
  await step('json where2', async () => (await User.findAll({ where: { meta: { a: 2 } } })).map((u) => u.name));
  await step('json contains', async () => (await User.findAll({ where: { meta: { [Op.contains]: { a: 1 } } } })).map((u) => u.name));
  await step('array overlap', async () => (await User.findAll({ where: { tags: { [Op.overlap]: ['y'] } } })).map((u) => u.name));
  await step('array contains', async () => (await User.findAll({ where: { tags: { [Op.contains]: ['x', 'y'] } } })).map((u) => u.name));
  await step('any', async () =>
    (await User.findAll({ where: { age: { [Op.in]: [30, 31, 40] }, name: { [Op.iLike]: '%A%' } }, order: [['id', 'DESC NULLS LAST']] })).map(
      (u) => u.name,
    ),
  );
  await step('regexp', async () => (await User.findAll({ where: { name: { [Op.iRegexp]: '^a' } } })).map((u) => u.name));
  await step('posts', async () => {
    const p = await Post.bulkCreate([
      { title: 'p1', authorId: 1, rating: 3 },
      { title: 'p2', authorId: 1, rating: 5 },
      { title: 'p3', authorId: 2, rating: 1 },
    ]);
    const t = await Tag.bulkCreate([{ label: 'a' }, { label: 'b' }]);
    await p[0].setTags(t);
    await p[1].addTag(t[0]);
    return p.length;
  });
  await step('include', async () =>
    (
      await User.findAll({
        include: [{ model: Post, as: 'posts', include: [Tag] }],
        order: ['id', [{ model: Post, as: 'posts' }, 'id'], [{ model: Post, as: 'posts' }, Tag, 'id']],
      })
    ).map((u) => [u.name, u.posts.map((p) => [p.title, p.Tags.map((t) => t.label)])]),
  );
  await step(
    'include limit',
    async () =>
      (
        await User.findAndCountAll({
          include: [{ model: Post, as: 'posts', where: { rating: { [Op.gte]: 3 } } }],
          limit: 1,
          order: ['id'],
          distinct: true,
        })
      ).count,
  );
  await step('separate', async () =>
    (await User.findAll({ include: [{ model: Post, as: 'posts', separate: true, limit: 1, order: ['id'] }], order: ['id'] })).map(
      (u) => u.posts.length,
    ),
  );
  await step('agg', () =>
    Post.findAll({
      attributes: ['authorId', [fn('COUNT', col('id')), 'n'], [fn('AVG', col('rating')), 'avg']],
      group: ['authorId'],
      having: literal('COUNT("id")>0'),
      order: ['authorId'],
      raw: true,
    }),
  );
  await step('sum', () => Post.sum('rating'));
  await step('max', () => Post.max('rating'));
  await step('count group', () => Post.count({ group: ['authorId'] }).then((r) => r.sort((a, b) => a.authorId - b.authorId)));
  await step('increment', () => User.increment('age', { by: 2, where: { id: 1 } }).then((r) => r[0][0]?.length));
  await step('update returning', async () => {
    const [n, r] = await User.update({ ok: false }, { where: { id: [1, 2] }, returning: true });
    return [n, r.map((x) => x.id).sort()];
  });
  await step('destroy paranoid', () => Post.destroy({ where: { title: 'p3' } }));
  await step('restore', async () => {
    await Post.restore({ where: { title: 'p3' } });
    return Post.count();
  });
  await step('tx', async () => {
    try {
      await s.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE }, async (t) => {
        await User.create({ name: 'T', email: 't@x' }, { transaction: t });
        throw new Error('back');
      });
    } catch (e) {
      return [e.message, await User.count({ where: { email: 't@x' } })];
    }
  });
  await step('savepoint', async () =>
    s.transaction(async (t) => {
      await Tag.create({ label: 'sp' }, { transaction: t });
      try {
        await s.transaction({ transaction: t }, async (t2) => {
          await Tag.create({ label: 'sp' }, { transaction: t2 });
        });
      } catch (e) {}
      return Tag.count({ transaction: t });
    }),
  );
  await step('lock', async () =>
    s.transaction(async (t) => (await User.findAll({ lock: t.LOCK.UPDATE, skipLocked: true, transaction: t, order: ['id'], limit: 1 })).length),
  );
  await step('lock of', async () =>
    s.transaction(
      async (t) =>
        (await User.findAll({ lock: { level: t.LOCK.KEY_SHARE, of: User }, include: [{ model: Post, as: 'posts' }], transaction: t })).length,
    ),
  );
  await step('deferrable tx', async () =>
    s.transaction({ deferrable: Sequelize.Deferrable.SET_DEFERRED(), type: Transaction.TYPES.DEFERRED }, async (t) => 1),
  );
  await step('raw repl', () =>
    s.query('SELECT :a::int+1 AS x, ARRAY[:l]::text[] AS l', { replacements: { a: 4, l: ['p', 'q'] }, type: QueryTypes.SELECT }),
  );
  await step('raw bind', () => s.query('SELECT $1::int+1 AS x, $2::text AS y', { bind: [4, 'z'], type: QueryTypes.SELECT }));
  await step('fk', () => Post.create({ title: 'x', authorId: 999 }));
  await step('addColumn', () => q.addColumn('Users', 'nick', { type: DataTypes.STRING, allowNull: true, comment: 'nn' }).then(() => 1));
  await step('changeColumn', () => q.changeColumn('Users', 'nick', { type: DataTypes.TEXT, allowNull: false, defaultValue: 'q' }).then(() => 1));
  await step('changeColumn enum', () =>
    q.changeColumn('Users', 'role', { type: DataTypes.ENUM('admin', 'user', 'guest', 'root'), defaultValue: 'guest' }).then(() => 1),
  );
  await step('change int->str', () => q.changeColumn('Users', 'age', { type: DataTypes.STRING }).then(() => 1));
  await step('renameColumn', () => q.renameColumn('Users', 'nick', 'nick2').then(() => 1));
  await step('addIndex', () => q.addIndex('Users', { fields: ['nick2'], concurrently: true, name: 'ni' }).then(() => 1));
  await step('removeIndex', () => q.removeIndex('Users', 'ni', { concurrently: true }).then(() => 1));
  await step('addConstraint check', () =>
    q.addConstraint('Posts', { type: 'check', fields: ['rating'], where: { rating: { [Op.lt]: 10 } }, name: 'rt' }).then(() => 1),
  );
  await step('check viol', () => Post.create({ title: 'x', rating: 11 }));
  await step('addConstraint uq', () =>
    q
      .addConstraint('Posts', { type: 'unique', fields: ['title', 'authorId'], name: 'uq', deferrable: Sequelize.Deferrable.INITIALLY_DEFERRED })
      .then(() => 1),
  );
  await step('addConstraint fk', () =>
    q
      .addConstraint('Posts', {
        type: 'foreign key',
        fields: ['authorId'],
        name: 'fk9',
        references: { table: 'Users', field: 'id' },
        onDelete: 'set null',
        onUpdate: 'cascade',
      })
      .then(() => 1),
  );
  await step('removeConstraint', () => q.removeConstraint('Posts', 'rt').then(() => 1));
  await step('removeColumn', () => q.removeColumn('Users', 'nick2').then(() => 1));
  await step('renameTable', () => q.renameTable('Tags', 'Labels').then(() => 1));
  await step('describe Users', () => q.describeTable('Users'));
  await step('bulkDelete', () => q.bulkDelete('Posts', { title: 'p1' }).then(() => 1));
  await step('createSchema', () => q.createSchema('zs').then(() => 1));
  await step('schemas', async () => (await q.showAllSchemas()).sort());
  await step('dropSchema', () => q.dropSchema('zs').then(() => 1));
  await step('createFunction', () =>
    q.createFunction('fff', [{ type: 'integer', name: 'p' }], 'integer', 'plpgsql', 'RETURN p+1;', []).then(() => 1),
  );
  await step('truncate', () => User.truncate({ cascade: true, restartIdentity: true }));
  await step('drop', () => s.drop({ cascade: true }).then(() => 1));
  await step('dropAllEnums', () => q.dropAllEnums().then(() => 1));
  await s.close();
})();
