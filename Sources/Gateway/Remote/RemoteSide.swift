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
    /// Descriptors that connections may not take.
    private static let reserve = 256

    /// - Parameter stateDirectory: where the gateway's own keys are unless the configuration says so; nil: nowhere.
    init(
        _ settings: GatewayConfiguration.TCP, _ loop: Loop, _ directory: RuntimeDirectory, stateDirectory: String?,
        logger: Logger
    ) throws(GatewayError) {
        self.loop = loop
        self.logger = logger
        guard let path = settings.serverKeyPath ?? stateDirectory.map({ "\($0)/server.key" }) else {
            throw GatewayError(
                description:
                    "there is no place for the gateway's own keys: name a file with tcp.server_key, or set $STATE_DIRECTORY"
            )
        }
        let own = try ServerKeys.load(path)
        CurrentProcess.raiseDescriptorLimit()
        Context.reserveDescriptors(Self.reserve)
        let keys = KeyBook(loop, path: settings.keysPath, logger: logger)
        let visitors = Visitors(
            loop, total: settings.connections, perAddress: settings.connectionsPerAddress, logger: logger)
        self.keys = keys
        self.visitors = visitors
        do throws(ZeroMQError) {
            let context = try Context()
            // Each connection that requests come over has one to the bus, with its monitor.
            context.setMaximumSockets(4 * settings.connections + 1024)
            door = try RemoteDoor(context, loop) { keys[$0] != nil }
            herald = try Herald(context, loop, directory)
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
                context, loop,
                try socket(.router, .command, CommandRelay.waitingAnswers, 2 * BusLimits.maxRequestBytes), directory,
                settings, visitors, keys, logger: logger)
            events = try EventRelay(
                context, loop, try socket(.extendedPublish, .events, EventRelay.waitingMessages, 1024), directory,
                visitors, keys)
            media = MediaRelay(
                context, loop, try socket(.router, .media, MediaRelay.waitingMessages, 1024), directory, settings,
                visitors, keys, logger: logger)
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
            herald.left(entry)
        }
    }
}
