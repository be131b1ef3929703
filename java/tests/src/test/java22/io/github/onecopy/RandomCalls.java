package io.github.onecopy;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;

/**
 * A program that a test runs in another JVM, with the checks of JNI and with continuous garbage
 * collection. It encodes and decodes random texts at random positions of random destinations. It
 * compares the results with those of the JDK, and checks that other bytes did not change.
 * Arguments: the seed, and the number of rounds.
 */
final class RandomCalls {
    private final Random random;

    private RandomCalls(long seed) {
        random = new Random(seed);
    }

    public static void main(String[] args) {
        if (!Onecopy.isNative()) {
            throw new AssertionError(Onecopy.nativeStatus());
        }
        Thread litter = new Thread(() -> {
            byte[][] kept = new byte[256][];
            for (int i = 0; ; i++) {
                kept[i & 255] = new byte[1 + i % 9000];
            }
        });
        litter.setDaemon(true);
        litter.start();
        RandomCalls calls = new RandomCalls(Long.parseLong(args[0]));
        int rounds = Integer.parseInt(args[1]);
        for (int i = 0; i < rounds; i++) {
            calls.encode();
            calls.decode();
        }
        System.out.println(rounds + " rounds");
    }

    private int length() {
        return switch (random.nextInt(4)) {
            case 0 -> random.nextInt(20);
            case 1 -> random.nextInt(300);
            case 2 -> random.nextInt(3000);
            default -> random.nextInt(30_000);
        };
    }

    private String text() {
        Texts.Script[] scripts = Texts.Script.values();
        String text = scripts[random.nextInt(scripts.length)].text(length(), random);
        for (int i = random.nextInt(3); i > 0 && !text.isEmpty(); i--) {
            text = Texts.with(text, random.nextInt(text.length()), (char) random.nextInt(0x10000));
        }
        return text;
    }

    private void encode() {
        String text = text();
        byte[] expected = text.getBytes(UTF_8);
        int capacity = Math.max(0, expected.length + random.nextInt(-20, 20));
        int at = random.nextInt(40);
        int size = at + capacity + 40;
        byte[] canaries = new byte[size];
        random.nextBytes(canaries);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment segment = random.nextBoolean()
                    ? arena.allocate(size)
                    : MemorySegment.ofArray(new byte[size]);
            segment.copyFrom(MemorySegment.ofArray(canaries));
            MemorySegment window = segment.asSlice(0, at + capacity);
            boolean written;
            try {
                long n;
                if (random.nextBoolean()) {
                    n = Utf8.encode(text, window, at, Malformed.REPLACE);
                } else {
                    ByteBuffer buffer = window.asByteBuffer().position(at);
                    n = Utf8.encode(text, buffer, Malformed.REPLACE);
                    check(buffer.position() == at + n);
                }
                check(n == expected.length && capacity >= n);
                check(Arrays.equals(expected, segment.asSlice(at, n).toArray(JAVA_BYTE)));
                written = true;
            } catch (BufferOverflowException e) {
                check(capacity < expected.length);
                written = false;
            }
            byte[] after = segment.toArray(JAVA_BYTE);
            int end = at + (written ? expected.length : capacity);
            check(Arrays.equals(canaries, 0, at, after, 0, at));
            // Of the bytes after the text, only those before the limit may have changed.
            int from = Math.max(end, at + capacity);
            check(Arrays.equals(canaries, from, size, after, from, size));
        }
        int lone = Texts.firstLoneSurrogate(text);
        try {
            check(Arrays.equals(expected, Utf8.encodeToBytes(text)) && lone < 0);
        } catch (MalformedTextException e) {
            check(e.index() == lone);
        }
        check(Utf8.encodedLength(text) == expected.length);
    }

    private void decode() {
        byte[] bytes = text().getBytes(UTF_8);
        if (bytes.length > 0) {
            for (int i = random.nextInt(3); i > 0; i--) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
            }
        }
        if (random.nextInt(10) == 0) {
            random.nextBytes(bytes);
        }
        int at = random.nextInt(bytes.length + 1);
        int n = random.nextInt(bytes.length - at + 1);
        byte[] part = Arrays.copyOfRange(bytes, at, at + n);
        String expected = new String(part, UTF_8);
        long invalid = DecodeTest.byTheJdk(part);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment segment = MemorySegment.ofArray(bytes);
            if (random.nextBoolean()) {
                segment = arena.allocate(bytes.length).copyFrom(segment);
            }
            check(Utf8.decode(segment, at, n, Malformed.REPLACE).equals(expected));
            check(Utf8.indexOfInvalid(segment, at, n) == invalid);
            ByteBuffer buffer = segment.asByteBuffer().position(at).limit(at + n);
            try {
                check(Utf8.decode(buffer).equals(expected) && invalid < 0
                        && buffer.position() == at + n);
            } catch (MalformedTextException e) {
                check(e.index() == invalid && buffer.position() == at);
            }
        }
    }

    private static void check(boolean holds) {
        if (!holds) {
            throw new AssertionError();
        }
    }
}
