package io.github.onecopy.internal;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * ASCII, which strings store as UTF-8 does: bytes are copied out of the string and then checked
 * (decision 0102).
 *
 * {@code String.getBytes(int, int, byte[], int)} copies them and nothing else, but silently
 * truncates wider characters. So the storage of the string is determined first; in the public API
 * its spliterator reveals it, whose class is named for the storage. In a JDK that names it
 * differently, this path is never used.
 */
final class Latin1 {
    private static final String NARROW = "java.lang.StringLatin1$CharsSpliterator";
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class,
            ByteOrder.LITTLE_ENDIAN);
    private static final long HIGH_BITS = 0x8080808080808080L;

    /** Bytes copied before they are checked: for text that is not ASCII, no more is copied in vain.
     */
    private static final int CHUNK = 1024;

    private static final int STEP = 32;

    /**
     * The class of the spliterator over narrow strings; a class that no string has if the JDK's is
     * another one.
     */
    private static final Class<?> SPLITERATOR = spliterator();

    private Latin1() {}

    private static Class<?> spliterator() {
        Class<?> found = "\u00E9".chars().spliterator().getClass();
        return found.getName().equals(NARROW) ? found : Latin1.class;
    }

    /**
     * Returns true if a string is stored as one byte per character, and so has none past U+00FF.
     */
    static boolean holds(String s) {
        return s.chars().spliterator().getClass() == SPLITERATOR;
    }

    /** Facts about a string that need no scan. */
    enum Form {
        /** It may be held in any way. */
        UNKNOWN,
        /** It is held as one byte for each character. */
        NARROW,
        /** It is, and the few characters that were checked are ASCII. */
        LIKELY_ASCII;
    }

    /**
     * Determines the storage of a string only if three of its characters suggest that it is narrow.
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
     * Writes the first units of a narrow string as far as they are ASCII and fit; it may stop some
     * units earlier.
     *
     * @return the index of the first unit that is not written; bytes after it may be overwritten,
     * up to {@code limit}
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

    /** The bytes before a step in which one is not ASCII, or all. */
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

    /** Returns true if one of the step's bytes is not ASCII. */
    private static boolean isNotAscii(byte[] b, int at) {
        return ((word(b, at) | word(b, at + 8) | word(b, at + 16) | word(b, at + 24)) & HIGH_BITS)
                != 0;
    }

    private static long word(byte[] b, int at) {
        return (long) LONGS.get(b, at);
    }
}
