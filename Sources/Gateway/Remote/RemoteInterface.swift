import BusProtocol
import BusServer
import Glibc
import LinuxIO
import Logging
import ZeroMQ

/// All that is served to other machines: the door, the three ports, and whose keys are let in.
final class RemoteSide {
    private let logger: Logger
    private let keys: GuestBook
    private let visitors: Visitors
    private let herald: Herald
    private let door: RemoteDoor
    private let commands: CommandRelay
    private let events: EventRelay
    private let media: MediaRelay
    private let absences: Absences
    private var refusals = RefusalLog()

    /// Milliseconds that who has no connection any more has to come back, as on the bus's own machine.
    private static let absence: Int64 = 5000

    /// - Parameter stateDirectory: where the gateway's own keys are unless the configuration says so; nil: nowhere.
    init(
        _ settings: GatewayConfiguration.TCP, _ place: BusPlace, _ desk: MediaDesk, _ events: BusEvents,
        _ herald: Herald, stateDirectory: String?, logger: Logger
    ) throws(GatewayError) {
        let (context, loop) = (place.context, place.loop)
        self.herald = herald
        self.logger = logger
        guard let path = settings.serverKeyPath ?? stateDirectory.map({ "\($0)/server.key" }) else {
            throw GatewayError(
                description:
                    "there is no place for the gateway's own keys: name a file for them, [tcp] server_key = \"/…/server.key\", or set $STATE_DIRECTORY",
                isMisconfigured: true)
        }
        let own = try ServerKeys.load(path)
        let keys = GuestBook(
            loop, of: "key", path: settings.keysPath, keptPath: "\(path).known", logger: logger,
            source: { KeysFile.read(settings.keysPath, logger: logger) },
            tell: { [weak herald] in herald?.revoked($0, then: $1) },
            change: { [weak herald] in herald?.changed(Request.Principal(name: $0.name, role: $0.role), then: $1) })
        let visitors = Visitors(
            loop, total: settings.connections, perAddress: settings.connectionsPerAddress, logger: logger)
        self.keys = keys
        self.visitors = visitors
        absences = Absences(loop, milliseconds: Self.absence)
        do throws(ZeroMQError) {
            door = try RemoteDoor(context, loop) { keys[$0] != nil && visitors.admits($0) }
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
        } catch  where [EADDRINUSE, EADDRNOTAVAIL, EACCES].contains(error.code) {
            throw .cannotListen("\(settings.listen) or the two ports after it", "tcp.listen", error.code)
        } catch {
            throw GatewayError(description: "\(error)")
        }
        keys.onCut = { [weak self] in self?.cutOff($0) }
        visitors.onLeft = { [absences] in absences.began($0) }
        visitors.onCame = { [absences] in absences.ended($0) }
        absences.onOver = { [weak self] in self?.left($0) }
        door.onRefused = { [weak self] in self?.tellRefused($0, $1) }
        herald.whoIsHere { [weak self] name in self?.isHere(name) ?? false }
        // Those whose keys were taken out while no gateway ran are told of now.
        keys.read()
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

    private func cutOff(_ guests: [GuestList.Entry]) {
        let affected = Set(guests.map(\.key))
        commands.drop { affected.contains($0) }
        media.drop { affected.contains($0) }
        visitors.shutDown { affected.contains($0) }
    }

    private func isHere(_ name: String) -> Bool { keys.key(of: name).map(visitors.isHere) ?? false }

    private func tellRefused(_ address: String, _ key: String?) {
        let name = key.map { String($0.prefix(8)) } ?? "none"
        guard refusals.isToBeTold("\(address) \(name)", at: MonotonicClock.now()) else { return }
        let isKnown = key.map { keys[$0] != nil } ?? false
        // Public keys are no secrets.
        logger.info(
            isKnown
                ? "a client is not let in: its key has as many connections as one may have"
                : "a client is not let in: its key is not among those in the file",
            metadata: ["address": "\(address)", "key": "\(name)…", "refused": "\(door.refused)"])
    }

    private func left(_ key: String) {
        guard let entry = keys.owner(of: key), !visitors.isHere(key) else { return }
        herald.left(Request.Principal(name: entry.name, role: entry.role))
    }
}
