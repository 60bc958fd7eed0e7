import BusProtocol
import JSON
import Synchronization

/// Maps paths to handlers by a fixed table. A client's path is never looked up on a disk.
struct WebRouter: Sendable {
    let busAccess: WebBusAccess
    let access: WebAuthorization
    let tokenConnections: TokenConnections
    let pages = PageFiles()
    private let failedLogins = FailedLoginLimit()

    /// Seconds that a request's head and body may take, and that a connection may be idle between two.
    private static let patience = 15
    private static let maximumFormBytes = 4096

    init(_ busAccess: WebBusAccess, _ access: WebAuthorization, _ tokenConnections: TokenConnections) {
        self.busAccess = busAccess
        self.access = access
        self.tokenConnections = tokenConnections
    }

    /// Answers a connection's requests until it ends.
    func serve(_ stream: WebStream, from peer: WebAuthorization.Peer) async {
        defer { tokenConnections.leave(stream) }
        var reader = HeadReader()
        do {
            while true {
                let (request, form) = try await stream.within(seconds: Self.patience) {
                    let request = try await reader.next(from: stream)
                    let count = try request.bodyBytes(maximum: Self.maximumFormBytes)
                    return (request, try await reader.take(count, from: stream))
                }
                busAccess.counters.requests.add(1, ordering: .relaxed)
                guard try await answer(request, form, stream, peer, &reader) else { return }
            }
        } catch let refusal as WebRequest.Refusal {
            // What follows can't be told from what came: it ends here.
            try? await send(WebResponse(refusal), to: stream, keepsAlive: false)
            stream.finish()
            await stream.drained()
        } catch {
            // The other end has gone, or took too long.
        }
    }

    /// - Returns: whether another request may follow.
    private func answer(
        _ asked: WebRequest, _ form: [UInt8], _ stream: WebStream, _ peer: WebAuthorization.Peer,
        _ reader: inout HeadReader
    ) async throws -> Bool {
        let request = access.marked(asked)
        do throws(WebRequest.Refusal) {
            try access.check(request)
        } catch {
            return try await send(WebResponse(error), to: stream, for: request)
        }
        if Self.asksWhetherItMay(request) {
            return try await send(WebResponse.mayAsk, to: stream, for: request)
        }
        guard ["GET", "HEAD"].contains(request.method) || (request.method == "POST" && request.path == ["login"])
        else {
            return try await send(
                WebResponse(405, "\(request.method) is not supported here."), to: stream, for: request)
        }
        switch request.path.first {
        case "page" where request.path.count == 2:
            return try await send(page(request.path[1], request), to: stream, for: request)
        case "login" where request.path.count == 1:
            return try await send(login(request, form, peer.address), to: stream, for: request)
        case "healthz" where request.path.count == 1:
            let isHere = (try? await busAccess.ask("bus.ping").get()) != nil
            let answer = isHere ? WebResponse(200, "ok") : WebResponse(503, "the bus does not answer")
            return try await send(answer, to: stream, for: request)
        default: break
        }
        guard let visitor = access.visitor(request, from: peer) else {
            return try await send(stranger(request, peer.address), to: stream, for: request)
        }
        tokenConnections.enter(stream, as: visitor)
        // The token may have been taken away just now, when this connection was not known yet.
        guard visitor.name == nil || access.visitor(request, from: peer) == visitor else { return false }
        switch request.path.first {
        case nil: return try await send(page("index.html", request), to: stream, for: request)
        case "metrics" where request.path.count == 1: return try await send(await metrics(), to: stream, for: request)
        case "camera" where request.path.count == 2:
            return try await CameraPictures(busAccess: busAccess, stream: stream).answer(request, visitor) {
                try await send($0, to: stream, for: request)
            }
        case "library" where request.path.count == 3:
            return try await LibraryDownload(busAccess: busAccess, stream: stream).answer(request, visitor) {
                try await send($0, to: stream, for: request)
            }
        case "bus" where request.path.count == 1:
            guard let lines = await Handshake.answer(to: request) else {
                return try await send(
                    WebResponse(400, "This address is only for WebSockets."), to: stream, for: request)
            }
            let text = "HTTP/1.1 101 Switching Protocols\r\n\(lines.joined(separator: "\r\n"))\r\n\r\n"
            try await stream.send(Array(text.utf8))
            let session = WebSession(busAccess, visitor) { stream.shutDown() }
            await WebSocketConnection(busAccess: busAccess, stream: stream, session: session).serve(reader.rest)
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
        let headers = ["ETag: \(file.tag)", "Cache-Control: no-cache"]
        if request.says("if-none-match", file.tag) || request["if-none-match"] == file.tag {
            return WebResponse(304, headers: headers)
        }
        return WebResponse(200, type: file.type, headers: headers, body: file.bytes)
    }

    // MARK: Who comes from elsewhere

    private static let tooMany = WebResponse(429, "Too many invalid tokens. Wait a little and try again.")

    // Only requests without a valid token have to wait: behind a proxy all clients have the same address, and none of
    // them may keep the others out.
    private func stranger(_ request: WebRequest, _ address: String) -> WebResponse {
        if WebAuthorization.token(of: request) != nil, !failedLogins.mayBeWrong(address) { return Self.tooMany }
        if request.path.isEmpty {
            let place = request.cookie(WebAuthorization.cookie) == nil ? "/login" : "/login?gone"
            return WebResponse(303, "Log in.", headers: ["Location: \(place)"])
        }
        return WebResponse(401, "This needs a token.", headers: ["WWW-Authenticate: Bearer realm=\"CameraBus\""])
    }

    private func login(_ request: WebRequest, _ form: [UInt8], _ address: String) -> WebResponse {
        guard request.method == "POST" else {
            return LoginPage.response(200, request.query["gone"] == nil ? .nothing : .gone)
        }
        let fields = String(validating: form, as: UTF8.self).map { WebRequest.form(Substring($0)) } ?? [:]
        guard let token = fields["token"], access.tokens.visitor(of: token) != nil else {
            return failedLogins.mayBeWrong(address) ? LoginPage.response(401, .wrong) : Self.tooMany
        }
        let isSecure = request["x-forwarded-proto"] == "https"
        let cookie = "\(WebAuthorization.cookie)=\(token); Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"
        return WebResponse(
            303, "Welcome.", headers: ["Location: /", "Set-Cookie: \(cookie)\(isSecure ? "; Secure" : "")"])
    }

    // MARK: What is counted

    private func metrics() async -> WebResponse {
        var text = MetricsText()
        let answer = await busAccess.ask("bus.metrics")
        if case .success(let metrics) = answer { text.add(bus: metrics) }
        text.add(isUp: (try? answer.get()) != nil)
        for device in await busAccess.devices() { text.add(device: device) }
        for (name, value) in await busAccess.counts() { text.add(gateway: name, value) }
        return WebResponse(200, type: "text/plain; version=0.0.4; charset=utf-8", body: Array(text.text.utf8))
    }

    // MARK: Sending

    @discardableResult
    private func send(_ response: WebResponse, to stream: WebStream, for request: WebRequest) async throws -> Bool {
        try await send(
            response, to: stream, keepsAlive: request.keepsAlive, hasBody: request.method != "HEAD",
            origin: request.pageOrigin)
        return request.keepsAlive
    }

    private func send(
        _ response: WebResponse, to stream: WebStream, keepsAlive: Bool, hasBody: Bool = true, origin: String? = nil
    ) async throws {
        if response.status >= 400 { busAccess.counters.refusedRequests.add(1, ordering: .relaxed) }
        let head = response.head(bodyBytes: response.body.count, keepsAlive: keepsAlive, for: origin)
        try await stream.send(hasBody ? head + response.body : head)
    }
}
