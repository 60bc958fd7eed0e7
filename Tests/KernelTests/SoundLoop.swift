import CameraBusTesting
import CaptureCore
import Foundation
import Glibc
import LinuxIO
import Testing

/// The loop of snd-aloop, whose second PCM gives back what is played on the first: aplay plays noise on it, and arecord
/// has its word on what is heard.
struct SoundLoop {
    /// What is played: noise that never comes twice, of ``format``.
    let noise: [UInt8]
    private let scratch: TemporaryDirectory

    static let format = SoundFormat(sampleFormat: .s16, rate: 48000, channels: 2, periodFrames: 480)
    /// The first bytes of the noise, so many of them: by these it is found.
    static let markerBytes = 64
    /// For the programs of alsa-utils.
    static let environment = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"]
    private static let form = ["-q", "-t", "raw", "-f", "S16_LE", "-r", "48000", "-c", "2"]

    init(seconds: Int) throws {
        scratch = try TemporaryDirectory()
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        noise = (0..<seconds * Self.format.rate * Self.format.frameBytes).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
        try File.replace("\(scratch.path)/noise.raw", with: noise, mode: 0o600)
    }

    /// Plays the noise once.
    func play() throws -> RunningProgram {
        try start("aplay", ["-D", "hw:CARD=Loopback,DEV=0,SUBDEV=0"], "noise.raw")
    }

    /// Where the noise begins in what was recorded of the loop; nil: it isn't in there.
    func begin(in recorded: [UInt8]) -> Int? {
        Data(recorded).range(of: Data(noise.prefix(Self.markerBytes)))?.lowerBound
    }

    /// What was recorded from the beginning of the noise on, as long as that is; less of it, when it ends before.
    func heard(in recorded: [UInt8]) -> [UInt8] {
        begin(in: recorded).map { Array(recorded[$0...].prefix(noise.count)) } ?? []
    }

    /// What arecord hears while the noise is played.
    func heardByArecord() async throws -> [UInt8] {
        let arecord = try start("arecord", ["-D", "hw:CARD=Loopback,DEV=1,SUBDEV=0"], "theirs.raw")
        // It runs before there is anything to hear.
        try await eventually(by: .after(seconds: 60)) {
            try String(contentsOfFile: "/proc/asound/Loopback/pcm1c/sub0/status", encoding: .utf8).contains("RUNNING")
        }
        let aplay = try await play().end(by: .after(seconds: 60))
        #expect(aplay.status == 0, "\(aplay)")
        var heard: [UInt8] = []
        // What it has heard it writes a little later.
        try await eventually(by: .after(seconds: 20)) {
            heard = self.heard(in: try File.read("\(scratch.path)/theirs.raw", limit: 64 << 20))
            return heard.count == noise.count
        }
        arecord.process.send(SIGTERM)
        _ = try await arecord.end(by: .after(seconds: 60))
        return heard
    }

    private func start(_ program: String, _ arguments: [String], _ file: String) throws -> RunningProgram {
        try RunningProgram(
            program, arguments + Self.form + ["\(scratch.path)/\(file)"], environment: Self.environment,
            scratch: scratch)
    }
}
