package io.github.onecopy;

/** Nothing here; on JDK 22 and newer the jar has another one, with what {@link Utf8} does to memory
 * segments. */
abstract class Utf8Segments {
    /** Only for {@link Utf8}. */
    Utf8Segments() {}
}
