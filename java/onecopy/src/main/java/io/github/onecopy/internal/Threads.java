package io.github.onecopy.internal;

/** Functions about the current thread, for JDK 17 to 21. For JDK 22 and newer, the jar contains
 * another version of this class. */
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
