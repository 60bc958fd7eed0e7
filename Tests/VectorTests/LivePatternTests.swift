import BusProtocol
import CameraBusTesting
import JSON
import Testing

/// The patterns of the live vectors, and that those are written as their files say.
@Suite struct LivePatternTests {
    @Test(arguments: Vectors.cases("live-patterns"))
    func pattern(_ vector: VectorCase) throws {
        let pattern = LivePattern(saved: vector.json["saved"]?.object ?? [:])
        let problem = pattern.mismatch(vector.json["value"] ?? .null, vector.json["pattern"] ?? .null)
        #expect((problem == nil) == vector.isValid, "\(problem ?? "matches")")
    }

    @Test func partsOfAReplyAreKept() {
        var pattern = LivePattern()
        let reply: JSONValue = ["result": ["list": [["id": "f0"], ["id": "f1"]], "name": "x"]]
        let missing = pattern.save(
            ["a": "result.list[1].id", "b": "result.name", "c": "result.list[2].id"], from: reply)
        #expect(pattern.saved == ["a": "f1", "b": "x"])
        #expect(missing == ["result.list[2].id"])
        #expect(pattern.filled(["x": ["${a}", "${c}"]]) == ["x": ["f1", "${c}"]])
    }

    /// Requests of the live vectors have parameters that the bus takes, unless it is to say that it doesn't.
    @Test(arguments: Vectors.cases("live-requests"))
    func liveRequest(_ vector: VectorCase) throws {
        for step in try #require(vector.json["steps"]?.array) {
            try #require(step["send"] != nil || step["reply"] != nil)
            guard let request = step["send"] else { continue }
            guard case .success(let parsed) = Request.parse(request) else {
                Issue.record("no request: \(request)")
                continue
            }
            guard let method = MethodTable[parsed.method] else {
                #expect(step["reply"]?["error"]?["data"]?["reason"] == "methodNotFound")
                continue
            }
            if let error = method.params.validate(parsed.params) {
                #expect(step["reply"]?["error"]?["data"]?["reason"] == "invalidParams", "\(error.message)")
            }
            if let reason = step["reply"]?["error"]?["data"]?["reason"]?.string {
                let common: [BusError.Reason] = [
                    .invalidParams, .unauthorized, .limitExceeded, .internalError, .shuttingDown,
                ]
                #expect(
                    (method.errors + common).map(\.rawValue).contains(reason), "\(method.name) can't answer \(reason)")
            }
        }
    }
}
