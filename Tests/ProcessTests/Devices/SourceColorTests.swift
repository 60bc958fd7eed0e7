import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests.Films {
    /// Sends the picture whenever the clock camera has one, until the program has ended.
    private func send(
        _ pixels: [UInt8], to source: FrameSource, at clock: FrameReader, while program: RunningProgram
    ) throws {
        var item = pollfd(fd: program.process.rawValue, events: Int16(POLLIN), revents: 0)
        while poll(&item, 1, 0) == 0 {
            _ = try clock.next()
            _ = try pixels.withUnsafeBytes { try source.send($0) }
        }
    }

    @Test(arguments: [("smpte170m", YCbCrMatrix.smpte170m), ("bt709", .bt709), ("bt2020nc", .bt2020nc)], ["tv", "pc"])
    func `colours that a Swift program states reach every reader, photo and movie`(
        _ matrix: (name: String, value: YCbCrMatrix), _ range: String
    ) async throws {
        let bus = try await BusHarness(virtual: 1)
        let folder = bus.scratchPath
        try await make("\(folder)/film.mp4", matrix.name, range, bus)
        let wanted = try await pixels("\(folder)/film.mp4", bus)
        let sizes = (Self.width, Self.height)
        let raw = ["-i", "\(folder)/film.mp4", "-frames:v", "1", "-f", "rawvideo"]
        // As the film has them: another pixel format could have another range.
        try await ffmpeg(raw + ["\(folder)/sent.raw"], bus)
        let sent = try File.read("\(folder)/sent.raw", limit: 1 << 24)
        let luma = ["-vf", "scale=out_range=full:flags=accurate_rnd+full_chroma_int,format=gray"]
        try await ffmpeg(raw + luma + ["\(folder)/luma.raw"], bus)

        let client = try await bus.connect()
        var stated = FormatExtensions(
            color: ColorDescription(
                primaries: matrix.name == "bt2020nc" ? .bt2020 : .bt709, transferFunction: .bt709,
                matrix: matrix.value, range: range == "pc" ? .full : .video))
        stated.pixelAspectRatio = try #require(FormatExtensions.Ratio(64, 45))
        let source = try await client.createSource(
            "theirs", pixelFormat: "YU12", width: Self.width, height: Self.height, frameRate: FrameRate(30.0),
            extensions: stated)
        let clock = try FrameReader(bus, "cam0", "gray:160x0@30")
        func run(_ arguments: [String]) async throws {
            let program = try bus.start("camerabus", arguments)
            try send(sent, to: source, at: clock, while: program)
            let result = try await program.end()
            #expect(result.status == 0, "\(arguments): \(result)")
        }

        for (rendition, channels) in [("rgb", [0, 1, 2]), ("bgr", [2, 1, 0])] {
            try await run(["frames", "theirs", rendition, "-n", "1", "-o", "\(folder)/frame.raw"])
            let seen = try File.read("\(folder)/frame.raw", limit: 1 << 24)
            #expect(difference(seen, sizes, from: wanted, channels: channels) <= 2, "\(rendition)")
        }
        try await run(["frames", "theirs", "gray", "-n", "1", "-o", "\(folder)/frame.raw"])
        let (seen, theirs) = (
            try File.read("\(folder)/frame.raw", limit: 1 << 24), try File.read("\(folder)/luma.raw", limit: 1 << 24)
        )
        #expect(seen.count == theirs.count && zip(seen, theirs).allSatisfy { abs(Int($0) - Int($1)) <= 2 })

        for (file, arguments) in [
            ("frame.jpg", ["frames", "theirs", "jpeg", "-n", "1"]), ("photo.jpg", ["photo", "theirs"]),
            ("movie.mp4", ["record", "theirs", "--codec", "h264", "--duration", "1"]),
        ] {
            try await run(arguments + ["-o", "\(folder)/\(file)"])
            let seen = try await pixels("\(folder)/\(file)", bus)
            #expect(difference(seen, sizes, from: wanted) <= 6, "\(file)")
        }
        try await bus.stop()
    }
}
