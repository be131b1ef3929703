package io.github.onecopy.internal;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Copies ASCII out of strings. A string stores ASCII with the same bytes as UTF-8, so the bytes are
 * copied first and then checked (decision 0102).
 *
 * <p>{@code String.getBytes(int, int, byte[], int)} copies the bytes, but truncates characters
 * above U+00FF without an error. Therefore, this class first determines whether the string is
 * narrow, that is, stored as one byte per character. In the public API, only the class of the
 * string's spliterator reveals this. In a JDK in which this class has another name, strings are not
 * copied in this way.
 */
final class Latin1 {
    private static final String NARROW = "java.lang.StringLatin1$CharsSpliterator";
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class,
            ByteOrder.LITTLE_ENDIAN);
    private static final long HIGH_BITS = 0x8080808080808080L;

    /**
     * The number of bytes that are copied before they are checked. If text is not ASCII, at most
     * this number of bytes is copied unnecessarily.
     */
    private static final int CHUNK = 1024;

    private static final int STEP = 32;

    /**
     * The class of a narrow string's spliterator. If the name of this class is not the expected
     * one, the field contains a class that is not the class of any spliterator.
     */
    private static final Class<?> SPLITERATOR = spliterator();

    private Latin1() {}

    private static Class<?> spliterator() {
        Class<?> found = "\u00E9".chars().spliterator().getClass();
        return found.getName().equals(NARROW) ? found : Latin1.class;
    }

    /**
     * Returns true if the JVM stores the string {@code s} as one byte per character. Such a string
     * has no characters above U+00FF.
     */
    static boolean holds(String s) {
        return s.chars().spliterator().getClass() == SPLITERATOR;
    }

    /** The facts about a string that are known without a scan of its characters. */
    enum Form {
        /** The storage of the string is not known. */
        UNKNOWN,
        /** The string is stored as one byte per character. */
        NARROW,
        /**
         * The string is stored as one byte per character. Its first, middle and last character are
         * ASCII; the others were not examined.
         */
        LIKELY_ASCII;
    }

    /**
     * Determines how the JVM stores a string. First examines the first, the middle and the last
     * character. If one of them is above U+00FF, returns {@code UNKNOWN} without a further check.
     */
    static Form form(String s) {
        int n = s.length();
        int sample = n == 0 ? 0xFFFF : s.charAt(0) | s.charAt(n >> 1) | s.charAt(n - 1);
        if (sample > 0xFF || !holds(s)) {
            return Form.UNKNOWN;
        }
        return sample < 0x80 ? Form.LIKELY_ASCII : Form.NARROW;
    }

    /**
     * Writes the ASCII characters at the start of a narrow string, as far as they fit. It may stop
     * some characters before the first one that is not ASCII.
     *
     * @return the index in the string of the first character that was not written. Up to {@code
     * limit}, bytes of {@code dst} after the written characters may be overwritten too
     */
    static int ascii(String s, byte[] dst, int at, int limit) {
        int n = s.length();
        int i = 0;
        while (i < n) {
            int copied = Math.min(Math.min(n - i, CHUNK), limit - at);
            copy(s, i, i + copied, dst, at);
            int count = prefix(dst, at, copied);
            i += count;
            at += count;
            if (count < copied || at == limit) {
                break;
            }
        }
        return i;
    }

    @SuppressWarnings("deprecation") // Deprecated because it does not encode, as needed here.
    static void copy(String s, int from, int to, byte[] dst, int at) {
        s.getBytes(from, to, dst, at);
    }

    /**
     * Returns the number of bytes before the first group of 32 bytes that contains a byte which is
     * not ASCII. Returns {@code n} if all bytes are ASCII.
     */
    static int prefix(byte[] b, int at, int n) {
        int i = 0;
        for (; i <= n - STEP; i += STEP) {
            if (isNotAscii(b, at + i)) {
                return i;
            }
        }
        if (i == n) {
            return n;
        }
        if (n >= STEP) {
            return isNotAscii(b, at + n - STEP) ? i : n;
        }
        if (n >= 16) {
            long v = word(b, at) | word(b, at + 8) | word(b, at + n - 16) | word(b, at + n - 8);
            return (v & HIGH_BITS) != 0 ? 0 : n;
        }
        int v = 0;
        for (; i < n; i++) {
            v |= b[at + i];
        }
        return v < 0 ? 0 : n;
    }

    /** Returns true if at least one of the 32 bytes from {@code at} on is not ASCII. */
    private static boolean isNotAscii(byte[] b, int at) {
        return ((word(b, at) | word(b, at + 8) | word(b, at + 16) | word(b, at + 24)) & HIGH_BITS)
                != 0;
    }

    private static long word(byte[] b, int at) {
        return (long) LONGS.get(b, at);
    }
}
