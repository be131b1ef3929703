package io.github.onecopy;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import org.bson.BsonDocument;

/** Compares random documents with the driver's writer and reader. */
final class BsonPropertiesTest {
    private static final int TRIES = 300;

    @Provide
    Arbitrary<BsonDocument> documents() {
        return BsonArbitraries.documents();
    }

    @Property(tries = TRIES)
    void documentsAreWrittenAsByTheDriverAndReadBack(@ForAll("documents") BsonDocument document) {
        byte[] ours = BsonDocuments.ours(document);
        assertArrayEquals(BsonDocuments.theirs(document), ours);
        assertEquals(document, BsonDocuments.theirs(ours));
    }

    @Property(tries = TRIES)
    void whatTheDriverWritesIsRead(@ForAll("documents") BsonDocument document) {
        byte[] bytes = BsonDocuments.theirs(document);
        assertEquals(document, BsonDocuments.ours(bytes));
        ByteBuffer direct = ByteBuffer.allocateDirect(bytes.length + 5).position(3).put(bytes)
                .flip().position(3);
        BsonReader.validate(direct);
        assertEquals(document, BsonDocuments.read(BsonReader.of(direct)));
        assertEquals(bytes.length, BsonReader.documentBytes(direct));
        assertEquals(3, direct.position());
    }

    @Property(tries = TRIES)
    void theDriversWriterWritesTheSameIntoOurOutput(@ForAll("documents") BsonDocument document) {
        NativeBsonOutput output = new NativeBsonOutput(0);
        assertArrayEquals(BsonDocuments.theirs(document),
                BsonDocuments.theirs(document, output).toByteArray());
        output.truncateToPosition(0);
        assertArrayEquals(BsonDocuments.theirs(document),
                BsonDocuments.theirs(document, output).toByteArray());
    }

    @Property(tries = TRIES)
    void aBufferOfTheRightSizeIsEnoughAndNothingAroundItIsTouched(
            @ForAll("documents") BsonDocument document, @ForAll @IntRange(max = 9) int before,
            @ForAll boolean isDirect) {
        byte[] theirs = BsonDocuments.theirs(document);
        int end = before + theirs.length;
        ByteBuffer buffer = filled(end + 20, isDirect).position(before).limit(end);
        BsonDocuments.write(BsonWriter.over(buffer), document);
        assertEquals(end, buffer.position());
        byte[] written = new byte[theirs.length];
        buffer.get(before, written);
        assertArrayEquals(theirs, written);
        buffer.clear();
        for (int i = 0; i < buffer.limit(); i += i == before - 1 ? theirs.length + 1 : 1) {
            if (i < before || i >= end) {
                assertEquals(0x55, buffer.get(i));
            }
        }
    }

    @Property(tries = TRIES)
    void aBufferThatIsTooSmallIsAnOverflowThatPublishesNothing(
            @ForAll("documents") BsonDocument document, @ForAll @IntRange(max = 1 << 20) int seed,
            @ForAll boolean isDirect) {
        byte[] theirs = BsonDocuments.theirs(document);
        int capacity = seed % theirs.length;
        ByteBuffer buffer = filled(theirs.length + 40, isDirect).position(7).limit(7 + capacity);
        BsonWriter writer = BsonWriter.over(buffer);
        assertThrows(BufferOverflowException.class, () -> BsonDocuments.write(writer, document));
        assertEquals(7, buffer.position());
        assertTrue(writer.writtenBytes() <= capacity);
        // Nothing after the limit was overwritten, and the document can be written again from its
        // start.
        writer.reset();
        buffer.clear();
        for (int i = 7 + capacity; i < buffer.limit(); i++) {
            assertEquals(0x55, buffer.get(i));
        }
        buffer.position(7);
        BsonDocuments.write(writer, document);
        assertEquals(7 + theirs.length, buffer.position());
    }

    @Property(tries = TRIES)
    void anOutputHoldsAsMuchAsItIsAllowedTo(@ForAll("documents") BsonDocument document,
            @ForAll @IntRange(max = 1 << 20) int seed) {
        byte[] theirs = BsonDocuments.theirs(document);
        BsonOutput enough = new BsonOutput(0, theirs.length);
        BsonDocuments.write(BsonWriter.over(enough), document);
        assertArrayEquals(theirs, enough.toByteArray());
        BsonOutput small = new BsonOutput(0, seed % theirs.length);
        assertThrows(BufferOverflowException.class,
                () -> BsonDocuments.write(BsonWriter.over(small), document));
        assertEquals(0, small.size());
    }

    private static ByteBuffer filled(int n, boolean isDirect) {
        ByteBuffer buffer = isDirect
                ? ByteBuffer.allocateDirect(n)
                : ByteBuffer.wrap(new byte[n + 4], 2, n).slice();
        while (buffer.hasRemaining()) {
            buffer.put((byte) 0x55);
        }
        return buffer.clear();
    }
}
