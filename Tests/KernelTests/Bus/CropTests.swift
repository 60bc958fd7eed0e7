import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Foundation
import JSON
import Testing

extension KernelTests {
    /// vivid's television card takes a part of its picture; its webcams don't.
    @Suite(.enabled(if: KernelRing.topology == .single, "only this ring has the card")) struct Crop {
        /// What v4l2-ctl says that is selected.
        private static func selection(_ node: String, _ target: String) throws -> PixelRectangle {
            let text = try KernelTests.v4l2ctl(["-d", node, "--get-selection", "target=\(target)"])
            let match = try #require(
                try #/Left (-?\d+), Top (-?\d+), Width (\d+), Height (\d+)/#.firstMatch(in: text), "\(text)")
            let (_, left, top, width, height) = match.output
            return PixelRectangle(
                x: try #require(Int64(left)), y: try #require(Int64(top)), width: try #require(Int64(width)),
                height: try #require(Int64(height)))
        }

        @Test func theBusSetsTheSelectionThatTheDriverHas() async throws {
            let bus = try await BusHarness(virtual: nil)
            try await KernelTests.tellingLog(of: bus) { try await crop(bus) }
            try await bus.stop()
        }

        private func crop(_ bus: BusHarness) async throws {
            let client = try RawClient(path: bus.directory.commandSocket)
            var devices: [JSONValue] = []
            try await eventually(by: .after(seconds: 240)) {
                devices = (try client.call("device.list", within: 60)["devices"]?.array ?? []).filter {
                    $0["mediaType"] == "video" && $0["worker"]?["state"] == "running"
                        && !($0["activeFormat"]?.isNull ?? true)
                }
                return devices.count == KernelRing.identities.count
            }
            let card = try #require(KernelRing.identities.last)
            let node = try #require(card.node)
            let device = try #require(devices.first { $0["uniqueID"]?.string == card.uniqueID }?["id"]?.string)
            let webcam = try #require(devices.first { $0["uniqueID"]?.string != card.uniqueID }?["id"]?.string)

            func describe(_ device: String) throws -> JSONValue {
                try client.call("device.controls", ["device": .string(device)], within: 60)
            }
            #expect(try describe(webcam)["supports"]?["cropRectangle"] == false)
            let described = try describe(device)
            #expect(described["supports"]?["cropRectangle"] == true)
            let control = try #require(described["cameraControls"]?.array?.first { $0["name"] == "cropRectangle" })
            let bounds = try #require(control["bounds"].flatMap { PixelRectangle(json: $0) })
            #expect(try bounds == Self.selection(node, "crop_bounds"))
            let whole = try #require(control["defaultRectangle"].flatMap { PixelRectangle(json: $0) })
            #expect(try whole == Self.selection(node, "crop_default"))

            let lock = try client.call("device.lock", ["devices": .string(device)], within: 60)["lock"] ?? .null
            func configure(_ part: PixelRectangle) throws -> JSONValue {
                let change: JSONValue = ["device": .string(device), "controls": ["cropRectangle": part.json]]
                return try client.call("device.configure", ["lock": lock, "changes": [change]], within: 60)
            }
            func given(_ result: JSONValue) -> PixelRectangle? {
                result["applied"]?[device]?["controls"]?["cropRectangle"].flatMap { PixelRectangle(json: $0) }
            }
            let reader = try FrameReader(bus, device, "native")
            let before = try reader.next()
            // Half as wide as high, of what the picture was: the driver scales it to the same size.
            let part = PixelRectangle(
                x: whole.x + 16, y: whole.y + 8, width: whole.width / 4 * 2, height: whole.height / 4 * 4 - 8)
            let narrow = try configure(part)
            #expect(given(narrow) == part, "\(narrow)")
            #expect(try Self.selection(node, "crop") == part)
            var frame = try reader.next()
            while frame.stream == before.stream { frame = try reader.next() }
            #expect(frame.header["width"] == before.header["width"])
            let ratio = try #require(
                FormatExtensions.Ratio(
                    Int(part.width * whole.height), Int(part.height * whole.width)))
            #expect(frame.header["pixelAspectRatio"]?.string == ratio.text(":"), "\(frame.header)")

            // Out of bounds.
            let outside = PixelRectangle(x: bounds.x, y: bounds.y, width: bounds.width + 2, height: bounds.height)
            let error = #expect(throws: BusError.self) { _ = try configure(outside) }
            #expect(error?.reason == .controlOutOfRange && error?.data["bounds"] == bounds.json)
            #expect(try Self.selection(node, "crop") == part)

            // Too small for vivid: what it made of it is what it has, and is told.
            let tiny = PixelRectangle(x: whole.x, y: whole.y, width: 1, height: 1)
            let rounded = try configure(tiny)
            let now = try Self.selection(node, "crop")
            #expect(now != tiny && given(rounded) == now, "\(rounded)")
            #expect(rounded["adjusted"]?.array?.first { $0["asked"] == tiny.json }?["given"] == now.json)
            _ = try client.call("profile.save", ["name": "part", "devices": [.string(device)]], within: 60)
            #expect(given(try configure(whole)) == whole)
            #expect(try Self.selection(node, "crop") == whole)
            _ = try client.call("profile.apply", ["name": "part", "lock": lock], within: 60)
            #expect(try Self.selection(node, "crop") == now)
            #expect(given(try configure(whole)) == whole)
        }
    }
}
