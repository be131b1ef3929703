package io.github.onecopy;

/** The treatment of malformed text: lone surrogates in a string, invalid bytes in UTF-8. */
public enum Malformed {
    /**
     * Malformed text causes a {@link MalformedTextException} with its position, or, in a {@link
     * BsonReader}, a {@link BsonException}. This is the default of all methods.
     */
    THROW,

    /**
     * Malformed text is replaced, in the same way as in the JDK. Each lone surrogate is encoded as
     * {@code '?'}, as {@code getBytes(UTF_8)} does. Invalid bytes are decoded as U+FFFD, as {@code
     * new String(bytes, UTF_8)} does.
     */
    REPLACE
}
