import BusProtocol
import CaptureCore
import JSON
import LinuxIO
import Logging
import Testing

@testable import Worker

@Suite struct OrderQueueTests {
    /// Does nothing until it is told to, and notes what came.
    private final class Carrier: OrderHandler {
        var begun: [String] = []
        var answers: [(UInt64, Result<JSONValue, BusError>)] = []
        private var finish: [OrderQueue.Finish] = []

        func willCarryOut(_ order: WorkerOrder) {}
        func didCarryOut() {}

        func carryOut(_ order: WorkerOrder, _ finish: @escaping OrderQueue.Finish) throws(BusError) {
            begun.append("\(order.number)")
            self.finish.append(finish)
        }

        func takeBack(_ transaction: String, _ finish: @escaping OrderQueue.Finish) {
            begun.append("back \(transaction)")
            self.finish.append(finish)
        }

        func finishNext() { finish.removeFirst()(.success([:])) }
    }

    private let carrier = Carrier()
    private let line: OrderQueue

    init() {
        line = OrderQueue(device: "cam0", logger: Logger(label: "test")) { [carrier] in carrier.answers.append(($0, $1))
        }
        line.carrier = carrier
    }

    private func order(_ number: UInt64, _ action: WorkerOrder.Action = .readControls, fence: UInt64? = nil)
        -> WorkerOrder
    {
        WorkerOrder(number: number, fence: fence, action: action)
    }

    @Test func `each waits for the one before it, and is answered once`() throws {
        try line.append(order(1))
        try line.append(order(2))
        #expect(carrier.begun == ["1"] && carrier.answers.isEmpty)
        carrier.finishNext()
        #expect(carrier.begun == ["1", "2"] && carrier.answers.map(\.0) == [1])
        carrier.finishNext()
        #expect(carrier.answers.map(\.0) == [1, 2])
    }

    @Test
    func `orders of a coordinator that has gone are not carried out, and what was begun isn't answered to the next`()
        throws
    {
        try line.append(order(1))
        try line.append(order(2))
        line.abandon(["t"])
        try line.append(order(1))
        carrier.finishNext()
        #expect(carrier.begun == ["1", "back t"] && carrier.answers.isEmpty)
        carrier.finishNext()
        #expect(carrier.begun == ["1", "back t", "1"])
        carrier.finishNext()
        #expect(carrier.answers.map(\.0) == [1])
    }

    @Test func `work that is no order comes before all that waits, and the end behind it`() throws {
        var (done, hasEnded) = ([() -> Void](), false)
        try line.append(order(1))
        try line.append(order(2))
        line.giveUp(["t"]) { hasEnded = true }
        line.work { done.append($0) }
        carrier.finishNext()
        #expect(carrier.begun == ["1"] && done.count == 1)
        done[0]()
        #expect(carrier.begun == ["1", "back t"])
        carrier.finishNext()
        #expect(carrier.begun == ["1", "back t", "2"] && !hasEnded)
        carrier.finishNext()
        #expect(hasEnded)
    }

    @Test func `no more than 64 wait, but what ends a change is taken`() throws {
        for number in 0...64 { try line.append(order(UInt64(number))) }
        let error = #expect(throws: BusError.self) { try line.append(order(65)) }
        #expect(error?.reason == .limitExceeded && error?.data["limit"] == "orders")
        try line.append(order(66, .finish(transaction: "t")))
    }

    @Test func `a newer lock that came while an order waited has it refused`() throws {
        try line.append(order(1))
        try line.append(order(2, .apply(transaction: "t"), fence: 7))
        line.fences.raise(to: 8)
        carrier.finishNext()
        guard case .failure(let error)? = carrier.answers.last?.1 else {
            return #expect(Bool(false), "it was carried out")
        }
        #expect(error.reason == .lockLost && error.data["fence"] == 8 && carrier.begun == ["1"])
    }
}
