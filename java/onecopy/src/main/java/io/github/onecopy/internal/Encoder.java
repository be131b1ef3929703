package io.github.onecopy.internal;

import io.github.onecopy.Malformed;
import io.github.onecopy.MalformedTextException;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetEncoder;
import java.nio.charset.StandardCharsets;
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

    /** ASCII up to this many units goes by the loop too, as far as it reaches. */
    static final int LOOP_UNITS = 32;

    /** Up to this many units an array is written and copied where the destination is none. */
    static final int COPIED_UNITS = 256;

    /** The scratch of a new encoder, in units. */
    static final int FIRST_UNITS = 512;

    private final CharsetEncoder ascii = StandardCharsets.US_ASCII.newEncoder();
    private char[] chars = new char[FIRST_UNITS];
    private CharBuffer source = CharBuffer.wrap(chars);
    byte[] bytes = new byte[0];

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
        int from = n <= LOOP_UNITS ? Pure.ascii(s, n, dst, at, limit) : 0;
        return from == n ? n : encode(s, from, dst, at + from, limit, malformed) - at;
    }

    /** Writes the units from {@code from} on; returns the index behind what was written. */
    int encode(String s, int from, byte[] dst, int at, int limit, Malformed malformed) {
        int n = s.length();
        int out = at;
        for (int i = from; i < n; ) {
            int to = cut(s, n, i);
            s.getChars(i, to, units(to - i), 0);
            out = chunk(s, i, to - i, dst, out, limit, malformed);
            i = to;
        }
        return out;
    }

    /** Writes the units of the scratch, which are those of the string from {@code from} on; returns where it ends. */
    private int chunk(String s, int from, int n, byte[] dst, int at, int limit, Malformed malformed) {
        if (Native.available()) {
            long result = Native.utf16ToUtf8(chars, 0, n, dst, at, limit - at, replacement(malformed));
            return at + written(s, from, result, malformed);
        }
        int ascii = ascii(n, dst, at, limit);
        int out = at + ascii;
        if (limit - out < (long) Pure.MOST_BYTES * (n - ascii)
                && limit - out < Pure.length(s, from + ascii, from + n, malformed)) {
            throw noRoom(s, from + n, malformed);
        }
        return Pure.encode(chars, ascii, n, dst, out, malformed, from);
    }

    /** The units up to the first that is not ASCII, or as many as there is room for, by what the JDK has for them. */
    private int ascii(int n, byte[] dst, int at, int limit) {
        source.limit(n).position(0);
        ascii.encode(source, ByteBuffer.wrap(dst, at, limit - at), true);
        return source.position();
    }

    static int replacement(Malformed malformed) {
        return malformed == Malformed.REPLACE ? '?' : 0;
    }

    /** What a call has written of the string from {@code from} on. */
    static int written(String s, int from, long result, Malformed malformed) {
        if (result >= 0) {
            return (int) result;
        }
        if (result == Native.NO_ROOM) {
            throw noRoom(s, from, malformed);
        }
        int index = from + (int) (-1 - result);
        throw Pure.loneSurrogate(s.charAt(index), index);
    }

    /** A lone surrogate comes first, wherever it stands. */
    static BufferOverflowException noRoom(String s, int from, Malformed malformed) {
        Pure.length(s, from, s.length(), malformed);
        return new BufferOverflowException();
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
            int to = cut(s, n, from);
            if (to - from > COPIED_UNITS && Native.available()) {
                s.getChars(from, to, units(to - from), 0);
                long result = Native.utf16ToUtf8(chars, 0, to - from, dst, out, limit - out, replacement(malformed));
                out += written(s, from, result, malformed);
            } else {
                int count = encodePart(s, from, to, malformed);
                if (count > limit - out) {
                    throw noRoom(s, to, malformed);
                }
                dst.put(out, bytes, 0, count);
                out += count;
            }
            from = to;
        }
        return out - at;
    }

    /**
     * Writes a part of a string to the beginning of {@link #bytes}: the way to what is no array, where making a segment of it for
     * a native call takes longer than copying.
     */
    int encodePart(String s, int from, int to, Malformed malformed) {
        byte[] room = room(Pure.MOST_BYTES * (to - from));
        if (to - from <= SHORT_UNITS) {
            return Pure.encode(s, from, to, room, 0, room.length, malformed);
        }
        s.getChars(from, to, units(to - from), 0);
        return chunk(s, from, to - from, room, 0, room.length, malformed);
    }

    /** The bytes that a string takes, lone surrogates one each. */
    long length(String s) {
        int n = s.length();
        if (!Native.available()) {
            return Pure.length(s, 0, n, Malformed.REPLACE);
        }
        long length = 0;
        for (int from = 0; from < n; ) {
            int to = cut(s, n, from);
            s.getChars(from, to, units(to - from), 0);
            length += Native.utf8Length(chars, 0, to - from, '?');
            from = to;
        }
        return length;
    }

    /** Where the chunk ends that begins at {@code from}: no pair is parted. */
    static int cut(String s, int n, int from) {
        if (n - from <= CHUNK_UNITS) {
            return n;
        }
        int to = from + CHUNK_UNITS;
        return Character.isHighSurrogate(s.charAt(to - 1)) ? to - 1 : to;
    }

    /** The scratch for units, of at least so many. */
    char[] units(int n) {
        if (chars.length < n) {
            chars = new char[CHUNK_UNITS];
            source = CharBuffer.wrap(chars);
        }
        return chars;
    }

    private byte[] room(int n) {
        if (bytes.length < n) {
            bytes = new byte[Math.max(n, Pure.MOST_BYTES * FIRST_UNITS)];
        }
        return bytes;
    }
}
