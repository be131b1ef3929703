package io.github.onecopy.bench;

import io.github.onecopy.Utf8;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * Decodes UTF-8 to a string: with the JDK from an array, and with onecopy from a heap buffer or a
 * direct buffer.
 */
public class DecodeBenchmark {
    @State(Scope.Thread)
    public static class Arrays {
        private byte[][] in;
        private int at;

        @Setup
        public void prepare(Case texts) {
            in = texts.encoded();
        }

        byte[] next() {
            at = (at + 1) & (in.length - 1);
            return in[at];
        }
    }

    /**
     * Holds each test string as UTF-8 in a buffer. A subclass determines the kind of the buffers:
     * heap or direct.
     */
    public abstract static class Buffers {
        private ByteBuffer[] in;
        private int at;

        abstract ByteBuffer allocate(int bytes);

        @Setup
        public void prepare(Case texts) {
            byte[][] all = texts.encoded();
            in = new ByteBuffer[all.length];
            for (int k = 0; k < in.length; k++) {
                in[k] = allocate(all[k].length).put(all[k]).rewind();
            }
        }

        ByteBuffer next() {
            at = (at + 1) & (in.length - 1);
            return in[at].rewind();
        }
    }

    @State(Scope.Thread)
    public static class Heap extends Buffers {
        @Override
        ByteBuffer allocate(int bytes) {
            return ByteBuffer.allocate(bytes);
        }
    }

    @State(Scope.Thread)
    public static class Direct extends Buffers {
        @Override
        ByteBuffer allocate(int bytes) {
            return ByteBuffer.allocateDirect(bytes);
        }
    }

    @Benchmark
    public String newString(Arrays arrays) {
        return new String(arrays.next(), StandardCharsets.UTF_8);
    }

    /**
     * Decodes a direct buffer with the JDK. The JDK decodes only arrays, so the bytes of the buffer
     * are first copied to an array.
     */
    @Benchmark
    public String directNewString(Direct direct) {
        ByteBuffer in = direct.next();
        byte[] bytes = new byte[in.remaining()];
        in.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    @Benchmark
    public String heap(Heap heap) {
        return Utf8.decode(heap.next());
    }

    @Benchmark
    public String direct(Direct direct) {
        return Utf8.decode(direct.next());
    }
}
