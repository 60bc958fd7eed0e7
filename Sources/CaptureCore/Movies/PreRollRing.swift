/// The last seconds of compressed frames and sound, for what is to begin before it was asked for.
///
/// What is too old, or finds no room, lets go of the oldest. A frame without the one that it builds on is of no use and
/// is let go with it, so that what is read begins at a key frame. Its memory is taken once. Used by one thread at a
/// time.
public final class PreRollRing {
    public enum Kind: Hashable, Sendable { case frame, sound }

    /// A frame, or a piece of sound.
    public struct Item: Hashable, Sendable {
        public let kind: Kind
        /// Nanoseconds.
        public let time: Int64
        /// Nanoseconds from then to when a frame is shown.
        public let presentationDelay: Int64
        /// A frame that builds on none before it.
        public let isKeyFrame: Bool
        fileprivate let offset: Int
        fileprivate let count: Int
        /// It only holds its place.
        fileprivate var isLetGo = false
    }

    /// Nanoseconds from the oldest to the newest, at most, but for what is ``keptFrom``.
    public let duration: Int64
    /// What is of that time or later is let go only where there is no room for it; nil: it is when it is too old.
    public var keptFrom: Int64?
    /// Bytes of all, at most.
    public let capacity: Int
    /// Frames and pieces of sound that were let go, or came before any key frame.
    public private(set) var letGo = Count()
    /// Those that are there.
    public private(set) var held = Count()

    /// How many there are of each kind.
    public struct Count: Hashable, Sendable {
        public var frames: UInt64 = 0
        public var sounds: UInt64 = 0

        fileprivate mutating func add(_ kind: Kind) { if kind == .frame { frames += 1 } else { sounds += 1 } }
        fileprivate mutating func remove(_ kind: Kind) { if kind == .frame { frames -= 1 } else { sounds -= 1 } }
    }

    private let room: UnsafeMutableRawBufferPointer
    /// In the order in which they came, from `head` on and around. A power of two; grows until it is large enough.
    private var items: [Item?]
    private var (head, count) = (0, 0)
    /// Behind the last one's bytes.
    private var tail = 0
    /// The frames that come next build on one that isn't there.
    private var needsKeyFrame = true

    /// Each begins at such a place, and takes as much at least.
    private static let alignment = 64

    /// - Parameters:
    ///   - duration: nanoseconds.
    ///   - bytes: of frames and sound together. In time all of them are used, whatever they hold.
    public init(duration: Int64, bytes: Int) {
        self.duration = max(0, duration)
        capacity = (max(0, bytes) + Self.alignment - 1) & ~(Self.alignment - 1)
        room = .allocate(byteCount: max(capacity, Self.alignment), alignment: Self.alignment)
        items = Array(repeating: nil, count: 64)
    }

    deinit { room.deallocate() }

    // MARK: Adding

    /// Copies a frame or a piece of sound in, as the newest.
    ///
    /// - Parameter time: nanoseconds.
    /// - Returns: false if it was let go at once: it is too large, has no bytes, or is no key frame and has none before
    ///   it.
    @discardableResult
    public func append(
        _ kind: Kind, _ payload: UnsafeRawBufferPointer, at time: Int64, presentationDelay: Int64 = 0,
        isKeyFrame: Bool = true
    ) -> Bool {
        let isKeyFrame = kind == .frame && isKeyFrame
        while let first, time - first.time > duration, first.time < keptFrom ?? .max { letGoOfFirst() }
        // Making room may take what it builds on.
        guard stands(kind, isKeyFrame), let offset = place(payload.count), let base = payload.baseAddress,
            stands(kind, isKeyFrame)
        else {
            letGo.add(kind)
            if kind == .frame { needsKeyFrame = true }
            return false
        }
        if isKeyFrame { needsKeyFrame = false }
        room.baseAddress?.advanced(by: offset).copyMemory(from: base, byteCount: payload.count)
        tail = offset + Self.aligned(payload.count)
        if count == items.count { grow() }
        items[slot(count)] = Item(
            kind: kind, time: time, presentationDelay: presentationDelay, isKeyFrame: isKeyFrame, offset: offset,
            count: payload.count)
        count += 1
        held.add(kind)
        return true
    }

    private func stands(_ kind: Kind, _ isKeyFrame: Bool) -> Bool { kind == .sound || isKeyFrame || !needsKeyFrame }

    private static func aligned(_ bytes: Int) -> Int { (bytes + alignment - 1) & ~(alignment - 1) }

    private func slot(_ index: Int) -> Int { (head + index) & (items.count - 1) }

    private func grow() {
        items = (0..<items.count).map { items[slot($0)] } + Array(repeating: nil, count: items.count)
        head = 0
    }

    // Where so many bytes have room in one piece, once what is in the way has gone.
    private func place(_ bytes: Int) -> Int? {
        let needed = Self.aligned(bytes)
        guard bytes > 0, bytes <= capacity else { return nil }
        while let first {
            if tail > first.offset {
                if capacity - tail >= needed { return tail }
                if first.offset >= needed { return 0 }
            } else if first.offset - tail >= needed {
                return tail
            }
            letGoOfFirst()
        }
        return 0
    }

    // MARK: Letting go

    private var first: Item? { count > 0 ? items[head] : nil }

    private func dropFirst() {
        items[head] = nil
        head = slot(1)
        count -= 1
    }

    private func letGoOfFirst() {
        guard let first else { return }
        dropFirst()
        guard !first.isLetGo else { return }
        held.remove(first.kind)
        letGo.add(first.kind)
        if first.kind == .frame { skipToKeyFrame() }
    }

    /// Lets go of all frames in front of the next key frame, for a reader that has to begin anew.
    public func skipToKeyFrame() {
        for index in 0..<count {
            guard var item = items[slot(index)], item.kind == .frame, !item.isLetGo else { continue }
            if item.isKeyFrame { return }
            item.isLetGo = true
            items[slot(index)] = item
            held.remove(.frame)
            letGo.add(.frame)
        }
        needsKeyFrame = true
    }

    /// Forgets all that is there, without counting it.
    public func removeAll() {
        while count > 0 { dropFirst() }
        held = Count()
        needsKeyFrame = true
    }

    // MARK: Reading

    /// The time of the first frame, or of the first sound if there is no frame: what comes before it is only sound.
    public var startTime: Int64? {
        var sound: Int64?
        for index in 0..<count {
            guard let item = items[slot(index)], !item.isLetGo else { continue }
            if item.kind == .frame { return item.time }
            sound = sound ?? item.time
        }
        return sound
    }

    /// Calls the body with each in the order in which they came, with its bytes, which are valid until it returns. The
    /// first frame is a key frame.
    ///
    /// - Parameter body: returns false to end.
    public func read<Failure: Error>(
        _ body: (Item, UnsafeRawBufferPointer) throws(Failure) -> Bool
    ) throws(Failure) {
        for index in 0..<count {
            guard let item = items[slot(index)], !item.isLetGo else { continue }
            guard try body(item, bytes(item)) else { return }
        }
    }

    /// Takes the oldest out, after the body has had it.
    ///
    /// - Returns: nil if there is none.
    public func takeFirst<Result>(_ body: (Item, UnsafeRawBufferPointer) -> Result) -> Result? {
        while let first {
            guard !first.isLetGo else {
                dropFirst()
                continue
            }
            let result = body(first, bytes(first))
            dropFirst()
            held.remove(first.kind)
            return result
        }
        return nil
    }

    private func bytes(_ item: Item) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: room[item.offset..<item.offset + item.count])
    }
}
