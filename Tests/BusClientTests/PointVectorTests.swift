import BusClient
import CameraBusTesting
import JSON
import Testing

/// Points of views and pictures, which both clients convert alike.
@Suite struct PointVectorTests {
    @Test(arguments: Vectors.cases("points"))
    func points(_ vector: VectorCase) throws {
        if let orientations = vector.json["orientations"]?.object {
            for (device, video) in orientations {
                #expect(.string(VideoOrientation(forDeviceOrientation: device).rawValue) == video, "\(device)")
            }
            return
        }
        let layout = try #require(PreviewLayout(vector.json))
        for pair in vector.json["toDevice"]?.array ?? [] {
            let point = layout.devicePoint(try #require(PreviewLayout.Point(pair["view"])))
            #expect(isNear(point, pair["device"]), "\(pair): \(String(describing: point))")
        }
        for pair in vector.json["toView"]?.array ?? [] {
            let point = layout.viewPoint(try #require(PreviewLayout.Point(pair["device"])))
            #expect(isNear(point, pair["view"]), "\(pair): \(String(describing: point))")
        }
    }

    @Test func whatHasNoSizeHasNoPoints() {
        let picture = PreviewLayout.Size(width: 4, height: 3)
        for size in [
            PreviewLayout.Size(width: 0, height: 1), .init(width: 1, height: -.infinity), .init(width: .nan, height: 1),
        ] {
            #expect(PreviewLayout(view: size, picture: picture).devicePoint(.init(x: 0, y: 0)) == nil)
            #expect(PreviewLayout(view: picture, picture: size).viewPoint(.init(x: 0, y: 0)) == nil)
        }
        #expect(PreviewLayout(view: picture, picture: picture).devicePoint(.init(x: .nan, y: 0)) == nil)
    }

    private func isNear(_ point: PreviewLayout.Point?, _ wanted: JSONValue?) -> Bool {
        guard let wanted = PreviewLayout.Point(wanted) else { return point == nil }
        return point.map { abs($0.x - wanted.x) < 1e-6 && abs($0.y - wanted.y) < 1e-6 } ?? false
    }
}

extension PreviewLayout {
    fileprivate init?(_ json: JSONValue) {
        guard let view = Size(json["view"]), let picture = Size(json["picture"]),
            let gravity = json["gravity"]?.string.flatMap(Gravity.init),
            let rotation = json["rotation"]?.integer.flatMap({ Rotation(rawValue: Int($0)) }),
            let isMirrored = json["mirrored"]?.bool
        else { return nil }
        self.init(
            view: view, picture: picture, gravity: gravity, rotation: rotation, isMirrored: isMirrored,
            zoom: json["zoom"]?.double ?? 1)
    }
}

extension PreviewLayout.Size {
    fileprivate init?(_ json: JSONValue?) {
        guard let width = json?["width"]?.double, let height = json?["height"]?.double else { return nil }
        self.init(width: width, height: height)
    }
}

extension PreviewLayout.Point {
    fileprivate init?(_ json: JSONValue?) {
        guard let x = json?["x"]?.double, let y = json?["y"]?.double else { return nil }
        self.init(x: x, y: y)
    }
}
