package io.github.onecopy.internal;

import io.github.onecopy.Malformed;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** The pools of encoders and decoders, for callers that have no encoder or decoder of their own. */
public final class Pools {
    /** The length of the longest array that every JVM supports. */
    static final int MOST_BYTES = Integer.MAX_VALUE - 8;

    /**
     * An encoder that all threads share and that needs no scratch array. It exists only if the
     * arrays inside strings are accessible and the native library is in use; otherwise null.
     */
    static final Encoder OPENED = StringArrays.OPEN && Native.available() ? new Encoder() : null;

    static final Pool<Encoder> ENCODERS = new Pool<>(Encoder::new);
    static final Pool<Decoder> DECODERS = new Pool<>(Decoder::new);

    private Pools() {}

    /**
     * See {@link io.github.onecopy.Utf8#encodedLength}.
     *
     * @param s the string
     * @return the number of bytes
     */
    public static long encodedLength(String s) {
        if (s.length() <= Encoder.SHORT_UNITS || !Native.available()) {
            return Pure.length(s, 0, s.length(), Malformed.REPLACE);
        }
        Encoder encoder = ENCODERS.take();
        long length = encoder.length(s);
        ENCODERS.give(encoder);
        return length;
    }

    /**
     * See {@link Encoder#encode(String, ByteBuffer, int, int, Malformed)}.
     *
     * @param s the string
     * @param dst the destination
     * @param at the index of the first byte
     * @param limit the index after the last byte that may be written
     * @param malformed the treatment of lone surrogates
     * @return the number of bytes written
     */
    public static int encode(String s, ByteBuffer dst, int at, int limit, Malformed malformed) {
        if (OPENED != null) {
            return OPENED.encode(s, dst, at, limit, malformed);
        }
        // Short strings and ASCII are written without an encoder from the pool.
        int n = s.length();
        if (dst.hasArray()) {
            byte[] array = dst.array();
            int begin = dst.arrayOffset() + at;
            int end = dst.arrayOffset() + limit;
            if (n <= Encoder.SHORT_UNITS) {
                return Pure.encode(s, 0, n, array, begin, end, malformed) - begin;
            }
            Latin1.Form form = Latin1.form(s);
            int done = form == Latin1.Form.LIKELY_ASCII ? Latin1.ascii(s, array, begin, end) : 0;
            return done == n ? n : rest(s, form, done, array, begin, end, malformed);
        }
        if (dst.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        if (n <= Encoder.SHORT_UNITS) {
            return Pure.encode(s, dst, at, limit, malformed) - at;
        }
        Encoder encoder = ENCODERS.take();
        int count = encoder.encode(s, dst, at, limit, malformed);
        ENCODERS.give(encoder);
        return count;
    }

    private static int rest(
            String s, Latin1.Form form, int done, byte[] dst, int at, int limit,
            Malformed malformed) {
        Encoder encoder = ENCODERS.take();
        int end = encoder.encode(s, form != Latin1.Form.UNKNOWN, done, dst, at + done, limit,
                malformed);
        ENCODERS.give(encoder);
        return end - at;
    }

    /**
     * See {@link io.github.onecopy.Utf8#encodeToBytes}.
     *
     * @param s the string
     * @param malformed the treatment of lone surrogates
     * @return the UTF-8 of the string
     */
    public static byte[] encodeToBytes(String s, Malformed malformed) {
        if (Latin1.form(s) == Latin1.Form.LIKELY_ASCII) {
            // For a result in a new array, this is the fastest way: the JVM copies the array inside
            // the string.
            return s.getBytes(StandardCharsets.UTF_8);
        }
        int n = s.length();
        Encoder encoder = ENCODERS.take();
        byte[] bytes;
        if (n <= Encoder.FIRST_UNITS) {
            int count = encoder.encodePart(s, 0, n, malformed);
            bytes = Arrays.copyOf(encoder.bytes, count);
        } else {
            long length = encoder.length(s);
            if (length > MOST_BYTES) {
                throw new OutOfMemoryError("the text takes " + length
                        + " bytes, more than an array can have");
            }
            bytes = new byte[(int) length];
            encoder.encode(s, bytes, 0, bytes.length, malformed);
        }
        ENCODERS.give(encoder);
        return bytes;
    }

    /**
     * See {@link Decoder#decode(ByteBuffer, int, int, Malformed)}.
     *
     * @param src the source
     * @param at the index of the first byte
     * @param n the number of bytes
     * @param malformed the treatment of invalid sequences
     * @return the string
     */
    public static String decode(ByteBuffer src, int at, int n, Malformed malformed) {
        Decoder decoder = DECODERS.take();
        String s = decoder.decode(src, at, n, malformed);
        DECODERS.give(decoder);
        return s;
    }

    /**
     * See {@link Decoder#indexOfInvalid(ByteBuffer, int, int)}.
     *
     * @param src the bytes
     * @param at the index of the first byte
     * @param n the number of bytes
     * @return the number of bytes before the first invalid sequence, or -1
     */
    public static long indexOfInvalid(ByteBuffer src, int at, int n) {
        Decoder decoder = DECODERS.take();
        long index = decoder.indexOfInvalid(src, at, n);
        DECODERS.give(decoder);
        return index;
    }
}
