package io.github.onecopy.internal;

import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Supplier;

/**
 * Objects used by one thread at a time: each platform thread has its own; virtual threads, of which
 * there may be a million, share a few. A thread's own object is obtained in about 3 ns, a shared
 * one in about 10.
 */
final class Pool<T> {
    private static final int SHARED = 64;

    private final Supplier<T> make;
    private final ThreadLocal<T> own;
    private final AtomicReferenceArray<T> shared = new AtomicReferenceArray<>(SHARED);

    Pool(Supplier<T> make) {
        this.make = make;
        this.own = ThreadLocal.withInitial(make);
    }

    /** Takes an object that no other thread uses until it is given back. */
    T take() {
        if (!Threads.isVirtual()) {
            return own.get();
        }
        T found = shared.getAndSet(slot(), null);
        return found == null ? make.get() : found;
    }

    /** Gives it back; after an exception this is not necessary. */
    void give(T object) {
        if (Threads.isVirtual()) {
            shared.setRelease(slot(), object);
        }
    }

    private static int slot() {
        return (int) Threads.id() & SHARED - 1;
    }
}
