package io.github.onecopy;

import io.github.onecopy.internal.Segments;
import java.lang.foreign.MemorySegment;

/** What {@link Utf8} does to memory segments: its public methods are Utf8's. */
abstract class Utf8Segments {
    /** For {@link Utf8} alone. */
    Utf8Segments() {}

    /**
     * Writes a string into a segment.
     *
     * @param s the string, without lone surrogates
     * @param dst where to: on or off the heap
     * @param at the offset of the first byte, in bytes
     * @return the bytes written
     * @throws java.nio.BufferOverflowException where it does not fit: as below
     * @throws MalformedTextException for a lone surrogate, with its index in the string
     * @see Utf8#encode(String, MemorySegment, long, Malformed)
     */
    public static long encode(String s, MemorySegment dst, long at) {
        return encode(s, dst, at, Malformed.THROW);
    }

    /**
     * Writes a string into a segment. Copies: one, the conversion into the segment, which reads from a scratch of a few kilobytes.
     *
     * <p>Bytes behind what was written may have been overwritten; where it fails, those from {@code at} on. Room for exactly
     * {@link Utf8#encodedLength} is enough;
     * no NUL is written.
     *
     * @param s the string
     * @param dst where to: on or off the heap
     * @param at the offset of the first byte, in bytes
     * @param malformed what becomes of lone surrogates
     * @return the bytes written
     * @throws IndexOutOfBoundsException where {@code at} is negative or behind the segment's end
     * @throws java.nio.BufferOverflowException where it does not fit between {@code at} and the segment's end
     * @throws MalformedTextException for a lone surrogate, with its index in the string, where {@code malformed} is THROW
     * @throws IllegalArgumentException where the segment is read-only
     * @throws IllegalStateException where the segment's scope is closed
     * @throws WrongThreadException where the segment is confined to another thread
     */
    public static long encode(String s, MemorySegment dst, long at, Malformed malformed) {
        return Segments.encode(s, dst, at, malformed);
    }

    /**
     * Reads a part of a segment.
     *
     * @param src where from: on or off the heap
     * @param at the offset of the first byte, in bytes
     * @param n how many bytes
     * @return the string
     * @throws MalformedTextException for a sequence that is not UTF-8; its index counts bytes from {@code at}
     * @see Utf8#decode(MemorySegment, long, long, Malformed)
     */
    public static String decode(MemorySegment src, long at, long n) {
        return decode(src, at, n, Malformed.THROW);
    }

    /**
     * Reads a part of a segment. Copies: two, the conversion and one by the JDK into the string;
     * one more for what is longer than 8 KiB and not Latin-1.
     *
     * @param src where from: on or off the heap
     * @param at the offset of the first byte, in bytes
     * @param n how many bytes
     * @param malformed what becomes of invalid sequences
     * @return the string; with REPLACE the same as {@code new String(bytes, UTF_8)}
     * @throws IndexOutOfBoundsException where they are no part of the segment
     * @throws MalformedTextException for a sequence that is not UTF-8, where {@code malformed} is THROW; its index counts bytes
     *     from {@code at}
     * @throws IllegalStateException where the segment's scope is closed
     * @throws WrongThreadException where the segment is confined to another thread
     * @throws OutOfMemoryError where they are more than 2 GiB, which no string holds
     */
    public static String decode(MemorySegment src, long at, long n, Malformed malformed) {
        return Segments.decode(src, at, n, malformed);
    }

    /**
     * Whether a part of a segment is UTF-8: no surrogates, nothing longer than it has to be, nothing past U+10FFFF. Copies: none.
     *
     * @param src what to look at
     * @param at the offset of the first byte, in bytes
     * @param n how many bytes
     * @return whether it is
     * @throws IndexOutOfBoundsException where they are no part of the segment
     * @throws IllegalStateException where the segment's scope is closed
     * @throws WrongThreadException where the segment is confined to another thread
     */
    public static boolean isValid(MemorySegment src, long at, long n) {
        return indexOfInvalid(src, at, n) < 0;
    }

    /**
     * Where a part of a segment is no longer UTF-8. Copies: none.
     *
     * @param src what to look at
     * @param at the offset of the first byte, in bytes
     * @param n how many bytes
     * @return how many bytes stand between {@code at} and the first invalid sequence, or -1 where all is valid
     * @throws IndexOutOfBoundsException where they are no part of the segment
     * @throws IllegalStateException where the segment's scope is closed
     * @throws WrongThreadException where the segment is confined to another thread
     */
    public static long indexOfInvalid(MemorySegment src, long at, long n) {
        return Segments.indexOfInvalid(src, at, n);
    }
}
