import NIOCore
import NIOHTTP1

/// An HTTP answer: its head, and a complete body.
struct WebResponse: Hashable, Sendable {
    var status: Int
    var type: String?
    /// Further headers.
    var headers: [String: String] = [:]
    var body: ByteBuffer

    init(_ status: Int, type: String? = nil, headers: [String: String] = [:], body: ByteBuffer = ByteBuffer()) {
        self.status = status
        self.type = type
        self.headers = headers
        self.body = body
    }

    /// A sentence for people.
    init(_ status: Int, _ text: String, headers: [String: String] = [:]) {
        self.init(status, type: "text/plain; charset=utf-8", headers: headers, body: ByteBuffer(string: "\(text)\n"))
    }

    init(_ refusal: WebRequest.Refusal) { self.init(refusal.status, refusal.reason) }

    /// What every answer says: that the page is nobody's part, and loads nothing that isn't this server's.
    /// Browsers send forms without an origin from a page that has no referrer even for itself.
    static let always: HTTPHeaders = [
        "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Content-Security-Policy": "default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; "
            + "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ]

    /// Whose page may read it: only this server's own, or also that of one other origin. Without credentials, so that a
    /// page shows a token itself.
    private static func readers(_ origin: String?) -> HTTPHeaders {
        guard let origin else { return ["Cross-Origin-Resource-Policy": "same-origin"] }
        return [
            "Cross-Origin-Resource-Policy": "cross-origin", "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": "Content-Disposition, Content-Range", "Vary": "Origin",
        ]
    }

    /// What a browser is told that asks, without a token, whether a page of another origin may show one (CORS).
    static let mayAsk = WebResponse(
        204,
        headers: [
            "Access-Control-Allow-Methods": "GET, HEAD", "Access-Control-Allow-Headers": "Authorization, Range",
            "Access-Control-Max-Age": "600",
        ])

    /// The head.
    ///
    /// - Parameters:
    ///   - bodyBytes: of the body; nil: it ends with the connection.
    ///   - keepsAlive: another request may follow.
    ///   - origin: of the page that asks, where that is one of those that may beside this server's own.
    func head(bodyBytes: Int?, keepsAlive: Bool, for origin: String? = nil) -> HTTPResponseHead {
        var fields = HTTPHeaders()
        if let type { fields.add(name: "Content-Type", value: type) }
        if let bodyBytes, status != 204, status != 304 { fields.add(name: "Content-Length", value: "\(bodyBytes)") }
        if headers["Cache-Control"] == nil { fields.add(name: "Cache-Control", value: "no-store") }
        for (name, value) in headers { fields.add(name: name, value: value) }
        fields.add(contentsOf: Self.always)
        fields.add(contentsOf: Self.readers(origin))
        fields.add(name: "Connection", value: keepsAlive ? "keep-alive" : "close")
        return HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: status), headers: fields)
    }
}
