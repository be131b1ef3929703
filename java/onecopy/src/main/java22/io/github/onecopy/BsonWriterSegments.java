package io.github.onecopy;

import java.lang.foreign.MemorySegment;

/** What a {@link BsonWriter} has on JDK 22 and newer: memory segments. */
abstract class BsonWriterSegments extends BsonItems {
    /**
     * Makes one.
     *
     * @param place where to
     */
    BsonWriterSegments(BsonPlace place) {
        super(place);
    }

    /**
     * A writer into a segment, which refuses lone surrogates.
     *
     * @param segment where to: native, or of an array of bytes
     * @param at where the first document goes, in bytes from its start
     * @return the writer
     * @throws IndexOutOfBoundsException where {@code at} is outside of the segment
     * @see #over(MemorySegment, long, Malformed)
     */
    public static BsonWriter over(MemorySegment segment, long at) {
        return over(segment, at, Malformed.THROW);
    }

    /**
     * A writer into a segment. Documents follow each other from {@code at} on; {@link BsonWriter#reset} continues behind the last
     * whole one, as for a buffer. Where the segment is closed, writing is an {@link IllegalStateException}; from another thread than
     * that of a confined segment a {@link WrongThreadException}.
     *
     * @param segment where to: native, or of an array of bytes
     * @param at where the first document goes, in bytes from its start; up to 2 GiB from there are used
     * @param malformed what becomes of lone surrogates
     * @return the writer
     * @throws IndexOutOfBoundsException where {@code at} is outside of the segment
     * @throws java.nio.ReadOnlyBufferException where the segment is read-only
     * @throws UnsupportedOperationException where it is on the heap, and of an array of something else than bytes
     */
    public static BsonWriter over(MemorySegment segment, long at, Malformed malformed) {
        long n = Math.min(segment.byteSize() - at, Integer.MAX_VALUE);
        return BsonWriter.over(segment.asSlice(at, n).asByteBuffer(), malformed);
    }
}
