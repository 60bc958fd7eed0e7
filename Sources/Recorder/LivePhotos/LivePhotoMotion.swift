import BusProtocol
import CaptureCore

/// Looks at held pictures for how much each differs from the one before, as long as a movie is made:
/// ``MotionTrimming``.
final class LivePhotoMotion {
    private let small: LivePhotoDecoder
    private var trimming = MotionTrimming()
    /// The last one, and whether there is one.
    private var before: [UInt8] = []
    private var hasBefore = false
    /// The next that is to be looked at.
    private var next: UInt64 = 0
    /// When the last few were taken, the newest last.
    private var times: [Instant] = []

    /// That many pictures after a movement has begun it is known for one.
    private static let delay = 3
    /// So many after a photo say, with those before it, how still it is. More than the delay.
    private static let neighbours = 5

    /// - Parameter size: of the pictures that come.
    init(_ size: Dimensions) throws(BusError) {
        small = try LivePhotoDecoder.small(size)
        before = Array(repeating: 0, count: small.layout.totalBytes)
    }

    /// Pictures from that one on are to be looked at.
    func begin(at place: LivePhotoBuffer.Place) {
        guard place.number > next else { return }
        forget()
        next = place.number
    }

    /// Pictures come from another stream.
    func forget() {
        trimming.removeAll()
        times.removeAll(keepingCapacity: true)
        hasBefore = false
    }

    /// Looks at the next picture that is held.
    ///
    /// - Returns: false: there is none.
    func look(at past: LivePhotoBuffer) -> Bool {
        past.withPicture(from: next) { place, jpeg in
            next = place.number + 1
            guard let picture = small.decode(jpeg, number: place.number), picture.count == before.count else { return }
            if hasBefore { trimming.add(Self.difference(before, picture), at: place.time) }
            before.withUnsafeMutableBytes { $0.copyMemory(from: picture) }
            hasBefore = true
            if times.count == Self.neighbours { times.removeFirst() }
            times.append(place.time)
        } != nil
    }

    /// Pictures up to then are in a movie, or are known not to be; nil: none is.
    var settled: Instant? { times.count > Self.delay ? times[times.count - 1 - Self.delay] : nil }

    /// Whether enough has been seen after a photo to say where its movie begins.
    func isSure(of window: LivePhotoWindow) -> Bool {
        times.count == Self.neighbours && times[0] > window.moment
    }

    func start(of window: LivePhotoWindow) -> Instant? { trimming.start(of: window) }

    func end(of window: LivePhotoWindow) -> Instant? { trimming.end(of: window) }

    /// The mean over all pixels, from 0 to 255.
    static func difference(_ one: [UInt8], _ other: UnsafeRawBufferPointer) -> Double {
        guard !one.isEmpty, one.count == other.count else { return 0 }
        var sum = 0
        for index in one.indices { sum += abs(Int(one[index]) - Int(other[index])) }
        return Double(sum) / Double(one.count)
    }
}
