package io.github.onecopy;

/** The treatment of malformed text: lone surrogates in a string, invalid bytes in UTF-8. */
public enum Malformed {
    /** Malformed text causes a {@link MalformedTextException}, which has the position; a {@link
     * BsonReader} throws a {@link BsonException}. This is the default of all methods. */
    THROW,

    /**
     * Malformed text is replaced, with the same result as by the JDK. For each lone surrogate,
     * {@code '?'} is encoded, as by {@code getBytes(UTF_8)}. For invalid bytes, U+FFFD is decoded,
     * as by {@code new String(bytes, UTF_8)}.
     */
    REPLACE
}
