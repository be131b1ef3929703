package io.github.onecopy;

import io.github.onecopy.BsonException.Reason;
import io.github.onecopy.internal.Decoder;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Objects;

/** The way of a {@link BsonReader} through a document. Places are indexes into {@link #bytes}, and bytes from the document's start. */
abstract class BsonCursor {
    static final int LENGTH_BYTES = 4;
    static final int LEAST_BYTES = 5;
    static final int OBJECT_ID_BYTES = 12;
    static final int OLD_BINARY = 2;

    private static final long ONES = 0x0101010101010101L;

    private final Decoder decoder = new Decoder();
    private final Malformed malformed;

    /** The outermost document, little-endian. */
    ByteBuffer bytes;

    /** What {@link #bytes} lies in, and where; null where it is direct or read-only. */
    private byte[] array;

    private int offset;

    /** Of each document around the innermost one, where its NUL is. */
    private int[] outer = new int[16];

    private int depth;

    /** Where the NUL of the innermost document is. */
    private int end;

    /** Where the element is at which it stands. */
    int nameAt;

    int valueAt;

    /** Behind the element at which it stands, or in front of the first one. */
    int next;

    /** Of the element at which it stands; null where it stands at none. */
    BsonType type;

    BsonCursor(Malformed malformed) {
        this.malformed = Objects.requireNonNull(malformed);
    }

    /**
     * Reads another document by the same reader.
     *
     * @param document from the position of the buffer to its limit, which stay; heap or direct, of either byte order
     * @throws BsonException where the length is not that of what is there, or no NUL stands at its end
     */
    public final void reset(ByteBuffer document) {
        type = null;
        depth = 0;
        bytes = document.slice().order(ByteOrder.LITTLE_ENDIAN);
        array = bytes.hasArray() ? bytes.array() : null;
        offset = array == null ? 0 : bytes.arrayOffset();
        // Until all is right there is nothing in it.
        next = 0;
        end = 0;
        int n = BsonReader.documentBytes(bytes);
        if (n < bytes.limit()) {
            throw new BsonException(Reason.BEHIND, n);
        }
        if (bytes.get(n - 1) != 0) {
            throw new BsonException(Reason.NO_TERMINATOR, n - 1);
        }
        end = n - 1;
        next = LENGTH_BYTES;
    }

    /**
     * Goes to the next element of the innermost document that was entered; what it stood at is skipped.
     *
     * @return false where there is no more; {@link #leave()} goes on behind the document then
     * @throws BsonException where what comes is no BSON
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
        int value = behindZero(at + 1);
        next = behindValue(found, value);
        nameAt = at + 1;
        valueAt = value;
        type = found;
        return true;
    }

    /**
     * Leaves the value at which it stands unread; {@link #next()} does the same by itself.
     *
     * @throws IllegalStateException where it stands at none
     */
    public final void skip() {
        checkElement();
        type = null;
    }

    /**
     * The type of the value at which it stands.
     *
     * @return the type
     * @throws IllegalStateException where it stands at none
     */
    public final BsonType type() {
        checkElement();
        return type;
    }

    /**
     * The name of the element at which it stands; in an array that of its index, as it is written. Copies: those of
     * {@link Utf8#decode}.
     *
     * @return the name
     * @throws IllegalStateException where it stands at none
     * @throws BsonException where it is not UTF-8, unless that is replaced
     */
    public final String name() {
        checkElement();
        return decoded(nameAt, valueAt - 1 - nameAt);
    }

    /**
     * Whether the element at which it stands has this name; nothing is decoded.
     *
     * @param name a name
     * @return whether it is that
     * @throws IllegalStateException where it stands at none
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
     * The bytes of the value at which it stands, as they are: of a text with its length and NUL, of a document all of it. Copies:
     * none.
     *
     * @return a read-only view of the buffer, little-endian
     * @throws IllegalStateException where it stands at none
     */
    public final ByteBuffer rawValue() {
        checkElement();
        return view(valueAt, next);
    }

    /**
     * Where the element starts at which it stands.
     *
     * @return bytes from where the outermost document starts to the tag
     * @throws IllegalStateException where it stands at none
     */
    public final long offsetBytes() {
        checkElement();
        return nameAt - 1;
    }

    /**
     * How many documents were entered and not left.
     *
     * @return 0 in the outermost one
     */
    public final int depth() {
        return depth;
    }

    /**
     * Goes into the document, the array or the scope of the code at which it stands, in front of its first element.
     *
     * @throws IllegalStateException where it stands at something else
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
     * Goes behind the document that was entered last; what was not read in it is not looked at.
     *
     * @throws IllegalStateException in the outermost document
     */
    public final void leave() {
        if (!leaveIfInside()) {
            throw new IllegalStateException("the outermost document was not entered");
        }
    }

    /** The same; whether there was one. */
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
            throw new IllegalStateException("the reader stands at no element\n  `next()` goes to one");
        }
    }

    /** Whether it stands at something that can be entered. */
    final boolean holdsElements() {
        return type == BsonType.DOCUMENT || type == BsonType.ARRAY || type == BsonType.CODE_WITH_SCOPE;
    }

    final ByteBuffer view(int from, int to) {
        return bytes.slice(from, to - from).asReadOnlyBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    /** A text, by the policy. */
    final String decoded(int at, int n) {
        Objects.checkFromIndexSize(at, n, bytes.limit());
        try {
            return array != null ? decoder.decode(array, offset + at, n, malformed) : decoder.decode(bytes, at, n, malformed);
        } catch (MalformedTextException e) {
            throw new BsonException(Reason.MALFORMED, at + e.index(), e);
        }
    }

    final void checkUtf8(int from, int to) {
        int n = to - from;
        Objects.checkFromIndexSize(from, n, bytes.limit());
        long invalid = array != null ? decoder.indexOfInvalid(array, offset + from, n) : decoder.indexOfInvalid(bytes, from, n);
        if (invalid >= 0) {
            throw new BsonException(Reason.MALFORMED, from + invalid);
        }
    }

    /** Where the first zero byte is; -1 where none is before {@code to}. */
    final int zeroAt(int from, int to) {
        int at = from;
        for (; at + 8 <= to; at += 8) {
            long word = bytes.getLong(at);
            // The lowest bit that is set is that of the first zero byte; those above it may be wrong.
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

    private int behindZero(int at) {
        int zero = zeroAt(at, end);
        if (zero < 0) {
            throw new BsonException(Reason.OPEN_TEXT, at);
        }
        return zero + 1;
    }

    /** Behind the value that starts there; all that has a length has a right one then. */
    private int behindValue(BsonType of, int at) {
        return switch (of) {
            case UNDEFINED, NULL, MIN_KEY, MAX_KEY -> at;
            case INT32 -> behindFixed(at, 4);
            case DOUBLE, DATE_TIME, TIMESTAMP, INT64 -> behindFixed(at, 8);
            case OBJECT_ID -> behindFixed(at, OBJECT_ID_BYTES);
            case DECIMAL128 -> behindFixed(at, 16);
            case BOOL -> behindBool(at);
            case STRING, CODE, SYMBOL -> behindText(at, end);
            case DB_POINTER -> behindFixed(behindText(at, end), OBJECT_ID_BYTES);
            case REGEX -> behindZero(behindZero(at));
            case DOCUMENT, ARRAY -> behindDocument(at);
            case BINARY -> behindBinary(at);
            case CODE_WITH_SCOPE -> behindScope(at);
        };
    }

    private int behindFixed(int at, int n) {
        if (end - at < n) {
            throw new BsonException(Reason.VALUE, at);
        }
        return at + n;
    }

    private int behindBool(int at) {
        int behind = behindFixed(at, 1);
        if ((bytes.get(at) & ~1) != 0) {
            throw new BsonException(Reason.BOOLEAN, at);
        }
        return behind;
    }

    private int behindText(int at, int to) {
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

    private int behindDocument(int at) {
        int n = bytes.getInt(behindFixed(at, LENGTH_BYTES) - LENGTH_BYTES);
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

    private int behindBinary(int at) {
        int from = behindFixed(at, LENGTH_BYTES + 1);
        int n = bytes.getInt(at);
        if (n < 0) {
            throw new BsonException(Reason.BINARY_LENGTH, at);
        }
        if (n > end - from) {
            throw new BsonException(Reason.LENGTH, at);
        }
        if (bytes.get(from - 1) == OLD_BINARY && (n < LENGTH_BYTES || bytes.getInt(from) != n - LENGTH_BYTES)) {
            throw new BsonException(Reason.OLD_BINARY, from);
        }
        return from + n;
    }

    private int behindScope(int at) {
        int n = bytes.getInt(behindFixed(at, LENGTH_BYTES) - LENGTH_BYTES);
        if (n < 2 * LENGTH_BYTES + 1 + LEAST_BYTES) {
            throw new BsonException(Reason.SCOPE_LENGTH, at);
        }
        if (n > end - at) {
            throw new BsonException(Reason.LENGTH, at);
        }
        int behind = at + n;
        int scope = behindText(at + LENGTH_BYTES, behind - LEAST_BYTES);
        if (bytes.getInt(scope) != behind - scope) {
            throw new BsonException(Reason.SCOPE_LENGTH, scope);
        }
        if (bytes.get(behind - 1) != 0) {
            throw new BsonException(Reason.NO_TERMINATOR, behind - 1);
        }
        return behind;
    }
}
