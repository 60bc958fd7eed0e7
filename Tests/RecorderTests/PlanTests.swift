import BusProtocol
import CaptureCore
import FFmpeg
import FrameRing
import JSON
import MovieFile
import Testing

@testable import Recorder

@Suite("What is recorded of what comes")
struct PlanTests {
    private static func request(
        _ type: MovieFileType = .mp4, _ codec: MovieRequest.Video.Codec = .automatic, width: Int? = nil,
        orientation: Int? = nil
    ) -> MovieRequest {
        MovieRequest(
            movie: "m", path: "/m", camera: MovieRequest.Device(id: "cam0", uniqueID: "u", name: "n"), fileType: type,
            video: MovieRequest.Video(codec: codec, width: width), orientation: orientation,
            owner: LockHolder(uid: 0, gid: 0, pid: 1, name: "t"))
    }

    private static func ring(
        _ format: PixelFormat, _ width: Int = 640, _ height: Int = 480, turned orientation: Int = 0
    ) throws -> RingDescription {
        let layout = try #require(FrameLayout.packed(format, Dimensions(width: width, height: height)))
        var ring = RingDescription(
            ring: "0123456789abcdef", stream: "s", device: "cam0", rendition: "native", format: format.code,
            width: width, height: height,
            planes: layout.planes.map { RingDescription.Plane(offset: $0.offset, stride: $0.stride, bytes: $0.bytes) },
            keep: 2, slots: 4, slotBytes: 4096)
        ring.orientation = orientation
        ring.extensions = format.defaultExtensions
        return ring
    }

    private static func kind(
        _ format: PixelFormat, _ request: MovieRequest, isAskedFor: Bool = false
    ) throws -> PictureTrackPlan.Kind? {
        guard case .record(let plan) = PictureTrackPlan.decide(try ring(format), request, isAskedFor: isAskedFor) else {
            return nil
        }
        return plan.kind
    }

    private static func asked(
        _ format: PixelFormat, _ request: MovieRequest, _ width: Int = 640, _ height: Int = 480,
        turned orientation: Int = 0
    ) throws -> String? {
        let ring = try ring(format, width, height, turned: orientation)
        guard case .ask(let rendition) = PictureTrackPlan.decide(ring, request, isAskedFor: false) else { return nil }
        return rendition.description
    }

    private static func isRefused(
        _ format: PixelFormat, _ request: MovieRequest, isAskedFor: Bool = false
    ) throws -> Bool {
        if case .refuse = PictureTrackPlan.decide(try ring(format), request, isAskedFor: isAskedFor) { return true }
        return false
    }

    @Test("live photos are made of JPEG: the camera's own, or its process's")
    func live() throws {
        var request = Self.request(.mov)
        request.live = MovieRequest.Live()
        #expect(try Self.kind(.motionJPEG, request) == .motionJPEG && Self.kind(.jpeg, request) == .motionJPEG)
        #expect(try Self.asked(.yuyv, request) == "jpeg" && Self.asked(.h264, request) == "jpeg")
        #expect(try Self.asked(.motionJPEG, request, turned: 90) == "jpeg;q=95", "plain jpeg is not turned")
        request.orientation = 90
        request.mirrored = true
        #expect(try Self.asked(.motionJPEG, request) == "jpeg;rotate=90;mirror")
        #expect(try Self.kind(.jpeg, request, isAskedFor: true) == .motionJPEG)
        #expect(try Self.isRefused(.yuyv, request, isAskedFor: true))
        // No larger than the movie.
        #expect(try Self.asked(.yuyv, request, 3840, 2160) == "jpeg:1080x1920;rotate=90;mirror")
        request.orientation = 180
        #expect(try Self.asked(.nv12, request, 4000, 3000) == "jpeg:1920x1440;rotate=180;mirror")
        #expect(try Self.asked(.nv12, request, 1920, 1080) == "jpeg;rotate=180;mirror")
    }

    @Test(
        "a live photo's movie is as large as the camera's picture, but no larger than 1920",
        arguments: [
            (640, 480, 640, 480), (641, 481, 640, 480), (1920, 1080, 1920, 1080), (3840, 2160, 1920, 1080),
            (3000, 4000, 1440, 1920), (4096, 3, 1920, 2), (1, 1, 2, 2),
        ])
    func liveSize(_ width: Int, _ height: Int, _ wantedWidth: Int, _ wantedHeight: Int) {
        let size = LivePhotoDecoder.movieSize(Dimensions(width: width, height: height))
        #expect(size == Dimensions(width: wantedWidth, height: wantedHeight))
    }

    @Test("what a camera has compressed is stored as it comes, what it hasn't is encoded")
    func automatic() throws {
        #expect(try Self.kind(.motionJPEG, Self.request()) == .motionJPEG)
        #expect(try Self.kind(.jpeg, Self.request()) == .motionJPEG)
        #expect(try Self.kind(.h264, Self.request()) == .h264)
        for format: PixelFormat in [.yuyv, .uyvy, .nv12, .nv12FullRange, .i420] {
            #expect(try Self.kind(format, Self.request()) == .encoded)
        }
        #expect(try Self.asked(.bayerRGGB8, Self.request()) == "i420")
        #expect(try Self.isRefused(.grey, Self.request(), isAskedFor: true), "asked for once only")
    }

    @Test("what is turned or has another size is encoded")
    func changed() throws {
        #expect(try Self.asked(.motionJPEG, Self.request(.mp4, .h264, orientation: 90)) == "i420;rotate=90")
        #expect(try Self.asked(.motionJPEG, Self.request(.mkv, orientation: 90)) == "i420;rotate=90")
        #expect(try Self.asked(.nv12, Self.request(orientation: 180)) == "i420;rotate=180")
        #expect(try Self.kind(.i420, Self.request(orientation: 90), isAskedFor: true) == .encoded)
        #expect(try Self.asked(.motionJPEG, Self.request(width: 320)) == "i420")
        #expect(try Self.kind(.motionJPEG, Self.request(width: 640)) == .motionJPEG)
        #expect(try Self.isRefused(.h264, Self.request(.mkv, orientation: 90)), "nothing decodes it")
        #expect(try Self.isRefused(.motionJPEG, Self.request(.mkv, .passThrough, orientation: 90)))
        #expect(try Self.isRefused(.motionJPEG, Self.request(.mp4, .passThrough, width: 320)))
        // The camera's own turn counts, too, and may be undone.
        #expect(try Self.asked(.nv12, Self.request(), turned: 90) == "i420")
        #expect(try Self.asked(.motionJPEG, Self.request(.mkv), turned: 90) == "i420")
        #expect(try Self.asked(.nv12, Self.request(orientation: 270), turned: 90) == nil)
        #expect(try Self.kind(.yuyv, Self.request(width: 320)) == .encoded)
        #expect(try Self.kind(.yuyv, Self.request(width: 640)) == .encoded)
        #expect(try Self.isRefused(.yuyv, Self.request(width: 642)))
        var fitted = Self.request(width: 1280)
        (fitted.video.height, fitted.video.isFitted) = (720, true)
        #expect(try Self.kind(.yuyv, fitted) == .encoded, "as large as others of its take")
    }

    @Test("a codec that is named is taken")
    func named() throws {
        #expect(try Self.asked(.motionJPEG, Self.request(.mp4, .h264)) == "i420")
        #expect(try Self.kind(.yuyv, Self.request(.mov, .passThrough)) == .raw)
        #expect(try Self.isRefused(.yuyv, Self.request(.mp4, .passThrough)), "mp4 has no room for it")
        #expect(try Self.kind(.yuyv, Self.request(.mov, .raw)) == .raw)
        #expect(try Self.kind(.nv12, Self.request(.mkv, .raw)) == .raw)
        #expect(try Self.isRefused(.nv12, Self.request(.mov, .raw)), "another format has other samples")
        #expect(try Self.isRefused(.yuyv, Self.request(.mp4, .raw)))
    }

    @Test("without loss the camera's samples are stored, whatever their format")
    func lossless() throws {
        for format: PixelFormat in [.bgr24, .rgb24, .grey, .grey16, .depth16, .bayerRGGB8, .bayerRGGB12, .yuyv, .nv12] {
            #expect(try Self.kind(format, Self.request(.mkv, .ffv1)) == .lossless, "\(format)")
            #expect(try Self.kind(format, Self.request(.mov, .ffv1)) == .lossless, "\(format)")
            #expect(try Self.isRefused(format, Self.request(.mp4, .ffv1)))
        }
        for format: PixelFormat in [.bgr24, .grey, .bayerRGGB8, .yuyv, .nv12, .nv12FullRange] {
            #expect(try Self.kind(format, Self.request(.mkv, .raw)) == .raw, "\(format)")
        }
        for format: PixelFormat in [.rgb24, .grey16, .depth16, .bayerRGGB12, .yuyv] {
            #expect(try Self.kind(format, Self.request(.mov, .raw)) == .raw, "\(format)")
        }
        #expect(try Self.asked(.rgb24, Self.request(.mkv, .raw)) == "bgr")
        #expect(try Self.asked(.bgr24, Self.request(.mov, .raw)) == "rgb")
        #expect(try Self.isRefused(.grey16, Self.request(.mkv, .raw)))
        #expect(try Self.isRefused(.grey, Self.request(.mov, .raw)))
        #expect(try Self.isRefused(.nv12FullRange, Self.request(.mov, .ffv1)), "mov has no word for full range")
        var full = try Self.ring(.yuyv)
        full.extensions?.color.range = .full
        for codec in [MovieRequest.Video.Codec.raw, .passThrough] {
            let decision = PictureTrackPlan.decide(full, Self.request(.mov, codec), isAskedFor: false)
            if case .refuse = decision { continue }
            Issue.record("\(codec): \(decision)")
        }
        #expect(try Self.asked(.motionJPEG, Self.request(.mkv, .ffv1)) == "bgr")
        #expect(try Self.asked(.motionJPEG, Self.request(.mkv, .raw)) == "yuyv")
        #expect(try Self.isRefused(.bayerRGGB10Packed, Self.request(.mkv, .ffv1)), "it is unpacked nowhere")
        // What is turned is turned without loss, or stays as it is where the file says so.
        #expect(try Self.asked(.bgr24, Self.request(.mkv, .ffv1), turned: 90) == "bgr")
        #expect(try Self.asked(.grey, Self.request(.mkv, .raw, orientation: 90)) == "gray;rotate=90")
        #expect(try Self.asked(.depth16, Self.request(.mkv, .ffv1), turned: 90) == "gray16")
        #expect(try Self.isRefused(.yuyv, Self.request(.mkv, .ffv1, orientation: 90)))
        #expect(try Self.kind(.yuyv, Self.request(.mov, .ffv1, orientation: 90)) == .lossless)
    }

    @Test("what a refusal advises can be recorded", arguments: MovieFileType.allCases, [0, 90])
    func advice(_ type: MovieFileType, _ orientation: Int) throws {
        var advised = 0
        for codec in MovieRequest.Video.Codec.allCases {
            for format: PixelFormat in [.h264, .yuyv, .i420, .nv12FullRange, .grey, .grey16, .bayerRGGB10Packed] {
                for range in [VideoColorRange.video, .full] {
                    var ring = try Self.ring(format, turned: orientation)
                    ring.extensions?.color.range = range
                    func refusal(_ type: MovieFileType, _ codec: MovieRequest.Video.Codec) -> String? {
                        let request = Self.request(type, codec)
                        let decision = PictureTrackPlan.decide(ring, request, isAskedFor: false)
                        guard case .refuse(let error) = decision else { return nil }
                        return error.message
                    }
                    guard let told = refusal(type, codec), let start = told.firstRange(of: "; use ") else { continue }
                    for name in told[start.upperBound...].split(separator: " or ").map(String.init) {
                        let other = MovieFileType(rawValue: name)
                        #expect(other != nil || name == "the codec h264", "\(told)")
                        #expect(refusal(other ?? type, other == nil ? .h264 : codec) == nil, "\(told)")
                        advised += 1
                    }
                }
            }
        }
        #expect(advised > 5)
    }

    @Test("every plan is one that can be written", arguments: MovieFileType.allCases)
    func writable(_ type: MovieFileType) throws {
        for codec in MovieRequest.Video.Codec.allCases {
            for format: PixelFormat in [
                .motionJPEG, .h264, .yuyv, .uyvy, .nv12, .i420, .nv12FullRange, .bgr24, .grey16, .bayerRGGB10Packed,
            ] {
                let request = Self.request(type, codec)
                guard
                    case .record(let plan) = PictureTrackPlan.decide(try Self.ring(format), request, isAskedFor: false)
                else { continue }
                let video = plan.video(request, parameterSets: [0, 0, 0, 1, 0x67])
                #expect(type.holds(video.codec))
            }
        }
    }

    @Test("what goes on is the same picture")
    func continued() throws {
        func plan(_ format: PixelFormat, _ width: Int = 640) throws -> PictureTrackPlan {
            let decision = PictureTrackPlan.decide(try Self.ring(format, width), Self.request(), isAskedFor: false)
            guard case .record(let plan) = decision else { throw BusError(.internalError, "\(decision)") }
            return plan
        }
        #expect(try plan(.motionJPEG).isContinued(by: plan(.motionJPEG)))
        #expect(try !plan(.motionJPEG).isContinued(by: plan(.motionJPEG, 320)))
        #expect(try !plan(.motionJPEG).isContinued(by: plan(.nv12)))
        let sizes = (Dimensions(width: 640, height: 480), Dimensions(width: 320, height: 480))
        func raw(_ format: PixelFormat, _ size: Dimensions) throws -> PictureTrackPlan {
            PictureTrackPlan(kind: .raw, layout: try #require(FrameLayout.packed(format, size)))
        }
        #expect(try raw(.nv12, sizes.0).stand?.description == "nv12")
        #expect(try raw(.uyvy, sizes.0).stand == nil)
        #expect(try plan(.motionJPEG).stand == nil)
        // It can be made of any.
        #expect(try plan(.nv12).stand == nil)
    }

    @Test("one side alone keeps the aspect")
    func size() {
        let full = Dimensions(width: 1280, height: 720)
        #expect(PictureTrackPlan.size(full, width: nil, height: nil) == full)
        #expect(PictureTrackPlan.size(full, width: 640, height: nil) == Dimensions(width: 640, height: 360))
        #expect(PictureTrackPlan.size(full, width: nil, height: 360) == Dimensions(width: 640, height: 360))
        #expect(PictureTrackPlan.size(full, width: 100, height: 100) == Dimensions(width: 100, height: 100))
    }

    // MARK: Sound

    private static func header(_ format: String, rate: Int = 48000, channels: Int = 2) throws -> SoundHeader {
        try SoundHeader([
            "v": 1, "device": "mic0", "rendition": "native", "stream": "s", "sequence": 1, "firstFrame": 0,
            "frames": 10, "sampleFormat": .string(format), "rate": JSONValue(rate), "channels": JSONValue(channels),
            "overruns": 0, "generation": 0, "timestamp": ["monotonic": 1, "realtime": 2, "source": "status"],
        ])
    }

    @Test(
        "sound is given to the encoder as whole samples",
        arguments: [
            ("s16", [0x34, 0x12], [0x34, 0x12]), ("s24", [0x56, 0x34, 0x92], [0, 0x56, 0x34, 0x92]),
            ("s24in32", [0x56, 0x34, 0x92, 0xEE], [0, 0x56, 0x34, 0x92]),
            ("s32", [1, 2, 3, 4], [1, 2, 3, 4]), ("f32", [1, 2, 3, 4], [1, 2, 3, 4]),
        ] as [(String, [UInt8], [UInt8])])
    func samples(_ format: String, _ given: [UInt8], _ expected: [UInt8]) throws {
        let plan = try SoundTrackPlan(try Self.header(format, channels: 1))
        let source = given + given
        var target = [UInt8](repeating: 0xAA, count: plan.bytes(frames: 2))
        source.withUnsafeBytes { from in target.withUnsafeMutableBytes { plan.copy(from, to: $0) } }
        #expect(target == expected + expected)
    }

    @Test("the sound's settings go with the file and the microphone")
    func soundSettings() throws {
        let plan = try SoundTrackPlan(try Self.header("s16", rate: 44100, channels: 1))
        let usual = plan.movieAudio(Self.request(.mp4)).settings
        #expect(usual.codec == .aac && usual.rate == 44100 && usual.channels == 1)
        #expect(plan.movieAudio(Self.request(.mkv)).settings.rate == 48000, "Opus")
        var request = Self.request(.mov)
        request.audio = MovieRequest.Audio(codec: .pcm)
        #expect(plan.movieAudio(request).settings.rate == 44100)
        #expect(throws: BusError.self) { try SoundTrackPlan(try Self.header("u8")) }
        #expect(throws: BusError.self) { try SoundTrackPlan(try Self.header("s16", channels: 32)) }
    }

    // MARK: Counting

    @Test("what is missing is counted as the camera counts, and by time where it was away")
    func missing() {
        var counter = FrameCounter()
        #expect(counter.missing(before: 100, at: 5000, "a") == 0)
        counter.took(100, at: 5000, "a")
        #expect(counter.missing(before: 101, at: 5100, "a") == 0)
        #expect(counter.missing(before: 105, at: 5500, "a") == 4)
        #expect(counter.missing(before: 106, at: 5600, "a") == 5, "one that was not taken is missing, too")
        #expect(counter.missing(before: 3, at: 9000, "b") == 0, "its rate is not known")
        counter.took(110, at: 6000, "a")
        #expect(counter.missing(before: 3, at: 6100, "b") == 0)
        #expect(counter.missing(before: 3, at: 7030, "b") == 9)
        #expect(counter.missing(before: 3, at: 5000, "b") == 0 && counter.missing(before: 3, at: .max, "b") > 0)
        counter.took(3, at: 7000, "b")
        #expect(counter.missing(before: 5, at: 7200, "b") == 1)
        #expect(counter.missing(before: 2, at: 7300, "b") == 0)
        #expect(counter.missing(before: 0, at: 7500, "c") == 4, "at the rate of the last stream that had one")
    }

    @Test("a device that was there is told when it is waited for")
    func waiting() {
        var told: [Bool] = []
        var wait = DeviceWait((first: 0, later: 60_000))
        wait.onChange = { told.append($0) }
        wait.begin(nil)
        #expect(told.isEmpty, "it has not come yet")
        wait.end()
        wait.end()
        wait.begin(nil)
        wait.begin(BusError(.deviceDisconnected, ""))
        wait.end()
        #expect(told == [false, true, false])
    }

    @Test("the load is a part of the time")
    func load() {
        var meter = LoadMeter()
        meter.note(0, at: 0)
        for step in 1...50 { meter.note(Int64(step) * 25_000_000, at: Int64(step) * 100_000_000) }
        #expect(abs(meter.load - 0.25) < 0.01)
        for step in 51...100 { meter.note(.max, at: Int64(step) * 100_000_000) }
        #expect(meter.load <= 1)
    }
}
