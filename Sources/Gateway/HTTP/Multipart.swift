/// Pictures one after the other in one answer (`multipart/x-mixed-replace`). Browsers show them as a moving picture.
enum Multipart {
    static let boundary = "camerabus-frame"
    static let type = "multipart/x-mixed-replace; boundary=\(boundary)"

    /// What stands before a picture. The boundary is behind it already in the next, so that a picture is shown when it
    /// is complete.
    static func head(bytes: Int, isFirst: Bool) -> [UInt8] {
        var text = isFirst ? "--\(boundary)\r\n" : ""
        text += "Content-Type: image/jpeg\r\nContent-Length: \(bytes)\r\n\r\n"
        return Array(text.utf8)
    }

    /// What stands behind it.
    static let tail = Array("\r\n--\(boundary)\r\n".utf8)

    /// The last part, in place of a picture: why none comes any more.
    static func end(_ reason: String) -> [UInt8] {
        let text = Array("\(reason)\n".utf8)
        let head = "Content-Type: text/plain; charset=utf-8\r\nContent-Length: \(text.count)\r\n\r\n"
        return Array(head.utf8) + text + Array("\r\n--\(boundary)--\r\n".utf8)
    }
}
