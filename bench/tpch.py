"""Data and queries like TPC-H's, at any scale: the same tables, keys and shares, drawn by a generator of our own with a seed.

Not TPC-H: the texts are shorter and nothing is audited, so figures are comparable with each other only.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator

TABLES = {
    "region": "r_regionkey int PRIMARY KEY, r_name char(25) NOT NULL, r_comment varchar(152)",
    "nation": "n_nationkey int PRIMARY KEY, n_name char(25) NOT NULL, n_regionkey int NOT NULL, n_comment varchar(152)",
    "supplier": "s_suppkey int PRIMARY KEY, s_name char(25) NOT NULL, s_address varchar(40) NOT NULL, s_nationkey int NOT NULL,"
    " s_phone char(15) NOT NULL, s_acctbal numeric(15,2) NOT NULL, s_comment varchar(101) NOT NULL",
    "part": "p_partkey int PRIMARY KEY, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL, p_brand char(10) NOT NULL,"
    " p_type varchar(25) NOT NULL, p_size int NOT NULL, p_container char(10) NOT NULL, p_retailprice numeric(15,2) NOT NULL, p_comment varchar(23) NOT NULL",
    "partsupp": "ps_partkey int NOT NULL, ps_suppkey int NOT NULL, ps_availqty int NOT NULL, ps_supplycost numeric(15,2) NOT NULL,"
    " ps_comment varchar(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey)",
    "customer": "c_custkey int PRIMARY KEY, c_name varchar(25) NOT NULL, c_address varchar(40) NOT NULL, c_nationkey int NOT NULL,"
    " c_phone char(15) NOT NULL, c_acctbal numeric(15,2) NOT NULL, c_mktsegment char(10) NOT NULL, c_comment varchar(117) NOT NULL",
    "orders": "o_orderkey int PRIMARY KEY, o_custkey int NOT NULL, o_orderstatus char(1) NOT NULL, o_totalprice numeric(15,2) NOT NULL, o_orderdate date NOT NULL,"
    " o_orderpriority char(15) NOT NULL, o_clerk char(15) NOT NULL, o_shippriority int NOT NULL, o_comment varchar(79) NOT NULL",
    "lineitem": "l_orderkey int NOT NULL, l_partkey int NOT NULL, l_suppkey int NOT NULL, l_linenumber int NOT NULL, l_quantity numeric(15,2) NOT NULL,"
    " l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL, l_tax numeric(15,2) NOT NULL, l_returnflag char(1) NOT NULL,"
    " l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL,"
    " l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)",
}

INDEXES = (
    "CREATE INDEX ON supplier (s_nationkey)",
    "CREATE INDEX ON partsupp (ps_suppkey)",
    "CREATE INDEX ON customer (c_nationkey)",
    "CREATE INDEX ON orders (o_custkey)",
    "CREATE INDEX ON lineitem (l_partkey, l_suppkey)",
)

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3), ("GERMANY", 3),
    ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0),
    ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
COLORS = (
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon chocolate coral cornflower "
    "cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki "
    "lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya "
    "peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle "
    "tomato turquoise violet wheat white yellow"
).split()
TYPES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
CONTAINERS = (("SM", "LG", "MED", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"))
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
WORDS = (
    "furiously sly carefully blithely quick fluffy slow quiet ruthless thin close dogged daring brave stealthy permanent enticing idle busy regular final ironic even "
    "bold silent special requests deposits packages theodolites instructions foxes accounts dependencies excuses platelets asymptotes courts ideas pinto beans "
    "sleep wake are cajole haggle nag use boost affix detect integrate among about above against along"
).split()

FIRST_DAY = datetime.date(1992, 1, 1)
LAST_DAY = datetime.date(1998, 8, 2)
TODAY = datetime.date(1995, 6, 17)


def price(part: int) -> float:
    """Retail price of a part, in cents."""
    return 90000 + (part // 10) % 20001 + 100 * (part % 1000)


def supplier_of(part: int, which: int, suppliers: int) -> int:
    """One of the four suppliers of a part."""
    return (part + which * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1


def rows(scale: float) -> Iterator[tuple[str, str]]:
    """Tables and lines of COPY, in the order in which they are to be loaded."""
    draw = random.Random(42)
    text = lambda words: " ".join(draw.choices(WORDS, k=words))  # noqa: E731
    phone = lambda nation: f"{nation + 10}-{draw.randrange(100, 1000)}-{draw.randrange(100, 1000)}-{draw.randrange(1000, 10000)}"  # noqa: E731
    suppliers, parts, customers, orders = (max(10, int(scale * size)) for size in (10_000, 200_000, 150_000, 1_500_000))
    for key, name in enumerate(REGIONS):
        yield "region", f"{key}\t{name}\t{text(6)}\n"
    for key, (name, region) in enumerate(NATIONS):
        yield "nation", f"{key}\t{name}\t{region}\t{text(6)}\n"
    for key in range(1, suppliers + 1):
        nation = draw.randrange(25)
        comment = text(7)
        # Five of ten thousand complain, and five recommend.
        if draw.random() < 0.001:
            comment = f"{text(2)} Customer {text(1)} {draw.choice(('Complaints', 'Recommends'))}"
        yield "supplier", f"{key}\tSupplier#{key:09}\t{text(3)[:40]}\t{nation}\t{phone(nation)}\t{draw.randrange(-99999, 999999) / 100:.2f}\t{comment[:101]}\n"
    for key in range(1, parts + 1):
        name = " ".join(draw.sample(COLORS, 5))
        maker = draw.randrange(1, 6)
        kind = " ".join(draw.choice(part) for part in TYPES)
        container = " ".join(draw.choice(part) for part in CONTAINERS)
        yield "part", (
            f"{key}\t{name[:55]}\tManufacturer#{maker}\tBrand#{maker}{draw.randrange(1, 6)}\t{kind}\t{draw.randrange(1, 51)}\t{container}\t"
            f"{price(key) / 100:.2f}\t{text(2)[:23]}\n"
        )
        for which in range(4):
            yield "partsupp", f"{key}\t{supplier_of(key, which, suppliers)}\t{draw.randrange(1, 10000)}\t{draw.randrange(100, 100001) / 100:.2f}\t{text(12)}\n"
    for key in range(1, customers + 1):
        nation = draw.randrange(25)
        yield "customer", (
            f"{key}\tCustomer#{key:09}\t{text(3)[:40]}\t{nation}\t{phone(nation)}\t{draw.randrange(-99999, 999999) / 100:.2f}\t{draw.choice(SEGMENTS)}\t{text(9)[:117]}\n"
        )
    days = (LAST_DAY - FIRST_DAY).days
    day = [FIRST_DAY + datetime.timedelta(days=n) for n in range(days + 200)]
    for n in range(orders):
        # Eight keys of 32 are used, and every third customer has no orders.
        key = (n // 8) * 32 + n % 8 + 1
        customer = draw.randrange(1, customers + 1)
        customer -= 1 if customer % 3 == 0 and customer > 1 else 0
        ordered = draw.randrange(days - 121)
        total, done, lines = 0.0, 0, draw.randrange(1, 8)
        for line in range(1, lines + 1):
            part = draw.randrange(1, parts + 1)
            supplier = supplier_of(part, draw.randrange(4), suppliers)
            quantity = draw.randrange(1, 51)
            extended = quantity * price(part)
            discount, tax = draw.randrange(11), draw.randrange(9)
            ship = ordered + draw.randrange(1, 122)
            commit = ordered + draw.randrange(30, 91)
            receipt = ship + draw.randrange(1, 31)
            returned = draw.choice("RA") if day[receipt] <= TODAY else "N"
            status = "O" if day[ship] > TODAY else "F"
            done += status == "F"
            total += extended * (100 + tax) * (100 - discount) / 10_000
            yield "lineitem", (
                f"{key}\t{part}\t{supplier}\t{line}\t{quantity}.00\t{extended / 100:.2f}\t0.{discount:02}\t0.{tax:02}\t{returned}\t{status}\t{day[ship]}\t"
                f"{day[commit]}\t{day[receipt]}\t{draw.choice(INSTRUCTIONS)}\t{draw.choice(MODES)}\t{text(4)[:44]}\n"
            )
        status = "F" if done == lines else "O" if done == 0 else "P"
        comment = text(6)
        if draw.random() < 0.01:
            comment = f"{text(1)} special {text(1)} requests {text(1)}"
        yield "orders", (
            f"{key}\t{customer}\t{status}\t{total / 100:.2f}\t{day[ordered]}\t{draw.choice(PRIORITIES)}\tClerk#{draw.randrange(1, max(2, int(scale * 1000))):09}\t0\t{comment[:79]}\n"
        )


# With the parameters that the specification gives for validation; the share of Q11 is for the scale.
QUERIES = {
    1: """SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
        sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price, sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
        avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
        FROM lineitem WHERE l_shipdate <= date '1998-12-01' - interval '90 days'
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    2: """SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        FROM part, supplier, partsupp, nation, region
        WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS' AND s_nationkey = n_nationkey
        AND n_regionkey = r_regionkey AND r_name = 'EUROPE' AND ps_supplycost = (SELECT min(ps_supplycost)
            FROM partsupp, supplier, nation, region WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
            AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
        ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    3: """SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
        AND o_orderdate < date '1995-03-15' AND l_shipdate > date '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10""",
    4: """SELECT o_orderpriority, count(*) AS order_count FROM orders
        WHERE o_orderdate >= date '1993-07-01' AND o_orderdate < date '1993-07-01' + interval '3 months'
        AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    5: """SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
        AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
        AND o_orderdate >= date '1994-01-01' AND o_orderdate < date '1994-01-01' + interval '1 year'
        GROUP BY n_name ORDER BY revenue DESC""",
    6: """SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= date '1994-01-01' AND l_shipdate < date '1994-01-01' + interval '1 year'
        AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24""",
    7: """SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue FROM (
            SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, extract(year FROM l_shipdate) AS l_year, l_extendedprice * (1 - l_discount) AS volume
            FROM supplier, lineitem, orders, customer, nation n1, nation n2
            WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey
            AND c_nationkey = n2.n_nationkey AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
            AND l_shipdate BETWEEN date '1995-01-01' AND date '1996-12-31') AS shipping
        GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year""",
    8: """SELECT o_year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) AS mkt_share FROM (
            SELECT extract(year FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation
            FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
            WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
            AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA' AND s_nationkey = n2.n_nationkey
            AND o_orderdate BETWEEN date '1995-01-01' AND date '1996-12-31' AND p_type = 'ECONOMY ANODIZED STEEL') AS all_nations
        GROUP BY o_year ORDER BY o_year""",
    9: """SELECT nation, o_year, sum(amount) AS sum_profit FROM (
            SELECT n_name AS nation, extract(year FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
            FROM part, supplier, lineitem, partsupp, orders, nation
            WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
            AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%') AS profit
        GROUP BY nation, o_year ORDER BY nation, o_year DESC""",
    10: """SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address, c_phone, c_comment
        FROM customer, orders, lineitem, nation WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey
        AND o_orderdate >= date '1993-10-01' AND o_orderdate < date '1993-10-01' + interval '3 months' AND l_returnflag = 'R' AND c_nationkey = n_nationkey
        GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment ORDER BY revenue DESC, c_custkey LIMIT 20""",
    11: """SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation
        WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY' GROUP BY ps_partkey
        HAVING sum(ps_supplycost * ps_availqty) > (SELECT sum(ps_supplycost * ps_availqty) * {share} FROM partsupp, supplier, nation
            WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
        ORDER BY value DESC, ps_partkey""",
    12: """SELECT l_shipmode, sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count,
        sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count
        FROM orders, lineitem WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
        AND l_shipdate < l_commitdate AND l_receiptdate >= date '1994-01-01' AND l_receiptdate < date '1994-01-01' + interval '1 year'
        GROUP BY l_shipmode ORDER BY l_shipmode""",
    13: """SELECT c_count, count(*) AS custdist FROM (
            SELECT c_custkey, count(o_orderkey) FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
            GROUP BY c_custkey) AS c_orders (c_custkey, c_count)
        GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
    14: """SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) / sum(l_extendedprice * (1 - l_discount)) AS promo_revenue
        FROM lineitem, part WHERE l_partkey = p_partkey AND l_shipdate >= date '1995-09-01' AND l_shipdate < date '1995-09-01' + interval '1 month'""",
    15: """WITH revenue (supplier_no, total_revenue) AS (
            SELECT l_suppkey, sum(l_extendedprice * (1 - l_discount)) FROM lineitem
            WHERE l_shipdate >= date '1996-01-01' AND l_shipdate < date '1996-01-01' + interval '3 months' GROUP BY l_suppkey)
        SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, revenue
        WHERE s_suppkey = supplier_no AND total_revenue = (SELECT max(total_revenue) FROM revenue) ORDER BY s_suppkey""",
    16: """SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part
        WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
        AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
        GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
    17: """SELECT sum(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part
        WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX'
        AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)""",
    18: """SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) FROM customer, orders, lineitem
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
        AND c_custkey = o_custkey AND o_orderkey = l_orderkey GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
        ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100""",
    19: """SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
        WHERE (p_partkey = l_partkey AND p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') AND l_quantity >= 1
            AND l_quantity <= 11 AND p_size BETWEEN 1 AND 5 AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
        OR (p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK') AND l_quantity >= 10
            AND l_quantity <= 20 AND p_size BETWEEN 1 AND 10 AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
        OR (p_partkey = l_partkey AND p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG') AND l_quantity >= 20
            AND l_quantity <= 30 AND p_size BETWEEN 1 AND 15 AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')""",
    20: """SELECT s_name, s_address FROM supplier, nation WHERE s_suppkey IN (
            SELECT ps_suppkey FROM partsupp WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
            AND ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
                AND l_shipdate >= date '1994-01-01' AND l_shipdate < date '1994-01-01' + interval '1 year'))
        AND s_nationkey = n_nationkey AND n_name = 'CANADA' ORDER BY s_name""",
    21: """SELECT s_name, count(*) AS numwait FROM supplier, lineitem l1, orders, nation
        WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate
        AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
        AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate)
        AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA' GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100""",
    22: """SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal FROM (
            SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal FROM customer
            WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
            AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00 AND substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17'))
            AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale
        GROUP BY cntrycode ORDER BY cntrycode""",
}


def query(number: int, scale: float) -> str:
    """A query's text."""
    return QUERIES[number].replace("{share}", f"{0.0001 / scale:.10f}")
