import BusProtocol
import BusServer
import LinuxIO
import Logging
import ZeroMQ

/// All that is served to other machines: the door, the three ports, and whose keys are let in.
final class RemoteSide {
    private let loop: Loop
    private let logger: Logger
    private let keys: KeyBook
    private let visitors: Visitors
    private let herald: Herald
    private let door: RemoteDoor
    private let commands: CommandRelay
    private let events: EventRelay
    private let media: MediaRelay

    /// Milliseconds that who has no connection any more has to come back, as on the bus's own machine.
    private static let absence: Int64 = 5000
    /// Milliseconds after which a revocation is told once more: what was on its way to the bus before has come by then.
    private static let afterthought: Int64 = 1000

    /// - Parameter stateDirectory: where the gateway's own keys are unless the configuration says so; nil: nowhere.
    init(
        _ settings: GatewayConfiguration.TCP, _ place: BusPlace, _ desk: MediaDesk, _ events: BusEvents,
        _ herald: Herald, stateDirectory: String?, logger: Logger
    ) throws(GatewayError) {
        let (context, loop) = (place.context, place.loop)
        self.loop = loop
        self.herald = herald
        self.logger = logger
        guard let path = settings.serverKeyPath ?? stateDirectory.map({ "\($0)/server.key" }) else {
            throw GatewayError(
                description:
                    "there is no place for the gateway's own keys: name a file with tcp.server_key, or set $STATE_DIRECTORY"
            )
        }
        let own = try ServerKeys.load(path)
        let keys = KeyBook(loop, path: settings.keysPath, logger: logger)
        let visitors = Visitors(
            loop, total: settings.connections, perAddress: settings.connectionsPerAddress, logger: logger)
        self.keys = keys
        self.visitors = visitors
        do throws(ZeroMQError) {
            door = try RemoteDoor(context, loop) { keys[$0] != nil }
            func socket(
                _ kind: Socket.Kind, _ door: TCPAddress.Door, _ waiting: Int, _ maximumBytes: Int
            ) throws(ZeroMQError) -> RemoteSocket {
                let socket = try RemoteSocket(
                    context, kind, settings.listen, door, secretKey: own.secretKey, waiting: waiting,
                    maximumMessageBytes: maximumBytes)
                visitors.add(socket)
                return socket
            }
            commands = CommandRelay(
                place, try socket(.router, .command, CommandRelay.waitingAnswers, 2 * BusLimits.maxRequestBytes),
                settings, visitors, keys, logger: logger)
            self.events = EventRelay(
                loop, events, try socket(.extendedPublish, .events, EventRelay.waitingMessages, 1024), visitors, keys)
            media = MediaRelay(
                loop, desk, try socket(.router, .media, MediaRelay.waitingMessages, 1024), settings, visitors, keys)
        } catch {
            throw GatewayError(description: "\(error)")
        }
        keys.onChange = { [weak self] in self?.keysChanged($0) }
        visitors.onLeft = { [weak self] in self?.left($0) }
        logger.notice(
            "clients on other machines are served",
            metadata: [
                "listen": "\(settings.listen)", "keys": "\(keys.count)", "server_key": "\(own.publicKey.text)",
            ])
    }

    /// Reads the file of keys, also where its changes are not told.
    func reload() { keys.read() }

    /// What is counted, by name.
    var counts: [(name: String, value: Int)] {
        [
            ("tcp_connections", visitors.count), ("tcp_refused_connections_total", visitors.refused),
            ("tcp_refused_keys_total", door.refused), ("tcp_refused_requests_total", commands.refusals),
            ("tcp_dropped_answers_total", commands.dropped),
        ]
    }

    private func keysChanged(_ changed: [AllowedKeys.Entry]) {
        let affected = Set(changed.map(\.key))
        commands.drop { affected.contains($0) }
        media.drop { affected.contains($0) }
        visitors.shutDown { affected.contains($0) }
        for entry in changed {
            logger.notice("what a key may has changed: its connections end", metadata: ["name": "\(entry.name)"])
            herald.revoked(entry.name)
            loop.schedule(afterMilliseconds: Self.afterthought) { [weak self] in
                guard let self, !keys.isKnown(entry.name) else { return }
                herald.revoked(entry.name)
            }
        }
    }

    private func left(_ key: String) {
        loop.schedule(afterMilliseconds: Self.absence) { [weak self] in
            guard let self, let entry = keys[key], !visitors.isHere(key) else { return }
            herald.left(Request.Principal(name: entry.name, role: entry.role))
        }
    }
}
