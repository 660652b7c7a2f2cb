// Connects by a URL with several hosts once for each targetServerType, and prints where it leads: "primary 5433".
// Arguments: the hosts as "host:port,host:port", then the types.

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

public class ServerTypes {
    public static void main(String[] arguments) throws SQLException {
        for (int at = 1; at < arguments.length; at++) {
            String type = arguments[at];
            // The driver remembers for some seconds which host was what.
            String url = "jdbc:postgresql://" + arguments[0] + "/postgres?user=postgres&hostRecheckSeconds=0&targetServerType=" + type;
            try (Connection connection = DriverManager.getConnection(url);
                    Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("SELECT pg_is_in_recovery(), inet_server_port()")) {
                rows.next();
                System.out.println(type + " " + (rows.getBoolean(1) ? "standby " : "primary ") + rows.getInt(2));
            } catch (SQLException error) {
                System.out.println(type + " none");
            }
        }
    }
}
