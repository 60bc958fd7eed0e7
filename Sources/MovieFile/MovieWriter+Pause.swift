import CaptureCore
import FFmpeg

// Pauses (`AVCaptureFileOutput.pauseRecording`).
extension MovieWriter {
    /// Nanoseconds: sound comes no later than the picture that goes with it.
    private static let soundDelay: Int64 = 1_000_000_000

    /// Whether it is paused.
    public var isPaused: Bool { timeline.isCut && resumption == nil }

    /// Pauses: what comes from that time on is cut out, and what is in the movie is on the disk when this returns.
    /// Frames and sound from before that time may still come, and are put on the disk once all have come.
    ///
    /// - Parameter time: nanoseconds on the clock of frames and sound. If some have come from later, it is behind them.
    public func pause(at time: Int64) throws(MovieError) {
        guard stage != .closed, end == nil, !isPaused else { return }
        if timeline.isCut {
            // It has not gone on yet.
            resumption = nil
            heldSound?.removeAll()
        } else {
            let begin = max(time, reached)
            pauseStart = timeline.movieTime(begin) ?? 0
            timeline.cut(from: begin)
            isOver = (picture == nil, sound == nil)
        }
        try endFragment()
    }

    /// Goes on: what comes from that time on follows on what came before the pause, picture and sound in step. H.264
    /// that is stored as it comes goes on with the next key frame, and the sound with it.
    ///
    /// - Parameter time: nanoseconds on the clock of frames and sound. If some have come from later, it is behind them.
    public func resume(at time: Int64) {
        guard stage != .closed, isPaused else { return }
        let time = max(time, reached)
        guard let picture, picture.needsKeyFrame, stage == .writing else { return endCut(at: time) }
        resumption = time
        if let sound, heldSound == nil {
            let bytes = sound.format.rate * sound.format.frameBytes * Int(Self.soundDelay / 1_000_000_000)
            heldSound = PreRollRing(duration: Self.soundDelay, bytes: bytes * 2)
        }
    }

    /// What is left of a pause in front of a key frame, nanoseconds: pictures that were decoded before the pause may be
    /// shown in it, and the key frame follows on them.
    func gap(before presentationDelay: Int64) -> Int64 {
        presentationDelay > 0 ? max(0, pictureEnd - pauseStart - presentationDelay) : 0
    }

    func endCut(at time: Int64) {
        timeline.cut(until: time)
        resumption = nil
    }

    func appendHeldSound() throws(MovieError) {
        guard let heldSound, let sound else { return }
        defer { heldSound.removeAll() }
        try heldSound.read { (item, samples) throws(MovieError) in
            try append(samples, at: item.time, to: sound)
        }
    }

    // Of what lies before the pause.
    func endPausedFragment() throws(MovieError) {
        if timeline.isCut, isOver.picture, isOver.sound { try endFragment() }
    }
}
