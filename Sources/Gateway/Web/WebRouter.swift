import BusProtocol
import JSON
import NIOCore
import Synchronization

/// Maps paths to handlers by a fixed table. A client's path is never looked up on a disk.
struct WebRouter: Sendable {
    let busAccess: WebBusAccess
    let access: WebAuthorization
    let tokenConnections: TokenConnections
    let pages = PageFiles()
    private let failedLogins = FailedLoginLimit()

    /// What is sent by POST.
    private static let forms = [["login"], ["logout"]]

    init(_ busAccess: WebBusAccess, _ access: WebAuthorization, _ tokenConnections: TokenConnections) {
        self.busAccess = busAccess
        self.access = access
        self.tokenConnections = tokenConnections
    }

    /// That connection has ended.
    func left(_ stream: WebStream) { tokenConnections.leave(stream) }

    /// Answers what is no request.
    func refuse(_ refusal: WebRequest.Refusal, _ stream: WebStream) async {
        busAccess.counters.refusedRequests.add(1, ordering: .relaxed)
        try? await stream.send(WebResponse(refusal), keepsAlive: false)
    }

    /// Who asks.
    enum Asker: Sendable {
        /// Nobody who was let in, or it doesn't matter.
        case anybody
        case visitor(WebAuthorization.Visitor)
        /// Somebody who was let in, and has too many connections in use.
        case oneTooMany
    }

    /// Decides who asks, without waiting for anything: the connection of who may keeps its place from then on.
    ///
    /// - Parameters:
    ///   - address: of the other end, without a port.
    ///   - user: whose that is; called only when it decides.
    func admit(
        _ request: WebRequest, _ stream: WebStream, from address: String, user: () -> UInt32?
    ) -> Asker {
        let isChecked = !Self.isForAll(request) && (try? access.check(request)) != nil
        let visitor = isChecked ? access.visitor(request, from: address, user: user) : nil
        let hasPlace = stream.begin(for: visitor?.owner)
        return visitor.map { hasPlace ? .visitor($0) : .oneTooMany } ?? .anybody
    }

    /// Whether it is answered to everybody.
    private static func isForAll(_ request: WebRequest) -> Bool {
        switch request.path.first {
        case "page": request.path.count == 2
        case "login", "logout", "healthz": request.path.count == 1
        default: false
        }
    }

    /// Answers a request.
    ///
    /// - Parameters:
    ///   - form: its body.
    ///   - asker: who asks.
    ///   - address: of the other end, without a port.
    /// - Returns: whether another request may follow on the connection.
    func answer(
        _ asked: WebRequest, _ form: [UInt8], _ stream: WebStream, for asker: Asker, from address: String
    ) async throws -> Bool {
        busAccess.counters.requests.add(1, ordering: .relaxed)
        let request = access.marked(asked)
        do throws(WebRequest.Refusal) {
            try access.check(request)
        } catch {
            return try await send(WebResponse(error), to: stream, for: request)
        }
        if Self.asksWhetherItMay(request) {
            return try await send(WebResponse.mayAsk, to: stream, for: request)
        }
        guard
            ["GET", "HEAD"].contains(request.method) || (request.method == "POST" && Self.forms.contains(request.path))
        else {
            return try await send(
                WebResponse(405, "\(request.method) is not supported here."), to: stream, for: request)
        }
        switch request.path.first {
        case "page" where request.path.count == 2:
            return try await send(page(request.path[1], request), to: stream, for: request)
        case "login" where request.path.count == 1:
            return try await login(request, form, address, stream)
        case "logout" where request.path.count == 1:
            return try await send(logout(request, stream), to: stream, for: request)
        case "healthz" where request.path.count == 1:
            let isHere = await busAccess.isBusAnswering()
            let answer = isHere ? WebResponse(200, "ok") : WebResponse(503, "the bus does not answer")
            return try await send(answer, to: stream, for: request)
        default: break
        }
        let visitor: WebAuthorization.Visitor
        switch asker {
        case .anybody: return try await answerStranger(request, address, stream)
        case .oneTooMany: return try await send(Self.oneTooMany(stream.maximumPerOwner), to: stream, for: request)
        case .visitor(let found): visitor = found
        }
        tokenConnections.enter(stream, as: visitor)
        // The token may have been taken away just now, when this connection was not known yet.
        guard visitor.name == nil || access.visitor(request, from: address, user: { nil }) == visitor else {
            return false
        }
        return try await serve(request, visitor, stream)
    }

    /// Answers a request of somebody who was let in.
    private func serve(
        _ request: WebRequest, _ visitor: WebAuthorization.Visitor, _ stream: WebStream
    ) async throws -> Bool {
        switch request.path.first {
        case nil: return try await send(page("index.html", request), to: stream, for: request)
        case "metrics" where request.path.count == 1:
            return try await send(await metrics(for: visitor), to: stream, for: request)
        case "camera" where request.path.count == 2:
            return try await CameraPictures(busAccess: busAccess, stream: stream).answer(request, visitor) {
                try await send($0, to: stream, for: request)
            }
        case "library" where request.path.count == 3:
            return try await LibraryDownload(busAccess: busAccess, stream: stream).answer(request, visitor) {
                try await send($0, to: stream, for: request)
            }
        case "bus" where request.path.count == 1:
            let session = WebSession(busAccess, visitor) { stream.shutDown() }
            guard try await stream.becomeWebSocket(for: request, session, busAccess) else {
                return try await send(
                    WebResponse(400, "This address is only for WebSockets."), to: stream, for: request)
            }
            return false
        default: return try await send(WebResponse(404, "Not found."), to: stream, for: request)
        }
    }

    /// Whether a browser asks for a page of another origin that may use this server (CORS).
    private static func asksWhetherItMay(_ request: WebRequest) -> Bool {
        request.method == "OPTIONS" && request.pageOrigin != nil && request["access-control-request-method"] != nil
    }

    private func page(_ name: String, _ request: WebRequest) -> WebResponse {
        guard let file = pages.files[name] else { return WebResponse(404, "Not found.") }
        let headers = ["ETag": file.tag, "Cache-Control": "no-cache"]
        if request.says("if-none-match", file.tag) || request["if-none-match"] == file.tag {
            return WebResponse(304, headers: headers)
        }
        return WebResponse(200, type: file.type, headers: headers, body: file.bytes)
    }

    // MARK: Who comes from elsewhere

    private static let tooMany = WebResponse(429, "Too many invalid tokens. Wait a little and try again.")

    private func answerStranger(_ request: WebRequest, _ address: String, _ stream: WebStream) async throws -> Bool {
        let hasCredential = WebAuthorization.credential(of: request) != nil
        let scheme = WebAuthorization.takesPassword(request) ? "Basic" : "Bearer"
        let response =
            request.path.isEmpty
            ? WebResponse(303, "Log in.", headers: ["Location": hasCredential ? "/login?gone" : "/login"])
            : WebResponse(
                401, "This needs a token.", headers: ["WWW-Authenticate": "\(scheme) realm=\"CameraBus\""])
        guard hasCredential else { return try await send(response, to: stream, for: request) }
        return try await sendLate(response, to: stream, for: request, address)
    }

    private func login(
        _ request: WebRequest, _ form: [UInt8], _ address: String, _ stream: WebStream
    ) async throws -> Bool {
        guard request.method == "POST" else {
            let response = LoginPage.response(200, request.query["gone"] == nil ? .nothing : .gone)
            return try await send(response, to: stream, for: request)
        }
        let fields = String(validating: form, as: UTF8.self).map { WebRequest.form(Substring($0)) } ?? [:]
        guard let token = fields["token"], let session = access.login(with: token) else {
            return try await sendLate(LoginPage.response(401, .wrong), to: stream, for: request, address)
        }
        let response = WebResponse(
            303, "Welcome.",
            headers: ["Location": "/", "Set-Cookie": Self.cookie(session, LoginSessions.seconds, request)])
        return try await send(response, to: stream, for: request)
    }

    /// Sends the answer to an invalid token. Only these wait: behind a proxy all clients have the same address, and
    /// none of them may keep the others out.
    private func sendLate(
        _ response: WebResponse, to stream: WebStream, for request: WebRequest, _ address: String
    ) async throws -> Bool {
        let network = WebAuthorization.network(address)
        guard failedLogins.enter(network) else {
            busAccess.counters.refusedRequests.add(1, ordering: .relaxed)
            try await stream.send(Self.tooMany, keepsAlive: false, for: request.pageOrigin)
            return false
        }
        await stream.pause(FailedLoginLimit.delay)
        failedLogins.leave(network)
        return try await send(response, to: stream, for: request)
    }

    private func logout(_ request: WebRequest, _ stream: WebStream) -> WebResponse {
        guard request.method == "POST" else { return WebResponse(405, "Log out with POST.") }
        if let session = request.cookie(WebAuthorization.cookie) {
            access.logout(session)
            // It still gets the answer.
            tokenConnections.leave(stream)
            tokenConnections.shutDown { $0.session == session }
        }
        return WebResponse(
            303, "Goodbye.", headers: ["Location": "/login", "Set-Cookie": Self.cookie("", 0, request)])
    }

    private static func cookie(_ session: String, _ seconds: Int, _ request: WebRequest) -> String {
        let isSecure = request["x-forwarded-proto"] == "https"
        return "\(WebAuthorization.cookie)=\(session); Path=/; HttpOnly; SameSite=Strict; Max-Age=\(seconds)"
            + (isSecure ? "; Secure" : "")
    }

    // MARK: What is counted

    private func metrics(for visitor: WebAuthorization.Visitor) async -> WebResponse {
        var text = MetricsText()
        let answer = await busAccess.ask("bus.metrics", of: visitor)
        if case .success(let metrics) = answer { text.add(bus: metrics) }
        text.add(isUp: (try? answer.get()) != nil)
        for device in await busAccess.devices() { text.add(device: device) }
        for (name, value) in await busAccess.counts() { text.add(gateway: name, value) }
        return WebResponse(200, type: "text/plain; version=0.0.4; charset=utf-8", body: ByteBuffer(string: text.text))
    }

    private static func oneTooMany(_ maximum: Int) -> WebResponse {
        WebResponse(
            429,
            "This user has \(maximum) connections in use, the most of one user. Close some, or raise "
                + "web.connections_per_address in gateway.toml: one user may have half of these.")
    }

    // MARK: Sending

    private func send(_ response: WebResponse, to stream: WebStream, for request: WebRequest) async throws -> Bool {
        if response.status >= 400 { busAccess.counters.refusedRequests.add(1, ordering: .relaxed) }
        return try await stream.send(response, for: request)
    }
}
