package io.github.onecopy;

/** Text that is not well-formed, and where. */
public final class MalformedTextException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    /** 0-based; kept, so that nobody has to read the message. */
    private final long index;

    /**
     * Makes one.
     *
     * @param message what is wrong, as a sentence
     * @param index where, 0-based: see {@link #index}
     */
    public MalformedTextException(String message, long index) {
        super(message);
        this.index = index;
    }

    /**
     * Where the text goes wrong.
     *
     * @return when encoding, the index of the lone surrogate in the string, in UTF-16 units; when decoding, how many bytes
     *     stand before the first sequence that is not valid UTF-8, counted from where decoding began. Both 0-based
     */
    public long index() {
        return index;
    }
}
