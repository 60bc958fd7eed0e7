import NIOCore

/// Pictures one after the other in one answer (`multipart/x-mixed-replace`). Browsers show them as a moving picture.
enum Multipart {
    static let boundary = "camerabus-frame"
    static let type = "multipart/x-mixed-replace; boundary=\(boundary)"

    /// What stands before the first picture.
    static let start = ByteBuffer(string: "--\(boundary)\r\n")

    /// A picture, with what stands before and behind it. The boundary is behind it, and not before the next one, so
    /// that a picture is shown when it is complete.
    static func part(_ picture: ByteBuffer) -> ByteBuffer {
        var part = ByteBufferAllocator().buffer(capacity: picture.readableBytes + 128)
        part.writeString("Content-Type: image/jpeg\r\nContent-Length: \(picture.readableBytes)\r\n\r\n")
        part.writeImmutableBuffer(picture)
        part.writeString("\r\n--\(boundary)\r\n")
        return part
    }

    /// The last part, in place of a picture: why none comes any more.
    static func end(_ reason: String) -> ByteBuffer {
        ByteBuffer(
            string: "Content-Type: text/plain; charset=utf-8\r\nContent-Length: \(reason.utf8.count + 1)\r\n\r\n"
                + "\(reason)\n\r\n--\(boundary)--\r\n")
    }
}
