import ALSA
import CaptureCore
import LinuxIO

/// A microphone's controls, as its card's mixer has them. One card's mixer is that of all its PCMs: which element is
/// whose, ALSA doesn't say.
struct ALSAControls {
    let controls: [CaptureControl]
    let dataSources: [SoundDataSource]

    private let mixer: CaptureMixer
    private let gain: CaptureMixer.Element?
    private let mute: CaptureMixer.Element?
    private let choice: CaptureMixer.Element?

    /// What drivers call the one volume that is the recording's, the first first; without any of these it is the card's
    /// first.
    private static let mainNames = ["Capture", "Mic", "Internal Mic", "Microphone", "Headset"]

    init(_ mixer: CaptureMixer) throws(ALSAError) {
        self.mixer = mixer
        let volumes = mixer.elements.filter { mixer.decibels(of: $0) != nil }
        let gain = Self.main(volumes)
        // One that is switched off by itself is that element's, if it can be.
        let mute = gain.flatMap { $0.hasSwitch ? $0 : nil } ?? Self.main(mixer.elements.filter(\.hasSwitch))
        let choice = mixer.elements.first { element in
            let words = CaptureControl.name(ofTitle: element.name).split(separator: "_")
            return element.isChoice && (words.contains("source") || words.contains("input") || words.contains("mic"))
        }
        var controls: [CaptureControl] = []
        if let gain, let (range, step) = mixer.decibels(of: gain) {
            controls.append(
                CaptureControl(
                    name: MicrophoneControl.gain, title: gain.name, id: MicrophoneControl.ID.gain, type: .integer,
                    minimum: Int64(range.lowerBound), maximum: Int64(range.upperBound), step: Int64(step),
                    category: "Capture"))
        }
        if let mute {
            controls.append(
                CaptureControl(
                    name: MicrophoneControl.mute, title: mute.name, id: MicrophoneControl.ID.mute, type: .boolean,
                    minimum: 0, maximum: 1, defaultValue: 0, category: "Capture"))
        }
        var sources: [SoundDataSource] = []
        if let choice {
            let items = try mixer.items(of: choice)
            var ids: Set<String> = []
            for (index, item) in items.enumerated() {
                var id = CaptureControl.name(ofTitle: item)
                if id.isEmpty || !ids.insert(id).inserted {
                    id += "\(id.isEmpty ? "source" : "")_\(index)"
                    ids.insert(id)
                }
                sources.append(
                    SoundDataSource(id: id, name: item, orientation: SoundDataSource.orientation(ofName: item)))
            }
            if items.count > 1 {
                controls.append(
                    CaptureControl(
                        name: MicrophoneControl.dataSource, title: choice.name, id: MicrophoneControl.ID.dataSource,
                        type: .menu, minimum: 0, maximum: Int64(items.count - 1),
                        menu: Dictionary(
                            uniqueKeysWithValues: items.enumerated().map { (Int64($0), ControlMenuItem.name($1)) }),
                        category: "Capture"))
            }
        }
        self.gain = gain
        self.mute = mute
        let hasChoice = sources.count > 1
        self.choice = hasChoice ? choice : nil
        dataSources = hasChoice ? sources : []
        self.controls = controls
    }

    private static func main(_ elements: [CaptureMixer.Element]) -> CaptureMixer.Element? {
        for name in mainNames {
            if let element = elements.first(where: { $0.name == name }) { return element }
        }
        return elements.first
    }

    /// The present values, also of what others have changed.
    func values() throws(ALSAError) -> [String: ControlValue] {
        try mixer.refresh()
        var values: [String: ControlValue] = [:]
        if let gain { values[MicrophoneControl.gain] = .integer(Int64(try mixer.volume(of: gain))) }
        if let mute { values[MicrophoneControl.mute] = .boolean(!(try mixer.isOn(mute))) }
        if let choice { values[MicrophoneControl.dataSource] = .integer(Int64(try mixer.item(of: choice))) }
        return values
    }

    /// Sets a control to a value that is in its range.
    func set(_ name: String, to number: Int64) throws(ALSAError) {
        try mixer.refresh()
        switch name {
        case MicrophoneControl.gain: if let gain { try mixer.setVolume(of: gain, to: Int(number)) }
        case MicrophoneControl.mute: if let mute { try mixer.setOn(mute, number == 0) }
        default: if let choice { try mixer.setItem(of: choice, to: Int(number)) }
        }
    }

    /// Which controls a change of the card's control of that name may concern.
    func concerned(by name: String) -> [UInt32] {
        func isOf(_ element: CaptureMixer.Element?) -> Bool { element.map { name.hasPrefix($0.name) } ?? false }
        var ids: [UInt32] = []
        if isOf(gain), name.hasSuffix("Volume") { ids.append(MicrophoneControl.ID.gain) }
        if isOf(mute), name.hasSuffix("Switch") { ids.append(MicrophoneControl.ID.mute) }
        if isOf(choice) { ids.append(MicrophoneControl.ID.dataSource) }
        return ids
    }
}

/// What a card tells by itself, as far as a microphone is concerned: one event for each control, which says that it has
/// to be read.
final class ALSAEventQueue: DeviceEventQueue {
    var descriptor: Int32 { events.descriptor }
    var isUrgent: Bool { false }

    private let events: CardEvents
    private let controls: ALSAControls
    /// What is still to be told; at most one of each control.
    private var waiting: [UInt32] = []

    init(_ events: CardEvents, _ controls: ALSAControls) {
        self.events = events
        self.controls = controls
    }

    func next() throws(SourceError) -> DeviceEvent? {
        while true {
            if let id = waiting.popLast() {
                return .control(ControlEvent(id: id, mustBeRead: true, time: MonotonicClock.now()))
            }
            do throws(ALSAError) {
                guard let name = try events.next() else { return nil }
                waiting = controls.concerned(by: name)
            } catch { throw SourceError(error, .capturing) }
        }
    }
}
