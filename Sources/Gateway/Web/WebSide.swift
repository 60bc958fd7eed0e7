import BusProtocol
import BusServer
import LinuxIO
import Logging
import ZeroMQ

/// All that is served over HTTP: where it listens, and who may use it.
final class WebSide {
    private let desk: WebDesk
    private let access: WebAccess
    private let admissions = Admissions()
    private let server: WebServer
    private let settings: GatewayConfiguration.Web
    private let logger: Logger
    private var watch: Loop.Token?

    /// Milliseconds after which a revocation is told once more: what was on its way to the bus before has come by then.
    private static let afterthought: Int64 = 1000
    private static let maximumTokenBytes = 1 << 20

    /// Listens, but serves nobody yet.
    init(_ desk: WebDesk, logger: Logger) throws(GatewayError) {
        self.desk = desk
        self.logger = logger
        settings = desk.settings
        let hosts = HostCheck(listen: settings.listen, hosts: settings.hosts, origins: settings.origins)
        var users: Set<UInt32>?
        if !settings.letsAllHereIn {
            users = [0, CurrentProcess.uid]
            if let owner = File.owner(of: desk.place.directory.path) { users?.insert(owner) }
        }
        access = WebAccess(hosts, localRole: settings.localRole, localUsers: users)
        server = try WebServer(
            settings.listen, WebSite(desk, access, admissions), total: settings.connections,
            perAddress: settings.connectionsPerAddress, desk.counters, logger: logger)
        reload()
        guard let path = settings.tokensPath else { return }
        do throws(SystemError) {
            let file = try FileWatch(path)
            watch = desk.place.loop.watch(.descriptor(file.rawValue)) { [weak self] in
                if file.hasChanged() { self?.reload() }
            }
        } catch {
            logger.error(
                "the file of tokens can't be watched: after a change, SIGHUP has it read",
                metadata: ["error": "\(error)"])
        }
    }

    deinit { desk.place.loop.cancel(watch) }

    /// - Parameter ended: called on the loop, when nobody can be served any more.
    func run(ended: @escaping () -> Void) {
        desk.onEnd = ended
        logger.notice("the page is served", metadata: ["address": "http://\(settings.listen)/"])
        Task.detached { [server, desk] in
            await server.run()
            desk.mailbox.post { desk.onEnd?() }
        }
    }

    /// Takes in what the file of tokens says. One that is wrong lets nobody in who needs one.
    func reload() {
        guard let path = settings.tokensPath else { return }
        var tokens = WebTokens()
        do {
            guard File.isSecret(path) else {
                throw GatewayError(
                    description: "others may read or write it; chmod 640, owner root or the gateway's user")
            }
            let bytes = try File.readAtOnce(path, limit: Self.maximumTokenBytes)
            tokens = try WebTokens(parsing: String(decoding: bytes, as: UTF8.self))
        } catch {
            logger.error(
                "nobody is let in from elsewhere: the file of tokens can't be read",
                metadata: ["file": "\(path)", "error": "\(error)"])
        }
        let before = access.tokens.visitors
        access.tokens = tokens
        let gone = Set(before.map(\.principal)).subtracting(tokens.visitors.map(\.principal))
        admissions.shutDown { gone.contains($0) }
        for principal in gone {
            logger.notice("what a token may has changed: its connections end", metadata: ["name": "\(principal.name)"])
            desk.revoked(principal)
            desk.place.loop.schedule(afterMilliseconds: Self.afterthought) { [weak self] in
                guard let self, !access.tokens.visitors.contains(where: { $0.principal.name == principal.name }) else {
                    return
                }
                desk.revoked(principal)
            }
        }
    }
}
