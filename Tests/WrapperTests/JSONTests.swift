import JSON
import Testing

@Suite struct JSONReading {
    @Test(arguments: [
        (#"{"a":[1,-2.5,true,null,"x"]}"#, JSONValue.object(["a": [1, -2.5, true, .null, "x"]])),
        (#"9223372036854775807"#, .integer(.max)), (#""é\u0000\n""#, .string("é\0\n")), ("  [] ", .array([])),
    ])
    func `takes what is JSON`(text: String, value: JSONValue) throws {
        #expect(try JSONValue(parsing: text) == value)
    }

    private static let withNUL: [(text: String, value: JSONValue)] = [
        (
            #"{"\u0000":1,"a\u0000b":{"\u0001":"\u00010","\\u0000":"\u0000"}}"#,
            ["\0": 1, "a\0b": ["\u{1}": "\u{1}0", "\\u0000": "\0"]]
        ),
        (
            #"{"\u0000":1,"\u00010":2,"0":3,"\u0001":[4,"\u0001"],"":5}"#,
            ["\0": 1, "\u{1}0": 2, "0": 3, "\u{1}": [4, "\u{1}"], "": 5]
        ),
    ]

    @Test(arguments: withNUL)
    func `a member's name may hold a NUL`(text: String, value: JSONValue) throws {
        #expect(try JSONValue(parsing: text) == value)
        #expect(try JSONValue(parsing: value.description) == value)
    }

    @Test func `what is wrong beside a name with a NUL is found where it stands`() throws {
        let damaged = #"{"\u0000":1,"\u0001":2,}"#
        let error = try #require(throws: JSONError.self) { try JSONValue(parsing: damaged) }
        #expect(error.offset == damaged.utf8.count)
        for text in [#"{"\u0000":1,"\u0000":2}"#, #"{"\u0000":1"#, #"{"\u0000":"\u000"}"#, #"{"\u0000":\"#] {
            #expect(throws: JSONError.self) { try JSONValue(parsing: text) }
        }
    }

    @Test(arguments: [
        "", "{", #"{"a":1"#, #"{"a":1,"a":2}"#, "[1,]", "{} {}", "nul", "'a'", "01", #""\ud800""#, "NaN",
        "99999999999999999999", "[1 2]", #"{"a" 1}"#, "\u{FEFF}{}",
    ])
    func `refuses what is not, and what could be read in two ways`(text: String) {
        #expect(throws: JSONError.self) { try JSONValue(parsing: text) }
    }

    @Test(
        arguments: [[0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0xFE]] as [[UInt8]])
    func `refuses bytes that are no UTF-8`(bytes: [UInt8]) {
        #expect(throws: JSONError.self) { try bytes.withUnsafeBytes { try JSONValue(parsing: $0) } }
    }

    @Test func `refuses deep nesting before it is parsed, and allows brackets in strings`() throws {
        let deep = String(repeating: "[", count: 65) + String(repeating: "]", count: 65)
        #expect(throws: JSONError.self) { try JSONValue(parsing: deep) }
        _ = try JSONValue(parsing: String(deep.dropFirst().dropLast()))
        let bomb = String(repeating: "{\"a\":", count: 500_000)
        #expect(throws: JSONError.self) { try JSONValue(parsing: bomb) }
        let text = "\"\\\"\(String(repeating: "[", count: 100))\""
        #expect(try JSONValue(parsing: text).string?.count == 101)
    }

    @Test func `writes what it reads, members in order`() throws {
        let text = #"{"a":-9223372036854775808,"b":[0.5,1e-07],"c":"\"\\\u0001é"}"#
        #expect(try JSONValue(parsing: text).description == text)
        #expect(JSONValue.number(.infinity).description == "null")
    }
}
