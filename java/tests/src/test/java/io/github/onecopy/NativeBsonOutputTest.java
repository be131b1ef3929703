package io.github.onecopy;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import org.bson.BsonDocument;
import org.bson.BsonSerializationException;
import org.bson.BsonString;
import org.bson.ByteBuf;
import org.bson.RawBsonDocument;
import org.bson.io.BasicOutputBuffer;
import org.bson.io.OutputBuffer;
import org.bson.types.ObjectId;
import org.junit.jupiter.api.Test;

/**
 * Compares the replacement of the driver's output with the original: the same bytes, and the same
 * exceptions.
 */
final class NativeBsonOutputTest {
    private static final String[] TEXTS = {"", "a", "Zürich", "Привет", "東京都".repeat(100), "😀 a 😀",
            "x".repeat(5000), "a longer one, of ASCII"};

    @Test
    void anyCallsReturnTheSameBytesAndRefusals() {
        Random random = new Random(9);
        for (int round = 0; round < 300; round++) {
            OutputBuffer ours = new NativeBsonOutput(random.nextInt(3) * 7);
            OutputBuffer theirs = new BasicOutputBuffer(16);
            for (int i = 0; i < 60; i++) {
                Consumer<OutputBuffer> call = call(random);
                assertEquals(outcome(theirs, call), outcome(ours, call));
                assertEquals(theirs.getPosition(), ours.getPosition());
            }
            assertArrayEquals(theirs.toByteArray(), ours.toByteArray());
        }
    }

    @SuppressWarnings("deprecation") // The driver's own writer calls it.
    private static Consumer<OutputBuffer> call(Random random) {
        int n = random.nextInt();
        int position = random.nextInt(400) - 20;
        String text = TEXTS[random.nextInt(TEXTS.length)];
        byte[] bytes = new byte[random.nextInt(40)];
        random.nextBytes(bytes);
        return switch (random.nextInt(18)) {
            case 0 -> output -> output.writeInt32(n);
            case 1 -> output -> output.writeInt64((long) n << 20);
            case 2 -> output -> output.writeDouble(n / 7.0);
            case 3 -> output -> output.writeByte(n);
            case 4 -> output -> output.write(n);
            case 5 -> output -> output.writeBytes(bytes);
            case 6 -> output -> output.writeBytes(bytes, bytes.length / 3, bytes.length / 3);
            case 7 -> output -> output.write(bytes, bytes.length / 2, bytes.length / 2);
            case 8 -> output -> output.writeInt32(position, n);
            case 9 -> output -> output.truncateToPosition(position);
            case 10 -> output -> output.writeCString(text);
            case 11 -> output -> output.writeCString("a\0b".substring(n & 1));
            case 12 -> output -> output.writeObjectId(new ObjectId("0123456789abcdef01234567"));
            case 13 -> output -> output.writeInt(n);
            case 14 -> output -> output.writeLong(n);
            case 15 -> output -> output.writeBytes(bytes, 1, bytes.length);
            case 16 -> output -> output.writeString("a\0" + text);
            default -> output -> output.writeString(text);
        };
    }

    /**
     * Executes a call; returns the name of its exception, or an empty text. Before the original
     * refuses a NUL, it has written the bytes that precede the NUL; they are removed.
     */
    private static String outcome(OutputBuffer output, Consumer<OutputBuffer> call) {
        int before = output.getPosition();
        try {
            call.accept(output);
            return "";
        } catch (BsonSerializationException e) {
            output.truncateToPosition(before);
            return e.getClass().getName();
        } catch (RuntimeException e) {
            return e.getClass().getName();
        }
    }

    @Test
    void eachAccessorReturnsTheContents() throws IOException {
        NativeBsonOutput output = new NativeBsonOutput();
        output.writeString("Zürich");
        byte[] expected = {8, 0, 0, 0, 'Z', (byte) 0xC3, (byte) 0xBC, 'r', 'i', 'c', 'h', 0};
        assertArrayEquals(expected, output.toByteArray());
        ByteArrayOutputStream piped = new ByteArrayOutputStream();
        assertEquals(12, output.pipe(piped));
        assertArrayEquals(expected, piped.toByteArray());
        List<ByteBuf> buffers = output.getByteBuffers();
        assertEquals(1, buffers.size());
        assertEquals(8, buffers.get(0).getInt());
        assertEquals(8, buffers.get(0).remaining());
        assertEquals(12, output.asByteBuffer().remaining());
        assertEquals(12, output.size());
        assertEquals("NativeBsonOutput of 12 bytes", output.toString());
    }

    @Test
    void aLoneSurrogateIsRefusedOrReplacedAndNeverWrittenAsTheOriginalDoes() {
        BasicOutputBuffer theirs = new BasicOutputBuffer();
        theirs.writeString("\uD800");
        assertArrayEquals(new byte[] {4, 0, 0, 0, (byte) 0xED, (byte) 0xA0, (byte) 0x80, 0},
                theirs.toByteArray());
        NativeBsonOutput ours = new NativeBsonOutput();
        assertEquals(1, assertThrows(MalformedTextException.class,
                () -> ours.writeString("a\uD800")).index());
        assertEquals(0, assertThrows(MalformedTextException.class,
                () -> ours.writeCString("\uDC00")).index());
        assertEquals(0, ours.getSize());
        NativeBsonOutput replacing = new NativeBsonOutput(0, Malformed.REPLACE);
        replacing.writeString("a\uD800");
        replacing.writeCString("\uDC00");
        assertArrayEquals(new byte[] {3, 0, 0, 0, 'a', '?', 0, '?', 0}, replacing.toByteArray());
    }

    @Test
    void aClosedOneRefusesAll() {
        NativeBsonOutput output = new NativeBsonOutput();
        output.writeInt32(1);
        output.close();
        output.close();
        assertThrows(IllegalStateException.class, () -> output.writeString("a"));
        assertThrows(IllegalStateException.class, () -> output.writeCString("a"));
        assertThrows(IllegalStateException.class, () -> output.writeInt64(1));
        assertThrows(IllegalStateException.class, output::getPosition);
        assertThrows(IllegalStateException.class, output::toByteArray);
        assertThrows(IllegalStateException.class, output::getByteBuffers);
        assertThrows(IllegalStateException.class, () -> output.truncateToPosition(0));
        assertEquals("NativeBsonOutput, closed", output.toString());
        assertThrows(IllegalArgumentException.class, () -> new NativeBsonOutput(-1));
    }

    @Test
    void theDriversRawDocumentUsesTheBytesWithoutACopy() {
        BsonDocument document = new BsonDocument("city", new BsonString("東京都".repeat(400)));
        NativeBsonOutput output = new NativeBsonOutput();
        BsonDocuments.theirs(document, output);
        RawBsonDocument raw = new RawBsonDocument(output.asByteBuffer().array(), 0, output.size());
        assertEquals(document, raw);
    }
}
