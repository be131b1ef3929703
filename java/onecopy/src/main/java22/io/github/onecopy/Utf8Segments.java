package io.github.onecopy;

import io.github.onecopy.internal.Segments;
import java.lang.foreign.MemorySegment;

/** The methods of {@link Utf8} for memory segments. */
abstract class Utf8Segments {
    /** Creates an instance. */
    Utf8Segments() {}

    /**
     * Writes a string into a segment, as {@link Utf8#encode(String, MemorySegment, long,
     * Malformed)} does with {@link Malformed#THROW}.
     *
     * @param s the string, without lone surrogates
     * @param dst the destination: a segment on or off the heap
     * @param at the offset of the first byte, in bytes
     * @return the number of bytes written
     * @throws java.nio.BufferOverflowException if the text does not fit between {@code at} and the
     * segment's end
     * @throws MalformedTextException for a lone surrogate, with its index in the string
     */
    public static long encode(String s, MemorySegment dst, long at) {
        return encode(s, dst, at, Malformed.THROW);
    }

    /**
     * Writes a string into a segment, without a terminating NUL. The only copy is the conversion
     * into the segment.
     *
     * <p>Bytes after the text may have been overwritten. After an exception, all bytes from {@code
     * at} on may have been overwritten. Space for exactly {@link Utf8#encodedLength} bytes is
     * sufficient.
     *
     * @param s the string
     * @param dst the destination: a segment on or off the heap
     * @param at the offset of the first byte, in bytes
     * @param malformed the treatment of lone surrogates
     * @return the number of bytes written
     * @throws IndexOutOfBoundsException if {@code at} is negative or past the segment's end
     * @throws java.nio.BufferOverflowException if the text does not fit between {@code at} and the
     * segment's end
     * @throws MalformedTextException for a lone surrogate, with its index in the string, if {@code
     * malformed} is THROW. It is thrown even if the text would not fit
     * @throws IllegalArgumentException if the segment is read-only
     * @throws IllegalStateException if the segment's scope is closed
     * @throws WrongThreadException if the segment is confined to another thread
     */
    public static long encode(String s, MemorySegment dst, long at, Malformed malformed) {
        return Segments.encode(s, dst, at, malformed);
    }

    /**
     * Decodes a range of a segment, as {@link Utf8#decode(MemorySegment, long, long, Malformed)}
     * does with {@link Malformed#THROW}.
     *
     * @param src the source: a segment on or off the heap
     * @param at the offset of the first byte, in bytes
     * @param n the number of bytes
     * @return the string
     * @throws MalformedTextException if the bytes are not UTF-8; its index is counted from {@code
     * at}
     */
    public static String decode(MemorySegment src, long at, long n) {
        return decode(src, at, n, Malformed.THROW);
    }

    /**
     * Decodes a range of a segment. {@link Utf8#decode(java.nio.ByteBuffer, Malformed)} describes
     * how often the text is copied. It is copied once more if it has at most 8 KiB, or if the
     * segment is an array whose elements are not bytes.
     *
     * @param src the source: a segment on or off the heap
     * @param at the offset of the first byte, in bytes
     * @param n the number of bytes
     * @param malformed the treatment of invalid sequences
     * @return the string; with REPLACE it is equal to {@code new String(bytes, UTF_8)}
     * @throws IndexOutOfBoundsException if the range is not within the segment
     * @throws MalformedTextException if the bytes are not UTF-8 and {@code malformed} is THROW; its
     * index is counted from {@code at}
     * @throws IllegalStateException if the segment's scope is closed
     * @throws WrongThreadException if the segment is confined to another thread
     * @throws OutOfMemoryError if {@code n} is more than 2,147,483,639
     */
    public static String decode(MemorySegment src, long at, long n, Malformed malformed) {
        return Segments.decode(src, at, n, malformed);
    }

    /**
     * Returns true if a range of a segment is valid UTF-8: without surrogates, without overlong
     * sequences, and without code points above U+10FFFF.
     *
     * @param src the segment
     * @param at the offset of the first byte, in bytes
     * @param n the number of bytes
     * @return true if the bytes are valid
     * @throws IndexOutOfBoundsException if the range is not within the segment
     * @throws IllegalStateException if the segment's scope is closed
     * @throws WrongThreadException if the segment is confined to another thread
     */
    public static boolean isValid(MemorySegment src, long at, long n) {
        return indexOfInvalid(src, at, n) < 0;
    }

    /**
     * Finds the first invalid sequence of UTF-8 in a range of a segment.
     *
     * @param src the segment
     * @param at the offset of the first byte, in bytes
     * @param n the number of bytes
     * @return the number of bytes between {@code at} and the first invalid sequence, or -1 if there
     * is none
     * @throws IndexOutOfBoundsException if the range is not within the segment
     * @throws IllegalStateException if the segment's scope is closed
     * @throws WrongThreadException if the segment is confined to another thread
     */
    public static long indexOfInvalid(MemorySegment src, long at, long n) {
        return Segments.indexOfInvalid(src, at, n);
    }
}
