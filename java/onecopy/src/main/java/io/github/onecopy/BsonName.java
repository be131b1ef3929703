package io.github.onecopy;

import java.util.Arrays;

/**
 * The name of an element, encoded once: UTF-8 and the terminating NUL. Make one for each field of a
 * class and keep it in a constant; writing it then copies a few bytes, and {@link
 * BsonReader#nameIs} compares without decoding.
 */
public final class BsonName {
    /**
     * The number of indexes of arrays that are cached; larger ones are formatted as they are
     * written.
     */
    static final int N_INDEXES = 1000;

    /** UTF-8, and a NUL. */
    final byte[] bytes;

    private final String text;

    private BsonName(String text) {
        checkNoNul(text);
        byte[] utf8 = Utf8.encodeToBytes(text);
        this.bytes = Arrays.copyOf(utf8, utf8.length + 1);
        this.text = text;
    }

    /**
     * Creates a name. The empty name is valid.
     *
     * @param text the name
     * @return the name
     * @throws IllegalArgumentException if NUL is in it, which ends a name in BSON
     * @throws MalformedTextException if the text has a lone surrogate
     */
    public static BsonName of(String text) {
        return new BsonName(text);
    }

    /** The name of an item of an array, of the first {@link #N_INDEXES}. */
    static BsonName ofIndex(int index) {
        return Indexes.NAMES[index];
    }

    /** Refuses a text with a NUL, which would end it early. */
    static void checkNoNul(String text) {
        int at = text.indexOf('\0');
        if (at >= 0) {
            throw new IllegalArgumentException(
                    "a NUL ends a name, a pattern and its options in BSON; one is at index " + at);
        }
    }

    /** The name as text. */
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

    /** Made when the first array is written. */
    private static final class Indexes {
        static final BsonName[] NAMES = new BsonName[N_INDEXES];

        static {
            for (int i = 0; i < N_INDEXES; i++) {
                NAMES[i] = new BsonName(Integer.toString(i));
            }
        }
    }
}
