import BusProtocol
import JSON
import Testing

@testable import CaptureCore

/// The sizes of photos that a camera's formats have.
@Suite struct StillSizesTests {
    private static func size(_ width: Int, _ height: Int) -> Dimensions { Dimensions(width: width, height: height) }

    private static func row(
        _ id: String, _ pixelFormat: PixelFormat, _ size: Dimensions, sizes: DimensionRange? = nil, rates: [Int] = [30]
    ) -> CaptureFormat {
        CaptureFormat(
            id: id, pixelFormat: pixelFormat, dimensions: size, sizes: sizes,
            frameRates: rates.map { FrameRateRange(discrete: FrameDuration(framesPerSecond: $0)) })
    }

    private let table = [
        row("f0", .yuyv, size(640, 480)), row("f1", .yuyv, size(1280, 720)), row("f2", .motionJPEG, size(1280, 720)),
        row("f3", .motionJPEG, size(1920, 1080)), row("f4", .yuyv, size(1920, 1080), rates: [5]),
        row("f5", .bayerRGGB8, size(640, 480)), row("f6", .h264, size(3840, 2160)),
        row(
            "f7", .grey, size(2000, 1000),
            sizes: DimensionRange(minimum: size(64, 48), maximum: size(2000, 1000), step: size(8, 8))),
    ]

    private func sizes(
        _ pixelFormat: PixelFormat = .yuyv, _ size: Dimensions = size(640, 480), fps: Int? = 30,
        _ settings: PhotoSettings = PhotoSettings()
    ) -> StillSizes {
        StillSizes(
            of: table, present: FormatSelection(pixelFormat: pixelFormat, dimensions: size),
            frameDuration: fps.map { FrameDuration(framesPerSecond: $0) }, for: settings)
    }

    private func choice(_ sizes: StillSizes, _ width: Int, _ height: Int) -> String? {
        sizes.largest(within: Self.size(width, height)).map { "\($0.format.id) \($0.size)" }
    }

    @Test func theyAreThoseOfThePresentRateInColour() {
        #expect(sizes().all == [Self.size(640, 480), Self.size(1280, 720), Self.size(1920, 1080)])
        #expect(sizes(fps: 5).all == [Self.size(1920, 1080)])
        #expect(sizes(.grey).all.contains(Self.size(2000, 1000)))
        #expect(sizes(.yuyv, PhotoSettings(withRaw: true)).all == [Self.size(640, 480)])
    }

    @Test func theLargestIsTakenThatIsNotLarger() {
        #expect(choice(sizes(), 1920, 1080) == "f3 1920x1080" && choice(sizes(), 1919, 4000) == "f1 1280x720")
        // With the present pixel format where there is a choice.
        #expect(choice(sizes(.motionJPEG, Self.size(1920, 1080)), 1280, 800) == "f2 1280x720")
        #expect(choice(sizes(), 639, 480) == nil && choice(sizes(), 640, 479) == nil)
        let any = sizes().largest()
        #expect(any?.format.id == "f3" && any?.json == "f3")
    }

    @Test func thePresentOneNeedsNoChange() throws {
        let present = sizes(.motionJPEG, Self.size(1280, 720))
        let choice = try #require(present.largest(within: Self.size(1280, 720)))
        #expect(present.isPresent(choice) && choice.format.id == "f2")
        #expect(!present.isPresent(try #require(present.largest())))
    }

    @Test func aFormatOfAnySizeHasTheNearestBelow() throws {
        let grey = sizes(.grey, Self.size(64, 48))
        let choice = try #require(grey.largest(within: Self.size(1999, 1081)))
        #expect(choice.format.id == "f3")
        let odd = try #require(grey.largest(within: Self.size(1003, 1079)))
        #expect(odd.size == Self.size(1000, 1000) && odd.format.id == "f7")
        #expect(odd.json == ["pixelFormat": "GREY", "width": 1000, "height": 1000])
    }

    @Test func rawPicturesHaveThoseOfTheirFormats() {
        #expect(sizes(.yuyv, Self.size(640, 480), PhotoSettings(format: .dng)).largest()?.format.id == "f5")
        // What streams H.264 sees colours.
        #expect(sizes(.h264, Self.size(3840, 2160)).all == sizes().all)
    }
}

extension StillSizesTests {
    private func sizes(_ pixelFormat: PixelFormat, _ settings: PhotoSettings) -> StillSizes {
        sizes(pixelFormat, Self.size(640, 480), fps: 30, settings)
    }
}
