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
 * A replacement for {@code org.bson.io.BasicOutputBuffer} in applications of mongo-java-driver. It
 * writes the same bytes, and converts each text once, directly into its array. It requires {@code
 * org.mongodb:bson} 5, which is an optional dependency that only this class uses. Only one thread
 * at a time may use an instance.
 *
 * <pre>{@code
 * NativeBsonOutput output = new NativeBsonOutput();
 * new BsonDocumentCodec().encode(new BsonBinaryWriter(output), document,
 * EncoderContext.builder().build()); }</pre>
 *
 * It differs from the original in one point. For a lone surrogate, the original writes three bytes
 * that are not valid UTF-8 (the driver's issue JAVA-5575). This class throws {@link
 * MalformedTextException}, or writes {@code '?'} with {@link Malformed#REPLACE}. After {@code
 * truncateToPosition(0)}, the instance and its array can be used again.
 */
public final class NativeBsonOutput extends OutputBuffer {
    private static final int INITIAL_BYTES = 1024;

    /**
     * {@code bytes} contains the BSON that was written, and {@code target} writes values to it.
     * Both are null after {@link #close}.
     */
    private BsonTarget target;

    private BsonOutput bytes;

    /**
     * Creates an output with an initial capacity of 1,024 bytes. A lone surrogate causes an
     * exception.
     */
    public NativeBsonOutput() {
        this(INITIAL_BYTES, Malformed.THROW);
    }

    /**
     * Creates an output. A lone surrogate causes an exception.
     *
     * @param initialBytes the initial capacity in bytes, 0 or more
     * @throws IllegalArgumentException if {@code initialBytes} is negative
     */
    public NativeBsonOutput(int initialBytes) {
        this(initialBytes, Malformed.THROW);
    }

    /**
     * Creates an output with a policy for lone surrogates.
     *
     * @param initialBytes the initial capacity in bytes, 0 or more
     * @param malformed the treatment of lone surrogates
     * @throws IllegalArgumentException if {@code initialBytes} is negative
     */
    public NativeBsonOutput(int initialBytes, Malformed malformed) {
        this.bytes = new BsonOutput(initialBytes, Integer.MAX_VALUE);
        this.target = new BsonTarget(bytes, malformed);
    }

    /**
     * Writes a BSON string: the length, which includes the NUL, then the text in UTF-8, and a NUL.
     * The only copy is the conversion to UTF-8.
     *
     * @throws MalformedTextException if the text has a lone surrogate and the policy is THROW;
     * nothing is written then
     * @throws java.nio.BufferOverflowException if the contents would be longer than 2 GiB. All
     * methods that write throw this exception
     */
    @Override
    public void writeString(String value) {
        BsonOutput open = open();
        open.size = target.text(open.size, value);
    }

    /**
     * Writes a text in UTF-8 and a NUL. The only copy is the conversion to UTF-8.
     *
     * @throws BsonSerializationException if the text contains a NUL; nothing is written then
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

    /**
     * Overwrites four bytes at {@code position}. The driver has deprecated this method, but its own
     * writer calls it to fill in lengths.
     */
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
     * Writes the contents to a stream. This method copies nothing.
     *
     * @param out the destination
     * @return the number of bytes written
     * @throws IOException if the stream throws it
     */
    @Override
    public int pipe(OutputStream out) throws IOException {
        BsonOutput open = open();
        open.writeTo(out);
        return open.size;
    }

    /**
     * Returns a little-endian view of the contents, which is valid until the next write. This
     * method copies nothing.
     *
     * @return a list of one buffer
     */
    @Override
    public List<ByteBuf> getByteBuffers() {
        return List.of(new ByteBufNIO(asByteBuffer()));
    }

    /**
     * Returns the view of {@link #getByteBuffers} as a buffer of the JDK. This method copies
     * nothing.
     *
     * @return a little-endian buffer
     */
    public ByteBuffer asByteBuffer() {
        return open().asByteBuffer();
    }

    /**
     * Copies the contents to a new array.
     *
     * @return the new array
     */
    @Override
    public byte[] toByteArray() {
        return open().toByteArray();
    }

    /**
     * Releases the memory. Later calls to all methods except this one and {@link #toString} throw
     * {@link IllegalStateException}.
     */
    @Override
    public void close() {
        bytes = null;
        target = null;
    }

    /**
     * Returns a text that contains the size of the contents in bytes, or states that the output is
     * closed.
     */
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
