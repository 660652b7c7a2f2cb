"""Tables, data and transactions like TPC-C's, for pgbench: the five kinds in their shares, a command for each statement, no think times.

Not TPC-C: nothing is audited, terminals do not wait, and an order's items come in ascending order, each from a fifteenth of them, so that
two orders lock stock in the same order and none has to be run again. Figures are comparable with each other only.
"""

from __future__ import annotations

from pathlib import Path

from harness import Server

ITEMS = 100_000
DISTRICTS = 10
CUSTOMERS = 3_000
# The oldest orders of a district are delivered, the rest are not.
ORDERS, DELIVERED = 3_000, 2_100
LINES_MIN, LINES_MAX = 5, 15

# A schema of their own: TPC-H's tables have some of the same names.
SCHEMA = "tpcc"
ENVIRONMENT = {"PGOPTIONS": f"-c search_path={SCHEMA}"}

TABLES = (
    "CREATE TABLE warehouse (w_id int PRIMARY KEY, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), w_city varchar(20), w_state char(2),"
    " w_zip char(9), w_tax numeric(4,4), w_ytd numeric(12,2))",
    "CREATE TABLE district (d_w_id int, d_id int, d_name varchar(10), d_street_1 varchar(20), d_street_2 varchar(20), d_city varchar(20), d_state char(2),"
    " d_zip char(9), d_tax numeric(4,4), d_ytd numeric(12,2), d_next_o_id int, PRIMARY KEY (d_w_id, d_id))",
    "CREATE TABLE customer (c_w_id int, c_d_id int, c_id int, c_first varchar(16), c_middle char(2), c_last varchar(16), c_street_1 varchar(20),"
    " c_street_2 varchar(20), c_city varchar(20), c_state char(2), c_zip char(9), c_phone char(16), c_since timestamp, c_credit char(2),"
    " c_credit_lim numeric(12,2), c_discount numeric(4,4), c_balance numeric(12,2), c_ytd_payment numeric(12,2), c_payment_cnt int, c_delivery_cnt int,"
    " c_data varchar(500), PRIMARY KEY (c_w_id, c_d_id, c_id))",
    "CREATE TABLE history (h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamp, h_amount numeric(6,2), h_data varchar(24))",
    "CREATE TABLE item (i_id int PRIMARY KEY, i_im_id int, i_name varchar(24), i_price numeric(5,2), i_data varchar(50))",
    "CREATE TABLE stock (s_w_id int, s_i_id int, s_quantity int, s_dist char(24)[], s_ytd int, s_order_cnt int, s_remote_cnt int, s_data varchar(50),"
    " PRIMARY KEY (s_w_id, s_i_id))",
    "CREATE TABLE orders (o_w_id int, o_d_id int, o_id int, o_c_id int, o_entry_d timestamp, o_carrier_id int, o_ol_cnt int, o_all_local int,"
    " PRIMARY KEY (o_w_id, o_d_id, o_id))",
    "CREATE TABLE new_order (no_w_id int, no_d_id int, no_o_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
    "CREATE TABLE order_line (ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id int, ol_supply_w_id int, ol_delivery_d timestamp,"
    " ol_quantity int, ol_amount numeric(6,2), ol_dist_info char(24), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
)
INDEXES = (
    "CREATE INDEX ON customer (c_w_id, c_d_id, c_last, c_first)",
    "CREATE INDEX ON orders (o_w_id, o_d_id, o_c_id, o_id)",
)
# A last name is three of these, one for each digit of a number.
SYLLABLES = "ARRAY['BAR','OUGHT','ABLE','PRI','PRES','ESE','ANTI','CALLY','ATION','EING']"


def last_name(number: str) -> str:
    """The SQL of a last name."""
    return f"({SYLLABLES})[{number} / 100 + 1] || ({SYLLABLES})[{number} / 10 % 10 + 1] || ({SYLLABLES})[{number} % 10 + 1]"


def fill(warehouse: int) -> list[str]:
    """The rows of one warehouse."""
    w = warehouse
    some = "((c * 7919 + d * 104729) % {})"
    places = "'Main', 'Second', 'Town', 'AA', '123411111'"
    return [
        f"INSERT INTO warehouse VALUES ({w}, 'W{w}', {places}, 0.1, 300000)",
        f"INSERT INTO district SELECT {w}, d, 'D' || d, {places}, 0.1, 30000, {ORDERS + 1} FROM generate_series(1, {DISTRICTS}) d",
        f"INSERT INTO customer SELECT {w}, d, c, 'First' || c, 'OE', {last_name(f'((c - 1) % 1000)')}, {places}, '0123456789012345', now(),"
        f" CASE WHEN c % 10 = 0 THEN 'BC' ELSE 'GC' END, 50000, (c % 50) / 100.0, -10, 10, 1, 0, repeat('data ', 80)"
        f" FROM generate_series(1, {DISTRICTS}) d, generate_series(1, {CUSTOMERS}) c",
        f"INSERT INTO history SELECT c, d, {w}, d, {w}, now(), 10, 'history' FROM generate_series(1, {DISTRICTS}) d, generate_series(1, {CUSTOMERS}) c",
        f"INSERT INTO stock SELECT {w}, i, 10 + i % 91, array_fill('distribution information'::char(24), ARRAY[{DISTRICTS}]), 0, 0, 0, 'stock of ' || i"
        f" FROM generate_series(1, {ITEMS}) i",
        f"INSERT INTO orders SELECT {w}, d, c, {some.format(CUSTOMERS)} + 1, now(), CASE WHEN c <= {DELIVERED} THEN 1 + c % 10 END,"
        f" {LINES_MIN} + {some.format(LINES_MAX - LINES_MIN + 1)}, 1 FROM generate_series(1, {DISTRICTS}) d, generate_series(1, {ORDERS}) c",
        f"INSERT INTO new_order SELECT {w}, d, o FROM generate_series(1, {DISTRICTS}) d, generate_series({DELIVERED + 1}, {ORDERS}) o",
        f"INSERT INTO order_line SELECT {w}, o_d_id, o_id, n, 1 + (o_id * 7919 + n * 1299709) % {ITEMS}, {w},"
        f" CASE WHEN o_id <= {DELIVERED} THEN o_entry_d END, 5, CASE WHEN o_id <= {DELIVERED} THEN 0 ELSE 1 + n END, 'distribution information'"
        f" FROM orders, generate_series(1, o_ol_cnt) n WHERE o_w_id = {w}",
    ]


def load(server: Server, warehouses: int) -> None:
    """The tables and their rows."""
    here = f"SET search_path = {SCHEMA}"
    server.execute(f"CREATE SCHEMA {SCHEMA}", here, *TABLES)
    server.execute(here, f"INSERT INTO item SELECT i, i % 10000, 'item ' || i, 1 + i % 100, 'data of ' || i FROM generate_series(1, {ITEMS}) i")
    for warehouse in range(1, warehouses + 1):
        for statement in fill(warehouse):
            server.execute(here, statement)
    server.execute(here, *INDEXES)
    server.execute("ANALYZE")


HERE = f"""\\set w random(1, :warehouses)
\\set d random(1, {DISTRICTS})
"""
# Some customers buy more than others.
CUSTOMER = f"\\set c ((random(0, 1023) | random(1, {CUSTOMERS})) + 259) % {CUSTOMERS} + 1\n"


def by_name() -> str:
    """Three of five customers say their name: of all of that name it is the middle one."""
    counted = last_name(":n::int")
    return f"""\\set n ((random(0, 255) | random(0, 999)) + 223) % 1000
\\set named random(1, 100)
\\if :named <= 60
SELECT count(*) / 2 AS middle FROM customer WHERE c_w_id = :cw AND c_d_id = :cd AND c_last = {counted} \\gset
SELECT c_id AS c FROM customer WHERE c_w_id = :cw AND c_d_id = :cd AND c_last = {counted} ORDER BY c_first OFFSET :middle LIMIT 1 \\gset
\\endif
"""


def another_warehouse(variable: str, percent: int) -> str:
    """Mostly this warehouse, sometimes another one."""
    return f"""\\set far random(1, 100)
\\set {variable} :w
\\if :far <= {percent} and :warehouses > 1
\\set {variable} (:w + random(1, :warehouses - 1) - 1) % :warehouses + 1
\\endif
"""


def new_order() -> str:
    """An order of five to fifteen items; one of a hundred is given up at its end."""
    text = f"""{HERE}{CUSTOMER}\\set count random({LINES_MIN}, {LINES_MAX})
\\set given_up random(1, 100)
BEGIN;
SELECT w_tax FROM warehouse WHERE w_id = :w \\gset
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w AND d_id = :d RETURNING d_next_o_id - 1 AS o, d_tax \\gset
SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
INSERT INTO orders VALUES (:w, :d, :o, :c, now(), NULL, :count, 1);
INSERT INTO new_order VALUES (:w, :d, :o);
"""
    part = ITEMS // LINES_MAX
    for number in range(1, LINES_MAX + 1):
        text += f"""\\if :count >= {number}
\\set i random({(number - 1) * part + 1}, {number * part})
\\set q random(1, 10)
{another_warehouse("s", 1)}SELECT i_price FROM item WHERE i_id = :i \\gset
SELECT s_quantity, s_dist[:d::int] AS dist FROM stock WHERE s_w_id = :s AND s_i_id = :i FOR UPDATE \\gset
\\set left :s_quantity - :q
\\if :left < 10
\\set left :left + 91
\\endif
UPDATE stock SET s_quantity = :left, s_ytd = s_ytd + :q, s_order_cnt = s_order_cnt + 1,
  s_remote_cnt = s_remote_cnt + CASE WHEN :s::int = :w::int THEN 0 ELSE 1 END WHERE s_w_id = :s AND s_i_id = :i;
INSERT INTO order_line VALUES (:w, :d, :o, {number}, :i, :s, NULL, :q, :q::int * :i_price::numeric, :dist);
\\endif
"""
    return (
        text
        + """\\if :given_up = 1
ROLLBACK;
\\else
COMMIT;
\\endif
"""
    )


def payment() -> str:
    """A customer pays, in fifteen of a hundred cases at another warehouse than his own."""
    return f"""{HERE}{another_warehouse("cw", 15)}\\set cd :d
\\if :cw <> :w
\\set cd random(1, {DISTRICTS})
\\endif
{CUSTOMER}\\set amount random(100, 500000)
BEGIN;
UPDATE warehouse SET w_ytd = w_ytd + :amount / 100.0 WHERE w_id = :w RETURNING w_name;
UPDATE district SET d_ytd = d_ytd + :amount / 100.0 WHERE d_w_id = :w AND d_id = :d RETURNING d_name;
{by_name()}UPDATE customer SET c_balance = c_balance - :amount / 100.0, c_ytd_payment = c_ytd_payment + :amount / 100.0, c_payment_cnt = c_payment_cnt + 1,
  c_data = CASE WHEN c_credit = 'BC' THEN substr(:c || ' ' || :cd || ' ' || :cw || ' ' || :amount || ' ' || c_data, 1, 500) ELSE c_data END
  WHERE c_w_id = :cw AND c_d_id = :cd AND c_id = :c RETURNING c_first, c_last, c_balance, c_credit;
INSERT INTO history VALUES (:c, :cd, :cw, :d, :w, now(), :amount / 100.0, 'paid');
COMMIT;
"""


def order_status() -> str:
    """A customer asks for his last order."""
    return f"""{HERE}\\set cw :w
\\set cd :d
{CUSTOMER}BEGIN;
{by_name()}SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
SELECT coalesce(max(o_id), 0) AS o FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c \\gset
SELECT o_carrier_id, o_entry_d FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_id = :o;
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;
COMMIT;
"""


def delivery() -> str:
    """The oldest open order of each district of a warehouse is delivered."""
    text = """\\set w random(1, :warehouses)
\\set carrier random(1, 10)
BEGIN;
"""
    for d in range(1, DISTRICTS + 1):
        text += f"""WITH taken AS (DELETE FROM new_order WHERE no_w_id = :w AND no_d_id = {d} AND no_o_id = (SELECT no_o_id FROM new_order
  WHERE no_w_id = :w AND no_d_id = {d} ORDER BY no_o_id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING no_o_id) SELECT coalesce(max(no_o_id), 0) AS o FROM taken \\gset
\\if :o > 0
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w AND o_d_id = {d} AND o_id = :o RETURNING o_c_id AS c \\gset
UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = :w AND ol_d_id = {d} AND ol_o_id = :o;
SELECT sum(ol_amount) AS amount FROM order_line WHERE ol_w_id = :w AND ol_d_id = {d} AND ol_o_id = :o \\gset
UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = :w AND c_d_id = {d} AND c_id = :c;
\\endif
"""
    return text + "COMMIT;\n"


def stock_level() -> str:
    """How many of the items of a district's last twenty orders run low?"""
    return f"""{HERE}\\set threshold random(10, 20)
BEGIN;
SELECT d_next_o_id AS o FROM district WHERE d_w_id = :w AND d_id = :d \\gset
SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id >= :o - 20 AND ol_o_id < :o
  AND s_w_id = :w AND s_i_id = ol_i_id AND s_quantity < :threshold;
COMMIT;
"""


# With how many of a hundred transactions are of the kind.
KINDS = ((new_order, 45), (payment, 43), (order_status, 4), (delivery, 4), (stock_level, 4))


def scripts(directory: Path, warehouses: int) -> list[str]:
    """pgbench's arguments for the five kinds, whose scripts are written there."""
    arguments = ["-D", f"warehouses={warehouses}"]
    for kind, share in KINDS:
        file = directory / f"{kind.__name__}.sql"
        file.write_text(kind())
        arguments += ["-f", f"{file}@{share}"]
    return arguments


# Of the specification's conditions of consistency, those that a lost or doubled change breaks.
CONSISTENT = (
    "SELECT (SELECT sum(w_ytd) FROM warehouse) = (SELECT sum(d_ytd) FROM district)",
    "SELECT bool_and(d_next_o_id - 1 = (SELECT max(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id)) FROM district",
    "SELECT bool_and(last - first + 1 = count) FROM (SELECT max(no_o_id), min(no_o_id), count(*) FROM new_order GROUP BY no_w_id, no_d_id) AS n (last, first, count)",
    "SELECT (SELECT sum(o_ol_cnt) FROM orders) = (SELECT count(*) FROM order_line)",
    "SELECT (SELECT count(*) FROM orders WHERE o_carrier_id IS NULL) = (SELECT count(*) FROM new_order)",
    "SELECT (SELECT sum(c_balance + c_ytd_payment) FROM customer) = (SELECT sum(ol_amount) FROM order_line WHERE ol_delivery_d IS NOT NULL)",
)


def check(server: Server) -> None:
    """The books agree."""
    for condition in CONSISTENT:
        if server.execute(f"SET search_path = {SCHEMA}", condition)[0][0] is not True:
            raise SystemExit(f"{server.name}: not consistent: {condition}")
