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
    private let book: GuestBook

    private static let maximumTokenBytes = 1 << 20
    /// Lines that are told of each time.
    private static let maximumProblems = 10

    /// Listens, but serves nobody yet.
    ///
    /// - Parameter keptPath: the gateway's own file of whose tokens it took last; nil: there is no place for it.
    init(_ desk: WebDesk, keptPath: String?, logger: Logger) throws(GatewayError) {
        self.desk = desk
        self.logger = logger
        let settings = desk.settings
        self.settings = settings
        let hosts = HostCheck(listen: settings.listen, hosts: settings.hosts, origins: settings.origins)
        var users: Set<UInt32>?
        if !settings.letsAllHereIn {
            users = [0, CurrentProcess.uid]
            if let owner = File.owner(of: desk.place.directory.path) { users?.insert(owner) }
        }
        let access = WebAccess(hosts, localRole: settings.localRole, localUsers: users)
        self.access = access
        server = try WebServer(
            settings.listen, WebSite(desk, access, admissions), total: settings.connections,
            perAddress: settings.connectionsPerAddress, desk.counters, logger: logger)
        let book = GuestBook(
            desk.place.loop, of: "token", path: settings.tokensPath, keptPath: keptPath, logger: logger,
            source: {
                // Without a file of them nobody has a token any more.
                guard let path = settings.tokensPath else { return GuestBook.Reading(isWhole: true) }
                let tokens = Self.read(path, logger: logger)
                access.tokens = tokens ?? WebTokens()
                return GuestBook.Reading(guests: access.tokens.guests, isWhole: tokens?.problems.isEmpty == true)
            },
            tell: { [weak desk] name, told in
                desk?.revoked(WebTokens.Visitor(name: name, role: .nobody).principal, then: told)
            },
            change: { [weak desk] guest, told in desk?.changed(Self.principal(of: guest), then: told) })
        self.book = book
        book.onCut = { [admissions, weak desk] guests in
            let gone = Set(guests.map { Self.principal(of: $0) })
            admissions.shutDown { gone.contains($0) }
            desk?.cut(gone)
        }
        desk.roleNow = { [weak book] name in
            if name == WebAccess.localName { return settings.localRole ?? .nobody }
            return book?.guest { Self.principal(of: $0).name == name }?.role ?? .nobody
        }
        book.read()
    }

    /// As whom the bus knows one of the file.
    private static func principal(of guest: GuestList.Entry) -> Request.Principal {
        WebTokens.Visitor(name: guest.name, role: guest.role).principal
    }

    /// - Parameter ended: called on the loop, when nobody can be served any more.
    func run(ended: @escaping () -> Void) {
        desk.onEnd = ended
        logger.notice("the page is served", metadata: ["address": "http://\(settings.listen)/"])
        Task.detached { [server, desk] in
            await server.run()
            desk.mailbox.post { desk.onEnd?() }
        }
    }

    /// Reads the file of tokens, also where its changes are not told.
    func reload() { book.read() }

    /// What the file says; nil: it can't be read, or others could have written it, and nobody is let in who needs a token.
    private static func read(_ path: String, logger: Logger) -> WebTokens? {
        let tokens: WebTokens
        do {
            let bytes = try File.readAtOnce(path, limit: maximumTokenBytes)
            guard File.isSecret(path) else {
                throw GatewayError(
                    description: "others may read or write it; chmod 640, owner root or the gateway's user")
            }
            tokens = WebTokens(parsing: String(decoding: bytes, as: UTF8.self))
        } catch {
            logger.error(
                "nobody is let in from elsewhere: the file of tokens can't be read",
                metadata: ["file": "\(path)", "error": "\(error)"])
            return nil
        }
        for problem in tokens.problems.prefix(maximumProblems) {
            logger.warning(
                "a line of the file of tokens lets nobody in",
                metadata: ["file": "\(path)", "problem": "\(problem)"])
        }
        return tokens
    }
}
