import JSON
import Testing

@testable import CaptureCore

@Suite("The rings that are left of ended workers") struct RingRemaindersTests {
    private let minute: Int64 = 60_000_000_000

    @Test("they count for ten minutes, and at most for one more")
    func time() {
        var left = RingRemainders()
        left.add([1000: 5, 1001: 7], at: 90 * minute + 1)
        left.add([1000: 3], at: 95 * minute)
        #expect(left.bytes(of: 1000, at: 100 * minute) == 8 && left.bytes(of: 1001, at: 100 * minute) == 7)
        #expect(left.bytes(of: 1002, at: 100 * minute) == 0)
        #expect(left.bytes(of: 1000, at: 101 * minute) == 3 && left.bytes(of: 1001, at: 101 * minute) == 0)
        #expect(!left.isOver(at: 105 * minute - 1) && left.isOver(at: 105 * minute))
        var sum = RingRemainders()
        sum.add(left)
        sum.add(left)
        #expect(sum.bytes(of: 1000, at: 100 * minute) == 16)
    }

    @Test("they are passed on, and never so many that a process can't be started with them")
    func passed() throws {
        var left = RingRemainders()
        left.add([1000: 5], at: 0)
        left.add([1000: 6], at: 5 * minute)
        #expect(RingRemainders(json: left.json) == left)
        left.add(Dictionary(uniqueKeysWithValues: (2000..<10_000).map { ($0, Int($0) << 20) }), at: 0)
        #expect(left.json.description.utf8.count < 64 << 10)
        let read = RingRemainders(json: left.json)
        #expect(read.bytes(of: 9999, at: 0) == 9999 << 20 && read.bytes(of: 2000, at: 0) == 0)
        for text in ["7", "[7]", "[[\"a\",1,2]]", "[[-1,1,1]]", "[[1,1,-1]]", "[[1,9e15,1]]", "[[1,1]]"] {
            #expect(RingRemainders(json: try JSONValue(parsing: Array(text.utf8))) == RingRemainders())
        }
    }

    @Test("the report of what users have is read as it was written")
    func report() {
        let used: [UInt32: Int] = [1000: 5 << 30, 0: 1]
        #expect(WorkerReport.ringBytes(of: ["rings": WorkerReport.rings(used)]) == used)
        #expect(WorkerReport.ringBytes(of: ["rings": ["-1": 5, "a": 5, "3": "x", "4": -5]]) == [:])
        #expect(WorkerReport.ringBytes(of: [:]) == [:])
    }
}
