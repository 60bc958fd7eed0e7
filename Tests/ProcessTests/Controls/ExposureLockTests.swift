import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import Testing

extension ProcessTests {
    /// Exposures that are to be locked when they have settled, and what comes in between.
    @Suite(.timeLimit(.minutes(5))) struct ExposureLocks {
        private let state = "state/device/cam0/"

        /// A bus whose camera streams, so slowly that its exposure takes long to settle, and is to lock that.
        private func settling() async throws -> (bus: BusHarness, client: RawClient, frames: FrameRecorder) {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let frames = try FrameRecorder(bus, "cam0", "gray:64x0")
            _ = try await frames.first { $0.isFrame }
            try client.call("fault.inject", ["device": "cam0", "fault": "rate", "percent": 5])
            let answer = try client.call(
                "device.expose",
                ["device": "cam0", "point": ["x": .number(0.95), "y": .number(0.5)], "thenLock": true])
            #expect(answer["willLock"] == true && answer["kept"] == nil)
            return (bus, client, frames)
        }

        @Test func `an exposure is locked also by the next bus, where the one that promised it has died`() async throws
        {
            let (bus, _, frames) = try await settling()
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("fault.inject", ["device": "cam0", "fault": "none"])
            let device = try await bus.wait(for: state) { $0?["controls"]?["exposureMode"] == "locked" }
            #expect(device?["controls"]?["adjustingExposure"] == false)
            #expect((device?["controls"]?["exposureDuration"]?.double ?? 0) > 0.03)
            // It is done, and is not done again.
            try client.call("device.set", ["device": "cam0", "controls": ["exposureMode": "continuousAutoExposure"]])
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            try await bus.wait(for: state) { $0?["controls"]?["adjustingExposure"] == false }
            let again = try RawClient(path: bus.directory.commandSocket)
            try again.call("device.set", ["device": "cam0", "controls": ["brightness": 3]])
            let after = try again.call("device.get", ["device": "cam0"])["device"]
            #expect(after?["controls"]?["exposureMode"] == "continuousAutoExposure")
            frames.stop()
            try await bus.stop()
        }

        @Test func `what was called off is not locked by the next bus`() async throws {
            let (bus, first, frames) = try await settling()
            try first.call("device.expose", ["device": "cam0", "point": ["x": .number(0.1), "y": .number(0.1)]])
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("fault.inject", ["device": "cam0", "fault": "none"])
            try await bus.wait(for: state) { $0?["controls"]?["adjustingExposure"] == false }
            try client.call("device.set", ["device": "cam0", "controls": ["brightness": 3]])
            let after = try client.call("device.get", ["device": "cam0"])["device"]
            #expect(after?["controls"]?["exposureMode"] == "continuousAutoExposure")
            frames.stop()
            try await bus.stop()
        }

        @Test func `that it could not be written that an exposure was called off is answered`() async throws {
            let (bus, client, frames) = try await settling()
            let path = bus.directory.stateFile
            // No file can take its place.
            try #require(unlink(path) == 0 && mkdir(path, 0o700) == 0)
            let answer = try client.call("device.resetFocusAndExposure", ["device": "cam0"])
            #expect(answer["kept"] == false && answer["reset"]?.array?.isEmpty == false)
            // Nothing was called off.
            #expect(try client.call("device.resetFocusAndExposure", ["device": "cam0"])["kept"] == nil)
            try #require(rmdir(path) == 0)
            frames.stop()
            try await bus.stop()
        }

        @Test func `the end of the device's process is told of an exposure that it was to lock`() async throws {
            let (bus, client, frames) = try await settling()
            let observer = try await bus.connect()
            let messages = try await observer.watch(["event/device/"])
            try client.call("fault.inject", ["device": "cam0", "fault": "crash"])
            let event = try await Deadline.usual.limit("exposureLockFailed") {
                for try await message in messages where message.json["event"] == "exposureLockFailed" {
                    return message.json
                }
                throw TestingError("the events have ended")
            }
            #expect(event["reason"] == "workerCrashed" && event["holder"] == .null)
            try await bus.wait(for: state) {
                $0?["worker"]?["state"] == "running" && $0?["asOf"]?.isNull == false
                    && $0?["controls"]?["exposureMode"] == "continuousAutoExposure"
            }
            frames.stop()
            await observer.close()
            try await bus.stop()
        }
    }
}
