import CaptureCore
import JSON
import Testing

@Suite struct PhotoBeatTests {
    @Test(arguments: [(100, 100), (101, 110), (110, 110), (115, 120), (99, 100), (-5, 100)] as [(Int64, Int64)])
    func theNextFrameIsOnTheBeat(_ time: Int64, _ frame: Int64) {
        #expect(PhotoBeat(frame: 100, period: 10).frame(from: time) == frame)
    }

    @Test func whatIsFarAwayIsNoTrap() {
        #expect(PhotoBeat(frame: -2, period: 10).frame(from: .max) == .max)
        #expect(PhotoBeat(frame: .max, period: 10).frame(from: .min) == .max)
        #expect(PhotoBeat(frame: 0, period: 0).frame(from: 5) == 5)
        #expect(PhotoBeat(json: ["frame": 1, "period": 0]) == nil)
        #expect(PhotoBeat(json: PhotoBeat(frame: 1, period: 2).json) == PhotoBeat(frame: 1, period: 2))
    }
}
