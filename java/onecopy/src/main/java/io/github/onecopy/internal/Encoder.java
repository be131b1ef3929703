package io.github.onecopy.internal;

import io.github.onecopy.Malformed;
import io.github.onecopy.MalformedTextException;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * Writes strings as UTF-8 into destinations of the caller. An encoder can be used again and keeps
 * its scratch arrays, so it is not thread-safe. If the arrays inside strings are accessible ({@link
 * StringArrays}) and the native library is in use, {@code encode} uses no scratch array, and
 * several threads may call it on one encoder.
 *
 * Short strings are encoded by a plain loop. Strings known to be ASCII are copied. All others are
 * encoded by native calls, one for each part of the string. The encoder does not change the
 * position of any buffer. Bytes after {@code at} may be overwritten even if an exception is thrown.
 */
public final class Encoder {
    /**
     * A string of at most this number of UTF-16 units is encoded by a plain loop, because a native
     * call would take longer.
     */
    static final int SHORT_UNITS = 16;

    /**
     * The largest number of UTF-16 units that one call converts, so that the scratch array stays in
     * the L1 cache.
     */
    static final int CHUNK_UNITS = 8192;

    /**
     * ASCII text of up to this number of UTF-16 units is checked and copied in Java, because a native
     * call takes longer.
     */
    static final int LOOKED_AT_UNITS = 256;

    /** The length of a new encoder's scratch array, in UTF-16 units. */
    static final int FIRST_UNITS = 512;

    private char[] chars = new char[FIRST_UNITS];
    private byte[] copies = new byte[0];
    byte[] bytes = new byte[0];

    /** Creates an instance. */
    public Encoder() {}

    /**
     * Writes a string into an array.
     *
     * @param s the string
     * @param dst the destination
     * @param at the index of the first byte
     * @param limit the index after the last byte that may be written
     * @param malformed the treatment of lone surrogates
     * @return the number of bytes written
     * @throws IndexOutOfBoundsException if {@code at} and {@code limit} are not a range of {@code
     * dst}
     * @throws BufferOverflowException if the text does not fit
     * @throws MalformedTextException for a lone surrogate, if {@code malformed} is THROW; it is
     * thrown even if the text would not fit
     */
    public int encode(String s, byte[] dst, int at, int limit, Malformed malformed) {
        Objects.checkFromToIndex(at, limit, dst.length);
        int n = s.length();
        int done = 0;
        boolean narrow;
        if (StringArrays.OPEN) {
            if (n <= LOOKED_AT_UNITS && StringArrays.isAscii(s)) {
                return StringArrays.copy(s, dst, at, limit);
            }
            if (n <= SHORT_UNITS) {
                return Pure.encode(s, 0, n, dst, at, limit, malformed) - at;
            }
            narrow = StringArrays.isNarrow(s);
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

    /**
     * Writes the string's UTF-16 units from {@code from} on. {@code narrow} is true if the string
     * is stored as one byte per character. Returns the index after the last byte written.
     */
    int encode(String s, boolean narrow, int from, byte[] dst, int at, int limit,
            Malformed malformed) {
        int n = s.length();
        int out = at;
        for (int i = from; i < n; ) {
            int to = cut(s, n, i);
            out = part(s, narrow, i, to, dst, out, limit, malformed);
            i = to;
        }
        return out;
    }

    private int part(String s, boolean narrow, int from, int to, byte[] dst, int at, int limit,
            Malformed malformed) {
        int n = to - from;
        int capacity = limit - at;
        if (!Native.available()) {
            if (capacity < (long) Pure.MOST_BYTES * n
                    && capacity < Pure.length(s, from, to, malformed)) {
                throw overflow(s, to, malformed);
            }
            s.getChars(from, to, units(n), 0);
            return Pure.encode(chars, 0, n, dst, at, malformed, from);
        }
        long result;
        if (narrow) {
            byte[] src = StringArrays.OPEN ? StringArrays.bytes(s) : copied(s, from, to);
            result = Native.latin1ToUtf8(src, StringArrays.OPEN ? from : 0, n, dst, at, capacity);
        } else if (StringArrays.OPEN) {
            result = Native.utf16ToUtf8(StringArrays.bytes(s), from, n, dst, at, capacity,
                    replacement(malformed));
        } else {
            s.getChars(from, to, units(n), 0);
            result = Native.utf16ToUtf8(chars, 0, n, dst, at, capacity, replacement(malformed));
        }
        return at + written(s, from, result, malformed);
    }

    /**
     * Writes a string into a heap or direct buffer. The buffer's position, limit and byte order are
     * not changed.
     *
     * @param s the string
     * @param dst the destination, not read-only
     * @param at the index of the first byte, not before the position
     * @param limit the index after the last byte that may be written, at most the buffer's own
     * limit
     * @param malformed the treatment of lone surrogates
     * @return the number of bytes written
     * @throws IndexOutOfBoundsException if {@code at} and {@code limit} are not a range of {@code
     * dst}
     * @throws java.nio.ReadOnlyBufferException if the buffer is read-only
     * @throws BufferOverflowException if the text does not fit
     * @throws MalformedTextException for a lone surrogate, if {@code malformed} is THROW; it is
     * thrown even if the text would not fit
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
        if (StringArrays.OPEN && n <= LOOKED_AT_UNITS && StringArrays.isAscii(s)) {
            return StringArrays.copy(s, dst, at, limit);
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
            String s, boolean narrow, int from, int to, ByteBuffer dst, int at, int limit,
            Malformed malformed) {
        int n = to - from;
        int capacity = limit - at;
        if (!Native.available()) {
            int count = encodePart(s, from, to, malformed);
            if (count > capacity) {
                throw overflow(s, to, malformed);
            }
            dst.put(at, bytes, 0, count);
            return at + count;
        }
        long result;
        if (narrow) {
            byte[] src = StringArrays.OPEN ? StringArrays.bytes(s) : copied(s, from, to);
            result = Native.latin1ToUtf8(src, StringArrays.OPEN ? from : 0, n, dst, at, capacity);
        } else if (StringArrays.OPEN) {
            result = Native.utf16ToUtf8(StringArrays.bytes(s), from, n, dst, at, capacity,
                    replacement(malformed));
        } else {
            s.getChars(from, to, units(n), 0);
            result = Native.utf16ToUtf8(chars, 0, n, dst, at, capacity, replacement(malformed));
        }
        return at + written(s, from, result, malformed);
    }

    /**
     * Returns true if a string is known to be stored as one byte per character. The check first
     * examines three characters, so it takes little time for most strings with wider characters.
     */
    static boolean isNarrow(String s) {
        return StringArrays.OPEN ? StringArrays.isNarrow(s) : Latin1.form(s) != Latin1.Form.UNKNOWN;
    }

    static int replacement(Malformed malformed) {
        return malformed == Malformed.REPLACE ? '?' : 0;
    }

    /**
     * Returns the number of bytes that a native call has written, or throws the exception for its
     * error. {@code from} is the index of the first UTF-16 unit that was passed to the call.
     */
    static int written(String s, int from, long result, Malformed malformed) {
        if (result >= 0) {
            return (int) result;
        }
        if (result == Native.NO_ROOM) {
            throw overflow(s, from, malformed);
        }
        int index = from + (int) (-1 - result);
        throw Pure.loneSurrogate(s.charAt(index), index);
    }

    /**
     * Returns the exception for a text that does not fit. With THROW, throws the exception for a
     * lone surrogate instead if there is one at or after {@code from}.
     */
    static BufferOverflowException overflow(String s, int from, Malformed malformed) {
        Pure.length(s, from, s.length(), malformed);
        return new BufferOverflowException();
    }

    /**
     * Writes a part of a string in UTF-8 to the beginning of {@link #bytes}, and enlarges this
     * array if necessary. Returns the number of bytes. The caller then copies these bytes from the
     * array.
     */
    int encodePart(String s, int from, int to, Malformed malformed) {
        byte[] buffer = reserve(Pure.MOST_BYTES * (to - from));
        return part(s, isNarrow(s), from, to, buffer, 0, buffer.length, malformed);
    }

    /**
     * Returns the number of bytes of a string in UTF-8, where a lone surrogate counts as one byte.
     */
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

    /**
     * Returns the index at which the part of a long string that starts at {@code from} ends. A
     * surrogate pair is never divided.
     */
    static int cut(String s, int n, int from) {
        if (n - from <= CHUNK_UNITS) {
            return n;
        }
        int to = from + CHUNK_UNITS;
        return Character.isHighSurrogate(s.charAt(to - 1)) ? to - 1 : to;
    }

    /**
     * Copies a part of a narrow string to a scratch array, one byte per character; returns this
     * array.
     */
    byte[] copied(String s, int from, int to) {
        int n = to - from;
        if (copies.length < n) {
            copies = new byte[n <= FIRST_UNITS ? FIRST_UNITS : CHUNK_UNITS];
        }
        Latin1.copy(s, from, to, copies, 0);
        return copies;
    }

    /** Returns the scratch array, which has at least {@code n} UTF-16 units. */
    char[] units(int n) {
        if (chars.length < n) {
            chars = new char[CHUNK_UNITS];
        }
        return chars;
    }

    private byte[] reserve(int n) {
        if (bytes.length < n) {
            bytes = new byte[Math.max(n, Pure.MOST_BYTES * FIRST_UNITS)];
        }
        return bytes;
    }
}
