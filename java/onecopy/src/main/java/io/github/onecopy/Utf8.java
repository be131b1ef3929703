package io.github.onecopy;

import io.github.onecopy.internal.Pools;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;

/**
 * Strings to UTF-8 (RFC 3629) and back, straight into and out of buffers.
 *
 * <p>Encoding converts a text once, directly into its destination; a few kilobytes at a time pass
 * through a scratch array that stays in the cache. On JDK 22 and newer the same methods exist for
 * memory segments.
 *
 * <p>All methods may be called from any thread, concurrently, on different destinations.
 */
public final class Utf8 extends Utf8Segments {
    private Utf8() {}

    /**
     * The number of bytes of {@link String#getBytes}: lone surrogates count as one, {@code '?'}.
     *
     * @param s the string
     * @return its length in UTF-8, in bytes; past 2 GiB for a string of more than 715,827,882 units
     * at the earliest
     */
    public static long encodedLength(String s) {
        return Pools.encodedLength(s);
    }

    /**
     * Writes a string at the buffer's position, and advances it.
     *
     * @param s the string, without lone surrogates
     * @param dst the destination: heap or direct, of either byte order
     * @return the bytes written
     * @throws BufferOverflowException if it does not fit: as below
     * @throws MalformedTextException for a lone surrogate, with its index in the string: as below
     * @throws java.nio.ReadOnlyBufferException if the buffer is read-only
     * @see #encode(String, ByteBuffer, Malformed)
     */
    public static int encode(String s, ByteBuffer dst) {
        // Not by the other method: with one level of calls less, compilers inline more of the
        // callees.
        int at = dst.position();
        int n = Pools.encode(s, dst, at, dst.limit(), Malformed.THROW);
        dst.position(at + n);
        return n;
    }

    /**
     * Writes a string at the buffer's position, and advances it. Copies: one, the conversion into
     * the buffer, which reads from a scratch array of a few kilobytes.
     *
     * On failure the position is unchanged. In any case bytes after the position, up to the limit,
     * may have been overwritten. A buffer with space for exactly {@link #encodedLength} is
     * sufficient.
     *
     * @param s the string
     * @param dst the destination: heap or direct, of either byte order
     * @param malformed the treatment of lone surrogates
     * @return the bytes written
     * @throws BufferOverflowException if it does not fit between position and limit
     * @throws MalformedTextException for a lone surrogate, with its index in the string, if {@code
     * malformed} is THROW; it takes precedence over an overflow
     * @throws java.nio.ReadOnlyBufferException if the buffer is read-only
     */
    public static int encode(String s, ByteBuffer dst, Malformed malformed) {
        int at = dst.position();
        int n = Pools.encode(s, dst, at, dst.limit(), malformed);
        dst.position(at + n);
        return n;
    }

    /**
     * Returns a string as a new array.
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
     * Returns a string as a new array. Copies: two, the conversion and one into the array of the
     * right length.
     *
     * @param s the string
     * @param malformed the treatment of lone surrogates
     * @return its UTF-8; with REPLACE the same as {@link String#getBytes}
     * @throws MalformedTextException for a lone surrogate, with its index in the string, if {@code
     * malformed} is THROW
     * @throws OutOfMemoryError if it is longer than an array can be
     */
    public static byte[] encodeToBytes(String s, Malformed malformed) {
        return Pools.encodeToBytes(s, malformed);
    }

    /**
     * Decodes the bytes between the buffer's position and its limit; the position moves to the
     * limit.
     *
     * @param src the source: heap or direct, of either byte order, read-only or not
     * @return the string
     * @throws MalformedTextException for a sequence that is not UTF-8; its index counts bytes from
     * the position, which stays
     * @see #decode(ByteBuffer, Malformed)
     */
    public static String decode(ByteBuffer src) {
        return decode(src, Malformed.THROW);
    }

    /**
     * Decodes the bytes between the buffer's position and its limit; the position moves to the
     * limit. Copies: two, the conversion and one by the JDK into the string; one more for a result
     * longer than 8 KiB and not Latin-1.
     *
     * @param src the source: heap or direct, of either byte order, read-only or not
     * @param malformed the treatment of invalid sequences
     * @return the string; with REPLACE the same as {@code new String(bytes, UTF_8)}
     * @throws MalformedTextException for a sequence that is not UTF-8, if {@code malformed} is
     * THROW; its index counts bytes from the position, which stays
     */
    public static String decode(ByteBuffer src, Malformed malformed) {
        String s = Pools.decode(src, src.position(), src.remaining(), malformed);
        src.position(src.limit());
        return s;
    }

    /**
     * Returns true if the bytes between position and limit are UTF-8: no surrogates, no overlong
     * sequences, nothing past U+10FFFF. Copies: none. The position is unchanged.
     *
     * @param src the bytes
     * @return true if it is
     */
    public static boolean isValid(ByteBuffer src) {
        return indexOfInvalid(src) < 0;
    }

    /**
     * The first position between position and limit that is not valid UTF-8. Copies: none. The
     * buffer's position is unchanged.
     *
     * @param src the bytes
     * @return the number of bytes between the position and the first invalid sequence, or -1 if all
     * is valid
     */
    public static long indexOfInvalid(ByteBuffer src) {
        return Pools.indexOfInvalid(src, src.position(), src.remaining());
    }
}
