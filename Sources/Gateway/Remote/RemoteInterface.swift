import BusProtocol
import BusServer
import Glibc
import LinuxIO
import Logging
import ZeroMQ

/// Everything that is served to other machines: the authenticator, the three ports, and the allowed keys.
final class RemoteInterface {
    private let logger: Logger
    private let keys: RemoteUserStore
    private let registry: ConnectionRegistry
    private let departures: DepartureReporter
    private let authenticator: KeyAuthenticator
    private let commands: CommandRelay
    private let events: EventRelay
    private let media: MediaRelay
    private let grace: DisconnectGrace
    private var refusals = RefusalLog()

    /// Milliseconds that who has no connection any more has to come back, as on the bus's own machine.
    private static let absence: Int64 = 5000

    /// - Parameter stateDirectory: where the gateway's own keys are unless the configuration says so; nil: nowhere.
    init(
        _ settings: GatewayConfiguration.TCP, _ place: BusEndpoints, _ distributor: MediaDistributor,
        _ events: BusEvents,
        _ departures: DepartureReporter, stateDirectory: String?, logger: Logger
    ) throws(GatewayError) {
        let (context, loop) = (place.context, place.loop)
        self.departures = departures
        self.logger = logger
        guard let path = settings.serverKeyPath ?? stateDirectory.map({ "\($0)/server.key" }) else {
            throw GatewayError(
                description:
                    "the gateway has no file for its own keys: in gateway.toml set server_key of [tcp] to an absolute "
                    + "path, or set the environment variable STATE_DIRECTORY to a folder",
                isMisconfigured: true)
        }
        let own = try ServerKeys.load(path)
        let keys = RemoteUserStore(
            loop, of: "key", path: settings.keysPath, keptPath: "\(path).known", logger: logger,
            source: { KeysFileReader.read(settings.keysPath, logger: logger) },
            tell: { [weak departures] in departures?.revoked($0, then: $1) },
            change: { [weak departures] in
                departures?.changed(Request.Principal(name: $0.name, role: $0.role), then: $1)
            })
        let registry = ConnectionRegistry(
            loop, total: settings.connections, perAddress: settings.connectionsPerAddress, logger: logger)
        self.keys = keys
        self.registry = registry
        grace = DisconnectGrace(loop, milliseconds: Self.absence)
        do throws(ZeroMQError) {
            authenticator = try KeyAuthenticator(context, loop) { keys[$0] != nil && registry.admits($0) }
            func socket(
                _ kind: Socket.Kind, _ authenticator: TCPAddress.Door, _ waiting: Int, _ maximumBytes: Int
            ) throws(ZeroMQError) -> RemoteSocket {
                let socket = try RemoteSocket(
                    context, kind, settings.listen, authenticator, secretKey: own.secretKey, waiting: waiting,
                    maximumMessageBytes: maximumBytes)
                registry.add(socket)
                return socket
            }
            commands = CommandRelay(
                place, try socket(.router, .command, CommandRelay.waitingAnswers, 2 * BusLimits.maxRequestBytes),
                settings, registry, keys, logger: logger)
            self.events = EventRelay(
                loop, events, try socket(.extendedPublish, .events, EventRelay.waitingMessages, 1024), registry, keys)
            media = MediaRelay(
                loop, distributor, try socket(.router, .media, MediaRelay.waitingMessages, 1024), settings, registry,
                keys)
        } catch  where [EADDRINUSE, EADDRNOTAVAIL, EACCES].contains(error.code) {
            throw .cannotListen("\(settings.listen) or the two ports after it", "tcp.listen", error.code)
        } catch {
            throw GatewayError(description: "\(error)")
        }
        keys.onCut = { [weak self] in self?.cutOff($0) }
        registry.onLeft = { [grace] in grace.began($0) }
        registry.onCame = { [grace] in grace.ended($0) }
        grace.onOver = { [weak self] in self?.left($0) }
        authenticator.onRefused = { [weak self] in self?.tellRefused($0, $1) }
        departures.whoIsHere { [weak self] name in self?.isHere(name) ?? false }
        // Reports users whose keys were removed while no gateway ran.
        keys.read()
        logger.notice(
            "listening for clients on other machines",
            metadata: [
                "listen": "\(settings.listen)", "keys": "\(keys.count)", "server_key": "\(own.publicKey.text)",
            ])
    }

    /// Reads the file of keys, also where its changes are not told.
    func reload() { keys.read() }

    /// What is counted, by name.
    var counts: [(name: String, value: Int)] {
        [
            ("tcp_connections", registry.count), ("tcp_refused_connections_total", registry.refused),
            ("tcp_refused_keys_total", authenticator.refused), ("tcp_refused_requests_total", commands.refusals),
            ("tcp_dropped_answers_total", commands.dropped),
        ]
    }

    private func cutOff(_ remoteUsers: [RemoteUserList.Entry]) {
        let affected = Set(remoteUsers.map(\.key))
        commands.drop { affected.contains($0) }
        media.drop { affected.contains($0) }
        registry.shutDown { affected.contains($0) }
    }

    private func isHere(_ name: String) -> Bool { keys.key(of: name).map(registry.isHere) ?? false }

    private func tellRefused(_ address: String, _ key: String?) {
        let name = key.map { String($0.prefix(8)) } ?? "none"
        guard refusals.isToBeTold("\(address) \(name)", at: MonotonicClock.now()) else { return }
        let isKnown = key.map { keys[$0] != nil } ?? false
        // Public keys are no secrets.
        logger.info(
            isKnown
                ? "client refused: its key has the maximum number of connections"
                : "client refused: its key is not in the keys file",
            metadata: ["address": "\(address)", "key": "\(name)…", "refused": "\(authenticator.refused)"])
    }

    private func left(_ key: String) {
        guard let entry = keys.owner(of: key), !registry.isHere(key) else { return }
        departures.left(Request.Principal(name: entry.name, role: entry.role))
    }
}
