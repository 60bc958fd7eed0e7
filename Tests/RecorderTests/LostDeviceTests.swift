import BusProtocol
import CameraBusTesting
import CaptureCore
import Glibc
import JSON
import LinuxIO
import MovieFile
import Recorder
import Testing

/// Movies of cameras and microphones that go, come again, or never come.
extension RecordingTests {
    @Test("a camera whose process dies and comes again goes on in the same movie")
    func workerDies() async throws {
        let fixture = try RecorderFixture()
        let filming = try fixture.film(frames: 15)
        let request = filming.request
        filming.camera.process.send(SIGKILL)
        _ = try await filming.camera.end()
        let before = fixture.progress.frames
        try fixture.startCamera("cam0", .motionJPEG)
        try fixture.waitForState("further frames") { $0.frames >= before + 30 }
        let result = try fixture.stop()
        #expect(result.isSuccess)
        let tracks = try await fixture.tracks(request.path)
        #expect(Self.count(try #require(tracks.first)) == Int(result.frames))
        let complaints = try await fixture.complaints(request.path)
        #expect(complaints == "")
    }

    @Test("a camera that comes again with another picture ends what can't go on, whole")
    func formatChanges() async throws {
        let fixture = try RecorderFixture()
        let filming = try fixture.film(frames: 15)
        filming.camera.process.send(SIGKILL)
        _ = try await filming.camera.end()
        try fixture.startCamera("cam0", .motionJPEG, width: 1280, height: 720)
        let result = try fixture.waitForEnd()
        #expect(result.reason == .formatChanged && result.isKept && result.canContinue)
        // Nobody has begun another file.
        #expect(!result.isSuccess && result.error?.message.contains("MJPG 1280x720 now, and MJPG 640x480") == true)
        #expect(try MovieRepair.inspect(filming.request.path).condition == .whole)
    }

    @Test("an encoded movie keeps its size when the camera changes its own")
    func sizeChanges() async throws {
        let fixture = try RecorderFixture()
        let camera = try fixture.startCamera("cam0", .nv12)
        let request = fixture.request()
        _ = try fixture.record(request)
        try fixture.waitForState("frames") { $0.frames >= 15 }
        camera.process.send(SIGKILL)
        _ = try await camera.end()
        let before = fixture.progress.frames
        try fixture.startCamera("cam0", .yuyv, width: 1280, height: 720)
        try fixture.wait(for: .didChangeSize(Dimensions(width: 1280, height: 720)))
        try fixture.waitForState("further frames") { $0.frames >= before + 15 }
        #expect(fixture.progress.source == Dimensions(width: 1280, height: 720))
        let result = try fixture.stop()
        #expect(result.isSuccess)
        let tracks = try await fixture.tracks(request.path)
        #expect(tracks.first?["width"] == 640 && tracks.first?["height"] == 480)
        let complaints = try await fixture.complaints(request.path)
        #expect(complaints == "")
        let lines = try fixture.sideCar(request.path)
        let change = try #require(lines.firstIndex { $0["source"] != nil })
        #expect(lines[change]["source"] == ["width": 1280, "height": 720] && lines.count == Int(result.frames) + 2)
        // 16:9 has black above and below it in 4:3.
        let edge = try await brightest(fixture, request.path, line: 10, width: 640)
        try #require(edge.count == Int(result.frames))
        #expect(edge[..<(change - 1)].allSatisfy { $0 > 128 }, "\(edge)")
        #expect(edge[(change - 1)...].allSatisfy { $0 < 40 }, "\(edge)")
    }

    @Test("pixels that are stored go on in another format, and not at another size")
    func storedPixels() async throws {
        let fixture = try RecorderFixture()
        let camera = try fixture.startCamera("cam0", .yuyv)
        var request = fixture.request(.mkv)
        request.video.codec = .raw
        _ = try fixture.record(request)
        try fixture.waitForState("frames") { $0.frames >= 5 }
        camera.process.send(SIGKILL)
        _ = try await camera.end()
        let before = fixture.progress.frames
        let other = try fixture.startCamera("cam0", .motionJPEG)
        try fixture.waitForState("further frames") { $0.frames >= before + 5 }
        other.process.send(SIGKILL)
        _ = try await other.end()
        try fixture.startCamera("cam0", .motionJPEG, width: 320, height: 240)
        let result = try fixture.waitForEnd()
        #expect(result.reason == .formatChanged && result.isKept && result.canContinue)
        let tracks = try await fixture.tracks(request.path)
        #expect(tracks.first?["width"] == 640)
        #expect(Self.count(try #require(tracks.first)) == Int(result.frames))
    }

    @Test("a microphone that gives no sound ends what begins with it")
    func noSound() throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .nv12)
        var request = fixture.request(.mp4, microphone: true)
        request.startsWithSound = true
        let end = try fixture.recordHere(request) { $0.soundWaitMilliseconds = 300 }
        let result = try fixture.waitForEnd()
        #expect(result.reason == .deviceLost && !result.isKept && result.error?.reason == .deviceDisconnected)
        #expect(end() == .inOrder)
        #expect(access(request.path, F_OK) != 0)
    }

    @Test("a camera that stays away ends the movie whole")
    func cameraLost() async throws {
        let fixture = try RecorderFixture()
        let camera = try fixture.startCamera("cam0", .motionJPEG)
        try await fixture.waitForPictures()
        let request = fixture.request()
        let end = try fixture.recordHere(request) { $0.deviceWaitMilliseconds = 1500 }
        try fixture.waitForState("frames") { $0.frames >= 5 }
        camera.process.send(SIGKILL)
        _ = try await camera.end()
        let result = try fixture.waitForEnd()
        #expect(result.reason == .deviceLost && !result.isSuccess && result.isKept)
        #expect(result.error?.reason == .deviceDisconnected)
        #expect(end() == .inOrder)
        #expect(try MovieRepair.inspect(request.path).condition == .whole)
    }

    @Test("a movie of a camera that never comes is none")
    func noCamera() throws {
        let fixture = try RecorderFixture()
        let request = fixture.request()
        let end = try fixture.recordHere(request) { $0.deviceWaitMilliseconds = 300 }
        let result = try fixture.waitForEnd()
        #expect(result.reason == .deviceLost && !result.isKept)
        #expect(end() == .inOrder)
        #expect(access(request.path, F_OK) != 0)
    }

    @Test("a microphone whose process dies and comes again is silent meanwhile")
    func microphoneDies() async throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .motionJPEG)
        let microphone = try fixture.startMicrophone()
        let request = fixture.request(.mov, microphone: true)
        _ = try fixture.record(request)
        try fixture.waitForState("frames") { $0.frames >= 30 }
        microphone.process.send(SIGKILL)
        _ = try await microphone.end()
        let before = fixture.progress.frames
        try fixture.waitForState("frames without sound") { $0.frames >= before + 15 }
        try fixture.startMicrophone()
        try fixture.waitForState("frames with sound") { $0.frames >= before + 75 }
        let result = try fixture.stop()
        #expect(result.isSuccess && result.dropped == 0)
        let durations = try await fixture.tracks(request.path).compactMap {
            $0["duration"]?.string.flatMap(Double.init)
        }
        try #require(durations.count == 2)
        #expect(abs(durations[0] - durations[1]) < 0.2, "the sound goes on where the picture is")
    }
}
