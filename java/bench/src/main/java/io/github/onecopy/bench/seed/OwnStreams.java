package io.github.onecopy.bench.seed;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;

/**
 * Two copies of {@link ByteArrayOutputStream#write(int)} that differ in one word, so that a row of
 * the table differs from its neighbour in one word too. The loop that writes to them is the same
 * method.
 */
final class OwnStreams {
    private OwnStreams() {}

    /** With the word. */
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

    /** Without it. */
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
