public import BusProtocol
public import JSON

/// What a movie has in the place of a picture or a sound that its owner may not have: black, and silence, of that size
/// and rate.
public struct BlankMedia: Hashable, Sendable {
    /// Silence in the place of a microphone's sound.
    public struct Sound: Hashable, Sendable {
        /// Samples a second.
        public var rate: Int
        public var channels: Int

        public init(rate: Int, channels: Int) {
            self.rate = rate
            self.channels = channels
        }
    }

    /// Black in the place of the camera's picture, of that size, as it is shown; nil: the camera's own.
    public var picture: Dimensions?
    /// From one black picture to the next; nil: the camera's isn't known.
    public var frameDuration: FrameDuration?
    /// nil: the microphone's own.
    public var sound: Sound?

    public init(picture: Dimensions? = nil, frameDuration: FrameDuration? = nil, sound: Sound? = nil) {
        self.picture = picture
        self.frameDuration = frameDuration
        self.sound = sound
    }

    /// Nothing is blank.
    public var isNone: Bool { picture == nil && sound == nil }

    /// Those of which nothing real is in the movie.
    public var media: Set<AuthorizationMedia> {
        Set((picture == nil ? [] : [.video]) + (sound == nil ? [] : [.audio]))
    }

    public var json: JSONValue {
        .members([
            "width": picture.map { JSONValue($0.width) }, "height": picture.map { JSONValue($0.height) },
            "frameDuration": frameDuration.map { .string($0.description) },
            "rate": sound.map { JSONValue($0.rate) }, "channels": sound.map { JSONValue($0.channels) },
        ])
    }

    /// Reads what ``json`` writes.
    ///
    /// - Throws: `invalidParams` with the member that is missing or wrong.
    public init(json: JSONValue, path: String) throws(BusError) {
        var reader = try MemberReader(json, path: path)
        if reader.known("width") != nil {
            picture = Dimensions(
                width: Int(try reader.integer("width", in: 2...16384)),
                height: Int(try reader.integer("height", in: 2...16384)))
            frameDuration = try reader.text("frameDuration").flatMap { FrameDuration($0) }
        }
        if reader.known("rate") != nil {
            sound = Sound(
                rate: Int(try reader.integer("rate", in: 4000...384_000)),
                channels: Int(try reader.integer("channels", in: 1...8)))
        }
    }
}
