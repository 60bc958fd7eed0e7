import BusProtocol
import CameraBusTesting
import JSON
import Testing

/// The published schemas are those that the bus uses.
@Suite struct SchemaTests {
    /// `camerabus call bus.methods > Protocol/schema/methods.json` makes the file anew.
    @Test func methodsFileIsTheMethodTable() throws {
        let file = try Vectors.document("schema/methods.json")
        #expect(file["$defs"] == MethodTable.json["$defs"])
        let published = file["methods"]?.array ?? []
        for method in MethodTable.all {
            #expect(published.contains(method.json), "\(method.name) is not in methods.json as it is in the table")
        }
        #expect(file == MethodTable.json)
    }

    @Test func topicsFileIsTheTopicTable() throws {
        #expect(try Vectors.document("schema/topics.json") == TopicTable.json)
    }

    @Test func errorsFileIsTheErrorTable() throws {
        #expect(try Vectors.document("schema/errors.json") == BusError.table)
    }

    /// Every reason is explained once, and what methods say of theirs is not said of a reserved one.
    @Test func everyReasonHasItsMeaning() {
        #expect(
            BusError.meanings.map(\.reason).sorted { $0.rawValue < $1.rawValue }
                == BusError.Reason.allCases.sorted { $0.rawValue < $1.rawValue })
        let inUse = Set(BusError.meanings.filter(\.isInUse).map(\.reason))
        for method in MethodTable.all { #expect(inUse.isSuperset(of: method.errors), "\(method.name)") }
    }

    /// A reference to nothing would refuse every value.
    @Test(arguments: ["methods", "topics", "errors"])
    func everyReferenceHasItsDefinition(_ name: String) throws {
        let document = try Vectors.document("schema/\(name).json")
        let definitions = try #require(document["$defs"]?.object)
        #expect(definitions.count == Schema.definitions.count)
        for reference in references(in: document) {
            let name = try #require(reference.split(separator: "/").last.map(String.init))
            #expect(reference == "#/$defs/\(name)")
            #expect(definitions[name] != nil, "\(reference)")
        }
    }

    private func references(in json: JSONValue) -> [String] {
        switch json {
        case .array(let elements): elements.flatMap(references)
        case .object(let members):
            members.flatMap { name, member in
                name == "$ref" ? [member.string].compactMap { $0 } : references(in: member)
            }
        default: []
        }
    }
}
