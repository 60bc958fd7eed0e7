import BusProtocol
import CameraBusTesting
import JSON
import Testing

/// The specification says what the library does: its examples are checked, and nothing is left out.
@Suite struct DocumentTests {
    /// `C:` and `D:` lines are requests, `B:` lines replies, `E:` and `M:` lines messages of the events and the media
    /// socket.
    @Test(arguments: [
        "transcripts/frames.txt", "transcripts/live-photo.txt", "transcripts/lock-and-configure.txt",
        "transcripts/movie.txt",
        "transcripts/photo.txt", "transcripts/sound.txt", "transcripts/state.txt", "transcripts/take.txt",
    ])
    func dialoguesAreWhatTheProtocolTakes(_ document: String) throws {
        #expect(try checkExamples(document) > 8)
    }

    @Test func examplesAreWhatTheProtocolTakes() throws {
        #expect(try Self.specification().map(checkExamples).reduce(0, +) > 100)
    }

    // The number of examples in the document.
    private func checkExamples(_ document: String) throws -> Int {
        var method: Method?
        var count = 0
        for line in try Vectors.text(document).split(separator: "\n") {
            guard let mark = line.firstIndex(of: ":"), ["C", "D", "B", "E", "M"].contains(line[..<mark]) else {
                continue
            }
            let rest = String(line[line.index(mark, offsetBy: 2)...])
            count += 1
            let error: BusError?
            switch line[..<mark] {
            case "C", "D":
                let request = try Array(rest.utf8).withUnsafeBytes { try Request.parse($0).get() }
                method = MethodTable[request.method]
                error = try #require(method, "\(request.method)").params.validate(request.params)
            case "B": error = try check(try Reply(parsing: Array(rest.utf8)), try #require(method))
            default:
                let parts = rest.split(separator: " ", maxSplits: 1)
                try #require(parts.count == 2)
                let topic = try #require(Topic.parse(parts[0].utf8))
                let entry = try #require(TopicTable.entry(topic, isMedia: line[..<mark] == "M"))
                error = try #require(entry.header).validate(try JSONValue(parsing: String(parts[1])))
            }
            #expect(error == nil, "\(rest): \(error?.message ?? "")")
        }
        return count
    }

    @Test func jsonBlocksAreJSON() throws {
        for document in try Self.specification() {
            var isInside = false
            for line in try Vectors.text(document).split(separator: "\n") {
                if line.hasPrefix("```") {
                    isInside = line == "```json"
                } else if isInside {
                    #expect(throws: Never.self, "\(line)") { try JSONValue(parsing: String(line)) }
                }
            }
        }
    }

    @Test func everyMethodHasItsHeadingWithItsParameters() throws {
        let lines = try Self.text().split(separator: "\n")
        for method in MethodTable.all {
            // In the heading, or where that would be too long, in a block below it.
            let start = try #require(
                lines.firstIndex {
                    $0.hasPrefix("\(method.name) {") || $0.hasPrefix("### ") && $0.contains("\(method.name) {")
                }, "\(method.name)")
            let heading = lines[start...].prefix(6).joined(separator: " ")
            let opening = try #require(heading.firstRange(of: "\(method.name) {"))
            let list = heading[opening.upperBound...].prefix { $0 != "}" }
            let names = list.split(separator: ",").map { $0.trimmed }
            guard case .object(let properties, _) = method.params else {
                Issue.record("\(method.name) takes no object")
                continue
            }
            let expected = properties.map { $0.isRequired ? $0.name : "\($0.name)?" }
            #expect(Set(names) == Set(expected), "\(heading)")
        }
    }

    @Test func everyReasonIsExplained() throws {
        let text = try Self.text()
        for meaning in BusError.meanings {
            #expect(text.contains("`\(meaning.reason.rawValue)`"))
            guard meaning.isInUse else { continue }
            #expect(text.contains("\n| `\(meaning.reason.rawValue)` |"), "\(meaning.reason)")
        }
    }

    @Test func everyLimitIsTold() throws {
        let text = try Self.text()
        for name in BusLimits.Name.allCases { #expect(text.contains("`\(name.rawValue)`"), "\(name)") }
    }

    /// Each numbered rule once in the specification and once in the list of what checks it.
    @Test func everyRuleIsInTheListOfConformance() throws {
        let rules = try (Self.specification() + ["RING.md"]).flatMap { try Vectors.text($0).split(separator: "\n") }
            .compactMap(Self.rule)
        let listed = try Vectors.text("CONFORMANCE.md").split(separator: "\n").filter { $0.hasPrefix("| [") }.map {
            String($0.dropFirst(2).prefix { $0 != " " })
        }
        #expect(rules.count > 80)
        #expect(Set(rules).count == rules.count)
        #expect(Set(listed).count == listed.count)
        #expect(Set(rules) == Set(listed), "\(Set(rules).symmetricDifference(listed))")
    }

    @Test func everyVectorFileThatIsNamedIsThere() throws {
        for document in try Self.specification() + ["RING.md", "CONFORMANCE.md"] {
            let names = try Vectors.text(document).split(separator: "`").filter {
                $0.hasPrefix("vectors/") && $0.hasSuffix(".json") && !$0.contains("*")
            }
            for name in Set(names) { #expect(throws: Never.self) { try Vectors.document(String(name)) } }
        }
    }

    // `SPEC.md` and its parts, which it links.
    private static func specification() throws -> [String] {
        let links = try Vectors.text("SPEC.md").split(separator: "(").filter { $0.hasPrefix("spec/") }
        let parts = Set(links.map { String($0.prefix { $0 != ")" && $0 != "#" }) }).sorted()
        try #require(parts.count > 8)
        return ["SPEC.md"] + parts
    }

    private static func text() throws -> String { try specification().map(Vectors.text).joined(separator: "\n") }

    // `- [REQ-1] The bus …` and `2. [STA-6] With the snapshot …`: where a rule is made, not where one is mentioned.
    private static func rule(_ line: Substring) -> String? {
        let parts = line.split(separator: " ", maxSplits: 2)
        guard parts.count == 3, line.first != " ", parts[0] == "-" || parts[0].last == ".", parts[1].first == "[",
            parts[1].last == "]"
        else { return nil }
        return String(parts[1])
    }

    private func check(_ reply: Reply, _ method: Method) throws -> BusError? {
        switch reply.result {
        case .success(let result): return method.result.validate(result)
        case .failure(let error):
            let meaning = try #require(BusError.meanings.first { $0.reason == error.reason })
            return meaning.schema.validate(error.json["data"] ?? .null)
        }
    }
}

extension Substring {
    fileprivate var trimmed: String { String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()) }
}
