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
    func brightest(_ fixture: RecorderFixture, _ path: String, line: Int, width: Int) async throws -> [Int] {
        let result = try await fixture.run(
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
        let fixture = try RecorderFixture()
        let first = try fixture.startCamera("cam0", .nv12)
        try fixture.startCamera("cam1", .motionJPEG, width: 1280, height: 720, number: 1)
        var request = fixture.request()
        request.library = "\(fixture.scratch.path)/library"
        request.video.codec = .h264
        _ = try fixture.record(request)
        try fixture.waitForState("frames") { $0.frames >= 15 }
        let camera = MovieRequest.Device(id: "cam1", uniqueID: "virtual-1", name: "Other")
        let input = RecorderOrder.Input(camera, orientation: 0, mirrored: false)
        #expect(try fixture.order(.input(input)).get() == [:])
        #expect(try fixture.order(.input(input)).get() == [:], "it is there already")
        first.process.send(SIGKILL)
        _ = try await first.end()
        let before = fixture.progress.frames
        try fixture.waitForState("further frames") { $0.frames >= before + 15 }
        fixture.endCoordinator()
        try fixture.startCoordinator()
        try fixture.wait("hello") { if case .hello = $0 { true } else { false } }
        #expect(fixture.request?.camera == camera && fixture.request?.orientation == 0)
        let result = try fixture.stop()
        #expect(result.isSuccess)

        let tracks = try await fixture.tracks(request.path)
        #expect(tracks.first?["width"] == 640 && tracks.first?["height"] == 480)
        #expect(Self.count(try #require(tracks.first)) == Int(result.frames))
        let complaints = try await fixture.complaints(request.path)
        #expect(complaints == "")
        let lines = try fixture.sideCar(request.path)
        let change = try #require(lines.dropFirst().firstIndex { $0["camera"] != nil })
        #expect(lines[change]["camera"]?["device"] == "cam1" && lines.count == Int(result.frames) + 2)
        // A machine that is held up may lose some; the change itself costs none.
        #expect(lines.compactMap { $0["dropped"]?.integer }.reduce(0, +) == Int64(result.dropped))
        #expect(lines[change + 1]["dropped"] == 0)
        let times = lines.dropFirst().compactMap { $0["timestamp"]?.integer }
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
        // 16:9 has black above and below it in 4:3.
        let edge = try await brightest(fixture, request.path, line: 10, width: 640)
        try #require(edge.count == Int(result.frames))
        #expect(edge[..<(change - 1)].allSatisfy { $0 > 128 }, "\(edge)")
        #expect(edge[(change - 1)...].allSatisfy { $0 < 40 }, "\(edge)")
        let entry = try CaptureLibrary(try #require(request.library)).entry("m1")
        #expect(entry?.devices.map(\.device) == ["cam0", "cam1"])
    }

    @Test("without the other camera the movie goes on with the one that it has")
    func noOtherCamera() throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .nv12)
        let request = fixture.request()
        let end = try fixture.recordHere(request) { $0.inputWaitMilliseconds = 1000 }
        try fixture.waitForState("frames") { $0.frames >= 5 }
        let input = RecorderOrder.Input(MovieRequest.Device(id: "cam9", uniqueID: "u", name: "None"))
        // The last one counts.
        let (early, late) = (try fixture.send(.input(input)), try fixture.send(.input(input)))
        for (order, reason) in [(early, .cancelled), (late, .deviceDisconnected)] as [(UInt64, BusError.Reason)] {
            let report = try fixture.wait("the answer") { if case .reply(order, _) = $0 { true } else { false } }
            guard case .reply(_, .failure(let error)) = report else { throw TestingError("\(report)") }
            #expect(error.reason == reason)
        }
        let before = fixture.progress.frames
        try fixture.waitForState("further frames") { $0.frames >= before + 15 }
        #expect(fixture.request?.camera?.id == "cam0")
        #expect(try fixture.stop().dropped == 0)
        #expect(end() == .inOrder)
    }

    @Test("what is stored as it comes stays with its camera")
    func storedStays() throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .motionJPEG)
        _ = try fixture.record(fixture.request())
        try fixture.waitForState("frames") { $0.frames >= 5 }
        let input = RecorderOrder.Input(MovieRequest.Device(id: "cam1", uniqueID: "u", name: "Other"))
        guard case .failure(let error) = try fixture.order(.input(input)) else { throw TestingError("no error") }
        #expect(error.reason == .formatUnsupported)
        #expect(try fixture.stop().isSuccess)
    }

    @Test("a smaller picture is made as large as the others of its take")
    func fitted() async throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .nv12)
        var request = fixture.request()
        request.video = MovieRequest.Video(codec: .h264, width: 1280, height: 720, preset: "ultrafast", isFitted: true)
        _ = try fixture.record(request)
        try fixture.waitForState("frames") { $0.frames >= 5 }
        #expect(try fixture.stop().isSuccess)
        let track = try await fixture.tracks(request.path).first
        #expect(track?["width"] == 1280 && track?["height"] == 720)
    }
}
