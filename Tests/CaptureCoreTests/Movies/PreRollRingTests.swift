import CaptureCore
import Testing

@Suite struct PreRollRingTests {
    private static let second: Int64 = 1_000_000_000

    private func add(
        _ ring: PreRollRing, _ kind: PreRollRing.Kind, _ time: Int64, key: Bool = true, bytes: Int = 100
    ) -> Bool {
        let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: time), count: bytes)
        return payload.withUnsafeBytes { ring.append(kind, $0, at: time, isKeyFrame: key) }
    }

    private func contents(_ ring: PreRollRing) -> [(kind: PreRollRing.Kind, time: Int64, isKeyFrame: Bool)] {
        var found: [(kind: PreRollRing.Kind, time: Int64, isKeyFrame: Bool)] = []
        ring.read { item, bytes in
            #expect(bytes.allSatisfy { $0 == UInt8(truncatingIfNeeded: item.time) })
            found.append((item.kind, item.time, item.isKeyFrame))
            return true
        }
        return found
    }

    @Test func keepsTheLastSeconds() {
        let ring = PreRollRing(duration: 3, bytes: 1 << 20)
        for time in 0..<Int64(10) {
            #expect(add(ring, .frame, time))
            #expect(add(ring, .sound, time))
        }
        #expect(contents(ring).map(\.time) == [6, 6, 7, 7, 8, 8, 9, 9])
        #expect(ring.letGo.frames == 6 && ring.letGo.sounds == 6 && ring.held.frames == 4 && ring.held.sounds == 4)
        #expect(ring.startTime == 6)
        ring.removeAll()
        #expect(contents(ring).isEmpty && ring.startTime == nil && ring.letGo.frames == 6)
    }

    @Test func beginsAtAKeyFrame() {
        let ring = PreRollRing(duration: 7, bytes: 1 << 20)
        #expect(!add(ring, .frame, 0, key: false), "nothing that it builds on is there")
        for time in 1..<Int64(14) {
            #expect(add(ring, .sound, time))
            #expect(add(ring, .frame, time, key: time % 5 == 1))
        }
        // From 6 on they are young enough, which is a key frame.
        #expect(ring.startTime == 6)
        #expect(add(ring, .frame, 14, key: false))
        let frames = contents(ring).filter { $0.kind == .frame }
        #expect(frames.map(\.time) == [11, 12, 13, 14] && frames[0].isKeyFrame)
        #expect(ring.startTime == 11 && ring.letGo.frames == 1 + 10 && ring.held.frames == 4)
        #expect(contents(ring).filter { $0.kind == .sound }.map(\.time) == [7, 8, 9, 10, 11, 12, 13])
        // Frames that build on one that is too old are too, even before it has come to them.
        for time in 15..<Int64(40) { #expect(!add(ring, .frame, time, key: false) == (time > 18)) }
        #expect(contents(ring).allSatisfy { $0.kind == .sound })
        #expect(add(ring, .frame, 40) && ring.startTime == 40)
    }

    @Test func holdsNoMoreThanItMay() {
        let ring = PreRollRing(duration: .max, bytes: 10_000)
        var generator = SystemRandomNumberGenerator()
        var accepted: UInt64 = 0
        for time in 0..<Int64(5000) {
            let bytes = Int.random(in: 1...3000, using: &generator)
            let isFrame = time % 3 != 0
            if add(ring, isFrame ? .frame : .sound, time, key: time % 4 == 0, bytes: bytes), isFrame { accepted += 1 }
            let found = contents(ring)
            #expect(UInt64(found.count) == ring.held.frames + ring.held.sounds)
            #expect(found.first { $0.kind == .frame }?.isKeyFrame ?? true)
            #expect(zip(found, found.dropFirst()).allSatisfy { $0.time < $1.time })
        }
        #expect(accepted > 100)
        #expect(ring.held.frames + ring.letGo.frames == 3333)
        #expect(!add(ring, .sound, 5000, bytes: 10_100), "larger than all of it")
        #expect(add(ring, .sound, 5001, bytes: 10_000))
        #expect(contents(ring).map(\.time) == [5001])
        #expect(!add(ring, .sound, 5002, bytes: 0))
    }

    @Test func aReaderThatFallsBehindGoesOnAtAKeyFrame() {
        let ring = PreRollRing(duration: 5, bytes: 1 << 20)
        func take() -> Int64? { ring.takeFirst { item, _ in item.time } }
        for time in 0..<Int64(4) { #expect(add(ring, .frame, time, key: time == 0)) }
        #expect(take() == 0 && take() == 1)
        // It builds on what the reader has.
        #expect(add(ring, .frame, 4, key: false))
        #expect(take() == 2)
        for time in 5..<Int64(9) { #expect(add(ring, .frame, time, key: false)) }
        #expect(!add(ring, .frame, 9, key: false), "3 was let go")
        #expect(add(ring, .frame, 10) && add(ring, .frame, 11, key: false))
        #expect(take() == 10 && take() == 11 && take() == nil)
        #expect(ring.letGo.frames == 7)
        // One that begins anew.
        #expect(add(ring, .frame, 12, key: false) && add(ring, .sound, 13) && add(ring, .frame, 14))
        ring.skipToKeyFrame()
        #expect(take() == 13 && take() == 14 && take() == nil)
        ring.skipToKeyFrame()
        #expect(!add(ring, .frame, 15, key: false))
    }
}
