import JSON
import Testing

/// Plain documents are read by a way of their own, which must say of each text what the parser says.
@Suite struct PlainJSONTests {
    /// What the parser says of a text: one that stands beside an escape is never read as plain.
    private static func parsed(_ text: [UInt8]) -> JSONValue? {
        let both = Array("[".utf8) + text + Array(#","\u0041"]"#.utf8)
        guard let elements = (try? JSONValue(parsing: both))?.array, elements.count == 2 else { return nil }
        return elements[0]
    }

    @Test(arguments: [
        "{}", "[]", "{ }", "[ ]", " \t\r\n{\"a\" : 1 , \"b\":[ true,false , null]}\n", "0", "-0", "-7", "007", "-",
        "1.", ".5", "-.5",
        "0.5", "-0.0", "00.5", "1.0", "123456.789", "0.1", "0.3", "179.97", "2.675", "1e3", "1E3", "1.5e-3", "1.5E3",
        "1 .5",
        "123456789012345678", "1234567890123456789", "9223372036854775807", "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809", "12345678901234.5", "123456789012345.6", "0.12345678901234", "0.123456789012345678",
        "0.00000000000001", "0.000000000000000000001", "truex", "tru", "nulll", "fals", "True", #""""#, #""a"#,
        #""a"b"#,
        "\"\u{7F}\"", "\"\u{1F}\"", "\"\t\"", "\"ä\"", #""\n""#, #"{"a":1,"a":1}"#, #"{"a":1,}"#, "[1,]", "[,1]", "{,}",
        "[1 2]", #"{"a"}"#,
        #"{"a":}"#, #"{a:1}"#, #"{"":{"":[]}}"#, "[[[[]]]]", "[}", "{]", "1 2", "[]]", "\u{0B}1", "1\u{00}", "+1", "1,",
        "//",
        #"{"jsonrpc":"2.0","id":7,"method":"device.set","params":{"device":"cam0","controls":{"zoomAbsolute":150,"focusAuto":false}}}"#,
    ])
    func `a text is taken as the parser takes it`(text: String) {
        let value = try? JSONValue(parsing: text)
        #expect(value == Self.parsed(Array(text.utf8)))
        if value == nil {
            #expect(throws: JSONError.self) { try JSONValue(parsing: text) }
        }
    }

    @Test func `whole and damaged documents are taken as the parser takes them`() {
        var random = SystemRandomNumberGenerator()
        var (taken, refused) = (0, 0)
        for _ in 0..<3000 {
            var bytes: [UInt8] = []
            Self.document(4, &random, into: &bytes)
            for _ in 0..<Int.random(in: 0...2, using: &random) where !bytes.isEmpty {
                let index = bytes.indices.randomElement(using: &random) ?? 0
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = Array(#"{}[]":,.0159-+eE tn\ax"#.utf8).randomElement(using: &random) ?? 0
                case 1: bytes.remove(at: index)
                default: bytes.insert(bytes[index], at: index)
                }
            }
            let value = try? JSONValue(parsing: bytes)
            if value == nil { refused += 1 } else { taken += 1 }
            #expect(value == Self.parsed(bytes), "\(String(decoding: bytes, as: UTF8.self))")
        }
        #expect(taken > 300 && refused > 300)
    }

    @Test(arguments: [
        "{}", #"{"a":1}"#, #" { "b" : [1,2] , "a" : {"c":null} } "#, #"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}"#,
    ])
    func `few members are those of the object`(text: String) throws {
        let members = try #require(Array(text.utf8).withUnsafeBytes { JSONValue.fewMembers(parsing: $0) })
        #expect(
            JSONValue.object(Dictionary(uniqueKeysWithValues: members.map { ($0.name, $0.value) }))
                == (try JSONValue(parsing: text)))
    }

    @Test(arguments: [
        "", "[]", "1", #"{"a":1"#, #"{"a":1}}"#, #"{"a":1,}"#, #"{"a":1,"a":1}"#, #"{"a":1} x"#, #"{"a":"\n"}"#,
        #"{"a":[[[1]]]}"#,
        #"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7}"#,
    ])
    func `what is no object of few members is left to the parser`(text: String) {
        #expect(Array(text.utf8).withUnsafeBytes { JSONValue.fewMembers(parsing: $0, maximumDepth: 3) } == nil)
    }

    @Test func `depth is counted in plain documents too`() throws {
        let nested = String(repeating: #"{"a":["#, count: 4) + "1" + String(repeating: "]}", count: 4)
        #expect(throws: JSONError.self) { try JSONValue(parsing: nested, maximumDepth: 7) }
        #expect(try JSONValue(parsing: nested, maximumDepth: 8)["a"]?[0]?["a"]?[0]?["a"]?[0]?["a"]?[0] == 1)
        // What stands side by side isn't deep.
        let wide = "[" + Array(repeating: "{}", count: 100).joined(separator: ",") + "]"
        #expect(try JSONValue(parsing: wide, maximumDepth: 2).array?.count == 100)
    }

    private static func document(
        _ depth: Int, _ random: inout SystemRandomNumberGenerator, into bytes: inout [UInt8]
    ) {
        func space(_ random: inout SystemRandomNumberGenerator) -> [UInt8] {
            Int.random(in: 0..<6, using: &random) == 0
                ? [[0x20, 0x09, 0x0A, 0x0D].randomElement(using: &random) ?? 0x20] : []
        }
        bytes += space(&random)
        switch Int.random(in: 0..<(depth > 0 ? 7 : 5), using: &random) {
        case 0: bytes += Array(["true", "false", "null"].randomElement(using: &random)?.utf8 ?? "".utf8)
        case 1:
            bytes += Array(
                "\"\(["", "a", "cam0", "a longer text than fits", "é", #"\\"#].randomElement(using: &random) ?? "")\""
                    .utf8)
        case 2:
            bytes += Array(
                String(Int64.random(in: .min ... .max, using: &random) >> Int64.random(in: 0..<63, using: &random)).utf8
            )
        case 3:
            bytes += Array(
                "\(Int.random(in: -9999...9999, using: &random)).\(Int.random(in: 0...99_999_999, using: &random))".utf8
            )
        case 4: bytes += Array(String(Double.random(in: -1e20...1e20, using: &random)).utf8)
        case 5:
            bytes.append(UInt8(ascii: "["))
            for index in 0..<Int.random(in: 0..<4, using: &random) {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                document(depth - 1, &random, into: &bytes)
            }
            bytes += space(&random) + [UInt8(ascii: "]")]
        default:
            bytes.append(UInt8(ascii: "{"))
            for index in 0..<Int.random(in: 0..<4, using: &random) {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                bytes +=
                    space(&random)
                    + Array("\"\(["a", "b", "c", "", "jsonrpc"].randomElement(using: &random) ?? "")\"".utf8)
                bytes += space(&random) + [UInt8(ascii: ":")]
                document(depth - 1, &random, into: &bytes)
            }
            bytes += space(&random) + [UInt8(ascii: "}")]
        }
        bytes += space(&random)
    }
}
