import BusProtocol
import JSON
import Testing

@Suite struct RequestTests {
    /// Whatever comes in is a request, or a refusal that can be sent back.
    @Test func damagedRequestsAreAnswered() {
        var random = SeededGenerator(state: 1)
        let whole = Array(
            #"{"jsonrpc":"2.0","id":"ä7","method":"device.lock","params":{"devices":["cam0"],"wait":1.5e2},"key":"k"}"#
                .utf8)
        var refused = 0
        for _ in 0..<5000 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: index)
                default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
                }
            }
            guard case .failure(let failure) = bytes.withUnsafeBytes({ Request.parse($0) }) else { continue }
            refused += 1
            let reply = Response.failure(id: failure.id, error: failure.error)
            #expect(throws: Never.self) { try Reply(parsing: reply) }
        }
        #expect(refused > 1000)
    }

    @Test func errorsSurviveTheWire() throws {
        for reason in BusError.Reason.allCases {
            let error = BusError(reason, "Do this.", ["holder": ["pid": 4]])
            let reply = try Reply(parsing: Response.failure(id: 7, error: error))
            #expect(reply == Reply(id: 7, result: .failure(error)))
            #expect(BusError(header: error.headerJSON) == error)
        }
    }

    @Test func resultsSurviveTheWire() throws {
        let result: JSONValue = ["text": "\u{0}\n\"\\é", "count": .integer(.max), "list": [1.5, .null, true]]
        #expect(
            try Reply(parsing: Response.success(id: "x", result: result)) == Reply(id: "x", result: .success(result)))
    }

    @Test func whatIsToldOfTheLimitIsTheLimitInForce() {
        let result = Array("{}".utf8).withUnsafeBytes { Request.parse($0, limit: 1) }
        guard case .failure(let failure) = result else {
            Issue.record("taken")
            return
        }
        #expect(failure.error.reason == .limitExceeded)
        #expect(failure.error.data == ["limit": "requestBytes", "maximum": 1])
    }
}

/// Random numbers that are the same in each run (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
