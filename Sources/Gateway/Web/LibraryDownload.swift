import BusProtocol
import JSON
import LinuxIO

/// `/library/<entry>/<file>`: a file of the library, or a part of it, for users with access to its entry.
struct LibraryDownload {
    let busAccess: WebBusAccess
    let stream: WebStream

    func answer(
        _ request: WebRequest, _ visitor: WebAuthorization.Visitor, _ respond: CameraPictures.Respond
    ) async throws -> Bool {
        let (id, name) = (request.path[1], request.path[2])
        let entry: JSONValue
        let asked = await busAccess.ask(
            "library.get", ["id": .string(id)], for: visitor.principal, within: WebService.diskPatience)
        switch asked {
        case .failure(let error):
            let status =
                switch error.reason {
                case .entryNotFound, .invalidParams: 404
                case .unauthorized: 403
                default: 503
                }
            return try await respond(WebResponse(status, error.message))
        case .success(let answer): entry = answer["entry"] ?? .null
        }
        guard let path = LibraryFile.path(named: name, of: entry) else {
            return try await respond(WebResponse(404, "The entry has no file with this name."))
        }
        switch await DiskWork.run({ () throws(SystemError) in try LibraryFile(path) }) {
        case .success(let file):
            return try await busAccess.downloading(visitor, stream) { try await send(file, request) }
        case .failure(let error):
            return try await respond(WebResponse(error.isAbsent ? 404 : 503, "The file can't be read: \(error)."))
        }
    }

    private func send(_ file: LibraryFile, _ request: WebRequest) async throws -> Bool {
        var headers = [file.disposition, "Accept-Ranges: bytes"]
        var (status, part) = (200, 0..<file.count)
        switch ByteRange(request["range"], of: file.count) {
        case .all: break
        case .part(let range):
            (status, part) = (206, range)
            headers.append("Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(file.count)")
        case .none:
            (status, part) = (416, 0..<0)
            headers.append("Content-Range: bytes */\(file.count)")
        }
        let head = WebResponse(status, type: PageFiles.type(of: file.name), headers: headers).head(
            bodyBytes: part.count, keepsAlive: request.keepsAlive, for: request.pageOrigin)
        try await stream.send(head, more: !part.isEmpty && request.method == "GET")
        guard request.method == "GET" else { return request.keepsAlive }
        guard !part.isEmpty else { return request.keepsAlive }
        let sent = await DiskWork.run { [part] () throws(SystemError) in
            file.seek(to: part.lowerBound)
            try stream.sendNow(file: file.descriptor.rawValue, count: part.count)
        }
        guard case .success = sent else { throw WebStream.Ended() }
        return request.keepsAlive
    }
}
