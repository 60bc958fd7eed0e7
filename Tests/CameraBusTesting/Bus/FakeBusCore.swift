import BusProtocol
import JSON
import LinuxIO
import Synchronization
import ZeroMQ

/// The thread of a ``FakeBus``: its sockets, and what it knows.
final class FakeBusCore: Sendable {
    struct Store {
        var epoch = "e1"
        var sequence: Int64 = 0
        var state: [String: JSONValue] = [:]
        var last: [String: Int64] = [:]
        var requests: [Request] = []
        var subscriptions: [String] = []
        var acknowledges = true
        var givesSignOfLife = false
    }

    /// Only used on the thread.
    final class Sockets {
        let command: Socket
        let events: Socket
        var media: [String: Socket] = [:]
        var isStopping = false

        init(_ path: String, _ devices: [String]) throws(ZeroMQError) {
            let context = try Context()
            command = try Socket(context, .router)
            try command.bind("ipc://\(path)/command.sock")
            events = try Self.publisher(context, "\(path)/events.sock")
            for device in devices { media[device] = try Self.publisher(context, "\(path)/media/\(device).sock") }
        }

        private static func publisher(_ context: Context, _ path: String) throws(ZeroMQError) -> Socket {
            let socket = try Socket(context, .extendedPublish)
            try socket.set(.xpubVerboser, 1)
            try socket.setWelcomeMessage(Topic.welcome.bytes)
            try socket.bind("ipc://\(path)")
            return socket
        }
    }

    let store = Mutex(Store())
    private let path: String
    private let devices: [String]
    private let answers: FakeBus.Answers
    private let wake: EventDescriptor
    private let posted = Mutex<[@Sendable (Sockets) -> Void]>([])
    private let isBound: EventDescriptor
    private let failure = Mutex<ZeroMQError?>(nil)

    init(path: String, devices: [String], answers: @escaping FakeBus.Answers) throws {
        self.path = path
        self.devices = devices
        self.answers = answers
        wake = try EventDescriptor()
        isBound = try EventDescriptor()
    }

    func waitUntilBound() throws {
        let set = try PollSet([.descriptor(isBound.rawValue)])
        try set.wait()
        isBound.drain()
        if let failure = failure.withLock({ $0 }) { throw failure }
    }

    func post(_ action: @escaping @Sendable (Sockets) -> Void) {
        posted.withLock { $0.append(action) }
        wake.signal()
    }

    func run() {
        let sockets: Sockets
        let publishers: [Socket]
        let set: PollSet
        do throws(ZeroMQError) {
            sockets = try Sockets(path, devices)
            publishers = [sockets.events] + sockets.media.values
            set = try PollSet(
                [.descriptor(wake.rawValue), .socket(sockets.command)] + publishers.map(PollSet.Source.socket))
        } catch {
            failure.withLock { $0 = error }
            isBound.signal()
            return
        }
        isBound.signal()
        while true {
            wake.drain()
            let actions = posted.withLock { posted in
                defer { posted = [] }
                return posted
            }
            for action in actions { action(sockets) }
            if sockets.isStopping { return }
            while let message = try? sockets.command.receive() { answer(message) }
            for publisher in publishers {
                while let message = try? publisher.receive() { hear(message, publisher) }
            }
            guard (try? set.wait()) != nil else { return }
        }
    }

    private func hear(_ message: [Message], _ publisher: Socket) {
        guard let bytes = message.first?.bytes, let kind = bytes.first else { return }
        let topic = String(decoding: bytes.dropFirst(), as: UTF8.self)
        let (acknowledges, givesSignOfLife) = store.withLock { store in
            if kind == 1 {
                store.subscriptions.append(topic)
            } else {
                store.subscriptions.removeAll { $0 == topic }
            }
            return (store.acknowledges, store.givesSignOfLife)
        }
        if acknowledges, kind == 1, case .ack? = Topic.parse(Array(topic.utf8)) {
            if givesSignOfLife { _ = try? publisher.send(frames: [Topic.heartbeat.bytes, Array("{}".utf8)]) }
            _ = try? publisher.send(frames: [Array(topic.utf8), Announcement.ack(refused: nil)])
        }
    }

    private func answer(_ message: [Message]) {
        let frames = message.map { [UInt8]($0.bytes) }
        let (envelope, body) = RequestEnvelope.split(frames.dropFirst(), size: \.count)
        guard let bytes = body.first else { return }
        let address = [frames[0]] + envelope
        let request: Request
        switch bytes.withUnsafeBytes({ Request.parse($0) }) {
        case .success(let parsed): request = parsed
        case .failure(let failure):
            return reply(address, id: failure.id, .error(failure.error))
        }
        store.withLock { $0.requests.append(request) }
        let respond: @Sendable (FakeBus.Reply) -> Void = { [weak self] reply in
            if let id = request.id { self?.reply(address, id: id, reply) }
        }
        if !answers(request, respond) { respond(usual(request)) }
    }

    private func reply(_ address: [[UInt8]], id: JSONValue, _ reply: FakeBus.Reply) {
        let frames: [[UInt8]]
        switch reply {
        case .result(let result, let attachments):
            frames = [Response.success(id: id, result: result)] + attachments
        case .error(let error): frames = [Response.failure(id: id, error: error)]
        case .nothing: return
        }
        post { _ = try? $0.command.send(frames: address + frames) }
    }

    private func usual(_ request: Request) -> FakeBus.Reply {
        store.withLock { store in
            switch request.method {
            case "bus.hello":
                return .result([
                    "server": "CameraBus", "version": "0", "protocol": 1, "features": ["keys", "locks"],
                    "you": ["uid": JSONValue(CurrentProcess.uid), "gid": 0, "pid": JSONValue(CurrentProcess.pid)],
                    "authorization": ["video": "authorized"],
                    "endpoints": ["command": "", "events": "", "media": [:]], "epoch": .string(store.epoch),
                    "sequence": .integer(store.sequence), "limits": ["requestBytes": 1_048_576],
                ])
            case "bus.ping", "device.unlock", "bus.cancel": return .result([:])
            case "bus.snapshot":
                let prefix = request.params["prefix"]?.string ?? ""
                return .result([
                    "epoch": .string(store.epoch), "sequence": .integer(store.sequence),
                    "state": .object(store.state.filter { $0.key.hasPrefix(prefix) }),
                ])
            case "device.list":
                return .result(["devices": .array(devices.compactMap { store.state["state/device/\($0)/"] })])
            case "device.get":
                let device = request.params["device"]?.string ?? ""
                guard let value = store.state["state/device/\(device)/"] else {
                    return .error(BusError(.deviceNotFound, "There is no device '\(device)'."))
                }
                return .result(["device": value])
            default: return .error(.methodNotFound(request.method))
            }
        }
    }
}
