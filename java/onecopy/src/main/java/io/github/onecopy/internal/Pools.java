package io.github.onecopy.internal;

import io.github.onecopy.Malformed;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** Encoders and decoders for whoever has none of his own: one of each for a thread. */
public final class Pools {
    private static final ThreadLocal<Encoder> ENCODERS = ThreadLocal.withInitial(Encoder::new);
    private static final ThreadLocal<Decoder> DECODERS = ThreadLocal.withInitial(Decoder::new);

    private Pools() {}

    /**
     * See {@link io.github.onecopy.Utf8#encodedLength}.
     *
     * @param s the string
     * @return bytes
     */
    public static long encodedLength(String s) {
        return Pure.length(s, 0, s.length(), Malformed.REPLACE);
    }

    /**
     * See {@link Encoder#encode(String, ByteBuffer, int, int, Malformed)}.
     *
     * @param s the string
     * @param dst where to
     * @param at the first index
     * @param limit the index behind the last
     * @param malformed the policy
     * @return the bytes written
     */
    public static int encode(String s, ByteBuffer dst, int at, int limit, Malformed malformed) {
        return ENCODERS.get().encode(s, dst, at, limit, malformed);
    }

    /**
     * See {@link io.github.onecopy.Utf8#encodeToBytes}.
     *
     * @param s the string
     * @param malformed the policy
     * @return its UTF-8
     */
    public static byte[] encodeToBytes(String s, Malformed malformed) {
        long most = (long) Pure.MOST_BYTES * s.length();
        if (most > 1 << 14) {
            most = Pure.length(s, 0, s.length(), malformed);
        }
        if (most > Integer.MAX_VALUE - 8) {
            throw new OutOfMemoryError("the text takes " + most + " bytes, which no array has");
        }
        byte[] bytes = new byte[(int) most];
        int n = ENCODERS.get().encode(s, bytes, 0, bytes.length, malformed);
        return n == bytes.length ? bytes : Arrays.copyOf(bytes, n);
    }

    /**
     * See {@link Decoder#decode(ByteBuffer, int, int, Malformed)}.
     *
     * @param src where from
     * @param at the first index
     * @param n how many bytes
     * @param malformed the policy
     * @return the string
     */
    public static String decode(ByteBuffer src, int at, int n, Malformed malformed) {
        return DECODERS.get().decode(src, at, n, malformed);
    }

    /**
     * See {@link Decoder#indexOfInvalid(ByteBuffer, int, int)}.
     *
     * @param src where it is
     * @param at the first index
     * @param n how many bytes
     * @return the index, or -1
     */
    public static long indexOfInvalid(ByteBuffer src, int at, int n) {
        return DECODERS.get().indexOfInvalid(src, at, n);
    }
}
