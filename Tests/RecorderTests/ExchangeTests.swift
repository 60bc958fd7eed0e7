import LinuxIO
import Testing

@testable import Recorder

@Suite("What the threads of a recorder tell one another")
struct ExchangeTests {
    @Test func `pauses that nobody obeys do not pile up`() throws {
        let exchange = try Exchange(work: Semaphore())
        for number in 0..<Exchange.maximumCommands {
            let time = Int64(number)
            #expect(exchange.order(number % 2 == 0 ? .pause(time) : .resume(time)))
        }
        let isTaken = exchange.order(.pause(100))
        #expect(!isTaken)
        #expect(exchange.takeCommand() == .pause(0))
        let isTakenNow = exchange.order(.pause(100))
        #expect(isTakenNow)
    }
}
