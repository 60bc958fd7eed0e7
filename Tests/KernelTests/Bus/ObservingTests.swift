import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Foundation
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension KernelTests {
    /// What others do to a device beside us, and what the kernel lets them.
    @Suite(.enabled(if: KernelRing.topology != .multi)) struct Observing {
        /// The next event, waited for until the deadline.
        private func next(_ queue: any DeviceEventQueue) throws -> DeviceEvent {
            while true {
                if let event = try queue.next() { return event }
                var descriptor = pollfd(fd: queue.descriptor, events: Int16(POLLPRI), revents: 0)
                try #require(poll(&descriptor, 1, 20_000) == 1, "no event within 20 s")
            }
        }

        private func control(_ queue: any DeviceEventQueue, _ id: UInt32) throws -> ControlEvent {
            while true { if case .control(let event) = try next(queue), event.id == id { return event } }
        }

        @Test func othersChangesAreTold() throws {
            let test = try TestCamera()
            let queue = try #require(try test.camera.events())
            #expect(queue.isUrgent)
            try test.set("contrast", .integer(99))
            // Our own is not told, theirs is: the first event is the second change.
            let before = MonotonicClock.now()
            try test.v4l2ctl("--set-ctrl", "brightness=77")
            guard case .control(let event) = try next(queue) else {
                Issue.record("no control")
                return
            }
            #expect(event.id == 0x0098_0900)
            #expect(event.value == .integer(77))
            #expect(event.time >= before && event.time <= MonotonicClock.now())
            // A mode's flags go with it, and what a text has become must be read.
            try test.v4l2ctl("--set-ctrl", "gain_automatic=0")
            let gain = try control(queue, 0x0098_0913)
            #expect(gain.flags?.contains(.inactive) == false)
            try test.v4l2ctl("--set-ctrl", "gain_automatic=1")
            #expect(try control(queue, 0x0098_0913).flags?.contains(.inactive) == true)
            try test.v4l2ctl("--set-ctrl", "string=ab")
            let string = try #require(try test.camera.controls().first { $0.name == "string" })
            let told = try control(queue, string.id)
            #expect(told.value == nil && told.mustBeRead)
            #expect(try test.camera.controlValues()["string"] == .string("ab"))
        }

        @Test func theKernelKeepsOthersOut() throws {
            let test = try TestCamera()
            try test.set("brightness", .integer(50))
            #expect(try test.camera.setPriority(isRecord: true) == .record)
            #expect(try test.v4l2ctl("--set-ctrl", "brightness=60").contains("busy"))
            #expect(try test.camera.controlValues()["brightness"] == .integer(50))
            try test.set("brightness", .integer(51))
            #expect(try test.camera.setPriority(isRecord: false) == .default)
            #expect(try test.v4l2ctl("--set-ctrl", "brightness=60") == "")
            #expect(try test.camera.controlValues()["brightness"] == .integer(60))
            // It goes with the descriptor.
            _ = try test.camera.setPriority(isRecord: true)
            test.camera.close()
            _ = try test.camera.open()
            #expect(try test.v4l2ctl("--set-ctrl", "brightness=61") == "")
        }

        /// Another program that has the priority, and then streams, is named.
        @Test func theOtherIsNamed() throws {
            let test = try TestCamera()
            let other = V4L2Camera(try #require(KernelRing.identities.first))
            _ = try other.open()
            defer { other.close() }
            #expect(try other.setPriority(isRecord: true) == .record)
            #expect(try test.camera.setPriority(isRecord: true) == .refused)
            let refused = #expect(throws: SourceError.self) { try test.set("brightness", .integer(5)) }
            #expect(refused?.kind == .inUse)
            #expect(refused?.control == "brightness")
            // It is this very process, which doesn't count.
            #expect(refused?.holders == [])
            _ = try other.setPriority(isRecord: false)

            let program = Process()
            program.executableURL = URL(filePath: "/usr/bin/v4l2-ctl")
            program.arguments = ["-d", test.node, "--stream-mmap=4"]
            program.standardOutput = FileHandle.nullDevice
            let progress = Pipe()
            program.standardError = progress
            try program.run()
            defer {
                // The threads of tests have other signals blocked, and what they start inherits that.
                kill(program.processIdentifier, SIGKILL)
                program.waitUntilExit()
            }
            // It says something with its first frame.
            #expect(try progress.fileHandleForReading.read(upToCount: 1)?.count == 1)
            let failure = #expect(throws: SourceError.self) { _ = try test.camera.startStreaming() }
            #expect(failure?.kind == .inUse)
            #expect(
                failure?.holders.contains { $0.pid == program.processIdentifier && $0.name == "v4l2-ctl" } == true)
        }

        /// All of it through the bus: seen when it may be, refused when it may not, and put back.
        @Test func throughTheBus() async throws {
            let bus = try await BusHarness(virtual: nil)
            let client = try RawClient(path: bus.directory.commandSocket)
            let identity = try #require(KernelRing.identities.first)
            let node = try #require(identity.node)
            var device = ""
            func value() throws -> JSONValue {
                try client.call("device.get", ["device": .string(device)])["device"] ?? .null
            }
            try await eventually(by: .after(seconds: 90)) {
                let devices = try client.call("device.list")["devices"]?.array ?? []
                let found = devices.first { $0["uniqueID"]?.string == identity.uniqueID }
                device = found?["id"]?.string ?? ""
                return !(found?["activeFormat"]?.isNull ?? true)
            }
            let set: (JSONValue) throws -> Void = { controls in
                try client.call("device.set", ["device": .string(device), "controls": controls])
            }
            try set(["gain_automatic": false, "gain": 40, "brightness": 100])

            // While it is closed somebody meddles.
            try await eventually(by: .after(seconds: 30)) { try value()["isOpen"] == false }
            _ = try v4l2ctl(["-d", node, "--set-ctrl", "gain_automatic=1,brightness=7"])
            let lock = try client.call("device.lock", ["devices": .string(device)])["lock"] ?? .null
            try await eventually(by: .after(seconds: 30)) { try value()["kernelPriority"] == "record" }
            #expect(
                try v4l2ctl(["-d", node, "--get-ctrl", "gain_automatic,gain,brightness"])
                    == "gain_automatic: 0\ngain: 40\nbrightness: 100\n")
            #expect(try value()["notRestored"] == [])

            // While it is locked they can't, and when it isn't any more it is seen.
            #expect(try v4l2ctl(["-d", node, "--set-ctrl", "brightness=8"]).contains("busy"))
            let events = try RawClient(.subscribe, path: bus.directory.eventsSocket)
            try events.socket.subscribe("event/device/\(device)/")
            let reader = try FrameReader(bus, device, "native@1")
            _ = try reader.next()
            try client.call("device.unlock", ["lock": lock])
            try await eventually(by: .after(seconds: 30)) { try value()["kernelPriority"] == "default" }
            #expect(try v4l2ctl(["-d", node, "--set-ctrl", "brightness=9"]) == "")
            try await eventually(by: .after(seconds: 30)) { try value()["controls"]?["brightness"] == 9 }
            var message: JSONValue = .null
            repeat {
                let frames = try events.receive()
                message = try JSONValue(parsing: frames[1].bytes)
            } while message["controls"]?["brightness"] == nil
            #expect(message["event"] == "controlsChanged")
            #expect(message["cause"] == "external")
            #expect(message["controls"]?["brightness"] == ["old": 100, "new": 9])
            try set(["brightness": 128])
            try await bus.stop()
        }
    }
}
