package io.github.onecopy.internal;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import io.github.onecopy.Malformed;
import io.github.onecopy.MalformedTextException;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * Decodes UTF-8 to strings. A decoder has scratch arrays, so it is not thread-safe.
 *
 * <p>A string is immutable. Therefore, the text is converted into a scratch array, and the JDK
 * copies it from there into the string. The scratch array contains Latin-1 or UTF-16, like the
 * string.
 */
public final class Decoder {
    /**
     * Text of at most this number of bytes is decoded by the JDK, because a native call would take
     * longer.
     */
    static final int SHORT_BYTES = 16;

    /**
     * The largest number of bytes that one step of a conversion reads. It is so small that the
     * scratch arrays stay in the L1 cache. A longer text is converted into a new array.
     */
    static final int CHUNK_BYTES = 8192;

    /**
     * An array of at most this number of bytes is checked for ASCII in Java, because a native call
     * would take longer.
     */
    private static final int LOOKED_AT_BYTES = 256;

    /**
     * The number of bytes at the start of a direct buffer that are checked for ASCII in Java, if
     * the text is too long for a complete check in Java.
     */
    private static final int FIRST_BYTES = 32;

    private static final int REPLACEMENT = 0xFFFD;

    private char[] chars = new char[512];
    private byte[] bytes = new byte[512];
    private byte[] source = new byte[0];

    /** Creates an instance. */
    public Decoder() {}

    /**
     * Decodes a range of an array.
     *
     * @param src the source
     * @param at the index of the first byte
     * @param n the number of bytes
     * @param malformed the treatment of invalid sequences
     * @return the string
     * @throws IndexOutOfBoundsException if the range is not within {@code src}
     * @throws MalformedTextException for an invalid sequence, if {@code malformed} is THROW; its
     * index is counted from {@code at}
     */
    public String decode(byte[] src, int at, int n, Malformed malformed) {
        Objects.checkFromIndexSize(at, n, src.length);
        if (n <= SHORT_BYTES || !Native.available()) {
            return byTheJdk(src, at, n, malformed);
        }
        int ascii = asciiPrefix(src, null, at, n);
        if (ascii == n) {
            return new String(src, at, n, ISO_8859_1);
        }
        String s = decode(src, null, src[at + ascii], at, n, malformed);
        // Malformed text is replaced by the JDK, because decoders differ: for a surrogate encoded
        // in three bytes, the JDK's result has U+FFFD once, that of other decoders three times.
        return s != null ? s : new String(src, at, n, UTF_8);
    }

    /**
     * Decodes a range of a heap or direct buffer. The position and the byte order of the buffer are
     * not used.
     *
     * @param src the source
     * @param at the index of the first byte
     * @param n the number of bytes
     * @param malformed the treatment of invalid sequences
     * @return the string
     * @throws IndexOutOfBoundsException if the range is not within {@code src}, below its limit
     * @throws MalformedTextException for an invalid sequence, if {@code malformed} is THROW; its
     * index is counted from {@code at}
     */
    public String decode(ByteBuffer src, int at, int n, Malformed malformed) {
        Objects.checkFromIndexSize(at, n, src.limit());
        if (src.hasArray()) {
            return decode(src.array(), src.arrayOffset() + at, n, malformed);
        }
        int ascii = asciiPrefix(src, at, n);
        String s = ascii < n ? decode(null, src, src.get(at + ascii), at, n, malformed) : null;
        if (s != null) {
            return s;
        }
        // The text is short, or ASCII, or malformed. A copy to an array takes less time than
        // creating a segment of the buffer.
        byte[] copy = source(n);
        src.get(at, copy, 0, n);
        return decode(copy, 0, n, malformed);
    }

    /**
     * Decodes text that is not ASCII. {@code lead} is its first byte that is not ASCII. The text is
     * in {@code array} or in {@code buffer}; the other argument is null.
     *
     * @return the string; null if the text is malformed and the policy is REPLACE
     */
    private String decode(byte[] array, ByteBuffer buffer, byte lead, int at, int n,
            Malformed malformed) {
        if (lead == (byte) 0xC2 || lead == (byte) 0xC3) {
            byte[] latin1 = n <= CHUNK_BYTES ? bytes(n) : new byte[n];
            int count = latin1(array, buffer, at, n, latin1);
            if (count >= 0) {
                return new String(latin1, 0, count, ISO_8859_1);
            }
        }
        // The scratch array has one UTF-16 unit for each byte. Another thread may change the bytes
        // meanwhile, so a number of units that was computed before could be too small.
        char[] scratch = chars(Math.min(n, CHUNK_BYTES));
        char[] units = n <= CHUNK_BYTES ? scratch : new char[units(array, buffer, at, n)];
        int out = 0;
        for (int done = 0; done < n; ) {
            int part = part(array, buffer, at, done, n);
            long count = array != null
                    ? Native.utf8ToUtf16(array, at + done, part, scratch, 0, scratch.length, 0)
                    : Native.utf8ToUtf16(buffer, at + done, part, scratch, 0, scratch.length, 0);
            if (count < 0) {
                // The scratch array is large enough for any valid text, so this text is malformed.
                if (malformed == Malformed.THROW) {
                    throw Pure.invalid(done - 1 - count);
                }
                return null;
            }
            if (units != scratch) {
                System.arraycopy(scratch, 0, units, out, (int) count);
            }
            out += (int) count;
            done += part;
        }
        return new String(units, 0, out);
    }

    /**
     * Returns the number of UTF-16 units of a text, where each malformed sequence counts as its
     * replacement.
     */
    private static int units(byte[] array, ByteBuffer buffer, int at, int n) {
        int units = 0;
        for (int done = 0; done < n; ) {
            int part = part(array, buffer, at, done, n);
            units += (int) (array != null
                    ? Native.utf16Length(array, at + done, part, REPLACEMENT)
                    : Native.utf16Length(buffer, at + done, part, REPLACEMENT));
            done += part;
        }
        return units;
    }

    /**
     * Converts a UTF-8 text to Latin-1 in {@code dst}; returns the number of bytes written, or -1
     * if the text is malformed or contains characters outside of Latin-1.
     */
    private static int latin1(byte[] array, ByteBuffer buffer, int at, int n, byte[] dst) {
        int out = 0;
        for (int done = 0; done < n; ) {
            int part = part(array, buffer, at, done, n);
            long count = array != null
                    ? Native.utf8ToLatin1(array, at + done, part, dst, out, dst.length - out)
                    : Native.utf8ToLatin1(buffer, at + done, part, dst, out, dst.length - out);
            if (count < 0) {
                return -1;
            }
            out += (int) count;
            done += part;
        }
        return out;
    }

    /**
     * Returns the number of bytes before the first byte that is not ASCII, or {@code n} if no such
     * byte was found. Not all bytes are searched: a short text is not searched at all, and of a
     * text that fits into the scratch array only the first bytes are searched.
     */
    private static int asciiPrefix(ByteBuffer src, int at, int n) {
        if (n <= LOOKED_AT_BYTES || !Native.available()) {
            return n;
        }
        if (n > CHUNK_BYTES) {
            return asciiPrefix(null, src, at, n);
        }
        for (int i = 0; i < FIRST_BYTES; i++) {
            if (src.get(at + i) < 0) {
                return i;
            }
        }
        return n;
    }

    private static int asciiPrefix(byte[] array, ByteBuffer buffer, int at, int n) {
        int done = 0;
        if (array != null && n <= LOOKED_AT_BYTES) {
            done = Latin1.prefix(array, at, n);
            while (done < n && array[at + done] >= 0) {
                done++;
            }
            return done;
        }
        while (done < n) {
            int part = Math.min(n - done, Native.MOST_UNITS);
            int count = (int) (array != null
                    ? Native.asciiPrefix(array, at + done, part)
                    : Native.asciiPrefix(buffer, at + done, part));
            done += count;
            if (count < part) {
                break;
            }
        }
        return done;
    }

    /**
     * Returns the number of bytes to convert next. No valid UTF-8 sequence is divided.
     */
    private static int part(byte[] array, ByteBuffer buffer, int at, int done, int n) {
        if (n - done <= CHUNK_BYTES) {
            return n - done;
        }
        int part = CHUNK_BYTES;
        for (int back = 0; back <= 3; back++) {
            int i = at + done + part - back;
            if (((array != null ? array[i] : buffer.get(i)) & 0xC0) != 0x80) {
                return part - back;
            }
        }
        // No valid text has four continuation bytes in a row, so the text may be divided anywhere.
        return part;
    }

    /**
     * Decodes with {@code new String}, which replaces malformed sequences with U+FFFD. If {@code
     * malformed} is THROW and the string contains U+FFFD, the bytes are validated, because valid
     * text may contain U+FFFD too.
     */
    private static String byTheJdk(byte[] src, int at, int n, Malformed malformed) {
        String s = new String(src, at, n, UTF_8);
        if (malformed == Malformed.THROW && s.indexOf(REPLACEMENT) >= 0) {
            // A valid text may contain U+FFFD too.
            int index = Pure.indexOfInvalid(src, at, n);
            if (index >= 0) {
                throw Pure.invalid(index);
            }
        }
        return s;
    }

    /**
     * Finds the first invalid sequence in a range of an array.
     *
     * @param src the bytes
     * @param at the index of the first byte
     * @param n the number of bytes
     * @return the number of bytes before the first invalid sequence, or -1 if the range is valid
     * @throws IndexOutOfBoundsException if the range is not within {@code src}
     */
    public long indexOfInvalid(byte[] src, int at, int n) {
        Objects.checkFromIndexSize(at, n, src.length);
        if (n <= SHORT_BYTES || !Native.available()) {
            return Pure.indexOfInvalid(src, at, n);
        }
        for (int done = 0; done < n; ) {
            int part = part(src, null, at, done, n);
            long index = Native.findMalformed(src, at + done, part);
            if (index < part) {
                return done + index;
            }
            done += part;
        }
        return -1;
    }

    /**
     * Finds the first invalid sequence in a range of a buffer.
     *
     * @param src the bytes
     * @param at the index of the first byte
     * @param n the number of bytes
     * @return the number of bytes before the first invalid sequence, or -1 if the range is valid
     * @throws IndexOutOfBoundsException if the range is not within {@code src}, below its limit
     */
    public long indexOfInvalid(ByteBuffer src, int at, int n) {
        Objects.checkFromIndexSize(at, n, src.limit());
        if (src.hasArray()) {
            return indexOfInvalid(src.array(), src.arrayOffset() + at, n);
        }
        for (int done = 0; done < n; ) {
            int part = part(null, src, at, done, n);
            long index;
            if (n > CHUNK_BYTES && Native.available()) {
                index = Native.findMalformed(src, at + done, part);
            } else {
                byte[] copy = source(part);
                src.get(at + done, copy, 0, part);
                index = indexOfInvalid(copy, 0, part);
            }
            if (index >= 0 && index < part) {
                return done + index;
            }
            done += part;
        }
        return -1;
    }

    private char[] chars(int n) {
        if (chars.length < n) {
            chars = new char[CHUNK_BYTES];
        }
        return chars;
    }

    /**
     * Returns a scratch array of at least {@code n} bytes. The caller copies bytes of a buffer or
     * segment to this array.
     */
    byte[] source(int n) {
        if (n > CHUNK_BYTES) {
            return new byte[n];
        }
        if (source.length < n) {
            source = new byte[n <= 512 ? 512 : CHUNK_BYTES];
        }
        return source;
    }

    private byte[] bytes(int n) {
        if (bytes.length < n) {
            bytes = new byte[CHUNK_BYTES];
        }
        return bytes;
    }
}
