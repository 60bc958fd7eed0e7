import BusProtocol
import JSON
import LinuxIO
import ZeroMQ

/// A part of a file of the capture library, as a librarian has read it.
struct LibraryFilePart {
    /// Keeps the memory with the part until the reply is sent.
    private final class MappedPart: MessageOwner, @unchecked Sendable {
        private let view: SharedMemoryView

        init(_ view: SharedMemoryView) { self.view = view }
    }

    /// Bytes where the client doesn't say.
    static let usualLength = 1 << 20
    /// Up to so many bytes are copied: a mapping for each would take more than they do.
    private static let maximumCopied = 64 << 10

    private let members: [String: JSONValue]
    private let view: SharedMemoryView?

    /// - Parameters:
    ///   - members: what the librarian reports of it.
    ///   - view: the memory that it has filled; nil: nothing was to be read.
    init(_ members: JSONValue, _ view: SharedMemoryView?) {
        self.members = members.object ?? [:]
        self.view = view
    }

    /// The reply to a user.
    ///
    /// - Throws: `limitExceeded` when too many bytes are on their way to the user.
    func reply(to uid: UInt32, _ budget: AttachmentBudget) throws(BusError) -> CallReply {
        var members = members
        let count = members.removeValue(forKey: "bytes")?.integer.flatMap { Int(exactly: $0) } ?? -1
        guard (0...(view?.bytes.count ?? 0)).contains(count), let name = members["name"]?.string else {
            throw BusError(.internalError, "The librarian returned another part of the file than the requested one.")
        }
        members["attachments"] = [
            [
                "name": .string(name), "contentType": .string(Self.contentType(of: name)),
                "bytes": JSONValue(count),
            ]
        ]
        let frame: Message
        do throws(ZeroMQError) {
            frame = try message(count)
        } catch {
            throw BusError(.internalError, "There is no memory for this part of the file: \(error). Read less.")
        }
        return CallReply(result: .success(.object(members)), attachments: [try budget.count(frame, for: uid)])
    }

    private func message(_ count: Int) throws(ZeroMQError) -> Message {
        let frame = Message()
        guard let view, count > 0 else { return frame }
        let bytes = UnsafeRawBufferPointer(rebasing: view.bytes[..<count])
        if count <= Self.maximumCopied {
            try frame.allocate(count: count)
            frame.withUnsafeMutableBytes { $0.copyMemory(from: bytes) }
        } else {
            try frame.borrow(bytes, from: MappedPart(view))
        }
        return frame
    }

    // Of what the bus makes.
    private static func contentType(of name: String) -> String {
        switch name.split(separator: ".").last?.lowercased() {
        case "mp4": "video/mp4"
        case "mov": "video/quicktime"
        case "mkv": "video/matroska"
        case "jpg", "jpeg": "image/jpeg"
        case "dng": "image/x-adobe-dng"
        case "png": "image/png"
        case "tif", "tiff": "image/tiff"
        case "jsonl": "application/jsonl"
        default: "application/octet-stream"
        }
    }
}
