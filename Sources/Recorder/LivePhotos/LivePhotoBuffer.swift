import CaptureCore

/// The last seconds of a camera's pictures and of a microphone's sound, of which movies of live photos are made.
///
/// The oldest is dropped to make room, even if a movie has not read it yet. Used by one thread at a time.
final class LivePhotoBuffer {
    /// One that is held; they are numbered in the order in which they came.
    struct Place: Hashable, Sendable {
        var number: UInt64
        /// Monotonic nanoseconds.
        var time: Instant
    }

    private let pictures: PreRollRing
    private let sounds: PreRollRing?
    private var nextPicture: UInt64 = 0
    private var nextSound: UInt64 = 0
    /// Of the pictures that came, held or not, how many are missing in front of each, and which was the oldest that was
    /// held then; the oldest are given up.
    private var arrivals: [(time: Instant, missing: UInt64, oldest: Instant)] = []
    private(set) var newestPicture: Instant?
    /// Until when there is sound; nil: none has come.
    private(set) var soundEnd: Instant?

    /// Nanoseconds that are held while no movie is made: a movie's, and so much more as its making may be late.
    static let duration = 2 * LivePhotoWindow.reach + 500_000_000
    /// Bytes of pictures, and of sound, at most.
    private static let (pictureBytes, soundBytes) = (96 << 20, 16 << 20)
    /// A byte for each pixel is more than JPEG takes, but for pictures so small that their tables count.
    private static let leastBytes = 4 << 20
    /// More than come of a camera while movies of them are made.
    private static let mostArrivals = 4096

    /// - Parameters:
    ///   - frameRate: pictures a second, as far as that is known.
    ///   - soundRate: bytes of sound a second; nil: there is none.
    init(_ size: Dimensions, frameRate: Double, soundRate: Int?) {
        let seconds = Double(Self.duration) / 1e9
        arrivals.reserveCapacity(Self.mostArrivals)
        let bytes = Double(size.area) * (frameRate * seconds + 2)
        pictures = PreRollRing(
            duration: Self.duration, bytes: Int(min(max(bytes, Double(Self.leastBytes)), Double(Self.pictureBytes))))
        sounds = soundRate.map { rate in
            // Pieces are short, and each takes its place.
            let bytes = min(max(2 * Double(rate) * seconds, 1_048_576), Double(Self.soundBytes))
            return PreRollRing(duration: Self.duration, bytes: Int(bytes))
        }
    }

    // MARK: Holding

    /// - Parameter missing: how many its camera took since the last one came, which don't.
    /// - Returns: false: it finds no room, or is no newer than the last.
    func hold(_ picture: UnsafeRawBufferPointer, at time: Instant, missing: UInt64 = 0) -> Bool {
        guard arrivals.last.map({ time > $0.time }) ?? true else { return false }
        if arrivals.count == Self.mostArrivals { arrivals.removeFirst(Self.mostArrivals / 2) }
        let isHeld = pictures.append(.frame, picture, at: time)
        arrivals.append((time, missing, oldestPicture ?? time))
        guard isHeld else { return false }
        newestPicture = time
        nextPicture += 1
        return true
    }

    func hold(sound: UnsafeRawBufferPointer, at time: Instant, until end: Instant) {
        guard let sounds, sounds.append(.sound, sound, at: time) else { return }
        soundEnd = max(soundEnd ?? end, end)
        nextSound += 1
    }

    // MARK: What is held

    var oldestPicture: Instant? { pictures.startTime }

    /// The oldest picture that was held when one of that time came.
    func oldestPicture(at time: Instant) -> Instant? {
        arrivals.last { $0.time <= time }?.oldest ?? oldestPicture
    }

    /// Lets go of what is of that time or later only where there is no room for it; nil: also when it is too old.
    func keep(from time: Instant?) {
        pictures.keptFrom = time
        sounds?.keptFrom = time
    }

    private var firstPicture: UInt64 { nextPicture - pictures.held.frames }

    /// The first picture that was taken at that time or later.
    func picture(from time: Instant) -> Place? {
        var place: Place?
        var number = firstPicture
        pictures.read { item, _ in
            if item.time >= time { place = Place(number: number, time: item.time) }
            number += 1
            return place == nil
        }
        return place
    }

    /// How many pictures the camera took from one time to the other, both with it: those that came, and those that are
    /// missing between them, which are taken to have been evenly so.
    ///
    /// - Parameter isAll: nothing comes any more of that time: also those that are missing behind the last one.
    func taken(from start: Instant, to end: Instant, isAll: Bool = false) -> UInt64 {
        var (count, before) = (UInt64(0), Instant?.none)
        for arrival in arrivals {
            if start <= arrival.time, arrival.time <= end { count += 1 }
            if let before, arrival.missing > 0, arrival.time > start, before < end {
                let step = Double(arrival.time - before) / Double(arrival.missing + 1)
                let first = max(1, ((Double(start) - Double(before)) / step).rounded(.up))
                let last = min(Double(arrival.missing), ((Double(end) - Double(before)) / step).rounded(.down))
                if last >= first { count += UInt64(last - first) + 1 }
            }
            before = arrival.time
        }
        if isAll, let before, before < end, let interval {
            let first = max(1, ((Double(start) - Double(before)) / interval).rounded(.up))
            let last = ((Double(end) - Double(before)) / interval).rounded(.down)
            if last >= first { count += UInt64(last - first) + 1 }
        }
        return count
    }

    // From one picture that the camera took to the next, nanoseconds; nil: fewer than two are known.
    private var interval: Double? {
        guard let first = arrivals.first, let last = arrivals.last, last.time > first.time else { return nil }
        return Double(last.time - first.time) / Double(arrivals.dropFirst().reduce(0) { $0 + $1.missing + 1 })
    }

    /// Shows the first picture of that number or a later one to the body.
    ///
    /// - Returns: nil: there is none.
    func withPicture<Result>(
        from number: UInt64, _ body: (_ place: Place, _ bytes: UnsafeRawBufferPointer) -> Result
    ) -> Result? {
        Self.first(in: pictures, from: number, firstPicture, body)
    }

    /// The same of a piece of sound.
    func withSound<Result>(
        from number: UInt64, _ body: (_ place: Place, _ samples: UnsafeRawBufferPointer) -> Result
    ) -> Result? {
        guard let sounds else { return nil }
        return Self.first(in: sounds, from: number, nextSound - sounds.held.sounds, body)
    }

    private static func first<Result>(
        in ring: PreRollRing, from number: UInt64, _ first: UInt64,
        _ body: (_ place: Place, _ bytes: UnsafeRawBufferPointer) -> Result
    ) -> Result? {
        var (current, result) = (first, Result?.none)
        ring.read { item, bytes in
            guard current >= number else {
                current += 1
                return true
            }
            result = body(Place(number: current, time: item.time), bytes)
            return false
        }
        return result
    }
}
