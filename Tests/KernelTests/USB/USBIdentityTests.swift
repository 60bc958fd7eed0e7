import CameraBusTesting
import CaptureCore
import CaptureSources
import JSON
import LinuxIO
import Testing

extension USBTests {
    /// Who is who among cameras of one model.
    @Suite struct Identity {
        /// Its second node has metadata, and is no camera.
        @Test func tablesAreV4L2ctls() async throws {
            let camera = try EmulatedCamera(port: 0, serial: "T-1")
            defer { camera.unplug() }
            var found: [DeviceIdentity] = []
            try await eventually(by: USBBus.patience) {
                found = V4L2Discovery.cameras().filter { $0.driver == "uvcvideo" }
                return !found.isEmpty && DeviceNode.videoNodes().count == 2
            }
            #expect(found.count == 1)
            let identity = try #require(found.first)
            #expect(identity.uniqueID.contains("t-1") || identity.uniqueID.contains("T-1"))
            try compareFormatTables(identity, atLeast: 8)
            try compareControlTables(identity, atLeast: 12)
        }

        /// With serial numbers at any port; without, by the port.
        @Test(arguments: [["SN-A", "SN-B"], ["", ""]])
        func twoOfOneModelKeepTheirNames(_ serials: [String]) async throws {
            let hasSerials = serials[0] != ""
            let usb = try await USBBus()
            var cameras = [
                try EmulatedCamera(port: 0, serial: serials[0]), try EmulatedCamera(port: 1, serial: serials[1]),
            ]
            let first = try await usb.id(of: cameras[0])
            let second = try await usb.id(of: cameras[1])
            #expect(first != second)
            let uniqueIDs = try [first, second].map { try usb.device($0)["uniqueID"] }
            #expect(uniqueIDs[0] != uniqueIDs[1])
            try usb.client.call("device.rename", ["device": .string(first), "name": "front"])
            try usb.client.call("device.rename", ["device": .string(second), "name": "back"])
            for name in ["front", "back"] { try await usb.wait(name, isConnected: true) }

            for camera in cameras { camera.unplug() }
            for name in ["front", "back"] { try await usb.wait(name, isConnected: false) }
            // The other way round: those with a serial number at each other's port too.
            cameras = []
            cameras.append(try EmulatedCamera(port: hasSerials ? 0 : 1, serial: serials[1]))
            try await usb.wait("back", isConnected: true)
            #expect(try usb.device("front")["connected"] == false)
            cameras.append(try EmulatedCamera(port: hasSerials ? 1 : 0, serial: serials[0]))
            try await usb.wait("front", isConnected: true)
            #expect(try ["front", "back"].map { try usb.device($0)["uniqueID"] } == uniqueIDs)
            #expect(try usb.device("back")["bus"] == cameras[0].bus)
            #expect(try usb.device("front")["bus"] == cameras[1].bus)
            #expect(try usb.devices().count == 2)
            for camera in cameras { camera.unplug() }
            try await usb.bus.stop(by: USBBus.patience)
        }
    }
}
