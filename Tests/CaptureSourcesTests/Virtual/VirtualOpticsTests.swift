import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import Imaging
import Testing

/// Lens, exposure, white balance, lamp and zoom of virtual cameras.
@Suite struct VirtualOpticsTests {
    /// A camera that streams, and what can be seen of its frames.
    private final class Scene {
        let camera: VirtualCamera
        let stream: any FrameStream
        private let converter: PictureConverter
        private let output = PictureBuffer()

        init(_ profile: VirtualProfile = .plain, _ format: PixelFormat = .yuyv) throws {
            camera = VirtualCamera(index: 0, profile: profile)
            _ = try camera.open()
            let size = Dimensions(width: profile == .plain ? 640 : 1280, height: profile == .plain ? 360 : 720)
            _ = try camera.setFormat(FormatSelection(pixelFormat: format, dimensions: size))
            _ = try camera.setFrameDuration(FrameDuration(framesPerSecond: 30))
            stream = try camera.startStreaming()
            converter = try PictureConverter(
                from: stream.layout, to: PictureRequest(encoding: .bgr, dimensions: stream.layout.dimensions))
        }

        deinit { try? camera.stopStreaming() }

        /// Blue, green and red of the next frame at a place, both from 0 to 1.
        func pixel(_ x: Double, _ y: Double = 0.5) throws -> [Int] {
            let slot = try nextFrame(stream)
            _ = try converter.convert(
                slot.regions.map { UnsafeRawBufferPointer($0) }, bytesUsed: slot.bytesUsed, into: output)
            let layout = converter.outputLayout
            // The band is whole whatever the light.
            #expect(PictureCounterReader.read(output.bytes, layout)?.counter == UInt32(slot.captureSequence))
            try stream.enqueue(slot)
            let start =
                Int(y * Double(layout.dimensions.height)) * layout.planes[0].stride
                + 3 * Int(x * Double(layout.dimensions.width))
            return output.bytes[start..<start + 3].map(Int.init)
        }

        func luma(_ x: Double, _ y: Double = 0.5) throws -> Int {
            let pixel = try pixel(x, y)
            return (114 * pixel[0] + 587 * pixel[1] + 299 * pixel[2]) / 1000
        }

        func value(_ name: String) throws -> Int64? { try camera.controlValues()[name]?.number }
        func set(_ name: String, _ value: Int64) throws { try camera.setControl(name, to: .integer(value)) }

        /// Frames until a condition holds; within so many.
        func frames(until condition: () throws -> Bool) throws -> Int {
            for count in 0..<600 {
                if try condition() { return count }
                _ = try pixel(0.5)
            }
            Issue.record("not within 600 frames")
            return 0
        }
    }

    @Test func exposureForAPointTakesFramesAndShows() throws {
        let scene = try Scene()
        let before = try scene.luma(0.06)
        // The darkest bar is at the right.
        try scene.set("exposure_point_x", 9500)
        #expect(try scene.value("adjusting_exposure") == 1)
        let frames = try scene.frames { try scene.value("adjusting_exposure") == 0 }
        #expect(frames >= 1)
        #expect(try scene.frames { try scene.luma(0.06) > before + 30 } < 10)
        #expect(try scene.value("exposure_time_absolute") == 312)
    }

    @Test func exposedOnceItStaysWhereItCameTo() throws {
        for profile in [VirtualProfile.plain, .iphone6] {
            let scene = try Scene(profile)
            let time = profile == .plain ? "exposure_time_absolute" : "exposure_time_microseconds"
            try scene.set("exposure_point_x", 9500)
            try scene.set("auto_exposure", 1)
            let before = try #require(try scene.value(time))
            try scene.set("auto_exposure_start", 1)
            #expect(try scene.value("adjusting_exposure") == 1)
            // Something else that is set meanwhile is no reason to stop.
            try scene.set("brightness", 3)
            #expect(try scene.frames { try scene.value("adjusting_exposure") == 0 } >= 1)
            let after = try #require(try scene.value(time))
            #expect(Double(after) > Double(before) * 1.5, "\(before) \(after)")
            try scene.set("exposure_point_x", 500)
            _ = try scene.frames { try scene.pixel(0.5).count == 3 }
            #expect(try scene.value(time) == after && scene.value("adjusting_exposure") == 0)
        }
    }

    @Test func aLockedExposureStays() throws {
        let scene = try Scene()
        try scene.set("3a_lock", 1)
        try scene.set("exposure_point_x", 9500)
        #expect(try scene.value("adjusting_exposure") == 0)
        #expect(try scene.value("exposure_time_absolute") == 156)
        try scene.set("3a_lock", 0)
        #expect(try scene.value("adjusting_exposure") == 1)
    }

    @Test func aSearchForTheFocusBlursAndArrives() throws {
        let scene = try Scene()
        try scene.set("focus_automatic_continuous", 0)
        try scene.set("focus_absolute", 255)
        // Between the first two bars: an edge that is no edge any more.
        func softness() throws -> Int { abs(try scene.pixel(0.12)[0] - 191) }
        #expect(try scene.frames { try softness() > 20 } < 20)
        try scene.camera.setControl("auto_focus_start", to: .boolean(true))
        #expect(try scene.value("auto_focus_status") == 1)
        #expect(try scene.frames { try scene.value("auto_focus_status") == 2 } >= 1)
        #expect(try scene.value("focus_absolute") == 85)
        #expect(try scene.frames { try softness() < 8 } < 20)
    }

    @Test func whiteBalanceOnceTakesFrames() throws {
        let scene = try Scene()
        try scene.set("white_balance_automatic", 0)
        try scene.set("white_balance_temperature", 6500)
        #expect(
            try scene.frames {
                let pixel = try scene.pixel(0.06)
                return pixel[2] > pixel[0] + 30
            } < 20)
        try scene.camera.setControl("do_white_balance", to: .boolean(true))
        #expect(try scene.value("adjusting_white_balance") == 1)
        #expect(try scene.frames { try scene.value("adjusting_white_balance") == 0 } >= 1)
        #expect(try scene.value("white_balance_temperature") == 4600)
        #expect(
            try scene.frames {
                let pixel = try scene.pixel(0.06)
                return abs(pixel[2] - pixel[0]) < 8
            } < 20)
    }

    @Test func withoutFramesAllArrivesAtOnce() throws {
        let camera = VirtualCamera(index: 0)
        _ = try camera.open()
        try camera.setControl("exposure_point_x", to: .integer(9500))
        #expect(try camera.controlValues()["adjusting_exposure"] == .boolean(false))
        #expect(try camera.controlValues()["exposure_time_absolute"] == .integer(312))
    }

    @Test func aBoundIsMadeUpForByTheSensitivityAsFarAsItGoes() throws {
        let scene = try Scene()
        let before = try scene.luma(0.31)
        try scene.set("auto_exposure_longest", 3900)
        #expect(try scene.value("adjusting_exposure") == 1)
        _ = try scene.frames { try scene.value("adjusting_exposure") == 0 }
        #expect(try scene.value("exposure_time_absolute") == 39 && scene.value("iso_sensitivity") == 400_000)
        #expect(try scene.value("exposure_offset") == 0 && abs(scene.luma(0.31) - before) < 8)
        // 4 EV more than that is not there.
        try scene.set("auto_exposure_longest", 100)
        _ = try scene.frames { try scene.value("adjusting_exposure") == 0 }
        #expect(try scene.value("iso_sensitivity") == 3_200_000)
        let offset = try #require(try scene.value("exposure_offset"))
        #expect(abs(Double(offset) / 1000 - log2(32.0 / 156)) < 0.01, "\(offset)")
        #expect(try scene.frames { try scene.luma(0.31) < before - 40 } < 20)
        try scene.set("auto_exposure_longest", 500_000)
        _ = try scene.frames { try scene.value("adjusting_exposure") == 0 }
        #expect(try scene.value("exposure_time_absolute") == 156 && scene.value("iso_sensitivity") == 100_000)
    }

    @Test func theOffsetIsHowFarAnExposureIsFromWhatIsMetered() throws {
        let scene = try Scene()
        #expect(try scene.value("exposure_offset") == 0)
        let events = try #require(try scene.camera.events())
        try scene.set("auto_exposure_bias", 6)
        // It is reported with each frame until it has arrived.
        var told: [Int64] = []
        _ = try scene.frames {
            while case .control(let event)? = try events.next() {
                if event.id == 0x9A100E, let value = event.value?.number { told.append(value) }
            }
            return try scene.value("adjusting_exposure") == 0
        }
        #expect(told.first == -1000 && told.last == 0 && told.count > 3 && told == told.sorted(), "\(told)")
        // By hand it stays.
        try scene.set("auto_exposure", 1)
        try scene.set("exposure_time_absolute", 624)
        #expect(try scene.value("exposure_offset") == 1000)
        try scene.set("iso_sensitivity_auto", 0)
        try scene.set("iso_sensitivity", 50_000)
        #expect(try scene.value("exposure_offset") == 0)
        try scene.set("exposure_time_absolute", 5000)
        #expect(try scene.value("exposure_offset") == Int64((log2(0.25 / 0.0312) * 1000).rounded()))
    }

    @Test func theDriverTellsTheEnd() throws {
        let scene = try Scene()
        let events = try #require(try scene.camera.events())
        try scene.set("exposure_point_x", 9500)
        var told: [ControlEvent] = []
        _ = try scene.frames {
            while case .control(let event)? = try events.next() { told.append(event) }
            return told.contains { $0.id == 0x9A1005 && $0.value == .boolean(false) }
        }
        #expect(told.contains { $0.id == 0x9A0902 && $0.value == .integer(312) })
    }

    static let lights: [(controls: [String: Int64], difference: Int)] = [
        (["led_mode": 2], 20), (["iso_sensitivity_auto": 0], 20), (["auto_exposure_bias": 6], 20),
        (["auto_exposure_bias": 2], -20), (["exposure_dynamic_framerate": 1], 10),
    ]

    @Test(arguments: lights)
    func lightShows(_ controls: [String: Int64], _ difference: Int) throws {
        let scene = try Scene()
        let before = try scene.luma(0.31)
        for (name, value) in controls { try scene.set(name, value) }
        if controls["iso_sensitivity_auto"] != nil { try scene.set("iso_sensitivity", 200_000) }
        let frames = try scene.frames {
            let now = try scene.luma(0.31)
            return difference >= 0 ? now >= before + difference : now <= before + difference
        }
        #expect(frames < 40)
    }

    @Test func theFlashLightsOneFrame() throws {
        let scene = try Scene()
        let before = try scene.luma(0.31)
        try scene.camera.setControl("strobe", to: .boolean(true))
        for _ in 0..<10 { #expect(try abs(scene.luma(0.31) - before) < 8) }
        try scene.set("led_mode", 1)
        // Frames are lost where nobody takes them in time, and the one that is lit may be.
        var seen = 0
        for _ in 0..<20 where seen == 0 {
            try scene.camera.setControl("strobe", to: .boolean(true))
            var lit = 0
            for _ in 0..<30 where try scene.luma(0.31) > before + 40 { lit += 1 }
            #expect(lit <= 1)
            seen += lit
        }
        #expect(seen > 0)
    }

    @Test func theTelephonesTable() throws {
        let camera = VirtualCamera(index: 0, profile: .iphone6)
        let description = try camera.open()
        let formats = description.formats
        #expect(formats.count == 6)
        // Of photos only.
        let stills = description.stillFormats
        #expect(stills.map { "\($0.pixelFormat.name) \($0.dimensions)" } == ["NV12 3264x1836", "420f 3264x1836"])
        for still in stills {
            let wanted = FormatSelection(pixelFormat: still.pixelFormat, dimensions: still.dimensions)
            #expect(try camera.setFormat(wanted) == wanted)
        }
        #expect(formats.map(\.pixelFormat.name) == ["NV12", "420f", "NV12", "420f", "NV12", "420f"])
        #expect(formats.map(\.traits.colorRange) == [.video, .full, .video, .full, .video, .full])
        let told = formats.map { format in
            let traits = format.traits
            let rates = format.frameRates[0]
            return
                "\(format.dimensions) "
                + "\(rates.maxFrameDuration.framesPerSecond)–\(rates.minFrameDuration.framesPerSecond)"
                + " \(traits.highResolutionStillImageDimensions?.description ?? "") \(traits.videoFieldOfView ?? 0)"
                + " \(traits.videoMaxZoomFactor ?? 0) \(traits.videoZoomFactorUpscaleThreshold ?? 0)"
                + " \(traits.autoFocusSystem?.rawValue ?? "") \(traits.minISO ?? 0)–\(traits.maxISO ?? 0)"
                + " \(traits.minExposureDuration ?? 0)–\(traits.maxExposureDuration ?? 0) "
                + "\(traits.videoHDRSupported ?? false)"
        }
        let rows = [
            "1280x720 5.0–240.0 1280x720 54.626 49.12 1.09 contrastDetection 29.0–928.0 3e-06–0.2 false",
            "1920x1080 2.0–30.0 3264x1836 58.04 95.62 1.55 phaseDetection 29.0–464.0 1.3e-05–0.5 true",
            "1920x1080 2.0–60.0 3264x1836 58.04 95.62 1.55 phaseDetection 29.0–464.0 8e-06–0.5 true",
        ]
        #expect(told == rows.flatMap { [$0, $0] })
        #expect(formats.allSatisfy { $0.traits.supportedVideoStabilizationModes?.contains("standard") == true })
        // Each row can be set, also those that differ in nothing but their rates.
        for format in formats {
            let wanted = FormatSelection(
                pixelFormat: format.pixelFormat, dimensions: format.dimensions, variant: format.variant)
            #expect(try camera.setFormat(wanted) == wanted)
            let fastest = format.frameRates[0].minFrameDuration
            #expect(try camera.setFrameDuration(FrameDuration(framesPerSecond: 1000)) == fastest)
        }
    }

    @Test(arguments: [PixelFormat.nv12, .nv12FullRange])
    func theTelephonesPicturesHaveTheirRange(_ format: PixelFormat) throws {
        let scene = try Scene(.iphone6, format)
        let pixel = try scene.pixel(0.06)
        #expect(pixel.allSatisfy { abs($0 - 191) <= 8 }, "\(pixel)")
        try scene.set("test_pattern", 3)
        #expect(try scene.frames { try scene.luma(0.3) > 250 } < 30)
    }
}
