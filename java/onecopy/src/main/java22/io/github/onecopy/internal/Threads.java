package io.github.onecopy.internal;

/** Properties of the current thread on JDK 22 and newer. */
final class Threads {
    private Threads() {}

    static boolean isVirtual() {
        return Thread.currentThread().isVirtual();
    }

    static long id() {
        return Thread.currentThread().threadId();
    }
}
