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
 * What an application of mongo-java-driver puts in place of {@code org.bson.io.BasicOutputBuffer}: the same bytes, each text
 * converted once into its place. Needs {@code org.mongodb:bson} 5, which is an optional dependency; this class alone touches it. For
 * one thread at a time.
 *
 * <pre>{@code
 * NativeBsonOutput output = new NativeBsonOutput();
 * new BsonDocumentCodec().encode(new BsonBinaryWriter(output), document, EncoderContext.builder().build());
 * }</pre>
 *
 * <p>It deviates from the original in one point: for a surrogate that stands alone the original writes three bytes that are no UTF-8
 * (the driver's issue JAVA-5575); this one throws {@link MalformedTextException}, or writes {@code '?'} with
 * {@link Malformed#REPLACE}. It can be used again after {@code truncateToPosition(0)}, and keeps its array then.
 */
public final class NativeBsonOutput extends OutputBuffer {
    private static final int INITIAL_BYTES = 1024;

    /** Both are null where it is closed. */
    private BsonPlace place;

    private BsonOutput bytes;

    /** One of 1,024 bytes at first, that refuses lone surrogates. */
    public NativeBsonOutput() {
        this(INITIAL_BYTES, Malformed.THROW);
    }

    /**
     * One that refuses lone surrogates.
     *
     * @param initialBytes what is allocated now, from 0
     * @throws IllegalArgumentException where it is negative
     */
    public NativeBsonOutput(int initialBytes) {
        this(initialBytes, Malformed.THROW);
    }

    /**
     * One with a policy.
     *
     * @param initialBytes what is allocated now, from 0
     * @param malformed what becomes of lone surrogates
     * @throws IllegalArgumentException where {@code initialBytes} is negative
     */
    public NativeBsonOutput(int initialBytes, Malformed malformed) {
        this.bytes = new BsonOutput(initialBytes, Integer.MAX_VALUE);
        this.place = new BsonPlace(bytes, malformed);
    }

    /**
     * Writes a length, UTF-8 and a NUL; the length counts the NUL. Copies: the one conversion.
     *
     * @throws MalformedTextException where a surrogate stands alone, and the policy is THROW; nothing is written then
     * @throws java.nio.BufferOverflowException past 2 GiB, here as in all methods that write
     */
    @Override
    public void writeString(String value) {
        BsonOutput open = open();
        open.size = place.text(open.size, value);
    }

    /**
     * Writes UTF-8 and a NUL. Copies: the one conversion.
     *
     * @throws BsonSerializationException where NUL is in the text; nothing is written then
     * @throws MalformedTextException where a surrogate stands alone, and the policy is THROW; nothing is written then
     */
    @Override
    public void writeCString(String value) {
        BsonOutput open = open();
        int nul = value.indexOf('\0');
        if (nul >= 0) {
            throw new BsonSerializationException("a NUL ends a name or a pattern in BSON; one stands at index " + nul);
        }
        open.size = place.cstring(open.size, value);
    }

    @Override
    public void write(byte[] b) {
        writeBytes(b, 0, b.length);
    }

    @Override
    public void writeBytes(byte[] b, int from, int count) {
        BsonOutput open = open();
        Objects.checkFromIndexSize(from, count, b.length);
        place.room(open.size, count);
        open.size = place.putBytes(open.size, b, from, count);
    }

    @Override
    public void writeByte(int value) {
        BsonOutput open = open();
        place.room(open.size, 1);
        place.putByte(open.size++, value);
    }

    @Override
    public void writeInt32(int value) {
        BsonOutput open = open();
        place.room(open.size, 4);
        place.putInt32(open.size, value);
        open.size += 4;
    }

    /** Deprecated by the driver, whose own writer fills in lengths by it. */
    @Override
    @SuppressWarnings("deprecation")
    public void writeInt32(int position, int value) {
        checkPosition(position, 4);
        place.putInt32(position, value);
    }

    @Override
    public void writeInt64(long value) {
        BsonOutput open = open();
        place.room(open.size, 8);
        place.putInt64(open.size, value);
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
        place.putByte(position, value);
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
            throw new IllegalArgumentException("the position is 0 to " + open.size + ", not " + newPosition);
        }
        open.size = newPosition;
    }

    /**
     * Writes all to a stream. Copies: none of its own.
     *
     * @param out where to
     * @return the bytes written
     * @throws IOException where the stream throws it
     */
    @Override
    public int pipe(OutputStream out) throws IOException {
        BsonOutput open = open();
        open.writeTo(out);
        return open.size;
    }

    /**
     * All that was written, as one view, little-endian; good until something is written again. Copies: none.
     *
     * @return one buffer
     */
    @Override
    public List<ByteBuf> getByteBuffers() {
        return List.of(new ByteBufNIO(asByteBuffer()));
    }

    /**
     * The same for who does not want the driver's class. Copies: none.
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
        place = null;
    }

    /** How much was written; of a closed one, that it is. */
    @Override
    public String toString() {
        return bytes == null ? "NativeBsonOutput, closed" : "NativeBsonOutput of " + bytes.size + " bytes";
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
            throw new IllegalArgumentException("the position is 0 to " + most + ", not " + position);
        }
    }
}
