package io.github.onecopy;

import io.github.onecopy.internal.Segments;
import java.lang.foreign.MemorySegment;

/** {@link Utf8} for memory segments: its public methods are Utf8's. */
abstract class Utf8Segments {
    /** Only for {@link Utf8}. */
    Utf8Segments() {}

    /**
     * Writes a string into a segment.
     *
     * @param s the string, without lone surrogates
     * @param dst the destination: on or off the heap
     * @param at the offset of the first byte, in bytes
     * @return the bytes written
     * @throws java.nio.BufferOverflowException if it does not fit: as below
     * @throws MalformedTextException for a lone surrogate, with its index in the string
     * @see Utf8#encode(String, MemorySegment, long, Malformed)
     */
    public static long encode(String s, MemorySegment dst, long at) {
        return encode(s, dst, at, Malformed.THROW);
    }

    /**
     * Writes a string into a segment. Copies: one, the conversion into the segment, which reads
     * from a scratch of a few kilobytes.
     *
     * Bytes after the last one written may have been overwritten; on failure, those from {@code at}
     * on. Space for exactly {@link Utf8#encodedLength} is sufficient; no NUL is written.
     *
     * @param s the string
     * @param dst the destination: on or off the heap
     * @param at the offset of the first byte, in bytes
     * @param malformed the treatment of lone surrogates
     * @return the bytes written
     * @throws IndexOutOfBoundsException if {@code at} is negative or past the segment's end
     * @throws java.nio.BufferOverflowException if it does not fit between {@code at} and the
     * segment's end
     * @throws MalformedTextException for a lone surrogate, with its index in the string, if {@code
     * malformed} is THROW
     * @throws IllegalArgumentException if the segment is read-only
     * @throws IllegalStateException if the segment's scope is closed
     * @throws WrongThreadException if the segment is confined to another thread
     */
    public static long encode(String s, MemorySegment dst, long at, Malformed malformed) {
        return Segments.encode(s, dst, at, malformed);
    }

    /**
     * Reads a part of a segment.
     *
     * @param src the source: on or off the heap
     * @param at the offset of the first byte, in bytes
     * @param n the number of bytes
     * @return the string
     * @throws MalformedTextException for a sequence that is not UTF-8; its index counts bytes from
     * {@code at}
     * @see Utf8#decode(MemorySegment, long, long, Malformed)
     */
    public static String decode(MemorySegment src, long at, long n) {
        return decode(src, at, n, Malformed.THROW);
    }

    /**
     * Reads a part of a segment. Copies: two, the conversion and one by the JDK into the string;
     * one more for text longer than 8 KiB and not Latin-1.
     *
     * @param src the source: on or off the heap
     * @param at the offset of the first byte, in bytes
     * @param n the number of bytes
     * @param malformed the treatment of invalid sequences
     * @return the string; with REPLACE the same as {@code new String(bytes, UTF_8)}
     * @throws IndexOutOfBoundsException if they are not part of the segment
     * @throws MalformedTextException for a sequence that is not UTF-8, if {@code malformed} is
     * THROW; its index counts bytes from {@code at}
     * @throws IllegalStateException if the segment's scope is closed
     * @throws WrongThreadException if the segment is confined to another thread
     * @throws OutOfMemoryError if they are more than 2 GiB, which no string holds
     */
    public static String decode(MemorySegment src, long at, long n, Malformed malformed) {
        return Segments.decode(src, at, n, malformed);
    }

    /**
     * Returns true if a part of a segment is UTF-8: no surrogates, no overlong sequences, nothing
     * past U+10FFFF. Copies: none.
     *
     * @param src the segment
     * @param at the offset of the first byte, in bytes
     * @param n the number of bytes
     * @return true if it is
     * @throws IndexOutOfBoundsException if they are not part of the segment
     * @throws IllegalStateException if the segment's scope is closed
     * @throws WrongThreadException if the segment is confined to another thread
     */
    public static boolean isValid(MemorySegment src, long at, long n) {
        return indexOfInvalid(src, at, n) < 0;
    }

    /**
     * The first position in a part of a segment that is not valid UTF-8. Copies: none.
     *
     * @param src the segment
     * @param at the offset of the first byte, in bytes
     * @param n the number of bytes
     * @return the number of bytes between {@code at} and the first invalid sequence, or -1 if all
     * is valid
     * @throws IndexOutOfBoundsException if they are not part of the segment
     * @throws IllegalStateException if the segment's scope is closed
     * @throws WrongThreadException if the segment is confined to another thread
     */
    public static long indexOfInvalid(MemorySegment src, long at, long n) {
        return Segments.indexOfInvalid(src, at, n);
    }
}
