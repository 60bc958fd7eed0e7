import BusProtocol
import CaptureCore
import Imaging
import Testing

/// Colours that no weights of red, green and blue give back.
@Suite struct OtherMatrixTests {
    private static let size = Dimensions(width: 32, height: 16)

    private func layout(_ format: PixelFormat, _ matrix: YCbCrMatrix) throws -> FrameLayout {
        var layout = try #require(FrameLayout.packed(FormatDescription(pixelFormat: format, dimensions: Self.size)))
        layout.description.color.matrix = matrix
        return layout
    }

    @Test(arguments: [YCbCrMatrix.bt2020c, .ycgco, .ictcp], [PixelFormat.yuyv, .nv12, .i420])
    func theyAreRefusedByNameAndNeverTakenForOthers(_ matrix: YCbCrMatrix, _ format: PixelFormat) throws {
        let layout = try layout(format, matrix)
        for encoding in [Rendition.Encoding.bgr, .rgb, .rgb48, .jpeg] {
            let error = #expect(throws: BusError.self) {
                _ = try PictureConverter(from: layout, to: PictureRequest(encoding: encoding, dimensions: Self.size))
            }
            #expect(error?.reason == .formatUnsupported)
            #expect(error?.message.contains("the matrix \(matrix.rawValue) ") == true)
        }
        // Which keep it, or need none.
        for encoding in [Rendition.Encoding.nv12, .i420, .yuyv] {
            let request = PictureRequest(encoding: encoding, dimensions: Self.size)
            #expect(try PictureConverter(from: layout, to: request).outputLayout.description.color.matrix == matrix)
        }
        for encoding in [Rendition.Encoding.gray, .gray16] {
            let request = PictureRequest(encoding: encoding, dimensions: Self.size)
            #expect(throws: Never.self) { _ = try PictureConverter(from: layout, to: request) }
        }
    }

    @Test func allOthersAreConverted() throws {
        for matrix in YCbCrMatrix.allCases where matrix.isConvertible && matrix != .gbr {
            let request = PictureRequest(encoding: .rgb, dimensions: Self.size)
            let layout = try layout(.nv12, matrix)
            #expect(throws: Never.self) { _ = try PictureConverter(from: layout, to: request) }
        }
    }
}
