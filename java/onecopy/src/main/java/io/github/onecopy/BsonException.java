package io.github.onecopy;

/** Reports that bytes are not valid BSON, with the reason and the position of the error. */
public final class BsonException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The reason why bytes are not valid BSON. */
    public enum Reason {
        /** The bytes end inside the outermost document: it was truncated, or its length is
         * wrong. */
        END("the data ends inside the document"),
        /** The length of a document is less than 5, the length of an empty document. */
        DOCUMENT_LENGTH("the length of a document is below 5"),
        /** The length of a nested value extends past the end of its document. */
        LENGTH("a length reaches past the end of the document"),
        /** A value of a fixed size reaches past the end of its document. */
        VALUE("a value reaches past the end of the document"),
        /** A document does not end with a zero byte at the position that its length determines. */
        NO_TERMINATOR("no zero byte at the end of the document"),
        /** A zero byte ends a document before the position that its length determines. */
        EARLY_END("the document ends before its declared length"),
        /** The length prefix of a text is less than 1. It must also count the final NUL. */
        TEXT_LENGTH("the length of a text is below 1"),
        /** The last byte of a text, according to its length prefix, is not zero. */
        TEXT_END("no zero byte at the end of the text"),
        /** No zero byte ends a name, or the pattern or options of a regex, within the document. */
        OPEN_TEXT("a name or pattern has no zero byte at its end"),
        /** An element begins with a tag that BSON does not define. */
        TAG("no type has this tag"),
        /** A boolean is neither 0 nor 1. */
        BOOLEAN("a boolean is neither 0 nor 1"),
        /** The length of a binary is negative. */
        BINARY_LENGTH("the length of a binary is below 0"),
        /** The two lengths of a binary of the deprecated subtype 2 do not agree. */
        OLD_BINARY("the two lengths of a binary of subtype 2 do not agree"),
        /**
         * The total length of code with a scope contradicts the length of the code or the length
         * of the scope.
         */
        SCOPE_LENGTH("the lengths of code with a scope do not agree"),
        /** Bytes follow the end of the outermost document. */
        TRAILING_DATA("trailing data after the document"),
        /** A text is not UTF-8. */
        MALFORMED("malformed text: it is not UTF-8");

        private final String text;

        Reason(String text) {
            this.text = text;
        }
    }

    /** The reason for this exception. Callers can test it without parsing the message. */
    private final Reason reason;

    /** The position of the error, in bytes from the start of the outermost document. */
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
     * Returns the reason why the bytes are not valid BSON.
     *
     * @return the reason
     */
    public Reason reason() {
        return reason;
    }

    /**
     * Returns the position of the error.
     *
     * @return the number of bytes from the start of the outermost document
     */
    public long offsetBytes() {
        return offsetBytes;
    }
}
