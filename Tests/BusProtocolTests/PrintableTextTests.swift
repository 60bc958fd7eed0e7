import BusProtocol
import JSON
import Testing

@Suite struct PrintableTextTests {
    @Test(arguments: [
        ("left camera é ✓ 日本", "left camera é ✓ 日本", "left camera é ✓ 日本"),
        ("a\nb\r\tc", "a\u{FFFD}b\u{FFFD}\u{FFFD}c", "a\\nb\\r\\tc"),
        ("\u{1B}[31m\u{7}\u{85}", "\u{FFFD}[31m\u{FFFD}\u{FFFD}", "\\u{1b}[31m\\u{7}\\u{85}"),
        (
            "\u{202E}\u{2028}\u{2029}\u{200B}", "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}",
            "\\u{202e}\\u{2028}\\u{2029}\\u{200b}"
        ),
        ("\r\n", "\u{FFFD}\u{FFFD}", "\\r\\n"), ("", "", ""),
    ])
    func `nothing in it steers a terminal or begins a line`(text: String, printable: String, escaped: String) {
        #expect(text.printable == printable && text.escaped == escaped)
        // Within JSON it means the same as before.
        let value: JSONValue = ["text": .string(text)]
        let json = value.description.escapedInJSON
        #expect(json.printable == json && (try? JSONValue(parsing: Array(json.utf8))) == value, "\(json)")
    }

    @Test func `lines stay lines`() { #expect("a\t\u{1B}[b\r\nc".printableLines == "a\t\u{FFFD}[b\u{FFFD}\nc") }

    @Test func `JSON keeps its line feeds, and what is beyond 16 bits has two escapes`() {
        #expect("[\n\"\u{9B}\u{E0001}\"\n]".escapedInJSON == "[\n\"\\u009b\\udb40\\udc01\"\n]")
    }
}
