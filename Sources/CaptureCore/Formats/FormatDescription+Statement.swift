import BusProtocol
public import JSON

extension FormatDescription {
    /// {pixelFormat, width, height, orientation, mirrored, colorPrimaries, …}: all that is stated.
    public var json: JSONValue {
        var members = statement
        members["pixelFormat"] = .string(pixelFormat.name)
        members["width"] = JSONValue(dimensions.width)
        members["height"] = JSONValue(dimensions.height)
        members["frameDuration"] = extensions.members["frameDuration"]
        return .object(members)
    }

    /// {orientation, mirrored, colorPrimaries, …}: what goes beyond pixel format, size and rate.
    public var statement: [String: JSONValue] {
        var members = extensions.members
        members["frameDuration"] = nil
        members["orientation"] = JSONValue(orientation.quarters * 90)
        members["mirrored"] = .bool(orientation.isMirrored)
        return members
    }

    /// Applies such members. Absent members change nothing.
    ///
    /// - Returns: the member that can't be true of pictures of this format and size, and why; nil: all can.
    public mutating func take(_ json: JSONValue) -> (member: String, why: String)? {
        let (own, stated) = (extensions, FormatExtensions(json))
        extensions.color = ColorDescription(
            primaries: stated.color.primaries ?? own.color.primaries,
            transferFunction: stated.color.transferFunction ?? own.color.transferFunction,
            matrix: stated.color.matrix ?? own.color.matrix,
            range: json["colorRange"] == nil ? own.color.range : stated.color.range,
            chromaLocation: stated.color.chromaLocation ?? own.color.chromaLocation)
        if json["pixelAspectRatio"] != nil { extensions.pixelAspectRatio = stated.pixelAspectRatio }
        extensions.cleanAperture = stated.cleanAperture ?? own.cleanAperture
        extensions.metersPerStep = stated.metersPerStep ?? own.metersPerStep
        let angle = json["orientation"]?.integer ?? Int64(orientation.quarters * 90)
        orientation = PictureOrientation(
            quarters: Int(clamping: angle / 90), isMirrored: json["mirrored"]?.bool ?? orientation.isMirrored)
        return flaw(json, stated, own.color, angle)
    }

    private func flaw(
        _ json: JSONValue, _ stated: FormatExtensions, _ usual: ColorDescription, _ angle: Int64
    ) -> (member: String, why: String)? {
        guard [0, 90, 180, 270].contains(angle) else { return ("orientation", "must be 0, 90, 180 or 270") }
        let ratio = json["pixelAspectRatio"]?.string
        if let ratio, FormatExtensions.Ratio(ratio, separator: ":") == nil {
            return ("pixelAspectRatio", "must be two whole numbers above 0, as in 64:45")
        }
        if let area = extensions.cleanAperture,
            area.x + area.width > dimensions.width || area.y + area.height > dimensions.height
        {
            return ("cleanAperture", "reaches beyond the picture of \(dimensions)")
        }
        if json["metersPerStep"] != nil {
            if pixelFormat != .depth16 { return ("metersPerStep", "is only of depth (Z16)") }
            if stated.metersPerStep == nil { return ("metersPerStep", "must be a number above 0") }
        }
        if pixelFormat == .motionJPEG || pixelFormat == .jpeg {
            if color.range != .full { return ("colorRange", "is full in JPEG pictures") }
            if color.matrix != .smpte170m, color.matrix != .bt470bg {
                return ("yCbCrMatrix", "is that of BT.601 (smpte170m) in JPEG pictures")
            }
        }
        if pixelFormat.isFullRange, color.range != .full {
            return ("colorRange", "is full for Bayer, depth and samples of more than 8 bits")
        }
        if let matrix = color.matrix, !matrix.isConvertible {
            return ("yCbCrMatrix", "\(matrix.rawValue) can't be converted here")
        }
        let (isPixels, isStatedPixels) = (usual.matrix == .gbr, color.matrix == .gbr)
        guard isPixels == isStatedPixels else {
            return (
                "yCbCrMatrix",
                isPixels ? "is gbr for pixels of red, green and blue" : "can't be gbr for luma and chroma"
            )
        }
        return nil
    }
}
