package io.github.onecopy.bench.seed;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;

/**
 * Two copies of {@link ByteArrayOutputStream#write(int)}, which differ only in the word {@code
 * synchronized}. So two rows of the table of results also differ only in this word. The loop that
 * writes to both streams is the same method.
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
