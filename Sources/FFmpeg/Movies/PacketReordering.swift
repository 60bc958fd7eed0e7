import CFFmpeg

/// When packets of a track are decoded that are not in the order of their times. Matroska doesn't state it, and
/// libavformat does not find it out for the first ones.
struct PacketReordering {
    /// Pictures that may wait for one behind them.
    private let delay: Int64
    /// Ticks of the file's clock from one picture to the next, on the average.
    private let step: Int64
    private var count: Int64 = 0
    private var firstTime: Int64?

    /// nil: its packets are in the order of their times.
    init?(of stream: UnsafeMutablePointer<AVStream>) {
        guard let parameters = stream.pointee.codecpar, parameters.pointee.video_delay > 0 else { return nil }
        delay = Int64(parameters.pointee.video_delay)
        let rate = stream.pointee.avg_frame_rate
        let duration = AVRational(num: rate.den, den: rate.num)
        step = rate.num > 0 && rate.den > 0 ? max(1, av_rescale_q(1, duration, stream.pointee.time_base)) : 1
    }

    /// When the next packet of the track is decoded, on the file's clock; `AV_NOPTS_VALUE`: it isn't known.
    ///
    /// - Parameters:
    ///   - pts: what the packet states.
    ///   - dts: likewise.
    mutating func decodingTime(_ pts: Int64, _ dts: Int64) -> Int64 {
        defer { count += 1 }
        if firstTime == nil, pts != cffmpeg_no_time() { firstTime = pts }
        guard dts == cffmpeg_no_time(), let firstTime, count < delay else { return dts }
        return firstTime &- (delay - count) &* step
    }
}
