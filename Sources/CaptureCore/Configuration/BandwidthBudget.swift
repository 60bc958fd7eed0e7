public import JSON

/// A camera that streams or is to stream, as the bandwidth budget sees it.
public struct BandwidthLoad: Hashable, Sendable {
    /// The device's id.
    public var device: String
    /// How it hangs on USB; nil: it does not, and costs nothing.
    public var link: USBLink?
    public var setting: StreamSetting
    /// What it could be set to instead.
    public var formats: [CaptureFormat]
    /// It is not to be set otherwise: locked, or asked for just so.
    public var isFixed: Bool
    /// Bits a second that it was seen to send when it was set so; nil: not known.
    public var measuredBitRate: Double?

    public init(
        device: String, link: USBLink?, setting: StreamSetting, formats: [CaptureFormat] = [], isFixed: Bool = false,
        measuredBitRate: Double? = nil
    ) {
        self.device = device
        self.link = link
        self.setting = setting
        self.formats = formats
        self.isFixed = isFixed
        self.measuredBitRate = measuredBitRate
    }

    /// Bits a second that it takes of its bus; 0 for one that is on none.
    ///
    /// A compressed format never counts for more than one endpoint can carry: a camera that offers it at its port makes
    /// it fit.
    public var bitRate: Double {
        guard let link else { return 0 }
        let estimate = measuredBitRate ?? setting.bitRate
        return setting.format.pixelFormat.isCompressed
            ? min(estimate, USBLink.endpointRoom(ofSpeed: link.speed)) : estimate
    }
}

/// What cameras cost the USB buses that they hang on: AVFoundation's `AVCaptureMultiCamSession.hardwareCost`, for each
/// bus.
public struct BandwidthBudget: Hashable, Sendable {
    /// One USB bus with all cameras that share its bandwidth.
    public struct Bus: Hashable, Sendable {
        public var link: USBLink
        /// In the order of their ids.
        public var loads: [BandwidthLoad]

        /// Bits a second.
        public var bitRate: Double { loads.reduce(0) { $0 + $1.bitRate } }
        /// Bits a second that there are for cameras.
        public var room: Double { USBLink.room(ofSpeed: link.busSpeed) }

        /// What part of the room is taken; above 1 they can't run together.
        public var hardwareCost: Double {
            let alone = loads.map { $0.bitRate / USBLink.room(ofSpeed: $0.link?.speed ?? link.busSpeed) }
            return max(bitRate / room, alone.max() ?? 0)
        }

        /// {bus, controller, speed, hardwareCost, bitRate, room, devices: [{device, bitRate}]}
        public var json: JSONValue {
            .object([
                "bus": .string(link.bus), "controller": .string(link.controller), "speed": JSONValue(link.busSpeed),
                "hardwareCost": .number(BandwidthBudget.rounded(hardwareCost)), "bitRate": bitRate.bits,
                "room": room.bits,
                "devices": .array(loads.map { ["device": .string($0.device), "bitRate": $0.bitRate.bits] }),
            ])
        }
    }

    /// In the order of their paths; cameras that aren't on USB are on none.
    public let buses: [Bus]

    /// - Parameter loads: all cameras that stream or are to, each device once.
    public init(_ loads: [BandwidthLoad]) {
        var shared: [String: [BandwidthLoad]] = [:]
        for load in loads {
            if let link = load.link { shared[link.bus, default: []].append(load) }
        }
        buses = shared.sorted { $0.key < $1.key }.compactMap { _, loads in
            let loads = loads.sorted { $0.device < $1.device }
            return loads.first?.link.map { Bus(link: $0, loads: loads) }
        }
    }

    /// What the fullest bus costs; above 1 not all of them can run. 0 without USB.
    public var hardwareCost: Double { buses.map(\.hardwareCost).max() ?? 0 }
    public var canRun: Bool { hardwareCost <= 1 }

    /// The fullest bus that a device is on.
    public func bus(of device: String) -> Bus? { buses.first { $0.loads.contains { $0.device == device } } }

    /// {hardwareCost, buses}
    public var json: JSONValue {
        .object([
            "hardwareCost": .number(Self.rounded(hardwareCost)), "buses": .array(buses.map(\.json)),
        ])
    }

    /// To hundredths, up: what is above 1 stays above it.
    public static func rounded(_ cost: Double) -> Double { (min(cost, 1e9) * 100).rounded(.up) / 100 }
}

extension Double {
    /// Whole bits a second.
    fileprivate var bits: JSONValue { .integer(Int64(Swift.min(rounded(), 1e18))) }
}
