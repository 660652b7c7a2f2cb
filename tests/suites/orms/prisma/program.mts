import { PrismaClient } from './generated/client';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
// @ts-ignore: plain JavaScript
import { url as U, step } from '../step.cjs';
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: U }) });
const c = new pg.Client(U);
await c.connect();
await c.query(
  `CREATE TYPE "Role" AS ENUM ('ADMIN','USER'); CREATE TABLE "users" ("id" SERIAL NOT NULL,"uid" UUID NOT NULL DEFAULT gen_random_uuid(),"email" TEXT NOT NULL,"name" VARCHAR(50),"role" "Role" NOT NULL DEFAULT 'USER',"tags" TEXT[],"meta" JSONB NOT NULL DEFAULT '{}',"bal" DECIMAL(10,2),"big" BIGINT,"b" BYTEA,"f" DOUBLE PRECISION,"at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,CONSTRAINT "users_pkey" PRIMARY KEY ("id")); CREATE TABLE "Post" ("id" BIGSERIAL NOT NULL,"title" TEXT NOT NULL,"authorId" INTEGER NOT NULL,CONSTRAINT "Post_pkey" PRIMARY KEY ("id")); CREATE TABLE "Tag" ("label" TEXT NOT NULL, CONSTRAINT "Tag_pkey" PRIMARY KEY ("label")); CREATE TABLE "_PostToTag" ("A" BIGINT NOT NULL,"B" TEXT NOT NULL, CONSTRAINT "_PostToTag_AB_pkey" PRIMARY KEY ("A","B")); CREATE UNIQUE INDEX "users_email_key" ON "users"("email"); CREATE INDEX "users_name_role_idx" ON "users"("name","role"); CREATE UNIQUE INDEX "Post_title_authorId_key" ON "Post"("title","authorId"); CREATE INDEX "_PostToTag_B_index" ON "_PostToTag"("B"); ALTER TABLE "Post" ADD CONSTRAINT "Post_authorId_fkey" FOREIGN KEY ("authorId") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE; ALTER TABLE "_PostToTag" ADD CONSTRAINT "_PostToTag_A_fkey" FOREIGN KEY ("A") REFERENCES "Post"("id") ON DELETE CASCADE ON UPDATE CASCADE; ALTER TABLE "_PostToTag" ADD CONSTRAINT "_PostToTag_B_fkey" FOREIGN KEY ("B") REFERENCES "Tag"("label") ON DELETE CASCADE ON UPDATE CASCADE;`,
);
await c.end();
await step('create', () =>
  prisma.user.create({
    data: {
      email: 'a@x',
      name: 'A',
      role: 'ADMIN',
      tags: ['x', 'y'],
      meta: { a: 1, b: ['q'] },
      bal: '1.50',
      big: 9007199254740993n,
      b: new Uint8Array([1, 2]),
      f: 1.5,
      posts: { create: [{ title: 'p1', tags: { connectOrCreate: [{ where: { label: 't' }, create: { label: 't' } }] } }, { title: 'p2' }] },
    },
    include: { posts: { include: { tags: true } } },
  }),
);
await step('createMany', () =>
  prisma.user.createMany({ data: [{ email: 'b@x' }, { email: 'c@x', name: 'C' }, { email: 'a@x' }], skipDuplicates: true }),
);
await step('cmr', () => prisma.user.createManyAndReturn({ data: [{ email: 'd@x' }], select: { email: true, role: true } }));
await step('dup', () => prisma.user.create({ data: { email: 'a@x' } }));
await step('fk', () => prisma.post.create({ data: { title: 'x', authorId: 99 } }));
await step('nf', () => prisma.user.update({ where: { id: 99 }, data: { name: 'z' } }));
await step('long', () => prisma.user.create({ data: { email: 'l', name: 'x'.repeat(60) } }));
await step('find', () =>
  prisma.user.findMany({
    where: {
      OR: [{ email: { contains: 'A', mode: 'insensitive' } }, { tags: { has: 'x' } }],
      meta: { path: ['a'], equals: 1 },
      posts: { some: { title: { startsWith: 'p' } } },
    },
    include: { posts: { orderBy: { id: 'asc' }, take: 1 }, _count: { select: { posts: true } } },
    orderBy: { id: 'asc' },
  }),
);
await step('json', () => prisma.user.findMany({ where: { meta: { path: ['b'], array_contains: ['q'] } }, select: { id: true } }));
await step('none', () => prisma.user.count({ where: { posts: { none: {} } } }));
await step('hasEvery', () => prisma.user.count({ where: { tags: { hasEvery: ['x', 'y'] } } }));
await step('isEmpty', () => prisma.user.count({ where: { tags: { isEmpty: true } } }));
await step('search in', () =>
  prisma.user.findMany({
    where: { id: { in: [1, 2, 3] } },
    select: { id: true },
    orderBy: [{ name: { sort: 'desc', nulls: 'last' } }, { id: 'asc' }],
  }),
);
await step('upsert', () =>
  prisma.user.upsert({ where: { email: 'b@x' }, update: { name: 'BB' }, create: { email: 'b@x' }, select: { id: true, name: true } }),
);
await step('updMany', () => prisma.user.updateMany({ where: { name: null }, data: { f: { increment: 1 } } }));
await step('updManyRet', () =>
  prisma.user.updateManyAndReturn({ where: { id: 1 }, data: { tags: { push: 'z' }, bal: { multiply: 2 } }, select: { tags: true, bal: true } }),
);
await step('group', () =>
  prisma.user.groupBy({
    by: ['role'],
    _count: { _all: true },
    _avg: { bal: true },
    _max: { email: true },
    orderBy: { role: 'asc' },
    having: { id: { _count: { gt: 0 } } },
  }),
);
await step('agg', () => prisma.user.aggregate({ _sum: { bal: true, big: true }, _min: { at: false as any, email: true } }));
await step('distinct', () => prisma.user.findMany({ distinct: ['role'], select: { role: true }, orderBy: { role: 'asc' } }));
await step('cursor', () => prisma.user.findMany({ cursor: { id: 2 }, take: 2, skip: 1, orderBy: { id: 'asc' }, select: { email: true } }));
await step('tx', () => prisma.$transaction([prisma.user.count(), prisma.post.count()]));
await step('itx', () =>
  prisma.$transaction(
    async (t) => {
      await t.user.create({ data: { email: 't@x' } });
      throw new Error('back');
    },
    { isolationLevel: 'Serializable' },
  ),
);
await step('itx2', () =>
  prisma.$transaction(async (t) => {
    await t.tag.create({ data: { label: 'q' } });
    return t.tag.count();
  }),
);
await step(
  'raw',
  () =>
    prisma.$queryRaw`select ${1}::int a, ${'x'} b, now()>'2020-01-01' c, 1.5::numeric d, array[1,2] e, '{"a":1}'::jsonb f, 12::int8 g, '2024-01-01'::date h, '10:00'::time i`,
);
await step('rawerr', () => prisma.$queryRaw`select * from nope`);
await step('exec', () => prisma.$executeRaw`update users set name='q' where id=1`);
await step('rel', () => prisma.post.update({ where: { id: 1 }, data: { tags: { set: [{ label: 'q' }] } }, include: { tags: true } }));
await step('del', () => prisma.user.delete({ where: { id: 1 }, select: { id: true } }));
await step('cnt', () => prisma.post.count());
await prisma.$disconnect();
