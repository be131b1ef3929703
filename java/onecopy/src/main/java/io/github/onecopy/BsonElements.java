package io.github.onecopy;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;

/**
 * The part of {@link BsonWriter} that writes documents and elements. If the parameter {@code name}
 * of a method is null, the name of the element is the one that was passed to {@link #name(String)}.
 * In an array, the name is the index of the item.
 */
abstract class BsonElements {
    /**
     * A special value of {@link #item}: the innermost container is a document and not an array, so
     * its elements have names instead of indexes.
     */
    private static final int NAMED = -1;

    /**
     * A special value of {@link #item}. While the scope of a {@link BsonType#CODE_WITH_SCOPE} value
     * is written, {@link #item} is {@code SCOPE - start}. Here {@code start} is the position of the
     * value (the code and its scope), at which {@link #end} writes the length of the value.
     */
    private static final int SCOPE = -2;

    private static final int OBJECT_ID_BYTES = 12;

    private final BsonTarget target;

    /** Two values for each open document except the innermost one: start and {@link #item}. */
    private int[] outer = new int[32];

    private int depth;

    /** The position at which the outermost document starts. */
    private int first;

    /** The position at which the innermost document starts. */
    private int start;

    /** The index of the next item of an array; negative in a document. */
    private int item;

    /** The position after the last complete element. */
    private int at;

    /** The position after the name that {@link #name} wrote; 0 if no name is pending. */
    private int named;

    BsonElements(BsonTarget target) {
        this.target = target;
        this.at = target.start();
        this.first = at;
    }

    /**
     * Discards all open documents. After an exception, the caller can therefore write the outermost
     * document again from its start. The next document starts at the buffer's position, or after
     * the last complete document of the output.
     */
    public final void reset() {
        depth = 0;
        named = 0;
        at = target.start();
        first = at;
    }

    /**
     * Returns the number of documents and arrays that are open.
     *
     * @return 0 between outermost documents
     */
    public final int depth() {
        return depth;
    }

    /**
     * Returns the number of bytes of the open outermost document that were written so far. If no
     * document is open, returns the length of the last one. An element is written completely or not
     * at all. So after an exception, these bytes end with the last complete element, or with the
     * start of a document that has no complete element yet.
     *
     * @return the number of bytes from the start of the outermost document; after its end, the
     * length of the document
     */
    public final int writtenBytes() {
        return at - first;
    }

    /**
     * Checks that no document is open.
     *
     * @throws IllegalStateException if a document is open
     */
    public final void finish() {
        if (depth != 0) {
            throw new IllegalStateException(depth
                    + " documents are open\n  `end()` ends the innermost one");
        }
    }

    /**
     * Writes the name of the next element, for a name that is not a constant. The next call must
     * write the value, by a method without a parameter for the name. The name is copied once, by
     * the conversion to UTF-8.
     *
     * @param name the name
     * @throws IllegalStateException outside of a document, in an array, or if the previous name has
     * no value yet
     * @throws IllegalArgumentException if the name contains a NUL
     * @throws MalformedTextException if the name has a lone surrogate and the writer's policy is
     * THROW
     * @throws java.nio.BufferOverflowException if the name does not fit into the destination
     */
    public final void name(String name) {
        checkOpen();
        if (item >= 0) {
            throw new IllegalStateException("an item of an array has no name but its index");
        }
        if (named != 0) {
            throw new IllegalStateException("a name is already pending without its value");
        }
        BsonName.checkNoNul(name);
        target.reserve(at, 1);
        named = target.cstring(at + 1, name);
    }

    /**
     * Starts an outermost document if no document is open. Otherwise starts a nested document,
     * which is the next item of an array, or the value of the element whose name was passed to
     * {@link #name(String)}.
     *
     * @throws IllegalStateException in a document, if no name was given
     * @throws java.nio.BufferOverflowException if the start of the document does not fit
     */
    public final void beginDocument() {
        if (depth != 0) {
            begin(BsonType.DOCUMENT, null);
            return;
        }
        int from = target.start();
        target.reserve(from, 4);
        first = from;
        push(from, NAMED);
        at = from + 4;
    }

    /**
     * Ends the innermost open document or array, and writes its length at its start. At the end of
     * the outermost document, the document becomes part of the output. If the destination is a
     * buffer, the buffer's position moves to the end of the document.
     *
     * @throws IllegalStateException if no document is open, or the last name has no value yet
     * @throws java.nio.BufferOverflowException if the terminator of the document does not fit
     */
    public final void end() {
        checkOpen();
        if (named != 0) {
            throw new IllegalStateException("a name is pending without its value");
        }
        target.reserve(at, 1);
        target.putByte(at++, 0);
        target.putInt32(start, at - start);
        if (item <= SCOPE) {
            int whole = SCOPE - item;
            target.putInt32(whole, at - whole);
        }
        depth--;
        if (depth == 0) {
            target.publish(first, at);
            return;
        }
        start = outer[2 * depth];
        item = outer[2 * depth + 1];
        step();
    }

    final void begin(BsonType type, BsonName name) {
        int value = head(type, name, 4);
        push(value, type == BsonType.ARRAY ? 0 : NAMED);
        at = value + 4;
        named = 0;
    }

    final void beginScope(BsonName name, String code) {
        int value = head(BsonType.CODE_WITH_SCOPE, name, 4);
        int scope = target.text(value + 4, code);
        target.reserve(scope, 4);
        push(scope, SCOPE - value);
        at = scope + 4;
        named = 0;
    }

    final void empty(BsonType type, BsonName name) {
        commit(head(type, name, 0));
    }

    final void byteValue(BsonType type, BsonName name, int value) {
        int p = head(type, name, 1);
        target.putByte(p, value);
        commit(p + 1);
    }

    final void int32Value(BsonType type, BsonName name, int value) {
        int p = head(type, name, 4);
        target.putInt32(p, value);
        commit(p + 4);
    }

    final void int64Value(BsonType type, BsonName name, long value) {
        int p = head(type, name, 8);
        target.putInt64(p, value);
        commit(p + 8);
    }

    final void decimal(BsonName name, long high, long low) {
        int p = head(BsonType.DECIMAL128, name, 16);
        target.putInt64(p, low);
        target.putInt64(p + 8, high);
        commit(p + 16);
    }

    final void text(BsonType type, BsonName name, String value) {
        commit(target.text(head(type, name, 0), value));
    }

    final void id(BsonName name, byte[] value) {
        checkObjectId(value);
        commit(target.putBytes(head(BsonType.OBJECT_ID, name, OBJECT_ID_BYTES), value));
    }

    final void pointer(BsonName name, String namespace, byte[] id) {
        checkObjectId(id);
        int p = target.text(head(BsonType.DB_POINTER, name, 0), namespace);
        target.reserve(p, OBJECT_ID_BYTES);
        commit(target.putBytes(p, id));
    }

    final void regexValue(BsonName name, String pattern, String options) {
        BsonName.checkNoNul(pattern);
        BsonName.checkNoNul(options);
        commit(target.cstring(target.cstring(head(BsonType.REGEX, name, 0), pattern), options));
    }

    final void binaryValue(BsonName name, int subtype, byte[] bytes, int from, int n) {
        Objects.checkFromIndexSize(from, n, bytes.length);
        commit(target.putBytes(binaryHead(name, subtype, n), bytes, from, n));
    }

    final void binaryValue(BsonName name, int subtype, ByteBuffer bytes) {
        commit(target.putBuffer(binaryHead(name, subtype, bytes.remaining()), bytes));
    }

    private int binaryHead(BsonName name, int subtype, int n) {
        if (subtype < 0 || subtype > 0xFF) {
            throw new IllegalArgumentException("a subtype is 0 to 255, not " + subtype);
        }
        // In a binary of the deprecated subtype 2, a second length follows the subtype.
        int inner = subtype == BsonReader.OLD_BINARY ? 4 : 0;
        int p = head(BsonType.BINARY, name, 5L + inner + n);
        target.putInt32(p, inner + n);
        target.putByte(p + 4, subtype);
        if (inner != 0) {
            target.putInt32(p + 5, n);
        }
        return p + 5 + inner;
    }

    final void copyOf(BsonName name, BsonReader reader) {
        ByteBuffer value = reader.rawValue();
        commit(target.putBuffer(head(reader.type(), name, value.remaining()), value));
    }

    /**
     * Writes the tag and the name of a BSON element, and reserves {@code valueBytes} bytes for its
     * value. Returns the index at which the value starts.
     */
    private int head(BsonType type, BsonName name, long valueBytes) {
        checkOpen();
        if (name != null) {
            return namedHead(type, name, valueBytes);
        }
        int value;
        if (named != 0) {
            value = named;
            target.reserve(value, valueBytes);
        } else if (item < 0) {
            throw new IllegalStateException(
                    "an element of a document has a name\n"
                            + "  give it with the value, or by `name()` before");
        } else if (item < BsonName.N_INDEXES) {
            byte[] bytes = BsonName.ofIndex(item).bytes;
            target.reserve(at, 1 + bytes.length + valueBytes);
            value = target.putBytes(at + 1, bytes);
        } else {
            target.reserve(at, 1 + BsonTarget.indexBytes(item) + valueBytes);
            value = target.putIndex(at + 1, item);
        }
        target.putByte(at, type.tag);
        return value;
    }

    private int namedHead(BsonType type, BsonName name, long valueBytes) {
        if (item >= 0) {
            throw new IllegalStateException("an item of an array has no name but its index");
        }
        if (named != 0) {
            throw new IllegalStateException("a name is already pending without its value");
        }
        byte[] bytes = name.bytes;
        target.reserve(at, 1 + bytes.length + valueBytes);
        target.putByte(at, type.tag);
        return target.putBytes(at + 1, bytes);
    }

    /**
     * Ends the current element after its value was written. {@code end} is the index after the last
     * byte of the value.
     */
    private void commit(int end) {
        at = end;
        named = 0;
        step();
    }

    private void step() {
        if (item >= 0) {
            item++;
        }
    }

    private void push(int newStart, int newItem) {
        if (2 * depth + 2 > outer.length) {
            outer = Arrays.copyOf(outer, 2 * outer.length);
        }
        outer[2 * depth] = start;
        outer[2 * depth + 1] = item;
        depth++;
        start = newStart;
        item = newItem;
    }

    private void checkOpen() {
        if (depth == 0) {
            throw new IllegalStateException("no document is open\n  `beginDocument()` opens one");
        }
    }

    private static void checkObjectId(byte[] id) {
        if (id.length != OBJECT_ID_BYTES) {
            throw new IllegalArgumentException("an object id has 12 bytes, not " + id.length);
        }
    }
}
