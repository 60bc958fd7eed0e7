import BusProtocol
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

        /// As whom the bus is asked: everybody at this machine is the same, as they are on its screen.
        var principal: Request.Principal {
            Request.Principal(
                name: name.map { "\(WebAuthorization.localName)/\($0)" } ?? WebAuthorization.localName, role: role)
        }

        /// For whose connections together limits hold.
        var owner: String { name == nil ? "\(WebAuthorization.localName)@\(address)" : principal.name }
    }

    /// The other end of a connection.
    struct Peer: Hashable, Sendable {
        /// Without a port.
        var address: String
        /// Whose it is, where it is on this machine and that could be found out.
        var user: UInt32?
    }

    let hosts: HostCheck
    private let known = Mutex(WebTokenTable())
    /// Of who comes from this machine without a token; nil: a token is needed there, too.
    let localRole: Request.Principal.Role?
    /// Of whom that is said; nil: of all at this machine.
    let localUsers: Set<UInt32>?

    /// What who needs no token is called.
    static let localName = "web"
    /// The cookie that a browser has its token in.
    static let cookie = "camerabus"

    init(_ hosts: HostCheck, localRole: Request.Principal.Role?, localUsers: Set<UInt32>?) {
        self.hosts = hosts
        self.localRole = localRole
        self.localUsers = localUsers
    }

    /// Who may come from elsewhere now.
    var tokens: WebTokenTable {
        get { known.withLock { $0 } }
        set { known.withLock { $0 = newValue } }
    }

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
        // A link from elsewhere leads here; a picture of here is no part of a page from elsewhere, unless that says who
        // it is and may.
        let isPart = request["sec-fetch-site"] == "cross-site" && request["sec-fetch-mode"] != "navigate"
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
    func visitor(_ request: WebRequest, from peer: Peer) -> Visitor? {
        let address = peer.address
        if let token = Self.token(of: request) {
            return tokens.visitor(of: token).map { Visitor(name: $0.name, role: $0.role, address: address) }
        }
        // A proxy on this machine brings in who is not here.
        let isHere =
            Self.isLoopback(address) && request["host"].map(HostCheck.isLoopback) == true && !request.isForwarded
        guard isHere, let localRole else { return nil }
        if let localUsers { guard let user = peer.user, localUsers.contains(user) else { return nil } }
        return Visitor(name: nil, role: localRole, address: address)
    }

    /// What the request brings as a token; nil: nothing.
    static func token(of request: WebRequest) -> String? {
        if let text = request["authorization"] {
            return text.lowercased().hasPrefix("bearer ") ? String(text.dropFirst(7)) : ""
        }
        return request.cookie(cookie)
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
