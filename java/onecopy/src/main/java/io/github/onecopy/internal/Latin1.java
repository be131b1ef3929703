package io.github.onecopy.internal;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * ASCII, which a string holds as it is in UTF-8: bytes are copied out of it and then looked at (decision 0102).
 *
 * <p>{@code String.getBytes(int, int, byte[], int)} copies them and nothing else, but takes the low bytes of wider strings in silence.
 * So it is asked first in which form a string is held; of the public API its spliterator tells, whose class is named for the form.
 * Where a JDK has another name for it, this way is never taken.
 */
final class Latin1 {
    private static final String NARROW = "java.lang.StringLatin1$CharsSpliterator";
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final long HIGH_BITS = 0x8080808080808080L;

    /** What is copied before it is looked at: where the text is not ASCII, no more is done in vain. */
    private static final int CHUNK = 1024;

    private static final int STEP = 32;

    /** The class of the spliterator over narrow strings; one that no string has where it is not what its name says. */
    private static final Class<?> SPLITERATOR = spliterator();

    private Latin1() {}

    private static Class<?> spliterator() {
        Class<?> found = "\u00E9".chars().spliterator().getClass();
        return found.getName().equals(NARROW) ? found : Latin1.class;
    }

    /** Whether a string is held as one byte for each character, and so has none past U+00FF. */
    static boolean holds(String s) {
        return s.chars().spliterator().getClass() == SPLITERATOR;
    }

    /** What is known of a string without looking at all of it. */
    enum Form {
        /** It may be held in any way. */
        UNKNOWN,
        /** It is held as one byte for each character. */
        NARROW,
        /** It is, and a few characters that were looked at are ASCII. */
        LIKELY_ASCII;
    }

    /** Asks in which form a string is held only where three of its characters let the answer be expected. */
    static Form form(String s) {
        int n = s.length();
        int sample = n == 0 ? 0xFFFF : s.charAt(0) | s.charAt(n >> 1) | s.charAt(n - 1);
        if (sample > 0xFF || !holds(s)) {
            return Form.UNKNOWN;
        }
        return sample < 0x80 ? Form.LIKELY_ASCII : Form.NARROW;
    }

    /**
     * Writes the first units of a narrow string as far as they are ASCII and there is room; it may stop some units before that.
     *
     * @return the index of the first unit that is not written; bytes behind it may be overwritten, up to {@code limit}
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

    @SuppressWarnings("deprecation") // It does not encode, which is what it is deprecated for, and just what is wanted.
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

    /** Whether one of the step's bytes is not ASCII. */
    private static boolean isNotAscii(byte[] b, int at) {
        return ((word(b, at) | word(b, at + 8) | word(b, at + 16) | word(b, at + 24)) & HIGH_BITS) != 0;
    }

    private static long word(byte[] b, int at) {
        return (long) LONGS.get(b, at);
    }
}
