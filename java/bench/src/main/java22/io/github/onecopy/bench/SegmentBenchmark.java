package io.github.onecopy.bench;

import io.github.onecopy.Utf8;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * Encodes a string as UTF-8 into native memory, with onecopy and with the JDK's methods for memory
 * segments.
 */
public class SegmentBenchmark {
    @State(Scope.Thread)
    public static class Memory {
        private Arena arena;
        private MemorySegment out;

        @Setup
        public void prepare(Case texts) {
            arena = Arena.ofConfined();
            out = arena.allocate(texts.capacity() + 1);
        }

        /**
         * Checks the results after the measurement, so that the check does not affect the profile
         * from which the JIT compiler optimizes the measured code.
         */
        @TearDown
        public void check(Case texts) {
            for (String text : texts.texts()) {
                byte[] expected = text.getBytes(StandardCharsets.UTF_8);
                long bytes = Utf8.encode(text, out, 0);
                if (!Arrays.equals(expected,
                        out.asSlice(0, bytes).toArray(ValueLayout.JAVA_BYTE))) {
                    throw new AssertionError("differs from getBytes: " + text);
                }
            }
            arena.close();
        }
    }

    @Benchmark
    public long encode(Case texts, Memory memory) {
        return Utf8.encode(texts.next(), memory.out, 0);
    }

    /**
     * Measures the JDK's {@code setString}. Unlike onecopy, it also writes a NUL after the string,
     * and writes `?` for a lone surrogate.
     */
    @Benchmark
    public void setString(Case texts, Memory memory) {
        memory.out.setString(0, texts.next(), StandardCharsets.UTF_8);
    }
}
