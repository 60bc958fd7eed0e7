import BusProtocol
import CameraBusTesting
import CaptureCore
import Glibc
import LinuxIO
import Testing

@testable import Recorder

@Suite("The thread that writes a movie") struct MovieThreadTests {
    @Test("a start that was refused is not tried again by the frames that wait")
    func refused() throws {
        let scratch = try TemporaryDirectory()
        let request = MovieRequest(
            movie: "m1", path: "\(scratch.path)/no-folder/movie.mp4",
            camera: MovieRequest.Device(id: "cam0", uniqueID: "c", name: "Camera"), fileType: .mp4,
            owner: LockHolder(uid: 0, gid: 0, pid: 1, name: "test"))
        let desk = try WriterFixture(
            request, .motionJPEG, size: Dimensions(width: 64, height: 48), rate: 8000, begins: false)
        for number in 0..<3 {
            let sample = Sample(time: Int64(number) * 33_000_000, sequence: UInt64(number))
            let outcome = desk.pictures.push(sample, count: 16) { _ in true }
            #expect(outcome == .taken)
        }
        let result = try desk.write()
        #expect(result?.isSuccess == false && result?.isKept == false && result?.error?.reason == .invalidParams)
        #expect(desk.pictures.count == 2, "the others are left alone")
        #expect(access(request.path, F_OK) != 0 && access(request.path + ".frames.jsonl", F_OK) != 0)
    }
}
