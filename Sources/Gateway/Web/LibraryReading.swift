import BusProtocol
import JSON
import NIOCore
import ZeroMQ

/// A file of the library that only the bus can read: it comes part by part (`library.read`).
struct LibraryReading {
    private let busAccess: WebBusAccess
    private let visitor: WebAuthorization.Visitor
    private let id: String
    private let member: String
    private let revision: String
    let count: Int

    /// Bytes of a part.
    private static let length = 1 << 20
    /// Tries of a part, when other requests leave no room for it at the bus; each waits twice as long as the one
    /// before.
    private static let attempts = 6
    private static let firstPause = Duration.milliseconds(50)

    /// - Parameter member: of the entry, that names the file.
    /// - Throws: as `library.read`.
    init(
        _ id: String, _ member: String, _ busAccess: WebBusAccess, for visitor: WebAuthorization.Visitor
    ) async throws(BusError) {
        (self.id, self.member, self.busAccess, self.visitor) = (id, member, busAccess, visitor)
        let told = try await Self.read(id, member, 0..<0, busAccess, visitor).result
        guard let size = told["size"]?.integer.flatMap({ Int(exactly: $0) }), size >= 0,
            let revision = told["revision"]?.string
        else { throw BusError(.internalError, "The bus has answered without the file's size.") }
        (count, self.revision) = (size, revision)
    }

    /// Sends that part of it. A file that has changed since ends the connection: what came would not belong together.
    func send(_ part: Range<Int>, to stream: WebStream) async throws {
        var start = part.lowerBound
        while start < part.upperBound {
            let wanted = start..<min(start + Self.length, part.upperBound)
            guard let answer = try? await Self.read(id, member, wanted, busAccess, visitor),
                answer.result["revision"]?.string == revision, let bytes = answer.attachments.first,
                bytes.count == wanted.count
            else { throw WebStream.Ended() }
            var buffer = ByteBufferAllocator().buffer(capacity: bytes.count)
            buffer.write(bytes)
            try await stream.send(buffer)
            start = wanted.upperBound
        }
    }

    private static func read(
        _ id: String, _ member: String, _ part: Range<Int>, _ busAccess: WebBusAccess,
        _ visitor: WebAuthorization.Visitor
    ) async throws(BusError) -> WebService.Answer {
        let params: JSONValue = [
            "id": .string(id), "file": .string(member), "offset": JSONValue(part.lowerBound),
            "length": JSONValue(part.count),
        ]
        var (attempt, pause) = (1, firstPause)
        while true {
            do throws(BusError) {
                return try await busAccess.askWithAttachments(
                    "library.read", params, for: visitor.principal, of: visitor, within: WebService.diskPatience
                ).get()
            } catch {
                guard error.reason == .limitExceeded, attempt < attempts else { throw error }
            }
            try? await Task.sleep(for: pause)
            (attempt, pause) = (attempt + 1, pause * 2)
        }
    }
}
