package io.github.onecopy;

import java.lang.foreign.MemorySegment;

/** The methods of {@link BsonWriter} on JDK 22 and newer: memory segments. */
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
     * A writer into a segment, which refuses lone surrogates.
     *
     * @param segment the destination: native, or of an array of bytes
     * @param at the position of the first document, in bytes from its start
     * @return the writer
     * @throws IndexOutOfBoundsException if {@code at} is outside of the segment
     * @see #over(MemorySegment, long, Malformed)
     */
    public static BsonWriter over(MemorySegment segment, long at) {
        return over(segment, at, Malformed.THROW);
    }

    /**
     * A writer into a segment. Documents follow each other from {@code at} on; {@link
     * BsonWriter#reset} continues after the last whole one, as for a buffer. If the segment is
     * closed, writing is an {@link IllegalStateException}; from another thread than that of a
     * confined segment a {@link WrongThreadException}.
     *
     * @param segment the destination: native, or of an array of bytes
     * @param at the position of the first document, in bytes from its start; up to 2 GiB from there
     * are used
     * @param malformed the treatment of lone surrogates
     * @return the writer
     * @throws IndexOutOfBoundsException if {@code at} is outside of the segment
     * @throws java.nio.ReadOnlyBufferException if the segment is read-only
     * @throws UnsupportedOperationException if it is on the heap, and not an array of bytes
     */
    public static BsonWriter over(MemorySegment segment, long at, Malformed malformed) {
        long n = Math.min(segment.byteSize() - at, Integer.MAX_VALUE);
        return BsonWriter.over(segment.asSlice(at, n).asByteBuffer(), malformed);
    }
}
