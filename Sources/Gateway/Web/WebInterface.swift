import BusProtocol
import BusServer
import LinuxIO
import Logging
import ZeroMQ

/// Everything that is served over HTTP: the address, and the allowed users.
final class WebInterface {
    private let busAccess: WebBusAccess
    private let access: WebAuthorization
    private let tokenConnections = TokenConnections()
    private let server: WebServer
    private let settings: GatewayConfiguration.Web
    private let logger: Logger
    private let store: RemoteUserStore

    private static let maximumTokenBytes = 1 << 20
    /// Invalid lines that are logged each time.
    private static let maximumProblems = 10

    /// Listens, but serves nobody yet.
    ///
    /// - Parameter keptPath: the gateway's own file of whose tokens it took last; nil: there is no place for it.
    init(_ busAccess: WebBusAccess, keptPath: String?, logger: Logger) throws(GatewayError) {
        self.busAccess = busAccess
        self.logger = logger
        let settings = busAccess.settings
        self.settings = settings
        let hosts = HostCheck(listen: settings.listen, hosts: settings.hosts, origins: settings.origins)
        var users: Set<UInt32>?
        if !settings.letsAllHereIn {
            users = [0, CurrentProcess.uid]
            if let owner = File.owner(of: busAccess.place.directory.path) { users?.insert(owner) }
        }
        let access = WebAuthorization(hosts, localRole: settings.localRole, localUsers: users)
        self.access = access
        server = try WebServer(
            settings.listen, WebRouter(busAccess, access, tokenConnections), total: settings.connections,
            perAddress: settings.connectionsPerAddress, busAccess.counters, logger: logger)
        let store = RemoteUserStore(
            busAccess.place.loop, of: "token", path: settings.tokensPath, keptPath: keptPath, logger: logger,
            source: {
                // Without a file of them nobody has a token any more.
                guard let path = settings.tokensPath else { return RemoteUserStore.Reading(isWhole: true) }
                guard let tokens = Self.read(path, logger: logger) else {
                    access.suspendTokens()
                    return RemoteUserStore.Reading()
                }
                access.tokens = tokens
                return RemoteUserStore.Reading(remoteUsers: tokens.remoteUsers, isWhole: tokens.problems.isEmpty)
            },
            tell: { [weak busAccess] name, told in
                busAccess?.revoked(WebTokenTable.Visitor(name: name, role: .nobody).principal, then: told)
            },
            change: { [weak busAccess] remoteUser, told in
                busAccess?.changed(Self.principal(of: remoteUser), then: told)
            })
        self.store = store
        store.onCut = { [tokenConnections, weak busAccess] remoteUsers in
            let gone = Set(remoteUsers.map { Self.principal(of: $0) })
            tokenConnections.shutDown { gone.contains($0.principal) }
            busAccess?.cut(gone)
        }
        busAccess.roleNow = { [weak store] name in
            if name == WebAuthorization.localName { return settings.localRole ?? .nobody }
            return store?.remoteUser { Self.principal(of: $0).name == name }?.role ?? .nobody
        }
        store.read()
    }

    /// As whom the bus knows one of the file.
    private static func principal(of remoteUser: RemoteUserList.Entry) -> Request.Principal {
        WebTokenTable.Visitor(name: remoteUser.name, role: remoteUser.role).principal
    }

    /// - Parameter ended: called on the loop, when nobody can be served any more.
    func run(ended: @escaping () -> Void) {
        busAccess.onEnd = ended
        logger.notice("listening for browsers", metadata: ["address": "http://\(settings.listen)/"])
        Task.detached { [server, busAccess] in
            await server.run()
            busAccess.mailbox.post { busAccess.onEnd?() }
        }
    }

    /// Reads the file of tokens, also where its changes are not told.
    func reload() { store.read() }

    /// The tokens of the file; nil: it can't be read, or other users may write it, so no tokens are accepted.
    private static func read(_ path: String, logger: Logger) -> WebTokenTable? {
        let tokens: WebTokenTable
        do {
            let bytes = try File.readAtOnce(path, limit: maximumTokenBytes)
            guard File.isSecret(path) else {
                throw GatewayError(
                    description:
                        "other users may read or write it; run chmod 640, and make root or the gateway's user its owner"
                )
            }
            tokens = WebTokenTable(parsing: String(decoding: bytes, as: UTF8.self))
        } catch {
            logger.error(
                "no tokens are accepted: the tokens file can't be read",
                metadata: ["file": "\(path)", "error": "\(error)"])
            return nil
        }
        for problem in tokens.problems.prefix(maximumProblems) {
            logger.warning(
                "an invalid line of the tokens file is ignored",
                metadata: ["file": "\(path)", "problem": "\(problem)"])
        }
        return tokens
    }
}
