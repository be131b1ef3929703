package io.github.onecopy;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.util.List;
import java.util.Random;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;

final class EncodeTest {
    private static final byte CANARY = 0x5A;

    /**
     * Functions that allocate a buffer of each kind, with n bytes between position 3 and its limit,
     * and more bytes after the limit.
     */
    static final List<IntFunction<ByteBuffer>> BUFFERS = List.of(
            n -> ready(ByteBuffer.allocate(n + 8), 3, n),
            n -> ready(ByteBuffer.allocateDirect(n + 8), 3, n),
            n -> ready(ByteBuffer.allocate(n + 20).position(5).slice(), 3, n),
            n -> ready(ByteBuffer.allocateDirect(n + 20).position(5).slice(), 3, n),
            n -> ready(ByteBuffer.wrap(new byte[n + 30], 7, n + 10).slice(), 3, n)
            .order(ByteOrder.LITTLE_ENDIAN),
            n -> ready(ByteBuffer.allocateDirect(n + 8), 3, n).order(ByteOrder.LITTLE_ENDIAN));

    private static ByteBuffer ready(ByteBuffer buffer, int at, int n) {
        for (int i = 0; i < buffer.capacity(); i++) {
            buffer.put(i, CANARY);
        }
        return buffer.clear().position(at).limit(at + n);
    }

    private static byte[] written(ByteBuffer buffer, int n) {
        byte[] bytes = new byte[n];
        buffer.get(3, bytes);
        return bytes;
    }

    private static void assertUntouchedOutside(ByteBuffer buffer, int n) {
        int limit = buffer.limit();
        buffer.limit(buffer.capacity());
        for (int i = 0; i < buffer.capacity(); i++) {
            if (i < 3 || i >= 3 + n) {
                assertEquals(CANARY, buffer.get(i), "byte " + i);
            }
        }
        buffer.limit(limit);
    }

    @Test
    void everyTextIsWrittenAsGetBytesDoesIntoEveryBuffer() {
        for (String text : Texts.all()) {
            byte[] expected = text.getBytes(UTF_8);
            for (IntFunction<ByteBuffer> kind : BUFFERS) {
                for (int spare : new int[] {0, 1, 2 * text.length() + 3, 2 * text.length() + 40}) {
                    ByteBuffer buffer = kind.apply(expected.length + spare);
                    assertEquals(expected.length, Utf8.encode(text, buffer));
                    assertEquals(3 + expected.length, buffer.position());
                    assertArrayEquals(expected, written(buffer, expected.length));
                    assertUntouchedOutside(buffer, expected.length + spare);
                }
            }
        }
    }

    @Test
    void everyTextHasTheLengthAndTheArrayOfGetBytes() {
        for (String text : Texts.all()) {
            byte[] expected = text.getBytes(UTF_8);
            assertEquals(expected.length, Utf8.encodedLength(text));
            assertArrayEquals(expected, Utf8.encodeToBytes(text));
        }
    }

    @Test
    void aBufferThatIsTooSmallThrowsAndItsPositionStays() {
        for (String text : Texts.all()) {
            int needed = text.getBytes(UTF_8).length;
            for (IntFunction<ByteBuffer> kind : BUFFERS) {
                for (int capacity : new int[] {0, needed / 2, needed - 1}) {
                    if (capacity < 0 || capacity >= needed) {
                        continue;
                    }
                    ByteBuffer buffer = kind.apply(capacity);
                    assertThrows(BufferOverflowException.class, () -> Utf8.encode(text, buffer));
                    assertEquals(3, buffer.position());
                    assertEquals(3 + capacity, buffer.limit());
                    assertUntouchedOutside(buffer, capacity);
                }
            }
        }
    }

    @Test
    void aLoneSurrogateIsReportedWithAnyIndexAndThePositionStays() {
        Random random = new Random(7);
        for (Texts.Script script : Texts.Script.values()) {
            for (int n
                    : new int[] {1, 2, 16, 17, 40, 41, 256, 257, 1000, 8192, 8193, 8200, 16385,
                    20000}) {
                String text = script.text(n, random);
                for (int index
                        : new int[] {0, 1, n / 2, n - 2, n - 1, 8190, 8191, 8192, 8193, 16383,
                        16384}) {
                    for (char lone : new char[] {'\uD800', '\uDBFF', '\uDC00', '\uDFFF'}) {
                        if (index < 0 || index >= n) {
                            continue;
                        }
                        String broken = Texts.with(text, index, lone);
                        int first = Texts.firstLoneSurrogate(broken);
                        if (first < 0) {
                            continue;
                        }
                        assertLoneSurrogate(broken, first);
                    }
                }
            }
        }
    }

    private static void assertLoneSurrogate(String broken, int index) {
        byte[] replaced = broken.getBytes(UTF_8);
        for (IntFunction<ByteBuffer> kind : BUFFERS.subList(0, 2)) {
            ByteBuffer buffer = kind.apply(replaced.length);
            MalformedTextException e = assertThrows(MalformedTextException.class,
                    () -> Utf8.encode(broken, buffer));
            assertEquals(index, e.index());
            assertEquals(3, buffer.position());
            assertEquals(replaced.length, Utf8.encode(broken, buffer, Malformed.REPLACE));
            assertArrayEquals(replaced, written(buffer, replaced.length));
        }
        assertEquals(index, assertThrows(MalformedTextException.class,
                () -> Utf8.encodeToBytes(broken)).index());
        assertArrayEquals(replaced, Utf8.encodeToBytes(broken, Malformed.REPLACE));
        assertEquals(replaced.length, Utf8.encodedLength(broken));
    }

    @Test
    void aLoneSurrogateComesBeforeAnOverflow() {
        for (int n : new int[] {5, 16, 30, 100, 1000, 9000, 20000}) {
            String text = Texts.with("é".repeat(n), n - 1, '\uDC00');
            for (IntFunction<ByteBuffer> kind : BUFFERS) {
                ByteBuffer buffer = kind.apply(3);
                assertEquals(
                        n - 1, assertThrows(MalformedTextException.class,
                        () -> Utf8.encode(text, buffer)).index());
                assertThrows(BufferOverflowException.class,
                        () -> Utf8.encode(text, buffer, Malformed.REPLACE));
                assertEquals(3, buffer.position());
            }
        }
    }

    @Test
    void theMessageOfALoneSurrogateNamesItAndTheRemedy() {
        MalformedTextException e =
                assertThrows(MalformedTextException.class, () -> Utf8.encodeToBytes("ab\uD83D"));
        assertEquals(
                "`U+D83D` at index 2 is a lone surrogate, which UTF-8 has no form for\n"
                        + "Malformed.REPLACE writes '?' for it.",
                e.getMessage());
    }

    @Test
    void aReadOnlyBufferIsRefused() {
        for (String text
                : new String[] {"", "a", "é", "é".repeat(30), "a".repeat(100), "漢".repeat(1000)}) {
            ByteBuffer heap = ByteBuffer.allocate(4000).asReadOnlyBuffer();
            ByteBuffer direct = ByteBuffer.allocateDirect(4000).asReadOnlyBuffer();
            assertThrows(ReadOnlyBufferException.class, () -> Utf8.encode(text, heap));
            assertThrows(ReadOnlyBufferException.class, () -> Utf8.encode(text, direct));
            assertEquals(0, heap.position() + direct.position());
        }
    }

    @Test
    void anEmptyTextNeedsNoSpace() {
        for (IntFunction<ByteBuffer> kind : BUFFERS) {
            assertEquals(0, Utf8.encode("", kind.apply(0)));
        }
        assertEquals(0, Utf8.encodedLength(""));
        assertEquals(0, Utf8.encodeToBytes("").length);
    }

    @Test
    void nullIsRefused() {
        assertThrows(NullPointerException.class, () -> Utf8.encode(null, ByteBuffer.allocate(1)));
        assertThrows(NullPointerException.class, () -> Utf8.encode("a", (ByteBuffer) null));
        assertThrows(NullPointerException.class, () -> Utf8.encodeToBytes(null));
        assertThrows(NullPointerException.class, () -> Utf8.encodedLength(null));
    }
}
