import BusProtocol
import JSON
import Testing

@testable import CaptureCore

@Suite struct PhotoAdjustmentsTests {
    private func adjustments(_ asked: PhotoBracket, _ given: PhotoBracket) -> [JSONValue] {
        let resolution = PhotoResolution(
            device: "cam0", format: .jpeg, dimensions: Dimensions(width: 640, height: 480), pixelFormat: .yuyv,
            bracket: given, photos: given.count)
        return resolution.adjustments(to: PhotoSettings(bracket: asked))
    }

    @Test func whatIsAsAskedIsNotTold() {
        #expect(adjustments(.exposureBias([-2, 0, 2]), .exposureBias([-2, 0.01, 1.99])) == [])
        #expect(adjustments(.exposureBias([1, 1]), .exposureBias([1, 1])) == [])
        #expect(adjustments(.exposureDuration([33_333_333]), .exposureDuration([33_300_000])) == [])
    }

    @Test func whatTheCameraHasNotIsToldWithWhatItTakes() {
        let told = adjustments(.exposureBias([-9, 0, 9]), .exposureBias([-2, 0, 2]))
        #expect(told.map { $0["path"] } == ["settings.bracket.exposureBias[0]", "settings.bracket.exposureBias[2]"])
        #expect(told.first?["asked"] == .number(-9) && told.first?["given"] == .number(-2))
        #expect(told.first?["device"] == "cam0")
        let long = adjustments(
            .exposureDuration([10_000_000, 9_000_000_000]), .exposureDuration([10_000_000, 33_000_000]))
        #expect(long.map { $0["path"] } == ["settings.bracket.exposureDuration[1]"])
        #expect(long.first?["given"] == .number(0.033))
    }

    @Test func stepsThatBecomeTheSameAreTold() {
        let told = adjustments(.exposureBias([-9, -8, 0]), .exposureBias([-2, -2, 0]))
        #expect(told.count == 2)
        #expect(told.last?["why"]?.string?.contains("step 1") == true)
        #expect(adjustments(.exposureBias([0.29, 0.35]), .exposureBias([0.32, 0.32])).count == 1)
    }

    @Test func whatADriverMadeOfAStepIsToldInsteadOfWhatItWasToBe() {
        func photo(_ index: Int, _ exposure: PhotoResult.Exposure?) -> PhotoResult {
            PhotoResult(
                device: "cam0", index: index, fileType: .jpeg, dimensions: Dimensions(width: 640, height: 480),
                bytes: 1,
                timestamp: PhotoResult.Timestamp(monotonic: 1, realtime: 1, source: "endOfFrame"), sequence: 1,
                stream: "a", exposure: exposure)
        }
        func told(_ bracket: PhotoBracket, _ exposures: [PhotoResult.Exposure?]) -> [JSONValue] {
            PhotoResolution(
                device: "cam0", format: .jpeg, dimensions: Dimensions(width: 640, height: 480), pixelFormat: .yuyv,
                bracket: bracket, photos: exposures.count
            ).with(exposuresOf: exposures.enumerated().map { photo($0.offset, $0.element) })
                .adjustments(to: PhotoSettings(bracket: bracket))
        }
        let biased = told(.exposureBias([-2, 0, 2]), [-2, 0, 0.5].map { PhotoResult.Exposure(bias: $0) })
        #expect(biased.map { $0["path"] } == ["settings.bracket.exposureBias[2]"])
        #expect(biased.first?["given"] == .number(0.5))
        let timed = told(
            .exposureDuration([10_000_000, 20_000_000]), [10_000_000, 10_000_000].map { .init(duration: $0) })
        #expect(timed.map { $0["given"] } == [.number(0.01)])
        #expect(told(.exposureDuration([10_000_000, 20_000_000]), [nil, nil]) == [])
    }
}
