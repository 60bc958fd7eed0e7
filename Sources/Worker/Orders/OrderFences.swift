import BusProtocol
import CaptureCore
import JSON

/// The fences of a device's locks, as the coordinator has told them: what would change something under a lower one is
/// refused.
struct OrderFences {
    private let device: String
    /// Orders that would change something under a lower fence are refused.
    private(set) var highest: UInt64 = 0
    /// That of the lock that keeps the device open.
    private(set) var ofLock: UInt64?

    init(device: String) { self.device = device }

    /// - Throws: `invalidParams` where the order names none.
    mutating func lock(_ order: WorkerOrder) throws(BusError) {
        guard let fence = order.fence else { throw .invalidParams("fence", "is required to lock") }
        raise(to: fence)
        ofLock = fence
    }

    /// The lock is over, if it is that one; without a fence: whichever it is.
    mutating func unlock(_ order: WorkerOrder) {
        if order.fence == nil || order.fence == ofLock { ofLock = nil }
    }

    /// The lock that kept the device open is not known any more.
    mutating func forgetLock() { ofLock = nil }

    /// Something is done under that fence.
    mutating func raise(to fence: UInt64) { highest = max(highest, fence) }

    /// - Throws: `lockRequired`; `lockLost` {device, fence}.
    func check(_ order: WorkerOrder) throws(BusError) {
        switch order.action {
        // These end what an earlier fence began; the newest change is checked where it is taken back.
        case .finish, .rollBack, .stop, .readControls, .knownControls, .who, .fault, .session, .halt, .plugged,
            .pluggedMicrophone, .admit, .preparePhoto, .takePhoto, .publishPhoto, .keepFromLibrary, .dropPhoto:
            return
        case .apply where order.fence == nil, .rampZoom where order.fence == nil:
            throw BusError(.lockRequired, "\(device) is only changed under a lock; take one with device.lock.")
        case .prepare, .apply, .lock, .unlock, .rampZoom, .cancelZoom:
            guard let fence = order.fence, fence < highest else { return }
            throw lost(to: highest)
        }
    }

    /// What whoever has an older lock is told.
    func lost(to fence: UInt64) -> BusError {
        BusError(
            .lockLost,
            "The lock on \(device) has ended, and another client has locked the device since; take a new one with "
                + "device.lock.",
            ["device": .string(device), "fence": JSONValue(fence)])
    }
}
