import BusServer

/// Bodies that wait for something to be ready, each for a limited time.
final class ReadyQueue {
    /// Further bodies don't wait: they are called at once.
    static let maximumWaiting = 64

    private let loop: Loop
    private var waiting: [UInt64: (timer: Loop.Token, body: () -> Void)] = [:]
    private var lastNumber: UInt64 = 0

    init(_ loop: Loop) { self.loop = loop }

    /// Calls the body at the next ``tell()``, or after so many milliseconds; at once where too many wait.
    func wait(milliseconds limit: Int64, _ body: @escaping () -> Void) {
        guard waiting.count < Self.maximumWaiting else { return body() }
        lastNumber += 1
        let number = lastNumber
        let timer = loop.schedule(afterMilliseconds: limit) { [weak self] in
            self?.waiting.removeValue(forKey: number)?.body()
        }
        waiting[number] = (timer, body)
    }

    /// Lets all go on, in the order in which they came.
    func tell() {
        let told = waiting
        waiting = [:]
        for number in told.keys.sorted() {
            loop.cancel(told[number]?.timer)
            told[number]?.body()
        }
    }
}
