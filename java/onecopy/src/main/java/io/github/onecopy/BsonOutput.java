package io.github.onecopy;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.WritableByteChannel;
import java.util.Arrays;

/**
 * Documents in memory, one behind the other, in an array that grows and is kept by {@link #reset}. It holds whole documents only: what
 * a {@link BsonWriter} has under way is not in it yet. For one thread at a time.
 *
 * <p>Growing doubles the array and copies what is in it once; nothing is zeroed by a reset. What a byte takes beyond itself: up to
 * as much again, and three bytes for each UTF-16 unit of the longest text where that is below 64 Ki units.
 */
public final class BsonOutput {
    /** The longest array that each JVM gives. */
    static final int MOST_BYTES = Integer.MAX_VALUE - 8;

    private static final int INITIAL_BYTES = 1024;

    /** The bytes, of which those up to {@link #size} count. */
    byte[] array;

    /** The bytes of whole documents. */
    int size;

    private final int maxBytes;

    /** One of 1,024 bytes at first, that grows to 2,147,483,639. */
    public BsonOutput() {
        this(INITIAL_BYTES, MOST_BYTES);
    }

    /**
     * One with sizes of your own.
     *
     * @param initialBytes what is allocated now, from 0
     * @param maxBytes what it may hold, from {@code initialBytes}; where that is not enough, writers throw a
     *     {@link BufferOverflowException}. Above 2,147,483,639 it counts as that
     * @throws IllegalArgumentException where the sizes are not in this order
     */
    public BsonOutput(int initialBytes, int maxBytes) {
        if (initialBytes < 0 || maxBytes < initialBytes) {
            throw new IllegalArgumentException(
                    "`initialBytes` is " + initialBytes + " and `maxBytes` " + maxBytes + "; they have to be 0 or more, in this order");
        }
        this.maxBytes = Math.min(maxBytes, MOST_BYTES);
        this.array = new byte[Math.min(initialBytes, this.maxBytes)];
    }

    /**
     * How much is in it.
     *
     * @return bytes of whole documents
     */
    public int size() {
        return size;
    }

    /**
     * How much it may hold.
     *
     * @return bytes
     */
    public int maxBytes() {
        return maxBytes;
    }

    /** Empties it. The array stays, so what {@link #asByteBuffer} gave before is overwritten by the next document. Copies: none. */
    public void reset() {
        size = 0;
    }

    /**
     * What is in it, as an array of its own.
     *
     * @return a new array of {@link #size} bytes. Copies: one
     */
    public byte[] toByteArray() {
        return Arrays.copyOf(array, size);
    }

    /**
     * What is in it, as a view, little-endian; good until the next reset or document. Copies: none.
     *
     * @return a buffer from 0 to {@link #size}
     */
    public ByteBuffer asByteBuffer() {
        return ByteBuffer.wrap(array, 0, size).slice().order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Writes what is in it, in one call. Copies: none of its own.
     *
     * @param out where to
     * @throws IOException where the stream throws it
     */
    public void writeTo(OutputStream out) throws IOException {
        out.write(array, 0, size);
    }

    /**
     * Writes what is in it, all of it, so the channel has to be a blocking one. Copies: none of its own.
     *
     * @param out where to
     * @throws IOException where the channel throws it, or takes nothing
     */
    public void writeTo(WritableByteChannel out) throws IOException {
        ByteBuffer left = asByteBuffer();
        while (left.hasRemaining()) {
            if (out.write(left) == 0) {
                throw new IOException(
                        "the channel takes nothing after " + left.position() + " of " + size + " bytes; is it a non-blocking one?");
            }
        }
    }

    /** Makes room for {@code more} bytes behind the first {@code keep}, which stay. */
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
