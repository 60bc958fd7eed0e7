import Synchronization

/// The bytes of messages that are counted in it, until libzmq is done with them. Used from any thread.
public final class ByteCount: Sendable {
    private let count = Atomic<Int>(0)

    public init() {}

    public var bytes: Int { count.load(ordering: .relaxed) }

    fileprivate func change(by difference: Int) { count.wrappingAdd(difference, ordering: .relaxed) }
}

extension Message {
    /// Takes over another message's bytes, not copied, and has them counted until libzmq is done with them.
    public func share(_ other: Message, countedIn counts: [ByteCount]) throws(ZeroMQError) {
        let loan = CountedLoan(other, counts)
        try other.withUnsafeBytes { (bytes) throws(ZeroMQError) in try borrow(bytes, from: loan) }
    }
}

/// Keeps the message whose bytes they are.
private final class CountedLoan: MessageOwner, @unchecked Sendable {
    private let frame: Message
    private let count: Int
    private let counts: [ByteCount]

    init(_ frame: Message, _ counts: [ByteCount]) {
        self.frame = frame
        self.counts = counts
        count = frame.count
        super.init()
        for each in counts { each.change(by: count) }
    }

    override func giveBack() {
        for each in counts { each.change(by: -count) }
    }
}
