import CaptureCore
import CaptureSources
import Foundation
import Testing

extension KernelTests {
    /// Our format table against what v4l2-ctl reads of the same driver.
    @Suite struct FormatTable {
        @Test(arguments: KernelRing.identities)
        func isV4L2ctls(_ identity: DeviceIdentity) throws {
            try compareFormatTables(identity, atLeast: 80)
        }

        @Test func idsCountTheRows() throws {
            let formats = try TestCamera().description.formats
            #expect(formats.map(\.id) == formats.indices.map { "f\($0)" })
        }

        /// A television card scales to any size: v4l2-ctl tells its sizes in steps, and it has one rate.
        @Test(.enabled(if: KernelRing.topology == .single))
        func scalerHasSteps() throws {
            let row = try #require(TestCamera(3).description.formats.first)
            #expect(
                row.sizes
                    == DimensionRange(
                        minimum: Dimensions(width: 16, height: 16), maximum: Dimensions(width: 16384, height: 8640),
                        step: Dimensions(width: 2, height: 2)))
            #expect(row.dimensions == Dimensions(width: 16384, height: 8640))
        }
    }
}

/// Compares our format table with what v4l2-ctl reads of the same driver, line by line.
///
/// - Parameter count: the lines that there are at least.
func compareFormatTables(_ identity: DeviceIdentity, atLeast count: Int) throws {
    let camera = V4L2Camera(identity)
    defer { camera.close() }
    let ours = FormatListing.text(try camera.open().formats)
    let theirs = try KernelTests.v4l2ctl(["-d", try #require(identity.node), "--list-formats-ext"])
        .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        .drop { !$0.hasPrefix("\t[") }
        .map { line in
            // What the format's flags say is no part of our table.
            guard line.hasPrefix("\t["), let flags = line.firstRange(of: /, (compressed|csc-)/) else { return line }
            return line[..<flags.lowerBound] + ")"
        }
        .filter { !$0.isEmpty }
    #expect(ours.count > count)
    for (line, pair) in zip(ours, theirs).enumerated() {
        #expect(pair.0 == pair.1, "line \(line)")
        if pair.0 != pair.1 { break }
    }
    #expect(ours.count == theirs.count)
}

enum FormatListing {
    /// The table as v4l2-ctl 1.22 writes it.
    static func text(_ formats: [CaptureFormat]) -> [String] {
        var lines: [String] = []
        var index = -1
        var previous: PixelFormat?
        for format in formats {
            if format.pixelFormat != previous {
                index += 1
                lines.append("\t[\(index)]: '\(format.pixelFormat)' (\(format.title))")
                previous = format.pixelFormat
            }
            if let sizes = format.sizes {
                lines.append(
                    "\t\tSize: Stepwise \(sizes.minimum) - \(sizes.maximum) with step "
                        + "\(sizes.step.width)/\(sizes.step.height)"
                )
                // It doesn't go on to the rates of such sizes.
                continue
            }
            lines.append("\t\tSize: Discrete \(format.dimensions)")
            for rate in format.frameRates {
                let duration = rate.minFrameDuration
                #expect(rate.maxFrameDuration == duration)
                lines.append(
                    String(
                        format: "\t\t\tInterval: Discrete %.3fs (%.3f fps)", duration.seconds,
                        duration.framesPerSecond))
            }
        }
        return lines
    }
}
