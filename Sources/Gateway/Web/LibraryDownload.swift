import BusProtocol
import Glibc
import JSON
import LinuxIO
import NIOCore

/// `/library/<entry>/<file>`: a file of the library, or a part of it, for users with access to its entry.
///
/// A file that the gateway's user may read is opened; another is read through the bus.
struct LibraryDownload {
    let busAccess: WebBusAccess
    let stream: WebStream

    private enum Source {
        case file(LibraryFile)
        case bus(LibraryReading)

        var count: Int {
            switch self {
            case .file(let file): file.count
            case .bus(let reading): reading.count
            }
        }

        func send(_ part: Range<Int>, to stream: WebStream) async throws {
            switch self {
            case .file(let file): try await file.send(part, to: stream)
            case .bus(let reading): try await reading.send(part, to: stream)
            }
        }
    }

    func answer(
        _ request: WebRequest, _ visitor: WebAuthorization.Visitor, _ respond: CameraPictures.Respond
    ) async throws -> Bool {
        let (id, name) = (request.path[1], request.path[2])
        let entry: JSONValue
        let asked = await busAccess.ask(
            "library.get", ["id": .string(id)], for: visitor.principal, of: visitor, within: WebService.diskPatience)
        switch asked {
        case .failure(let error): return try await respond(Self.refusal(error))
        case .success(let answer): entry = answer["entry"] ?? .null
        }
        guard let (member, path) = LibraryFile.place(named: name, of: entry) else {
            return try await respond(WebResponse(404, "The entry has no file with this name."))
        }
        switch await DiskWork.run({ () throws(SystemError) in try LibraryFile(path) }) {
        case .success(let file):
            return try await busAccess.downloading(visitor, stream) { try await send(.file(file), name, request) }
        case .failure(let error) where error.code == EACCES || error.code == EPERM:
            let reading: LibraryReading
            do throws(BusError) {
                reading = try await LibraryReading(id, member, busAccess, for: visitor)
            } catch {
                return try await respond(Self.refusal(error))
            }
            return try await busAccess.downloading(visitor, stream) { try await send(.bus(reading), name, request) }
        case .failure(let error):
            return try await respond(WebResponse(error.isAbsent ? 404 : 503, "The file can't be read: \(error)."))
        }
    }

    private static func refusal(_ error: BusError) -> WebResponse {
        let status =
            switch error.reason {
            case .entryNotFound, .invalidParams: 404
            case .unauthorized, .pathNotAllowed: 403
            case .recordingInProgress: 409
            default: 503
            }
        return WebResponse(status, error.message)
    }

    private func send(_ source: Source, _ name: String, _ request: WebRequest) async throws -> Bool {
        var response = WebResponse(
            200, type: PageFiles.type(of: name),
            headers: ["Content-Disposition": LibraryFile.disposition(name), "Accept-Ranges": "bytes"])
        var part = 0..<source.count
        switch ByteRange(request["range"], of: source.count) {
        case .all: break
        case .part(let range):
            (response.status, part) = (206, range)
            response.headers["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(source.count)"
        case .none:
            (response.status, part) = (416, 0..<0)
            response.headers["Content-Range"] = "bytes */\(source.count)"
        }
        try await stream.begin(response, bodyBytes: part.count, for: request)
        if request.method == "GET", !part.isEmpty { try await source.send(part, to: stream) }
        try await stream.end()
        return request.keepsAlive
    }
}
