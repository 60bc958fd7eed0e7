package import Video4Linux

/// A V4L2 device that tells of each request: when it begins, and when the driver has answered it.
///
/// A driver that hangs in one request is told by that from one that is asked a thousand quick ones, as the format table
/// of a camera behind a slow bus takes.
package final class V4L2WatchedDevice: V4L2Device {
    private let device: any V4L2Device
    private let onRequest: RequestObserver

    package init(_ device: any V4L2Device, _ onRequest: @escaping RequestObserver) {
        self.device = device
        self.onRequest = onRequest
    }

    /// Opens a node, which counts as a request: some drivers wake their camera with it.
    package static func open(
        _ path: String, _ onRequest: @escaping RequestObserver,
        by open: (String) throws(V4L2Error) -> any V4L2Device = { path throws(V4L2Error) in try VideoNode(path: path) }
    ) throws(V4L2Error) -> V4L2WatchedDevice {
        onRequest()
        defer { onRequest() }
        return V4L2WatchedDevice(try open(path), onRequest)
    }

    package var path: String { device.path }
    package var descriptor: CInt { device.descriptor }

    package func perform(_ request: V4L2Request, _ argument: UnsafeMutableRawPointer) -> Int32 {
        onRequest()
        defer { onRequest() }
        return device.perform(request, argument)
    }

    package func map(length: Int, offset: Int) throws(V4L2Error) -> UnsafeMutableRawBufferPointer {
        onRequest()
        defer { onRequest() }
        return try device.map(length: length, offset: offset)
    }

    package func unmap(_ memory: UnsafeMutableRawBufferPointer) { device.unmap(memory) }
}
