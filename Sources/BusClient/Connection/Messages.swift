public import JSON

/// A message that was published on a topic of the events socket.
public struct BusMessage: Hashable, Sendable {
    public var topic: String
    /// The JSON that came with it: {epoch, sequence, previous, value or event…}, or a heartbeat.
    public var json: JSONValue

    public init(topic: String, json: JSONValue) {
        self.topic = topic
        self.json = json
    }
}

/// State and events in the order of their publication.
///
/// This side drops nothing. For a slow reader the publisher drops messages; `previous` of a later message shows this.
/// It ends only by an error. The subscription lasts as long as this value lives.
public final class Messages: AsyncSequence, Sendable {
    public typealias Element = BusMessage
    public typealias Failure = ClientError

    /// Messages that are kept for a slow reader, beside those in libzmq's queues.
    static let capacity = 1024

    private let client: Client
    private let number: UInt64
    private let mailbox: Mailbox<BusMessage>

    init(_ client: Client, number: UInt64, mailbox: Mailbox<BusMessage>) {
        self.client = client
        self.number = number
        self.mailbox = mailbox
    }

    deinit { client.endSubscription(number) }

    /// Ends the subscription; who waits gets ``ClientError/closed``.
    public func close() { client.endSubscription(number) }

    /// Ends the subscription when all messages published until now arrived, or that time is over. They can still be
    /// taken.
    func finish(within time: Duration) async {
        await client.flushSubscription(number, within: time)
        close()
    }

    /// The next message.
    ///
    /// - Throws: ``ClientError/silent(_:)`` when not even a heartbeat came for as long as asked for.
    public func next() async throws(ClientError) -> BusMessage {
        let message = try await mailbox.next()
        if mailbox.count == Self.capacity / 2 { client.resumeSubscription(number) }
        return message
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let messages: Messages

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> BusMessage? {
            try await messages.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(messages: self) }
}
