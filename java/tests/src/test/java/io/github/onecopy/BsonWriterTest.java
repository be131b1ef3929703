package io.github.onecopy;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.util.List;
import java.util.stream.IntStream;
import org.bson.BsonArray;
import org.bson.BsonDocument;
import org.bson.BsonInt32;
import org.bson.BsonString;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the order of calls, nesting, names, and destinations that are too small. */
final class BsonWriterTest {
    private static final BsonName A = BsonName.of("a");
    private static final BsonName NAME = BsonName.of("ключ");

    private final BsonOutput output = new BsonOutput();
    private final BsonWriter writer = BsonWriter.over(output);

    @Test
    void outsideOfADocumentNothingIsWritten() {
        assertThrows(IllegalStateException.class, writer::end);
        assertThrows(IllegalStateException.class, () -> writer.int32(A, 1));
        assertThrows(IllegalStateException.class, () -> writer.int32(1));
        assertThrows(IllegalStateException.class, () -> writer.name("a"));
        assertThrows(IllegalStateException.class, () -> writer.beginDocument(A));
        assertThrows(IllegalStateException.class, writer::beginArray);
        writer.beginDocument();
        writer.end();
        assertThrows(IllegalStateException.class, writer::end);
        assertThrows(IllegalStateException.class, () -> writer.nullValue(A));
        assertArrayEquals(new byte[] {5, 0, 0, 0, 0}, output.toByteArray());
    }

    @Test
    void elementsOfDocumentsHaveNamesAndItemsOfArraysHaveNone() {
        writer.beginDocument();
        assertThrows(IllegalStateException.class, () -> writer.int32(1));
        assertThrows(IllegalStateException.class, writer::beginDocument);
        assertThrows(IllegalStateException.class, writer::beginArray);
        writer.beginArray(A);
        assertThrows(IllegalStateException.class, () -> writer.int32(A, 1));
        assertThrows(IllegalStateException.class, () -> writer.name("a"));
        assertThrows(NullPointerException.class, () -> writer.string(null));
        writer.int32(7);
        writer.end();
        assertThrows(NullPointerException.class, () -> writer.int32((BsonName) null, 1));
        writer.end();
        BsonDocument expected = new BsonDocument("a", new BsonArray(List.of(new BsonInt32(7))));
        assertEquals(expected, BsonDocuments.theirs(output.toByteArray()));
    }

    @Test
    void aNameWaitsForItsValue() {
        writer.beginDocument();
        writer.name("a");
        assertThrows(IllegalStateException.class, writer::end);
        assertThrows(IllegalStateException.class, () -> writer.name("b"));
        assertThrows(IllegalStateException.class, () -> writer.int32(A, 1));
        writer.beginCodeWithScope("f()");
        writer.end();
        assertThrows(IllegalStateException.class, writer::finish);
        writer.end();
        writer.finish();
        assertEquals("{\"a\": {\"$code\": \"f()\", \"$scope\": {}}}",
                BsonDocuments.theirs(output.toByteArray()).toJson());
    }

    @Test
    void unfinishedDocumentsAreNotInTheOutput() {
        writer.beginDocument();
        writer.int32(A, 1);
        assertEquals(1, writer.depth());
        assertThrows(IllegalStateException.class, writer::finish);
        assertEquals(0, output.size());
        writer.reset();
        writer.finish();
        writer.beginDocument();
        writer.end();
        assertEquals(5, output.size());
        writer.beginDocument();
        writer.end();
        assertArrayEquals(new byte[] {5, 0, 0, 0, 0, 5, 0, 0, 0, 0}, output.toByteArray());
    }

    @Test
    void anOutputThatChangesUnderAnOpenDocumentIsAnIllegalState() {
        BsonWriter other = BsonWriter.over(output);
        writer.beginDocument();
        other.beginDocument();
        other.end();
        assertThrows(IllegalStateException.class, writer::end);
        assertArrayEquals(new byte[] {5, 0, 0, 0, 0}, output.toByteArray());
    }

    @Test
    void nulIsRefusedInNamesAndPatternsAndKeptInTexts() {
        assertEquals("1", assertThrows(IllegalArgumentException.class, () -> BsonName.of("a\0b"))
                .getMessage().replaceAll("\\D", ""));
        writer.beginDocument();
        assertThrows(IllegalArgumentException.class, () -> writer.name("\0"));
        assertThrows(IllegalArgumentException.class, () -> writer.regex(A, "a\0", ""));
        assertThrows(IllegalArgumentException.class, () -> writer.regex(A, "a", "i\0"));
        writer.string(A, "a\0b");
        writer.end();
        assertEquals(new BsonDocument("a", new BsonString("a\0b")),
                BsonDocuments.theirs(output.toByteArray()));
    }

    @Test
    void whatHasTheWrongSizeIsRefused() {
        writer.beginDocument();
        assertThrows(IllegalArgumentException.class, () -> writer.objectId(A, new byte[11]));
        assertThrows(IllegalArgumentException.class,
                () -> writer.dbPointer(A, "db.c", new byte[13]));
        assertThrows(IllegalArgumentException.class, () -> writer.binary(A, 256, new byte[1]));
        assertThrows(IllegalArgumentException.class, () -> writer.binary(A, -1, new byte[1]));
        assertThrows(IndexOutOfBoundsException.class, () -> writer.binary(A, 0, new byte[4], 2, 3));
        assertThrows(IndexOutOfBoundsException.class,
                () -> writer.binary(A, 0, new byte[4], -1, 1));
        writer.end();
        assertArrayEquals(new byte[] {5, 0, 0, 0, 0}, output.toByteArray());
    }

    @Test
    void aRangeOfBytesAndABufferAreWrittenAlike() {
        byte[] bytes = {1, 2, 3, 4, 5};
        for (ByteBuffer buffer
                : new ByteBuffer[] {ByteBuffer.allocate(100), ByteBuffer.allocateDirect(100)}) {
            BsonWriter into = BsonWriter.over(buffer);
            into.beginDocument();
            into.binary(A, 2, bytes, 1, 3);
            into.binary(NAME, 0x80, ByteBuffer.wrap(bytes).position(1).limit(4));
            into.name("x");
            into.binary(5, bytes, 4, 0);
            into.end();
            BsonReader reader = BsonReader.of(buffer.flip());
            assertTrue(reader.next());
            assertEquals(2, reader.binarySubtype());
            assertEquals(ByteBuffer.wrap(bytes, 1, 3), reader.binary());
            assertEquals(12, reader.rawValue().remaining());
            assertTrue(reader.next());
            assertEquals(0x80, reader.binarySubtype());
            assertEquals(ByteBuffer.wrap(bytes, 1, 3), reader.binary());
            assertTrue(reader.next());
            assertEquals(0, reader.binary().remaining());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"\uD800", "a\uDC00", "eleven units\uD83D",
            "more than sixteen units, the last unpaired \uDFFF"})
    void aLoneSurrogateIsRefusedWithItsIndexOrReplaced(String text) {
        int index = text.length() - 1;
        assertEquals(index, assertThrows(MalformedTextException.class, () -> BsonName.of(text))
                .index());
        writer.beginDocument();
        assertEquals(index, assertThrows(MalformedTextException.class, () -> writer.string(A, text))
                .index());
        assertEquals(index, assertThrows(MalformedTextException.class, () -> writer.name(text))
                .index());
        assertEquals(index, assertThrows(MalformedTextException.class,
                () -> writer.regex(A, text, "")).index());
        writer.int32(A, 1);
        writer.end();
        assertEquals(new BsonDocument("a", new BsonInt32(1)),
                BsonDocuments.theirs(output.toByteArray()));
        BsonOutput replaced = new BsonOutput();
        BsonDocuments.write(BsonWriter.over(replaced, Malformed.REPLACE),
                new BsonDocument("a", new BsonString(text)));
        String read = BsonDocuments.theirs(replaced.toByteArray()).getString("a").getValue();
        assertEquals(text.substring(0, index) + "?", read);
    }

    @Test
    void indexesOfArraysAreCachedAndMadeAlike() {
        BsonArray array = new BsonArray(IntStream.range(0, 12_000).mapToObj(BsonInt32::new)
                .toList());
        BsonDocument document = new BsonDocument("a", array);
        assertArrayEquals(BsonDocuments.theirs(document), BsonDocuments.ours(document));
    }

    @Test
    void anElementIsWrittenWholeOrNotAtAll() {
        ByteBuffer buffer = ByteBuffer.allocate(32);
        BsonWriter into = BsonWriter.over(buffer);
        into.beginDocument();
        into.int32(A, 1);
        assertEquals(11, into.writtenBytes());
        assertThrows(BufferOverflowException.class,
                () -> into.string(A, "twenty-six characters long"));
        assertThrows(BufferOverflowException.class, () -> into.dbPointer(A, "db.c", new byte[12]));
        assertThrows(BufferOverflowException.class,
                () -> into.beginCodeWithScope(A, "eleven char"));
        assertThrows(BufferOverflowException.class,
                () -> into.regex(A, "nineteen characters", "x"));
        into.name("a");
        assertThrows(BufferOverflowException.class,
                () -> into.string("twenty-six characters long"));
        assertEquals(11, into.writtenBytes());
        assertEquals(0, buffer.position());
        into.int64(3);
        into.end();
        assertEquals(23, into.writtenBytes());
        assertEquals(23, buffer.position());
        BsonReader.validate(buffer.flip());
    }

    @Test
    void aDestinationOfEachSizeThatIsTooSmallIsAnOverflowAndNothingAfterItIsWritten() {
        BsonDocument document = BsonDocument.parse(BsonHarmTest.ALL);
        byte[] expected = BsonDocuments.theirs(document);
        for (ByteBuffer buffer
                : new ByteBuffer[] {ByteBuffer.allocate(500), ByteBuffer.allocateDirect(500)}) {
            for (int capacity = 0; capacity < expected.length; capacity++) {
                ByteBuffer small = buffer.clear().limit(capacity);
                BsonWriter into = BsonWriter.over(small);
                assertThrows(BufferOverflowException.class,
                        () -> BsonDocuments.write(into, document));
                assertEquals(0, small.position());
                assertTrue(into.writtenBytes() <= capacity);
                assertEquals(0, buffer.clear().get(capacity), "the byte after " + capacity);
                BsonOutput limited = new BsonOutput(0, capacity);
                assertThrows(BufferOverflowException.class,
                        () -> BsonDocuments.write(BsonWriter.over(limited), document));
                assertEquals(0, limited.size());
            }
            BsonDocuments.write(BsonWriter.over(buffer.clear().limit(expected.length)), document);
            assertEquals(ByteBuffer.wrap(expected), buffer.flip());
        }
    }

    @Test
    void documentsFollowTheBuffersPosition() {
        ByteBuffer buffer = ByteBuffer.allocate(64).order(ByteOrder.BIG_ENDIAN).position(10);
        BsonWriter into = BsonWriter.over(buffer);
        into.beginDocument();
        into.end();
        assertEquals(15, buffer.position());
        into.beginDocument();
        into.end();
        assertEquals(20, buffer.position());
        buffer.clear();
        into.beginDocument();
        into.int32(A, 0x01020304);
        into.end();
        assertEquals(12, buffer.position());
        assertEquals(0x04030201, buffer.getInt(7));
        buffer.position(60);
        into.beginDocument();
        assertThrows(BufferOverflowException.class, into::end);
        assertThrows(ReadOnlyBufferException.class,
                () -> BsonWriter.over(ByteBuffer.allocate(9).asReadOnlyBuffer()));
    }

    @Test
    void aHundredThousandLevelsAreWritten() {
        int levels = 100_000;
        writer.beginDocument();
        for (int i = 0; i < levels; i++) {
            if (i % 2 == 0) {
                writer.beginArray(A);
            } else {
                writer.beginDocument();
            }
        }
        assertEquals(levels + 1, writer.depth());
        for (int i = 0; i <= levels; i++) {
            writer.end();
        }
        writer.finish();
        BsonReader.validate(output.asByteBuffer());
    }

    @Test
    void aValueIsCopiedByteForByte() {
        BsonDocument document = BsonDocument.parse(
                "{'a': [1, {'b': 'x'}], 'c': {'$code': 'f', '$scope': {'y': 1}}, 'd': null}");
        BsonReader reader = BsonReader.of(ByteBuffer.wrap(BsonDocuments.theirs(document)));
        assertThrows(IllegalStateException.class, () -> writer.copy(A, reader));
        writer.beginDocument();
        assertThrows(IllegalStateException.class, () -> writer.copy(A, reader));
        while (reader.next()) {
            if (reader.nameIs(A)) {
                writer.copy(A, reader);
            } else {
                writer.name(reader.name());
                writer.copy(reader);
            }
        }
        writer.end();
        assertArrayEquals(BsonDocuments.theirs(document), output.toByteArray());
    }

    @Test
    void namesAreEqualByTheirText() {
        assertEquals(A, BsonName.of("a"));
        assertEquals(A.hashCode(), BsonName.of("a").hashCode());
        assertNotEquals(A, NAME);
        assertEquals("ключ", NAME.toString());
    }

    @Test
    void nothingIsAllocatedByACall() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        byte[] id = new byte[12];
        long before = 0;
        int documents = 2_000;
        for (int i = -100; i < documents; i++) {
            if (i == 0) {
                before = threads.getCurrentThreadAllocatedBytes();
            }
            output.reset();
            writer.beginDocument();
            writer.string(A, "Zürich");
            writer.name("n");
            writer.int64(i);
            writer.beginArray(NAME);
            writer.float64(1.5);
            writer.objectId(id);
            writer.decimal128(0, 1);
            writer.beginDocument();
            writer.regex(A, "^a", "i");
            writer.end();
            writer.end();
            writer.end();
        }
        long each = (threads.getCurrentThreadAllocatedBytes() - before) / documents;
        assertEquals(0, each, "bytes for a document");
    }
}
