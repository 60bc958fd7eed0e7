import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Imaging
import Testing

extension KernelTests {
    /// Colours as vivid's menus set them: what the driver states is what the pictures are.
    @Suite struct Colors {
        /// By the numbers of vivid's menus, with the words of v4l2-ctl and ours.
        private static let encodings: [(number: Int64, theirs: String, ours: YCbCrMatrix)] = [
            (1, "ITU-R 601", .smpte170m), (2, "Rec. 709", .bt709), (6, "BT.2020", .bt2020nc),
            (8, "SMPTE 240M", .smpte240m),
        ]
        private static let ranges: [(number: Int64, theirs: String, ours: VideoColorRange)] = [
            (1, "Full Range", .full), (2, "Limited Range", .video),
        ]
        /// White, yellow, cyan, green, magenta, red, blue, black.
        private static let bars: [(Int, Int, Int)] = [
            (255, 255, 255), (255, 255, 0), (0, 255, 255), (0, 255, 0), (255, 0, 255), (255, 0, 0), (0, 0, 255),
            (0, 0, 0),
        ]

        @Test(arguments: encodings.indices, ranges.indices)
        func barsHaveTheirColours(_ encoding: Int, _ range: Int) throws {
            let (encoding, range) = (Self.encodings[encoding], Self.ranges[range])
            let test = try TestCamera()
            // Whatever another test has left: brightness, saturation and the like change the bars.
            for control in test.description.controls where [.integer, .boolean].contains(control.type) {
                guard control.category == "User Controls", control.flags.isDisjoint(with: [.readOnly, .inactive]),
                    let value = control.defaultValue
                else { continue }
                try test.set(control.name, control.type == .boolean ? .boolean(value != 0) : .integer(value))
            }
            // Of Rec. 709's primaries, as the bars are: no colour is converted.
            try test.set("colorspace", .integer(1))
            try test.set("y_cbcr_encoding", .integer(encoding.number))
            try test.set("quantization", .integer(range.number))
            try test.set("test_pattern", .integer(1))
            for pixelFormat in ["YUYV", "NV12"] {
                try test.use(pixelFormat, 640, 360)
                let text = try test.v4l2ctl("--get-fmt-video")
                #expect(text.contains("YCbCr/HSV Encoding: \(encoding.theirs)"), "\(text)")
                #expect(text.contains("Quantization      : \(range.theirs)"), "\(text)")
                let stated = try test.camera.formatDescription().color
                let stream = try test.camera.startStreaming()
                defer { try? test.camera.stopStreaming() }
                let color = stream.layout.description.color
                #expect(stated == color, "the same before the stream")
                #expect(color.matrix == encoding.ours && color.range == range.ours && color.primaries == .bt709)
                let slot = try nextFrame(stream)
                let regions = slot.regions.map { UnsafeRawBufferPointer($0) }
                // vivid rounds chroma down; with another matrix or range a bar is off by 15 and more.
                for (encoding, tolerance) in [(Rendition.Encoding.rgb, 6), (.gray, 3)] {
                    let request = PictureRequest(encoding: encoding, dimensions: stream.layout.dimensions)
                    let converter = try PictureConverter(from: stream.layout, to: request)
                    let picture = PictureBuffer()
                    _ = try converter.convert(regions, bytesUsed: slot.bytesUsed, into: picture)
                    let channels = encoding == .rgb ? 3 : 1
                    for (index, bar) in Self.bars.enumerated() {
                        let place = (180 * 640 + 640 * (2 * index + 1) / 16) * channels
                        let found = (0..<channels).map { Int(picture.bytes[place + $0]) }
                        let weights = Self.weights(color.matrix)
                        let luma =
                            weights.red * Double(bar.0) + (1 - weights.red - weights.blue) * Double(bar.1)
                            + weights.blue * Double(bar.2)
                        let wanted = channels == 3 ? [bar.0, bar.1, bar.2] : [Int(luma.rounded())]
                        let most = zip(found, wanted).map { abs($0 - $1) }.max() ?? 255
                        #expect(most <= tolerance, "\(pixelFormat) \(encoding) \(bar): \(found)")
                    }
                }
            }
        }

        private static func weights(_ matrix: YCbCrMatrix?) -> (red: Double, blue: Double) {
            switch matrix {
            case .bt709: (0.2126, 0.0722)
            case .bt2020nc: (0.2627, 0.0593)
            case .smpte240m: (0.212, 0.087)
            default: (0.299, 0.114)
            }
        }
    }
}
