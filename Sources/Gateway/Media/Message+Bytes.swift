import ZeroMQ

extension Message {
    /// A message of bytes of our own.
    static func of(_ bytes: [UInt8]) throws(ZeroMQError) -> Message {
        let message = Message()
        try message.allocate(count: bytes.count)
        message.withUnsafeMutableBytes { $0.copyBytes(from: bytes) }
        return message
    }

    /// The same bytes once more, counted and not copied: for somebody on another thread.
    func shared() throws(ZeroMQError) -> Message {
        let message = Message()
        try message.share(self)
        return message
    }
}
