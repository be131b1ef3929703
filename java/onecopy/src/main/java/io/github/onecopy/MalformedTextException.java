package io.github.onecopy;

/** Malformed text, with the index of the error. */
public final class MalformedTextException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    /** 0-based; kept, so that no caller has to parse the message. */
    private final long index;

    /**
     * Creates an instance.
     *
     * @param message the error, as a sentence
     * @param index its index, 0-based: see {@link #index}
     */
    public MalformedTextException(String message, long index) {
        super(message);
        this.index = index;
    }

    /**
     * The position of the error.
     *
     * @return when encoding, the index of the lone surrogate in the string, in UTF-16 units; when
     * decoding, the number of bytes before the first invalid UTF-8 sequence, counted from the start
     * of decoding. Both start at 0
     */
    public long index() {
        return index;
    }
}
