import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Synchronization
import Testing

/// Files of the library, brought here: what lies in their way, limits and slow lines.
@Suite(.timeLimit(.minutes(5))) struct FetchTests {
    /// A bus that has one file, of 3 MiB.
    private final class Library: Sendable {
        let bytes: [UInt8]
        /// What is answered in the place of parts: the limit that is exceeded; nil: nothing is.
        let instead = Mutex<[String?]>([])
        /// Bytes that one answer may have.
        let largest = Mutex(4 << 20)
        /// What was asked for, but for what is known of the file.
        let asked = Mutex<[(offset: Int, length: Int)]>([])

        init() {
            var generator = SystemRandomNumberGenerator()
            let block = (0..<4096).map { _ in UInt8.random(in: 0...255, using: &generator) }
            // No block is as its neighbours.
            bytes = (0..<768).flatMap { number in [UInt8(number & 255), UInt8(number >> 8)] + block.dropFirst(2) }
        }

        func answer(_ request: Request, _ respond: (FakeBus.Reply) -> Void) -> Bool {
            guard request.method == "library.read" else { return false }
            let offset = Int(request.params["offset"]?.integer ?? 0)
            let length = Int(request.params["length"]?.integer ?? 0)
            if length > 0 {
                asked.withLock { $0.append((offset, length)) }
                let next = instead.withLock { instead in instead.isEmpty ? nil : instead.removeFirst() as String?? }
                if let next {
                    guard let limit = next else { return true }
                    respond(.error(BusError(.limitExceeded, "No.", ["limit": .string(limit), "maximum": 1])))
                    return true
                }
            }
            guard length <= largest.withLock(\.self) else {
                respond(.error(BusError(.limitExceeded, "No.", ["limit": "remoteReply", "maximum": 1])))
                return true
            }
            let part = Array(bytes[offset..<min(bytes.count, offset + length)])
            respond(
                .result(
                    [
                        "id": "e1", "file": "path", "name": "a.mp4", "size": JSONValue(bytes.count),
                        "offset": JSONValue(offset), "revision": "rev-1", "state": "finished",
                        "attachments": [["name": "a.mp4", "contentType": "video/mp4", "bytes": JSONValue(part.count)]],
                    ], attachments: [part]))
            return true
        }

        var lengths: [Int] { asked.withLock { $0.map(\.length) } }
        var first: Int? { asked.withLock { $0.first?.offset } }
    }

    private let library = Library()
    private let bus: FakeBus
    private let scratch: TemporaryDirectory
    private var target: String { "\(scratch.path)/here.mp4" }
    private var part: String { "\(target).rev-1.part" }

    init() throws {
        let library = library
        bus = try FakeBus { library.answer($0, $1) }
        scratch = try TemporaryDirectory()
    }

    private func fetch(
        _ path: String? = nil, replaces: Bool = false, timeout: Duration = .seconds(10)
    ) async throws -> FetchedFile {
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        do {
            let file = try await client.fetchFromLibrary("e1", to: path ?? target, replaces: replaces, timeout: timeout)
            await client.close()
            return file
        } catch {
            await client.close()
            throw error
        }
    }

    private func isWhole() throws -> Bool {
        try File.read(target, limit: 16 << 20) == library.bytes && scratch.contents() == ["here.mp4"]
    }

    @Test func `it goes on where the end of what is here is right`() async throws {
        try File.replace(part, with: Array(library.bytes[..<(2 << 20)]), mode: 0o600)
        #expect(try await fetch().resumedAt == 2 << 20)
        #expect(try library.first == 1 << 20 && isWhole())
    }

    @Test func `it begins anew where that is not`() async throws {
        // As after a power cut: the size is on the disk, the bytes are not.
        let bytes = library.bytes[..<(2 << 20 - 10)] + Array(repeating: 0, count: 10)
        try File.replace(part, with: Array(bytes), mode: 0o600)
        #expect(try await fetch().resumedAt == 0)
        #expect(try library.first == 1 << 20 && isWhole())
    }

    @Test func `a link stays one, and what is no file is refused at once`() async throws {
        let link = "\(scratch.path)/link"
        try File.replace(target, with: [1], mode: 0o600)
        #expect(symlink(target, link) == 0)
        _ = try await fetch(link, replaces: true)
        #expect(try File.read(target, limit: 16 << 20) == library.bytes)
        var status = stat()
        #expect(lstat(link, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
        let asked = bus.requests.count
        await #expect(throws: ClientError.self) { try await fetch(scratch.path, replaces: true) }
        let long = "\(scratch.path)/" + String(repeating: "x", count: 256)
        await #expect(throws: ClientError.self) { try await fetch(long) }
        #expect(!bus.requests.dropFirst(asked).contains { $0.method == "library.read" })
    }

    @Test func `limits that pass are waited for, and fewer bytes asked for where it is about these`() async throws {
        library.instead.withLock { $0 = ["requestRate", "libraryReplies", "remoteReplies"] }
        _ = try await fetch()
        #expect(try library.lengths.prefix(4) == [64 << 10, 64 << 10, 32 << 10, 16 << 10] && isWhole())
    }

    @Test func `one that does not pass ends it in time`() async throws {
        library.instead.withLock { $0 = Array(repeating: "libraryRequests", count: 100) }
        let error = await #expect(throws: ClientError.self) { try await fetch(timeout: .seconds(1)) }
        #expect(error?.reason == .limitExceeded)
    }

    @Test func `parts are as small as answers have to be`() async throws {
        library.largest.withLock { $0 = 40_000 }
        _ = try await fetch()
        #expect(try isWhole())
        library.largest.withLock { $0 = 10 }
        let error = await #expect(throws: ClientError.self) { try await fetch("\(target).2") }
        #expect(error?.reason == .limitExceeded)
    }

    @Test func `a line that is slow is asked for less`() async throws {
        library.instead.withLock { $0 = [nil] }
        _ = try await fetch(timeout: .seconds(1))
        #expect(try library.lengths.prefix(2) == [64 << 10, 16 << 10] && isWhole())
        library.instead.withLock { $0 = [nil, nil] }
        let error = await #expect(throws: ClientError.self) {
            try await fetch("\(target).2", timeout: .milliseconds(200))
        }
        guard case .timedOut? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }
}
