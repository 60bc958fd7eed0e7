import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import MovieFile
import Recorder
import Testing

/// A movie that goes on with another camera's pictures.
extension RecordingTests {
    /// How bright the brightest point of a line is in each picture, from 0 to 255.
    private func brightest(_ studio: Studio, _ path: String, line: Int, width: Int) async throws -> [Int] {
        let result = try await studio.run(
            "ffmpeg",
            [
                "-v", "error", "-i", path, "-vsync", "passthrough", "-vf", "crop=iw:2:0:\(line),format=gray",
                "-f", "rawvideo", "-",
            ])
        let bytes = result.standardOutputBytes
        return stride(from: 0, to: bytes.count, by: 2 * width).map { Int(bytes[$0..<$0 + 2 * width].max() ?? 0) }
    }

    @Test("a movie goes on with another camera, in the same file and at its size")
    func anotherCamera() async throws {
        let studio = try Studio()
        let first = try studio.startCamera("cam0", .nv12)
        try studio.startCamera("cam1", .motionJPEG, width: 1280, height: 720, number: 1)
        var request = studio.request()
        request.library = "\(studio.scratch.path)/library"
        request.video.codec = .h264
        _ = try studio.record(request)
        try studio.waitForState("frames") { $0.frames >= 15 }
        let camera = MovieRequest.Device(id: "cam1", uniqueID: "virtual-1", name: "Other")
        let input = RecorderOrder.Input(camera, orientation: 0, mirrored: false)
        #expect(try studio.order(.input(input)).get() == [:])
        #expect(try studio.order(.input(input)).get() == [:], "it is there already")
        first.process.send(SIGKILL)
        _ = try await first.end()
        let before = studio.progress.frames
        try studio.waitForState("further frames") { $0.frames >= before + 15 }
        studio.endCoordinator()
        try studio.startCoordinator()
        try studio.wait("hello") { if case .hello = $0 { true } else { false } }
        #expect(studio.request?.camera == camera && studio.request?.orientation == 0)
        let result = try studio.stop()
        #expect(result.isSuccess)

        let tracks = try await studio.tracks(request.path)
        #expect(tracks.first?["width"] == 640 && tracks.first?["height"] == 480)
        #expect(Self.count(try #require(tracks.first)) == Int(result.frames))
        let complaints = try await studio.complaints(request.path)
        #expect(complaints == "")
        let lines = try studio.sideCar(request.path)
        let change = try #require(lines.dropFirst().firstIndex { $0["camera"] != nil })
        #expect(lines[change]["camera"]?["device"] == "cam1" && lines.count == Int(result.frames) + 2)
        // A machine that is held up may lose some; the change itself costs none.
        #expect(lines.compactMap { $0["dropped"]?.integer }.reduce(0, +) == Int64(result.dropped))
        #expect(lines[change + 1]["dropped"] == 0)
        let times = lines.dropFirst().compactMap { $0["timestamp"]?.integer }
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
        // 16:9 has black above and below it in 4:3.
        let edge = try await brightest(studio, request.path, line: 10, width: 640)
        try #require(edge.count == Int(result.frames))
        #expect(edge[..<(change - 1)].allSatisfy { $0 > 128 }, "\(edge)")
        #expect(edge[(change - 1)...].allSatisfy { $0 < 40 }, "\(edge)")
        let entry = try CaptureLibrary(try #require(request.library)).entry("m1")
        #expect(entry?.devices.map(\.device) == ["cam0", "cam1"])
    }

    @Test("without the other camera the movie goes on with the one that it has")
    func noOtherCamera() throws {
        let studio = try Studio()
        try studio.startCamera("cam0", .nv12)
        let request = studio.request()
        let end = try studio.recordHere(request) { $0.inputWaitMilliseconds = 1000 }
        try studio.waitForState("frames") { $0.frames >= 5 }
        let input = RecorderOrder.Input(MovieRequest.Device(id: "cam9", uniqueID: "u", name: "None"))
        // The last one counts.
        let (early, late) = (try studio.send(.input(input)), try studio.send(.input(input)))
        for (order, reason) in [(early, .cancelled), (late, .deviceDisconnected)] as [(UInt64, BusError.Reason)] {
            let report = try studio.wait("the answer") { if case .reply(order, _) = $0 { true } else { false } }
            guard case .reply(_, .failure(let error)) = report else { throw TestingError("\(report)") }
            #expect(error.reason == reason)
        }
        let before = studio.progress.frames
        try studio.waitForState("further frames") { $0.frames >= before + 15 }
        #expect(studio.request?.camera?.id == "cam0")
        #expect(try studio.stop().dropped == 0)
        #expect(end() == .inOrder)
    }

    @Test("what is stored as it comes stays with its camera")
    func storedStays() throws {
        let studio = try Studio()
        try studio.startCamera("cam0", .motionJPEG)
        _ = try studio.record(studio.request())
        try studio.waitForState("frames") { $0.frames >= 5 }
        let input = RecorderOrder.Input(MovieRequest.Device(id: "cam1", uniqueID: "u", name: "Other"))
        guard case .failure(let error) = try studio.order(.input(input)) else { throw TestingError("no error") }
        #expect(error.reason == .formatUnsupported)
        #expect(try studio.stop().isSuccess)
    }

    @Test("a smaller picture is made as large as the others of its take")
    func fitted() async throws {
        let studio = try Studio()
        try studio.startCamera("cam0", .nv12)
        var request = studio.request()
        request.video = MovieRequest.Video(codec: .h264, width: 1280, height: 720, preset: "ultrafast", isFitted: true)
        _ = try studio.record(request)
        try studio.waitForState("frames") { $0.frames >= 5 }
        #expect(try studio.stop().isSuccess)
        let track = try await studio.tracks(request.path).first
        #expect(track?["width"] == 1280 && track?["height"] == 720)
    }
}
