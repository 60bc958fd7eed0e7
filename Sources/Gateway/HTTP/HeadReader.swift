/// Reads heads and short bodies of requests from a connection, up to their maximum sizes.
struct HeadReader {
    private var buffer: [UInt8] = []

    /// What has come behind what was taken.
    var rest: [UInt8] { buffer }

    /// The next request's head.
    ///
    /// - Throws: ``WebRequest/Refusal`` for what is none; what the connection throws when it ends.
    mutating func next(from stream: WebStream) async throws -> WebRequest {
        var looked = 0
        while true {
            // Some put an empty line between two requests (RFC 9112, section 2.2).
            while buffer.starts(with: [13, 10]) { buffer.removeFirst(2) }
            if let end = WebRequest.end(in: buffer, from: looked), end <= WebRequest.maximumHeadBytes {
                let head = buffer.prefix(end)
                buffer.removeFirst(end)
                return try WebRequest(parsing: head)
            }
            guard buffer.count <= WebRequest.maximumHeadBytes else {
                throw WebRequest.Refusal(status: 431, reason: "The head is too long.")
            }
            looked = buffer.count
            buffer += try await stream.read()
        }
    }

    /// So many bytes behind it.
    mutating func take(_ count: Int, from stream: WebStream) async throws -> [UInt8] {
        while buffer.count < count { buffer += try await stream.read() }
        defer { buffer.removeFirst(count) }
        return Array(buffer.prefix(count))
    }
}
