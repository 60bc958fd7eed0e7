import CPage
import NIOCore

/// The files of the page, contained in the program. Only files in this table are served; the disk is never read.
struct PageFiles: Sendable {
    struct File: Sendable {
        let bytes: ByteBuffer
        let type: String
        /// As in `ETag`.
        let tag: String
    }

    /// By name.
    let files: [String: File]

    init() {
        var files: [String: File] = [:]
        var index: Int32 = 0
        while let name = cpage_file_at(index).name {
            let file = cpage_file_at(index)
            let bytes = ByteBuffer(bytes: UnsafeBufferPointer(start: file.bytes, count: file.count))
            let text = String(cString: name)
            files[text] = File(bytes: bytes, type: Self.type(of: text), tag: Self.tag(of: bytes))
            index += 1
        }
        self.files = files
    }

    /// FNV-1a: only to be another one when the file is.
    private static func tag(of bytes: ByteBuffer) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes.readableBytesView { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return "\"\(String(hash, radix: 16))\""
    }

    /// By a name's ending.
    static func type(of name: String) -> String {
        switch name.split(separator: ".").last.map({ $0.lowercased() }) {
        case "html": "text/html; charset=utf-8"
        case "css": "text/css; charset=utf-8"
        case "js": "text/javascript; charset=utf-8"
        case "json", "webmanifest": "application/json"
        case "jsonl", "txt": "text/plain; charset=utf-8"
        case "svg": "image/svg+xml"
        case "png": "image/png"
        case "ico": "image/x-icon"
        case "jpg", "jpeg": "image/jpeg"
        case "dng": "image/x-adobe-dng"
        case "tif", "tiff": "image/tiff"
        case "mp4", "m4v": "video/mp4"
        case "mov": "video/quicktime"
        case "mkv": "video/matroska"
        case "webm": "video/webm"
        case "wav": "audio/wav"
        default: "application/octet-stream"
        }
    }
}
