package io.github.onecopy;

/** Reports that a text is malformed, with the index of the error. */
public final class MalformedTextException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    /** The index of the error, from 0, as a number, so that no caller has to parse the message. */
    private final long index;

    /**
     * Creates an instance.
     *
     * @param message the message
     * @param index the index of the error, from 0: see {@link #index}
     */
    public MalformedTextException(String message, long index) {
        super(message);
        this.index = index;
    }

    /**
     * Returns the position of the error.
     *
     * @return for a string, the index of the lone surrogate; for UTF-8, the number of bytes between
     * the start of the decoded range and the first invalid sequence
     */
    public long index() {
        return index;
    }
}
