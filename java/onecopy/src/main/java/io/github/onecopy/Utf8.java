package io.github.onecopy;

import io.github.onecopy.internal.Pools;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;

/**
 * Strings to UTF-8 (RFC 3629) and back, straight into and out of buffers.
 *
 * <p>Encoding converts a text once, into the place it is meant for; a few kilobytes at a time pass through a scratch array that
 * stays in the cache. On JDK 22 and newer the same methods are there for memory segments.
 *
 * <p>All methods may be called from any thread, at the same time, on different destinations.
 */
public final class Utf8 extends Utf8Segments {
    private Utf8() {}

    /**
     * The bytes that {@link String#getBytes} would give: lone surrogates count as one, {@code '?'}.
     *
     * @param s the string
     * @return its length in UTF-8, in bytes; past 2 GiB for a string of more than 715,827,882 units at the earliest
     */
    public static long encodedLength(String s) {
        return Pools.encodedLength(s);
    }

    /**
     * Writes a string at the buffer's position, which moves behind it.
     *
     * @param s the string, without lone surrogates
     * @param dst where to: heap or direct, of either byte order
     * @return the bytes written
     * @throws BufferOverflowException where it does not fit: as below
     * @throws MalformedTextException for a lone surrogate, with its index in the string: as below
     * @throws java.nio.ReadOnlyBufferException where the buffer is read-only
     * @see #encode(String, ByteBuffer, Malformed)
     */
    public static int encode(String s, ByteBuffer dst) {
        // Not by the other method: each level of calls less lets compilers inline more of what is below.
        int at = dst.position();
        int n = Pools.encode(s, dst, at, dst.limit(), Malformed.THROW);
        dst.position(at + n);
        return n;
    }

    /**
     * Writes a string at the buffer's position, which moves behind it. Copies: one, the conversion into the buffer, which reads
     * from a scratch of a few kilobytes.
     *
     * <p>Where it fails, the position stays. Either way bytes behind the position, up to the limit, may have been overwritten. A buffer
     * that has room for exactly {@link #encodedLength} is enough.
     *
     * @param s the string
     * @param dst where to: heap or direct, of either byte order
     * @param malformed what becomes of lone surrogates
     * @return the bytes written
     * @throws BufferOverflowException where it does not fit between position and limit
     * @throws MalformedTextException for a lone surrogate, with its index in the string, where {@code malformed} is THROW; it
     *     comes before an overflow
     * @throws java.nio.ReadOnlyBufferException where the buffer is read-only
     */
    public static int encode(String s, ByteBuffer dst, Malformed malformed) {
        int at = dst.position();
        int n = Pools.encode(s, dst, at, dst.limit(), malformed);
        dst.position(at + n);
        return n;
    }

    /**
     * A string as an array of its own.
     *
     * @param s the string, without lone surrogates
     * @return its UTF-8
     * @throws MalformedTextException for a lone surrogate, with its index in the string
     * @see #encodeToBytes(String, Malformed)
     */
    public static byte[] encodeToBytes(String s) {
        return encodeToBytes(s, Malformed.THROW);
    }

    /**
     * A string as an array of its own. Copies: two, the conversion and one into the array of the right length.
     *
     * @param s the string
     * @param malformed what becomes of lone surrogates
     * @return its UTF-8; with REPLACE the same as {@link String#getBytes}
     * @throws MalformedTextException for a lone surrogate, with its index in the string, where {@code malformed} is THROW
     * @throws OutOfMemoryError where it is longer than an array can be
     */
    public static byte[] encodeToBytes(String s, Malformed malformed) {
        return Pools.encodeToBytes(s, malformed);
    }

    /**
     * Reads what stands between the buffer's position and its limit; the position moves to the limit.
     *
     * @param src where from: heap or direct, of either byte order, read-only or not
     * @return the string
     * @throws MalformedTextException for a sequence that is not UTF-8; its index counts bytes from the position, which stays
     * @see #decode(ByteBuffer, Malformed)
     */
    public static String decode(ByteBuffer src) {
        return decode(src, Malformed.THROW);
    }

    /**
     * Reads what stands between the buffer's position and its limit; the position moves to the limit. Copies: two, the conversion
     * and one by the JDK into the string; one more for what is longer than 8 KiB and not Latin-1.
     *
     * @param src where from: heap or direct, of either byte order, read-only or not
     * @param malformed what becomes of invalid sequences
     * @return the string; with REPLACE the same as {@code new String(bytes, UTF_8)}
     * @throws MalformedTextException for a sequence that is not UTF-8, where {@code malformed} is THROW; its index counts bytes
     *     from the position, which stays
     */
    public static String decode(ByteBuffer src, Malformed malformed) {
        String s = Pools.decode(src, src.position(), src.remaining(), malformed);
        src.position(src.limit());
        return s;
    }

    /**
     * Whether what stands between position and limit is UTF-8: no surrogates, nothing longer than it has to be, nothing past
     * U+10FFFF. Copies: none. The position stays.
     *
     * @param src what to look at
     * @return whether it is
     */
    public static boolean isValid(ByteBuffer src) {
        return indexOfInvalid(src) < 0;
    }

    /**
     * Where that, what stands between position and limit, is no longer UTF-8. Copies: none. The position stays.
     *
     * @param src what to look at
     * @return how many bytes stand between the position and the first invalid sequence, or -1 where all is valid
     */
    public static long indexOfInvalid(ByteBuffer src) {
        return Pools.indexOfInvalid(src, src.position(), src.remaining());
    }
}
