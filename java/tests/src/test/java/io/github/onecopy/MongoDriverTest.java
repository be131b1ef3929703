package io.github.onecopy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Filters;
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.bson.BsonDocument;
import org.bson.BsonInt32;
import org.bson.BsonString;
import org.bson.BsonType;
import org.bson.ByteBuf;
import org.bson.Document;
import org.bson.RawBsonDocument;
import org.bson.codecs.Codec;
import org.bson.codecs.CollectibleCodec;
import org.bson.codecs.DocumentCodec;
import org.bson.codecs.configuration.CodecRegistries;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Sends onecopy's documents by mongo-java-driver to a server, which decodes and encodes them, and
 * tests that they return unchanged. The server keeps its documents in memory; it is an independent
 * implementation, not MongoDB.
 */
final class MongoDriverTest {
    private static final String[] TEXTS = {"", "Lodz", "Zürich", "Привет, мир", "東京都".repeat(400),
            "a 😀 b".repeat(50), "x".repeat(70_000)};

    /** Test vectors with types that this server does not support: it closes the connection. */
    private static final Set<String> UNKNOWN =
            Set.of("binary 1", "binary 2", "binary 5", "binary 9", "binary 255", "pointer",
            "symbol", "code with scope");

    private static MongoServer server;
    private static MongoClient client;
    private static MongoDatabase database;

    @BeforeAll
    static void start() {
        server = new MongoServer(new MemoryBackend());
        client = MongoClients.create(server.bindAndGetConnectionString());
        database = client.getDatabase("onecopy");
    }

    @AfterAll
    static void stop() {
        client.close();
        server.shutdownNow();
    }

    @Test
    void textsOfTheOutputAreFoundByTheirContents() {
        MongoCollection<RawBsonDocument> cities = database.getCollection("cities",
                RawBsonDocument.class);
        NativeBsonOutput output = new NativeBsonOutput();
        for (int id = 0; id < TEXTS.length; id++) {
            output.truncateToPosition(0);
            BsonDocuments.theirs(new BsonDocument("_id", new BsonInt32(id))
                    .append("name", new BsonString(TEXTS[id])), output);
            cities.insertOne(new RawBsonDocument(output.asByteBuffer().array(), 0, output.size()));
        }
        // The driver's writer encodes each query, and the server compares the text with the stored
        // one.
        for (int id = 0; id < TEXTS.length; id++) {
            RawBsonDocument found = cities.find(Filters.eq("name", TEXTS[id])).first();
            assertEquals(id, found.getInt32("_id").getValue());
            assertEquals(TEXTS[id], found.getString("name").getValue());
        }
        assertNull(cities.find(Filters.eq("name", "Zurich")).first());
    }

    @Test
    void documentsOfTheWriterComeBackAsTheyWere() throws IOException {
        MongoCollection<RawBsonDocument> ours = database.getCollection("ours",
                RawBsonDocument.class);
        MongoCollection<RawBsonDocument> theirs = database.getCollection("theirs",
                RawBsonDocument.class);
        List<BsonDocuments.Vector> vectors = BsonDocuments.vectors().stream()
                .filter(vector -> vector.document() != null && !UNKNOWN.contains(vector.name()))
                .toList();
        assertTrue(vectors.size() >= 80);
        for (int id = 0; id < vectors.size(); id++) {
            BsonDocument document = new BsonDocument("_id", new BsonInt32(id))
                    .append("v", vectors.get(id).document());
            ours.insertOne(new RawBsonDocument(BsonDocuments.ours(document)));
            theirs.insertOne(new RawBsonDocument(BsonDocuments.theirs(document)));
            RawBsonDocument back = ours.find(Filters.eq("_id", id)).first();
            assertEquals(theirs.find(Filters.eq("_id", id)).first(), back, vectors.get(id).name());
            assertEquals(back, BsonDocuments.ours(bytes(back)), vectors.get(id).name());
        }
    }

    private static byte[] bytes(RawBsonDocument document) {
        ByteBuf buffer = document.getByteBuffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    @Test
    void theGuidesCodecServesAClient(@TempDir Path folder) throws ReflectiveOperationException,
            IOException {
        BsonGuideTest.compile("NativeCodec", folder);
        try (URLClassLoader loader = new URLClassLoader(new URL[] {folder.toUri().toURL()})) {
            Constructor<?> constructor = loader.loadClass("NativeCodec")
                    .getDeclaredConstructor(CollectibleCodec.class);
            constructor.setAccessible(true);
            Codec<?> codec = (Codec<?>) constructor.newInstance(new DocumentCodec());
            MongoCollection<Document> cities = database.getCollection("codec")
                    .withCodecRegistry(CodecRegistries.fromRegistries(
                    CodecRegistries.fromCodecs(codec), database.getCodecRegistry()));
            List<Document> documents = new ArrayList<>();
            for (String text : TEXTS) {
                documents.add(new Document("name", text).append("tags", List.of(text, "a"))
                        .append("in", new Document("n", 1L)));
            }
            cities.insertMany(documents);
            List<Document> back = cities.find().into(new ArrayList<>());
            assertEquals(documents, back);
            assertEquals(BsonType.OBJECT_ID, back.get(0).toBsonDocument().get("_id").getBsonType());
        }
    }
}
