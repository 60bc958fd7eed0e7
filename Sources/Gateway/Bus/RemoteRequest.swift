import BusProtocol
import JSON

/// Checks which requests are allowed from another machine, and builds the request for the bus.
enum RemoteRequest {
    /// Beginnings of methods that may wait for a disk, for a camera's moment, or for what is being made.
    private static let slow = ["library.", "movie.", "photo.", "take."]

    /// Whether its answer may take long by its nature, or as it wishes to wait. All others come within seconds, or a
    /// device is given up.
    static func mayTakeLong(_ request: Request) -> Bool {
        request.params["wait"] != nil || slow.contains { request.method.hasPrefix($0) }
    }

    /// Methods whose answers may bring photos, or parts of files.
    static let attaching: Set<String> = ["photo.capture", "library.read"]

    /// Whether this one's may.
    static func mayBringFrames(_ request: Request) -> Bool {
        guard attaching.contains(request.method) else { return false }
        guard let places = request.params["deliver"]?.array else { return true }
        return places.contains("reply")
    }

    /// The request in that name.
    ///
    /// - Throws: `unauthorized` for one that says itself for whom it is: that is the gateway's to say.
    static func checked(_ request: Request, of principal: Request.Principal) throws(BusError) -> Request {
        guard request.onBehalfOf == nil else {
            throw BusError(
                .unauthorized, "Only the gateway may set 'for'. Leave it out.",
                ["status": "denied", "needed": "gateway"])
        }
        var request = request
        request.onBehalfOf = principal
        return request
    }
}
