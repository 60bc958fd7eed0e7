/// An HTTP answer: its head, and a complete body.
struct WebResponse: Hashable, Sendable {
    var status: Int
    var type: String?
    /// Further lines of the head.
    var headers: [String] = []
    var body: [UInt8] = []

    init(_ status: Int, type: String? = nil, headers: [String] = [], body: [UInt8] = []) {
        self.status = status
        self.type = type
        self.headers = headers
        self.body = body
    }

    /// A sentence for people.
    init(_ status: Int, _ text: String, headers: [String] = []) {
        self.init(status, type: "text/plain; charset=utf-8", headers: headers, body: Array("\(text)\n".utf8))
    }

    init(_ refusal: WebRequest.Refusal) { self.init(refusal.status, refusal.reason) }

    /// What every answer says: that the page is nobody's part, and loads nothing that isn't this server's.
    /// Browsers send forms without an origin from a page that has no referrer even for itself.
    static let always = [
        "X-Content-Type-Options: nosniff", "X-Frame-Options: DENY", "Referrer-Policy: same-origin",
        "Cross-Origin-Opener-Policy: same-origin",
        "Content-Security-Policy: default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; "
            + "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ]

    /// Whose page may read it: only this server's own, or also that of one other origin. Without credentials, so that a
    /// page shows a token itself.
    private static func readers(_ origin: String?) -> [String] {
        guard let origin else { return ["Cross-Origin-Resource-Policy: same-origin"] }
        return [
            "Cross-Origin-Resource-Policy: cross-origin", "Access-Control-Allow-Origin: \(origin)",
            "Access-Control-Expose-Headers: Content-Disposition, Content-Range", "Vary: Origin",
        ]
    }

    /// What a browser is told that asks, without a token, whether a page of another origin may show one (CORS).
    static let mayAsk = WebResponse(
        204,
        headers: [
            "Access-Control-Allow-Methods: GET, HEAD", "Access-Control-Allow-Headers: Authorization, Range",
            "Access-Control-Max-Age: 600",
        ])

    /// The head, with its empty line.
    ///
    /// - Parameters:
    ///   - bodyBytes: of the body; nil: it ends with the connection.
    ///   - keepsAlive: another request may follow.
    ///   - origin: of the page that asks, where that is one of those that may beside this server's own.
    func head(bodyBytes: Int?, keepsAlive: Bool, for origin: String? = nil) -> [UInt8] {
        var text = "HTTP/1.1 \(status) \(Self.phrases[status] ?? "Answer")\r\n"
        if let type { text += "Content-Type: \(type)\r\n" }
        if let bodyBytes, status != 204, status != 304 { text += "Content-Length: \(bodyBytes)\r\n" }
        if !headers.contains(where: { $0.hasPrefix("Cache-Control:") }) { text += "Cache-Control: no-store\r\n" }
        for line in headers + Self.always + Self.readers(origin) { text += "\(line)\r\n" }
        text += "Connection: \(keepsAlive ? "keep-alive" : "close")\r\n\r\n"
        return Array(text.utf8)
    }

    private static let phrases = [
        101: "Switching Protocols", 200: "OK", 204: "No Content", 206: "Partial Content", 303: "See Other",
        304: "Not Modified", 400: "Bad Request",
        401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
        411: "Length Required", 413: "Content Too Large", 416: "Range Not Satisfiable",
        429: "Too Many Requests",
        431: "Request Header Fields Too Large", 500: "Internal Server Error", 503: "Service Unavailable",
        505: "HTTP Version Not Supported",
    ]
}
