package io.github.onecopy.internal;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.github.onecopy.Malformed;
import io.github.onecopy.MalformedTextException;
import java.nio.ByteBuffer;
import java.util.Objects;

/** Reads UTF-8 into strings. Reusable, keeps its scratch, not thread-safe. */
public final class Decoder {
    /** Makes one. */
    public Decoder() {}

    /**
     * Reads a range of an array.
     *
     * @param src where from
     * @param at the index of the first byte
     * @param n how many bytes
     * @param malformed what becomes of invalid sequences
     * @return the string
     * @throws IndexOutOfBoundsException where they are no range of {@code src}
     * @throws MalformedTextException for an invalid sequence, with THROW; its index counts from {@code at}
     */
    public String decode(byte[] src, int at, int n, Malformed malformed) {
        Objects.checkFromIndexSize(at, n, src.length);
        String s = new String(src, at, n, UTF_8);
        if (malformed == Malformed.THROW && s.indexOf('\uFFFD') >= 0) {
            // It may stand in the source as well.
            int index = Pure.indexOfInvalid(src, at, n);
            if (index >= 0) {
                throw Pure.invalid(index);
            }
        }
        return s;
    }

    /**
     * Reads a range of a buffer, heap or direct; its position, limit and byte order are neither looked at nor changed.
     *
     * @param src where from
     * @param at the index of the first byte
     * @param n how many bytes
     * @param malformed what becomes of invalid sequences
     * @return the string
     * @throws IndexOutOfBoundsException where they are no range of {@code src} below its limit
     * @throws MalformedTextException for an invalid sequence, with THROW; its index counts from {@code at}
     */
    public String decode(ByteBuffer src, int at, int n, Malformed malformed) {
        Objects.checkFromIndexSize(at, n, src.limit());
        if (src.hasArray()) {
            return decode(src.array(), src.arrayOffset() + at, n, malformed);
        }
        byte[] bytes = new byte[n];
        src.get(at, bytes, 0, n);
        return decode(bytes, 0, n, malformed);
    }

    /**
     * Where a range of an array goes wrong.
     *
     * @param src where it is
     * @param at the index of the first byte
     * @param n how many bytes
     * @return how many bytes stand before the first invalid sequence, or -1
     * @throws IndexOutOfBoundsException where they are no range of {@code src}
     */
    public long indexOfInvalid(byte[] src, int at, int n) {
        Objects.checkFromIndexSize(at, n, src.length);
        return Pure.indexOfInvalid(src, at, n);
    }

    /**
     * Where a range of a buffer goes wrong.
     *
     * @param src where it is
     * @param at the index of the first byte
     * @param n how many bytes
     * @return how many bytes stand before the first invalid sequence, or -1
     * @throws IndexOutOfBoundsException where they are no range of {@code src} below its limit
     */
    public long indexOfInvalid(ByteBuffer src, int at, int n) {
        Objects.checkFromIndexSize(at, n, src.limit());
        if (src.hasArray()) {
            return indexOfInvalid(src.array(), src.arrayOffset() + at, n);
        }
        byte[] bytes = new byte[n];
        src.get(at, bytes, 0, n);
        return Pure.indexOfInvalid(bytes, 0, n);
    }
}
