package io.github.onecopy;

import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Tuple;
import org.bson.BsonArray;
import org.bson.BsonBinary;
import org.bson.BsonBoolean;
import org.bson.BsonDateTime;
import org.bson.BsonDbPointer;
import org.bson.BsonDecimal128;
import org.bson.BsonDocument;
import org.bson.BsonDouble;
import org.bson.BsonInt32;
import org.bson.BsonInt64;
import org.bson.BsonJavaScript;
import org.bson.BsonJavaScriptWithScope;
import org.bson.BsonMaxKey;
import org.bson.BsonMinKey;
import org.bson.BsonNull;
import org.bson.BsonObjectId;
import org.bson.BsonRegularExpression;
import org.bson.BsonString;
import org.bson.BsonSymbol;
import org.bson.BsonTimestamp;
import org.bson.BsonUndefined;
import org.bson.BsonValue;
import org.bson.types.Decimal128;
import org.bson.types.ObjectId;

/** Generates documents with values of every type, nested up to three levels deep. */
final class BsonArbitraries {
    private BsonArbitraries() {}

    /**
     * Generates texts with code points of all planes. They contain NUL only if {@code withNul} is
     * true.
     */
    static Arbitrary<String> texts(boolean withNul) {
        Arbitrary<Integer> points = Arbitraries.oneOf(
                Arbitraries.integers().between(withNul ? 0 : 1, 0x7F),
                Arbitraries.integers().between(0x80, 0xFF),
                Arbitraries.integers().between(0x100, 0xD7FF),
                Arbitraries.integers().between(0xE000, 0xFFFF),
                Arbitraries.integers().between(0x10000, 0x10FFFF));
        Arbitrary<String> mixed = points.array(int[].class).ofMaxSize(40)
                .map(array -> new String(array, 0, array.length));
        Arbitrary<String> ascii = Arbitraries.strings().withCharRange('a', 'z').ofMaxLength(300);
        return Arbitraries.oneOf(mixed, ascii, mixed.map(text -> text.repeat(20)));
    }

    static Arbitrary<BsonDocument> documents() {
        return documents(3);
    }

    private static Arbitrary<BsonDocument> documents(int levels) {
        Arbitrary<String> names = Arbitraries.oneOf(Arbitraries.strings().alpha().ofMaxLength(12),
                texts(false));
        return Arbitraries.maps(names, values(levels)).ofMaxSize(levels == 3 ? 12 : 4)
                .map(BsonArbitraries::document);
    }

    private static BsonDocument document(Map<String, BsonValue> members) {
        BsonDocument document = new BsonDocument();
        document.putAll(members);
        return document;
    }

    private static Arbitrary<BsonValue> values(int levels) {
        Arbitrary<ObjectId> ids = Arbitraries.bytes().array(byte[].class).ofSize(12)
                .map(ObjectId::new);
        List<Arbitrary<? extends BsonValue>> plain = List.of(
                Arbitraries.longs().map(bits -> new BsonDouble(Double.longBitsToDouble(bits))),
                texts(true).map(BsonString::new),
                Combinators.combine(Arbitraries.bytes(),
                Arbitraries.bytes().array(byte[].class).ofMaxSize(30)).as(BsonBinary::new),
                Arbitraries.bytes().array(byte[].class).ofMaxSize(9)
                .map(data -> new BsonBinary((byte) 2, data)),
                Arbitraries.just(new BsonUndefined()),
                ids.map(BsonObjectId::new),
                Arbitraries.of(BsonBoolean.TRUE, BsonBoolean.FALSE),
                Arbitraries.longs().map(BsonDateTime::new),
                Arbitraries.just(BsonNull.VALUE),
                Combinators.combine(texts(false), Arbitraries.of("", "i", "imx"))
                .as(BsonRegularExpression::new),
                Combinators.combine(texts(true), ids).as(BsonDbPointer::new),
                texts(true).map(BsonJavaScript::new),
                texts(true).map(BsonSymbol::new),
                Arbitraries.integers().map(BsonInt32::new),
                Combinators.combine(Arbitraries.integers(), Arbitraries.integers())
                .as(BsonTimestamp::new),
                Arbitraries.longs().map(BsonInt64::new),
                Combinators.combine(Arbitraries.longs(), Arbitraries.longs())
                        .as((high, low) ->
                        new BsonDecimal128(Decimal128.fromIEEE754BIDEncoding(high, low))),
                Arbitraries.just(new BsonMinKey()),
                Arbitraries.just(new BsonMaxKey()));
        Arbitrary<BsonValue> leaves = Arbitraries.oneOf(plain).map(value -> value);
        if (levels == 0) {
            return leaves;
        }
        Arbitrary<BsonValue> nested = Arbitraries.lazyOf(
                () -> documents(levels - 1).map(value -> (BsonValue) value),
                () -> values(levels - 1).list().ofMaxSize(5).map(BsonArray::new),
                () -> Combinators.combine(texts(true), documents(levels - 1))
                .as(BsonJavaScriptWithScope::new));
        return Arbitraries.frequencyOf(
                Tuple.of(6, leaves), Tuple.of(1, nested));
    }
}
