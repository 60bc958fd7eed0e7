import CameraBusTesting
import CaptureCore
import FFmpeg
import Glibc
import LinuxIO
import MovieFile
import Testing

/// Movies of a constant frame rate.
@Suite struct FrameGridTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    private static let size = Dimensions(width: Material.width, height: Material.height)

    private func configuration(_ type: MovieFileType, _ video: MovieVideo, _ rate: Double) -> MovieConfiguration {
        var configuration = MovieConfiguration(type, video: video)
        configuration.constantFrameRate = rate
        configuration.movieFragmentInterval = 500_000_000
        return configuration
    }

    /// Frames are where they belong: of each place of the grid the number of the frame that is shown there.
    private static func places(_ times: [Int64], _ rate: Double) -> [Int] {
        var places: [Int] = []
        for (index, time) in times.enumerated() {
            let place = Int((Double(time - times[0]) * rate / 1e9).rounded())
            if place < places.count { continue }
            while places.count < place, let last = places.last { places.append(last) }
            places.append(index)
        }
        return places
    }

    @Test(arguments: [25, 30, 30000.0 / 1001, 60], [MovieFileType.mp4, .mkv])
    func eachPlaceHasTheFrameThatCameFirst(_ rate: Double, _ type: MovieFileType) async throws {
        let material = try await Material.motionJPEG(60, in: scratch)
        // Late by up to 9 ms, and some don't come at all.
        var (times, kept) = (Material.times(60), Array(0..<60))
        for index in [58, 41, 40, 39, 20, 3] {
            times.remove(at: index)
            kept.remove(at: index)
        }
        let path = "\(scratch.path)/movie.\(type)"
        let writer = try MovieWriter(path, configuration(type, .motionJPEG(.jpeg(Self.size)), rate))
        for (index, time) in zip(kept, times) {
            _ = try material.frames[index].withUnsafeBytes { try writer.append($0, at: time) }
        }
        #expect(try writer.finishWriting() == nil)
        let places = Self.places(times, rate)
        let shown = Set(places).count
        #expect(writer.statistics.frames == UInt64(shown) && writer.statistics.dropped == 0)
        #expect(writer.statistics.repeated == UInt64(places.count - shown))
        #expect(writer.statistics.skipped == UInt64(times.count - shown))
        #expect(abs(Double(writer.statistics.recordedDuration) / 1e9 - Double(places.count) / rate) < 0.001)

        let judge = Judge(path: path, scratch: scratch)
        let found = try await judge.times("v:0")
        try #require(found.count == places.count)
        let tolerance = type == .mkv ? 0.00051 : 0.000002
        for (place, time) in found.enumerated() { #expect(abs(time - Double(place) / rate) < tolerance) }
        let reader = try MovieReader(path, delivers: .packets)
        for place in places {
            #expect(try reader.next() != nil)
            #expect(reader.withPacket { Array($0) } == material.frames[kept[place]])
        }
    }

    @Test func encodedAndRawPicturesAreRepeated() async throws {
        let layout = try #require(FrameLayout.packed(.yuyv, Self.size))
        var settings = MovieFileType.mov.recommendedVideoSettings(Self.size, frameRate: 30)
        settings.preset = "ultrafast"
        for video in [MovieVideo.encoded(layout, settings), .raw(layout)] {
            let path = "\(scratch.path)/\(video.codec).mov"
            let writer = try MovieWriter(path, configuration(.mov, video, 30))
            // Half of the frames.
            for index in 0..<30 {
                let picture = MovieWriterTests.picture(layout, index * 4)
                _ = try picture.withUnsafeBytes { try writer.append($0, at: Int64(index) * 66_666_667) }
            }
            #expect(try writer.finishWriting() == nil)
            #expect(writer.statistics.frames == 30 && writer.statistics.repeated == 29)
            let judge = Judge(path: path, scratch: scratch)
            #expect(try await judge.times("v:0").count == 59)
            let complaints = try await judge.complaints()
            #expect(complaints == "")
            let reader = try MovieReader(path, delivers: .pictures)
            var shown = [UInt8](repeating: 0, count: layout.totalBytes)
            for place in 0..<59 {
                _ = try #require(try reader.next())
                try shown.withUnsafeMutableBytes { bytes in
                    let base = try #require(bytes.baseAddress)
                    try reader.copyPicture(
                        as: ImageDescription(
                            .yuyv422, width: Self.size.width, height: Self.size.height, range: .limited),
                        to: ImagePlanes(base, stride: Self.size.width * 2))
                }
                let expected = Int(MovieWriterTests.picture(layout, place / 2 * 4)[0])
                #expect(abs(Int(shown[Self.size.width * Self.size.height]) - expected) < 4, "place \(place)")
            }
        }
    }

    @Test func whatCannotBeRepeatedIsRefused() async throws {
        let material = try await Material.h264(3, in: scratch)
        let path = "\(scratch.path)/movie.mp4"
        let video = MovieVideo.h264(.h264(Self.size), parameterSets: material.parameterSets)
        #expect(throws: MovieError.self) { try MovieWriter(path, configuration(.mp4, video, 30)) }
        #expect(throws: MovieError.self) {
            try MovieWriter(path, configuration(.mp4, .motionJPEG(.jpeg(Self.size)), 0))
        }
        #expect(access(path, F_OK) != 0)
    }

    @Test func aHoleOfHoursIsNotFilled() throws {
        let writer = try MovieWriter(
            "\(scratch.path)/movie.mp4", configuration(.mp4, .motionJPEG(.jpeg(Self.size)), 30))
        let frame: [UInt8] = [0xFF, 0xD8, 0xFF, 0xD9]
        #expect(try frame.withUnsafeBytes { try writer.append($0, at: 0) })
        #expect(throws: MovieError.self) { try frame.withUnsafeBytes { try writer.append($0, at: 7_200_000_000_000) } }
        #expect(try frame.withUnsafeBytes { try writer.append($0, at: 40_000_000) })
        writer.cancelWriting()
    }
}
