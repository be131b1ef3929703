package io.github.onecopy;

import io.github.onecopy.internal.Pools;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;

/**
 * Encodes strings as UTF-8 (RFC 3629) directly into buffers, and decodes UTF-8 from buffers.
 *
 * <p>A text is converted once, directly into its destination. The conversion reads the text from a
 * scratch array of a few kilobytes, which stays in the processor's cache. On JDK 22 and newer, the
 * same methods exist for memory segments.
 *
 * <p>All methods may be called from several threads at the same time, with different destinations.
 */
public final class Utf8 extends Utf8Segments {
    private Utf8() {}

    /**
     * Returns the number of bytes that {@link String#getBytes} returns for UTF-8. A lone surrogate
     * counts as one byte, {@code '?'}.
     *
     * @param s the string
     * @return the length in UTF-8, in bytes. It can be more than 2 GiB if the string has more than
     * 715,827,882 UTF-16 units
     */
    public static long encodedLength(String s) {
        return Pools.encodedLength(s);
    }

    /**
     * Writes a string at the buffer's position, and moves the position after it.
     *
     * @param s the string, without lone surrogates
     * @param dst the destination: heap or direct, of either byte order
     * @return the number of bytes written
     * @throws BufferOverflowException if the text does not fit between position and limit
     * @throws MalformedTextException for a lone surrogate, with its index in the string
     * @throws java.nio.ReadOnlyBufferException if the buffer is read-only
     * @see #encode(String, ByteBuffer, Malformed)
     */
    public static int encode(String s, ByteBuffer dst) {
        // The method with a policy is not called: with one call less on the stack, compilers inline
        // more of the callees.
        int at = dst.position();
        int n = Pools.encode(s, dst, at, dst.limit(), Malformed.THROW);
        dst.position(at + n);
        return n;
    }

    /**
     * Encodes a string as UTF-8 at the buffer's position, and moves the position after the text.
     * The conversion reads from a scratch array of a few kilobytes and writes into the buffer.
     *
     * <p>After an exception the position is unchanged. In any case, bytes after the position and
     * before the limit may have been overwritten. Space for exactly {@link #encodedLength} bytes is
     * sufficient.
     *
     * @param s the string
     * @param dst the destination: heap or direct, of either byte order
     * @param malformed the treatment of lone surrogates
     * @return the number of bytes written
     * @throws BufferOverflowException if the text does not fit between position and limit
     * @throws MalformedTextException for a lone surrogate, with its index in the string, if {@code
     * malformed} is THROW. It is thrown even if the text would not fit
     * @throws java.nio.ReadOnlyBufferException if the buffer is read-only
     */
    public static int encode(String s, ByteBuffer dst, Malformed malformed) {
        int at = dst.position();
        int n = Pools.encode(s, dst, at, dst.limit(), malformed);
        dst.position(at + n);
        return n;
    }

    /**
     * Encodes a string as UTF-8 in a new array.
     *
     * @param s the string, without lone surrogates
     * @return the UTF-8 of the string
     * @throws MalformedTextException for a lone surrogate, with its index in the string
     * @see #encodeToBytes(String, Malformed)
     */
    public static byte[] encodeToBytes(String s) {
        return encodeToBytes(s, Malformed.THROW);
    }

    /**
     * Encodes a string as UTF-8 in a new array. A text of up to 512 UTF-16 units is converted into
     * a scratch array, and copied from there to an array of the right length. A longer text is
     * converted directly into the new array. For text that is probably ASCII, {@link
     * String#getBytes} is called.
     *
     * @param s the string
     * @param malformed the treatment of lone surrogates
     * @return the UTF-8 of the string; with REPLACE the same bytes as from {@link String#getBytes}
     * @throws MalformedTextException for a lone surrogate, with its index in the string, if {@code
     * malformed} is THROW
     * @throws OutOfMemoryError if the UTF-8 is longer than an array can be
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
     * @throws MalformedTextException for a sequence that is not UTF-8. The index in the exception
     * is the offset in bytes from the buffer's position, which is unchanged
     * @see #decode(ByteBuffer, Malformed)
     */
    public static String decode(ByteBuffer src) {
        return decode(src, Malformed.THROW);
    }

    /**
     * Decodes the bytes between the buffer's position and its limit; the position moves to the
     * limit. The text is copied twice: by the conversion, and by the JDK into the string. Text of
     * more than 8 KiB that is not Latin-1 is copied once more.
     *
     * @param src the source: heap or direct, of either byte order, read-only or not
     * @param malformed the treatment of invalid sequences
     * @return the string; with REPLACE the same as {@code new String(bytes, UTF_8)}
     * @throws MalformedTextException for a sequence that is not UTF-8, if {@code malformed} is
     * THROW. The index in the exception is the offset in bytes from the buffer's position, which is
     * unchanged
     */
    public static String decode(ByteBuffer src, Malformed malformed) {
        String s = Pools.decode(src, src.position(), src.remaining(), malformed);
        src.position(src.limit());
        return s;
    }

    /**
     * Returns true if the bytes between position and limit are UTF-8: without surrogates, without
     * overlong sequences, and without code points above U+10FFFF. The position is unchanged.
     *
     * @param src the bytes
     * @return true if the bytes are UTF-8
     */
    public static boolean isValid(ByteBuffer src) {
        return indexOfInvalid(src) < 0;
    }

    /**
     * Finds the first sequence between position and limit that is not valid UTF-8. The buffer's
     * position is unchanged.
     *
     * @param src the bytes
     * @return the number of bytes between the position and the first invalid sequence, or -1 if all
     * bytes are valid
     */
    public static long indexOfInvalid(ByteBuffer src) {
        return Pools.indexOfInvalid(src, src.position(), src.remaining());
    }
}
