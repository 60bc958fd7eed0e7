import CameraBusTesting
import CaptureCore
import Glibc
import JSON
import LinuxIO
import Testing

@testable import Recorder

/// The file beside a movie, and what lies in its place.
@Suite struct SideCarTests {
    private let scratch: TemporaryDirectory
    private let request: MovieRequest
    private var place: String { request.path + ".frames.jsonl" }

    init() throws {
        scratch = try TemporaryDirectory()
        request = MovieRequest(
            movie: "m1", path: "\(scratch.path)/movie.mp4",
            camera: MovieRequest.Device(id: "cam0", uniqueID: "c", name: "Camera"), fileType: .mp4,
            owner: LockHolder(uid: 0, gid: 0, pid: 1, name: "test"))
    }

    /// A movie of three pictures.
    private func record() async throws -> (result: MovieResult, told: String?) {
        let desk = try WriterFixture(request, .motionJPEG, size: Dimensions(width: 64, height: 48), rate: 8000)
        for number in 0..<3 {
            let sample = Sample(time: Int64(number) * 33_000_000, sequence: UInt64(number))
            let outcome = desk.pictures.push(sample, count: 16) { room in
                room.copyBytes(from: [0xFF, 0xD8] + [UInt8](repeating: 0, count: 12) + [0xFF, 0xD9])
                return true
            }
            #expect(outcome == .taken)
        }
        try await desk.isWritten()
        let told = desk.mailbox.figures.sideCarProblem
        return (try #require(desk.end()), told)
    }

    private var lines: [JSONValue] {
        get throws {
            String(decoding: try File.read(place, limit: 1 << 16), as: UTF8.self).split(separator: "\n").compactMap {
                try? JSONValue(parsing: String($0))
            }
        }
    }

    @Test("one whose movie is there no more is replaced", arguments: [false, true])
    func orphan(_ isEmpty: Bool) async throws {
        var old = request
        old.movie = "m0"
        let text = isEmpty ? "" : SideCar.head(old, firstFrame: 7, realtime: 9, notBefore: nil).description + "\n{}\n"
        try File.replace(place, with: Array(text.utf8), mode: 0o600)
        let (result, problem) = try await record()
        #expect(result.isKept && result.sideCarProblem == nil && problem == nil)
        #expect(try lines.first?["movie"] == "m1" && lines.count == 4)
    }

    @Test(
        "another file stays, and the movie says that it has none",
        arguments: [#"{"movie":"m0"}"# + "\n", "mine", "\n\n", #"{"movie":"m0","camera":null,"firstFrame":1}"#])
    func stranger(_ text: String) async throws {
        try File.replace(place, with: Array(text.utf8), mode: 0o600)
        let (result, problem) = try await record()
        #expect(result.isSuccess && result.isKept && result.frames == 3)
        #expect(result.sideCarProblem?.contains("no side-car: \(place)") == true && problem == result.sideCarProblem)
        #expect(try File.read(place, limit: 100) == Array(text.utf8))
        #expect(MovieResult(json: .object(result.members)) == result)
    }

    @Test("neither a link nor a pipe is one")
    func kinds() throws {
        let real = "\(scratch.path)/real"
        let head = SideCar.head(request, firstFrame: 7, realtime: 9, notBefore: nil).description + "\n"
        try File.replace(real, with: Array(head.utf8), mode: 0o600)
        #expect(SideCar.isOne(real))
        symlink(real, "\(scratch.path)/link")
        mkfifo("\(scratch.path)/pipe", 0o600)
        for name in ["link", "pipe", "nothing", ""] { #expect(!SideCar.isOne("\(scratch.path)/\(name)"), "\(name)") }
    }
}
