package io.github.onecopy.internal;

import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Supplier;

/**
 * Objects that one thread at a time uses: each platform thread has its own; virtual threads, of which there may be a million, take
 * from a few that they share. What a thread has of its own is got in about 3 ns, from the shared in about 10.
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

    /** One that nobody else uses until it is given back. */
    T take() {
        if (!Threads.isVirtual()) {
            return own.get();
        }
        T found = shared.getAndSet(slot(), null);
        return found == null ? make.get() : found;
    }

    /** Gives it back; where something was thrown in between, it need not be. */
    void give(T object) {
        if (Threads.isVirtual()) {
            shared.setRelease(slot(), object);
        }
    }

    private static int slot() {
        return (int) Threads.id() & SHARED - 1;
    }
}
