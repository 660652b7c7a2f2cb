"""The model of which Alembic makes migrations, in two versions, and one of SQLModel."""

import os, uuid, datetime, decimal, enum
from typing import Optional, List
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg


class E(enum.Enum):
    a = "a"
    b = "b"


def metadata():
    v = os.environ.get("MODEL_VERSION", "1")
    m = sa.MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    sa.Table(
        "acct",
        m,
        sa.Column("id", sa.Integer, sa.Identity(always=True), primary_key=True),
        sa.Column("uid", pg.UUID, server_default=sa.text("gen_random_uuid()")),
        sa.Column("name", sa.String(30 if v == "1" else 60), nullable=(v == "1"), index=True, comment="c" + v),
        sa.Column("e", sa.Enum(E, name="e_t")),
        sa.Column("j", pg.JSONB, server_default="{}"),
        sa.Column("t", pg.ARRAY(sa.Text)),
        sa.Column("n", sa.Numeric(10, 2 if v == "1" else 3)),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now()),
        sa.Column("g", sa.Integer, sa.Computed("id*2")),
        sa.CheckConstraint("n>0", name="npos"),
        *([sa.Column("extra", pg.INTERVAL), sa.UniqueConstraint("name", "e")] if v == "2" else []),
        comment="tab " + v,
    )
    sa.Table(
        "post",
        m,
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("a", sa.ForeignKey("acct.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED")),
        sa.Column("ts", pg.TSVECTOR),
        sa.Index("ix_lower", sa.text("lower(title)")),
        sa.Column("title", sa.Text),
        sa.Index("px", "title", "a", unique=True, postgresql_where=sa.text("title <> ''"), postgresql_nulls_not_distinct=(v == "2")),
        schema=None,
    )
    if v == "2":
        sa.Table(
            "newt",
            m,
            sa.Column("id", sa.SmallInteger, primary_key=True),
            sa.Column("b", sa.LargeBinary),
            sa.Column("d", sa.Date, server_default=sa.text("CURRENT_DATE")),
        )
    return m


def work(url):
    from sqlmodel import SQLModel, Field, Relationship, Session, create_engine, select

    class Team(SQLModel, table=True):
        id: Optional[int] = Field(default=None, primary_key=True)
        name: str = Field(index=True)
        heroes: List["Hero"] = Relationship(back_populates="team")

    class Hero(SQLModel, table=True):
        id: Optional[int] = Field(default=None, primary_key=True)
        name: str
        age: Optional[int] = None
        team_id: Optional[int] = Field(default=None, foreign_key="team.id")
        team: Optional[Team] = Relationship(back_populates="heroes")

    e = create_engine(url.replace("postgresql", "postgresql+psycopg"))
    SQLModel.metadata.create_all(e)
    with Session(e) as s:
        s.add(Hero(name="h", age=3, team=Team(name="t")))
        s.commit()
        r = [(h.name, h.team.name) for h in s.exec(select(Hero))]
    SQLModel.metadata.drop_all(e)
    return r
