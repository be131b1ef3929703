package io.github.onecopy;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.BufferOverflowException;
import java.nio.ReadOnlyBufferException;
import java.util.Arrays;
import org.bson.BsonDocument;
import org.bson.BsonString;
import org.junit.jupiter.api.Test;

/** Tests a writer into memory segments. */
final class BsonSegmentsTest {
    private static final BsonDocument LONG = new BsonDocument("a",
            new BsonString("東京都".repeat(50)));

    @Test
    void documentsOfAllTypesAreWrittenIntoASegment() throws IOException {
        for (BsonDocuments.Vector vector : BsonDocuments.vectors()) {
            if (vector.document() == null) {
                continue;
            }
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment segment = arena.allocate(vector.bytes().length + 10);
                segment.fill((byte) 0x55);
                BsonDocuments.write(BsonWriter.over(segment.asSlice(0, vector.bytes().length + 5),
                        5), vector.document());
                byte[] all = segment.toArray(ValueLayout.JAVA_BYTE);
                assertEquals(0x55, all[4]);
                assertEquals(0x55, all[vector.bytes().length + 5]);
                assertArrayEquals(vector.bytes(),
                        Arrays.copyOfRange(all, 5, vector.bytes().length + 5), vector.name());
            }
        }
    }

    @Test
    void aSegmentOfAnArrayIsWrittenToo() {
        byte[] array = new byte[1000];
        BsonDocuments.write(BsonWriter.over(MemorySegment.ofArray(array), 3), LONG);
        byte[] expected = BsonDocuments.theirs(LONG);
        assertArrayEquals(expected, Arrays.copyOfRange(array, 3, 3 + expected.length));
    }

    @Test
    void segmentsThatAreTooSmallClosedOrReadOnlyAreRefused() {
        BsonWriter closed;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment segment = arena.allocate(100);
            BsonWriter small = BsonWriter.over(segment, 0);
            assertThrows(BufferOverflowException.class, () -> BsonDocuments.write(small, LONG));
            assertEquals(4, small.writtenBytes());
            assertThrows(ReadOnlyBufferException.class,
                    () -> BsonWriter.over(segment.asReadOnly(), 0));
            assertThrows(IndexOutOfBoundsException.class, () -> BsonWriter.over(segment, 101));
            assertThrows(IndexOutOfBoundsException.class, () -> BsonWriter.over(segment, -1));
            assertThrows(UnsupportedOperationException.class,
                    () -> BsonWriter.over(MemorySegment.ofArray(new long[9]), 0));
            closed = BsonWriter.over(arena.allocate(1000), 0);
            closed.beginDocument();
        }
        assertThrows(IllegalStateException.class, () -> closed.int32(BsonName.of("a"), 1));
        assertThrows(IllegalStateException.class,
                () -> closed.string(BsonName.of("a"), "東京都".repeat(50)));
        assertThrows(IllegalStateException.class, closed::end);
    }
}
