import BusProtocol
public import JSON

/// A device whose frames a client makes (`source.create`).
public struct ClientSource: Hashable, Sendable {
    /// What people call it; its `uniqueID` comes from it, so that a program that is started again has the same device.
    public var name: String
    /// What its frames are, with what the client states about them.
    public var description: FormatDescription
    /// Whose process alone may send frames, as the kernel names it.
    public var owner: LockHolder

    public init(name: String, description: FormatDescription, owner: LockHolder) {
        self.name = name
        self.description = description
        self.owner = owner
    }

    public var format: FormatSelection {
        FormatSelection(pixelFormat: description.pixelFormat, dimensions: description.dimensions)
    }

    /// nil: the frames come when they come.
    public var frameDuration: FrameDuration? { description.frameDuration }

    /// What frames of a client can be.
    public static let pixelFormats: [PixelFormat] =
        [.bgr24, .rgb24, .yuyv, .uyvy, .nv12, .i420, .motionJPEG] + PixelFormat.unpackedRawFormats

    /// Bytes of a frame.
    public static let maximumFrameBytes = 128 << 20

    /// How its frames lie in memory; nil for one that is too large, or of another format.
    public var layout: FrameLayout? {
        guard Self.pixelFormats.contains(format.pixelFormat), let layout = FrameLayout.packed(description),
            layout.totalBytes <= Self.maximumFrameBytes
        else { return nil }
        return layout
    }

    /// Of names beyond ASCII it has a hash of the name.
    public var uniqueID: String {
        guard !isASCII else { return Slug.joined([Self.kind, name], limit: 120) }
        return Slug.joined([Self.kind, Slug.name(name, limit: 64), Slug.digits(name, count: 16)], limit: 120)
    }

    private var isASCII: Bool { name.utf8.allSatisfy { $0 < 0x80 } }

    /// Whether a `uniqueID` is that of a client's device.
    public static func isSource(_ uniqueID: String) -> Bool { uniqueID.hasPrefix("\(kind)-") }

    private static let kind = "client"

    /// The device id that comes from the name: its ASCII letters and digits, and of names beyond ASCII a hash; empty:
    /// the name has nothing that can be read.
    public var preferredID: String {
        guard !isASCII else { return Slug.name(name, limit: DeviceID.maxBytes) }
        guard name.unicodeScalars.contains(where: { !$0.properties.isWhitespace && $0.isPrinted }) else { return "" }
        let slug = Slug.name(name, limit: DeviceID.maxBytes - 9)
        return "\(slug.isEmpty ? "source" : slug)-\(Slug.digits(name, count: 8))"
    }

    public var identity: DeviceIdentity {
        DeviceIdentity(
            uniqueID: uniqueID, localizedName: name, type: .virtual, position: .unspecified, driver: "client",
            bus: "client:\(owner.pid)")
    }

    public var json: JSONValue {
        .members([
            "name": .string(name), "pixelFormat": .string(format.pixelFormat.name),
            "width": JSONValue(format.dimensions.width), "height": JSONValue(format.dimensions.height),
            "frameDuration": frameDuration.map { .string($0.description) }, "statement": .object(description.statement),
            "uid": JSONValue(owner.uid),
            "gid": JSONValue(owner.gid), "pid": JSONValue(owner.pid),
            "startTime": owner.startTime.map { .string(String($0)) }, "process": .string(owner.name),
        ])
    }

    public init?(json: JSONValue) {
        guard let name = json["name"]?.string,
            let pixelFormat = json["pixelFormat"]?.string.flatMap({ PixelFormat($0) }),
            let width = json["width"]?.integer, let height = json["height"]?.integer,
            let uid = json["uid"]?.integer.flatMap({ UInt32(exactly: $0) }),
            let gid = json["gid"]?.integer.flatMap({ UInt32(exactly: $0) }),
            let pid = json["pid"]?.integer.flatMap({ Int32(exactly: $0) }),
            (1...65535).contains(width), (1...65535).contains(height)
        else { return nil }
        var description = FormatDescription(
            pixelFormat: pixelFormat, dimensions: Dimensions(width: Int(width), height: Int(height)))
        if let statement = json["statement"], description.take(statement) != nil { return nil }
        description.frameDuration = json["frameDuration"]?.string.flatMap { FrameDuration($0) }
        self.init(
            name: name, description: description,
            owner: LockHolder(
                uid: uid, gid: gid, pid: pid, startTime: json["startTime"]?.string.flatMap { UInt64($0) },
                name: json["process"]?.string ?? "unknown"))
        guard layout != nil else { return nil }
    }
}

extension Unicode.Scalar {
    fileprivate var isPrinted: Bool {
        switch properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned: false
        default: true
        }
    }
}
