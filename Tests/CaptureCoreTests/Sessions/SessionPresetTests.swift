import CaptureCore
import Testing

/// What presets mean for cameras of different kinds.
@Suite struct SessionPresetTests {
    /// A webcam: YUYV that is slow when large, Motion JPEG that is not, and a still size that isn't fluid.
    private let webcam = [
        format("y0", .yuyv, 640, 480, 30), format("y1", .yuyv, 1280, 720, 10), format("y2", .yuyv, 2592, 1944, 2),
        format("m0", .motionJPEG, 320, 240, 30), format("m1", .motionJPEG, 640, 480, 60),
        format("m2", .motionJPEG, 1280, 720, 30), format("m3", .motionJPEG, 1920, 1080, 30),
        format("m4", .motionJPEG, 2592, 1944, 15), format("g0", .grey, 4000, 3000, 60),
        format("h0", .h264, 1920, 1080, 30),
    ]

    @Test func namesAreAVFoundations() {
        let names = [
            "photo", "high", "medium", "low", "352x288", "640x480", "1280x720", "1920x1080", "3840x2160",
            "iFrame960x540", "iFrame1280x720", "inputPriority",
        ]
        #expect(SessionPreset.allCases.map(\.rawValue) == names)
    }

    @Test func whatAWebcamMakesOfThem() throws {
        func resolved(_ preset: SessionPreset) throws -> String {
            let resolution = try #require(preset.resolve(for: webcam))
            return
                "\(resolution.formatID) \(resolution.dimensions) \(resolution.frameDuration.map(\.description) ?? "")"
        }
        #expect(try resolved(.photo) == "m4 2592x1944 1/15")
        #expect(try resolved(.high) == "m3 1920x1080 1/30")
        #expect(try resolved(.medium) == "y0 640x480 1/30")
        #expect(try resolved(.low) == "m0 320x240 1/30")
        #expect(try resolved(.vga640x480) == "y0 640x480 1/30")
        #expect(try resolved(.hd1280x720) == "m2 1280x720 1/30", "as fast as 30, before uncompressed")
        #expect(try resolved(.hd1920x1080) == "m3 1920x1080 1/30", "H.264 is nothing that pictures are made of")
        #expect(try resolved(.iFrame1280x720) == "m2 1280x720 1/30")
        #expect(try resolved(.iFrame960x540) == "m2 960x540 1/30", "scaled from the smallest of that aspect")
        #expect(try resolved(.cif352x288) == "y0 352x288 1/30", "stretched: no size has that aspect")
        #expect(SessionPreset.hd4K3840x2160.resolve(for: webcam) == nil, "the only such size lacks colour")
        #expect(SessionPreset.inputPriority.resolve(for: webcam) == nil)
        #expect(SessionPreset.inputPriority.isSupported(by: webcam))
        #expect(
            SessionPreset.supported(by: webcam)
                == SessionPreset.allCases.filter { $0 != .hd4K3840x2160 })
    }

    /// A camera that knows light and dark only has presets too, and so has one that encodes everything.
    @Test func whatThereIsIsUsed() throws {
        let grey = [format("g0", .grey, 640, 480, 30)]
        #expect(SessionPreset.high.resolve(for: grey)?.formatID == "g0")
        let encoder = [format("h0", .h264, 1920, 1080, 30)]
        #expect(SessionPreset.high.resolve(for: encoder)?.formatID == "h0")
        #expect(SessionPreset.hd1920x1080.resolve(for: encoder)?.formatID == "h0")
        #expect(SessionPreset.hd1280x720.resolve(for: encoder) == nil, "nothing is scaled")
        #expect(SessionPreset.allCases.allSatisfy { !$0.isSupported(by: []) })
    }

    @Test func thePhotoPresetLooksAtStillPictures() {
        var formats = Array(SampleDevice.formats.prefix(2))
        #expect(SessionPreset.photo.resolve(for: formats)?.formatID == "f1")
        formats[0].traits.highResolutionStillImageDimensions = Dimensions(width: 3264, height: 1836)
        let photo = SessionPreset.photo.resolve(for: formats)
        #expect(photo?.formatID == "f0" && photo?.dimensions == Dimensions(width: 640, height: 480))
        // Of the same still pictures the larger ones that stream.
        formats[1].traits.highResolutionStillImageDimensions = Dimensions(width: 3264, height: 1836)
        #expect(SessionPreset.photo.resolve(for: formats)?.formatID == "f1")
        #expect(SessionPreset.high.resolve(for: formats)?.formatID == "f0")
    }

    @Test func slowCamerasHaveTheMostPixelsASecond() {
        let slow = [format("a", .yuyv, 2592, 1944, 1), format("b", .yuyv, 1280, 720, 10)]
        #expect(SessionPreset.high.resolve(for: slow)?.formatID == "b")
        #expect(SessionPreset.photo.resolve(for: slow)?.formatID == "a")
    }

    @Test func sizesInSteps() throws {
        let steps = DimensionRange(
            minimum: Dimensions(width: 64, height: 48), maximum: Dimensions(width: 2000, height: 1000),
            step: Dimensions(width: 16, height: 8))
        let formats = [
            CaptureFormat(
                id: "s", pixelFormat: .nv12, dimensions: steps.maximum, sizes: steps,
                frameRates: [FrameRateRange(minFrameDuration: duration(1, 120), maxFrameDuration: duration(1, 1))])
        ]
        let low = try #require(SessionPreset.low.resolve(for: formats))
        #expect(low.dimensions == Dimensions(width: 192, height: 144))
        #expect(low.frameDuration == duration(1, 30), "not the fastest: 30 frames a second")
        let iFrame = try #require(SessionPreset.iFrame960x540.resolve(for: formats))
        #expect(iFrame.format.dimensions == Dimensions(width: 960, height: 544))
        #expect(iFrame.dimensions == Dimensions(width: 960, height: 540))
        #expect(SessionPreset.hd1920x1080.resolve(for: formats) == nil)
        #expect(SessionPreset.high.resolve(for: formats)?.dimensions == steps.maximum)
    }

    @Test func aDriverThatTellsNoRates() throws {
        let grabber = [
            CaptureFormat(
                id: "f0", pixelFormat: .yuyv, dimensions: Dimensions(width: 1920, height: 1080), frameRates: [])
        ]
        let resolution = try #require(SessionPreset.high.resolve(for: grabber))
        #expect(resolution.formatID == "f0" && resolution.frameDuration == nil)
    }
}

func format(
    _ id: String, _ pixelFormat: PixelFormat, _ width: Int, _ height: Int, _ rates: Int...
) -> CaptureFormat {
    CaptureFormat(
        id: id, pixelFormat: pixelFormat, dimensions: Dimensions(width: width, height: height),
        frameRates: rates.map { rate($0) })
}
