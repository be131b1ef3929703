package io.github.onecopy;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.onecopy.BsonException.Reason;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.bson.BsonDocument;
import org.bson.BsonInt32;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests the movement of the reader, and the error for each kind of invalid BSON. */
final class BsonReaderTest {
    private static final BsonName A = BsonName.of("a");

    /**
     * The valid element, of 12 bytes, that precedes the fault. It follows the 4 bytes of the
     * document's length.
     */
    private static final String FIRST = "10 6265666f7265 00 01000000";

    private static final int AT = 16;

    private static byte[] hex(String digits) {
        return BsonDocuments.HEX.parseHex(digits.replace(" ", ""));
    }

    /** Returns a document that consists of these elements, which are given in hexadecimal. */
    private static byte[] document(String elements) {
        byte[] body = hex(elements);
        return ByteBuffer.allocate(body.length + 5).order(ByteOrder.LITTLE_ENDIAN)
                .putInt(body.length + 5).put(body).array();
    }

    private static ByteBuffer parsed(String json) {
        return ByteBuffer.wrap(BsonDocuments.theirs(BsonDocument.parse(json)));
    }

    static Stream<Arguments> faults() {
        return Stream.of(
                fault(Reason.END, 0, ""),
                fault(Reason.END, 0, "050000"),
                fault(Reason.END, 0, "06000000 00"),
                fault(Reason.END, 0, "ffffff7f 00"),
                fault(Reason.DOCUMENT_LENGTH, 0, "04000000 00"),
                fault(Reason.DOCUMENT_LENGTH, 0, "ffffffff 00"),
                fault(Reason.DOCUMENT_LENGTH, 0, "00000080 00"),
                fault(Reason.TRAILING_DATA, 5, "05000000 00 00"),
                fault(Reason.NO_TERMINATOR, 4, "05000000 01"),
                inside(Reason.EARLY_END, 0, "00"),
                inside(Reason.TAG, 0, "14 7600"),
                inside(Reason.TAG, 0, "80 7600"),
                inside(Reason.OPEN_TEXT, 1, "0a"),
                inside(Reason.OPEN_TEXT, 1, "0a 76767676767676767676767676"),
                inside(Reason.VALUE, 3, "01 7600 00000000000000"),
                inside(Reason.VALUE, 3, "07 7600 0000000000000000000000"),
                inside(Reason.VALUE, 3, "08 7600"),
                inside(Reason.VALUE, 3, "10 7600 000000"),
                inside(Reason.VALUE, 3, "13 7600 000000000000000000000000000000"),
                inside(Reason.BOOLEAN, 3, "08 7600 02"),
                inside(Reason.BOOLEAN, 3, "08 7600 ff"),
                inside(Reason.VALUE, 3, "02 7600 010000"),
                inside(Reason.TEXT_LENGTH, 3, "02 7600 00000000 00"),
                inside(Reason.TEXT_LENGTH, 3, "0d 7600 ffffffff 00"),
                inside(Reason.LENGTH, 3, "02 7600 03000000 6100"),
                inside(Reason.LENGTH, 3, "0e 7600 ffffff7f 6100"),
                inside(Reason.TEXT_END, 8, "02 7600 02000000 6162 00"),
                inside(Reason.MALFORMED, 8, "02 7600 03000000 61ff00"),
                inside(Reason.MALFORMED, 7, "0d 7600 04000000 eda08000"),
                inside(Reason.MALFORMED, 7, "0e 7600 03000000 c08000"),
                inside(Reason.MALFORMED, 2, "0a 61f500"),
                inside(Reason.OPEN_TEXT, 3, "0b 7600 6161"),
                inside(Reason.OPEN_TEXT, 5, "0b 7600 6100 61"),
                inside(Reason.MALFORMED, 3, "0b 7600 80 00 00"),
                inside(Reason.MALFORMED, 5, "0b 7600 6100 c3 00"),
                inside(Reason.DOCUMENT_LENGTH, 3, "03 7600 04000000 00"),
                inside(Reason.DOCUMENT_LENGTH, 3, "04 7600 000000ff 00"),
                inside(Reason.LENGTH, 3, "03 7600 06000000 00"),
                inside(Reason.NO_TERMINATOR, 7, "03 7600 05000000 01"),
                inside(Reason.TAG, 7, "03 7600 07000000 777700"),
                inside(Reason.VALUE, 3, "05 7600 00000000"),
                inside(Reason.BINARY_LENGTH, 3, "05 7600 ffffffff 00"),
                inside(Reason.LENGTH, 3, "05 7600 03000000 00 0102"),
                inside(Reason.OLD_BINARY, 8, "05 7600 03000000 02 010203"),
                inside(Reason.OLD_BINARY, 8, "05 7600 05000000 02 02000000 01"),
                inside(Reason.VALUE, 11, "0c 7600 04000000 61626300 0000000000000000000000"),
                inside(Reason.MALFORMED, 7, "0c 7600 02000000 ff00 000000000000000000000000"),
                inside(Reason.SCOPE_LENGTH, 3, "0f 7600 0d000000 01000000 00 05000000 00"),
                inside(Reason.LENGTH, 3, "0f 7600 0f000000 01000000 00 05000000 00"),
                inside(Reason.SCOPE_LENGTH, 3, "0f 7600 ffffffff 01000000 00 05000000 00"),
                inside(Reason.SCOPE_LENGTH, 12, "0f 7600 0e000000 01000000 00 06000000 00"),
                inside(Reason.LENGTH, 7, "0f 7600 0e000000 02000000 00 00 05000000 00"),
                inside(Reason.NO_TERMINATOR, 16, "0f 7600 0e000000 01000000 00 05000000 01"),
                inside(Reason.MALFORMED, 11, "0f 7600 0f000000 02000000 ff00 05000000 00"),
                inside(Reason.EARLY_END, 16, "0f 7600 0f000000 01000000 00 06000000 0000"));
    }

    private static Arguments fault(Reason reason, long offset, String hex) {
        return Arguments.of(reason, offset, hex(hex));
    }

    private static Arguments inside(Reason reason, long offset, String hex) {
        return Arguments.of(reason, AT + offset, document(FIRST + hex));
    }

    @ParameterizedTest
    @MethodSource("faults")
    void eachFaultIsReportedWithItsByte(Reason reason, long offset, byte[] bytes) {
        for (ByteBuffer buffer : new ByteBuffer[] {
            ByteBuffer.wrap(bytes), ByteBuffer.allocateDirect(bytes.length + 3).position(3)
                    .put(bytes).flip().position(3)
        }) {
            BsonException e = assertThrows(BsonException.class, () -> BsonReader.validate(buffer));
            assertEquals(reason, e.reason());
            assertEquals(offset, e.offsetBytes());
            assertTrue(e.getMessage().endsWith(" at byte " + offset), e.getMessage());
        }
    }

    @Test
    void everyReasonHasItsFault() {
        Set<Reason> seen = EnumSet.noneOf(Reason.class);
        faults().forEach(fault -> seen.add((Reason) fault.get()[0]));
        assertEquals(EnumSet.allOf(Reason.class), seen);
    }

    @Test
    void valuesThatAreNotWantedAreSkipped() {
        BsonReader reader = BsonReader.of(parsed("{'x': {'y': [1, 2]}, 'a': 5, 'z': 'text'}"));
        assertTrue(reader.next());
        assertFalse(reader.nameIs(A));
        assertEquals(BsonType.DOCUMENT, reader.type());
        assertTrue(reader.next());
        assertTrue(reader.nameIs(A));
        assertEquals(5, reader.int32());
        reader.skip();
        assertThrows(IllegalStateException.class, reader::int32);
        assertTrue(reader.next());
        assertEquals("z", reader.name());
        assertFalse(reader.next());
        assertFalse(reader.next());
        assertThrows(IllegalStateException.class, reader::skip);
        assertThrows(IllegalStateException.class, reader::leave);
    }

    @Test
    void documentsAreEnteredAndLeftAnywhere() {
        BsonReader reader = BsonReader.of(parsed(
                "{'a': {'b': {'c': 1, 'd': 2}, 'e': 3}, "
                        + "'f': {'$code': 'x', '$scope': {'g': 4}}, 'h': 6}"));
        assertTrue(reader.next());
        reader.enter();
        assertThrows(IllegalStateException.class, reader::type);
        assertThrows(IllegalStateException.class, reader::enter);
        assertTrue(reader.next());
        reader.enter();
        assertTrue(reader.next());
        assertEquals("c", reader.name());
        assertEquals(2, reader.depth());
        reader.leave();
        assertTrue(reader.next());
        assertEquals("e", reader.name());
        reader.leave();
        assertTrue(reader.next());
        assertEquals("x", reader.code());
        reader.enter();
        assertTrue(reader.next());
        assertEquals(4, reader.int32());
        assertFalse(reader.next());
        reader.leave();
        assertTrue(reader.next());
        assertEquals(6, reader.int32());
        assertThrows(IllegalStateException.class, reader::enter);
        assertFalse(reader.next());
    }

    @Test
    void aGetterOfAnotherTypeIsRefused() {
        BsonReader reader = BsonReader.of(parsed("{'a': true}"));
        assertThrows(IllegalStateException.class, reader::bool);
        assertThrows(IllegalStateException.class, reader::name);
        assertThrows(IllegalStateException.class, () -> reader.nameIs(A));
        assertThrows(IllegalStateException.class, reader::rawValue);
        assertTrue(reader.next());
        Stream<Consumer<BsonReader>> others = Stream.of(
                BsonReader::float64, BsonReader::string, BsonReader::code, BsonReader::symbol,
                BsonReader::binary, BsonReader::binarySubtype, BsonReader::objectId,
                BsonReader::dateTime, BsonReader::regexPattern, BsonReader::regexOptions,
                BsonReader::dbPointerNamespace, BsonReader::dbPointerId, BsonReader::int32,
                BsonReader::int64, BsonReader::timestampSeconds, BsonReader::timestampIncrement,
                BsonReader::decimal128High, BsonReader::decimal128Low, BsonReader::enter);
        others.forEach(getter ->
                assertThrows(IllegalStateException.class, () -> getter.accept(reader)));
        assertTrue(reader.bool());
    }

    @Test
    void rawValuesAreViews() {
        ByteBuffer document = parsed("{'a': 'xyz', 'b': {'c': 1}}");
        BsonReader reader = BsonReader.of(document);
        assertTrue(reader.next());
        assertEquals(4, reader.offsetBytes());
        ByteBuffer raw = reader.rawValue();
        assertTrue(raw.isReadOnly());
        assertEquals(4, raw.getInt());
        assertEquals("xyz\0", StandardCharsets.UTF_8.decode(raw).toString());
        assertTrue(reader.next());
        assertEquals(new BsonDocument("c", new BsonInt32(1)),
                BsonDocuments.read(BsonReader.of(reader.rawValue())));
        document.put(document.limit() - 1 - 1 - 4, (byte) 7);
        assertEquals(7, reader.rawValue().get(7));
    }

    @Test
    void malformedTextIsReplacedOnRequest() {
        byte[] bytes = document("02 61ff00 03000000 62ff00");
        BsonReader strict = BsonReader.of(ByteBuffer.wrap(bytes));
        assertTrue(strict.next());
        BsonException name = assertThrows(BsonException.class, strict::name);
        assertEquals(6, name.offsetBytes());
        assertTrue(name.getCause() instanceof MalformedTextException);
        assertEquals(13, assertThrows(BsonException.class, strict::string).offsetBytes());
        BsonReader lax = BsonReader.of(ByteBuffer.wrap(bytes), Malformed.REPLACE);
        assertTrue(lax.next());
        assertEquals("a\uFFFD", lax.name());
        assertEquals("b\uFFFD", lax.string());
    }

    @Test
    void concatenatedDocumentsAreSeparated() {
        ByteBuffer both = ByteBuffer.allocate(100).put(parsed("{'a': 1}")).put(parsed("{'a': 'x'}"))
                .flip();
        BsonReader reader = null;
        int documents = 0;
        while (both.hasRemaining()) {
            int n = BsonReader.documentBytes(both);
            ByteBuffer one = both.slice(both.position(), n);
            if (reader == null) {
                reader = BsonReader.of(one);
            } else {
                reader.reset(one);
            }
            assertTrue(reader.next());
            assertTrue(reader.nameIs(A));
            both.position(both.position() + n);
            documents++;
        }
        assertEquals(2, documents);
    }

    @Test
    void afterAResetThatFailedThereIsNothing() {
        BsonReader reader = BsonReader.of(parsed("{'a': {'b': 1}}"));
        assertTrue(reader.next());
        reader.enter();
        assertThrows(BsonException.class, () -> reader.reset(ByteBuffer.allocate(4)));
        assertFalse(reader.next());
        assertEquals(0, reader.depth());
        reader.reset(parsed("{'a': 1}"));
        assertTrue(reader.next());
        assertEquals(1, reader.int32());
    }

    @Test
    void aHundredThousandLevelsAreReadWithoutRecursion() {
        int levels = 100_000;
        ByteBuffer deep = ByteBuffer.allocate(8 * levels + 5).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i <= levels; i++) {
            int end = deep.limit() - i;
            deep.putInt(end - deep.position());
            if (i < levels) {
                deep.put((byte) 3).put((byte) 'a').put((byte) 0);
            }
        }
        deep.clear();
        BsonReader.validate(deep);
        BsonReader reader = BsonReader.of(deep);
        while (reader.next()) {
            reader.enter();
        }
        assertEquals(levels, reader.depth());
        for (int i = 0; i < levels; i++) {
            reader.leave();
        }
        assertFalse(reader.next());
    }

    @Test
    void bytesThatChangeWhileTheyAreReadLeadNowhereElse() {
        byte[] around = new byte[200];
        byte[] document =
                document("02 6100 04000000 78797a00 0f 6200 0e000000 01000000 00 05000000 00");
        System.arraycopy(document, 0, around, 50, document.length);
        BsonReader reader = BsonReader.of(ByteBuffer.wrap(around, 50, document.length));
        assertTrue(reader.next());
        around[50 + 4 + 3] = 120;
        assertThrows(IndexOutOfBoundsException.class, reader::string);
        around[50 + 4 + 3] = 4;
        assertTrue(reader.next());
        around[50 + 15 + 3 + 4] = 100;
        reader.enter();
        assertThrows(RuntimeException.class, reader::next);
        assertArrayEquals(new byte[50], Arrays.copyOf(around, 50));
    }
}
