public import CaptureSources
import Glibc

/// Memory for a stream that belongs to the test alone: gives each slot out once, so that the test decides what is
/// filled next.
public final class PrivateSlots: SlotMemory {
    public let slots: [UnsafeMutableRawBufferPointer]
    private let memory: UnsafeMutableRawPointer
    private let length: Int
    private var given = 0
    private let limit: Int

    /// - Parameters:
    ///   - bytes: of a slot; whole pages are taken.
    ///   - limit: slots that are given out; nil: all.
    public init(_ count: Int = 6, bytes: Int, limit: Int? = nil) throws(SourceError) {
        let slotBytes = (max(1, bytes) + 4095) / 4096 * 4096
        length = count * slotBytes
        self.limit = min(limit ?? count, count)
        let mapped = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let mapped, mapped != MAP_FAILED else {
            throw SourceError(.noResources, operation: "mmap", errno: errno, message: "no memory for a test's slots")
        }
        memory = mapped
        slots = (0..<count).map { UnsafeMutableRawBufferPointer(start: mapped + $0 * slotBytes, count: slotBytes) }
    }

    deinit { munmap(memory, length) }

    public func take() -> Int? {
        guard given < limit else { return nil }
        given += 1
        return given - 1
    }
}

extension VideoSource {
    /// Starts a stream in memory of its own, of which all slots are the device's.
    public func startStreaming() throws(SourceError) -> any FrameStream {
        try startStreaming { _, bytes throws(SourceError) in try PrivateSlots(bytes: bytes) }
    }
}
