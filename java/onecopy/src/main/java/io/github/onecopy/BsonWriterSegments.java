package io.github.onecopy;

/**
 * The superclass of {@link BsonWriter} on JDK 17 to 21. For JDK 22 and newer, the jar has another
 * version of this class, with the methods of {@code BsonWriter} for memory segments.
 */
abstract class BsonWriterSegments extends BsonItems {
    BsonWriterSegments(BsonTarget target) {
        super(target);
    }
}
