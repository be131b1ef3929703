package io.github.onecopy.internal;

/** Properties of the current thread on JDK 17 to 21; for JDK 22 and newer, the jar has another
 * version of this class. */
final class Threads {
    private Threads() {}

    static boolean isVirtual() {
        return false;
    }

    @SuppressWarnings("deprecation") // threadId() is of JDK 19.
    static long id() {
        return Thread.currentThread().getId();
    }
}
