package io.github.onecopy;

import java.util.Arrays;

/**
 * The name of an element, encoded as UTF-8 with the terminating NUL. If the object is stored in a
 * constant, the name is encoded only once: a writer copies the encoded bytes, and {@link
 * BsonReader#nameIs} compares them.
 */
public final class BsonName {
    /**
     * The number of array indexes whose names are cached. The names of larger indexes are formatted
     * when they are written.
     */
    static final int N_INDEXES = 1000;

    /** The name in UTF-8, followed by a NUL. */
    final byte[] bytes;

    private final String text;

    private BsonName(String text) {
        checkNoNul(text);
        byte[] utf8 = Utf8.encodeToBytes(text);
        this.bytes = Arrays.copyOf(utf8, utf8.length + 1);
        this.text = text;
    }

    /**
     * Creates a name, which may be empty.
     *
     * @param text the name
     * @return the name
     * @throws IllegalArgumentException if the text contains a NUL, which would end the name in BSON
     * @throws MalformedTextException if the text has a lone surrogate
     */
    public static BsonName of(String text) {
        return new BsonName(text);
    }

    /**
     * Returns the name of the array item with this index, which must be less than {@link
     * #N_INDEXES}.
     */
    static BsonName ofIndex(int index) {
        return Indexes.NAMES[index];
    }

    /** Throws an exception if a name contains a NUL, which would end the name early. */
    static void checkNoNul(String text) {
        int at = text.indexOf('\0');
        if (at >= 0) {
            throw new IllegalArgumentException(
                    "a NUL ends a name, a pattern and its options in BSON; one is at index " + at);
        }
    }

    /** Returns the text of the name. */
    @Override
    public String toString() {
        return text;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof BsonName && text.equals(((BsonName) other).text);
    }

    @Override
    public int hashCode() {
        return text.hashCode();
    }

    /** The cached names, created when the first array is written. */
    private static final class Indexes {
        static final BsonName[] NAMES = new BsonName[N_INDEXES];

        static {
            for (int i = 0; i < N_INDEXES; i++) {
                NAMES[i] = new BsonName(Integer.toString(i));
            }
        }
    }
}
