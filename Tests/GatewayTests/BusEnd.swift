import BusProtocol
import BusServer
import CameraBusTesting
import JSON
import ZeroMQ

@testable import Gateway

/// The command socket of a bus on a test's own loop: it keeps what comes, and answers when the test says so.
final class BusEnd {
    struct Asked {
        let request: Request
        fileprivate let back: [[UInt8]]
    }

    let loop: Loop
    let place: BusEndpoints
    private let scratch: TemporaryDirectory
    private let context: Context
    private var socket: Socket?
    /// All that has come, the first first.
    private(set) var asked: [Asked] = []

    /// Nobody is there yet.
    init() throws {
        scratch = try TemporaryDirectory()
        context = try Context()
        loop = try Loop()
        place = BusEndpoints(context, loop, try RuntimeDirectory(scratch.path))
    }

    /// Comes to be there.
    func open() throws {
        let socket = try Socket(context, .router)
        try socket.bind(RuntimeDirectory.endpoint(place.directory.commandSocket))
        self.socket = socket
        loop.watch(.socket(socket)) { [weak self] in
            while let frames = try? socket.receive() { self?.take(frames) }
        }
    }

    private func take(_ frames: [Message]) {
        guard let body = frames.last, case .success(let request) = body.withUnsafeBytes({ Request.parse($0) }) else {
            return
        }
        asked.append(Asked(request: request, back: frames.dropLast().map { Array($0.bytes) }))
    }

    /// What has come of one method.
    func requests(_ method: String) -> [Asked] { asked.filter { $0.request.method == method } }

    func answer(_ one: Asked) {
        guard let id = one.request.id else { return }
        _ = try? socket?.send(frames: one.back + [Response.success(id: id, result: [:])])
    }
}
