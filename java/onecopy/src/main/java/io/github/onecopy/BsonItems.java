package io.github.onecopy;

import java.nio.ByteBuffer;

/**
 * The elements of a {@link BsonWriter} that are written without a name: items of an array, whose
 * name is their index, and the element that {@link #name} has named. Parameters and errors are
 * those of the methods with a name.
 */
abstract class BsonItems extends BsonElements {
    BsonItems(BsonTarget target) {
        super(target);
    }

    /** Starts an array inside of this one, or one that {@link #name} has named. */
    public final void beginArray() {
        begin(BsonType.ARRAY, null);
    }

    /**
     * Writes a double, {@link BsonType#DOUBLE}.
     *
     * @param value any, NaN too, whose bits are kept
     */
    public final void float64(double value) {
        int64Value(BsonType.DOUBLE, null, Double.doubleToRawLongBits(value));
    }

    /**
     * Writes a text, {@link BsonType#STRING}.
     *
     * @param value the text; NUL may be in it
     */
    public final void string(String value) {
        text(BsonType.STRING, null, value);
    }

    /**
     * Writes bytes, {@link BsonType#BINARY}.
     *
     * @param subtype 0 to 255; 2, the old one, gets its second length
     * @param bytes all of them
     */
    public final void binary(int subtype, byte[] bytes) {
        binaryValue(null, subtype, bytes, 0, bytes.length);
    }

    /**
     * Writes a range of bytes, {@link BsonType#BINARY}.
     *
     * @param subtype 0 to 255; 2, the old one, gets its second length
     * @param bytes their array
     * @param from the index of the first
     * @param count the number of bytes
     */
    public final void binary(int subtype, byte[] bytes, int from, int count) {
        binaryValue(null, subtype, bytes, from, count);
    }

    /**
     * Writes the remaining bytes of a buffer, {@link BsonType#BINARY}.
     *
     * @param subtype 0 to 255; 2, the old one, gets its second length
     * @param bytes the bytes between its position and its limit, both of which are kept
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
     * @param id 12 bytes
     */
    public final void objectId(byte[] id) {
        id(null, id);
    }

    /**
     * Writes a boolean, {@link BsonType#BOOL}.
     *
     * @param value which
     */
    public final void bool(boolean value) {
        byteValue(BsonType.BOOL, null, value ? 1 : 0);
    }

    /**
     * Writes a moment, {@link BsonType#DATE_TIME}.
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
     * @param options its options, in alphabetical order according to BSON; they are written
     * unchanged
     */
    public final void regex(String pattern, String options) {
        regexValue(null, pattern, options);
    }

    /**
     * Writes a pointer, {@link BsonType#DB_POINTER}; deprecated by BSON.
     *
     * @param namespace a database and a collection
     * @param id 12 bytes
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
     * Writes JavaScript and starts its scope, {@link BsonType#CODE_WITH_SCOPE}: elements follow,
     * and {@link #end()}; deprecated by BSON.
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
     * @param seconds since 1970, unsigned
     * @param increment among those of this second, unsigned
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

    /** Writes the least key, {@link BsonType#MIN_KEY}. */
    public final void minKey() {
        empty(BsonType.MIN_KEY, null);
    }

    /** Writes the greatest key, {@link BsonType#MAX_KEY}. */
    public final void maxKey() {
        empty(BsonType.MAX_KEY, null);
    }

    /**
     * Writes the current value of a reader, of any type, byte for byte.
     *
     * @param reader a reader with a current element, which it keeps
     */
    public final void copy(BsonReader reader) {
        copyOf(null, reader);
    }
}
