package io.github.onecopy;

import java.nio.ByteBuffer;

/**
 * The elements of a {@link BsonWriter} that are written without a name: items of an array, whose name is their index, and what
 * {@link #name} has named. Parameters and errors are those of the methods with a name.
 */
abstract class BsonItems extends BsonElements {
    BsonItems(BsonPlace place) {
        super(place);
    }

    /** Starts an array inside of this one, or one that {@link #name} has named. */
    public final void beginArray() {
        begin(BsonType.ARRAY, null);
    }

    /** Writes a double, {@link BsonType#DOUBLE}. */
    public final void float64(double value) {
        int64Value(BsonType.DOUBLE, null, Double.doubleToRawLongBits(value));
    }

    /** Writes a text, {@link BsonType#STRING}. */
    public final void string(String value) {
        text(BsonType.STRING, null, value);
    }

    /** Writes bytes, {@link BsonType#BINARY}. */
    public final void binary(int subtype, byte[] bytes) {
        binaryValue(null, subtype, bytes, 0, bytes.length);
    }

    /** Writes a range of bytes, {@link BsonType#BINARY}. */
    public final void binary(int subtype, byte[] bytes, int from, int count) {
        binaryValue(null, subtype, bytes, from, count);
    }

    /** Writes what remains of a buffer, {@link BsonType#BINARY}. */
    public final void binary(int subtype, ByteBuffer bytes) {
        binaryValue(null, subtype, bytes);
    }

    /** Writes what is undefined, {@link BsonType#UNDEFINED}; deprecated by BSON. */
    public final void undefined() {
        empty(BsonType.UNDEFINED, null);
    }

    /** Writes an object id, {@link BsonType#OBJECT_ID}. */
    public final void objectId(byte[] id) {
        id(null, id);
    }

    /** Writes a boolean, {@link BsonType#BOOL}. */
    public final void bool(boolean value) {
        byteValue(BsonType.BOOL, null, value ? 1 : 0);
    }

    /** Writes a moment, {@link BsonType#DATE_TIME}. */
    public final void dateTime(long millis) {
        int64Value(BsonType.DATE_TIME, null, millis);
    }

    /** Writes a null, {@link BsonType#NULL}. */
    public final void nullValue() {
        empty(BsonType.NULL, null);
    }

    /** Writes a regular expression, {@link BsonType#REGEX}. */
    public final void regex(String pattern, String options) {
        regexValue(null, pattern, options);
    }

    /** Writes a pointer, {@link BsonType#DB_POINTER}; deprecated by BSON. */
    public final void dbPointer(String namespace, byte[] id) {
        pointer(null, namespace, id);
    }

    /** Writes JavaScript, {@link BsonType#CODE}. */
    public final void code(String javaScript) {
        text(BsonType.CODE, null, javaScript);
    }

    /** Writes a symbol, {@link BsonType#SYMBOL}; deprecated by BSON. */
    public final void symbol(String value) {
        text(BsonType.SYMBOL, null, value);
    }

    /** Writes JavaScript and starts its scope, {@link BsonType#CODE_WITH_SCOPE}: elements follow, and {@link #end}; deprecated by BSON. */
    public final void beginCodeWithScope(String javaScript) {
        beginScope(null, javaScript);
    }

    /** Writes a 32-bit integer, {@link BsonType#INT32}. */
    public final void int32(int value) {
        int32Value(BsonType.INT32, null, value);
    }

    /** Writes a timestamp of MongoDB's, {@link BsonType#TIMESTAMP}. */
    public final void timestamp(int seconds, int increment) {
        int64Value(BsonType.TIMESTAMP, null, (long) seconds << 32 | increment & 0xFFFFFFFFL);
    }

    /** Writes a 64-bit integer, {@link BsonType#INT64}. */
    public final void int64(long value) {
        int64Value(BsonType.INT64, null, value);
    }

    /** Writes a decimal, {@link BsonType#DECIMAL128}. */
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

    /** Writes the value at which a reader stands, of whichever type, its bytes as they are. */
    public final void copy(BsonReader reader) {
        copyOf(null, reader);
    }
}
