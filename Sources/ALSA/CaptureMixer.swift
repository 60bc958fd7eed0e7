import CALSA
import Glibc

/// A card's controls of recording, as ALSA's simple mixer has them (`snd_mixer_t`). Used by one thread at a time.
public final class CaptureMixer {
    /// One of the mixer's elements, as far as recording goes.
    public struct Element: Hashable, Sendable {
        /// `Capture`, `Mic`, `Input Source`.
        public let name: String
        /// Has a volume for recording.
        public let hasVolume: Bool
        /// Can be switched off for recording, by itself.
        public let hasSwitch: Bool
        /// Is a choice, and not one of playing.
        public let isChoice: Bool

        fileprivate let index: Int
    }

    /// Those that have to do with recording, in the card's order.
    public let elements: [Element]

    private let mixer: OpaquePointer
    private let device: String
    /// nil: its controls are gone, and ALSA has freed it.
    private var raw: [OpaquePointer?]

    /// ALSA's word for a volume that lets nothing through, instead of decibels (`SND_CTL_TLV_DB_GAIN_MUTE`).
    private static let silence = -9_999_999

    /// The mixer of the card of that number.
    public init(card number: Int) throws(ALSAError) {
        _ = ALSALibrary.isSilent
        let device = "hw:\(number)"
        var opened: OpaquePointer?
        try check("snd_mixer_open", device, snd_mixer_open(&opened, 0))
        guard let opened else { throw ALSAError(operation: "snd_mixer_open", device: device, code: ENOMEM) }
        do throws(ALSAError) {
            try check("snd_mixer_attach", device, snd_mixer_attach(opened, device))
            try check("snd_mixer_selem_register", device, snd_mixer_selem_register(opened, nil, nil))
            try check("snd_mixer_load", device, snd_mixer_load(opened))
        } catch {
            snd_mixer_close(opened)
            throw error
        }
        var elements: [Element] = []
        var raw: [OpaquePointer?] = []
        var next: OpaquePointer? = snd_mixer_first_elem(opened)
        while let element = next {
            next = snd_mixer_elem_next(element)
            let known = Element(
                name: String(cString: snd_mixer_selem_get_name(element)),
                hasVolume: snd_mixer_selem_has_capture_volume(element) != 0,
                hasSwitch: snd_mixer_selem_has_capture_switch(element) != 0
                    && snd_mixer_selem_has_capture_switch_exclusive(element) == 0,
                isChoice: snd_mixer_selem_is_enumerated(element) != 0
                    && snd_mixer_selem_is_enum_playback(element) == 0, index: raw.count)
            guard known.hasVolume || known.hasSwitch || known.isChoice else { continue }
            elements.append(known)
            raw.append(element)
        }
        mixer = opened
        self.device = device
        self.elements = elements
        self.raw = raw
    }

    deinit { snd_mixer_close(mixer) }

    /// Learns what others have changed since (`snd_mixer_handle_events`). An element whose controls were taken away,
    /// which who may open the card can do with those of his own, is `ENOENT` from then on.
    public func refresh() throws(ALSAError) {
        let result = snd_mixer_handle_events(mixer)
        var left: Set<OpaquePointer> = []
        var next: OpaquePointer? = snd_mixer_first_elem(mixer)
        while let element = next {
            left.insert(element)
            next = snd_mixer_elem_next(element)
        }
        for index in raw.indices { raw[index] = raw[index].flatMap { left.contains($0) ? $0 : nil } }
        try check("snd_mixer_handle_events", device, result)
    }

    private func living(_ operation: String, _ element: Element) throws(ALSAError) -> OpaquePointer {
        guard let living = raw[element.index] else {
            throw ALSAError(operation: operation, device: "\(device) \(element.name)", code: ENOENT)
        }
        return living
    }

    // MARK: Volume

    /// What the volume can be, in hundredths of a decibel, and how far it is from one value to the next; nil: the
    /// driver knows no decibels.
    public func decibels(of element: Element) -> (range: ClosedRange<Int>, step: Int)? {
        var (low, high, lowest, highest) = (0, 0, 0, 0)
        guard element.hasVolume, let raw = raw[element.index],
            snd_mixer_selem_get_capture_dB_range(raw, &low, &high) >= 0,
            snd_mixer_selem_get_capture_volume_range(raw, &lowest, &highest) >= 0, lowest < highest
        else { return nil }
        if low <= Self.silence {
            lowest += 1
            guard snd_mixer_selem_ask_capture_vol_dB(raw, lowest, &low) >= 0 else { return nil }
        }
        guard low < high else { return nil }
        return (low...high, Self.step(low...high, over: lowest...max(lowest, highest)))
    }

    /// How far it is from one volume to the next. A card says of both what it likes, up to more than the difference can
    /// hold.
    static func step(_ decibels: ClosedRange<Int>, over volumes: ClosedRange<Int>) -> Int {
        let range = Int128(decibels.upperBound) - Int128(decibels.lowerBound)
        let steps = Int128(volumes.upperBound) - Int128(volumes.lowerBound)
        return Int(clamping: max(1, range / max(1, steps)))
    }

    /// The volume of the first channel, in hundredths of a decibel.
    public func volume(of element: Element) throws(ALSAError) -> Int {
        let operation = "snd_mixer_selem_get_capture_dB"
        var value = 0
        try check(
            operation, device,
            snd_mixer_selem_get_capture_dB(try living(operation, element), SND_MIXER_SCHN_FRONT_LEFT, &value))
        return value
    }

    /// Sets the volume of all channels to what is next to so many hundredths of a decibel.
    public func setVolume(of element: Element, to value: Int) throws(ALSAError) {
        let operation = "snd_mixer_selem_set_capture_dB_all"
        let raw = try living(operation, element)
        try check(operation, device, snd_mixer_selem_set_capture_dB_all(raw, value, -1))
        // ALSA rounds to one side only; the other neighbour may be nearer.
        let below = try volume(of: element)
        guard below < value else { return }
        try check(operation, device, snd_mixer_selem_set_capture_dB_all(raw, value, 1))
        let (above, isFar) = try volume(of: element).subtractingReportingOverflow(value)
        let (distance, isFurther) = value.subtractingReportingOverflow(below)
        if isFar || !isFurther && above.magnitude > distance.magnitude {
            try check(operation, device, snd_mixer_selem_set_capture_dB_all(raw, below, -1))
        }
    }

    // MARK: Switch

    /// Whether the first channel lets sound through.
    public func isOn(_ element: Element) throws(ALSAError) -> Bool {
        let operation = "snd_mixer_selem_get_capture_switch"
        var value: Int32 = 0
        try check(
            operation, device,
            snd_mixer_selem_get_capture_switch(try living(operation, element), SND_MIXER_SCHN_FRONT_LEFT, &value))
        return value != 0
    }

    /// Has all channels let sound through, or none.
    public func setOn(_ element: Element, _ isOn: Bool) throws(ALSAError) {
        let operation = "snd_mixer_selem_set_capture_switch_all"
        try check(
            operation, device, snd_mixer_selem_set_capture_switch_all(try living(operation, element), isOn ? 1 : 0))
    }

    // MARK: Choice

    /// What can be chosen, in the driver's order.
    public func items(of element: Element) throws(ALSAError) -> [String] {
        let operation = "snd_mixer_selem_get_enum_items"
        let raw = try living(operation, element)
        let count = try check(operation, device, snd_mixer_selem_get_enum_items(raw))
        var items: [String] = []
        for index in 0..<UInt32(count) {
            // The kernel's names have 64 bytes.
            var name = [CChar](repeating: 0, count: 128)
            try check(
                "snd_mixer_selem_get_enum_item_name", device,
                snd_mixer_selem_get_enum_item_name(raw, index, name.count - 1, &name))
            items.append(name.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" })
        }
        return items
    }

    /// The index of what the first channel has chosen.
    public func item(of element: Element) throws(ALSAError) -> Int {
        let operation = "snd_mixer_selem_get_enum_item"
        var value: UInt32 = 0
        try check(
            operation, device,
            snd_mixer_selem_get_enum_item(try living(operation, element), SND_MIXER_SCHN_FRONT_LEFT, &value))
        return Int(value)
    }

    /// Chooses for each channel that has a choice.
    public func setItem(of element: Element, to index: Int) throws(ALSAError) {
        let operation = "snd_mixer_selem_set_enum_item"
        let raw = try living(operation, element)
        let value = UInt32(clamping: index)
        try check(operation, device, snd_mixer_selem_set_enum_item(raw, SND_MIXER_SCHN_FRONT_LEFT, value))
        var other: UInt32 = 0
        guard snd_mixer_selem_get_enum_item(raw, SND_MIXER_SCHN_FRONT_RIGHT, &other) >= 0 else { return }
        try check(operation, device, snd_mixer_selem_set_enum_item(raw, SND_MIXER_SCHN_FRONT_RIGHT, value))
    }
}
