import BusProtocol
import JSON
import Testing

@testable import CaptureCore

@Suite final class RequestTableTests {
    private var ledger = RequestTable()

    private func begin(
        _ key: String, uid: UInt32 = 1, method: String = "m", params: JSONValue = [:], at now: Instant = 0
    ) throws(BusError) -> RequestTable.Admission {
        try ledger.begin(uid: uid, key: key, method: method, params: params, at: now)
    }

    private func finish(_ key: String, uid: UInt32 = 1, _ value: JSONValue = true, at now: Instant = 0) {
        ledger.finish(uid: uid, key: key, result: .success(value), at: now)
    }

    @Test func aRequestIsRunOnce() throws {
        #expect(try begin("k", params: ["a": 1, "b": 2]) == .run)
        #expect(try begin("k", params: ["b": 2, "a": 1]) == .join)
        finish("k", 7)
        #expect(try begin("k", params: ["a": 1, "b": 2]) == .replay(.success(7)))
        finish("k", 8)
        #expect(try begin("k", params: ["a": 1, "b": 2]) == .replay(.success(7)))
    }

    @Test func aFailureIsAnAnswerToo() throws {
        let error = BusError(.deviceBusy, "Busy.")
        _ = try begin("k")
        ledger.finish(uid: 1, key: "k", result: .failure(error), at: 0)
        #expect(try begin("k") == .replay(.failure(error)))
    }

    @Test func keysBelongToTheirUser() throws {
        #expect(try begin("k", uid: 1) == .run)
        #expect(try begin("k", uid: 2) == .run)
        finish("k", uid: 2)
        #expect(try begin("k", uid: 1) == .join)
    }

    @Test(arguments: [("other", ["a": 1]), ("m", ["a": 2]), ("m", [:])] as [(String, JSONValue)])
    func anotherRequestUnderTheSameKeyIsRefused(method: String, params: JSONValue) throws {
        _ = try begin("k", params: ["a": 1])
        let error = #expect(throws: BusError.self) { try begin("k", method: method, params: params) }
        #expect(error?.reason == .invalidParams && error?.data["path"] == "key")
        finish("k")
        #expect(throws: BusError.self) { try begin("k", method: method, params: params) }
    }

    @Test func anAnswerIsKeptForTenMinutes() throws {
        _ = try begin("k")
        // However long it took.
        finish("k", at: 5 * RequestTable.lifetime)
        #expect(try begin("k", at: 6 * RequestTable.lifetime - 1) == .replay(.success(true)))
        #expect(try begin("k", at: 6 * RequestTable.lifetime) == .run)
        #expect(try begin("k", at: 100 * RequestTable.lifetime) == .join)
    }

    @Test func aUsersOldestFinishedKeyMakesRoom() throws {
        for index in 0..<256 { _ = try begin("k\(index)") }
        let error = #expect(throws: BusError.self) { try begin("more") }
        #expect(error?.reason == .limitExceeded && error?.data["maximum"] == 256)
        #expect(try begin("more", uid: 2) == .run)
        finish("k9")
        finish("k3")
        #expect(try begin("more") == .run)
        #expect(try begin("k3") == .replay(.success(true)))
        #expect(try begin("k8") == .join)
        // k9 finished first, so it went; its key is free again, and costs k3.
        #expect(try begin("k9") == .run)
        #expect(throws: BusError.self) { try begin("k3") }
        #expect(ledger.count == 256 + 1)
    }

    @Test func aKeyThatMadeRoomAndIsUsedAgainIsKeptFromThenOn() throws {
        _ = try begin("k")
        finish("k")
        for index in 0..<256 { _ = try begin("k\(index)") }
        finish("k0")
        #expect(try begin("k", at: 50) == .run)
        finish("k", at: 100)
        #expect(try begin("k", at: RequestTable.lifetime + 50) == .replay(.success(true)))
        #expect(try begin("k", at: RequestTable.lifetime + 100) == .run)
    }

    @Test func bytesAreBounded() throws {
        let room = 1 << 16
        ledger = RequestTable(maximumBytes: room)
        let large = JSONValue.string(String(repeating: "x", count: room >> 6))
        for index in 0..<100 {
            let key = "k\(index)"
            #expect(try begin(key, uid: UInt32(index)) == .run)
            finish(key, uid: UInt32(index), large)
            #expect(ledger.bytes <= room)
        }
        #expect((40..<64).contains(ledger.count))
        #expect(try begin("k99", uid: 99) == .replay(.success(large)))
        #expect(try begin("k0", uid: 0) == .run)
        // What is still running is not forgotten, so there may be no room.
        var refused: BusError?
        for index in 0..<100 {
            do throws(BusError) { _ = try begin("r\(index)", uid: 1000 + UInt32(index), params: large) } catch {
                refused = error
            }
        }
        #expect(refused?.reason == .limitExceeded && refused?.data["limit"] == "keyBytes")
        #expect(ledger.bytes <= room)
    }

    @Test func anAnswerLargerThanAllIsNotKept() throws {
        let room = 1 << 12
        ledger = RequestTable(maximumBytes: room)
        _ = try begin("small")
        finish("small")
        _ = try begin("k")
        finish("k", .string(String(repeating: "x", count: room)))
        #expect(ledger.count == 0 && ledger.bytes == 0)
        #expect(try begin("k") == .run)
    }

    /// Beside the ledger a plain list of what was answered: an answer that is given again is always the first one.
    @Test(arguments: seeds) func randomHistories(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var answers: [String: JSONValue] = [:]
        var running: Set<String> = []
        var now: Instant = 0
        for step in 0..<3000 {
            let comment: Comment = "seed \(seed), step \(step)"
            now += Int64(random.below(1_000_000_000)) * (random.chance(2) ? 400 : 1)
            let uid = UInt32(random.below(3))
            let key = "k\(random.below(400))"
            let name = "\(uid) \(key)"
            if random.chance(60) {
                switch try? begin(key, uid: uid, at: now) {
                case .run:
                    #expect(!running.contains(name), comment)
                    running.insert(name)
                    answers[name] = nil
                case .join: #expect(running.contains(name), comment)
                case .replay(let result): #expect(try result.get() == answers[name], comment)
                case nil: #expect(!running.contains(name), comment)
                }
            } else if let name = running.randomElement(using: &random) {
                let parts = name.split(separator: " ")
                answers[name] = JSONValue(step)
                running.remove(name)
                finish(String(parts[1]), uid: UInt32(parts[0]) ?? 0, JSONValue(step), at: now)
            }
            #expect(ledger.count <= 3 * 256 && ledger.bytes >= ledger.count * 256, comment)
        }
        // All that can end ends, and then nothing is held any more.
        for name in running {
            let parts = name.split(separator: " ")
            finish(String(parts[1]), uid: UInt32(parts[0]) ?? 0, at: now)
        }
        _ = try begin("last", at: now + RequestTable.lifetime)
        #expect(ledger.count == 1)
    }
}
