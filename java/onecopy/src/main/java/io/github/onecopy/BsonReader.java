package io.github.onecopy;

import io.github.onecopy.BsonException.Reason;
import java.nio.ByteBuffer;

/**
 * Reads BSON 1.1 from a buffer: a cursor that goes from element to element. The current element is
 * checked: its tag, every length against the rest of the document, terminators, booleans. Texts are
 * checked for UTF-8 when they are read, or all of them by {@link #validate}. For one thread at a
 * time.
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
 * A value that is not read is skipped by {@link #next()}; the contents of a document that was not
 * entered are not checked. No method recurses; each open document needs four bytes. Invalid BSON is
 * a {@link BsonException}, after which the reader can only be used again by {@link #reset}. The
 * getters throw {@link IllegalStateException} if there is no current element or it has another
 * type. Changes in the buffer during reading are visible, but never cause an access outside of it.
 *
 * @see <a href="https://bsonspec.org/spec.html">bsonspec.org</a>
 */
public final class BsonReader extends BsonCursor {
    private BsonReader(ByteBuffer document, Malformed malformed) {
        super(malformed);
        reset(document);
    }

    /**
     * A reader that refuses malformed text.
     *
     * @param document a document, from the position of the buffer to its limit, both of which are
     * kept
     * @return the reader, before the first element
     * @throws BsonException if the length is not that of the given
     * bytes, or the last byte is not NUL
     * @see #of(ByteBuffer, Malformed)
     */
    public static BsonReader of(ByteBuffer document) {
        return of(document, Malformed.THROW);
    }

    /**
     * A reader.
     *
     * @param document a document, from the position of the buffer to its limit, both of which are
     * kept; heap or direct, of either byte order
     * @param malformed the treatment of texts and names that are not UTF-8: with REPLACE, U+FFFD
     * @return the reader, before the first element
     * @throws BsonException if the length is not that of the given
     * bytes, or the last byte is not NUL
     */
    public static BsonReader of(ByteBuffer document, Malformed malformed) {
        return new BsonReader(document, malformed);
    }

    /**
     * The length of the document at the position of a buffer, for concatenated documents.
     *
     * @param buffer from its position on; it stays
     * @return bytes, 5 or more, and not more than remain
     * @throws BsonException if there is no length, or an impossible one
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
     * Checks all of a document: lengths, tags, terminators, and UTF-8 of texts and names, at each
     * level. The names of an array need not be 0, 1, 2… Copies: none.
     *
     * @param document from the position of the buffer to its limit, both of which are kept
     * @throws BsonException if it is not valid BSON
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
     * The double of the current element.
     *
     * @return its value
     */
    public double float64() {
        return Double.longBitsToDouble(bytes.getLong(value(BsonType.DOUBLE)));
    }

    /**
     * The text of the current element. Copies: as {@link Utf8#decode}.
     *
     * @return the text
     * @throws BsonException if it is not UTF-8, unless that is replaced
     */
    public String string() {
        return text(value(BsonType.STRING));
    }

    /**
     * The code of the current element, with or without a scope; the scope is a document to {@link
     * #enter()}.
     *
     * @return the JavaScript
     * @throws BsonException if it is not UTF-8, unless that is replaced
     */
    public String code() {
        return type() == BsonType.CODE_WITH_SCOPE
                ? text(valueAt + LENGTH_BYTES)
                : text(value(BsonType.CODE));
    }

    /**
     * The symbol of the current element.
     *
     * @return its text
     * @throws BsonException if it is not UTF-8, unless that is replaced
     */
    public String symbol() {
        return text(value(BsonType.SYMBOL));
    }

    /**
     * The subtype of the binary of the current element.
     *
     * @return 0 to 255
     */
    public int binarySubtype() {
        return bytes.get(value(BsonType.BINARY) + LENGTH_BYTES) & 0xFF;
    }

    /**
     * The bytes of the current binary; of subtype 2, the legacy one, the bytes after the second
     * length. Copies: none.
     *
     * @return a read-only view of the buffer
     */
    public ByteBuffer binary() {
        int at = value(BsonType.BINARY) + LENGTH_BYTES;
        int from = bytes.get(at) == OLD_BINARY ? at + 1 + LENGTH_BYTES : at + 1;
        return view(from, next);
    }

    /**
     * The object id of the current element.
     *
     * @return its 12 bytes, in a new array
     */
    public byte[] objectId() {
        return objectIdAt(value(BsonType.OBJECT_ID));
    }

    /**
     * The boolean of the current element.
     *
     * @return its value
     */
    public boolean bool() {
        return bytes.get(value(BsonType.BOOL)) != 0;
    }

    /**
     * The time of the current element.
     *
     * @return milliseconds since 1970 in UTC
     */
    public long dateTime() {
        return bytes.getLong(value(BsonType.DATE_TIME));
    }

    /**
     * The pattern of the regular expression of the current element.
     *
     * @return the pattern
     * @throws BsonException if it is not UTF-8, unless that is replaced
     */
    public String regexPattern() {
        int at = value(BsonType.REGEX);
        return decoded(at, zeroAt(at, next) - at);
    }

    /**
     * The options of the regular expression of the current element.
     *
     * @return its options, in order
     * @throws BsonException if they are not UTF-8, unless that is replaced
     */
    public String regexOptions() {
        int at = zeroAt(value(BsonType.REGEX), next) + 1;
        return decoded(at, next - 1 - at);
    }

    /**
     * The namespace of the pointer of the current element.
     *
     * @return a database and a collection
     * @throws BsonException if it is not UTF-8, unless that is replaced
     */
    public String dbPointerNamespace() {
        return text(value(BsonType.DB_POINTER));
    }

    /**
     * The object id of the pointer of the current element.
     *
     * @return its 12 bytes, in a new array
     */
    public byte[] dbPointerId() {
        value(BsonType.DB_POINTER);
        return objectIdAt(next - OBJECT_ID_BYTES);
    }

    /**
     * The 32-bit integer of the current element.
     *
     * @return its value
     */
    public int int32() {
        return bytes.getInt(value(BsonType.INT32));
    }

    /**
     * The 64-bit integer of the current element.
     *
     * @return its value
     */
    public long int64() {
        return bytes.getLong(value(BsonType.INT64));
    }

    /**
     * The seconds of the timestamp of the current element.
     *
     * @return seconds since 1970, unsigned
     */
    public int timestampSeconds() {
        return bytes.getInt(value(BsonType.TIMESTAMP) + 4);
    }

    /**
     * The increment of the timestamp of the current element.
     *
     * @return the increment, unsigned
     */
    public int timestampIncrement() {
        return bytes.getInt(value(BsonType.TIMESTAMP));
    }

    /**
     * The upper half of the decimal of the current element.
     *
     * @return the upper 64 bits of its IEEE 754-2008 form, binary integer significand
     */
    public long decimal128High() {
        return bytes.getLong(value(BsonType.DECIMAL128) + 8);
    }

    /**
     * The lower half of the decimal of the current element.
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

    /** The position of the value, which must be of this type. */
    private int value(BsonType wanted) {
        if (type != wanted) {
            throw new IllegalStateException("the value is " + type() + ", not " + wanted);
        }
        return valueAt;
    }

    /** Checks that the texts of the element are UTF-8. */
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
