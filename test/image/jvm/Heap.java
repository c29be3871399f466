import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Reports over HTTP how large a heap this JVM allows itself, and fills it on request. */
public final class Heap {
    private static final int CHUNK = 1 << 20;
    private static final List<byte[]> held = new ArrayList<>();

    public static void main(String[] args) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(8080), 0);
        server.createContext("/report", Heap::report);
        server.createContext("/hold", Heap::hold);
        server.start();
    }

    private static void report(HttpExchange exchange) throws IOException {
        Runtime r = Runtime.getRuntime();
        String body = String.format(
            "{\"maxHeapBytes\":%d,\"usedHeapBytes\":%d,\"availableProcessors\":%d}%n",
            r.maxMemory(), r.totalMemory() - r.freeMemory(), r.availableProcessors());
        answer(exchange, body);
    }

    /** Holds as many bytes as the query says; "/hold?0" lets all go. */
    private static void hold(HttpExchange exchange) throws IOException {
        long bytes = Long.parseLong(exchange.getRequestURI().getQuery());
        held.clear();
        for (long i = 0; i < bytes / CHUNK; i++) {
            held.add(new byte[CHUNK]);
        }
        report(exchange);
    }

    private static void answer(HttpExchange exchange, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }
}
