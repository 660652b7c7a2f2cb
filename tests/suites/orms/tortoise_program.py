"""Tortoise ORM over asyncpg."""

import sys
from step import URL, failed, ok
import asyncio
from tortoise import Tortoise, fields, models
from tortoise.contrib.postgres.fields import ArrayField
from tortoise.contrib.postgres.indexes import HashIndex
from tortoise.functions import Count
from tortoise.transactions import in_transaction
from tortoise.expressions import F, Q
import types

mod = types.ModuleType("tm")


class U(models.Model):
    id = fields.IntField(primary_key=True)
    uid = fields.UUIDField(null=True)
    name = fields.CharField(50, db_index=True, description="nm")
    email = fields.CharField(99, unique=True, null=True)
    js = fields.JSONField(null=True)
    tags = ArrayField(element_type="text", null=True)
    bal = fields.DecimalField(10, 2, null=True)
    at = fields.DatetimeField(auto_now_add=True)
    d = fields.DateField(null=True)
    td = fields.TimeDeltaField(null=True)
    b = fields.BinaryField(null=True)

    class Meta:
        table = "tu"
        table_description = "users"
        unique_together = (("name", "email"),)


class T(models.Model):
    id = fields.IntField(primary_key=True)
    label = fields.TextField()
    us = fields.ManyToManyField("models.U", related_name="tags_")
    owner = fields.ForeignKeyField("models.U", related_name="own", on_delete=fields.CASCADE, null=True)


U.__module__ = T.__module__ = "tm"
mod.U = U
mod.T = T
sys.modules["tm"] = mod


async def main():
    async def st(n, f):
        try:
            v = await f()
            ok(n, v)
        except Exception as e:
            failed(n, e)

    async def init():
        await Tortoise.init(db_url=URL.replace("postgresql", "asyncpg"), modules={"models": ["tm"]})
        await Tortoise.generate_schemas()

    await st("init", init)
    await st("safe", lambda: Tortoise.generate_schemas(safe=True))

    async def a():
        u = await U.create(name="A", email="a", js={"a": [1]}, tags=["x"], bal="1.5", b=b"q")
        t = await T.create(label="l", owner=u)
        await t.us.add(u)
        return u.id

    await st("c", a)
    await st("bulk", lambda: U.bulk_create([U(name="B", email="b"), U(name="A", email="a")], ignore_conflicts=True))
    await st("bulkup", lambda: U.bulk_create([U(name="BB", email="b")], update_fields=["name"], on_conflict=["email"]))
    await st("dup", lambda: U.create(name="z", email="a"))
    await st("js", lambda: U.filter(js__contains={"a": [1]}).count())
    await st("jf", lambda: U.filter(js__filter={"a__0": 1}).count())
    await st("ic", lambda: U.filter(name__icontains="a").values("name"))
    await st("ann", lambda: U.annotate(n=Count("own")).order_by("id").values("name", "n"))
    await st("pf", lambda: U.all().prefetch_related("own", "tags_").order_by("id").values("name"))

    async def tx():
        try:
            async with in_transaction() as c:
                await U.create(name="R", using_db=c)
                raise ValueError
        except ValueError:
            return await U.all().count()

    await st("tx", tx)
    await st("fu", lambda: U.filter(id=1).select_for_update(skip_locked=True, of=("tu",)).values("id"))
    await st("upd", lambda: U.filter(id=1).update(name=F("name")))
    await st("goc", lambda: U.get_or_create(name="G", email="g"))
    await st("uoc", lambda: U.update_or_create(defaults={"name": "GG"}, email="g"))
    await st("raw", lambda: U.raw("select * from tu where id=1"))
    await st("rx", lambda: U.filter(name__posix_regex="^A").count())
    await st("search", lambda: U.filter(name__search="a").count())
    await st("del", lambda: U.filter(email="b").delete())
    await Tortoise.close_connections()


asyncio.run(main())
