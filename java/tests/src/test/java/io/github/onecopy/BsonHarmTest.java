package io.github.onecopy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.bson.BsonDocument;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Reads documents that were truncated or changed. They must be refused, or read as the driver reads
 * them.
 */
final class BsonHarmTest {
    /** A document, as JSON, with an element of each type. */
    static final String ALL =
            "{'a': 1.5, 'b': 'Zürich', 'c': {'d': null}, 'e': [1, true], "
            + "'f': {'$binary': {'base64': 'AAEC', 'subType': '02'}}, "
            + "'g': {'$undefined': true}, 'h': {'$oid': '0123456789abcdef01234567'}, "
            + "'i': {'$date': {'$numberLong': '5'}}, "
            + "'j': {'$regularExpression': {'pattern': 'x', 'options': 'i'}}, "
            + "'k': {'$dbPointer': {'$ref': 'n', '$id': {'$oid': '0123456789abcdef01234567'}}}, "
            + "'l': {'$code': 'f'}, 'm': {'$symbol': 's'}, "
            + "'n': {'$code': 'f', '$scope': {'x': 1}}, 'o': {'$timestamp': {'t': 1, 'i': 2}}, "
            + "'p': {'$numberLong': '9'}, "
            + "'q': {'$numberDecimal': '1.5'}, 'r': {'$minKey': 1}, 's': {'$maxKey': 1}}";

    static Stream<BsonDocuments.Vector> small() throws IOException {
        byte[] all = BsonDocuments.theirs(BsonDocument.parse(ALL));
        Stream<BsonDocuments.Vector> vectors = BsonDocuments.vectors().stream()
                .filter(vector -> vector.bytes().length < 100);
        return Stream.concat(Stream.of(new BsonDocuments.Vector("all types", all,
                BsonDocument.parse(ALL))), vectors);
    }

    @ParameterizedTest
    @MethodSource("small")
    void everyPrefixIsRefused(BsonDocuments.Vector vector) {
        for (int n = 0; n < vector.bytes().length; n++) {
            ByteBuffer prefix = ByteBuffer.wrap(vector.bytes(), 0, n);
            if (vector.document() != null) {
                assertThrows(BsonException.class, () -> BsonReader.of(prefix));
            }
            isTaken(prefix);
        }
    }

    @ParameterizedTest
    @MethodSource("small")
    void everyPrefixWithACorrectedLengthIsRefusedOrReadAsTheDriverReadsIt(
            BsonDocuments.Vector vector) {
        for (int n = 5; n < vector.bytes().length; n++) {
            byte[] prefix = Arrays.copyOf(vector.bytes(), n);
            ByteBuffer.wrap(prefix).order(ByteOrder.LITTLE_ENDIAN).putInt(n).put(n - 1, (byte) 0);
            if (isTaken(ByteBuffer.wrap(prefix))) {
                assertEquals(BsonDocuments.theirs(prefix), BsonDocuments.ours(prefix),
                        () -> BsonDocuments.HEX.formatHex(prefix));
            }
        }
    }

    @ParameterizedTest
    @MethodSource("small")
    void everyFlippedByteIsRefusedOrReadAsTheDriverReadsIt(BsonDocuments.Vector vector) {
        byte[] bytes = vector.bytes().clone();
        ByteBuffer direct = ByteBuffer.allocateDirect(bytes.length);
        for (int i = 0; i < bytes.length; i++) {
            byte before = bytes[i];
            for (int flip = 1; flip < 256; flip++) {
                bytes[i] = (byte) (before ^ flip);
                boolean isTaken = isTaken(ByteBuffer.wrap(bytes));
                assertEquals(isTaken, isTaken(direct.clear().put(bytes).flip()));
                if (isTaken) {
                    assertEquals(BsonDocuments.theirs(bytes), BsonDocuments.ours(bytes),
                            () -> BsonDocuments.HEX.formatHex(bytes));
                }
            }
            bytes[i] = before;
        }
    }

    @Test
    void randomBytesAreRefusedOrReadAsTheDriverReadsThem() {
        Random random = new Random(9);
        byte[] all = BsonDocuments.theirs(BsonDocument.parse(ALL));
        for (int i = 0; i < 30_000; i++) {
            byte[] bytes = all.clone();
            for (int k = random.nextInt(4); k >= 0; k--) {
                bytes[4 + random.nextInt(bytes.length - 4)] = (byte) (random.nextBoolean()
                        ? random.nextInt(20)
                        : random.nextInt());
            }
            if (isTaken(ByteBuffer.wrap(bytes))) {
                assertEquals(BsonDocuments.theirs(bytes), BsonDocuments.ours(bytes),
                        () -> BsonDocuments.HEX.formatHex(bytes));
            }
        }
    }

    /**
     * Returns true if the bytes are valid BSON. Asserts that invalid BSON causes only a {@link
     * BsonException}, both if texts are read with replacement and if they are checked.
     */
    private static boolean isTaken(ByteBuffer bytes) {
        boolean isRead;
        try {
            walk(BsonReader.of(bytes, Malformed.REPLACE));
            isRead = true;
        } catch (BsonException e) {
            isRead = false;
        }
        try {
            BsonReader.validate(bytes);
            assertTrue(isRead);
            return true;
        } catch (BsonException e) {
            assertTrue(e.offsetBytes() <= bytes.limit());
            assertTrue(!isRead || e.reason() == BsonException.Reason.MALFORMED);
            return false;
        }
    }

    private static void walk(BsonReader reader) {
        int steps = 0;
        do {
            while (reader.next()) {
                assertTrue(++steps < 10_000);
                reader.name();
                reader.rawValue();
                switch (reader.type()) {
                    case STRING -> reader.string();
                    case REGEX -> reader.regexPattern().concat(reader.regexOptions());
                    case DB_POINTER -> reader.dbPointerNamespace();
                    case DOCUMENT, ARRAY, CODE_WITH_SCOPE -> reader.enter();
                    default -> { }
                }
            }
        } while (left(reader));
    }

    private static boolean left(BsonReader reader) {
        if (reader.depth() == 0) {
            return false;
        }
        reader.leave();
        return true;
    }

    @Test
    void lengthsThatLieTakeNoMemory() {
        List<String> lies = List.of(
                "ffffff7f00", "10000000 02 6100 ffffff7f 6100 00",
                "0f000000 03 6100 ffffff7f 00 00", "0f000000 05 6100 ffffff7f 00 00",
                "16000000 0f 6100 ffffff7f 01000000 00 05000000 00",
                "16000000 0f 6100 0e000000 ffffff7f 00 05000000 00",
                "13000000 05 6100 04000000 02 ffffff7f 00");
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        for (int round = 0; round < 2; round++) {
            for (String lie : lies) {
                ByteBuffer bytes =
                        ByteBuffer.wrap(BsonDocuments.HEX.parseHex(lie.replace(" ", "")));
                long before = threads.getCurrentThreadAllocatedBytes();
                assertThrows(BsonException.class, () -> BsonReader.validate(bytes), lie);
                long taken = threads.getCurrentThreadAllocatedBytes() - before;
                assertTrue(round == 0 || taken < 64 << 10, () -> lie + " took " + taken + " bytes");
            }
        }
    }
}
