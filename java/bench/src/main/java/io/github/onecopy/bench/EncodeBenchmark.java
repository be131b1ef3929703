package io.github.onecopy.bench;

import io.github.onecopy.Utf8;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * Encodes a string as UTF-8: with the JDK into a new array, and with onecopy into an existing
 * destination.
 */
public class EncodeBenchmark {
    @State(Scope.Thread)
    public static class Heap {
        private ByteBuffer out;

        @Setup
        public void prepare(Case texts) {
            out = ByteBuffer.allocate(texts.capacity());
        }
    }

    @State(Scope.Thread)
    public static class Direct {
        private ByteBuffer out;

        @Setup
        public void prepare(Case texts) {
            out = ByteBuffer.allocateDirect(texts.capacity());
        }
    }

    @Benchmark
    public byte[] getBytes(Case texts) {
        return texts.next().getBytes(StandardCharsets.UTF_8);
    }

    @Benchmark
    public int heap(Case texts, Heap heap) {
        return Utf8.encode(texts.next(), heap.out.clear());
    }

    @Benchmark
    public int direct(Case texts, Direct direct) {
        return Utf8.encode(texts.next(), direct.out.clear());
    }

    @Benchmark
    public byte[] array(Case texts) {
        return Utf8.encodeToBytes(texts.next());
    }
}
