package io.github.onecopy.internal;

/** Threads on JDK 17; for JDK 22 and newer the jar has another class. */
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
