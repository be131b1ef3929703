package io.github.onecopy;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.WritableByteChannel;
import java.util.Arrays;

/**
 * Concatenated documents in memory, in an array that grows and is kept by {@link #reset}. It
 * contains only whole documents: the unfinished one of a {@link BsonWriter} is not part of it yet.
 * For one thread at a time.
 *
 * Growing doubles the array and copies its contents once; a reset zeroes nothing. Memory per byte:
 * up to as much again, and three bytes for each UTF-16 unit of the longest text if that is below 64
 * Ki units.
 */
public final class BsonOutput {
    /** The longest array that each JVM supports. */
    static final int MOST_BYTES = Integer.MAX_VALUE - 8;

    private static final int INITIAL_BYTES = 1024;

    /** The bytes, of which those up to {@link #size} count. */
    byte[] array;

    /** The bytes of whole documents. */
    int size;

    private final int maxBytes;

    /** Creates an output of 1,024 bytes, that grows to 2,147,483,639. */
    public BsonOutput() {
        this(INITIAL_BYTES, MOST_BYTES);
    }

    /**
     * Creates an output of given sizes.
     *
     * @param initialBytes the size that is allocated now, from 0
     * @param maxBytes the maximal size, from {@code initialBytes}; if it does not suffice, writers
     * throw a {@link BufferOverflowException}. Larger values count as 2,147,483,639
     * @throws IllegalArgumentException if the sizes are negative or not in this order
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
     * The size of the contents.
     *
     * @return bytes of whole documents
     */
    public int size() {
        return size;
    }

    /**
     * The maximal size.
     *
     * @return bytes
     */
    public int maxBytes() {
        return maxBytes;
    }

    /**
     * Empties it. The array stays, so the next document overwrites the contents of earlier views by
     * {@link #asByteBuffer}. Copies: none.
     */
    public void reset() {
        size = 0;
    }

    /**
     * The contents, as a new array.
     *
     * @return a new array of {@link #size} bytes. Copies: one
     */
    public byte[] toByteArray() {
        return Arrays.copyOf(array, size);
    }

    /**
     * The contents as a little-endian view; valid until the next reset or document. Copies: none.
     *
     * @return a buffer from 0 to {@link #size}
     */
    public ByteBuffer asByteBuffer() {
        return ByteBuffer.wrap(array, 0, size).slice().order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Writes the contents in one call. Copies: none by this method.
     *
     * @param out the destination
     * @throws IOException from the stream
     */
    public void writeTo(OutputStream out) throws IOException {
        out.write(array, 0, size);
    }

    /**
     * Writes the complete contents, so the channel has to be a blocking one. Copies: none by this
     * method.
     *
     * @param out the destination
     * @throws IOException from the channel, or if it writes no bytes
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

    /** Ensures space for {@code more} bytes after the first {@code keep}, which are kept. */
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
