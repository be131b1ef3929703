package io.github.onecopy;

/** On JDK 22 and newer, the jar has another version of this class, with the methods of {@link Utf8}
 * for memory segments. */
abstract class Utf8Segments {
    /** Creates an instance. */
    Utf8Segments() {}
}
