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

    /** ASCII that is written by way of an array is so many units at once. */
    static final int ASCII_UNITS = 1024;

    /** Up to this many units an array is written and copied where the destination is none. */
    static final int COPIED_UNITS = 256;

    /** The scratch of a new encoder, in units. */
    static final int FIRST_UNITS = 512;

    private char[] chars = new char[FIRST_UNITS];
    byte[] bytes = new byte[0];
    /** The index of the first unit that {@link #asciiPart} has not written. */
    int ascii;

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
        int from = Latin1.ascii(s, 0, dst, at, limit);
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
        if (limit - at < (long) Pure.MOST_BYTES * n && limit - at < Pure.length(s, from, from + n, malformed)) {
            throw noRoom(s, from + n, malformed);
        }
        return Pure.encode(chars, 0, n, dst, at, malformed, from);
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
        int from = 0;
        while (n > COPIED_UNITS && asciiPart(s, from)) {
            int count = Math.min(ascii - from, limit - out);
            dst.put(out, bytes, 0, count);
            out += count;
            from += count;
            if (out == limit) {
                break;
            }
        }
        while (from < n) {
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

    /** Writes ASCII from {@code from} on to the beginning of {@link #bytes}; whether there was some, up to {@link #ascii}. */
    boolean asciiPart(String s, int from) {
        byte[] room = room(Math.min(s.length() - from, ASCII_UNITS));
        ascii = Latin1.ascii(s, from, room, 0, Math.min(room.length, ASCII_UNITS));
        return ascii > from;
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
        int rest = Latin1.ascii(s, from, room, 0, to - from);
        if (rest == to) {
            return to - from;
        }
        s.getChars(rest, to, units(to - rest), 0);
        return chunk(s, rest, to - rest, room, rest - from, room.length, malformed);
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
