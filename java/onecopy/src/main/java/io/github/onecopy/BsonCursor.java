package io.github.onecopy;

import io.github.onecopy.BsonException.Reason;
import io.github.onecopy.internal.Decoder;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Objects;

/**
 * The part of a {@link BsonReader} that moves from element to element. Positions are indexes into
 * {@link #bytes}.
 */
abstract class BsonCursor {
    static final int LENGTH_BYTES = 4;
    static final int LEAST_BYTES = 5;
    static final int OBJECT_ID_BYTES = 12;
    static final int OLD_BINARY = 2;

    private static final long ONES = 0x0101010101010101L;

    private final Decoder decoder = new Decoder();
    private final Malformed malformed;

    /** A view of the outermost document; its byte order is little-endian. */
    ByteBuffer bytes;

    /**
     * The array that contains {@link #bytes}, from the index {@code offset} on; null if the buffer
     * is direct or read-only.
     */
    private byte[] array;

    private int offset;

    /** The position of the final NUL of each entered document except the innermost one. */
    private int[] outer = new int[16];

    private int depth;

    /** The position of the final NUL of the innermost document. */
    private int end;

    /** The index of the first byte of the current element's name. */
    int nameAt;

    int valueAt;

    /** The index of the next element: the one after the current element, or the first one. */
    int next;

    /** The type of the current element; null if there is none. */
    BsonType type;

    BsonCursor(Malformed malformed) {
        this.malformed = Objects.requireNonNull(malformed);
    }

    /**
     * Begins to read another document, with the same policy for malformed text.
     *
     * @param document a heap or direct buffer, of either byte order, with the document between its
     * position and its limit, which are not changed
     * @throws BsonException if the length at the start of the document differs from the number of
     * bytes in the buffer, or if the last byte is not a NUL
     */
    public final void reset(ByteBuffer document) {
        type = null;
        depth = 0;
        bytes = document.slice().order(ByteOrder.LITTLE_ENDIAN);
        array = bytes.hasArray() ? bytes.array() : null;
        offset = array == null ? 0 : bytes.arrayOffset();
        // If a check below fails, the reader has no elements.
        next = 0;
        end = 0;
        int n = BsonReader.documentBytes(bytes);
        if (n < bytes.limit()) {
            throw new BsonException(Reason.TRAILING_DATA, n);
        }
        if (bytes.get(n - 1) != 0) {
            throw new BsonException(Reason.NO_TERMINATOR, n - 1);
        }
        end = n - 1;
        next = LENGTH_BYTES;
    }

    /**
     * Moves to the next element of the innermost entered document. If the current value was not
     * read, it is skipped.
     *
     * @return false at the end of the document; {@link #leave()} then returns to the outer document
     * @throws BsonException if the next bytes are not valid BSON
     */
    public final boolean next() {
        int at = next;
        type = null;
        if (at == end) {
            return false;
        }
        byte tag = bytes.get(at);
        BsonType found = BsonType.of(tag);
        if (found == null) {
            throw new BsonException(tag == 0 ? Reason.EARLY_END : Reason.TAG, at);
        }
        int value = endOfZeroTerminated(at + 1);
        next = endOfValue(found, value);
        nameAt = at + 1;
        valueAt = value;
        type = found;
        return true;
    }

    /**
     * Skips the current value. This is optional, because {@link #next()} skips it too.
     *
     * @throws IllegalStateException if there is no current element
     */
    public final void skip() {
        checkElement();
        type = null;
    }

    /**
     * Returns the type of the current value.
     *
     * @return the type
     * @throws IllegalStateException if there is no current element
     */
    public final BsonType type() {
        checkElement();
        return type;
    }

    /**
     * Decodes the name of the current element. The name of an item of an array is the text in the
     * document, usually its index. {@link Utf8#decode(ByteBuffer, Malformed)} describes how often
     * the bytes are copied.
     *
     * @return the name
     * @throws IllegalStateException if there is no current element
     * @throws BsonException if the name is not UTF-8 and the reader's policy is THROW
     */
    public final String name() {
        checkElement();
        return decoded(nameAt, valueAt - 1 - nameAt);
    }

    /**
     * Returns true if the current element has this name. The bytes are compared, not decoded.
     *
     * @param name a name
     * @return true if it has this name
     * @throws IllegalStateException if there is no current element
     */
    public final boolean nameIs(BsonName name) {
        checkElement();
        byte[] wanted = name.bytes;
        if (valueAt - nameAt != wanted.length) {
            return false;
        }
        if (array != null) {
            int from = offset + nameAt;
            return Arrays.equals(array, from, from + wanted.length, wanted, 0, wanted.length);
        }
        for (int i = 0; i < wanted.length; i++) {
            if (bytes.get(nameAt + i) != wanted[i]) {
                return false;
            }
        }
        return true;
    }

    /**
     * Returns the bytes of the current value without copying them. The bytes of a string include
     * its length and its NUL. Those of a document include its length and its terminator.
     *
     * @return a read-only view of the buffer, little-endian
     * @throws IllegalStateException if there is no current element
     */
    public final ByteBuffer rawValue() {
        checkElement();
        return view(valueAt, next);
    }

    /**
     * Returns the position of the current element.
     *
     * @return the number of bytes from the start of the outermost document to the element's tag
     * @throws IllegalStateException if there is no current element
     */
    public final long offsetBytes() {
        checkElement();
        return nameAt - 1;
    }

    /**
     * Returns the number of nested documents and arrays that were entered and not yet left.
     *
     * @return the number; 0 in the outermost document
     */
    public final int depth() {
        return depth;
    }

    /**
     * Enters the current value, which must be a document, an array or code with a scope. {@link
     * #next()} then moves to its first element.
     *
     * @throws IllegalStateException if the current value has another type, or there is none
     */
    public final void enter() {
        if (!holdsElements()) {
            throw new IllegalStateException("the value is " + type() + ", which has no elements");
        }
        int start = valueAt;
        if (type == BsonType.CODE_WITH_SCOPE) {
            start += 2 * LENGTH_BYTES + bytes.getInt(valueAt + LENGTH_BYTES);
        }
        if (depth == outer.length) {
            outer = Arrays.copyOf(outer, 2 * depth);
        }
        outer[depth++] = end;
        end = next - 1;
        next = start + LENGTH_BYTES;
        type = null;
    }

    /**
     * Leaves the innermost document. Elements that were not read are not checked.
     *
     * @throws IllegalStateException in the outermost document
     */
    public final void leave() {
        if (!leaveIfInside()) {
            throw new IllegalStateException("the outermost document was not entered");
        }
    }

    /** Leaves the innermost document; returns false in the outermost document. */
    final boolean leaveIfInside() {
        if (depth == 0) {
            return false;
        }
        type = null;
        next = end + 1;
        end = outer[--depth];
        return true;
    }

    final void checkElement() {
        if (type == null) {
            throw new IllegalStateException("there is no current element\n  call `next()` first");
        }
    }

    /** Returns true if {@link #enter} supports the type of the current value. */
    final boolean holdsElements() {
        return type == BsonType.DOCUMENT || type == BsonType.ARRAY
                || type == BsonType.CODE_WITH_SCOPE;
    }

    final ByteBuffer view(int from, int to) {
        return bytes.slice(from, to - from).asReadOnlyBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Decodes {@code n} bytes at the index {@code at} of {@link #bytes}. The reader's policy for
     * malformed text applies.
     */
    final String decoded(int at, int n) {
        Objects.checkFromIndexSize(at, n, bytes.limit());
        try {
            return array != null ? decoder.decode(array, offset + at, n, malformed)
                    : decoder.decode(bytes, at, n, malformed);
        } catch (MalformedTextException e) {
            throw new BsonException(Reason.MALFORMED, at + e.index(), e);
        }
    }

    final void checkUtf8(int from, int to) {
        int n = to - from;
        Objects.checkFromIndexSize(from, n, bytes.limit());
        long invalid = array != null
                ? decoder.indexOfInvalid(array, offset + from, n)
                : decoder.indexOfInvalid(bytes, from, n);
        if (invalid >= 0) {
            throw new BsonException(Reason.MALFORMED, from + invalid);
        }
    }

    /**
     * Returns the index of the first zero byte at or after {@code from}; -1 if there is none before
     * {@code to}.
     */
    final int zeroAt(int from, int to) {
        int at = from;
        for (; at + 8 <= to; at += 8) {
            long word = bytes.getLong(at);
            // The lowest set bit is the high bit of the first zero byte. Higher bits may be set
            // although their byte is not zero.
            long zeros = word - ONES & ~word & ONES << 7;
            if (zeros != 0) {
                return at + (Long.numberOfTrailingZeros(zeros) >>> 3);
            }
        }
        for (; at < to; at++) {
            if (bytes.get(at) == 0) {
                return at;
            }
        }
        return -1;
    }

    private int endOfZeroTerminated(int at) {
        int zero = zeroAt(at, end);
        if (zero < 0) {
            throw new BsonException(Reason.OPEN_TEXT, at);
        }
        return zero + 1;
    }

    /**
     * Checks the value at the index {@code at}, including its length fields; returns the index
     * after the value.
     */
    private int endOfValue(BsonType of, int at) {
        return switch (of) {
            case UNDEFINED, NULL, MIN_KEY, MAX_KEY -> at;
            case INT32 -> endOfFixed(at, 4);
            case DOUBLE, DATE_TIME, TIMESTAMP, INT64 -> endOfFixed(at, 8);
            case OBJECT_ID -> endOfFixed(at, OBJECT_ID_BYTES);
            case DECIMAL128 -> endOfFixed(at, 16);
            case BOOL -> endOfBool(at);
            case STRING, CODE, SYMBOL -> endOfText(at, end);
            case DB_POINTER -> endOfFixed(endOfText(at, end), OBJECT_ID_BYTES);
            case REGEX -> endOfZeroTerminated(endOfZeroTerminated(at));
            case DOCUMENT, ARRAY -> endOfDocument(at);
            case BINARY -> endOfBinary(at);
            case CODE_WITH_SCOPE -> endOfScope(at);
        };
    }

    private int endOfFixed(int at, int n) {
        if (end - at < n) {
            throw new BsonException(Reason.VALUE, at);
        }
        return at + n;
    }

    private int endOfBool(int at) {
        int after = endOfFixed(at, 1);
        if ((bytes.get(at) & ~1) != 0) {
            throw new BsonException(Reason.BOOLEAN, at);
        }
        return after;
    }

    private int endOfText(int at, int to) {
        if (to - at < LENGTH_BYTES) {
            throw new BsonException(Reason.VALUE, at);
        }
        int n = bytes.getInt(at);
        int from = at + LENGTH_BYTES;
        if (n < 1) {
            throw new BsonException(Reason.TEXT_LENGTH, at);
        }
        if (n > to - from) {
            throw new BsonException(Reason.LENGTH, at);
        }
        if (bytes.get(from + n - 1) != 0) {
            throw new BsonException(Reason.TEXT_END, from + n - 1);
        }
        return from + n;
    }

    private int endOfDocument(int at) {
        int n = bytes.getInt(endOfFixed(at, LENGTH_BYTES) - LENGTH_BYTES);
        if (n < LEAST_BYTES) {
            throw new BsonException(Reason.DOCUMENT_LENGTH, at);
        }
        if (n > end - at) {
            throw new BsonException(Reason.LENGTH, at);
        }
        if (bytes.get(at + n - 1) != 0) {
            throw new BsonException(Reason.NO_TERMINATOR, at + n - 1);
        }
        return at + n;
    }

    private int endOfBinary(int at) {
        int from = endOfFixed(at, LENGTH_BYTES + 1);
        int n = bytes.getInt(at);
        if (n < 0) {
            throw new BsonException(Reason.BINARY_LENGTH, at);
        }
        if (n > end - from) {
            throw new BsonException(Reason.LENGTH, at);
        }
        if (bytes.get(from - 1) == OLD_BINARY
                && (n < LENGTH_BYTES || bytes.getInt(from) != n - LENGTH_BYTES)) {
            throw new BsonException(Reason.OLD_BINARY, from);
        }
        return from + n;
    }

    private int endOfScope(int at) {
        int n = bytes.getInt(endOfFixed(at, LENGTH_BYTES) - LENGTH_BYTES);
        if (n < 2 * LENGTH_BYTES + 1 + LEAST_BYTES) {
            throw new BsonException(Reason.SCOPE_LENGTH, at);
        }
        if (n > end - at) {
            throw new BsonException(Reason.LENGTH, at);
        }
        int after = at + n;
        int scope = endOfText(at + LENGTH_BYTES, after - LEAST_BYTES);
        if (bytes.getInt(scope) != after - scope) {
            throw new BsonException(Reason.SCOPE_LENGTH, scope);
        }
        if (bytes.get(after - 1) != 0) {
            throw new BsonException(Reason.NO_TERMINATOR, after - 1);
        }
        return after;
    }
}
