package io.github.onecopy;

/** Bytes are no BSON: why, and at which byte. */
public final class BsonException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Why bytes are no BSON. */
    public enum Reason {
        /** The bytes end inside of the outermost document: it was cut off, or its length is wrong. */
        END("the data ends inside the document"),
        /** A document says that it is shorter than any can be. */
        DOCUMENT_LENGTH("the length of a document is below 5"),
        /** The length of what stands inside of a document reaches past the end of that. */
        LENGTH("a length reaches past the end of the document"),
        /** A value of a fixed size reaches past the end of its document. */
        VALUE("a value reaches past the end of the document"),
        /** No zero byte stands where a document ends by its length. */
        NO_TERMINATOR("no zero byte stands at the end of the document"),
        /** A zero byte stands in place of an element, before the document ends by its length. */
        EARLY_END("the document ends before its length says"),
        /** A text says that it is shorter than any can be. */
        TEXT_LENGTH("the length of a text is below 1"),
        /** No zero byte stands where a text ends by its length. */
        TEXT_END("no zero byte stands at the end of the text"),
        /** A name, or one of the texts of a regex, has no zero byte before its document ends. */
        OPEN_TEXT("a name or pattern has no zero byte at its end"),
        /** No type has this tag. */
        TAG("no type has this tag"),
        /** A boolean is neither 0 nor 1. */
        BOOLEAN("a boolean is neither 0 nor 1"),
        /** A binary says that it is shorter than nothing. */
        BINARY_LENGTH("the length of a binary is below 0"),
        /** The second length of a binary of subtype 2 does not agree with the first. */
        OLD_BINARY("the two lengths of a binary of subtype 2 do not agree"),
        /** The length of code with a scope does not agree with those of its code and its scope. */
        SCOPE_LENGTH("the lengths of code with a scope do not agree"),
        /** Something stands behind the document. */
        BEHIND("something stands behind the document"),
        /** A text is not UTF-8. */
        MALFORMED("malformed text: it is not UTF-8");

        private final String text;

        Reason(String text) {
            this.text = text;
        }
    }

    /** The kind, so that nobody has to read the message. */
    private final Reason reason;

    /** From where the outermost document starts. */
    private final long offsetBytes;

    BsonException(Reason reason, long offsetBytes) {
        this(reason, offsetBytes, null);
    }

    BsonException(Reason reason, long offsetBytes, Throwable cause) {
        super(reason.text + " at byte " + offsetBytes, cause);
        this.reason = reason;
        this.offsetBytes = offsetBytes;
    }

    /**
     * Why.
     *
     * @return the kind, for programs
     */
    public Reason reason() {
        return reason;
    }

    /**
     * Where.
     *
     * @return bytes from where the outermost document starts
     */
    public long offsetBytes() {
        return offsetBytes;
    }
}
