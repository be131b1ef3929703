package io.github.onecopy;

import java.lang.foreign.MemorySegment;

/** The methods of {@link BsonWriter} for memory segments. */
abstract class BsonWriterSegments extends BsonItems {
    /**
     * Creates an instance.
     *
     * @param target the destination
     */
    BsonWriterSegments(BsonTarget target) {
        super(target);
    }

    /**
     * Returns a writer into a segment. A lone surrogate in a text causes an exception.
     *
     * @param segment the destination: a native segment, or an array of bytes
     * @param at the offset of the first document, in bytes
     * @return the writer
     * @throws IndexOutOfBoundsException if {@code at} is outside of the segment
     * @see #over(MemorySegment, long, Malformed)
     */
    public static BsonWriter over(MemorySegment segment, long at) {
        return over(segment, at, Malformed.THROW);
    }

    /**
     * Returns a writer into a segment. Documents are written one after the other from {@code at}
     * on; after {@link BsonWriter#reset}, the next one follows the last complete document. The
     * methods that write throw {@link IllegalStateException} if the segment is closed, and {@link
     * WrongThreadException} if it is confined to another thread.
     *
     * @param segment the destination: a native segment, or an array of bytes
     * @param at the offset of the first document, in bytes; at most 2 GiB from there on are used
     * @param malformed the treatment of lone surrogates
     * @return the writer
     * @throws IndexOutOfBoundsException if {@code at} is outside of the segment
     * @throws java.nio.ReadOnlyBufferException if the segment is read-only
     * @throws UnsupportedOperationException if the segment is an array whose elements are not bytes
     */
    public static BsonWriter over(MemorySegment segment, long at, Malformed malformed) {
        long n = Math.min(segment.byteSize() - at, Integer.MAX_VALUE);
        return BsonWriter.over(segment.asSlice(at, n).asByteBuffer(), malformed);
    }
}
