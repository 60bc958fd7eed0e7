import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Foundation
import JSON
import LinuxIO
import Testing

extension KernelTests {
    /// What vivid can be made to suffer, as subscribers of the bus see it: frames are back without their doing
    /// anything, and those of another camera notice nothing.
    @Suite(.enabled(if: KernelRing.topology != .multi, "once is enough")) struct BusFaults {
        /// Two cameras of the bus, the first of them to suffer, each with somebody who listens.
        final class Rig {
            let bus: BusHarness
            let client: RawClient
            let devices: [String]
            let nodes: [String]
            let victim: FrameRecorder
            let bystander: FrameRecorder
            let table: FaultTable

            init() async throws {
                let bus = try await BusHarness(virtual: nil)
                let client = try RawClient(path: bus.directory.commandSocket)
                var list: [JSONValue] = []
                // Emulated processors take their time to load the programs.
                try await eventually(by: .after(seconds: 240)) {
                    list = try client.call("device.list", within: 60)["devices"]?.array ?? []
                    return list.count == KernelRing.identities.count
                        && list.allSatisfy { !($0["activeFormat"]?.isNull ?? true) }
                }
                devices = try KernelRing.identities.prefix(2).map { identity in
                    try #require(list.first { $0["uniqueID"]?.string == identity.uniqueID }?["id"]?.string)
                }
                nodes = try KernelRing.identities.prefix(2).map { try #require($0.node) }
                (self.bus, self.client) = (bus, client)
                try #require(devices.count == 2)
                let lock = try client.call("device.lock", ["devices": JSONValue(devices)], within: 60)["lock"] ?? .null
                for device in devices { try Self.configure(client, lock, device, "YUYV") }
                try client.call("device.unlock", ["lock": lock], within: 60)
                victim = try FrameRecorder(bus, devices[0], "native")
                bystander = try FrameRecorder(bus, devices[1], "native")
                table = FaultTable(victim)
                for recorder in [victim, bystander] {
                    _ = try await recorder.first(by: .after(seconds: 90)) { $0.sequence >= 5 }
                }
            }

            private static func configure(
                _ client: RawClient, _ lock: JSONValue, _ device: String, _ pixelFormat: String
            ) throws {
                let format: JSONValue = ["pixelFormat": .string(pixelFormat), "width": 320, "height": 180]
                try client.call(
                    "device.configure",
                    [
                        "lock": lock,
                        "changes": [["device": .string(device), "activeFormat": format, "frameRate": 10]],
                    ], within: 90)
            }

            /// Sets a control of the victim's as another program does.
            func inject(_ control: String, _ value: Int = 1) throws {
                let (output, status) = try KernelTests.run(
                    "/usr/bin/v4l2-ctl", ["-d", nodes[0], "--set-ctrl", "\(control)=\(value)"])
                try #require(status == 0 && output == "", "\(control): \(output)")
            }

            /// Where the victim's frames are written, as its state says.
            func memory() throws -> String? {
                try client.call("device.get", ["device": .string(devices[0])], within: 60)["device"]?["memory"]?.string
            }

            /// Another format of the victim's, for which its stream is stopped and started.
            func change(to pixelFormat: String) throws {
                let lock = try client.call("device.lock", ["devices": .string(devices[0])], within: 60)["lock"] ?? .null
                try Self.configure(client, lock, devices[0], pixelFormat)
                try client.call("device.unlock", ["lock": lock], within: 60)
            }

            /// The bystander's frames from a place on are of one stream that ran on, and nothing of it was left out.
            func expectUndisturbed(from place: Int, _ fault: String) {
                let entries = bystander.entries.dropFirst(place)
                for (one, next) in zip(entries, entries.dropFirst()) {
                    // On a busy machine vivid leaves frames out, and this reader misses some: neither is the worker's
                    // doing.
                    #expect(next.isFrame && next.stream == one.stream && next.dropped == one.dropped, "\(fault)")
                }
            }

            func end() async throws {
                victim.stop()
                bystander.stop()
                table.print()
                try await bus.stop()
            }
        }

        @Test func framesComeBackByThemselves() async throws {
            try await KernelRing.withoutTraces { try await sufferEverything() }
        }

        private func sufferEverything() async throws {
            let rig = try await Rig()
            try await KernelTests.tellingLog(of: rig.bus) { try await suffer(rig) }
        }

        private func suffer(_ rig: Rig) async throws {
            let undisturbed = rig.bystander.entries.count - 1

            // Frames that the driver leaves out or damages: holes in its count, and none in ours.
            var from = rig.table.begin()
            try rig.inject("percentage_of_dropped_buffers", 50)
            var last = rig.victim.entries[from]
            var back = try await rig.victim.first(from: from + 1, by: .after(seconds: 90)) { entry in
                defer { last = entry }
                // More than this subscriber itself has lost, which a busy machine may keep from reading.
                return entry.captureSequence - last.captureSequence > entry.sequence - last.sequence
            }
            try rig.inject("percentage_of_dropped_buffers", 0)
            #expect(back.entry.stream == rig.victim.entries[from].stream)
            rig.table.note("half of all dropped", driver: "holes in sequence", back: back)

            from = rig.table.begin()
            try rig.inject("inject_v4l2_buf_flag_error")
            last = rig.victim.entries[from]
            back = try await rig.victim.first(from: from + 1, by: .after(seconds: 90)) { entry in
                defer { last = entry }
                return entry.dropped > last.dropped
            }
            #expect(back.entry.stream == rig.victim.entries[from].stream)
            rig.table.note("damaged frame", driver: "V4L2_BUF_FLAG_ERROR", back: back)

            // A buffer that can't be queued is lost to this stream, which goes on with the others.
            #expect(try rig.memory() == "userptr")
            from = rig.table.begin()
            try rig.inject("inject_vidioc_qbuf_error")
            back = try await rig.victim.first(from: from + 20, by: .after(seconds: 90)) { $0.isFrame }
            #expect(back.entry.stream == rig.victim.entries[from].stream)
            rig.table.note("QBUF refused", driver: "EINVAL once", back: back)

            // Starts that fail with the ring as memory go on with the driver's own.
            for (fault, driver, pixelFormat) in [
                ("inject_vidioc_reqbufs_error", "REQBUFS gives EINVAL once", "GREY"),
                ("inject_vidioc_streamon_error", "STREAMON gives EINVAL once", "YUYV"),
            ] {
                from = rig.table.begin()
                let stream = rig.victim.entries[from].stream
                try rig.inject(fault)
                try rig.change(to: pixelFormat)
                back = try await rig.victim.first(from: from, by: .after(seconds: 90)) {
                    $0.isFrame && $0.stream != stream
                }
                // Where the driver fails nothing, frames come back as well.
                try await eventually { try rig.memory() == "mmap" }
                rig.table.note(
                    fault == "inject_vidioc_reqbufs_error" ? "REQBUFS refused" : "STREAMON refused", driver: driver,
                    back: back)
            }

            // Streams that end.
            for (fault, driver) in [
                ("inject_fatal_streaming_error", "DQBUF gives EIO"), ("disconnect", "every call gives ENODEV"),
            ] {
                from = rig.table.begin()
                let stream = rig.victim.entries[from].stream
                try rig.inject(fault)
                back = try await rig.victim.first(from: from, by: .after(seconds: 90)) {
                    $0.isFrame && $0.stream != stream
                }
                rig.table.note(
                    fault == "disconnect" ? "disconnected" : "fatal streaming error", driver: driver, back: back)
            }
            rig.expectUndisturbed(from: undisturbed, "a fault of the other camera")

            // The driver loses all its cameras at once, and has them again.
            from = rig.table.begin()
            let streams = [rig.victim, rig.bystander].map { $0.entries.last?.stream ?? "" }
            try KernelRing.drive("unbind")
            _ = try await rig.victim.first(from: from, by: .after(seconds: 90)) {
                $0.error?.reason == .deviceDisconnected
            }
            try KernelRing.drive("bind")
            let bound = MonotonicClock.now()
            back = try await rig.victim.first(from: from, by: .after(seconds: 90)) { entry in
                entry.isFrame && entry.stream != streams[0]
            }
            rig.table.note("unbound and bound again", driver: "EINVAL, then ENODEV", back: back)
            print("bound again → frames: \((back.entry.arrival - bound) / 1_000_000) ms")
            _ = try await rig.bystander.first(by: .after(seconds: 90)) { $0.isFrame && $0.stream != streams[1] }
            let device = try rig.client.call("device.get", ["device": .string(rig.devices[0])], within: 60)["device"]
            #expect(device?["activeFormat"]?["width"] == 320 && device?["frameRate"] == 10)
            try await rig.end()
        }
    }
}
