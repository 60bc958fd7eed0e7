import BusProtocol
import CLinux
import FrameRing
import Glibc
import LinuxIO
import Synchronization
import Testing

/// A publisher and its readers in one memory.
struct RingTests {
    static func description(_ bytes: Int = 4096) -> RingDescription {
        var description = RingDescription(
            ring: "0123456789abcdef", stream: "9f3ac2d071b84e65", device: "cam0",
            rendition: "jpeg:" + String(repeating: "9", count: 123), format: 0x5659_5559, width: 32,
            height: bytes / 64, planes: [RingDescription.Plane(offset: 0, stride: 64, bytes: bytes)],
            extensions: extensions, keep: 0, slots: 0, slotBytes: (bytes + 4095) / 4096 * 4096)
        (description.orientation, description.isMirrored) = (270, true)
        return description
    }

    private static var extensions: FormatExtensions {
        var extensions = FormatExtensions(
            color: ColorDescription(
                primaries: .bt2020, transferFunction: .hlg, matrix: .bt2020nc, range: .full, chromaLocation: .topLeft))
        extensions.pixelAspectRatio = FormatExtensions.Ratio(64, 45) ?? .one
        extensions.cleanAperture = FormatExtensions.Aperture(x: 1, y: 2, width: 30, height: 40)
        extensions.frameDuration = FormatExtensions.Ratio(1001, 30000)
        (extensions.bitsPerComponent, extensions.alignment, extensions.metersPerStep) = (10, .high, 0.001)
        return extensions
    }

    static func record(_ number: UInt64, bytes: Int = 4096) -> RingRecord {
        RingRecord(
            sequence: number, captureSequence: number &* 3, monotonic: Int64(truncatingIfNeeded: number) &* 7,
            realtime: Int64(truncatingIfNeeded: number) &* 11, generation: number &* 13, dropped: number &* 17,
            bytes: bytes, timestampSource: .endOfFrame, isKeyframe: number % 2 == 0 ? false : nil,
            presentationDelay: number % 2 == 0 ? Int64(number % 16_000_000) * 1000 : 0,
            zoom: number % 2 == 0 ? 1000 : 1000 + Int(truncatingIfNeeded: number % 99_000))
    }

    static func writer(keep: Int = 4) throws -> RingWriter {
        try RingWriter(description(), RingLedger(filling: 4, keep: keep, lending: 4))
    }

    static func publish(_ writer: RingWriter, _ number: UInt64) throws {
        let slot = try #require(writer.take())
        writer.pixels(of: slot).bindMemory(to: UInt64.self).update(repeating: number)
        #expect(writer.publish(slot, record(number)) == number << 1)
    }

    @Test("What is published arrives with all that is told of it")
    func roundTrip() throws {
        let writer = try Self.writer()
        let reader = try RingReader(writer.readerDescriptor)
        #expect(reader.plan == writer.plan)
        #expect(reader.poll() == nil)
        for number in 1...50 as ClosedRange<UInt64> {
            try Self.publish(writer, number)
            let frame = try #require(reader.poll(number.isMultiple(of: 2) ? .newest : .next))
            #expect(frame.number == number && frame.skipped == 0 && frame.record == Self.record(number))
            let sum = reader.use(frame) { $0.bindMemory(to: UInt64.self).reduce(0, &+) }
            #expect(sum == number * 512)
            #expect(reader.poll() == nil)
        }
        let counters = reader.counters
        #expect(counters.frames == 50 && counters.skipped == 0 && counters.late == 0 && counters.unusable == 0)
    }

    @Test("One thread publishes while another hands out, lends and holds; what is read is what was published")
    func twoThreads() throws {
        let writer = try Self.writer()
        let reader = try RingReader(writer.readerDescriptor)
        let count: UInt64 = 20_000
        let slots = Mutex<[Int]>([])
        let published = Mutex<[Int]>([])
        let thread = try NamedThread(name: "publisher") {
            var number: UInt64 = 0
            while number < count {
                guard let slot = slots.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else {
                    sched_yield()
                    continue
                }
                number += 1
                writer.pixels(of: slot).bindMemory(to: UInt64.self).update(repeating: number)
                guard writer.publish(slot, Self.record(number)) == number << 1 else { return }
                published.withLock { $0.append(slot) }
            }
        }
        defer { thread.join() }
        var (taken, seen, last): (UInt64, UInt64, UInt64) = (0, 0, 0)
        while seen < count {
            // As the worker does: no more are out at a time than are filled at a time.
            while taken < count, taken - seen < 4, let slot = writer.take() {
                taken += 1
                slots.withLock { $0.append(slot) }
            }
            guard let slot = published.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else {
                sched_yield()
                continue
            }
            seen += 1
            let loan = try #require(writer.lend(slot))
            #expect(writer.hold(slot))
            if let frame = reader.poll(.newest) {
                #expect(frame.number > last && frame.record == Self.record(frame.number))
                last = frame.number
                let sum = reader.use(frame) { $0.bindMemory(to: UInt64.self).reduce(0, &+) }
                #expect(sum == nil || sum == frame.number &* 512)
            }
            writer.letGo(slot)
            loan.giveBack()
        }
        #expect(last == count && writer.published == count && writer.lentCount == 0)
    }

    @Test("A ring that may take a part of the room is not made where that part is too small")
    func room() throws {
        func make(_ bytes: UInt64, _ limit: MemoryRoom.Limit, part: UInt64) -> RingError? {
            do throws(RingError) {
                let room = MemoryRoom(bytes: bytes, limit: limit)
                let ledger = RingLedger(filling: 1, keep: 7, lending: 0)
                _ = try RingWriter(Self.description(1 << 20), ledger, part: part, of: room)
                return nil
            } catch {
                return error
            }
        }
        // Eight slots of a mebibyte, and eight more that are spared in any case.
        #expect(make(17 << 20, .machine, part: 1) == nil)
        #expect(make(17 << 20, .fileSize, part: 4) == nil)
        #expect(make(39 << 20, .machine, part: 4)?.description.contains("the 39 MiB that are free, as 4 times") == true)
        #expect(make(41 << 20, .machine, part: 4) == nil)
    }

    @Test("Sound is read likewise, of a whole number of frames")
    func sound() throws {
        let sound = RingDescription.Sound(sampleFormat: "s24", rate: 44100, channels: 2, frameBytes: 6)
        let description = RingDescription(
            ring: "0123456789abcdef", stream: "9f3ac2d071b84e65", device: "mic0", rendition: "native", sound: sound,
            periodBytes: 441 * 6, keep: 0, slots: 0)
        let writer = try RingWriter(description, RingLedger(filling: 1, keep: 3, lending: 0))
        let reader = try RingReader(writer.readerDescriptor)
        #expect(reader.plan == writer.plan && reader.plan.description.sound == sound)
        #expect(reader.plan.description.slots == 4 && reader.plan.description.slotBytes == 4096)
        for (number, bytes) in [(1, 441 * 6), (2, 441 * 6 + 1), (3, 6), (4, 0), (5, 4092)] {
            let record = RingRecord(
                soundSequence: UInt64(number), firstFrame: UInt64(441 * number), monotonic: 7, realtime: 11,
                generation: 13, overruns: 17, bytes: bytes, isRead: number == 3)
            let slot = try #require(writer.take())
            writer.publish(slot, record)
            let period = reader.poll(.next)
            #expect(period?.record == (bytes % 6 == 0 && bytes > 0 ? record : nil))
            guard let period else { continue }
            #expect(period.record.firstFrame == UInt64(441 * number) && period.record.overruns == 17)
            #expect(reader.use(period) { $0.count } == bytes)
        }
        #expect(reader.counters.frames == 3 && reader.counters.unusable == 2)
    }

    @Test("A reader that was away gets the newest, or the oldest that is left, and learns what it missed")
    func away() throws {
        let writer = try Self.writer(keep: 4)
        let (newest, next) = (try RingReader(writer.readerDescriptor), try RingReader(writer.readerDescriptor))
        try Self.publish(writer, 1)
        let held = try #require(newest.poll())
        #expect(next.poll(.next)?.number == 1)
        for number in 2...100 as ClosedRange<UInt64> { try Self.publish(writer, number) }
        #expect(newest.poll().map { [$0.number, $0.skipped] } == [100, 98])
        // One slot is taken at a time here, so all others still hold their frames.
        var seen: [UInt64] = []
        while let frame = next.poll(.next) { seen.append(frame.number) }
        #expect(seen.last == 100 && seen.count >= 4 && seen == Array((101 - UInt64(seen.count))...100))
        #expect(next.counters.skipped == 99 - UInt64(seen.count))
        #expect(newest.use(held) { _ in true } == nil)
        #expect(newest.counters.late == 1)
    }

    @Test("From the moment that a slot is taken its frame isn't readers' any more")
    func odd() throws {
        let writer = try Self.writer(keep: 1)
        let reader = try RingReader(writer.readerDescriptor)
        for number in 1...9 as ClosedRange<UInt64> { try Self.publish(writer, number) }
        let frame = try #require(reader.poll())
        for number in 10...17 as ClosedRange<UInt64> { try Self.publish(writer, number) }
        #expect(reader.use(frame) { _ in true } == true)
        let slot = try #require(writer.take())
        #expect(slot == frame.slot)
        #expect(reader.use(frame) { _ in true } == nil)
        writer.putBack(slot)
        #expect(reader.use(frame) { _ in true } == nil)
    }

    @Test("Waiting ends with a frame, with the ring, or with its time, whichever comes first")
    func waiting() throws {
        let writer = try Self.writer()
        let reader = try RingReader(writer.readerDescriptor)
        #expect(reader.wait(until: MonotonicClock.now() + 5_000_000) == .timedOut)
        #expect(reader.wait(until: 0) == .timedOut && reader.wait(until: .min) == .timedOut)
        let descriptor = writer.readerDescriptor
        let got = Mutex<[UInt64]>([])
        let thread = try NamedThread(name: "reader") {
            guard let reader = try? RingReader(descriptor) else { return }
            while true {
                switch reader.wait(.next, until: MonotonicClock.now() + 30_000_000_000) {
                case .frame(let frame): got.withLock { $0.append(frame.number) }
                case .closed(let why):
                    got.withLock { $0.append(why == .replaced ? 1000 : 2000) }
                    return
                case .timedOut: return
                }
            }
        }
        try Self.publish(writer, 1)
        while got.withLock({ $0.isEmpty }) { sched_yield() }
        try Self.publish(writer, 2)
        try Self.publish(writer, 3)
        writer.close(.replaced)
        thread.join()
        #expect(got.withLock { $0 } == [1, 2, 3, 1000])
        #expect(writer.publish(0, Self.record(4)) == nil)
    }

    @Test("What is lent stays as it is until it was given back, also when the ring is gone")
    func loans() throws {
        var writer: RingWriter? = try Self.writer()
        var loans: [RingLoan] = []
        for number in 1...6 as ClosedRange<UInt64> {
            let slot = try #require(writer?.take())
            writer?.pixels(of: slot).bindMemory(to: UInt64.self).update(repeating: number)
            writer?.publish(slot, Self.record(number))
            if let loan = writer?.lend(slot) { loans.append(loan) }
        }
        #expect(loans.count == 4)
        for number in 7...60 as ClosedRange<UInt64> { try Self.publish(try #require(writer), number) }
        for (index, loan) in loans.enumerated() {
            #expect(loan.bytes.bindMemory(to: UInt64.self).allSatisfy { $0 == UInt64(index + 1) })
        }
        loans.removeFirst().giveBack()
        #expect(writer?.lentCount == 3)
        writer = nil
        #expect(loans[0].bytes.bindMemory(to: UInt64.self).allSatisfy { $0 == 2 })
    }

    @Test("A reader can neither write, nor resize, nor seal, nor punch a hole")
    func readOnly() throws {
        let writer = try Self.writer()
        try Self.publish(writer, 1)
        let descriptor = writer.readerDescriptor
        let size = writer.plan.size
        #expect(mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) == MAP_FAILED)
        #expect(ftruncate(descriptor, 0) == -1 && ftruncate(descriptor, size * 2) == -1)
        var byte: UInt8 = 0
        #expect(write(descriptor, &byte, 1) == -1 && pwrite(descriptor, &byte, 1, 4096) == -1)
        let mapped = try #require(mmap(nil, size, PROT_READ, MAP_SHARED, descriptor, 0))
        #expect(mapped != MAP_FAILED && mprotect(mapped, size, PROT_READ | PROT_WRITE) == -1)
        munmap(mapped, size)
        // It may open the file anew as its owner: the seals are on the file.
        let again = open("/proc/self/fd/\(descriptor)", O_RDWR)
        if again >= 0 {
            #expect(mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) == MAP_FAILED)
            #expect(write(again, &byte, 1) == -1 && ftruncate(again, 0) == -1 && ftruncate(again, size * 2) == -1)
            #expect(clinux_seal_for_readers(again) == -1)
            close(again)
        }
        try Self.publish(writer, 2)
        #expect(try RingReader(descriptor).poll()?.number == 2)
    }

    @Test("Memory that could become shorter is not mapped")
    func unsealed() throws {
        let descriptor = clinux_memfd("test")
        defer { close(descriptor) }
        #expect(ftruncate(descriptor, 1 << 16) == 0)
        #expect(throws: RingError.self) { try RingReader(descriptor) }
        #expect(throws: RingError.self) { try RingReader(-1) }
        #expect(throws: RingError.self) { try RingReader(STDIN_FILENO) }
    }

    @Test("Readers beside a writer never take a torn picture for a whole one")
    func interleaved() throws {
        let writer = try Self.writer(keep: 2)
        let descriptor = writer.readerDescriptor
        let isOver = Atomic<Bool>(false)
        let newest = Atomic<UInt64>(0)
        struct Report { var frames: UInt64 = 0, torn: UInt64 = 0, late: UInt64 = 0, backwards: UInt64 = 0 }
        let reports = Mutex<[Report]>([])
        let threads = try (0..<3).map { index in
            try NamedThread(name: "reader-\(index)") {
                guard let reader = try? RingReader(descriptor) else { return }
                var (report, last) = (Report(), UInt64(0))
                while !isOver.load(ordering: .acquiring) {
                    guard
                        case .frame(let frame) = reader.wait(
                            index == 0 ? .next : .newest, until: MonotonicClock.now() + 10_000_000)
                    else { continue }
                    if frame.number <= last { report.backwards += 1 }
                    last = frame.number
                    let isWhole = reader.use(frame) { pixels in
                        // The second of them dawdles until it is overtaken.
                        while index == 1, frame.number % 64 == 0, !isOver.load(ordering: .acquiring),
                            newest.load(ordering: .acquiring) < frame.number + 16
                        { sched_yield() }
                        return pixels.bindMemory(to: UInt64.self).allSatisfy { $0 == frame.number }
                            && frame.record == RingTests.record(frame.number)
                    }
                    report.frames += 1
                    if isWhole == false { report.torn += 1 }
                }
                report.late = reader.counters.late
                reports.withLock { $0.append(report) }
            }
        }
        // Four at a time are with the driver, and come back in any order.
        var random = Generator(state: 7)
        var taken: [Int] = []
        for number in 1...60_000 as ClosedRange<UInt64> {
            while taken.count < 4, let slot = writer.take() { taken.append(slot) }
            let slot = taken.remove(at: Int.random(in: taken.indices, using: &random))
            let pixels = writer.pixels(of: slot).bindMemory(to: UInt64.self)
            for index in pixels.indices { pixels[index] = number }
            writer.publish(slot, Self.record(number))
            newest.store(number, ordering: .releasing)
        }
        isOver.store(true, ordering: .releasing)
        for thread in threads { thread.join() }
        let all = reports.withLock { $0 }
        #expect(all.count == 3)
        for report in all { #expect(report.torn == 0 && report.backwards == 0 && report.frames > 0) }
        #expect(all.contains { $0.late > 0 }, "nobody was overtaken, so nothing was tried")
    }

    @Test(
        "Whatever stands in the memory, a reader neither traps nor reads outside nor waits too long", arguments: 1...60)
    func hostile(seed: UInt64) throws {
        var random = Generator(state: seed)
        let memory = try SharedMemory(name: "hostile", count: 1 << 16)
        let plan = try #require(
            try? RingPlan(
                {
                    var ring = Self.description()
                    (ring.slots, ring.keep) = (12, 4)
                    return ring
                }()))
        #expect(plan.size <= memory.bytes.count)
        plan.write(to: memory.bytes)
        for _ in 0..<400 {
            // Words that matter, and values that are near to sense.
            let places = [
                8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 112, 240, 244, 248, 252, 256, 260, 264, 352, 356, 360, 364,
                368, 372, 380, 388, 392, 400, 404, 448, 452, 456,
            ]
            let values: [UInt32] = [
                0, 1, 2, 3, 12, 64, 255, 256, 4096, 1 << 16, 1 << 31, .max, .max - 1,
                .random(in: 0 ... .max, using: &random),
            ]
            let place =
                Bool.random(using: &random)
                ? places.randomElement(using: &random)! : 512 + 4 * Int.random(in: 0..<192, using: &random)
            let old = memory.bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self)
            memory.bytes.storeBytes(of: values.randomElement(using: &random)!, toByteOffset: place, as: UInt32.self)
            if let reader = try? RingReader(memory.readerDescriptor) {
                for order in [RingReader.Order.newest, .next, .newest, .next] {
                    guard let frame = reader.poll(order) else { continue }
                    _ = reader.use(frame) { $0.reduce(0) { $0 &+ Int($1) } }
                }
                let start = MonotonicClock.now()
                _ = reader.wait(until: start + 1_000_000)
            }
            if place < 448 { memory.bytes.storeBytes(of: old, toByteOffset: place, as: UInt32.self) }
        }
    }
}
