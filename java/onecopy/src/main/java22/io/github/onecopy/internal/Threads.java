package io.github.onecopy.internal;

/** For JDK 22 and newer: the id of the current thread, and whether it is virtual. */
final class Threads {
    private Threads() {}

    static boolean isVirtual() {
        return Thread.currentThread().isVirtual();
    }

    static long id() {
        return Thread.currentThread().threadId();
    }
}
