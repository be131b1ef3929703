package io.github.onecopy.internal;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;

/**
 * The interface to the native library. Only this class loads the library and calls its functions.
 * Their signatures are those of {@code crates/capi/include/onecopy.h}.
 *
 * <p>The methods return the results of the C functions: a count, or {@code -1 - k} for malformed
 * text at unit k, or {@link #NO_ROOM}. The callers have checked that each range is within its array
 * or buffer. Each segment that is created here checks the range again. The calls are critical
 * ({@code Linker.Option.critical}): they access arrays in place, so the garbage collector cannot
 * run during a call. To keep each call short, no range is longer than {@link #MOST_UNITS}.
 */
@SuppressWarnings("restricted") // The purpose of this class.
public final class Native {
    /**
     * The largest number of source units that one native call converts. A call with so many units
     * takes a few microseconds.
     */
    public static final int MOST_UNITS = 1 << 16;

    /** The result of a call whose destination is too small. */
    public static final long NO_ROOM = Long.MIN_VALUE;

    private static final int ABI = 1;
    private static final int MOST_VERSION_BYTES = 64;

    private static final String STATUS;
    private static final boolean AVAILABLE;
    // Each handle is static and final, so that compilers treat its function as a constant.
    private static final MethodHandle UTF8_LENGTH;
    private static final MethodHandle UTF16_TO_UTF8;
    private static final MethodHandle LATIN1_TO_UTF8;
    private static final MethodHandle UTF8_TO_UTF16;
    private static final MethodHandle UTF8_TO_LATIN1;
    private static final MethodHandle UTF16_LENGTH;
    private static final MethodHandle FIND_MALFORMED;
    private static final MethodHandle ASCII_PREFIX;

    static {
        SymbolLookup found = null;
        String status;
        try {
            found = load();
            status = "native: onecopy " + version(found) + ", " + Library.platform();
        } catch (Library.Absent e) {
            found = null;
            status = "pure Java: " + e.getMessage();
        }
        AVAILABLE = found != null;
        STATUS = status;
        UTF8_LENGTH = handle(found, JAVA_LONG, "onecopy_utf8_len_from_utf16", ADDRESS, JAVA_LONG,
                JAVA_INT);
        UTF16_TO_UTF8 = handle(found, "onecopy_utf16_to_utf8_at", JAVA_INT);
        LATIN1_TO_UTF8 = handle(found, "onecopy_latin1_to_utf8_at");
        UTF8_TO_UTF16 = handle(found, "onecopy_utf8_to_utf16_at", JAVA_INT);
        UTF8_TO_LATIN1 = handle(found, "onecopy_utf8_to_latin1_at");
        UTF16_LENGTH = handle(found, JAVA_LONG, "onecopy_utf16_len_from_utf8", ADDRESS, JAVA_LONG,
                JAVA_INT);
        FIND_MALFORMED = handle(found, JAVA_LONG, "onecopy_utf8_find_malformed", ADDRESS,
                JAVA_LONG);
        ASCII_PREFIX = handle(found, JAVA_LONG, "onecopy_utf8_ascii_prefix", ADDRESS, JAVA_LONG);
    }

    private Native() {}

    /**
     * Returns true if the library is loaded.
     *
     * @return true if the library is loaded
     */
    public static boolean available() {
        return AVAILABLE;
    }

    /**
     * Returns which implementation is in use (native or Java), and the reason for this choice.
     *
     * @return a text of one line
     */
    public static String status() {
        return STATUS;
    }

    private static SymbolLookup load() throws Library.Absent {
        if ("off".equalsIgnoreCase(System.getProperty("onecopy.native"))) {
            throw new Library.Absent("the system property onecopy.native is off");
        }
        try (Library library = Library.extract()) {
            SymbolLookup found = SymbolLookup.libraryLookup(library.file(), Arena.global());
            loadWhatCompilersLookAt();
            int abi = (int) handle(found, JAVA_INT, "onecopy_abi_version").invokeExact();
            if (abi != ABI) {
                throw new Library.Absent("the library's interface is of version " + abi + ", not "
                        + ABI);
            }
            return found;
        } catch (IllegalCallerException e) {
            throw new Library.Absent(
                    "native access is denied; --enable-native-access=ALL-UNNAMED permits it");
        } catch (Library.Absent e) {
            throw e;
        } catch (Throwable e) {
            throw new Library.Absent("the library could not be loaded: " + e);
        }
    }

    /**
     * Creates a segment, so that all classes in the signatures of the constructors of segments are
     * loaded. The JIT compilers inline these constructors only if the classes are loaded. Without
     * inlining, each segment of a call is an object on the heap (96 bytes and 8 ns per call).
     */
    private static void loadWhatCompilersLookAt() {
        try (Arena arena = Arena.ofConfined()) {
            arena.allocate(1);
        }
    }

    private static String version(SymbolLookup found) throws Library.Absent {
        try {
            MethodHandle handle = handle(found, ADDRESS, "onecopy_version");
            return ((MemorySegment) handle.invokeExact()).reinterpret(MOST_VERSION_BYTES)
                    .getString(0);
        } catch (Throwable e) {
            throw new Library.Absent("the library does not report its version: " + e);
        }
    }

    /**
     * Returns the handle by which Java calls a native function; null if the library is not loaded.
     * The handle is critical ({@code Linker.Option.critical}): the function accesses Java arrays
     * in place.
     */
    private static MethodHandle handle(SymbolLookup found, MemoryLayout result, String name,
            MemoryLayout... arguments) {
        if (found == null) {
            return null;
        }
        return Linker.nativeLinker()
                .downcallHandle(
                        found.find(name).orElseThrow(),
                        FunctionDescriptor.of(result, arguments),
                        Linker.Option.critical(true));
    }

    /**
     * Returns the handle of a native conversion function. The arguments of the function are the
     * source, an index in the source, the number of units, the destination, an index in the
     * destination, the capacity of the destination, and {@code more}.
     */
    private static MethodHandle handle(SymbolLookup found, String name, MemoryLayout... more) {
        MemoryLayout[] ranges = {ADDRESS, JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG};
        MemoryLayout[] arguments = Arrays.copyOf(ranges, ranges.length + more.length);
        System.arraycopy(more, 0, arguments, ranges.length, more.length);
        return handle(found, JAVA_LONG, name, arguments);
    }

    static long utf8Length(char[] src, int at, int n, int replacement) {
        try {
            return known((long) UTF8_LENGTH.invokeExact(slice(src, at, n), (long) n, replacement));
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    static long utf16ToUtf8(char[] src, int at, int n, byte[] dst, int to, int capacity,
            int replacement) {
        check(src, at, n);
        check(dst, to, capacity);
        return utf16ToUtf8(MemorySegment.ofArray(src), at, n, MemorySegment.ofArray(dst), to,
                capacity, replacement);
    }

    static long utf16ToUtf8(char[] src, int at, int n, ByteBuffer dst, int to, int capacity,
            int replacement) {
        check(src, at, n);
        int position = positionIn(dst, to, capacity);
        return utf16ToUtf8(MemorySegment.ofArray(src), at, n, MemorySegment.ofBuffer(dst),
                position, capacity, replacement);
    }

    /**
     * Converts UTF-16 to UTF-8, and writes the result to the segment from the offset {@code to} on.
     * Nothing is written after the end of the segment.
     */
    static long utf16ToUtf8(char[] src, int at, int n, MemorySegment dst, long to,
            int replacement) {
        check(src, at, n);
        long capacity = capacity(dst, to);
        return utf16ToUtf8(MemorySegment.ofArray(src), at, n, dst, to, capacity, replacement);
    }

    /** Converts UTF-16. {@code src} is the array inside a string, with two bytes for each unit. */
    static long utf16ToUtf8(byte[] src, int at, int n, byte[] dst, int to, int capacity,
            int replacement) {
        checkStringArray(src, at, n);
        check(dst, to, capacity);
        return utf16ToUtf8(MemorySegment.ofArray(src), at, n, MemorySegment.ofArray(dst), to,
                capacity, replacement);
    }

    static long utf16ToUtf8(byte[] src, int at, int n, ByteBuffer dst, int to, int capacity,
            int replacement) {
        checkStringArray(src, at, n);
        int position = positionIn(dst, to, capacity);
        return utf16ToUtf8(MemorySegment.ofArray(src), at, n, MemorySegment.ofBuffer(dst),
                position, capacity, replacement);
    }

    static long utf16ToUtf8(byte[] src, int at, int n, MemorySegment dst, long to,
            int replacement) {
        checkStringArray(src, at, n);
        long capacity = capacity(dst, to);
        return utf16ToUtf8(MemorySegment.ofArray(src), at, n, dst, to, capacity, replacement);
    }

    private static long utf16ToUtf8(
            MemorySegment src, long at, long n, MemorySegment dst, long to, long capacity,
            int replacement) {
        try {
            return known((long) UTF16_TO_UTF8.invokeExact(src, at, n, dst, to, capacity,
                    replacement));
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    static long latin1ToUtf8(byte[] src, int at, int n, byte[] dst, int to, int capacity) {
        check(src, at, n);
        check(dst, to, capacity);
        return latin1ToUtf8(MemorySegment.ofArray(src), at, n, MemorySegment.ofArray(dst), to,
                capacity);
    }

    static long latin1ToUtf8(byte[] src, int at, int n, ByteBuffer dst, int to, int capacity) {
        check(src, at, n);
        int position = positionIn(dst, to, capacity);
        return latin1ToUtf8(MemorySegment.ofArray(src), at, n, MemorySegment.ofBuffer(dst),
                position, capacity);
    }

    /**
     * Converts Latin-1 to UTF-8, and writes the result to the segment from offset {@code to} on,
     * but not past its end.
     */
    static long latin1ToUtf8(byte[] src, int at, int n, MemorySegment dst, long to) {
        check(src, at, n);
        long capacity = capacity(dst, to);
        return latin1ToUtf8(MemorySegment.ofArray(src), at, n, dst, to, capacity);
    }

    private static long latin1ToUtf8(MemorySegment src, long at, long n, MemorySegment dst,
            long to, long capacity) {
        try {
            return known((long) LATIN1_TO_UTF8.invokeExact(src, at, n, dst, to, capacity));
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    static long utf8ToUtf16(byte[] src, int at, int n, char[] dst, int to, int capacity,
            int replacement) {
        check(src, at, n);
        check(dst, to, capacity);
        return utf8ToUtf16(MemorySegment.ofArray(src), at, n, MemorySegment.ofArray(dst), to,
                capacity, replacement);
    }

    static long utf8ToUtf16(ByteBuffer src, int at, int n, char[] dst, int to, int capacity,
            int replacement) {
        int from = positionIn(src, at, n);
        check(dst, to, capacity);
        return utf8ToUtf16(MemorySegment.ofBuffer(src), from, n, MemorySegment.ofArray(dst), to,
                capacity, replacement);
    }

    private static long utf8ToUtf16(
            MemorySegment src, long at, long n, MemorySegment dst, long to, long capacity,
            int replacement) {
        try {
            return known((long) UTF8_TO_UTF16.invokeExact(src, at, n, dst, to, capacity,
                    replacement));
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    static long utf8ToLatin1(byte[] src, int at, int n, byte[] dst, int to, int capacity) {
        check(src, at, n);
        check(dst, to, capacity);
        return utf8ToLatin1(MemorySegment.ofArray(src), at, n, MemorySegment.ofArray(dst), to,
                capacity);
    }

    static long utf8ToLatin1(ByteBuffer src, int at, int n, byte[] dst, int to, int capacity) {
        int from = positionIn(src, at, n);
        check(dst, to, capacity);
        return utf8ToLatin1(MemorySegment.ofBuffer(src), from, n, MemorySegment.ofArray(dst), to,
                capacity);
    }

    private static long utf8ToLatin1(MemorySegment src, long at, long n, MemorySegment dst,
            long to, long capacity) {
        try {
            return known((long) UTF8_TO_LATIN1.invokeExact(src, at, n, dst, to, capacity));
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    static long utf16Length(byte[] src, int at, int n, int replacement) {
        return utf16Length(slice(src, at, n), n, replacement);
    }

    static long utf16Length(ByteBuffer src, int at, int n, int replacement) {
        return utf16Length(slice(src, at, n), n, replacement);
    }

    private static long utf16Length(MemorySegment src, long n, int replacement) {
        try {
            return known((long) UTF16_LENGTH.invokeExact(src, n, replacement));
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    static long findMalformed(byte[] src, int at, int n) {
        return findMalformed(slice(src, at, n), n);
    }

    static long findMalformed(ByteBuffer src, int at, int n) {
        return findMalformed(slice(src, at, n), n);
    }

    private static long findMalformed(MemorySegment src, long n) {
        try {
            return known((long) FIND_MALFORMED.invokeExact(src, n));
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    static long asciiPrefix(byte[] src, int at, int n) {
        return asciiPrefix(slice(src, at, n), n);
    }

    static long asciiPrefix(ByteBuffer src, int at, int n) {
        return asciiPrefix(slice(src, at, n), n);
    }

    private static long asciiPrefix(MemorySegment src, long n) {
        try {
            return known((long) ASCII_PREFIX.invokeExact(src, n));
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    // The calls that take an index get segments of whole arrays and buffers. These segments are
    // created directly before the call: compilers eliminate such an object only if its last
    // constructor is at most fifteen calls deep.

    private static void check(byte[] array, int at, int n) {
        Objects.checkFromIndexSize(at, n, array.length);
    }

    private static void check(char[] array, int at, int n) {
        Objects.checkFromIndexSize(at, n, array.length);
    }

    private static void checkStringArray(byte[] array, int at, int n) {
        Objects.checkFromIndexSize(at, n, array.length / 2);
    }

    /**
     * Converts an index in a buffer to an index in the buffer's memory segment. The segment starts
     * at the buffer's position.
     */
    private static int positionIn(ByteBuffer buffer, int at, int n) {
        return Objects.checkFromIndexSize(at - buffer.position(), n, buffer.remaining());
    }

    private static long capacity(MemorySegment segment, long at) {
        long size = segment.byteSize();
        return size - Objects.checkFromToIndex(at, size, size);
    }

    private static MemorySegment slice(char[] array, int at, int n) {
        return MemorySegment.ofArray(array).asSlice(2L * at, 2L * n);
    }

    private static MemorySegment slice(byte[] array, int at, int n) {
        return MemorySegment.ofArray(array).asSlice(at, n);
    }

    private static MemorySegment slice(ByteBuffer buffer, int at, int n) {
        return MemorySegment.ofBuffer(buffer.slice(at, n));
    }

    /**
     * Returns {@code result} if it is a count, the position of malformed text, or {@link #NO_ROOM}.
     * Any other result is a bug in this class or in the library, and causes an exception.
     */
    private static long known(long result) {
        if (result != NO_ROOM && result < -1L - MOST_UNITS) {
            throw new IllegalStateException("the native library refused a call: "
                    + (result - NO_ROOM));
        }
        return result;
    }

    /**
     * Returns the exception that the caller throws after a failed native call. A runtime exception
     * is returned unchanged; its cause is a segment that is closed or confined to another thread.
     */
    private static RuntimeException thrown(Throwable e) {
        if (e instanceof RuntimeException exception) {
            return exception;
        }
        if (e instanceof Error error) {
            throw error;
        }
        return new IllegalStateException(e);
    }
}
