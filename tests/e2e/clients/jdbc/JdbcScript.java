// Create / insert / select / update through the PostgreSQL JDBC driver; `java -cp postgresql.jar JdbcScript.java URL`.

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;

public class JdbcScript {
    static void equal(Object expected, Object found) {
        if (!expected.equals(found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    static void fails(String sqlstate, SqlAction action) throws SQLException {
        try {
            action.run();
        } catch (SQLException error) {
            equal(sqlstate, error.getSQLState());
            return;
        }
        throw new AssertionError("expected an error " + sqlstate);
    }

    interface SqlAction {
        void run() throws SQLException;
    }

    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection(arguments[0], "postgres", "")) {
            types(connection);
            repeated(connection);
            transactions(connection);
            batchesAndFetchSize(connection);
            metadata(connection);
            try (Statement statement = connection.createStatement()) {
                statement.execute("DROP TABLE jdbc_item");
            }
        }
        System.out.println("JDBC: ok");
    }

    static void types(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE IF EXISTS jdbc_item");
            statement.execute("CREATE TABLE jdbc_item (id serial PRIMARY KEY, name varchar(50) NOT NULL, price numeric(10,2),"
                    + " active boolean, small smallint, big bigint, ratio double precision, single real, data bytea, code uuid,"
                    + " day date, at timestamp, atz timestamptz, CONSTRAINT jdbc_item_name UNIQUE (name))");
        }
        UUID code = UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
        LocalDateTime at = LocalDateTime.of(2024, 2, 29, 23, 59, 59, 123456000);
        OffsetDateTime atz = OffsetDateTime.of(2024, 2, 29, 23, 59, 59, 0, ZoneOffset.ofHours(2));
        String insert = "INSERT INTO jdbc_item (name, price, active, small, big, ratio, single, data, code, day, at, atz)"
                + " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(insert, Statement.RETURN_GENERATED_KEYS)) {
            statement.setString(1, "Zoë");
            statement.setBigDecimal(2, new BigDecimal("12345678.90"));
            statement.setBoolean(3, true);
            statement.setShort(4, (short) -32768);
            statement.setLong(5, Long.MAX_VALUE);
            statement.setDouble(6, 0.1);
            statement.setFloat(7, 1.5f);
            statement.setBytes(8, new byte[] {0, 1, -1});
            statement.setObject(9, code);
            statement.setDate(10, Date.valueOf("1999-12-31"));
            statement.setObject(11, at);
            statement.setObject(12, atz);
            equal(1, statement.executeUpdate());
            try (ResultSet keys = statement.getGeneratedKeys()) {
                keys.next();
                equal(1, keys.getInt("id"));
            }
        }
        try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM jdbc_item WHERE code = ?")) {
            statement.setObject(1, code);
            // The driver switches to binary results after a few runs: both must say the same.
            for (int i = 0; i < 12; i++) {
                try (ResultSet row = statement.executeQuery()) {
                    equal(true, row.next());
                    equal("Zoë", row.getString("name"));
                    equal(new BigDecimal("12345678.90"), row.getBigDecimal("price"));
                    equal(true, row.getBoolean("active"));
                    equal((short) -32768, row.getShort("small"));
                    equal(Long.MAX_VALUE, row.getLong("big"));
                    equal(0.1, row.getDouble("ratio"));
                    equal(1.5f, row.getFloat("single"));
                    equal(true, Arrays.equals(new byte[] {0, 1, -1}, row.getBytes("data")));
                    equal(code, row.getObject("code"));
                    equal("1999-12-31", row.getDate("day").toString());
                    equal(at, row.getObject("at", LocalDateTime.class));
                    equal(atz.toInstant(), row.getObject("atz", OffsetDateTime.class).toInstant());
                    equal(false, row.next());
                }
            }
        }
    }

    static void repeated(Connection connection) throws SQLException {
        try (PreparedStatement update = connection.prepareStatement("UPDATE jdbc_item SET big = ?, price = price + ? WHERE id = ?");
                PreparedStatement select = connection.prepareStatement("SELECT big, name FROM jdbc_item WHERE id = ?")) {
            for (int i = 0; i < 20; i++) {
                update.setLong(1, i);
                update.setBigDecimal(2, new BigDecimal("0.01"));
                update.setInt(3, 1);
                equal(1, update.executeUpdate());
                select.setInt(1, 1);
                try (ResultSet row = select.executeQuery()) {
                    row.next();
                    equal((long) i, row.getLong(1));
                }
            }
            update.setNull(1, java.sql.Types.BIGINT);
            update.setNull(2, java.sql.Types.NUMERIC);
            update.setInt(3, 1);
            equal(1, update.executeUpdate());
        }
    }

    static void transactions(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.executeUpdate("INSERT INTO jdbc_item (name) VALUES ('kept')");
            Savepoint savepoint = connection.setSavepoint("here");
            fails("23505", () -> statement.executeUpdate("INSERT INTO jdbc_item (name) VALUES ('kept')"));
            fails("25P02", () -> statement.executeQuery("SELECT 1"));
            connection.rollback(savepoint);
            statement.executeUpdate("INSERT INTO jdbc_item (name) VALUES ('after')");
            connection.commit();
            statement.executeUpdate("DELETE FROM jdbc_item");
            connection.rollback();
            try (ResultSet row = statement.executeQuery("SELECT count(*) FROM jdbc_item")) {
                row.next();
                equal(3L, row.getLong(1));
            }
            connection.commit();
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            try (ResultSet row = statement.executeQuery("SHOW transaction isolation level")) {
                row.next();
                equal("repeatable read", row.getString(1));
            }
            connection.commit();
            connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            connection.setReadOnly(true);
            fails("25006", () -> statement.executeUpdate("DELETE FROM jdbc_item"));
            connection.rollback();
            connection.setReadOnly(false);
        }
        connection.setAutoCommit(true);
    }

    static void batchesAndFetchSize(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("INSERT INTO jdbc_item (name, small) VALUES (?, ?)")) {
            for (int i = 0; i < 1000; i++) {
                statement.setString(1, "batch " + i);
                statement.setInt(2, i);
                statement.addBatch();
            }
            equal(1000, statement.executeBatch().length);
        }
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(100);
            int count = 0;
            try (ResultSet rows = statement.executeQuery("SELECT small FROM jdbc_item WHERE name LIKE 'batch %' ORDER BY small")) {
                while (rows.next()) {
                    equal(count++, rows.getInt(1));
                }
            }
            equal(1000, count);
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    static void metadata(Connection connection) throws SQLException {
        DatabaseMetaData metadata = connection.getMetaData();
        equal("PostgreSQL", metadata.getDatabaseProductName());
        equal(15, metadata.getDatabaseMajorVersion());
        List<String> found = new ArrayList<>();
        try (ResultSet rows = metadata.getTables(null, "public", "jdbc_item", new String[] {"TABLE"})) {
            while (rows.next()) {
                found.add(rows.getString("TABLE_NAME"));
            }
        }
        equal(List.of("jdbc_item"), found);
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT id, name, price FROM jdbc_item LIMIT 0")) {
            equal("int4", rows.getMetaData().getColumnTypeName(1).replace("serial", "int4"));
            equal("varchar", rows.getMetaData().getColumnTypeName(2));
            equal(50, rows.getMetaData().getPrecision(2));
            equal(2, rows.getMetaData().getScale(3));
        }
    }
}
