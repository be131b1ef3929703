package io.github.onecopy.bench.seed;

import io.github.onecopy.bench.seed.OwnStreams.Locked;
import io.github.onecopy.bench.seed.OwnStreams.Unlocked;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;

/**
 * Sees that every way of {@link SeedBenchmark} gives what {@code getBytes} gives, for all its texts. In a process of its own:
 * what it calls would otherwise be what the compiler knows of the calls that are timed.
 */
public final class SeedCheck {
    private static final int ROOM = 5_000;

    private SeedCheck() {}

    /** Ends with an exception that names the way and the text where one differs. */
    public static void main(String[] arguments) {
        Map<String, Function<String, byte[]>> ways = ways();
        int compared = 0;
        for (String kind : new String[] {"random", "ascii", "cjk"}) {
            for (int length : new int[] {10, 100, 1000}) {
                for (String text : SeedTexts.of(kind, length)) {
                    byte[] expected = text.getBytes(StandardCharsets.UTF_8);
                    for (Map.Entry<String, Function<String, byte[]>> way : ways.entrySet()) {
                        if (!Arrays.equals(expected, way.getValue().apply(text))) {
                            throw new AssertionError(way.getKey() + " differs from getBytes: " + kind + ", " + length);
                        }
                        compared++;
                    }
                }
            }
        }
        System.out.println(ways.size() + " ways, " + compared + " results, all as getBytes gives them");
    }

    private static Map<String, Function<String, byte[]>> ways() {
        ByteArrayOutputStream stream = new ByteArrayOutputStream(ROOM);
        Locked locked = new Locked(ROOM);
        Unlocked unlocked = new Unlocked(ROOM);
        byte[] array = new byte[ROOM];
        char[] units = new char[ROOM];
        ByteBuffer heap = ByteBuffer.allocate(ROOM);
        ByteBuffer direct = ByteBuffer.allocateDirect(ROOM);
        Map<String, Function<String, byte[]>> ways = new TreeMap<>();
        ways.put("postFresh", SeedWays::post);
        ways.put("lockedFresh", SeedWays::locked);
        ways.put("unlockedFresh", SeedWays::unlocked);
        ways.put("arrayFresh", SeedWays::array);
        ways.put("heapBufferFresh", SeedWays::buffer);
        ways.put("postReused", text -> reused(stream, text));
        ways.put("lockedReused", text -> reused(locked, text));
        ways.put("unlockedReused", text -> reused(unlocked, text));
        ways.put("arrayReused", text -> Arrays.copyOf(array, Loops.into(array, text)));
        ways.put("charsThenArray", text -> {
            text.getChars(0, text.length(), units, 0);
            return Arrays.copyOf(array, Loops.into(array, units, text.length()));
        });
        ways.put("heapBufferReused", text -> reused(heap, text));
        ways.put("directBufferReused", text -> reused(direct, text));
        return ways;
    }

    private static byte[] reused(ByteArrayOutputStream out, String text) {
        out.reset();
        int bytes = Loops.into(out, text);
        return Arrays.copyOf(out.toByteArray(), bytes);
    }

    private static byte[] reused(ByteBuffer out, String text) {
        byte[] bytes = new byte[Loops.into(out.clear(), text)];
        out.flip().get(bytes);
        return bytes;
    }
}
