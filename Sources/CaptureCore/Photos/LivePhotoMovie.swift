public import BusProtocol
public import JSON

/// What says that a picture and a movie are one live photo: a UUID that stands in both files.
public struct LivePhotoIdentifier: Hashable, Sendable {
    /// 32 hexadecimal digits, small: as the picture's `ImageUniqueID`.
    public let digits: String

    /// - Parameter digits: 32 hexadecimal ones; nil is answered for anything else.
    public init?(digits: String) {
        let isWhole = digits.utf8.count == 32 && digits.utf8.allSatisfy { Self.isDigit($0) }
        guard isWhole else { return nil }
        self.digits = digits.lowercased()
    }

    /// - Parameter text: as ``text`` writes it, in capitals or not.
    public init?(text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == [8, 4, 4, 4, 12] else { return nil }
        self.init(digits: parts.joined())
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | 0x20)
    }

    /// As the movie has it (`com.apple.quicktime.content.identifier`): in groups, in capitals.
    public var text: String {
        var (rest, groups) = (Substring(digits.uppercased()), [Substring]())
        for count in [8, 4, 4, 4, 12] {
            groups.append(rest.prefix(count))
            rest = rest.dropFirst(count)
        }
        return groups.joined(separator: "-")
    }
}

/// The movie of a live photo, finished.
public struct LivePhotoMovie: Hashable, Sendable {
    public var identifier: LivePhotoIdentifier
    /// Pixels, as it is to be shown.
    public var dimensions: Dimensions
    /// Of the file.
    public var bytes: Int
    /// Nanoseconds.
    public var duration: Int64
    /// Nanoseconds from its beginning to the photo's moment.
    public var photoDisplayTime: Int64
    /// Pictures that the camera took in its time and that are not in it.
    public var dropped: Int
    /// The file in the library, absolute.
    public var path: String?
    /// Which of the reply's further frames it is, from 0.
    public var attachment: Int?

    public init(
        identifier: LivePhotoIdentifier, dimensions: Dimensions, bytes: Int, duration: Int64, photoDisplayTime: Int64,
        dropped: Int = 0, path: String? = nil, attachment: Int? = nil
    ) {
        self.identifier = identifier
        self.dimensions = dimensions
        self.bytes = bytes
        self.duration = duration
        self.photoDisplayTime = photoDisplayTime
        self.dropped = dropped
        self.path = path
        self.attachment = attachment
    }

    /// {contentIdentifier, width, height, bytes, duration: seconds, photoDisplayTime: seconds, dropped, path?,
    /// attachment?}
    public var json: JSONValue {
        .members([
            "contentIdentifier": .string(identifier.text), "width": JSONValue(dimensions.width),
            "height": JSONValue(dimensions.height), "bytes": JSONValue(bytes),
            "duration": .number(Double(duration) / 1e9), "photoDisplayTime": .number(Double(photoDisplayTime) / 1e9),
            "dropped": JSONValue(dropped), "path": path.map(JSONValue.string),
            "attachment": attachment.map { JSONValue($0) },
        ])
    }

    /// Reads what ``json`` writes; what it doesn't know is left out.
    ///
    /// - Throws: `invalidParams` with the member that is missing or wrong.
    public init(json: JSONValue, path: String = "livePhotoMovie") throws(BusError) {
        var reader = try MemberReader(json, path: path)
        guard let identifier = LivePhotoIdentifier(text: try reader.string("contentIdentifier")) else {
            throw .invalidParams(reader.path(of: "contentIdentifier"), "must be a UUID")
        }
        self.identifier = identifier
        dimensions = try Dimensions(from: &reader)
        bytes = Int(try reader.integer("bytes", in: 1 ... .max))
        duration = try Self.nanoseconds("duration", &reader)
        photoDisplayTime = try Self.nanoseconds("photoDisplayTime", &reader)
        dropped = Int(try reader.number("dropped", in: 0...1_000_000_000) ?? 0)
        self.path = try reader.text("path")
        attachment = try reader.number("attachment", in: 0...100_000).map { Int($0) }
    }

    private static func nanoseconds(_ name: String, _ reader: inout MemberReader) throws(BusError) -> Int64 {
        guard let seconds = try reader.required(name).double, seconds >= 0, seconds < 3600 else {
            throw .invalidParams(reader.path(of: name), "must be a number of seconds")
        }
        return Int64((seconds * 1e9).rounded())
    }
}
