import CaptureCore
import LinuxIO

/// Decides the order of the pictures and the sound that wait for a movie, and with which of them it begins.
struct SampleInterleaver {
    enum Next {
        case picture, sound
        /// It is none of the movie's.
        case leaveOutPicture, leaveOutSound
    }

    /// The time of the first frame, at the earliest; nil: there is no order to begin yet.
    private var notBefore: Instant?
    private let hasPictures: Bool
    private let hasSounds: Bool
    private let mayStartWithSound: Bool

    /// Sound that is kept for a picture to begin with, nanoseconds.
    private static let soundKept: Int64 = 2_000_000_000
    /// Sound comes no later than that after the picture that goes with it, nanoseconds.
    private static let soundDelay: Int64 = 500_000_000

    /// The last of what comes before the order to begin is kept, because the order may come late: nanoseconds.
    private static let kept: Int64 = 200_000_000

    init(_ request: MovieRequest, hasPictures: Bool, hasSounds: Bool) {
        notBefore = request.beginsOnOrder ? nil : .min
        self.hasPictures = hasPictures
        self.hasSounds = hasSounds
        mayStartWithSound = request.startsWithSound && hasSounds
    }

    mutating func begin(at time: Instant) { notBefore = time }

    /// What to do with one of those that wait; nil: to wait for another.
    ///
    /// - Parameters:
    ///   - picture: the first that waits.
    ///   - sound: the first that waits.
    ///   - hasBegun: the movie has.
    ///   - builds: its pictures build on one another.
    func next(picture: Sample?, sound: Sample?, hasBegun: Bool, isPaused: Bool, builds: @autoclosure () -> Bool)
        -> Next?
    {
        guard !hasBegun else {
            // By time, so that the two are interleaved in the file.
            switch (picture, sound) {
            case (let picture?, let sound?): return picture.time <= sound.time ? .picture : .sound
            case (_?, nil): return .picture
            case (nil, _?): return .sound
            case (nil, nil): return nil
            }
        }
        guard let notBefore else {
            let earliest = MonotonicClock.now() - Self.kept
            if let picture, picture.time < earliest { return .leaveOutPicture }
            return sound.flatMap { $0.time < earliest ? .leaveOutSound : nil }
        }
        if let picture, mayStartWithSound, !builds() { return first(picture, sound, isPaused, notBefore) }
        if let picture {
            // The movie begins with the first picture that has its sound.
            let isEarly = picture.time < notBefore || hasSounds && (sound.map { picture.time < $0.time } ?? true)
            return isEarly || !picture.isKeyFrame || isPaused ? .leaveOutPicture : .picture
        }
        guard let sound else { return nil }
        if !hasPictures { return sound.time + sound.duration > notBefore && !isPaused ? .sound : .leaveOutSound }
        return sound.time < MonotonicClock.now() - Self.soundKept ? .leaveOutSound : nil
    }

    private func first(
        _ picture: Sample, _ sound: Sample?, _ isPaused: Bool, _ notBefore: Instant
    ) -> Next? {
        guard !isPaused else { return .leaveOutPicture }
        guard let sound else {
            // What goes with it may be on its way.
            return picture.time < MonotonicClock.now() - Self.soundDelay ? .leaveOutPicture : nil
        }
        return picture.time < max(sound.time, notBefore) ? .leaveOutPicture : .sound
    }

    /// The movie's zero, where it begins with that sound.
    ///
    /// - Parameters:
    ///   - picture: the first that waits.
    ///   - interval: nanoseconds from one picture to the next.
    ///   - builds: its pictures build on one another.
    func beginning(_ sound: Sample, picture: Sample?, interval: Int64, builds: @autoclosure () -> Bool) -> Int64 {
        let notBefore = notBefore ?? .min
        guard mayStartWithSound, !builds(), let picture else { return max(sound.time, notBefore) }
        // Sound from before a camera has begun is no more wanted than a picture without sound.
        let isFirst = sound.time > picture.time - interval
        return isFirst ? max(sound.time, notBefore) : picture.time
    }
}
