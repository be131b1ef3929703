package io.github.onecopy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Compiles and runs the programs of the guide, and compares what they print with the output on the
 * page. Also tests that the reference names each type, method and reason.
 */
final class BsonGuideTest {
    private static final Pattern PROGRAM =
            Pattern.compile(
            "<!-- file: (\\w+)\\.java -->\n```java\n(.*?)\n```\n\n```text\n(.*?)\n```",
            Pattern.DOTALL);

    /** A program in the guide: the name of its class, its source, and the output on the page. */
    record Program(String name, String source, String prints) {
        @Override
        public String toString() {
            return name;
        }
    }

    static Stream<Program> programs() throws IOException {
        Matcher matcher = PROGRAM.matcher(page("docs/guide/java-bson.md"));
        return matcher.results()
                .map(found -> new Program(found.group(1), found.group(2), found.group(3)));
    }

    private static String page(String path) throws IOException {
        return Files.readString(BsonDocuments.repository().resolve(path));
    }

    @ParameterizedTest
    @MethodSource("programs")
    void itPrintsTheOutputOnThePage(Program program, @TempDir Path folder) throws IOException,
            InterruptedException {
        compile(program, folder);
        String before = System.getProperty("java.class.path");
        Path printed = folder.resolve("printed");
        List<String> command =
                new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java")
                .toString()));
        command.addAll(List.of("-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8",
                "-Dsun.stdout.encoding=UTF-8"));
        // A program that does not import the driver must run without it on the class path.
        String path = program.source().contains("import org.bson")
                ? before
                : withoutTheDriver(before);
        command.addAll(List.of("-cp", path + System.getProperty("path.separator") + folder,
                program.name()));
        Process process = new ProcessBuilder(command).redirectOutput(printed.toFile())
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        assertEquals(0, process.waitFor());
        assertEquals(program.prints(), Files.readString(printed, StandardCharsets.UTF_8).strip());
    }

    /** Compiles the guide's program with this class name into a folder. */
    static void compile(String name, Path folder) throws IOException {
        compile(programs().filter(program -> program.name().equals(name)).findFirst()
                .orElseThrow(), folder);
    }

    private static void compile(Program program, Path folder) throws IOException {
        Path source = Files.writeString(folder.resolve(program.name() + ".java"), program.source());
        String path = System.getProperty("java.class.path");
        int compiled = ToolProvider.getSystemJavaCompiler()
                .run(null, null, null, "-encoding", "UTF-8",
                "-Xlint:all,-processing,-classfile,-path", "-Werror", "-cp", path,
                source.toString());
        assertEquals(0, compiled);
    }

    @Test
    void everyProgramOfThePageIsRun() throws IOException {
        long blocks = page("docs/guide/java-bson.md").lines().filter("```java"::equals).count();
        assertEquals(blocks, programs().count());
        assertTrue(blocks >= 4);
    }

    @Test
    void theDriverIsNotOnTheClassPathOfProgramsWithoutIt() {
        String before = "/m/org/mongodb/bson/5.14.0/bson-5.14.0.jar:/m/onecopy-0.1.0.jar";
        assertEquals("/m/onecopy-0.1.0.jar", withoutTheDriver(before));
        assertNotEquals(System.getProperty("java.class.path"),
                withoutTheDriver(System.getProperty("java.class.path")));
    }

    private static String withoutTheDriver(String classPath) {
        return classPath.replaceAll("[^:]*/bson-[0-9.]+jar:?", "");
    }

    @Test
    void theReferenceNamesEachTypeMethodAndReason() throws IOException {
        String reference = page("docs/reference/java-bson.md");
        Stream<String> types = Arrays.stream(BsonType.values()).map(type -> "`" + type + "`");
        Stream<String> reasons = Arrays.stream(BsonException.Reason.values())
                .map(reason -> "`" + reason + "`");
        Stream<String> methods = Stream.of(BsonWriter.class, BsonReader.class)
                .flatMap(type -> Arrays.stream(type.getMethods()))
                .filter(method -> method.getDeclaringClass() != Object.class)
                .map(method -> method.getName());
        List<String> missing = Stream.of(types, reasons, methods).flatMap(all -> all).distinct()
                .filter(name -> !reference.contains(name)).toList();
        assertEquals(List.of(), missing);
    }
}
