import BusProtocol
import CaptureCore
import Imaging
import JSON
import Testing

private func layout(_ width: Int, _ height: Int) throws -> FrameLayout {
    try #require(FrameLayout.packed(.yuyv, Dimensions(width: width, height: height)))
}

private func rendition(_ encoding: Rendition.Encoding, _ width: Int?, _ height: Int?, quality: Int? = nil) -> Rendition
{
    var rendition = Rendition(encoding)
    (rendition.width, rendition.height, rendition.quality) = (width, height, quality)
    return rendition
}

@Suite struct ResolveTests {
    @Test func takesTheDevicesSizeWithoutOne() throws {
        let device = try layout(1280, 720)
        let request = try resolve(rendition(.jpeg, nil, nil), for: device)
        #expect(
            request == PictureRequest(encoding: .jpeg, dimensions: Dimensions(width: 1280, height: 720), quality: 80))
        #expect(try resolve(rendition(.bgr, 0, 0), for: device).dimensions == device.dimensions)
        #expect(try resolve(rendition(.jpeg, nil, nil, quality: 30), for: device).quality == 30)
    }

    @Test func keepsTheAspectFor0() throws {
        let device = try layout(1920, 1080)
        #expect(try resolve(rendition(.jpeg, 640, 0), for: device).dimensions == Dimensions(width: 640, height: 360))
        #expect(try resolve(rendition(.bgr, 0, 540), for: device).dimensions == Dimensions(width: 960, height: 540))
        // 562.5 is rounded; where pixels share chroma, down to even.
        #expect(try resolve(rendition(.gray, 1000, 0), for: device).dimensions.height == 563)
        #expect(try resolve(rendition(.nv12, 1000, 0), for: device).dimensions.height == 562)
        #expect(try resolve(rendition(.jpeg, 1000, 0), for: device).dimensions.height == 562)
        #expect(try resolve(rendition(.gray, 1, 0), for: device).dimensions == Dimensions(width: 1, height: 1))
    }

    @Test(arguments: [
        // Bounds that are larger than the device, that one side keeps, and that both do.
        (Rendition.Encoding.jpeg, 1920, 0, 1280, 720), (.jpeg, 0, 4000, 1280, 720), (.bgr, 960, 0, 960, 540),
        (.bgr, 0, 360, 640, 360), (.gray, 300, 300, 300, 169), (.gray, 4000, 90, 160, 90), (.jpeg, 300, 300, 300, 168),
        (.nv12, 301, 0, 300, 168), (.jpeg, 1280, 720, 1280, 720), (.bgr, 1, 1, 1, 1), (.yuyv, 1, 1, 2, 2),
        (.rgb, Int.max, 7, 12, 7), (.jpeg, 1, 0, 1, 1), (.jpeg, 2000, 1, 2, 1),
    ])
    func fitsIntoBounds(
        _ encoding: Rendition.Encoding, _ width: Int, _ height: Int, _ wantedWidth: Int, _ wantedHeight: Int
    ) throws {
        var wish = rendition(encoding, width, height)
        wish.isFitted = true
        let made = try resolve(wish, for: try layout(1280, 720))
        #expect(made.dimensions == Dimensions(width: wantedWidth, height: wantedHeight))
    }

    @Test func fitsATurnedPicture() throws {
        var wish = rendition(.bgr, 360, 0)
        wish.isFitted = true
        wish.videoRotationAngle = 90
        #expect(try resolve(wish, for: try layout(1280, 720)).dimensions == Dimensions(width: 360, height: 640))
    }

    @Test func roundsWhatFollowsFromAnOddDevice() throws {
        let odd = try layout(641, 481)
        #expect(try resolve(rendition(.yuyv, nil, nil), for: odd).dimensions == Dimensions(width: 640, height: 480))
        #expect(try resolve(rendition(.jpeg, nil, nil), for: odd).dimensions == Dimensions(width: 641, height: 481))
        #expect(try resolve(rendition(.bgr, nil, nil), for: odd).dimensions == Dimensions(width: 641, height: 481))
    }

    @Test(arguments: [
        (Rendition.Encoding.jpeg, 1281, 720, 1280, 720), (.jpeg, 4000, 0, 1280, 720), (.bgr, 100, 900, 100, 720),
        (.jpeg, Int.max, 0, 1280, 720), (.jpeg, 0, Int.max, 1280, 720), (.jpeg, -5, 100, 1, 100),
        (.nv12, 321, 240, 320, 240), (.i420, 320, 241, 320, 240), (.yuyv, 1281, 721, 1280, 720), (.nv12, 1, 1, 2, 2),
    ])
    func refusesWithTheNearest(
        _ encoding: Rendition.Encoding, _ width: Int, _ height: Int, _ nearestWidth: Int, _ nearestHeight: Int
    ) throws {
        let device = try layout(1280, 720)
        let error = #expect(throws: BusError.self) { try resolve(rendition(encoding, width, height), for: device) }
        #expect(error?.reason == .formatUnsupported)
        #expect(
            error?.data["nearest"] == .object(["width": JSONValue(nearestWidth), "height": JSONValue(nearestHeight)]))
        // And the nearest is one that can be had.
        _ = try resolve(rendition(encoding, nearestWidth, nearestHeight), for: device)
    }

    @Test func refusesNative() throws {
        let error = try #require(throws: BusError.self) { try resolve(Rendition(.native), for: try layout(64, 48)) }
        #expect(error.reason == .formatUnsupported)
    }

    @Test func countsEqualRequestsAsOne() {
        let size = Dimensions(width: 64, height: 48)
        #expect(
            PictureRequest(encoding: .bgr, dimensions: size, quality: 30)
                == PictureRequest(encoding: .bgr, dimensions: size, quality: 90))
        #expect(PictureRequest(encoding: .jpeg, dimensions: size, quality: 900).quality == 100)
    }
}
