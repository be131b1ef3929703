package io.github.onecopy.internal;

import java.nio.ByteBuffer;

/**
 * The interface to the native library on JDK 17 to 21, on which the library is not available. For
 * JDK 22 and newer, the jar has another version of this class with the same members, which loads
 * the library. No other class uses method handles to call it.
 *
 * <p>The methods return the results of the C functions: a count, or {@code -1 - k} for malformed
 * text at unit k, or {@link #NO_ROOM}. The callers have checked that each range is within its array
 * or buffer. The garbage collector cannot run during a call. To keep each call short, no range is
 * longer than {@link #MOST_UNITS}.
 */
public final class Native {
    /**
     * The maximum length of the text that is passed to one native call, in units of the text. A
     * call with this length takes a few microseconds.
     */
    public static final int MOST_UNITS = 1 << 16;

    /** The result of a native call if the destination is too small. */
    public static final long NO_ROOM = Long.MIN_VALUE;

    private Native() {}

    /**
     * Returns true if the library is loaded.
     *
     * @return false in this version of the class
     */
    public static boolean available() {
        return false;
    }

    /**
     * Describes the implementation in use, and the reason for it.
     *
     * @return a text of one line
     */
    public static String status() {
        return "pure Java: JDK " + Runtime.version().feature()
                + " has no java.lang.foreign, which is final since 22";
    }

    static long utf8Length(char[] src, int at, int n, int replacement) {
        throw absent();
    }

    static long utf16ToUtf8(char[] src, int at, int n, byte[] dst, int to, int capacity,
            int replacement) {
        throw absent();
    }

    static long utf16ToUtf8(char[] src, int at, int n, ByteBuffer dst, int to, int capacity,
            int replacement) {
        throw absent();
    }

    static long utf16ToUtf8(byte[] src, int at, int n, byte[] dst, int to, int capacity,
            int replacement) {
        throw absent();
    }

    static long utf16ToUtf8(byte[] src, int at, int n, ByteBuffer dst, int to, int capacity,
            int replacement) {
        throw absent();
    }

    static long latin1ToUtf8(byte[] src, int at, int n, byte[] dst, int to, int capacity) {
        throw absent();
    }

    static long latin1ToUtf8(byte[] src, int at, int n, ByteBuffer dst, int to, int capacity) {
        throw absent();
    }

    static long utf8ToUtf16(byte[] src, int at, int n, char[] dst, int to, int capacity,
            int replacement) {
        throw absent();
    }

    static long utf8ToUtf16(ByteBuffer src, int at, int n, char[] dst, int to, int capacity,
            int replacement) {
        throw absent();
    }

    static long utf8ToLatin1(byte[] src, int at, int n, byte[] dst, int to, int capacity) {
        throw absent();
    }

    static long utf8ToLatin1(ByteBuffer src, int at, int n, byte[] dst, int to, int capacity) {
        throw absent();
    }

    static long utf16Length(byte[] src, int at, int n, int replacement) {
        throw absent();
    }

    static long utf16Length(ByteBuffer src, int at, int n, int replacement) {
        throw absent();
    }

    static long findMalformed(byte[] src, int at, int n) {
        throw absent();
    }

    static long findMalformed(ByteBuffer src, int at, int n) {
        throw absent();
    }

    static long asciiPrefix(byte[] src, int at, int n) {
        throw absent();
    }

    static long asciiPrefix(ByteBuffer src, int at, int n) {
        throw absent();
    }

    private static IllegalStateException absent() {
        return new IllegalStateException("available() says that there is no native library");
    }
}
