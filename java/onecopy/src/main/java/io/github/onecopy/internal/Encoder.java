package io.github.onecopy.internal;

import io.github.onecopy.Malformed;
import io.github.onecopy.MalformedTextException;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * Writes strings as UTF-8 into what the caller gives. Reusable, keeps its scratch, not thread-safe.
 *
 * <p>Nothing is published: no position moves, and what stands behind {@code at} may be overwritten also where it fails.
 */
public final class Encoder {
    /** Strings up to this many units go by a plain loop: what a native call costs is more than it gains. */
    static final int SHORT_UNITS = 16;

    /** The units that are taken at once: the scratch stays in the L1 cache. */
    static final int CHUNK_UNITS = 8192;

    private char[] chars = new char[512];
    private byte[] bytes = new byte[0];

    /** Makes one. */
    public Encoder() {}

    /**
     * Writes a string into an array.
     *
     * @param s the string
     * @param dst where to
     * @param at the index of the first byte
     * @param limit the index behind the last byte that may be written
     * @param malformed what becomes of lone surrogates
     * @return the bytes written
     * @throws IndexOutOfBoundsException where {@code at} and {@code limit} are no range of {@code dst}
     * @throws BufferOverflowException where they do not fit
     * @throws MalformedTextException for a lone surrogate, with THROW; it comes before an overflow
     */
    public int encode(String s, byte[] dst, int at, int limit, Malformed malformed) {
        Objects.checkFromToIndex(at, limit, dst.length);
        int n = s.length();
        if (n <= SHORT_UNITS) {
            return Pure.encode(s, 0, n, dst, at, limit, malformed) - at;
        }
        int out = at;
        for (int from = 0; from < n; ) {
            int to = cut(s, from);
            if (limit - out < (long) Pure.MOST_BYTES * (to - from)
                    && limit - out < Pure.length(s, from, n, malformed)) {
                throw new BufferOverflowException();
            }
            out = Pure.encode(fill(s, from, to), 0, to - from, dst, out, malformed, from);
            from = to;
        }
        return out - at;
    }

    /**
     * Writes a string into a buffer, heap or direct; its position, limit and byte order are neither looked at nor changed.
     *
     * @param s the string
     * @param dst where to, not read-only
     * @param at the index of the first byte
     * @param limit the index behind the last byte that may be written, at most the buffer's own limit
     * @param malformed what becomes of lone surrogates
     * @return the bytes written
     * @throws IndexOutOfBoundsException where {@code at} and {@code limit} are no range of {@code dst}
     * @throws java.nio.ReadOnlyBufferException where it is read-only
     * @throws BufferOverflowException where they do not fit
     * @throws MalformedTextException for a lone surrogate, with THROW; it comes before an overflow
     */
    public int encode(String s, ByteBuffer dst, int at, int limit, Malformed malformed) {
        Objects.checkFromToIndex(at, limit, dst.limit());
        if (dst.hasArray()) {
            int base = dst.arrayOffset();
            return encode(s, dst.array(), base + at, base + limit, malformed);
        }
        if (dst.isReadOnly()) {
            throw new java.nio.ReadOnlyBufferException();
        }
        int n = s.length();
        int out = at;
        for (int from = 0; from < n; ) {
            int to = cut(s, from);
            byte[] room = room(Pure.MOST_BYTES * (to - from));
            int count = Pure.encode(fill(s, from, to), 0, to - from, room, 0, malformed, from);
            if (count > limit - out) {
                Pure.length(s, to, n, malformed);
                throw new BufferOverflowException();
            }
            dst.put(out, room, 0, count);
            out += count;
            from = to;
        }
        return out - at;
    }

    /** Where the chunk ends that begins at {@code from}: no pair is parted. */
    private static int cut(String s, int from) {
        if (s.length() - from <= CHUNK_UNITS) {
            return s.length();
        }
        int to = from + CHUNK_UNITS;
        return Character.isHighSurrogate(s.charAt(to - 1)) ? to - 1 : to;
    }

    /** Copies units into the scratch. */
    private char[] fill(String s, int from, int to) {
        if (chars.length < to - from) {
            chars = new char[CHUNK_UNITS];
        }
        s.getChars(from, to, chars, 0);
        return chars;
    }

    private byte[] room(int n) {
        if (bytes.length < n) {
            bytes = new byte[Math.max(n, Pure.MOST_BYTES * 512)];
        }
        return bytes;
    }
}
