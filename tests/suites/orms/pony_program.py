"""Pony."""

import datetime, decimal
from step import PORT, failed, ok, step as run
from pony.orm import *
import logging

db = Database()


class U(db.Entity):
    _table_ = "pu"
    name = Required(str, 50)
    email = Optional(str, unique=True, nullable=True)
    age = Optional(int, index=True)
    js = Optional(Json)
    arr = Optional(StrArray, index=False)
    bal = Optional(decimal.Decimal, precision=10, scale=2)
    b = Optional(bytes)
    at = Optional(datetime.datetime)
    posts = Set("Q")
    composite_key(name, age)


class Q(db.Entity):
    title = Required(LongStr)
    u = Required(U)
    tags = Set("W")


class W(db.Entity):
    label = PrimaryKey(str)
    qs = Set(Q)


run("bind", lambda: db.bind("postgres", user="postgres", host="127.0.0.1", port=PORT, database="postgres"))
run("map", lambda: db.generate_mapping(create_tables=True))


@db_session
def a():
    u = U(name="A", email="a", js={"a": [1, {"b": 2}]}, arr=["x"], bal=decimal.Decimal("1.5"))
    q = Q(title="t", u=u, tags=[W(label="w")])
    flush()
    return u.id


run("c", a)


@db_session
def b():
    return (
        select(u.name for u in U if u.js["a"][1]["b"] == 2)[:],
        select((u.name, count(u.posts)) for u in U)[:],
        select(u for u in U if "x" in u.arr).count(),
        select(u for u in U).for_update(skip_locked=True)[:].to_list().__len__(),
        [x for x in select(u.name for u in U if u.name.startswith("A")).page(1, 5)],
    )


run("q", b)


@db_session
def c():
    U(name="B", email="a")


run("dup", c)
run("drop", lambda: db.drop_all_tables(with_all_data=True))
