import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import Imaging
import LinuxIO
import Testing

/// How files of pictures say that they have to be turned.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ReplayOrientationTests: ReplayTesting {
    let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    @Test("a picture, or the first one of a folder, says by EXIF how they are turned", arguments: 1...8)
    func oriented(_ number: Int) async throws {
        let path = "\(folder.path)/picture.jpg"
        _ = try await ffmpeg(["-f", "lavfi", "-i", "testsrc=size=64x48", "-frames:v", "1", path])
        try orient(path, UInt8(number))
        let camera = camera(path, fps: 100)
        let orientation = try camera.open().orientation
        #expect(
            ExifOrientation.number(
                CaptureOrientation(rotationAngle: orientation.quarters * 90), isMirrored: orientation.isMirrored)
                == number)
        // The file itself, with its EXIF data.
        #expect(try play(camera).frames.map(\.bytes) == [try File.read(path, limit: 1 << 20)])
    }

    /// Prints the picture as the file has it turned, in grey.
    private static let pillow = """
        import sys
        from PIL import Image, ImageOps
        picture = Image.open(sys.argv[1])
        kind = picture.format
        picture.load()
        # TIFF is turned when it is loaded.
        picture = (picture if kind == "TIFF" else ImageOps.exif_transpose(picture)).convert("L")
        sys.stdout.buffer.write(bytes(picture.size) + picture.tobytes())
        """

    @Test(
        "PNG, TIFF and WebP say it, too: pictures are as Pillow shows them",
        .enabled(if: access("/usr/bin/exiftool", X_OK) == 0, "exiftool is not there"),
        arguments: [
            ("png", ["-pix_fmt", "gray"]), ("tif", ["-pix_fmt", "gray"]),
            ("webp", ["-c:v", "libwebp", "-lossless", "1"]), ("bmp", []),
        ] as [(String, [String])], [1, 2, 3, 4, 5, 6, 7, 8])
    func orientedFiles(_ kind: (name: String, options: [String]), _ number: Int) async throws {
        let path = "\(folder.path)/picture.\(kind.name)"
        // Left dark, the top less so, and one bright corner: no turn is like another.
        let picture =
            "color=gray:size=64x48,format=gray,geq=lum='if(lt(X,16),20,if(lt(Y,12),90,if(gt(X+Y,90),235,160)))'"
        _ = try await ffmpeg(["-f", "lavfi", "-i", picture, "-frames:v", "1"] + kind.options + [path])
        if kind.name != "bmp" {
            _ = try await run("exiftool", ["-q", "-n", "-overwrite_original", "-Orientation=\(number)", path])
        }
        let shown = try await run("/usr/bin/python3", ["-c", Self.pillow, path])
        let camera = camera(path, fps: 100)
        let orientation = try camera.open().orientation
        let stream = try camera.startStreaming(slots: 4)
        defer { try? camera.stopStreaming() }
        let slot = try nextFrame(stream)
        let size = orientation.turned(stream.layout.dimensions)
        var request = PictureRequest(encoding: .gray, dimensions: size)
        request.orientation = orientation
        let converter = try PictureConverter(from: stream.layout, to: request)
        let upright = PictureBuffer()
        let regions = slot.regions.map { UnsafeRawBufferPointer($0) }
        _ = try converter.convert(regions, bytesUsed: slot.bytesUsed, into: upright)
        #expect(shown.prefix(2).elementsEqual([UInt8(size.width), UInt8(size.height)]))
        try #require(shown.count == upright.count + 2)
        let most = zip(shown.dropFirst(2), upright.bytes).map { abs(Int($0) - Int($1)) }.max() ?? 255
        #expect(most <= 3, "\(kind.name) \(number)")
    }
}
