"""Peewee: tables, queries, migrations and reflection."""

import datetime
from step import PORT, step
from peewee import *
from playhouse.postgres_ext import *
from playhouse.migrate import *
from playhouse.reflection import Introspector, generate_models, print_model

db = PostgresqlExtDatabase("postgres", user="postgres", host="127.0.0.1", port=PORT)


class B(Model):
    class Meta:
        database = db


class U(B):
    name = CharField(max_length=20, index=True)
    email = TextField(unique=True, null=True)
    age = IntegerField(default=0, constraints=[Check("age>=0")])
    bal = DecimalField(10, 2, null=True)
    at = DateTimeField(default=datetime.datetime(2024, 1, 1))
    tags = ArrayField(TextField, null=True, index=False)
    js = BinaryJSONField(null=True, index=False)
    uid = UUIDField(null=True)
    iv = IntervalField(null=True)
    blob = BlobField(null=True)
    big = BigIntegerField(null=True)
    ok = BooleanField(default=True)
    f = DoubleField(null=True)
    d = DateField(null=True)
    t = TimeField(null=True)
    tz = DateTimeTZField(null=True)

    class Meta:
        table_name = "usr"
        indexes = ((("name", "age"), True),)


class Po(B):
    u = ForeignKeyField(U, backref="posts", on_delete="CASCADE", deferrable="INITIALLY DEFERRED")
    title = CharField()
    search = TSVectorField(null=True, index=False)


step("create", lambda: db.create_tables([U, Po]))
step("again", lambda: db.create_tables([U, Po]))
step(
    "ins",
    lambda: (
        U.create(
            name="A",
            email="a",
            bal="1.50",
            tags=["x", "y"],
            js={"a": {"b": [1, 2]}},
            blob=b"12",
            iv=datetime.timedelta(days=1, seconds=3),
            d=datetime.date(2024, 2, 29),
        ).id
    ),
)
step(
    "many",
    lambda: list(U.insert_many([{"name": "B", "email": "b"}, {"name": "C", "email": "c", "age": 3}]).returning(U.id, U.name).tuples().execute()),
)
step("dup", lambda: U.create(name="Z", email="a"))
step("chk", lambda: U.create(name="Z", age=-1))
step("nn", lambda: U.insert(name=None).execute())
step("fk", lambda: Po.create(u=99, title="x"))
step(
    "up",
    lambda: list(
        U.insert(name="B2", email="b")
        .on_conflict(conflict_target=[U.email], update={U.name: EXCLUDED.name + "!"}, where=(U.age < 5))
        .returning(U.name)
        .tuples()
        .execute()
    ),
)
step("ign", lambda: U.insert(name="B2", email="b").on_conflict_ignore().execute())
step("js", lambda: [u.name for u in U.select().where(U.js["a"]["b"][0] == 1)])
step("jc", lambda: [u.name for u in U.select().where(U.js.contains({"a": {"b": [1]}}))])
step("jk", lambda: [u.name for u in U.select().where(U.js.has_key("a"))])
step("arr", lambda: [u.name for u in U.select().where(U.tags.contains("x"))])
step("arr2", lambda: [u.tags[0] for u in U.select(U.tags).where(U.tags.contains_any("x", "q"))])
step("po", lambda: [Po.create(u=1, title=t, search=fn.to_tsvector("english", t + " running dogs")).id for t in "pq"])
step("fts", lambda: [p.title for p in Po.select().where(Po.search.match("dog & run")).order_by(Po.id)])
step("fts2", lambda: [p.title for p in Po.select().where(Match(Po.title, "p"))])
step(
    "join",
    lambda: list(
        U.select(U.name, fn.COUNT(Po.id).alias("n"), fn.array_agg(Po.title)).join(Po, JOIN.LEFT_OUTER).group_by(U.id).order_by(U.id).tuples()
    ),
)
step("win", lambda: list(Po.select(Po.id, fn.ROW_NUMBER().over(partition_by=[Po.u], order_by=[Po.id.desc()])).order_by(Po.id).tuples()))
step("cte", lambda: list(db.execute_sql("with recursive t(n) as (select 1 union all select n+1 from t where n<4) select sum(n) from t")))
step(
    "lat",
    lambda: list(
        U.select(U.name, SQL("x.title"))
        .join(Po.select(Po.title).where(Po.u == U.id).limit(1).alias("x"), JOIN.LEFT_LATERAL, on=True)
        .order_by(U.id)
        .tuples()
    ),
)


def tx():
    with db.atomic():
        U.create(name="T")
        try:
            with db.atomic():
                U.create(name="T2", email="a")
        except IntegrityError:
            pass
    return U.select().count()


step("tx", tx)
step("lock", lambda: [u.id for u in U.select().for_update("FOR NO KEY UPDATE SKIP LOCKED").order_by(U.id)])
step("ss", lambda: sum(1 for _ in ServerSide(U.select())))
step("upd", lambda: [x.age for x in U.update(age=U.age + 1).where(U.id == 1).returning(U.age).execute()])
step("del", lambda: U.delete().where(U.name == "T").execute())
step("tables", lambda: db.get_tables())
step("cols", lambda: db.get_columns("usr"))
step("idx", lambda: db.get_indexes("usr"))
step("pk", lambda: db.get_primary_keys("usr"))
step("fks", lambda: db.get_foreign_keys("po"))
step("views", lambda: db.get_views())
step("seq", lambda: db.sequence_exists("usr_id_seq"))
m = PostgresqlMigrator(db)
step(
    "mig",
    lambda: migrate(
        m.add_column("usr", "x", IntegerField(default=5)),
        m.rename_column("usr", "x", "y"),
        m.add_index("usr", ("y",), False),
        m.drop_not_null("usr", "y"),
        m.add_not_null("usr", "y"),
        m.alter_column_type("usr", "y", BigIntegerField()),
        m.add_column_default("usr", "y", 7),
        m.drop_column_default("usr", "y"),
        m.drop_index("usr", "usr_y"),
        m.drop_column("usr", "y"),
        m.rename_table("po", "po2"),
        m.add_constraint("usr", "ckk", Check("age<1000")),
        m.drop_constraint("usr", "ckk"),
    ),
)
step(
    "refl",
    lambda: sorted(
        (k, [(f.name, type(f).__name__) for f in v._meta.sorted_fields]) for k, v in Introspector.from_database(db).generate_models().items()
    ),
)
step("trunc", lambda: U.truncate_table(restart_identity=True, cascade=True))
step("drop", lambda: db.drop_tables([U], cascade=True))
