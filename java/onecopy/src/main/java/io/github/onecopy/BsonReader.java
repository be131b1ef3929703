package io.github.onecopy;

import io.github.onecopy.BsonException.Reason;
import java.nio.ByteBuffer;

/**
 * Reads BSON 1.1 from a buffer, element by element. {@link #next()} checks an element: its tag, its
 * lengths, its terminators, and the value of a boolean. The methods that return a text check that
 * it is UTF-8; {@link #validate} checks all texts of a document. Not thread-safe.
 *
 * <pre>{@code
 * BsonReader reader = BsonReader.of(buffer);
 * while (reader.next()) {
 *     if (reader.nameIs(CITY)) {
 *         city = reader.string();
 *     }
 * }
 * }</pre>
 *
 * {@link #next()} skips a value that was not read. The contents of a document that is not entered
 * are not checked. Documents may be nested to any depth: no method is recursive, and each entered
 * document needs four bytes of memory.
 *
 * <p>Invalid BSON causes a {@link BsonException}. The reader can then be used only after {@link
 * #reset}. The methods that return a value throw {@link IllegalStateException} if there is no
 * current element, or if it has another type. If another thread changes the buffer meanwhile, the
 * results are undefined, but no byte outside of the document is read.
 *
 * @see <a href="https://bsonspec.org/spec.html">bsonspec.org</a>
 */
public final class BsonReader extends BsonCursor {
    private BsonReader(ByteBuffer document, Malformed malformed) {
        super(malformed);
        reset(document);
    }

    /**
     * Returns a reader of a document. A text that is not UTF-8 is an error.
     *
     * @param document a buffer. The document begins at its position and ends at its limit. The call
     * changes neither of them
     * @return the reader, before the first element
     * @throws BsonException if the length at the start of the document differs from the number of
     * bytes in the buffer, or if the last byte is not a NUL
     * @see #of(ByteBuffer, Malformed)
     */
    public static BsonReader of(ByteBuffer document) {
        return of(document, Malformed.THROW);
    }

    /**
     * Returns a reader of a document.
     *
     * @param document a heap or direct buffer, of either byte order. The document begins at its
     * position and ends at its limit. The call changes neither of them
     * @param malformed the treatment of texts and names that are not UTF-8
     * @return the reader, before the first element
     * @throws BsonException if the length at the start of the document differs from the number of
     * bytes in the buffer, or if the last byte is not a NUL
     */
    public static BsonReader of(ByteBuffer document, Malformed malformed) {
        return new BsonReader(document, malformed);
    }

    /**
     * Returns the length of the document at the position of a buffer. With this length, documents
     * that follow each other in one buffer can be separated.
     *
     * @param buffer a buffer. The document begins at its position. The call does not change the
     * position
     * @return the number of bytes: at least 5, and at most the remaining ones
     * @throws BsonException if fewer than 4 bytes remain, or the length is less than 5 or more than
     * the number of remaining bytes
     */
    public static int documentBytes(ByteBuffer buffer) {
        if (buffer.remaining() < LENGTH_BYTES) {
            throw new BsonException(Reason.END, 0);
        }
        int at = buffer.position();
        int length = buffer.get(at) & 0xFF | (buffer.get(at + 1) & 0xFF) << 8
                | (buffer.get(at + 2) & 0xFF) << 16 | buffer.get(at + 3) << 24;
        if (length < LEAST_BYTES) {
            throw new BsonException(Reason.DOCUMENT_LENGTH, 0);
        }
        if (length > buffer.remaining()) {
            throw new BsonException(Reason.END, 0);
        }
        return length;
    }

    /**
     * Checks a complete document with all nested documents: lengths, tags, terminators, booleans,
     * and that texts and names are UTF-8. The names of the items of an array need not be their
     * indexes. The document is not copied.
     *
     * @param document a buffer. The document begins at its position and ends at its limit. The call
     * changes neither of them
     * @throws BsonException if the document is not valid BSON
     */
    public static void validate(ByteBuffer document) {
        BsonReader reader = of(document);
        do {
            while (reader.next()) {
                reader.checkTexts();
                if (reader.holdsElements()) {
                    reader.enter();
                }
            }
        } while (reader.leaveIfInside());
    }

    /**
     * Returns the double of the current element.
     *
     * @return its value
     */
    public double float64() {
        return Double.longBitsToDouble(bytes.getLong(value(BsonType.DOUBLE)));
    }

    /**
     * Decodes the text of the current element. {@link Utf8#decode(ByteBuffer, Malformed)} describes
     * how often the bytes are copied.
     *
     * @return the text
     * @throws BsonException if it is not UTF-8 and the reader's policy is THROW
     */
    public String string() {
        return text(value(BsonType.STRING));
    }

    /**
     * Decodes the JavaScript of the current element, with or without a scope. {@link #enter()}
     * enters the scope.
     *
     * @return the JavaScript
     * @throws BsonException if it is not UTF-8 and the reader's policy is THROW
     */
    public String code() {
        return type() == BsonType.CODE_WITH_SCOPE
                ? text(valueAt + LENGTH_BYTES)
                : text(value(BsonType.CODE));
    }

    /**
     * Decodes the symbol of the current element.
     *
     * @return its text
     * @throws BsonException if it is not UTF-8 and the reader's policy is THROW
     */
    public String symbol() {
        return text(value(BsonType.SYMBOL));
    }

    /**
     * Returns the subtype of the binary of the current element.
     *
     * @return 0 to 255
     */
    public int binarySubtype() {
        return bytes.get(value(BsonType.BINARY) + LENGTH_BYTES) & 0xFF;
    }

    /**
     * Returns the bytes of the binary of the current element without copying them. For the
     * deprecated subtype 2, these are the bytes after the second length.
     *
     * @return a read-only view of the buffer
     */
    public ByteBuffer binary() {
        int at = value(BsonType.BINARY) + LENGTH_BYTES;
        int from = bytes.get(at) == OLD_BINARY ? at + 1 + LENGTH_BYTES : at + 1;
        return view(from, next);
    }

    /**
     * Returns the object id of the current element.
     *
     * @return its 12 bytes, in a new array
     */
    public byte[] objectId() {
        return objectIdAt(value(BsonType.OBJECT_ID));
    }

    /**
     * Returns the boolean of the current element.
     *
     * @return its value
     */
    public boolean bool() {
        return bytes.get(value(BsonType.BOOL)) != 0;
    }

    /**
     * Returns the date and time of the current element.
     *
     * @return milliseconds since 1970 in UTC
     */
    public long dateTime() {
        return bytes.getLong(value(BsonType.DATE_TIME));
    }

    /**
     * Decodes the pattern of the regular expression of the current element.
     *
     * @return the pattern
     * @throws BsonException if it is not UTF-8 and the reader's policy is THROW
     */
    public String regexPattern() {
        int at = value(BsonType.REGEX);
        return decoded(at, zeroAt(at, next) - at);
    }

    /**
     * Decodes the options of the regular expression of the current element.
     *
     * @return the options, as they are in the document
     * @throws BsonException if they are not UTF-8 and the reader's policy is THROW
     */
    public String regexOptions() {
        int at = zeroAt(value(BsonType.REGEX), next) + 1;
        return decoded(at, next - 1 - at);
    }

    /**
     * Decodes the namespace of the database pointer of the current element.
     *
     * @return the names of a database and a collection, separated by a dot
     * @throws BsonException if it is not UTF-8 and the reader's policy is THROW
     */
    public String dbPointerNamespace() {
        return text(value(BsonType.DB_POINTER));
    }

    /**
     * Returns the object id of the database pointer of the current element.
     *
     * @return its 12 bytes, in a new array
     */
    public byte[] dbPointerId() {
        value(BsonType.DB_POINTER);
        return objectIdAt(next - OBJECT_ID_BYTES);
    }

    /**
     * Returns the 32-bit integer of the current element.
     *
     * @return its value
     */
    public int int32() {
        return bytes.getInt(value(BsonType.INT32));
    }

    /**
     * Returns the 64-bit integer of the current element.
     *
     * @return its value
     */
    public long int64() {
        return bytes.getLong(value(BsonType.INT64));
    }

    /**
     * Returns the seconds of the MongoDB timestamp of the current element.
     *
     * @return seconds since 1970, unsigned
     */
    public int timestampSeconds() {
        return bytes.getInt(value(BsonType.TIMESTAMP) + 4);
    }

    /**
     * Returns the increment of the MongoDB timestamp of the current element.
     *
     * @return the number of the timestamp within its second, unsigned
     */
    public int timestampIncrement() {
        return bytes.getInt(value(BsonType.TIMESTAMP));
    }

    /**
     * Returns the upper half of the decimal of the current element.
     *
     * @return the upper 64 bits of its IEEE 754-2008 form with a binary integer significand
     */
    public long decimal128High() {
        return bytes.getLong(value(BsonType.DECIMAL128) + 8);
    }

    /**
     * Returns the lower half of the decimal of the current element.
     *
     * @return the lower 64 bits
     */
    public long decimal128Low() {
        return bytes.getLong(value(BsonType.DECIMAL128));
    }

    private String text(int at) {
        return decoded(at + LENGTH_BYTES, bytes.getInt(at) - 1);
    }

    private byte[] objectIdAt(int at) {
        byte[] id = new byte[OBJECT_ID_BYTES];
        bytes.get(at, id);
        return id;
    }

    /**
     * Returns the position of the first byte of the current value. Throws IllegalStateException if
     * the value is not of the type {@code wanted}.
     */
    private int value(BsonType wanted) {
        if (type != wanted) {
            throw new IllegalStateException("the value is " + type() + ", not " + wanted);
        }
        return valueAt;
    }

    /** Checks that the name and the texts of the current element are UTF-8. */
    private void checkTexts() {
        checkUtf8(nameAt, valueAt - 1);
        switch (type) {
            case STRING, CODE, SYMBOL -> checkUtf8(valueAt + LENGTH_BYTES, next - 1);
            case REGEX -> checkUtf8(valueAt, next);
            case DB_POINTER -> checkUtf8(valueAt + LENGTH_BYTES, next - 1 - OBJECT_ID_BYTES);
            case CODE_WITH_SCOPE -> {
                int from = valueAt + 2 * LENGTH_BYTES;
                checkUtf8(from, from + bytes.getInt(valueAt + LENGTH_BYTES) - 1);
            }
            default -> { }
        }
    }
}
