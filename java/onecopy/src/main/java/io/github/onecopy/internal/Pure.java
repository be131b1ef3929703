package io.github.onecopy.internal;

import io.github.onecopy.Malformed;
import io.github.onecopy.MalformedTextException;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;

/**
 * Converts UTF-8 (RFC 3629) in plain loops. The loops are used for short texts, if the native
 * library is not available, and as the reference implementation of the tests.
 */
final class Pure {
    private Pure() {}

    /**
     * The largest number of bytes for one UTF-16 unit. A surrogate pair has four bytes for two
     * units.
     */
    static final int MOST_BYTES = 3;

    /**
     * Writes the UTF-16 units {@code from..to} of a string without an intermediate array, which is
     * the fastest way for short strings.
     *
     * @return the index in {@code dst} after the last byte written
     */
    static int encode(String s, int from, int to, byte[] dst, int at, int limit,
            Malformed malformed) {
        if (limit - at < (long) MOST_BYTES * (to - from)
                && limit - at < length(s, from, to, malformed)) {
            throw new BufferOverflowException();
        }
        int out = at;
        for (int i = from; i < to; i++) {
            char c = s.charAt(i);
            if (c < 0x80) {
                dst[out++] = (byte) c;
            } else if (c < 0x800) {
                dst[out] = (byte) (0xC0 | c >> 6);
                dst[out + 1] = (byte) (0x80 | c & 0x3F);
                out += 2;
            } else if (!Character.isSurrogate(c)) {
                dst[out] = (byte) (0xE0 | c >> 12);
                dst[out + 1] = (byte) (0x80 | c >> 6 & 0x3F);
                dst[out + 2] = (byte) (0x80 | c & 0x3F);
                out += 3;
            } else if (isPair(s, c, i, to)) {
                out = pair(c, s.charAt(++i), dst, out);
            } else {
                dst[out++] = lone(c, i, malformed);
            }
        }
        return out;
    }

    /**
     * Writes a short string into a direct buffer, byte by byte. Up to about 16 UTF-16 units, this
     * takes less time than an intermediate array.
     *
     * @return the index in {@code dst} after the last byte written
     */
    static int encode(String s, ByteBuffer dst, int at, int limit, Malformed malformed) {
        int n = s.length();
        checkCapacity(s, limit - at, malformed);
        int out = at;
        for (int i = 0; i < n; i++) {
            char c = s.charAt(i);
            if (c < 0x80) {
                dst.put(out++, (byte) c);
            } else if (c < 0x800) {
                dst.put(out, (byte) (0xC0 | c >> 6));
                dst.put(out + 1, (byte) (0x80 | c & 0x3F));
                out += 2;
            } else if (!Character.isSurrogate(c)) {
                dst.put(out, (byte) (0xE0 | c >> 12));
                dst.put(out + 1, (byte) (0x80 | c >> 6 & 0x3F));
                dst.put(out + 2, (byte) (0x80 | c & 0x3F));
                out += 3;
            } else if (isPair(s, c, i, n)) {
                int point = Character.toCodePoint(c, s.charAt(++i));
                dst.put(out, (byte) (0xF0 | point >> 18));
                dst.put(out + 1, (byte) (0x80 | point >> 12 & 0x3F));
                dst.put(out + 2, (byte) (0x80 | point >> 6 & 0x3F));
                dst.put(out + 3, (byte) (0x80 | point & 0x3F));
                out += 4;
            } else {
                dst.put(out++, lone(c, i, malformed));
            }
        }
        return out;
    }

    /**
     * Returns true if {@code c}, at the index {@code i}, is the first half of a surrogate pair that
     * ends before {@code to}.
     */
    static boolean isPair(String s, char c, int i, int to) {
        return Character.isHighSurrogate(c) && i + 1 < to
                && Character.isLowSurrogate(s.charAt(i + 1));
    }

    /** Throws an exception if the UTF-8 of a string is longer than {@code capacity} bytes. */
    static void checkCapacity(String s, long capacity, Malformed malformed) {
        int n = s.length();
        if (capacity < (long) MOST_BYTES * n && capacity < length(s, 0, n, malformed)) {
            throw new BufferOverflowException();
        }
    }

    /**
     * Writes the UTF-16 units {@code from..to} of an array as UTF-8. The array contains a part of a
     * string. {@code base} is the index in the string at which this part begins; the index in the
     * exception is computed from it.
     *
     * @return the index in {@code dst} after the last byte written; the caller has ensured space
     * for {@link #MOST_BYTES} per unit
     */
    static int encode(char[] s, int from, int to, byte[] dst, int at, Malformed malformed,
            int base) {
        int out = at;
        for (int i = from; i < to; i++) {
            char c = s[i];
            if (c < 0x80) {
                dst[out++] = (byte) c;
            } else if (c < 0x800) {
                dst[out] = (byte) (0xC0 | c >> 6);
                dst[out + 1] = (byte) (0x80 | c & 0x3F);
                out += 2;
            } else if (!Character.isSurrogate(c)) {
                dst[out] = (byte) (0xE0 | c >> 12);
                dst[out + 1] = (byte) (0x80 | c >> 6 & 0x3F);
                dst[out + 2] = (byte) (0x80 | c & 0x3F);
                out += 3;
            } else if (Character.isHighSurrogate(c) && i + 1 < to
                    && Character.isLowSurrogate(s[i + 1])) {
                out = pair(c, s[++i], dst, out);
            } else {
                dst[out++] = lone(c, base + i, malformed);
            }
        }
        return out;
    }

    private static int pair(char high, char low, byte[] dst, int out) {
        int c = Character.toCodePoint(high, low);
        dst[out] = (byte) (0xF0 | c >> 18);
        dst[out + 1] = (byte) (0x80 | c >> 12 & 0x3F);
        dst[out + 2] = (byte) (0x80 | c >> 6 & 0x3F);
        dst[out + 3] = (byte) (0x80 | c & 0x3F);
        return out + 4;
    }

    /** Returns the replacement of a lone surrogate, or throws the exception for it. */
    static byte lone(char c, int index, Malformed malformed) {
        if (malformed == Malformed.THROW) {
            throw loneSurrogate(c, index);
        }
        return '?';
    }

    static MalformedTextException loneSurrogate(char c, int index) {
        String unit = Integer.toHexString(c).toUpperCase(java.util.Locale.ROOT);
        return new MalformedTextException(
                "`U+" + unit + "` at index " + index
                + " is a lone surrogate, which UTF-8 has no form for\n"
                        + "Malformed.REPLACE writes '?' for it.",
                index);
    }

    /** Returns the length in UTF-8, in bytes, of the UTF-16 units {@code from..to}. */
    static long length(String s, int from, int to, Malformed malformed) {
        long n = to - from;
        for (int i = from; i < to; i++) {
            char c = s.charAt(i);
            if (c >= 0x80) {
                n++;
                if (c >= 0x800) {
                    if (!Character.isSurrogate(c)) {
                        n++;
                    } else if (Character.isHighSurrogate(c) && i + 1 < to
                            && Character.isLowSurrogate(s.charAt(i + 1))) {
                        n++;
                        i++;
                    } else {
                        lone(c, i, malformed);
                        n--;
                    }
                }
            }
        }
        return n;
    }

    /**
     * Finds the first malformed sequence in a range of UTF-8.
     *
     * @return the number of bytes before the first malformed sequence, or -1
     */
    static int indexOfInvalid(byte[] src, int at, int n) {
        int end = at + n;
        for (int i = at; i < end; ) {
            byte b = src[i];
            if (b >= 0) {
                i++;
                continue;
            }
            int width = width(src, i, end);
            if (width < 0) {
                return i - at;
            }
            i += width;
        }
        return -1;
    }

    /**
     * Returns the length in bytes, 2 to 4, of the non-ASCII sequence that starts at the index
     * {@code i}; -1 if the sequence is malformed (RFC 3629, section 4).
     */
    private static int width(byte[] src, int i, int end) {
        int first = src[i] & 0xFF;
        if (first < 0xC2 || first > 0xF4) {
            return -1;
        }
        int width = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
        if (end - i < width) {
            return -1;
        }
        int second = src[i + 1] & 0xFF;
        int least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        int most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
        if (second < least || second > most) {
            return -1;
        }
        for (int k = 2; k < width; k++) {
            if ((src[i + k] & 0xC0) != 0x80) {
                return -1;
            }
        }
        return width;
    }

    static MalformedTextException invalid(long index) {
        return new MalformedTextException(
                "the bytes are not UTF-8 from byte " + index
                + " on\nMalformed.REPLACE reads U+FFFD for them.", index);
    }
}
