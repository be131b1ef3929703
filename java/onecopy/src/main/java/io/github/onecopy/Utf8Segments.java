package io.github.onecopy;

/**
 * The superclass of {@link Utf8} on JDK 17 to 21. For JDK 22 and newer, the jar has another version
 * of this class, with the methods of {@code Utf8} for memory segments.
 */
abstract class Utf8Segments {
    /** Creates an instance. */
    Utf8Segments() {}
}
