import BusServer
import CV4L2
import CaptureCore
import CaptureSources
import Glibc
import LinuxIO
import Synchronization
import Testing
import Video4Linux

@testable import Worker

/// A driver that takes its time for each size that it lists, and for anything else when it is told to.
private final class SlowDriver: V4L2Device, Sendable {
    struct Script: Sendable {
        /// How many sizes it has.
        var sizes: UInt32 = 1
        /// What each of them takes, milliseconds.
        var milliseconds: UInt32 = 0
        /// The size at which it waits for ``SlowDriver/released``.
        var hangsAt: UInt32?
        /// How many it was asked for.
        var asked: UInt32 = 0
    }

    let path = "/dev/slow"
    let descriptor: CInt = -1
    let script: Mutex<Script>
    let released = Semaphore()

    init(_ script: Script) { self.script = Mutex(script) }

    func perform(_ request: V4L2Request, _ argument: UnsafeMutableRawPointer) -> Int32 {
        switch request {
        case .queryCapability:
            argument.assumingMemoryBound(to: v4l2_capability.self).pointee.capabilities = UInt32(
                V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING)
            return 0
        case .enumerateFormats:
            let answer = argument.assumingMemoryBound(to: v4l2_fmtdesc.self)
            guard answer.pointee.index == 0 else { return EINVAL }
            answer.pointee.pixelformat = PixelFormat.yuyv.code
            return 0
        case .enumerateFrameSizes:
            let answer = argument.assumingMemoryBound(to: v4l2_frmsizeenum.self)
            let index = answer.pointee.index
            let now = script.withLock { script in
                script.asked = max(script.asked, index)
                return script
            }
            guard index < now.sizes else { return EINVAL }
            usleep(now.milliseconds * 1000)
            if now.hangsAt == index { released.wait() }
            answer.pointee.type = V4L2_FRMSIZE_TYPE_DISCRETE.rawValue
            answer.pointee.discrete = v4l2_frmsize_discrete(width: 16 + index, height: 16)
            return 0
        case .dequeueBuffer: return EAGAIN
        default: return ENOTTY
        }
    }

    func map(length: Int, offset: Int) throws(V4L2Error) -> UnsafeMutableRawBufferPointer {
        throw V4L2Error(errno: ENOMEM, operation: "mmap", device: path)
    }

    func unmap(_ memory: UnsafeMutableRawBufferPointer) {}
}

/// What is judged is how long the driver takes for one request, not for how many it is asked.
@Suite("A slow driver", .timeLimit(.minutes(5)))
struct SlowDriverTests {
    private static let busyTime: Int64 = 500_000_000
    private static let hangTime: Int64 = 2_000_000_000

    private let loop: Loop
    private let thread: DeviceThread<TimedSource>
    private let driver: SlowDriver
    private let clock: CallClock
    /// The end of the opening.
    private final class Opening {
        var description: DeviceDescription?
        var hasHung = false
        var told: [Int64?] = []
    }

    private init(_ script: SlowDriver.Script) throws {
        loop = try Loop()
        let driver = SlowDriver(script)
        self.driver = driver
        clock = CallClock()
        let camera = V4L2Camera(
            DeviceIdentity(
                uniqueID: "slow", localizedName: "Slow", type: .external, position: .external, node: driver.path,
                driver: "", bus: "")
        ) { _ in driver }
        thread = try DeviceThread(
            loop, device: TimedSource(camera, clock), clock: clock, busyTime: Self.busyTime, hangTime: Self.hangTime)
    }

    init() throws { try self.init(.init()) }

    private func open() throws -> Opening {
        let opening = Opening()
        thread.onBusy = { [thread] in opening.told.append(thread.busySince) }
        thread.onHang = { [driver] in
            opening.hasHung = true
            driver.released.signal()
        }
        thread.perform { source throws(SourceError) in
            try source.open()
        } then: { [loop] result in
            opening.description = try? result.get()
            loop.stop()
        }
        try loop.run()
        thread.end()
        return opening
    }

    @Test("a table of many requests, each of them quick, is no hang however long it takes")
    func manyRequests() throws {
        let test = try SlowDriverTests(.init(sizes: 25, milliseconds: 200))
        let start = MonotonicClock.now()
        let opening = try test.open()
        #expect(MonotonicClock.now() - start > 2 * Self.hangTime)
        #expect(opening.description?.formats.count == 25)
        #expect(!opening.hasHung)
        #expect(opening.told == [])
    }

    @Test("one request among many that takes too long is a hang, counted from its own beginning")
    func oneRequest() throws {
        let test = try SlowDriverTests(.init(sizes: 8, milliseconds: 200, hangsAt: 6))
        let start = MonotonicClock.now()
        let opening = try test.open()
        #expect(opening.hasHung)
        // Six were answered before, and then it was given its whole time.
        #expect(MonotonicClock.now() - start >= 6 * 200_000_000 + Self.hangTime)
        let since = try #require(opening.told.first ?? nil)
        #expect(since >= start + 6 * 200_000_000)
        #expect(opening.told.last == .some(nil))
    }

    @Test("one that takes long is told, and that it is over, while others follow")
    func slowRequest() throws {
        let test = try SlowDriverTests(.init(sizes: 400, hangsAt: 0))
        let opening = Opening()
        let asked = test.driver
        test.thread.onHang = { [loop = test.loop] in
            opening.hasHung = true
            asked.released.signal()
            loop.stop()
        }
        test.thread.onBusy = { [thread = test.thread, loop = test.loop] in
            opening.told.append(thread.busySince)
            if thread.busySince != nil {
                // It answers, and takes its time for the others.
                asked.script.withLock { $0.milliseconds = 20 }
                asked.released.signal()
            } else {
                loop.stop()
            }
        }
        test.thread.perform { source throws(SourceError) in
            try source.open()
        } then: { (_: Result<DeviceDescription, SourceError>) in
        }
        try test.loop.run()
        #expect(opening.told.count == 2 && opening.told.last == .some(nil))
        // The opening goes on.
        #expect(test.thread.isAtWork && asked.script.withLock { $0.asked } < 400)
        #expect(!opening.hasHung)
        asked.script.withLock { $0.milliseconds = 0 }
        test.thread.end()
    }

    @Test("what the loop asks the driver for meanwhile says nothing about the call")
    func otherThread() throws {
        let clock = clock
        let inside = Semaphore()
        let leave = Semaphore()
        let other = try NamedThread(name: "device") {
            clock.measure {
                clock.requestMade()
                inside.signal()
                leave.wait()
            }
        }
        inside.wait()
        let since = try #require(clock.busySince)
        let device = V4L2WatchedDevice(driver) { clock.requestMade() }
        var buffer = 0
        while MonotonicClock.now() <= since {}
        _ = device.perform(.dequeueBuffer, &buffer)
        #expect(clock.busySince == since)
        leave.signal()
        other.join()
        #expect(clock.busySince == nil)
        thread.end()
    }
}
