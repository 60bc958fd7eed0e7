public import JSON

/// What a photo of the library is, beside what every entry has.
public struct LibraryPhoto: Hashable, Sendable {
    /// Of the request that it was taken by: what has the same belongs together.
    public var uniqueID: String
    /// Which of its device's photos of that request, from 0.
    public var index: Int
    /// Pixels, as it is stored.
    public var width: Int
    public var height: Int
    /// Further members, as `photo.capture` answers them: {exposure?, flashFired?, settled, thumbnail?, …}.
    public var details: [String: JSONValue]

    public init(uniqueID: String, index: Int, width: Int, height: Int, details: [String: JSONValue] = [:]) {
        self.uniqueID = uniqueID
        self.index = index
        self.width = width
        self.height = height
        self.details = details
    }

    /// {uniqueID, index, width, height, …}
    public var json: JSONValue {
        var members = details
        members["uniqueID"] = .string(uniqueID)
        members["index"] = JSONValue(index)
        members["width"] = JSONValue(width)
        members["height"] = JSONValue(height)
        return .object(members)
    }

    /// nil when it is something else.
    public init?(json: JSONValue) {
        guard var members = json.object, let uniqueID = members.removeValue(forKey: "uniqueID")?.string else {
            return nil
        }
        func number(_ name: String) -> Int? {
            members.removeValue(forKey: name)?.integer.flatMap { $0 < 0 ? nil : Int(exactly: $0) }
        }
        guard let index = number("index"), let width = number("width"), let height = number("height") else {
            return nil
        }
        self.init(uniqueID: uniqueID, index: index, width: width, height: height, details: members)
    }
}
