package io.github.onecopy;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.io.StringWriter;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs every Java snippet of the guides, and compares what it prints with the output on the page.
 */
final class GuideTest {
    private static final Pattern SNIPPET =
            Pattern.compile("```java\n(.*?)```\n\n```text\n(.*?)```", Pattern.DOTALL);

    @TempDir
    private Path folder;

    private record Snippet(String page, String code, String prints) {}

    private static List<Snippet> snippets() throws Exception {
        Path guides = Path.of(System.getProperty("onecopy.guides"));
        List<Snippet> all = new ArrayList<>();
        // The programs of `java-bson.md` are whole files, which BsonGuideTest runs.
        String text = Files.readString(guides.resolve("java.md"));
        int written = text.split("```java\n", -1).length - 1;
        Matcher matcher = SNIPPET.matcher(text);
        while (matcher.find()) {
            all.add(new Snippet("java.md", matcher.group(1), matcher.group(2)));
        }
        assertEquals(written, all.size(),
                "each ```java block has a ```text block directly after it");
        return all;
    }

    @Test
    void everySnippetPrintsTheOutputOnThePage() throws Exception {
        List<Snippet> snippets = snippets();
        assertTrue(!snippets.isEmpty());
        for (int i = 0; i < snippets.size(); i++) {
            Snippet snippet = snippets.get(i);
            assertEquals(snippet.prints, printed("Snippet" + i, snippet.code),
                    snippet.page + ":\n" + snippet.code);
        }
    }

    private String printed(String name, String code) throws Exception {
        Path source = folder.resolve(name + ".java");
        Files.writeString(
                source,
                "import io.github.onecopy.*; import java.lang.foreign.*; "
                        + "import java.nio.*; import java.util.*;\n"
                        + "public final class " + name
                        + " { public static void run() throws Exception {\n" + code + "}}\n");
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StringWriter problems = new StringWriter();
        try (var files = compiler.getStandardFileManager(null, null, UTF_8)) {
            List<String> options = List.of("-cp", System.getProperty("java.class.path"), "-d",
                    folder.toString());
            boolean compiled = compiler.getTask(problems, files, null, options, null,
                    files.getJavaFileObjects(source))
                    .call();
            assertTrue(compiled, problems.toString());
        }
        PrintStream before = System.out;
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (URLClassLoader loader = new URLClassLoader(new URL[] {folder.toUri().toURL()})) {
            System.setOut(new PrintStream(out, true, UTF_8));
            loader.loadClass(name).getMethod("run").invoke(null);
        } finally {
            System.setOut(before);
        }
        return out.toString(UTF_8);
    }
}
