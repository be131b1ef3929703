package io.github.onecopy;

import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * Writes BSON 1.1 directly into a destination: a buffer, a {@link BsonOutput}, or on JDK 22 and
 * newer a memory segment. Each text is converted once, into the destination. Not thread-safe.
 *
 * <pre>{@code
 * static final BsonName CITY = BsonName.of("city");
 *
 * BsonOutput output = new BsonOutput();
 * BsonWriter writer = BsonWriter.over(output);
 * writer.beginDocument();
 * writer.string(CITY, "東京都");
 * writer.end();
 * }</pre>
 *
 * <p>The methods with a {@link BsonName} write an element of a document. The methods without it
 * write an item of an array, or the value of the name given to {@link #name(String)}. All of them
 * throw
 *
 * <ul>
 *   <li>{@link IllegalStateException} if no document is open, for an item of an array with a name,
 *       and for an element of a document without a name;
 *   <li>{@link BufferOverflowException} if the element does not fit;
 *   <li>{@link MalformedTextException} for a lone surrogate in a text, if the policy is {@link
 *       Malformed#THROW};
 *   <li>{@link IllegalArgumentException} if a pattern or its options contain a NUL, a subtype is
 *       not 0 to 255, or an object id does not have 12 bytes;
 *   <li>{@link NullPointerException} if an argument is null.
 * </ul>
 *
 * <p>An element is written completely or not at all. After an exception, the writer can continue
 * with another element, or {@link #reset} discards the open documents. The position of the buffer
 * and the size of the output change only when {@link #end()} ends the outermost document. Until
 * then, bytes are written after the position or after the size.
 *
 * <p>The writer does not check the names in a document for duplicates, and does not compare the
 * size of a document with the limit of a server.
 *
 * @see <a href="https://bsonspec.org/spec.html">bsonspec.org</a>
 */
public final class BsonWriter extends BsonWriterSegments {
    private BsonWriter(BsonTarget target) {
        super(target);
    }

    /**
     * Returns a writer into a buffer. A lone surrogate in a text causes an exception.
     *
     * @param buffer the destination
     * @return the writer
     * @throws java.nio.ReadOnlyBufferException if the buffer is read-only
     * @see #over(ByteBuffer, Malformed)
     */
    public static BsonWriter over(ByteBuffer buffer) {
        return over(buffer, Malformed.THROW);
    }

    /**
     * Returns a writer into a buffer, between its position and its limit. The position and the
     * limit are read again at the start of each outermost document.
     *
     * @param buffer the destination: heap or direct, of either byte order
     * @param malformed the treatment of lone surrogates
     * @return the writer
     * @throws java.nio.ReadOnlyBufferException if the buffer is read-only
     */
    public static BsonWriter over(ByteBuffer buffer, Malformed malformed) {
        return new BsonWriter(new BsonTarget(buffer, malformed));
    }

    /**
     * Returns a writer that appends to an output. A lone surrogate in a text causes an exception.
     *
     * @param output the destination
     * @return the writer
     */
    public static BsonWriter over(BsonOutput output) {
        return over(output, Malformed.THROW);
    }

    /**
     * Returns a writer that appends to an output.
     *
     * @param output the destination
     * @param malformed the treatment of lone surrogates
     * @return the writer
     */
    public static BsonWriter over(BsonOutput output, Malformed malformed) {
        return new BsonWriter(new BsonTarget(output, malformed));
    }

    /**
     * Starts a nested document. Elements that are written before the matching {@link #end()} belong
     * to this document.
     *
     * @param name the name of the element
     */
    public void beginDocument(BsonName name) {
        begin(BsonType.DOCUMENT, checked(name));
    }

    /**
     * Starts an array. Until the matching {@link #end()}, the methods without a name write its
     * items.
     *
     * @param name the name of the element
     */
    public void beginArray(BsonName name) {
        begin(BsonType.ARRAY, checked(name));
    }

    /**
     * Writes a double, {@link BsonType#DOUBLE}.
     *
     * @param name the name of the element
     * @param value the number; the bits of a NaN are kept
     */
    public void float64(BsonName name, double value) {
        int64Value(BsonType.DOUBLE, checked(name), Double.doubleToRawLongBits(value));
    }

    /**
     * Writes a string, {@link BsonType#STRING}.
     *
     * @param name the name of the element
     * @param value the string, which may contain a NUL
     */
    public void string(BsonName name, String value) {
        text(BsonType.STRING, checked(name), value);
    }

    /**
     * Writes bytes, {@link BsonType#BINARY}.
     *
     * @param name the name of the element
     * @param subtype the subtype, 0 to 255; for the deprecated subtype 2 the second length is
     * written too
     * @param bytes the bytes
     */
    public void binary(BsonName name, int subtype, byte[] bytes) {
        binaryValue(checked(name), subtype, bytes, 0, bytes.length);
    }

    /**
     * Writes a range of bytes, {@link BsonType#BINARY}.
     *
     * @param name the name of the element
     * @param subtype the subtype, 0 to 255; for the deprecated subtype 2 the second length is
     * written too
     * @param bytes the array that contains the bytes
     * @param from the index of the first byte
     * @param count the number of bytes
     */
    public void binary(BsonName name, int subtype, byte[] bytes, int from, int count) {
        binaryValue(checked(name), subtype, bytes, from, count);
    }

    /**
     * Writes the remaining bytes of a buffer, {@link BsonType#BINARY}.
     *
     * @param name the name of the element
     * @param subtype the subtype, 0 to 255; for the deprecated subtype 2 the second length is
     * written too
     * @param bytes the buffer, whose position and limit are not changed
     */
    public void binary(BsonName name, int subtype, ByteBuffer bytes) {
        binaryValue(checked(name), subtype, bytes);
    }

    /**
     * Writes an undefined value, {@link BsonType#UNDEFINED}; deprecated by BSON.
     *
     * @param name the name of the element
     */
    public void undefined(BsonName name) {
        empty(BsonType.UNDEFINED, checked(name));
    }

    /**
     * Writes an object id, {@link BsonType#OBJECT_ID}.
     *
     * @param name the name of the element
     * @param id the 12 bytes of an object id
     */
    public void objectId(BsonName name, byte[] id) {
        id(checked(name), id);
    }

    /**
     * Writes a boolean, {@link BsonType#BOOL}.
     *
     * @param name the name of the element
     * @param value the boolean
     */
    public void bool(BsonName name, boolean value) {
        byteValue(BsonType.BOOL, checked(name), value ? 1 : 0);
    }

    /**
     * Writes a date and time, {@link BsonType#DATE_TIME}.
     *
     * @param name the name of the element
     * @param millis milliseconds since 1970 in UTC
     */
    public void dateTime(BsonName name, long millis) {
        int64Value(BsonType.DATE_TIME, checked(name), millis);
    }

    /**
     * Writes a null, {@link BsonType#NULL}.
     *
     * @param name the name of the element
     */
    public void nullValue(BsonName name) {
        empty(BsonType.NULL, checked(name));
    }

    /**
     * Writes a regular expression, {@link BsonType#REGEX}.
     *
     * @param name the name of the element
     * @param pattern the pattern
     * @param options the options, which are written unchanged. BSON requires that they are in
     * alphabetical order
     */
    public void regex(BsonName name, String pattern, String options) {
        regexValue(checked(name), pattern, options);
    }

    /**
     * Writes a pointer to a document, {@link BsonType#DB_POINTER}; deprecated by BSON.
     *
     * @param name the name of the element
     * @param namespace the names of a database and a collection, separated by a dot
     * @param id the 12 bytes of an object id
     */
    public void dbPointer(BsonName name, String namespace, byte[] id) {
        pointer(checked(name), namespace, id);
    }

    /**
     * Writes JavaScript, {@link BsonType#CODE}.
     *
     * @param name the name of the element
     * @param javaScript the code
     */
    public void code(BsonName name, String javaScript) {
        text(BsonType.CODE, checked(name), javaScript);
    }

    /**
     * Writes a symbol, {@link BsonType#SYMBOL}; deprecated by BSON.
     *
     * @param name the name of the element
     * @param value the text
     */
    public void symbol(BsonName name, String value) {
        text(BsonType.SYMBOL, checked(name), value);
    }

    /**
     * Writes JavaScript and starts its scope, {@link BsonType#CODE_WITH_SCOPE}; deprecated by BSON.
     * Elements that are written before the matching {@link #end()} belong to the scope.
     *
     * @param name the name of the element
     * @param javaScript the code
     */
    public void beginCodeWithScope(BsonName name, String javaScript) {
        beginScope(checked(name), javaScript);
    }

    /**
     * Writes a 32-bit integer, {@link BsonType#INT32}.
     *
     * @param name the name of the element
     * @param value the integer
     */
    public void int32(BsonName name, int value) {
        int32Value(BsonType.INT32, checked(name), value);
    }

    /**
     * Writes a MongoDB timestamp, {@link BsonType#TIMESTAMP}.
     *
     * @param name the name of the element
     * @param seconds the seconds since 1970, unsigned
     * @param increment the number of this timestamp within its second, unsigned
     */
    public void timestamp(BsonName name, int seconds, int increment) {
        int64Value(BsonType.TIMESTAMP, checked(name),
                (long) seconds << 32 | increment & 0xFFFFFFFFL);
    }

    /**
     * Writes a 64-bit integer, {@link BsonType#INT64}.
     *
     * @param name the name of the element
     * @param value the integer
     */
    public void int64(BsonName name, long value) {
        int64Value(BsonType.INT64, checked(name), value);
    }

    /**
     * Writes a decimal, {@link BsonType#DECIMAL128}.
     *
     * @param name the name of the element
     * @param high the upper 64 bits of its IEEE 754-2008 form with a binary integer significand
     * @param low the lower 64 bits
     */
    public void decimal128(BsonName name, long high, long low) {
        decimal(checked(name), high, low);
    }

    /**
     * Writes the value that is less than all others, {@link BsonType#MIN_KEY}.
     *
     * @param name the name of the element
     */
    public void minKey(BsonName name) {
        empty(BsonType.MIN_KEY, checked(name));
    }

    /**
     * Writes the value that is greater than all others, {@link BsonType#MAX_KEY}.
     *
     * @param name the name of the element
     */
    public void maxKey(BsonName name) {
        empty(BsonType.MAX_KEY, checked(name));
    }

    /**
     * Copies the bytes of the current value of a reader, whatever its type is.
     *
     * @param name the name of the element
     * @param reader a reader with a current element, which remains the current one
     */
    public void copy(BsonName name, BsonReader reader) {
        copyOf(checked(name), reader);
    }

    private static BsonName checked(BsonName name) {
        return Objects.requireNonNull(name, "name");
    }
}
