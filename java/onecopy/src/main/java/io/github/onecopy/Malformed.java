package io.github.onecopy;

/** The treatment of malformed text: lone surrogates in a string, invalid bytes in UTF-8. */
public enum Malformed {
    /** It is an error: {@link MalformedTextException} has the position. The default everywhere. */
    THROW,

    /**
     * It is replaced as the JDK does: each lone surrogate is written as {@code '?'}, as {@link
     * String#getBytes} does; each maximal subpart of an invalid sequence (Unicode 16.0, section
     * 3.9) is read as U+FFFD, as {@code new String} does.
     */
    REPLACE
}
