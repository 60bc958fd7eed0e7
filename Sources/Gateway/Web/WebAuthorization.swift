import BusProtocol
import FoundationEssentials
import Glibc
import LinuxIO
import Synchronization

/// Decides for each request whether it is allowed, and for which user.
final class WebAuthorization: Sendable {
    /// Who asks.
    struct Visitor: Hashable, Sendable {
        /// nil: somebody at this machine, who needs no token.
        var name: String?
        var role: Request.Principal.Role
        /// Without a port.
        var address: String
        /// Of a browser that has logged in.
        var session: String?

        /// As whom the bus is asked: everybody at this machine is the same, as they are on its screen.
        var principal: Request.Principal {
            Request.Principal(
                name: name.map { "\(WebAuthorization.localName)/\($0)" } ?? WebAuthorization.localName, role: role)
        }

        /// For whose connections together limits hold.
        var owner: String { name == nil ? "\(WebAuthorization.localName)@\(address)" : principal.name }
    }

    let hosts: HostCheck
    private let known = Mutex(WebTokenTable())
    private let sessions = LoginSessions()
    /// Of who comes from this machine without a token; nil: a token is needed there, too.
    let localRole: Request.Principal.Role?
    /// Of whom that is said; nil: of all at this machine.
    let localUsers: Set<UInt32>?

    /// What who needs no token is called.
    static let localName = "web"
    /// The cookie that a browser has its session in.
    static let cookie = "camerabus"

    init(_ hosts: HostCheck, localRole: Request.Principal.Role?, localUsers: Set<UInt32>?) {
        self.hosts = hosts
        self.localRole = localRole
        self.localUsers = localUsers
    }

    /// The tokens of users on other machines. Setting them ends the sessions of all other tokens. These sessions stay
    /// ended if the token is added again.
    var tokens: WebTokenTable {
        get { known.withLock { $0 } }
        set {
            known.withLock { $0 = newValue }
            sessions.keep { newValue.visitor(ofDigest: $0) != nil }
        }
    }

    /// Lets nobody in from elsewhere, until ``tokens`` are known again: these have their sessions then.
    func suspendTokens() { known.withLock { $0 = WebTokenTable() } }

    /// Refuses what doesn't name this server, and what a page of somebody else's asks.
    func check(_ request: WebRequest) throws(WebRequest.Refusal) {
        guard let host = request["host"], hosts.isOurs(host) else {
            throw WebRequest.Refusal(
                status: 403, reason: "This server does not have this name. Add the name to web.hosts in gateway.toml.")
        }
        if let origin = request["origin"], !hosts.isSame(origin: origin, host: host) {
            throw WebRequest.Refusal(
                status: 403, reason: "Pages of other origins may not use this server. See web.origins in gateway.toml.")
        }
        // A link from elsewhere leads here; a picture or frame of here is no part of a page from elsewhere, unless that
        // says who it is and may.
        let isPart =
            request["sec-fetch-site"] == "cross-site"
            && (request["sec-fetch-mode"] != "navigate" || request["sec-fetch-dest"] ?? "document" != "document")
        if isPart, origin(of: request) == nil {
            throw WebRequest.Refusal(
                status: 403, reason: "Pages of other origins may not use this server. See web.origins in gateway.toml.")
        }
    }

    /// The origin of the requesting page, if the configuration allows it besides this server's own; nil: it is not
    /// allowed, or the request names none.
    func origin(of request: WebRequest) -> String? {
        guard let origin = request["origin"], hosts.isConfigured(origin: origin) else { return nil }
        return origin
    }

    /// The request, with that origin.
    func marked(_ request: WebRequest) -> WebRequest {
        var marked = request
        marked.pageOrigin = origin(of: request)
        return marked
    }

    /// Who asks; nil: nobody who may.
    ///
    /// - Parameters:
    ///   - address: of the other end, without a port.
    ///   - user: whose the other end is, where it is on this machine and that can be found out. Called only when it
    ///     decides.
    func visitor(_ request: WebRequest, from address: String, user: () -> UInt32?) -> Visitor? {
        if let credential = Self.credential(of: request) { return visitor(credential, address) }
        // A proxy on this machine brings in who is not here.
        let isHere =
            Self.isLoopback(address) && request["host"].map(HostCheck.isLoopback) == true && !request.isForwarded
        guard isHere, let localRole else { return nil }
        if let localUsers { guard let found = user(), localUsers.contains(found) else { return nil } }
        return Visitor(name: nil, role: localRole, address: address)
    }

    private func visitor(_ credential: Credential, _ address: String) -> Visitor? {
        let tokens = tokens
        let (found, session): (WebTokenTable.Visitor?, String?) =
            switch credential {
            case .token(let token): (tokens.visitor(of: token), nil)
            case .password(let name, let token):
                (tokens.visitor(of: token).flatMap { $0.name == name ? $0 : nil }, nil)
            case .session(let id): (sessions.token(of: id).flatMap { tokens.visitor(ofDigest: $0) }, id)
            case .unknown: (nil, nil)
            }
        return found.map { Visitor(name: $0.name, role: $0.role, address: address, session: session) }
    }

    // MARK: Credentials

    /// How a request shows its user.
    enum Credential: Hashable, Sendable {
        /// `Authorization: Bearer` (RFC 6750).
        case token(String)
        /// `Authorization: Basic` (RFC 7617): the name of a token, and the token.
        case password(name: String, token: String)
        /// A cookie of a browser that has logged in.
        case session(String)
        /// An `Authorization` that is none of these, or not for this request.
        case unknown
    }

    /// What the request brings; nil: nothing.
    static func credential(of request: WebRequest) -> Credential? {
        guard let text = request["authorization"] else { return request.cookie(cookie).map(Credential.session) }
        let parts = text.split(separator: " ", maxSplits: 1)
        guard parts.count == 2 else { return .unknown }
        switch parts[0].lowercased() {
        case "bearer": return .token(String(parts[1]))
        case "basic" where takesPassword(request):
            guard let bytes = Data(base64Encoded: String(parts[1])),
                let pair = String(validating: bytes, as: UTF8.self),
                let colon = pair.firstIndex(of: ":")
            else { return .unknown }
            return .password(name: String(pair[..<colon]), token: String(pair[pair.index(after: colon)...]))
        // A browser sends a password by itself once it has one.
        case "basic": return request.cookie(cookie).map(Credential.session) ?? .unknown
        default: return .unknown
        }
    }

    /// Whether a request may bring a token as a password: for pictures and numbers, which programs read that know
    /// nothing else. Browsers, which send a password with every request by themselves, have the login page.
    static func takesPassword(_ request: WebRequest) -> Bool {
        guard ["GET", "HEAD"].contains(request.method), request["sec-fetch-mode"] ?? "navigate" == "navigate" else {
            return false
        }
        return request.path == ["metrics"]
            || (request.path.count == 2 && request.path[0] == "camera"
                && [".jpg", ".mjpg"].contains { request.path[1].hasSuffix($0) })
    }

    /// Begins a session for the user of that token.
    ///
    /// - Returns: the session, for the cookie; nil: nobody has that token.
    func login(with token: String) -> String? {
        // Under the lock: a token that is removed meanwhile ends the session, too.
        known.withLock { tokens in tokens.digest(of: token).map { sessions.begin(for: $0) } }
    }

    func logout(_ session: String) { sessions.end(session) }

    /// What limits for addresses count: of IPv6 the network, as a client chooses the rest itself.
    static func network(_ address: String) -> String {
        var parsed = in6_addr()
        guard inet_pton(AF_INET6, address, &parsed) == 1 else { return address }
        return withUnsafeBytes(of: &parsed) { "\(hexadecimal($0.prefix(8)))::/64" }
    }

    /// The address as limits know it: one of IPv4 by itself, also where a socket of IPv6 has it.
    static func plain(_ address: String) -> String {
        let mapped = "::ffff:"
        return address.hasPrefix(mapped) && address.contains(".") ? String(address.dropFirst(mapped.count)) : address
    }

    static func isLoopback(_ address: String) -> Bool {
        address.hasPrefix("127.") || address == "::1" || address.hasPrefix("::ffff:127.")
    }
}
