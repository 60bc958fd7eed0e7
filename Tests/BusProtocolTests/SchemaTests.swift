import BusProtocol
import JSON
import Testing

@Suite struct SchemaValidationTests {
    private let change = Schema.object([
        .required("device", .string(minLength: 1)),
        .optional("format", .anyOf([.string(), .object([.required("width", .integer(min: 1))])])),
        .optional("values", .map(of: .integer(), max: 2)),
    ])

    private func why(_ schema: Schema, _ value: JSONValue) -> String? { schema.validate(value)?.message }

    @Test func unknownMembersAreRefusedByName() {
        #expect(why(change, ["device": "a", "fmt": 1])?.hasPrefix("fmt: is no member") == true)
        #expect(why(change, ["device": "a", "fmt": 1])?.contains("device, format, values") == true)
    }

    @Test func additionalMembersAreTakenWhereTheyMayBe() {
        #expect(why(.object([], additional: true), ["x": 1]) == nil)
    }

    @Test func theAlternativeThatWasMeantIsTold() {
        #expect(why(change, ["device": "a", "format": ["width": 0]]) == "format.width: must be at least 1")
        #expect(why(change, ["device": "a", "format": ["widht": 1]])?.hasPrefix("format.widht") == true)
        #expect(why(change, ["device": "a", "format": true]) == "format: must be a string or an object")
    }

    @Test func lengthsCountCharacters() {
        #expect(why(.string(maxLength: 2), "éé") == nil)
        #expect(why(.string(maxLength: 2), "ééé") == "params: must have at most 2 characters")
    }

    @Test func wholeNumbersAreIntegersHoweverTheyAreWritten() {
        #expect(why(.integer(min: 1, max: 3), .number(2)) == nil)
        #expect(why(.integer(), .number(2.5)) == "params: must be an integer")
        #expect(why(.integer(min: 1, max: 3), 4) == "params: must be 1 to 3")
        #expect(why(.number(min: 0), true) == "params: must be a number")
    }

    @Test func mapsAreBounded() {
        #expect(
            why(change, ["device": "a", "values": ["x": 1, "y": 2, "z": 3]]) == "values: must have at most 2 members")
        #expect(why(change, ["device": "a", "values": ["x": "1"]]) == "values.x: must be an integer")
    }

    @Test func namesFromOutsideAreCut() throws {
        let name = String(repeating: "n", count: 100_000)
        let error = try #require(change.validate(.object(["device": "a", name: 1])))
        #expect(error.message.utf8.count < 400)
    }

    @Test func everyMethodRefusesWhatItDoesNotKnow() {
        for method in MethodTable.all {
            let error = method.params.validate(["no such member": 1])
            #expect(error?.data["path"] == "no such member", "\(method.name)")
            #expect(MethodTable[method.name] == method)
        }
        #expect(MethodTable["no.method"] == nil)
    }
}
