import ArgumentParser
import BusProtocol
import JSON

/// A format as an argument: a size, `1280x720`, or an id of the format table.
enum FormatArgument: Hashable {
    case size(width: Int, height: Int)
    case id(String)

    /// - Throws: what is wrong with it.
    init(reading argument: String) throws {
        let parts = argument.split(omittingEmptySubsequences: false) { "xX×".contains($0) }
        if parts.count == 2, let width = Int(parts[0]), let height = Int(parts[1]) {
            guard (1...65535).contains(width), (1...65535).contains(height) else {
                throw ValidationError("width and height are from 1 to 65535 pixels")
            }
            self = .size(width: width, height: height)
        } else if let first = argument.first, !("0"..."9").contains(first) {
            self = .id(argument)
        } else {
            throw ValidationError("a size is width and height in pixels, as in 1280x720")
        }
    }

    /// The `activeFormat` of a change.
    ///
    /// - Parameter pixelFormat: its four-character code, where it matters.
    func json(pixelFormat: String?) -> JSONValue {
        switch self {
        case .size(let width, let height):
            .members([
                "width": JSONValue(width), "height": JSONValue(height),
                "pixelFormat": pixelFormat.map(JSONValue.string),
            ])
        case .id(let id): .string(id)
        }
    }
}

extension FrameRate {
    /// Frames per second as an argument: `30`, `29.97`, or exactly `30000/1001`.
    ///
    /// - Throws: what is wrong with it.
    init(reading argument: String) throws {
        do { try self.init(argument) } catch { throw ValidationError("\(error)") }
    }
}
