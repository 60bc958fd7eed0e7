import BusProtocol
import BusServer
import LinuxIO
import Logging
import ZeroMQ

/// All that is served over HTTP: where it listens, and who may use it.
final class WebSide {
    private let desk: WebDesk
    private let access: WebAccess
    private let server: WebServer
    private let settings: GatewayConfiguration.Web
    private let logger: Logger
    private var watch: Loop.Token?

    private static let maximumTokenBytes = 1 << 20

    /// Listens, but serves nobody yet.
    init(_ desk: WebDesk, logger: Logger) throws(GatewayError) {
        self.desk = desk
        self.logger = logger
        settings = desk.settings
        let hosts = HostCheck(listen: settings.listen, hosts: settings.hosts, origins: settings.origins)
        access = WebAccess(hosts, localRole: settings.localRole)
        server = try WebServer(
            settings.listen, WebSite(desk, access), total: settings.connections,
            perAddress: settings.connectionsPerAddress, desk.counters, logger: logger)
        reload()
        if let path = settings.tokensPath, let file = try? FileWatch(path) {
            watch = desk.place.loop.watch(.descriptor(file.rawValue)) { [weak self] in
                if file.hasChanged() { self?.reload() }
            }
        }
    }

    deinit { desk.place.loop.cancel(watch) }

    func run() {
        logger.notice("the page is served", metadata: ["address": "http://\(settings.listen)/"])
        Task.detached { [server] in await server.run() }
    }

    /// Takes in what the file of tokens says. One that is wrong lets nobody in who needs one.
    func reload() {
        guard let path = settings.tokensPath else { return }
        var tokens = WebTokens()
        do {
            let bytes = try File.readAtOnce(path, limit: Self.maximumTokenBytes)
            tokens = try WebTokens(parsing: String(decoding: bytes, as: UTF8.self))
        } catch {
            logger.error(
                "nobody is let in from elsewhere: the file of tokens can't be read",
                metadata: ["file": "\(path)", "error": "\(error)"])
        }
        access.tokens = tokens
        desk.keepSessions { $0.name == WebAccess.localName || tokens.names($0) }
    }
}
