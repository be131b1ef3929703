package io.github.onecopy;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.LongFunction;
import org.junit.jupiter.api.Test;

final class SegmentTest {
    private static final byte CANARY = 0x5A;
    private static final String[] TEXTS = {"", "a", "é", "漢字", "a".repeat(100), "é".repeat(100),
            "😀".repeat(1000)};

    /**
     * Functions that create a segment of n bytes of each kind: in native memory, and over arrays.
     */
    private static final List<LongFunction<MemorySegment>> SEGMENTS = List.of(
            n -> Arena.ofAuto().allocate(n),
            n -> Arena.ofAuto().allocate(n + 5).asSlice(5),
            n -> MemorySegment.ofArray(new byte[(int) n]),
            n -> MemorySegment.ofArray(new byte[(int) n + 7]).asSlice(7),
            n -> MemorySegment.ofArray(new long[(int) n / 8 + 2]).asSlice(3, n),
            n -> MemorySegment.ofArray(new char[(int) n / 2 + 1]).asSlice(0, n),
            n -> MemorySegment.ofBuffer(ByteBuffer.allocateDirect((int) n)));

    @Test
    void everyTextIsWrittenAsGetBytesDoesIntoEverySegment() {
        for (String text : Texts.all()) {
            byte[] expected = text.getBytes(UTF_8);
            for (LongFunction<MemorySegment> kind : SEGMENTS) {
                MemorySegment segment = kind.apply(expected.length + 9).fill(CANARY);
                assertEquals(expected.length,
                        Utf8.encode(text, segment.asSlice(0, expected.length + 4), 4));
                assertArrayEquals(expected, segment.asSlice(4, expected.length).toArray(JAVA_BYTE));
                for (long outside
                        : new long[] {0, 1, 2, 3, expected.length + 4, expected.length + 8}) {
                    assertEquals(CANARY, segment.get(JAVA_BYTE, outside));
                }
                assertEquals(text, Utf8.decode(segment, 4, expected.length));
                assertEquals(text, Utf8.decode(segment.asReadOnly(), 4, expected.length));
            }
        }
    }

    @Test
    void aSegmentThatIsTooSmallThrows() {
        for (String text : Texts.all()) {
            int needed = text.getBytes(UTF_8).length;
            if (needed > 0) {
                for (LongFunction<MemorySegment> kind : SEGMENTS) {
                    MemorySegment segment = kind.apply(needed + 8).fill(CANARY);
                    MemorySegment narrow = segment.asSlice(0, needed + 1);
                    assertThrows(BufferOverflowException.class, () -> Utf8.encode(text, narrow, 2));
                    assertEquals(CANARY, segment.get(JAVA_BYTE, needed + 1));
                }
            }
        }
    }

    @Test
    void offsetsOutsideTheSegmentAreIndexErrors() {
        MemorySegment segment = Arena.ofAuto().allocate(10);
        for (long at : new long[] {-1, 11, Long.MIN_VALUE, Long.MAX_VALUE}) {
            for (String text : TEXTS) {
                assertThrows(IndexOutOfBoundsException.class, () -> Utf8.encode(text, segment, at));
            }
            assertThrows(IndexOutOfBoundsException.class, () -> Utf8.decode(segment, at, 1));
            assertThrows(IndexOutOfBoundsException.class, () -> Utf8.isValid(segment, at, 1));
        }
        assertEquals(0, Utf8.encode("", segment, 10));
        for (long n : new long[] {-1, 7, Long.MAX_VALUE}) {
            assertThrows(IndexOutOfBoundsException.class, () -> Utf8.decode(segment, 4, n));
            assertThrows(IndexOutOfBoundsException.class, () -> Utf8.indexOfInvalid(segment, 4, n));
        }
    }

    @Test
    void aReadOnlySegmentIsRefused() {
        for (String text : TEXTS) {
            for (LongFunction<MemorySegment> kind : SEGMENTS) {
                MemorySegment segment = kind.apply(9000).asReadOnly();
                assertThrows(IllegalArgumentException.class, () -> Utf8.encode(text, segment, 0));
            }
        }
    }

    /** All operations on a segment, and on buffers over it. */
    private static final List<Function<MemorySegment, Object>> USES = List.of(
            segment -> Utf8.encode("", segment, 0),
            segment -> Utf8.encode("a", segment, 0),
            segment -> Utf8.encode("é".repeat(100), segment, 0),
            segment -> Utf8.encode("é".repeat(1000), segment, 0),
            segment -> Utf8.decode(segment, 0, 8),
            segment -> Utf8.decode(segment, 0, 100),
            segment -> Utf8.decode(segment, 0, 9000),
            segment -> Utf8.indexOfInvalid(segment, 0, 9000));

    @Test
    void aClosedSegmentIsAnIllegalState() {
        for (Function<MemorySegment, Object> use : USES) {
            MemorySegment closed;
            ByteBuffer buffer;
            try (Arena arena = Arena.ofConfined()) {
                closed = arena.allocate(10_000);
                buffer = closed.asByteBuffer();
            }
            assertThrows(IllegalStateException.class, () -> use.apply(closed));
            assertThrows(IllegalStateException.class, () -> Utf8.encode("a", buffer));
            assertThrows(IllegalStateException.class, () -> Utf8.encode("é".repeat(1000), buffer));
            assertThrows(IllegalStateException.class, () -> Utf8.decode(buffer));
            assertEquals(0, buffer.position());
        }
    }

    @Test
    void aSegmentOfAnotherThreadIsRefused() throws InterruptedException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment segment = arena.allocate(10_000);
            for (Function<MemorySegment, Object> use : USES) {
                AtomicReference<Throwable> thrown = new AtomicReference<>();
                Thread other = new Thread(() -> {
                    try {
                        use.apply(segment);
                    } catch (RuntimeException e) {
                        thrown.set(e);
                    }
                });
                other.start();
                other.join();
                assertInstanceOf(WrongThreadException.class, thrown.get());
                use.apply(segment);
            }
        }
    }

    @Test
    void invalidBytesAreReportedWithTheirIndexAndReplacedAsNewStringDoes() {
        Random random = new Random(5);
        for (int n : new int[] {0, 1, 20, 300, 5000, 9000}) {
            byte[] text = Texts.Script.ANY.text(n, random).getBytes(UTF_8);
            byte[] bytes = DecodeTest.joined(text, new byte[] {(byte) 0xE4, (byte) 0xB8}, text);
            for (LongFunction<MemorySegment> kind : SEGMENTS) {
                MemorySegment segment = kind.apply(bytes.length + 3);
                MemorySegment.copy(bytes, 0, segment, JAVA_BYTE, 3, bytes.length);
                assertEquals(text.length, Utf8.indexOfInvalid(segment, 3, bytes.length));
                assertTrue(Utf8.isValid(segment, 3, text.length));
                MalformedTextException e = assertThrows(
                        MalformedTextException.class, () -> Utf8.decode(segment, 3, bytes.length));
                assertEquals(text.length, e.index());
                assertEquals(new String(bytes, UTF_8),
                        Utf8.decode(segment, 3, bytes.length, Malformed.REPLACE));
            }
        }
    }

    @Test
    void aLoneSurrogateIsReportedWithItsIndexAndReplacedAsGetBytesDoes() {
        for (int n : new int[] {1, 10, 100, 1000, 9000}) {
            String text = Texts.with("é".repeat(n), n - 1, '\uDBFF');
            byte[] expected = text.getBytes(UTF_8);
            for (LongFunction<MemorySegment> kind : SEGMENTS) {
                MemorySegment segment = kind.apply(expected.length);
                assertEquals(
                        n - 1,
                        assertThrows(MalformedTextException.class,
                        () -> Utf8.encode(text, segment, 0)).index());
                assertEquals(expected.length, Utf8.encode(text, segment, 0, Malformed.REPLACE));
                assertArrayEquals(expected, segment.toArray(JAVA_BYTE));
            }
        }
    }

    @Test
    void offsetsPastTwoGibibytesAreWrittenToAndReadFrom() {
        long at = (1L << 31) + 5;
        try (Arena arena = Arena.ofConfined()) {
            // The kernel allocates a page of this memory only when it is written to.
            MemorySegment large = arena.allocate(at + 100_000);
            for (String text : TEXTS) {
                long n = Utf8.encode(text, large, at);
                assertEquals(text, Utf8.decode(large, at, n));
            }
            large.set(JAVA_BYTE, at + 70_000, (byte) 0xFF);
            assertEquals(at + 70_000, Utf8.indexOfInvalid(large, 0, at + 100_000));
            assertThrows(OutOfMemoryError.class, () -> Utf8.decode(large, 0, at));
        }
    }

    @Test
    void virtualThreadsGetTheSameTexts() throws InterruptedException {
        String text = Texts.Script.ANY.text(3000, new Random(1));
        byte[] expected = text.getBytes(UTF_8);
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        List<Thread> threads = new java.util.ArrayList<>();
        for (int i = 0; i < 200; i++) {
            threads.add(Thread.ofVirtual().start(() -> {
                try {
                    for (int k = 0; k < 50; k++) {
                        ByteBuffer buffer = ByteBuffer.allocate(expected.length);
                        Utf8.encode(text, buffer);
                        assertArrayEquals(expected, buffer.array());
                        assertEquals(text, Utf8.decode(buffer.flip()));
                        Thread.yield();
                    }
                } catch (Throwable e) {
                    thrown.set(e);
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(null, thrown.get());
    }
}
