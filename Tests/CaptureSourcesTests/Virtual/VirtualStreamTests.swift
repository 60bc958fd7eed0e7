import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import Imaging
import LinuxIO
import Synchronization
import Testing

private let table: [CaptureFormat] = (try? VirtualCamera(index: 0).open().formats) ?? []

@Suite struct VirtualStreamTests {
    @Test(arguments: table)
    func everyFormatStreams(_ format: CaptureFormat) throws {
        let camera = VirtualCamera(index: 7)
        _ = try camera.open()
        let wanted = FormatSelection(pixelFormat: format.pixelFormat, dimensions: format.dimensions)
        #expect(try camera.setFormat(wanted) == wanted)
        let stream = try camera.startStreaming()
        #expect(stream.layout.pixelFormat == format.pixelFormat)
        #expect(stream.layout.dimensions == format.dimensions)
        #expect(stream.slots.count >= 4)
        for number in 0..<2 {
            let slot = try nextFrame(stream)
            if !format.pixelFormat.isCompressed { #expect(slot.bytesUsed == [stream.layout.totalBytes]) }
            let told = slot.metadata
            #expect(told.bytesUsed == slot.bytesUsed && told.isCorrupt == slot.isCorrupt)
            #expect(told.captureSequence == slot.captureSequence && told.monotonicTime == slot.monotonicTime)
            if format.pixelFormat == .h264 {
                let frame = H264Stream.beginning(
                    of: UnsafeRawBufferPointer(rebasing: slot.regions[0][..<slot.bytesUsed[0]]))
                #expect(frame.hasPicture && frame.isKeyframe == (number == 0))
                try stream.enqueue(slot)
                continue
            }
            let counter = try #require(PictureCounterReader.read(payload(slot), stream.layout))
            #expect(UInt64(counter.counter) == slot.captureSequence)
            #expect(counter.microseconds == UInt64(slot.monotonicTime / 1000))
            #expect(counter.camera == 7)
            try stream.enqueue(slot)
        }
        try camera.stopStreaming()
    }

    /// Notes what it is told, on whichever thread.
    private final class TellingSlots: SlotMemory, Sendable {
        nonisolated(unsafe) let own: PrivateSlots
        let told = Mutex<[(number: UInt64, thread: pthread_t)]>([])
        let signal: EventDescriptor
        var slots: [UnsafeMutableRawBufferPointer] { own.slots }

        init(bytes: Int) throws(SourceError) {
            own = try PrivateSlots(bytes: bytes)
            do { signal = try EventDescriptor() } catch {
                throw SourceError(.noResources, operation: "eventfd", message: "\(error)")
            }
        }

        func take() -> Int? { own.take() }

        func filled(_ slot: FrameSlot, _ source: TimestampSource) {
            told.withLock { $0.append((slot.captureSequence, pthread_self())) }
            signal.signal()
        }
    }

    @Test("the memory is told of each frame at once, however late the loop is, and on the sensor's own thread")
    func tellsMemory() throws {
        let camera = try openCamera(fps: 120)
        var memory: TellingSlots?
        let stream = try camera.startStreaming { _, bytes throws(SourceError) in
            let made = try TellingSlots(bytes: bytes)
            memory = made
            return made
        }
        let slots = try #require(memory)
        let deadline = Deadline.usual
        // Nothing is dequeued: all slots are filled meanwhile.
        while slots.told.withLock({ $0.count }) < stream.slots.count {
            try waitForInput(slots.signal.rawValue, deadline)
            slots.signal.drain()
        }
        let told = slots.told.withLock { $0 }
        #expect(Set(told.map(\.thread)).count == 1 && told[0].thread != pthread_self())
        for (number, _) in told { #expect(try nextFrame(stream).captureSequence == number) }
        try camera.stopStreaming()
    }

    @Test func countsAndTimesFramesWithoutDrift() throws {
        let camera = try openCamera(fps: 120)
        let stream = try camera.startStreaming()
        #expect(stream.frameDuration == FrameDuration(framesPerSecond: 120))
        #expect(stream.timestampSource == .startOfExposure)
        let first = try nextFrame(stream)
        let (start, number) = (first.monotonicTime, first.captureSequence)
        try stream.enqueue(first)
        for index in 1...60 as ClosedRange<Int64> {
            let slot = try nextFrame(stream)
            // Long pauses of a loaded machine may cost frames, but no time.
            let frames = Int64(slot.captureSequence - number)
            #expect(frames >= index)
            #expect(abs(slot.monotonicTime - start - frames * 1_000_000_000 / 120) <= 1)
            #expect(slot.monotonicTime <= MonotonicClock.now())
            try stream.enqueue(slot)
        }
        try camera.stopStreaming()
    }

    @Test func risesByOneAsLongAsSlotsAreQueued() throws {
        // So slow, and with so much room, that a loaded machine reads in time.
        let camera = try openCamera(fps: 10)
        let stream = try camera.startStreaming(slots: 12)
        for number in 0..<8 as Range<UInt64> {
            let slot = try nextFrame(stream)
            #expect(slot.captureSequence == number)
            try stream.enqueue(slot)
        }
        try camera.stopStreaming()
    }

    @Test func losesFramesWhenNoSlotIsQueued() throws {
        let camera = try openCamera(fps: 240)
        let stream = try camera.startStreaming()
        var held: [FrameSlot] = []
        for _ in stream.slots { held.append(try nextFrame(stream)) }
        #expect(Set(held.map(\.index)).count == stream.slots.count)
        // Ten frames' time with nothing to put them in, and as many more as a camera that had no processor may still
        // fill.
        let last = try #require(held.last)
        let number = last.captureSequence
        try wait(until: last.monotonicTime + Int64(10 + stream.slots.count) * 1_000_000_000 / 240)
        #expect(try stream.dequeue() == nil)
        for slot in held { try stream.enqueue(slot) }
        let next = try nextFrame(stream)
        #expect(next.captureSequence >= number + 10)
        let counter = try #require(PictureCounterReader.read(payload(next), stream.layout))
        #expect(UInt64(counter.counter) == next.captureSequence)
        try camera.stopStreaming()
    }

    @Test func takesBackOnlyWhatWasGiven() throws {
        let camera = try openCamera()
        let stream = try camera.startStreaming()
        let slot = try nextFrame(stream)
        try stream.enqueue(slot)
        #expect(throws: SourceError.self) { try stream.enqueue(slot) }
        let stranger = FrameSlot(index: 0, regions: slot.regions)
        #expect(throws: SourceError.self) { try stream.enqueue(stranger) }
        #expect(throws: SourceError.self) { try stream.enqueue(FrameSlot(index: 99, regions: [])) }
        try camera.stopStreaming()
    }

    @Test func leavesNothingBehindAfterManyStarts() async throws {
        func entries(_ path: String) throws -> [String] {
            let directory = try #require(opendir(path))
            defer { closedir(directory) }
            var names: [String] = []
            while let entry = readdir(directory) {
                names.append(
                    withUnsafePointer(to: &entry.pointee.d_name) {
                        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                    })
            }
            return names
        }
        func sensors() throws -> Int {
            try entries("/proc/self/task").filter { task in
                var name = [UInt8](repeating: 0, count: 32)
                let file = open("/proc/self/task/\(task)/comm", O_RDONLY | O_CLOEXEC)
                guard file >= 0 else { return false }
                defer { close(file) }
                let count = read(file, &name, name.count)
                return count > 0 && String(decoding: name[..<count], as: UTF8.self) == "sensor-201\n"
            }.count
        }
        // One a stream; other tests beside this one have a few.
        func timers() throws -> Int {
            try entries("/proc/self/fd").filter { descriptor in
                var target = [CChar](repeating: 0, count: 32)
                // The last byte stays zero.
                let count = readlink("/proc/self/fd/\(descriptor)", &target, target.count - 1)
                return count > 0 && strcmp(target, "anon_inode:[timerfd]") == 0
            }.count
        }
        let before = try timers()
        for cycle in 0..<50 {
            let camera = try openCamera(201, fps: 240)
            let stream = try camera.startStreaming()
            if cycle % 2 == 0 { try stream.enqueue(try nextFrame(stream)) }
            // With its first frame a thread surely has its name.
            if cycle == 0 { try await eventually { try sensors() == 1 } }
            // Stopped, started again while it runs, closed, or just forgotten.
            switch cycle % 4 {
            case 0: try camera.stopStreaming()
            case 1: _ = try camera.startStreaming()
            case 2: camera.close()
            default: break
            }
        }
        // The kernel tells of a thread for a moment after it has been joined.
        try await eventually { try sensors() == 0 }
        #expect(try timers() < before + 40)
    }

    @Test func keepsItsMemoryAsLongAsTheStreamIsHeld() throws {
        let camera = try openCamera(5)
        let stream = try camera.startStreaming()
        let slot = try nextFrame(stream)
        try camera.stopStreaming()
        camera.close()
        #expect(PictureCounterReader.read(payload(slot), stream.layout)?.camera == 5)
        // Given back too late: harmless.
        try stream.enqueue(slot)
        while let rest = try stream.dequeue() { try stream.enqueue(rest) }
        #expect(try stream.dequeue() == nil)
    }
}
