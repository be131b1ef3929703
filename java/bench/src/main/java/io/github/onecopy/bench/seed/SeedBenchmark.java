package io.github.onecopy.bench.seed;

import io.github.onecopy.bench.seed.OwnStreams.Locked;
import io.github.onecopy.bench.seed.OwnStreams.Unlocked;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * Repeats a comparison from a blog post, and also measures variants of the post's loop that each
 * have one change. A "fresh" benchmark allocates a destination and copies the result, as the post
 * does. A "reused" benchmark uses the same destination again, and copies nothing.
 *
 * <p>Each destination is a separate JMH state, so that a fork loads only the classes that it
 * measures. A further loaded subclass would change what the JIT compiler assumes about a call. For
 * the same reason, {@link SeedCheck} compares the results in another process.
 */
public class SeedBenchmark {
    /** The texts of one measurement, which a benchmark uses one after the other. */
    @State(Scope.Thread)
    public static class Texts {
        @Param({"10", "100", "1000"})
        public int length;

        @Param({"random", "ascii", "cjk"})
        public String text;

        private String[] texts;
        private int at;

        @Setup
        public void prepare() {
            texts = SeedTexts.of(text, length);
        }

        String next() {
            at = (at + 1) & (texts.length - 1);
            return texts[at];
        }
    }

    @State(Scope.Thread)
    public static class Stream {
        private ByteArrayOutputStream out;

        @Setup
        public void prepare(Texts texts) {
            out = new ByteArrayOutputStream(5 * texts.length);
        }
    }

    @State(Scope.Thread)
    public static class LockedStream {
        private Locked out;

        @Setup
        public void prepare(Texts texts) {
            out = new Locked(5 * texts.length);
        }
    }

    @State(Scope.Thread)
    public static class UnlockedStream {
        private Unlocked out;

        @Setup
        public void prepare(Texts texts) {
            out = new Unlocked(5 * texts.length);
        }
    }

    @State(Scope.Thread)
    public static class Arrays {
        private byte[] out;
        private char[] units;

        @Setup
        public void prepare(Texts texts) {
            out = new byte[5 * texts.length];
            units = new char[texts.length];
        }
    }

    @State(Scope.Thread)
    public static class HeapBuffer {
        private ByteBuffer out;

        @Setup
        public void prepare(Texts texts) {
            out = ByteBuffer.allocate(5 * texts.length);
        }
    }

    @State(Scope.Thread)
    public static class DirectBuffer {
        private ByteBuffer out;

        @Setup
        public void prepare(Texts texts) {
            out = ByteBuffer.allocateDirect(5 * texts.length);
        }
    }

    @Benchmark
    public byte[] getBytes(Texts texts) {
        return texts.next().getBytes(StandardCharsets.UTF_8);
    }

    @Benchmark
    public byte[] postFresh(Texts texts) {
        return SeedWays.post(texts.next());
    }

    @Benchmark
    public int postReused(Texts texts, Stream stream) {
        stream.out.reset();
        return Loops.into(stream.out, texts.next());
    }

    @Benchmark
    public byte[] lockedFresh(Texts texts) {
        return SeedWays.locked(texts.next());
    }

    @Benchmark
    public int lockedReused(Texts texts, LockedStream stream) {
        stream.out.reset();
        return Loops.into(stream.out, texts.next());
    }

    @Benchmark
    public byte[] unlockedFresh(Texts texts) {
        return SeedWays.unlocked(texts.next());
    }

    @Benchmark
    public int unlockedReused(Texts texts, UnlockedStream stream) {
        stream.out.reset();
        return Loops.into(stream.out, texts.next());
    }

    @Benchmark
    public byte[] arrayFresh(Texts texts) {
        return SeedWays.array(texts.next());
    }

    @Benchmark
    public int arrayReused(Texts texts, Arrays arrays) {
        return Loops.into(arrays.out, texts.next());
    }

    @Benchmark
    public int charsThenArray(Texts texts, Arrays arrays) {
        String text = texts.next();
        text.getChars(0, text.length(), arrays.units, 0);
        return Loops.into(arrays.out, arrays.units, text.length());
    }

    @Benchmark
    public byte[] heapBufferFresh(Texts texts) {
        return SeedWays.buffer(texts.next());
    }

    @Benchmark
    public int heapBufferReused(Texts texts, HeapBuffer buffer) {
        return Loops.into(buffer.out.clear(), texts.next());
    }

    @Benchmark
    public int directBufferReused(Texts texts, DirectBuffer buffer) {
        return Loops.into(buffer.out.clear(), texts.next());
    }
}
