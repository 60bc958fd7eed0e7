import CFFmpeg

/// A piece of an encoded track, lent for the time of a call.
public struct EncodedPacket {
    let packet: UnsafeMutablePointer<AVPacket>
    let timeBase: AVRational

    /// Its bytes.
    public var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: packet.pointee.data, count: Int(max(0, packet.pointee.size)))
    }

    /// Nanoseconds on the encoder's clock; sound may begin before zero, with what its decoder needs to get going.
    public var time: Int64 {
        av_rescale_q(packet.pointee.pts, timeBase, AVRational(num: 1, den: 1_000_000_000))
    }

    /// It builds on none before it.
    public var isKeyFrame: Bool { packet.pointee.flags & AV_PKT_FLAG_KEY != 0 }
}

extension MediaError {
    /// The system's error number (`errno`), where it is one.
    public var errorNumber: Int32? { (-4095 ... -1).contains(code) ? -code : nil }

    /// What was read is at fault, and stays so.
    public var isOfContents: Bool { code == 0 || code == cffmpeg_invalid_data() }

    static func check(_ operation: String, _ result: Int32) throws(MediaError) {
        guard result >= 0 else { throw MediaError(operation, result) }
    }
}

/// Takes what an encoder has made, until it wants more.
func drain(
    _ codec: UnsafeMutablePointer<AVCodecContext>, _ packet: UnsafeMutablePointer<AVPacket>,
    _ body: (EncodedPacket) throws(MediaError) -> Void
) throws(MediaError) {
    while true {
        let result = avcodec_receive_packet(codec, packet)
        if result == cffmpeg_again() || result == cffmpeg_end_of_file() { return }
        try MediaError.check("avcodec_receive_packet", result)
        defer { av_packet_unref(packet) }
        try body(EncodedPacket(packet: packet, timeBase: codec.pointee.time_base))
    }
}
