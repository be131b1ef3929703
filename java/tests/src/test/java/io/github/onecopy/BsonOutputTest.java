package io.github.onecopy;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.nio.channels.WritableByteChannel;
import org.junit.jupiter.api.Test;

/** Tests documents in an output that grows. */
final class BsonOutputTest {
    private static final BsonName A = BsonName.of("a");

    private static void write(BsonOutput output, String text) {
        BsonWriter writer = BsonWriter.over(output);
        writer.beginDocument();
        writer.string(A, text);
        writer.end();
    }

    @Test
    void itGrowsAndEachAccessorReturnsAllContents() throws IOException {
        BsonOutput output = new BsonOutput(0, Integer.MAX_VALUE);
        ByteArrayOutputStream expected = new ByteArrayOutputStream();
        for (int n = 0; n < 200_000; n = 3 * n + 1) {
            write(output, "я".repeat(n));
            BsonOutput single = new BsonOutput();
            write(single, "я".repeat(n));
            expected.write(single.toByteArray());
        }
        assertArrayEquals(expected.toByteArray(), output.toByteArray());
        assertEquals(expected.size(), output.size());
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        output.writeTo(stream);
        assertArrayEquals(expected.toByteArray(), stream.toByteArray());
        ByteArrayOutputStream channel = new ByteArrayOutputStream();
        output.writeTo(Channels.newChannel(channel));
        assertArrayEquals(expected.toByteArray(), channel.toByteArray());
        ByteBuffer view = output.asByteBuffer();
        assertEquals(ByteOrder.LITTLE_ENDIAN, view.order());
        assertEquals(0, view.position());
        assertEquals(output.size(), view.capacity());
        byte[] viewed = new byte[view.remaining()];
        view.get(viewed);
        assertArrayEquals(expected.toByteArray(), viewed);
    }

    @Test
    void aResetKeepsTheArray() {
        BsonOutput output = new BsonOutput(8, 1 << 20);
        write(output, "x".repeat(1000));
        byte[] array = output.asByteBuffer().array();
        output.reset();
        assertEquals(0, output.size());
        assertEquals(0, output.asByteBuffer().remaining());
        write(output, "y".repeat(1000));
        assertSame(array, output.asByteBuffer().array());
    }

    @Test
    void aDocumentThatDoesNotFitIsAnOverflowAndEarlierOnesStay() {
        BsonOutput output = new BsonOutput(10, 30);
        assertEquals(30, output.maxBytes());
        write(output, "abc");
        byte[] before = output.toByteArray();
        assertThrows(BufferOverflowException.class,
                () -> write(output, "a text that is longer than thirty bytes"));
        assertArrayEquals(before, output.toByteArray());
        write(output, "");
        assertEquals(before.length + 13, output.size());
    }

    @Test
    void sizesThatCannotBeAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> new BsonOutput(-1, 5));
        assertThrows(IllegalArgumentException.class, () -> new BsonOutput(6, 5));
    }

    @Test
    void aChannelThatWritesPartsGetsAllAndOneThatWritesNothingIsAnError() throws IOException {
        BsonOutput output = new BsonOutput();
        write(output, "abcdef");
        ByteArrayOutputStream taken = new ByteArrayOutputStream();
        output.writeTo(new Slow(taken, 3));
        assertArrayEquals(output.toByteArray(), taken.toByteArray());
        assertThrows(IOException.class, () -> output.writeTo(new Slow(taken, 0)));
    }

    /** A channel that accepts at most {@code most} bytes at once. */
    private record Slow(ByteArrayOutputStream to, int most) implements WritableByteChannel {
        @Override
        public int write(ByteBuffer src) {
            int n = Math.min(most, src.remaining());
            for (int i = 0; i < n; i++) {
                to.write(src.get());
            }
            return n;
        }

        @Override
        public boolean isOpen() {
            return true;
        }

        @Override
        public void close() {}
    }
}
