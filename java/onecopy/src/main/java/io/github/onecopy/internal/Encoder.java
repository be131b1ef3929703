package io.github.onecopy.internal;

import io.github.onecopy.Malformed;
import io.github.onecopy.MalformedTextException;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * Writes strings as UTF-8 into what the caller gives. Reusable, keeps its scratch, not thread-safe; where strings are opened
 * ({@link Held}) and the native library serves, it has none, and any number of threads may use one.
 *
 * <p>Short strings go by a plain loop, ASCII by copying what a string holds where it is known to be that, and all else by native
 * calls, part by part. Nothing is published: no position moves, and what stands behind {@code at} may be overwritten also where it
 * fails.
 */
public final class Encoder {
    /** Strings up to this many units go by a plain loop: what a native call costs is more than it gains. */
    static final int SHORT_UNITS = 16;

    /** The units that are taken at once: the scratch stays in the L1 cache. */
    static final int CHUNK_UNITS = 8192;

    /** Up to this many units Java copies ASCII and looks at it; a native call takes longer. */
    static final int LOOKED_AT_UNITS = 256;

    /** The scratch of a new encoder, in units. */
    static final int FIRST_UNITS = 512;

    private char[] chars = new char[FIRST_UNITS];
    private byte[] copies = new byte[0];
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
        int done = 0;
        boolean narrow;
        if (Held.OPEN) {
            if (n <= LOOKED_AT_UNITS && Held.isAscii(s)) {
                return Held.copy(s, dst, at, limit);
            }
            if (n <= SHORT_UNITS) {
                return Pure.encode(s, 0, n, dst, at, limit, malformed) - at;
            }
            narrow = Held.isNarrow(s);
        } else {
            if (n <= SHORT_UNITS) {
                return Pure.encode(s, 0, n, dst, at, limit, malformed) - at;
            }
            Latin1.Form form = Latin1.form(s);
            done = form == Latin1.Form.LIKELY_ASCII ? Latin1.ascii(s, dst, at, limit) : 0;
            if (done == n) {
                return n;
            }
            narrow = form != Latin1.Form.UNKNOWN;
        }
        return encode(s, narrow, done, dst, at + done, limit, malformed) - at;
    }

    /** Writes the units from {@code from} on; returns the index behind what was written. */
    int encode(String s, boolean narrow, int from, byte[] dst, int at, int limit, Malformed malformed) {
        int n = s.length();
        int out = at;
        for (int i = from; i < n; ) {
            int to = cut(s, n, i);
            out = part(s, narrow, i, to, dst, out, limit, malformed);
            i = to;
        }
        return out;
    }

    private int part(String s, boolean narrow, int from, int to, byte[] dst, int at, int limit, Malformed malformed) {
        int n = to - from;
        int room = limit - at;
        if (!Native.available()) {
            if (room < (long) Pure.MOST_BYTES * n && room < Pure.length(s, from, to, malformed)) {
                throw noRoom(s, to, malformed);
            }
            s.getChars(from, to, units(n), 0);
            return Pure.encode(chars, 0, n, dst, at, malformed, from);
        }
        long result;
        if (narrow) {
            byte[] src = Held.OPEN ? Held.bytes(s) : copied(s, from, to);
            result = Native.latin1ToUtf8(src, Held.OPEN ? from : 0, n, dst, at, room);
        } else if (Held.OPEN) {
            result = Native.utf16ToUtf8(Held.bytes(s), from, n, dst, at, room, replacement(malformed));
        } else {
            s.getChars(from, to, units(n), 0);
            result = Native.utf16ToUtf8(chars, 0, n, dst, at, room, replacement(malformed));
        }
        return at + written(s, from, result, malformed);
    }

    /**
     * Writes a string into a buffer, heap or direct; its position, limit and byte order are not changed.
     *
     * @param s the string
     * @param dst where to, not read-only
     * @param at the index of the first byte, not before the position
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
        if (Held.OPEN && n <= LOOKED_AT_UNITS && Held.isAscii(s)) {
            return Held.copy(s, dst, at, limit);
        }
        if (n <= SHORT_UNITS) {
            return Pure.encode(s, dst, at, limit, malformed) - at;
        }
        boolean narrow = isNarrow(s);
        int out = at;
        for (int from = 0; from < n; ) {
            int to = cut(s, n, from);
            out = part(s, narrow, from, to, dst, out, limit, malformed);
            from = to;
        }
        return out - at;
    }

    private int part(
            String s, boolean narrow, int from, int to, ByteBuffer dst, int at, int limit, Malformed malformed) {
        int n = to - from;
        int room = limit - at;
        if (!Native.available()) {
            int count = encodePart(s, from, to, malformed);
            if (count > room) {
                throw noRoom(s, to, malformed);
            }
            dst.put(at, bytes, 0, count);
            return at + count;
        }
        long result;
        if (narrow) {
            byte[] src = Held.OPEN ? Held.bytes(s) : copied(s, from, to);
            result = Native.latin1ToUtf8(src, Held.OPEN ? from : 0, n, dst, at, room);
        } else if (Held.OPEN) {
            result = Native.utf16ToUtf8(Held.bytes(s), from, n, dst, at, room, replacement(malformed));
        } else {
            s.getChars(from, to, units(n), 0);
            result = Native.utf16ToUtf8(chars, 0, n, dst, at, room, replacement(malformed));
        }
        return at + written(s, from, result, malformed);
    }

    /** Whether a string is known to be held as one byte for each character; asking costs little where that is not likely. */
    static boolean isNarrow(String s) {
        return Held.OPEN ? Held.isNarrow(s) : Latin1.form(s) != Latin1.Form.UNKNOWN;
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

    /** Writes a part of a string to the beginning of {@link #bytes}: to an array that has room for any, and the JDK copies it. */
    int encodePart(String s, int from, int to, Malformed malformed) {
        byte[] room = room(Pure.MOST_BYTES * (to - from));
        return part(s, isNarrow(s), from, to, room, 0, room.length, malformed);
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

    /** Where the part ends that begins at {@code from}: no pair is parted. */
    static int cut(String s, int n, int from) {
        if (n - from <= CHUNK_UNITS) {
            return n;
        }
        int to = from + CHUNK_UNITS;
        return Character.isHighSurrogate(s.charAt(to - 1)) ? to - 1 : to;
    }

    /** The bytes of a narrow string's part, in a scratch of their own. */
    byte[] copied(String s, int from, int to) {
        int n = to - from;
        if (copies.length < n) {
            copies = new byte[n <= FIRST_UNITS ? FIRST_UNITS : CHUNK_UNITS];
        }
        Latin1.copy(s, from, to, copies, 0);
        return copies;
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
