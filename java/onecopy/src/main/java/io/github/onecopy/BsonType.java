package io.github.onecopy;

/**
 * The type of an element's value: the 21 types of BSON 1.1, including the deprecated ones.
 *
 * @see <a href="https://bsonspec.org/spec.html">bsonspec.org</a>
 */
public enum BsonType {
    /** A 64-bit float. */
    DOUBLE(0x01),
    /** Text in UTF-8, preceded by its length. */
    STRING(0x02),
    /** A nested document. */
    DOCUMENT(0x03),
    /** A document whose elements have the names {@code 0}, {@code 1}, {@code 2}… */
    ARRAY(0x04),
    /** Bytes with a subtype, preceded by their length. */
    BINARY(0x05),
    /** An undefined value, without data; deprecated. */
    UNDEFINED(0x06),
    /** Twelve bytes that identify a document. */
    OBJECT_ID(0x07),
    /** {@code false} or {@code true}. */
    BOOL(0x08),
    /** Milliseconds since 1970 in UTC, 64 bits. */
    DATE_TIME(0x09),
    /** A null, without data. */
    NULL(0x0A),
    /** A regular expression: a pattern and its options. */
    REGEX(0x0B),
    /** A pointer to a document: a namespace and an object id; deprecated. */
    DB_POINTER(0x0C),
    /** JavaScript, as text. */
    CODE(0x0D),
    /** A symbol, as text; deprecated. */
    SYMBOL(0x0E),
    /** JavaScript, and a document with the variables of its scope; deprecated. */
    CODE_WITH_SCOPE(0x0F),
    /** A 32-bit integer. */
    INT32(0x10),
    /** MongoDB's internal timestamp: an increment and the seconds since 1970, 32 bits each. */
    TIMESTAMP(0x11),
    /** A 64-bit integer. */
    INT64(0x12),
    /** A decimal floating-point number of 128 bits. */
    DECIMAL128(0x13),
    /** A value that is less than all other values. */
    MIN_KEY(0xFF),
    /** A value that is greater than all other values. */
    MAX_KEY(0x7F);

    private static final BsonType[] OF_TAG = new BsonType[256];

    static {
        for (BsonType type : values()) {
            OF_TAG[type.tag & 0xFF] = type;
        }
    }

    final byte tag;

    BsonType(int tag) {
        this.tag = (byte) tag;
    }

    /**
     * Returns the tag of the type, which is the first byte of each element of this type.
     *
     * @return 1 to 255
     */
    public int tag() {
        return tag & 0xFF;
    }

    /** Returns the type with this tag; null if no type has it. */
    static BsonType of(byte tag) {
        return OF_TAG[tag & 0xFF];
    }
}
