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
        let studio = try Studio()
        let filming = try studio.film(frames: 5)
        filming.recorder.process.send(SIGTERM)
        let result = try studio.waitForEnd()
        #expect(result.reason == .shuttingDown && result.isSuccess && result.isKept)
        #expect(try await filming.recorder.end().status == 0)
        #expect(try MovieRepair.inspect(filming.request.path).condition == .whole)
    }

    @Test("without a coordinator for too long the movie ends whole")
    func abandoned() throws {
        let studio = try Studio()
        try studio.startCamera("cam0", .motionJPEG)
        var request = studio.request()
        request.library = "\(studio.scratch.path)/library"
        let end = try studio.recordHere(request) { $0.coordinatorGraceMilliseconds = 1000 }
        try studio.waitForState("frames") { $0.frames >= 5 }
        studio.endCoordinator()
        #expect(end() == .inOrder)
        #expect(try MovieRepair.inspect(request.path).condition == .whole)
        let entry = try CaptureLibrary(try #require(request.library)).entry("m1")
        #expect(entry?.state == .finished && entry?.reason == "shuttingDown")
    }

    @Test("there is one recorder for a movie")
    func taken() async throws {
        let studio = try Studio()
        let request = try studio.film().request
        #expect(try await studio.record(request).end().status == 75)
        #expect(try studio.stop().isSuccess)
    }

    @Test("a coordinator that comes later learns all, and stops the movie")
    func coordinatorDies() throws {
        let studio = try Studio()
        let request = try studio.film(frames: 15).request
        studio.endCoordinator()
        try studio.startCoordinator()
        try studio.wait("hello") { if case .hello = $0 { true } else { false } }
        #expect(studio.request == request && studio.link == 2 && studio.progress.frames >= 15)
        #expect(studio.progress.stage == .recording && studio.progress.video["codec"] == "mjpeg")
        let result = try studio.stop()
        #expect(result.isSuccess)
    }

    @Test("what a movie has come to before the first hello is told after it")
    func beforeHello() async throws {
        let studio = try Studio()
        studio.endCoordinator()
        try studio.startCamera("cam0", .motionJPEG)
        let request = studio.request()
        _ = try studio.record(request)
        // A line of its head, and some of frames that are in the file.
        try await eventually { (try? studio.sideCar(request.path).count) ?? 0 > 5 }
        try studio.startCoordinator()
        var isGreeted = false
        try studio.wait("the beginning") { report in
            if case .hello(_, _, 1, request, _) = report { isGreeted = true }
            #expect(isGreeted, "\(report)")
            return report == .event(.didStartRecording)
        }
        #expect(studio.progress.stage == .recording)
        #expect(try studio.stop().isSuccess)
    }

    @Test("a movie that ends before the first hello tells how")
    func overBeforeHello() async throws {
        let studio = try Studio()
        studio.endCoordinator()
        try studio.startCamera("cam0", .motionJPEG)
        let request = studio.request()
        let recorder = try studio.record(request)
        try await eventually { (try? studio.sideCar(request.path).count) ?? 0 > 5 }
        recorder.process.send(SIGTERM)
        try await eventually { try MovieRepair.inspect(request.path).condition == .whole }
        try studio.startCoordinator()
        try studio.wait("the beginning") { $0 == .event(.didStartRecording) }
        #expect(try studio.waitForEnd().reason == .shuttingDown)
        #expect(try await recorder.end().status == 0)
    }

    @Test("a recorder that is killed leaves what was on the disk")
    func killed() async throws {
        let studio = try Studio()
        let filming = try studio.film()
        let request = filming.request
        let progress = try studio.waitForState("fragments") { $0.fragments >= 2 }
        filming.recorder.process.send(SIGKILL)
        _ = try await filming.recorder.end()
        let inspection = try MovieRepair.inspect(request.path)
        #expect(inspection.wholeSize >= progress.syncedFileSize)
        let complaints = try await studio.complaints(request.path)
        #expect(complaints == "")
    }
}
