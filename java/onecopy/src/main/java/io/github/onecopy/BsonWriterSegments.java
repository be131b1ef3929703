package io.github.onecopy;

/** Nothing here; on JDK 22 and newer the jar has another one, which makes a {@link BsonWriter} over
 * a memory segment. */
abstract class BsonWriterSegments extends BsonItems {
    BsonWriterSegments(BsonTarget target) {
        super(target);
    }
}
