package io.github.onecopy.internal;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Accesses the arrays inside strings, if the JVM option {@code --add-opens
 * java.base/java.lang=ALL-UNNAMED} permits it (decision 0103). An encoder that reads from them
 * needs no scratch array.
 *
 * <p>The layout is verified once with known strings. If it is not as expected, or if access is not
 * permitted, {@link #OPEN} is false, and no other member of this class may be used. The arrays are
 * only read.
 */
public final class StringArrays {
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class,
            ByteOrder.LITTLE_ENDIAN);
    private static final int WORD = Long.BYTES;
    private static final VarHandle VALUE = find();
    private static final MethodHandle HAS_NEGATIVES = findHasNegatives();

    /** True if the arrays inside strings are accessible. */
    public static final boolean OPEN = VALUE != null && HAS_NEGATIVES != null && isAsExpected();

    private StringArrays() {}

    private static VarHandle find() {
        try {
            return MethodHandles.privateLookupIn(String.class, MethodHandles.lookup())
                    .findVarHandle(String.class, "value", byte[].class);
        } catch (ReflectiveOperationException | RuntimeException closed) {
            return null;
        }
    }

    private static MethodHandle findHasNegatives() {
        try {
            Class<?> coding = Class.forName("java.lang.StringCoding");
            MethodType type = MethodType.methodType(boolean.class, byte[].class, int.class,
                    int.class);
            return MethodHandles.privateLookupIn(coding, MethodHandles.lookup())
                    .findStatic(coding, "hasNegatives", type);
        } catch (ReflectiveOperationException | RuntimeException absent) {
            return null;
        }
    }

    /**
     * Returns true if strings have the expected layout: one byte per character if all are at most
     * U+00FF, otherwise two bytes per UTF-16 unit in the machine's byte order. With
     * -XX:-CompactStrings, all strings have two bytes per unit.
     */
    private static boolean isAsExpected() {
        byte[] narrow = bytes("a\u00E9");
        byte[] wide = bytes("a\u0434");
        boolean little = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;
        return (narrow.length == 4
                || narrow.length == 2 && narrow[0] == 'a' && narrow[1] == (byte) 0xE9)
                && wide.length == 4
                && wide[little ? 0 : 1] == 'a'
                && wide[little ? 2 : 3] == 0x34
                && wide[little ? 3 : 2] == 0x04;
    }

    /** Returns the array that contains the characters of a string. Do not write to the array. */
    static byte[] bytes(String s) {
        return (byte[]) VALUE.get(s);
    }

    static boolean isNarrow(String s) {
        return bytes(s).length == s.length();
    }

    /** Copies the bytes of an ASCII string to {@code dst}; returns their number. */
    static int copy(String s, byte[] dst, int at, int limit) {
        byte[] held = bytes(s);
        int n = held.length;
        if (n > limit - at) {
            throw new BufferOverflowException();
        }
        if (n >= WORD && n <= 2 * WORD) {
            LONGS.set(dst, at, word(held, 0));
            LONGS.set(dst, at + n - WORD, word(held, n - WORD));
        } else {
            System.arraycopy(held, 0, dst, at, n);
        }
        return n;
    }

    static int copy(String s, ByteBuffer dst, int at, int limit) {
        byte[] held = bytes(s);
        int n = held.length;
        if (n > limit - at) {
            throw new BufferOverflowException();
        }
        if (n >= WORD && n <= 2 * WORD) {
            long first = word(held, 0);
            long last = word(held, n - WORD);
            boolean big = dst.order() == ByteOrder.BIG_ENDIAN;
            dst.putLong(at, big ? Long.reverseBytes(first) : first);
            dst.putLong(at + n - WORD, big ? Long.reverseBytes(last) : last);
        } else {
            dst.put(at, held, 0, n);
        }
        return n;
    }

    /** Returns true if a string is entirely ASCII. */
    static boolean isAscii(String s) {
        byte[] held = bytes(s);
        int n = held.length;
        return n == s.length() && !hasNegatives(held, n);
    }

    /**
     * Returns true if one of the first {@code n} bytes is negative. The JDK's method is called,
     * because compilers replace it with a few vector instructions.
     */
    private static boolean hasNegatives(byte[] held, int n) {
        try {
            return (boolean) HAS_NEGATIVES.invokeExact(held, 0, n);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    private static long word(byte[] b, int at) {
        return (long) LONGS.get(b, at);
    }
}
