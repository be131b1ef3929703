package io.github.onecopy;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;

/** The nesting and the elements of a {@link BsonWriter}. A null name stands for what {@link #name} said, or the index in an array. */
abstract class BsonElements {
    /** {@link #item} where elements have names. */
    private static final int NAMED = -1;

    /** {@link #item} of the scope of code is this minus the place where its whole value starts. */
    private static final int SCOPE = -2;

    private static final int OBJECT_ID_BYTES = 12;

    private final BsonPlace place;

    /** Of each document around the innermost one: where it starts, and its {@link #item}. */
    private int[] outer = new int[32];

    private int depth;

    /** Where the outermost document starts. */
    private int first;

    /** Where the innermost document starts. */
    private int start;

    /** The index of the next item of an array; negative in a document. */
    private int item;

    /** Behind the last element that is whole. */
    private int at;

    /** Behind the name that {@link #name} wrote; 0 where none waits. */
    private int named;

    BsonElements(BsonPlace place) {
        this.place = place;
        this.at = place.start();
        this.first = at;
    }

    /**
     * Forgets the documents that are open: the next one starts where the buffer's position is, or behind the last whole one of the
     * output. To be called after an exception, where the writer is to be used again.
     */
    public final void reset() {
        depth = 0;
        named = 0;
        at = place.start();
        first = at;
    }

    /**
     * How many documents and arrays are open.
     *
     * @return 0 between outermost documents
     */
    public final int depth() {
        return depth;
    }

    /**
     * How far the document that is written last is valid: elements are written whole or not at all, so after an exception this is
     * where the last whole element ends.
     *
     * @return bytes from where the outermost document starts; its end is among them once it was ended
     */
    public final int writtenBytes() {
        return at - first;
    }

    /**
     * Makes sure that nothing is left open.
     *
     * @throws IllegalStateException where a document is open
     */
    public final void finish() {
        if (depth != 0) {
            throw new IllegalStateException(depth + " documents are open\n  `end()` ends the innermost one");
        }
    }

    /**
     * Gives the name of the next element, which is then written by a method without a name: for names that are no constants.
     * Copies: the one conversion.
     *
     * @param name the name
     * @throws IllegalStateException outside of a document, in an array, and where a name waits already
     * @throws IllegalArgumentException where NUL is in it
     * @throws MalformedTextException where a surrogate stands alone, and the writer's policy is THROW
     * @throws java.nio.BufferOverflowException where it does not fit
     */
    public final void name(String name) {
        checkOpen();
        if (item >= 0) {
            throw new IllegalStateException("an item of an array has no name but its index");
        }
        if (named != 0) {
            throw new IllegalStateException("a name waits for its value already");
        }
        BsonName.checkNoNul(name);
        place.room(at, 1);
        named = place.cstring(at + 1, name);
    }

    /**
     * Starts an outermost document, or an item of an array, or what {@link #name} has named.
     *
     * @throws IllegalStateException in a document, where it has to have a name
     * @throws java.nio.BufferOverflowException where it does not fit
     */
    public final void beginDocument() {
        if (depth != 0) {
            begin(BsonType.DOCUMENT, null);
            return;
        }
        int from = place.start();
        place.room(from, 4);
        first = from;
        push(from, NAMED);
        at = from + 4;
    }

    /**
     * Ends the document or array that was begun last, and fills in its length. The outermost one appears in the output by this, or
     * the position of the buffer moves behind it.
     *
     * @throws IllegalStateException where none is open, or a name waits for its value
     * @throws java.nio.BufferOverflowException where the byte behind it does not fit
     */
    public final void end() {
        checkOpen();
        if (named != 0) {
            throw new IllegalStateException("a name waits for its value");
        }
        place.room(at, 1);
        place.putByte(at++, 0);
        place.putInt32(start, at - start);
        if (item <= SCOPE) {
            int whole = SCOPE - item;
            place.putInt32(whole, at - whole);
        }
        depth--;
        if (depth == 0) {
            place.publish(first, at);
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
        int scope = place.text(value + 4, code);
        place.room(scope, 4);
        push(scope, SCOPE - value);
        at = scope + 4;
        named = 0;
    }

    final void empty(BsonType type, BsonName name) {
        commit(head(type, name, 0));
    }

    final void byteValue(BsonType type, BsonName name, int value) {
        int p = head(type, name, 1);
        place.putByte(p, value);
        commit(p + 1);
    }

    final void int32Value(BsonType type, BsonName name, int value) {
        int p = head(type, name, 4);
        place.putInt32(p, value);
        commit(p + 4);
    }

    final void int64Value(BsonType type, BsonName name, long value) {
        int p = head(type, name, 8);
        place.putInt64(p, value);
        commit(p + 8);
    }

    final void decimal(BsonName name, long high, long low) {
        int p = head(BsonType.DECIMAL128, name, 16);
        place.putInt64(p, low);
        place.putInt64(p + 8, high);
        commit(p + 16);
    }

    final void text(BsonType type, BsonName name, String value) {
        commit(place.text(head(type, name, 0), value));
    }

    final void id(BsonName name, byte[] value) {
        checkObjectId(value);
        commit(place.putBytes(head(BsonType.OBJECT_ID, name, OBJECT_ID_BYTES), value));
    }

    final void pointer(BsonName name, String namespace, byte[] id) {
        checkObjectId(id);
        int p = place.text(head(BsonType.DB_POINTER, name, 0), namespace);
        place.room(p, OBJECT_ID_BYTES);
        commit(place.putBytes(p, id));
    }

    final void regexValue(BsonName name, String pattern, String options) {
        BsonName.checkNoNul(pattern);
        BsonName.checkNoNul(options);
        commit(place.cstring(place.cstring(head(BsonType.REGEX, name, 0), pattern), options));
    }

    final void binaryValue(BsonName name, int subtype, byte[] bytes, int from, int n) {
        Objects.checkFromIndexSize(from, n, bytes.length);
        commit(place.putBytes(binaryHead(name, subtype, n), bytes, from, n));
    }

    final void binaryValue(BsonName name, int subtype, ByteBuffer bytes) {
        commit(place.putBuffer(binaryHead(name, subtype, bytes.remaining()), bytes));
    }

    private int binaryHead(BsonName name, int subtype, int n) {
        if (subtype < 0 || subtype > 0xFF) {
            throw new IllegalArgumentException("a subtype is 0 to 255, not " + subtype);
        }
        // The old binary has a second length inside of the first.
        int inner = subtype == BsonReader.OLD_BINARY ? 4 : 0;
        int p = head(BsonType.BINARY, name, 5L + inner + n);
        place.putInt32(p, inner + n);
        place.putByte(p + 4, subtype);
        if (inner != 0) {
            place.putInt32(p + 5, n);
        }
        return p + 5 + inner;
    }

    final void copyOf(BsonName name, BsonReader reader) {
        ByteBuffer value = reader.rawValue();
        commit(place.putBuffer(head(reader.type(), name, value.remaining()), value));
    }

    /** The tag and the name; gives where the value goes, for which there is room then. */
    private int head(BsonType type, BsonName name, long valueBytes) {
        checkOpen();
        if (name != null) {
            return namedHead(type, name, valueBytes);
        }
        int value;
        if (named != 0) {
            value = named;
            place.room(value, valueBytes);
        } else if (item < 0) {
            throw new IllegalStateException("an element of a document has a name\n  give it with the value, or by `name()` before");
        } else if (item < BsonName.N_INDEXES) {
            byte[] bytes = BsonName.ofIndex(item).bytes;
            place.room(at, 1 + bytes.length + valueBytes);
            value = place.putBytes(at + 1, bytes);
        } else {
            place.room(at, 1 + BsonPlace.indexBytes(item) + valueBytes);
            value = place.putIndex(at + 1, item);
        }
        place.putByte(at, type.tag);
        return value;
    }

    private int namedHead(BsonType type, BsonName name, long valueBytes) {
        if (item >= 0) {
            throw new IllegalStateException("an item of an array has no name but its index");
        }
        if (named != 0) {
            throw new IllegalStateException("a name waits for its value already");
        }
        byte[] bytes = name.bytes;
        place.room(at, 1 + bytes.length + valueBytes);
        place.putByte(at, type.tag);
        return place.putBytes(at + 1, bytes);
    }

    /** The element that ends there is whole. */
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
