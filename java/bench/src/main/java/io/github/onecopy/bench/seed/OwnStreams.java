package io.github.onecopy.bench.seed;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;

/**
 * Two streams, each with a copy of the method {@link ByteArrayOutputStream#write(int)}. One copy is
 * {@code synchronized}, the other is not. Both streams are measured with the same loop, so their
 * results show the cost of {@code synchronized}.
 */
final class OwnStreams {
    private OwnStreams() {}

    /** A stream whose {@code write} is {@code synchronized}. */
    static final class Locked extends ByteArrayOutputStream {
        Locked(int capacity) {
            super(capacity);
        }

        @Override
        public synchronized void write(int b) {
            if (count == buf.length) {
                buf = Arrays.copyOf(buf, 2 * count + 1);
            }
            buf[count] = (byte) b;
            count += 1;
        }
    }

    /** A stream whose {@code write} is not {@code synchronized}. */
    static final class Unlocked extends ByteArrayOutputStream {
        Unlocked(int capacity) {
            super(capacity);
        }

        @Override
        public void write(int b) {
            if (count == buf.length) {
                buf = Arrays.copyOf(buf, 2 * count + 1);
            }
            buf[count] = (byte) b;
            count += 1;
        }
    }
}
