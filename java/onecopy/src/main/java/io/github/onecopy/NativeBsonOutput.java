package io.github.onecopy;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Objects;
import org.bson.BsonSerializationException;
import org.bson.ByteBuf;
import org.bson.ByteBufNIO;
import org.bson.io.OutputBuffer;
import org.bson.types.ObjectId;

/**
 * A replacement for {@code org.bson.io.BasicOutputBuffer} in applications of mongo-java-driver: the
 * same bytes, each text converted once into its destination. Needs {@code org.mongodb:bson} 5,
 * which is an optional dependency; only this class uses it. For one thread at a time.
 *
 * <pre>{@code
 * NativeBsonOutput output = new NativeBsonOutput();
 * new BsonDocumentCodec().encode(new BsonBinaryWriter(output), document,
 * EncoderContext.builder().build()); }</pre>
 *
 * It differs from the original in one point: for a lone surrogate the original writes three bytes
 * that are not valid UTF-8 (the driver's issue JAVA-5575); this class throws {@link
 * MalformedTextException}, or writes {@code '?'} with {@link Malformed#REPLACE}. It can be used
 * again after {@code truncateToPosition(0)}, and then keeps its array.
 */
public final class NativeBsonOutput extends OutputBuffer {
    private static final int INITIAL_BYTES = 1024;

    /** Both are null after {@link #close}. */
    private BsonTarget target;

    private BsonOutput bytes;

    /** One of 1,024 bytes at first, that refuses lone surrogates. */
    public NativeBsonOutput() {
        this(INITIAL_BYTES, Malformed.THROW);
    }

    /**
     * An output that refuses lone surrogates.
     *
     * @param initialBytes the size that is allocated now, from 0
     * @throws IllegalArgumentException if it is negative
     */
    public NativeBsonOutput(int initialBytes) {
        this(initialBytes, Malformed.THROW);
    }

    /**
     * An output with a policy.
     *
     * @param initialBytes the size that is allocated now, from 0
     * @param malformed the treatment of lone surrogates
     * @throws IllegalArgumentException if {@code initialBytes} is negative
     */
    public NativeBsonOutput(int initialBytes, Malformed malformed) {
        this.bytes = new BsonOutput(initialBytes, Integer.MAX_VALUE);
        this.target = new BsonTarget(bytes, malformed);
    }

    /**
     * Writes a length, UTF-8 and a NUL; the length counts the NUL. Copies: the one conversion.
     *
     * @throws MalformedTextException if the text has a lone surrogate and the policy is THROW;
     * nothing is written then
     * @throws java.nio.BufferOverflowException past 2 GiB, here as in all methods that write
     */
    @Override
    public void writeString(String value) {
        BsonOutput open = open();
        open.size = target.text(open.size, value);
    }

    /**
     * Writes UTF-8 and a NUL. Copies: the one conversion.
     *
     * @throws BsonSerializationException if NUL is in the text; nothing is written then
     * @throws MalformedTextException if the text has a lone surrogate and the policy is THROW;
     * nothing is written then
     */
    @Override
    public void writeCString(String value) {
        BsonOutput open = open();
        int nul = value.indexOf('\0');
        if (nul >= 0) {
            throw new BsonSerializationException(
                    "a NUL ends a name or a pattern in BSON; one is at index " + nul);
        }
        open.size = target.cstring(open.size, value);
    }

    @Override
    public void write(byte[] b) {
        writeBytes(b, 0, b.length);
    }

    @Override
    public void writeBytes(byte[] b, int from, int count) {
        BsonOutput open = open();
        Objects.checkFromIndexSize(from, count, b.length);
        target.reserve(open.size, count);
        open.size = target.putBytes(open.size, b, from, count);
    }

    @Override
    public void writeByte(int value) {
        BsonOutput open = open();
        target.reserve(open.size, 1);
        target.putByte(open.size++, value);
    }

    @Override
    public void writeInt32(int value) {
        BsonOutput open = open();
        target.reserve(open.size, 4);
        target.putInt32(open.size, value);
        open.size += 4;
    }

    /** Deprecated by the driver, whose own writer fills in lengths by it. */
    @Override
    @SuppressWarnings("deprecation")
    public void writeInt32(int position, int value) {
        checkPosition(position, 4);
        target.putInt32(position, value);
    }

    @Override
    public void writeInt64(long value) {
        BsonOutput open = open();
        target.reserve(open.size, 8);
        target.putInt64(open.size, value);
        open.size += 8;
    }

    @Override
    public void writeLong(long value) {
        writeInt64(value);
    }

    @Override
    public void writeDouble(double value) {
        writeInt64(Double.doubleToRawLongBits(value));
    }

    @Override
    public void writeObjectId(ObjectId value) {
        write(value.toByteArray());
    }

    @Override
    protected void write(int position, int value) {
        checkPosition(position, 1);
        target.putByte(position, value);
    }

    @Override
    public int getPosition() {
        return open().size;
    }

    @Override
    public int getSize() {
        return open().size;
    }

    @Override
    public void truncateToPosition(int newPosition) {
        BsonOutput open = open();
        if (newPosition < 0 || newPosition > open.size) {
            throw new IllegalArgumentException("the position is 0 to " + open.size + ", not "
                    + newPosition);
        }
        open.size = newPosition;
    }

    /**
     * Writes the contents to a stream. Copies: none by this method.
     *
     * @param out the destination
     * @return the bytes written
     * @throws IOException from the stream
     */
    @Override
    public int pipe(OutputStream out) throws IOException {
        BsonOutput open = open();
        open.writeTo(out);
        return open.size;
    }

    /**
     * The contents as one little-endian view; valid until the next write.
     * Copies: none.
     *
     * @return one buffer
     */
    @Override
    public List<ByteBuf> getByteBuffers() {
        return List.of(new ByteBufNIO(asByteBuffer()));
    }

    /**
     * As {@link #getByteBuffers}, without the driver's class. Copies: none.
     *
     * @return a view, little-endian
     */
    public ByteBuffer asByteBuffer() {
        return open().asByteBuffer();
    }

    /**
     * All that was written.
     *
     * @return a new array. Copies: one
     */
    @Override
    public byte[] toByteArray() {
        return open().toByteArray();
    }

    /** Gives the memory back. All other methods throw {@link IllegalStateException} from now on. */
    @Override
    public void close() {
        bytes = null;
        target = null;
    }

    /** The size of the contents, or that the output is closed. */
    @Override
    public String toString() {
        return bytes == null ? "NativeBsonOutput, closed"
                : "NativeBsonOutput of " + bytes.size + " bytes";
    }

    private BsonOutput open() {
        if (bytes == null) {
            throw new IllegalStateException("The output is closed");
        }
        return bytes;
    }

    private void checkPosition(int position, int n) {
        int most = open().size - n;
        if (position < 0 || position > most) {
            throw new IllegalArgumentException("the position is 0 to " + most + ", not "
                    + position);
        }
    }
}
