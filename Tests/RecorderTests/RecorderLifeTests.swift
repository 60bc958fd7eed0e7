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

/// Recorders that are ended, and those whose coordinator goes or comes late.
extension RecordingTests {
    @Test("SIGTERM ends the movie whole")
    func terminated() async throws {
        let fixture = try RecorderFixture()
        let filming = try fixture.film(frames: 5)
        filming.recorder.process.send(SIGTERM)
        let result = try fixture.waitForEnd()
        #expect(result.reason == .shuttingDown && result.isSuccess && result.isKept)
        #expect(try await filming.recorder.end().status == 0)
        #expect(try MovieRepair.inspect(filming.request.path).condition == .whole)
    }

    @Test("without a coordinator for too long the movie ends whole")
    func abandoned() throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .motionJPEG)
        var request = fixture.request()
        request.library = "\(fixture.scratch.path)/library"
        let end = try fixture.recordHere(request) { $0.coordinatorGraceMilliseconds = 1000 }
        try fixture.waitForState("frames") { $0.frames >= 5 }
        fixture.endCoordinator()
        #expect(end() == .inOrder)
        #expect(try MovieRepair.inspect(request.path).condition == .whole)
        let entry = try CaptureLibrary(try #require(request.library)).entry("m1")
        #expect(entry?.state == .finished && entry?.reason == "shuttingDown")
    }

    @Test("there is one recorder for a movie")
    func taken() async throws {
        let fixture = try RecorderFixture()
        let request = try fixture.film().request
        #expect(try await fixture.record(request).end().status == 75)
        #expect(try fixture.stop().isSuccess)
    }

    @Test("a coordinator that comes later learns all, and stops the movie")
    func coordinatorDies() throws {
        let fixture = try RecorderFixture()
        let request = try fixture.film(frames: 15).request
        fixture.endCoordinator()
        try fixture.startCoordinator()
        try fixture.wait("hello") { if case .hello = $0 { true } else { false } }
        #expect(fixture.request == request && fixture.link == 2 && fixture.progress.frames >= 15)
        #expect(fixture.progress.stage == .recording && fixture.progress.video["codec"] == "mjpeg")
        let result = try fixture.stop()
        #expect(result.isSuccess)
    }

    @Test("what a movie has come to before the first hello is told after it")
    func beforeHello() async throws {
        let fixture = try RecorderFixture()
        fixture.endCoordinator()
        try fixture.startCamera("cam0", .motionJPEG)
        let request = fixture.request()
        _ = try fixture.record(request)
        // A line of its head, and some of frames that are in the file.
        try await eventually { (try? fixture.sideCar(request.path).count) ?? 0 > 5 }
        try fixture.startCoordinator()
        var isGreeted = false
        try fixture.wait("the beginning") { report in
            if case .hello(_, _, 1, request, _) = report { isGreeted = true }
            #expect(isGreeted, "\(report)")
            return report == .event(.didStartRecording)
        }
        #expect(fixture.progress.stage == .recording)
        #expect(try fixture.stop().isSuccess)
    }

    @Test("a movie that ends before the first hello tells how")
    func overBeforeHello() async throws {
        let fixture = try RecorderFixture()
        fixture.endCoordinator()
        try fixture.startCamera("cam0", .motionJPEG)
        let request = fixture.request()
        let recorder = try fixture.record(request)
        try await eventually { (try? fixture.sideCar(request.path).count) ?? 0 > 5 }
        recorder.process.send(SIGTERM)
        try await eventually { try MovieRepair.inspect(request.path).condition == .whole }
        try fixture.startCoordinator()
        try fixture.wait("the beginning") { $0 == .event(.didStartRecording) }
        #expect(try fixture.waitForEnd().reason == .shuttingDown)
        #expect(try await recorder.end().status == 0)
    }

    @Test("a recorder that is killed leaves what was on the disk")
    func killed() async throws {
        let fixture = try RecorderFixture()
        let filming = try fixture.film()
        let request = filming.request
        let progress = try fixture.waitForState("fragments") { $0.fragments >= 2 }
        filming.recorder.process.send(SIGKILL)
        _ = try await filming.recorder.end()
        let inspection = try MovieRepair.inspect(request.path)
        #expect(inspection.wholeSize >= progress.syncedFileSize)
        let complaints = try await fixture.complaints(request.path)
        #expect(complaints == "")
    }
}
