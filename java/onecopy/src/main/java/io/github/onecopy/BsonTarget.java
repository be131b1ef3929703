package io.github.onecopy;

import io.github.onecopy.internal.Encoder;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.util.Objects;

/**
 * The destination of a {@link BsonWriter}: an array, a direct buffer, or an output that grows.
 * Positions are indexes into the destination; the caller stores them. The {@code put} methods
 * require that {@link #reserve} was called for their bytes. {@link #text} and {@link #cstring}
 * reserve the bytes themselves. {@link #publish} makes a complete document visible to the user.
 */
final class BsonTarget {
    private static final VarHandle INT32 = MethodHandles.byteArrayViewVarHandle(int[].class,
            ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INT64 = MethodHandles.byteArrayViewVarHandle(long[].class,
            ByteOrder.LITTLE_ENDIAN);

    /**
     * For a text of at most this number of UTF-16 units, space for the longest possible UTF-8 is
     * reserved. The UTF-8 length of a longer text is computed first.
     */
    private static final int WORST_CASE_UNITS = 1 << 16;

    private static final int LENGTH_BYTES = 4;

    private final Encoder encoder = new Encoder();
    private final Malformed malformed;

    /** The output that grows; null if the destination is a buffer. */
    private final BsonOutput output;

    /**
     * The caller's buffer; null if the destination is an output that grows. The position of the
     * buffer moves to the end of each complete document.
     */
    private final ByteBuffer target;

    /** A little-endian view of the whole direct buffer; null if the destination is an array. */
    private final ByteBuffer direct;

    private byte[] array;
    private int limit;

    BsonTarget(BsonOutput output, Malformed malformed) {
        this.malformed = Objects.requireNonNull(malformed);
        this.output = output;
        this.target = null;
        this.direct = null;
        start();
    }

    BsonTarget(ByteBuffer target, Malformed malformed) {
        this.malformed = Objects.requireNonNull(malformed);
        this.output = null;
        this.target = target;
        if (target.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        if (target.hasArray()) {
            this.direct = null;
            this.array = target.array();
        } else {
            ByteBuffer all = target.duplicate();
            all.clear();
            this.direct = all.order(ByteOrder.LITTLE_ENDIAN);
        }
        start();
    }

    /** Returns the position of the next document: the size of the output, or the position of the
     * buffer. */
    int start() {
        if (output != null) {
            array = output.array;
            limit = array.length;
            return output.size;
        }
        int offset = offset();
        limit = offset + target.limit();
        return offset + target.position();
    }

    /**
     * Makes the bytes from the index {@code first} to {@code end} visible to the user. For an
     * output, adds them to the output; for a buffer, moves the position of the buffer past them.
     */
    void publish(int first, int end) {
        if (output != null) {
            if (output.array != array || output.size != first) {
                throw new IllegalStateException(
                        "the output was changed or reset while a document was open");
            }
            output.size = end;
        } else {
            target.position(end - offset());
        }
    }

    /**
     * Returns the index, in the array or in {@link #direct}, of the first byte of {@link #target}.
     */
    private int offset() {
        return direct == null ? target.arrayOffset() : 0;
    }

    /**
     * Ensures space for {@code more} bytes from the index {@code at} on.
     *
     * @throws BufferOverflowException if the destination cannot grow to this size
     */
    void reserve(int at, long more) {
        if (limit - at < more) {
            grow(at, more);
        }
    }

    private void grow(int at, long more) {
        if (output == null) {
            throw new BufferOverflowException();
        }
        output.grow(at, more);
        array = output.array;
        limit = array.length;
    }

    void putByte(int at, int value) {
        if (array != null) {
            array[at] = (byte) value;
        } else {
            direct.put(at, (byte) value);
        }
    }

    void putInt32(int at, int value) {
        if (array != null) {
            INT32.set(array, at, value);
        } else {
            direct.putInt(at, value);
        }
    }

    void putInt64(int at, long value) {
        if (array != null) {
            INT64.set(array, at, value);
        } else {
            direct.putLong(at, value);
        }
    }

    /** Writes all bytes of an array; returns the index after the last byte written. */
    int putBytes(int at, byte[] bytes) {
        return putBytes(at, bytes, 0, bytes.length);
    }

    int putBytes(int at, byte[] bytes, int from, int n) {
        if (array != null) {
            System.arraycopy(bytes, from, array, at, n);
        } else {
            direct.put(at, bytes, from, n);
        }
        return at + n;
    }

    /**
     * Writes the remaining bytes of {@code bytes} at the index {@code at}, without changing the
     * position of {@code bytes}. Returns the index after the last byte written.
     */
    int putBuffer(int at, ByteBuffer bytes) {
        int n = bytes.remaining();
        if (array != null) {
            bytes.get(bytes.position(), array, at, n);
        } else {
            direct.put(at, bytes, bytes.position(), n);
        }
        return at + n;
    }

    /**
     * Returns the number of bytes that an array index requires as an element's name, including the
     * NUL.
     */
    static int indexBytes(int index) {
        int n = 2;
        for (int rest = index / 10; rest != 0; rest /= 10) {
            n++;
        }
        return n;
    }

    /**
     * Writes an array index as an element's name, followed by a NUL; returns the index after the
     * last byte written. It is used for indexes that have no {@link BsonName}.
     */
    int putIndex(int at, int index) {
        int end = at + indexBytes(index) - 1;
        putByte(end, 0);
        int rest = index;
        for (int i = end; i > at; rest /= 10) {
            putByte(--i, '0' + rest % 10);
        }
        return end + 1;
    }

    /**
     * Writes a BSON string: its length (which includes the NUL), the text in UTF-8, and a NUL.
     * Returns the index after the NUL.
     */
    int text(int at, String text) {
        reserveText(at, text, LENGTH_BYTES + 1);
        int from = at + LENGTH_BYTES;
        int end = from + encode(text, from);
        putInt32(at, end + 1 - from);
        putByte(end, 0);
        return end + 1;
    }

    /**
     * Writes a text in UTF-8 and a NUL; returns the index after the NUL. The caller has checked
     * that the text contains no NUL.
     */
    int cstring(int at, String text) {
        reserveText(at, text, 1);
        int end = at + encode(text, at);
        putByte(end, 0);
        return end + 1;
    }

    /**
     * Writes a text in UTF-8 and returns its length in bytes. One byte after the text remains free,
     * for a NUL.
     */
    private int encode(String text, int at) {
        if (array != null) {
            return encoder.encode(text, array, at, limit - 1, malformed);
        }
        return encoder.encode(text, direct, at, limit - 1, malformed);
    }

    /**
     * Reserves space for the UTF-8 of a text and {@code around} more bytes. If the destination
     * cannot grow, this method reserves only the {@code around} bytes; the encoder later checks the
     * space for the text.
     */
    private void reserveText(int at, String text, int around) {
        long most = 3L * text.length() + around;
        if (most <= limit - at) {
            return;
        }
        if (output == null) {
            reserve(at, around);
        } else if (text.length() <= WORST_CASE_UNITS && at + most <= output.maxBytes()) {
            grow(at, most);
        } else {
            reserve(at, Utf8.encodedLength(text) + around);
        }
    }
}
