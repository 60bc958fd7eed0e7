import CameraBusTesting
import JSON
import LinuxIO
import Testing

@testable import Settings

/// The language of configuration files. Nothing that is written in one ends the program that reads it.
@Suite struct TOMLTests {
    @Test func `a document has the values that Python's tomllib reads`() throws {
        let text = #"""
            title = "a \"quoted\" é ✓ \u00e9\n"
            literal = 'C:\path'
            whole = 1_000
            hex = 0xff
            large = 9223372036854775807
            small = -9223372036854775808
            fraction = 6.25e-2
            yes = true
            empty = []
            mixed = [1, "two", [3.5], {four = 4}]
            dotted.key."with space" = 1
            text = """
            first
            second"""
            [table]
            value = -7
            [table.below]
            list = [
                "a", # a comment
                "b",
            ]
            [[row]]
            name = "one"
            [[row]]
            name = "two"
            """#
        let judge = try ProcessOutput(
            program: Programs.python,
            arguments: ["-c", "import json, sys, tomllib; print(json.dumps(tomllib.loads(sys.argv[1])))", text])
        while !judge.read(), waitUntilReadable(judge.rawValue, by: .usual) {}
        #expect(try TOMLText.json(text) == JSONValue(parsing: judge.bytes))
    }

    @Test func `dates, times and infinity are strings`() throws {
        let json = try TOMLText.json("day = 2026-11-27\nmoment = 2026-11-27T10:00:00.5Z\nmuch = inf\n")
        #expect(json == ["day": "2026-11-27", "moment": "2026-11-27T10:00:00.5Z", "much": "Infinity"])
        var reader = try TableReader(toml: "much = inf\n")
        #expect(throws: SettingsError.self) { try reader.number("much", 0...1) }
    }

    // Each of these ended toml++ 3.3 by an assertion, by undefined behaviour or by the end of its stack.
    @Test(arguments: ["[[[", "[.", "[\\x", "[a]\nb = 1\n[.]\n", "[" + String(repeating: "a.", count: 100_000) + "a]"])
    func `a text that ends the parser is an error with its line`(_ text: String) {
        #expect {
            try TOMLText.json(text)
        } throws: { error in
            let line = text.split(separator: "\n").firstIndex { $0.hasPrefix("[") && $0 != "[a]" }
            return (error as? SettingsError)?.description.hasPrefix("line \((line ?? 0) + 1): ") ?? false
        }
    }

    @Test(arguments: [
        ("a = 1\n[", "line 2: "), ("a = 1\n[\n", "line 2: "), ("a = 1\r\n[\r\nb = 2\r\n", "line 2: "),
        ("[bus]\nlog_level = 1\n[\n[devices]\n", "line 3: "), ("a = 1\na = 2", "line 2: "), ("x", "line 1: "),
        ("[a\n", "line 1: "), ("a = " + String(repeating: "[", count: 100_000), "line 1: "),
        ("a = 1\nb = \(Self.arrays(65))\n", "line 2: nested deeper"),
        ("a = 1\n" + String(repeating: "b.", count: 10_000) + "c = 1\n", "line 2: nested deeper"),
    ])
    func `what is wrong has its line`(_ text: String, _ start: String) {
        #expect { try TOMLText.json(text) } throws: { ($0 as? SettingsError)?.description.hasPrefix(start) ?? false }
    }

    @Test func `a document may be as deep as JSON is read, and is not made longer by that`() throws {
        #expect(try TOMLText.json("a = \(Self.arrays(62))\n")["a"] != nil)
    }

    private static func arrays(_ depth: Int) -> String {
        String(repeating: "[", count: depth) + "1" + String(repeating: "]", count: depth)
    }

    @Test func `a document may be empty`() throws {
        #expect(try TOMLText.json("") == [:])
        #expect(try TOMLText.json("# only this\n\n") == [:])
    }

    @Test func `any damage to a file is an error or another document`() throws {
        let file = Array(
            "[devices]\nvirtual = 2\norder = [\"cam0\", 'b']\n[[rig]]\nname = \"left\"\n[a.b]\nc = {d = 1.5}\n"
                .unicodeScalars)
        let marks = Array("[]{}=.,\"'\\\n#_-+0x\u{FEFE}\u{0}e".unicodeScalars)
        var random = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            var text = file
            for _ in 0...Int.random(in: 0..<4, using: &random) {
                let place = Int.random(in: 0..<text.count, using: &random)
                let mark = marks[Int.random(in: 0..<marks.count, using: &random)]
                if Bool.random(using: &random) { text.insert(mark, at: place) } else { text[place] = mark }
            }
            var string = ""
            string.unicodeScalars.append(contentsOf: text)
            // This process continues, and an error names the line.
            do throws(SettingsError) {
                #expect(try TOMLText.json(string).object != nil, "\(string.debugDescription)")
            } catch {
                #expect(
                    error.description.hasPrefix("line ") || error.description.contains("deep"),
                    "\(error): \(string.debugDescription)")
            }
        }
    }
}
