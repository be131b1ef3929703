package io.github.onecopy;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.WritableByteChannel;
import java.util.Arrays;

/**
 * A buffer of complete BSON documents, one after the other, in an array that grows. A document that
 * a {@link BsonWriter} has not ended is not part of the contents. {@link #reset} removes the
 * contents, but not the array. Not thread-safe.
 *
 * If the array is too small, a new one of at least twice the size replaces it, and the contents are
 * copied. Before a text of up to 65,536 UTF-16 units is written, three bytes per unit are reserved
 * if the maximal capacity permits it. Before any other text, exactly the length of its UTF-8 is
 * reserved.
 */
public final class BsonOutput {
    /** The length of the longest array that every JVM supports. */
    static final int MOST_BYTES = Integer.MAX_VALUE - 8;

    private static final int INITIAL_BYTES = 1024;

    /** The array, whose first {@link #size} bytes are the contents. */
    byte[] array;

    /** The number of bytes of complete documents. */
    int size;

    private final int maxBytes;

    /** Creates an output with a capacity of 1,024 bytes, which can grow to 2,147,483,639 bytes. */
    public BsonOutput() {
        this(INITIAL_BYTES, MOST_BYTES);
    }

    /**
     * Creates an output with a given capacity.
     *
     * @param initialBytes the initial capacity in bytes, 0 or more
     * @param maxBytes the maximal capacity in bytes, {@code initialBytes} or more; if it is not
     * sufficient, writers throw {@link BufferOverflowException}. Values above 2,147,483,639 are
     * treated as 2,147,483,639
     * @throws IllegalArgumentException if {@code initialBytes} is negative, or more than {@code
     * maxBytes}
     */
    public BsonOutput(int initialBytes, int maxBytes) {
        if (initialBytes < 0 || maxBytes < initialBytes) {
            throw new IllegalArgumentException(
                    "`initialBytes` is " + initialBytes + " and `maxBytes` " + maxBytes
                    + "; they have to be 0 or more, in this order");
        }
        this.maxBytes = Math.min(maxBytes, MOST_BYTES);
        this.array = new byte[Math.min(initialBytes, this.maxBytes)];
    }

    /**
     * Returns the size of the contents.
     *
     * @return the number of bytes of complete documents
     */
    public int size() {
        return size;
    }

    /**
     * Returns the maximal capacity.
     *
     * @return the number of bytes
     */
    public int maxBytes() {
        return maxBytes;
    }

    /**
     * Removes the contents. The array is kept, so the next document overwrites the contents of a
     * buffer that {@link #asByteBuffer} returned before.
     */
    public void reset() {
        size = 0;
    }

    /**
     * Copies the contents to a new array.
     *
     * @return a new array of {@link #size} bytes
     */
    public byte[] toByteArray() {
        return Arrays.copyOf(array, size);
    }

    /**
     * Returns a little-endian view of the contents without copying them. The view is valid until
     * the next document is started or the output is reset.
     *
     * @return a buffer with position 0 and the limit {@link #size}
     */
    public ByteBuffer asByteBuffer() {
        return ByteBuffer.wrap(array, 0, size).slice().order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Writes the contents to a stream by one call. This method copies nothing.
     *
     * @param out the destination
     * @throws IOException if the stream throws it
     */
    public void writeTo(OutputStream out) throws IOException {
        out.write(array, 0, size);
    }

    /**
     * Writes the contents to a channel, which must be in blocking mode. This method copies nothing.
     *
     * @param out the destination
     * @throws IOException if the channel throws it, or accepts no bytes
     */
    public void writeTo(WritableByteChannel out) throws IOException {
        ByteBuffer left = asByteBuffer();
        while (left.hasRemaining()) {
            if (out.write(left) == 0) {
                throw new IOException(
                        "the channel wrote nothing after " + left.position() + " of " + size
                                + " bytes; is it a non-blocking one?");
            }
        }
    }

    /**
     * Ensures space for {@code more} bytes after the first {@code keep} bytes. If the array is
     * replaced, these first bytes are copied.
     */
    void grow(int keep, long more) {
        long need = keep + more;
        if (need > maxBytes) {
            throw new BufferOverflowException();
        }
        if (need <= array.length) {
            return;
        }
        byte[] larger = new byte[(int) Math.min(maxBytes, Math.max(need, 2L * array.length))];
        System.arraycopy(array, 0, larger, 0, keep);
        array = larger;
    }
}
