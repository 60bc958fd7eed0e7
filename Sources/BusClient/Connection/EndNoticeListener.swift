import BusProtocol
import ZeroMQ

/// Listens to the end notice of the bus, for subscriptions at workers, which do not get it.
final class EndNoticeListener {
    private let socket: Socket

    init(_ context: Context, _ place: BusPlace) throws(ZeroMQError) {
        socket = try Socket(context, .subscribe)
        try socket.subscribe(Topic.event(.bus).text)
        try place.connect(socket, to: .events)
    }

    var source: PollSet.Source { .socket(socket) }

    /// Whether it has come since this was asked last.
    func hasCome() -> Bool {
        var hasCome = false
        while let message = try? socket.receive(maximumFrames: 64) {
            hasCome = hasCome || message.first?.bytes.elementsEqual(Topic.event(.bus).text.utf8) ?? false
        }
        return hasCome
    }
}
