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
 * Checks that every method which {@link SeedBenchmark} times returns the same bytes as {@code
 * getBytes}, for all its texts. It runs in a separate process, so that its calls do not affect the
 * profile of the timed calls.
 */
public final class SeedCheck {
    private static final int CAPACITY = 5_000;

    private SeedCheck() {}

    /** Throws an exception that names the method and the text if a result differs. */
    public static void main(String[] arguments) {
        Map<String, Function<String, byte[]>> ways = ways();
        int compared = 0;
        for (String kind : new String[] {"random", "ascii", "cjk"}) {
            for (int length : new int[] {10, 100, 1000}) {
                for (String text : SeedTexts.of(kind, length)) {
                    byte[] expected = text.getBytes(StandardCharsets.UTF_8);
                    for (Map.Entry<String, Function<String, byte[]>> way : ways.entrySet()) {
                        if (!Arrays.equals(expected, way.getValue().apply(text))) {
                            throw new AssertionError(way.getKey() + " differs from getBytes: "
                                    + kind + ", " + length);
                        }
                        compared++;
                    }
                }
            }
        }
        System.out.println(ways.size() + " ways, " + compared
                + " results, all as getBytes gives them");
    }

    private static Map<String, Function<String, byte[]>> ways() {
        ByteArrayOutputStream stream = new ByteArrayOutputStream(CAPACITY);
        Locked locked = new Locked(CAPACITY);
        Unlocked unlocked = new Unlocked(CAPACITY);
        byte[] array = new byte[CAPACITY];
        char[] units = new char[CAPACITY];
        ByteBuffer heap = ByteBuffer.allocate(CAPACITY);
        ByteBuffer direct = ByteBuffer.allocateDirect(CAPACITY);
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
