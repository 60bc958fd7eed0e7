import BusClient
import CameraBusTesting
import CaptureCore
import Foundation
import JSON
import LinuxIO
import Testing

extension SoundCardTests {
    /// Movies of what the kernel's drivers give, beside what other programs have of them.
    @Suite(.timeLimit(.minutes(10))) struct Recording {
        private let scratch: TemporaryDirectory
        private static let (width, height) = (320, 180)
        /// Emulated processors take their time, and more of it beside other work.
        private static let patience = Duration.seconds(120)

        init() throws { scratch = try TemporaryDirectory() }

        /// A camera and a microphone, recorded together: the pictures are v4l2-ctl's and the samples arecord's, byte
        /// for byte.
        @Test func aMovieHasThePicturesOfV4L2ctlAndTheSamplesOfArecord() async throws {
            let loop = try SoundLoop(seconds: 1)
            let samples = try await loop.heardByArecord()
            let test = try TestCamera()
            let file = "\(scratch.path)/picture"
            try test.v4l2ctl(
                "--set-fmt-video", "width=\(Self.width),height=\(Self.height),pixelformat=YUYV", "--stream-mmap",
                "--stream-count=1", "--stream-to=\(file)")
            let picture = try File.read(file, limit: 1 << 20)
            #expect(picture.count == Self.width * Self.height * 2)

            let bus = try await BusHarness(virtual: nil)
            try await KernelTests.tellingLog(of: bus) {
                let client = try await bus.connect()
                let (camera, microphone) = try await devices(client)
                var isSound = false
                // Where an emulated machine stands still, times are as if sound were missing, and a movie has silence:
                // then once more.
                for attempt in 1...4 where !isSound {
                    let movie = try await record(bus, client, camera, microphone, loop, "\(attempt).mov")
                    let codecs = try await movie.codecs()
                    #expect(codecs == ["rawvideo", "pcm_s16le"])
                    let complaints = try await movie.complaints()
                    #expect(complaints.isEmpty, "\(complaints)")
                    try check(try await movie.pictureBytes(), picture)
                    isSound = KernelTests.isSame(loop.heard(in: try await movie.samples()), samples)
                }
                #expect(isSound, "no movie has the samples that arecord has")
                await client.close()
            }
            try await bus.stop()
        }

        private func check(_ pictures: [UInt8], _ picture: [UInt8]) throws {
            #expect(pictures.count % picture.count == 0 && pictures.count >= 10 * picture.count)
            for number in 0..<pictures.count / picture.count {
                let isSame = pictures.withUnsafeBytes { bytes in
                    let begin = number * picture.count
                    return KernelTests.isSame(
                        UnsafeRawBufferPointer(rebasing: bytes[begin..<begin + picture.count]), picture)
                }
                try #require(isSame, "picture \(number) is not v4l2-ctl's")
            }
        }

        /// The first camera and the loop, which are set.
        private func devices(_ client: Client) async throws -> (camera: JSONValue, microphone: JSONValue) {
            let uniqueID = try #require(KernelRing.identities.first).uniqueID
            var (camera, microphone) = (JSONValue.null, JSONValue.null)
            // Emulated processors take their time.
            try await eventually(by: .after(seconds: 60)) {
                let ready = try await client.devices(timeout: Self.patience).filter {
                    !($0["activeFormat"]?.isNull ?? true)
                }
                camera = ready.first { $0["uniqueID"]?.string == uniqueID }?["id"] ?? .null
                microphone =
                    ready.first {
                        $0["name"]?.string?.contains("Loopback") == true && $0["node"]?.string?.hasSuffix("D1c") == true
                    }?["id"] ?? .null
                return !camera.isNull && !microphone.isNull
            }
            let lock = try await client.lock([camera, microphone].compactMap(\.string), timeout: Self.patience)
            let format = SoundLoop.format
            _ = try await client.configure(
                [
                    ["device": camera, "frameRate": 10],
                    [
                        "device": microphone,
                        "activeFormat": [
                            "sampleFormat": .string(format.sampleFormat.rawValue), "rate": JSONValue(format.rate),
                            "channels": JSONValue(format.channels),
                        ],
                    ],
                ], lock: lock.token, timeout: Self.patience)
            return (camera, microphone)
        }

        /// A movie of both, while the loop plays.
        private func record(
            _ bus: BusHarness, _ client: Client, _ camera: JSONValue, _ microphone: JSONValue, _ loop: SoundLoop,
            _ name: String
        ) async throws -> RecordedMovie {
            let path = "\(bus.scratchPath)/\(name)"
            let format = SoundLoop.format
            let started = try await client.startMovie(
                [
                    "device": camera, "microphone": microphone, "path": .string(path), "fileType": "mov",
                    "codec": "raw",
                    "settings": [
                        "audio": [
                            "codec": "pcm", "rate": JSONValue(format.rate), "channels": JSONValue(format.channels),
                            "bitRate": JSONValue(8 * format.rate * format.frameBytes),
                        ]
                    ],
                ], timeout: Self.patience)
            let played = try await loop.play().end(by: .after(seconds: 60))
            #expect(played.status == 0, "\(played)")
            // What was played last is still on its way.
            let until = try await client.movie(started.id, timeout: Self.patience).recordedDuration
            try await bus.wait(for: "state/movie/\(started.id)/") { value in
                value.map { MovieState($0).recordedDuration > until + .seconds(1) } ?? true
            }
            let ending = try await client.stopMovie(started.id, timeout: Self.patience)
            #expect(ending.reason == "stopped" && ending.isSuccess, "\(ending.json)")
            return try RecordedMovie(path)
        }
    }
}
