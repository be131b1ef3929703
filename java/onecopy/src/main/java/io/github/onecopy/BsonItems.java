package io.github.onecopy;

import java.nio.ByteBuffer;

/**
 * The methods of a {@link BsonWriter} that write an element and have no parameter for the element's
 * name. In an array, the name of the element is its index. In a document, the name is the one given
 * to {@link #name(String)}. The parameters and exceptions are those of the methods with a name.
 */
abstract class BsonItems extends BsonElements {
    BsonItems(BsonTarget target) {
        super(target);
    }

    /**
     * Starts an array. The array is the next item of the open array, or the value of the name given
     * to {@link #name(String)}.
     */
    public final void beginArray() {
        begin(BsonType.ARRAY, null);
    }

    /**
     * Writes a double, {@link BsonType#DOUBLE}.
     *
     * @param value the number; the bits of a NaN are kept
     */
    public final void float64(double value) {
        int64Value(BsonType.DOUBLE, null, Double.doubleToRawLongBits(value));
    }

    /**
     * Writes a string, {@link BsonType#STRING}.
     *
     * @param value the string, which may contain a NUL
     */
    public final void string(String value) {
        text(BsonType.STRING, null, value);
    }

    /**
     * Writes bytes, {@link BsonType#BINARY}.
     *
     * @param subtype the subtype, 0 to 255; subtype 2 is deprecated, and its value contains a
     * second length, which is also written
     * @param bytes the bytes
     */
    public final void binary(int subtype, byte[] bytes) {
        binaryValue(null, subtype, bytes, 0, bytes.length);
    }

    /**
     * Writes a range of bytes, {@link BsonType#BINARY}.
     *
     * @param subtype the subtype, 0 to 255; subtype 2 is deprecated, and its value contains a
     * second length, which is also written
     * @param bytes the array that contains the bytes
     * @param from the index of the first byte
     * @param count the number of bytes
     */
    public final void binary(int subtype, byte[] bytes, int from, int count) {
        binaryValue(null, subtype, bytes, from, count);
    }

    /**
     * Writes the remaining bytes of a buffer, {@link BsonType#BINARY}.
     *
     * @param subtype the subtype, 0 to 255; subtype 2 is deprecated, and its value contains a
     * second length, which is also written
     * @param bytes the buffer, whose position and limit are not changed
     */
    public final void binary(int subtype, ByteBuffer bytes) {
        binaryValue(null, subtype, bytes);
    }

    /** Writes an undefined value, {@link BsonType#UNDEFINED}; deprecated by BSON. */
    public final void undefined() {
        empty(BsonType.UNDEFINED, null);
    }

    /**
     * Writes an object id, {@link BsonType#OBJECT_ID}.
     *
     * @param id the 12 bytes of an object id
     */
    public final void objectId(byte[] id) {
        id(null, id);
    }

    /**
     * Writes a boolean, {@link BsonType#BOOL}.
     *
     * @param value the boolean
     */
    public final void bool(boolean value) {
        byteValue(BsonType.BOOL, null, value ? 1 : 0);
    }

    /**
     * Writes a date and time, {@link BsonType#DATE_TIME}.
     *
     * @param millis milliseconds since 1970 in UTC
     */
    public final void dateTime(long millis) {
        int64Value(BsonType.DATE_TIME, null, millis);
    }

    /** Writes a null, {@link BsonType#NULL}. */
    public final void nullValue() {
        empty(BsonType.NULL, null);
    }

    /**
     * Writes a regular expression, {@link BsonType#REGEX}.
     *
     * @param pattern the pattern
     * @param options the options, which are written unchanged. BSON requires that they are in
     * alphabetical order
     */
    public final void regex(String pattern, String options) {
        regexValue(null, pattern, options);
    }

    /**
     * Writes a pointer to a document, {@link BsonType#DB_POINTER}; deprecated by BSON.
     *
     * @param namespace the names of a database and a collection, separated by a dot
     * @param id the 12 bytes of an object id
     */
    public final void dbPointer(String namespace, byte[] id) {
        pointer(null, namespace, id);
    }

    /**
     * Writes JavaScript, {@link BsonType#CODE}.
     *
     * @param javaScript the code
     */
    public final void code(String javaScript) {
        text(BsonType.CODE, null, javaScript);
    }

    /**
     * Writes a symbol, {@link BsonType#SYMBOL}; deprecated by BSON.
     *
     * @param value the text
     */
    public final void symbol(String value) {
        text(BsonType.SYMBOL, null, value);
    }

    /**
     * Writes JavaScript and starts its scope, {@link BsonType#CODE_WITH_SCOPE}; deprecated by BSON.
     * Elements that are written before the matching {@link #end()} belong to the scope.
     *
     * @param javaScript the code
     */
    public final void beginCodeWithScope(String javaScript) {
        beginScope(null, javaScript);
    }

    /**
     * Writes a 32-bit integer, {@link BsonType#INT32}.
     *
     * @param value the integer
     */
    public final void int32(int value) {
        int32Value(BsonType.INT32, null, value);
    }

    /**
     * Writes a MongoDB timestamp, {@link BsonType#TIMESTAMP}.
     *
     * @param seconds the seconds since 1970, unsigned
     * @param increment the number of this timestamp within its second, unsigned
     */
    public final void timestamp(int seconds, int increment) {
        int64Value(BsonType.TIMESTAMP, null, (long) seconds << 32 | increment & 0xFFFFFFFFL);
    }

    /**
     * Writes a 64-bit integer, {@link BsonType#INT64}.
     *
     * @param value the integer
     */
    public final void int64(long value) {
        int64Value(BsonType.INT64, null, value);
    }

    /**
     * Writes a decimal, {@link BsonType#DECIMAL128}.
     *
     * @param high the upper 64 bits of its IEEE 754-2008 form, binary integer significand
     * @param low the lower 64 bits
     */
    public final void decimal128(long high, long low) {
        decimal(null, high, low);
    }

    /** Writes the value that is less than all others, {@link BsonType#MIN_KEY}. */
    public final void minKey() {
        empty(BsonType.MIN_KEY, null);
    }

    /** Writes the value that is greater than all others, {@link BsonType#MAX_KEY}. */
    public final void maxKey() {
        empty(BsonType.MAX_KEY, null);
    }

    /**
     * Copies the bytes of the current value of a reader, whatever its type is.
     *
     * @param reader a reader with a current element, which remains the current one
     */
    public final void copy(BsonReader reader) {
        copyOf(null, reader);
    }
}
