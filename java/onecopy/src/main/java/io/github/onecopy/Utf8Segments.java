package io.github.onecopy;

/** Nothing here; on JDK 22 and newer the jar has another one, with what {@link Utf8} does to memory segments. */
abstract class Utf8Segments {
    /** For {@link Utf8} alone. */
    Utf8Segments() {}
}
