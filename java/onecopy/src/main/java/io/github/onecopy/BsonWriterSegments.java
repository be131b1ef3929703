package io.github.onecopy;

/** On JDK 22 and newer, the jar has another version of this class, with the methods of {@link
 * BsonWriter} for memory segments. */
abstract class BsonWriterSegments extends BsonItems {
    BsonWriterSegments(BsonTarget target) {
        super(target);
    }
}
