package io.github.onecopy;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests the vectors that all implementations of this repository share. */
final class BsonVectorsTest {
    static Stream<BsonDocuments.Vector> documents() throws IOException {
        return BsonDocuments.vectors().stream().filter(vector -> vector.document() != null);
    }

    static Stream<BsonDocuments.Vector> wrong() throws IOException {
        return BsonDocuments.vectors().stream().filter(vector -> vector.document() == null);
    }

    @ParameterizedTest
    @MethodSource("documents")
    void isWrittenByteForByte(BsonDocuments.Vector vector) {
        assertArrayEquals(vector.bytes(), BsonDocuments.ours(vector.document()));
    }

    @ParameterizedTest
    @MethodSource("documents")
    void isWrittenByTheDriverIntoOurOutputByteForByte(BsonDocuments.Vector vector) {
        assertArrayEquals(vector.bytes(),
                BsonDocuments.theirs(vector.document(), new NativeBsonOutput()).toByteArray());
        assertArrayEquals(vector.bytes(), BsonDocuments.theirs(vector.document()));
    }

    @ParameterizedTest
    @MethodSource("documents")
    void isReadAsItsDocument(BsonDocuments.Vector vector) {
        assertEquals(vector.document(), BsonDocuments.ours(vector.bytes()));
        ByteBuffer direct = ByteBuffer.allocateDirect(vector.bytes().length).put(vector.bytes())
                .flip();
        BsonReader.validate(direct);
        assertEquals(vector.document(), BsonDocuments.read(BsonReader.of(direct)));
        BsonReader.validate(ByteBuffer.wrap(vector.bytes()).asReadOnlyBuffer());
    }

    @ParameterizedTest
    @MethodSource("wrong")
    void isRefused(BsonDocuments.Vector vector) {
        assertThrows(BsonException.class,
                () -> BsonReader.validate(ByteBuffer.wrap(vector.bytes())));
    }

    @Test
    void theyHaveEachType() throws IOException {
        Set<BsonType> seen = EnumSet.noneOf(BsonType.class);
        for (BsonDocuments.Vector vector : documents().toList()) {
            BsonReader reader = BsonReader.of(ByteBuffer.wrap(vector.bytes()));
            while (reader.next()) {
                seen.add(reader.type());
            }
        }
        assertEquals(EnumSet.allOf(BsonType.class), seen);
        assertEquals(List.of(21, 21), List.of(BsonType.values().length, seen.size()));
    }
}
