import CaptureCore
import Glibc

/// The devices: those that are plugged in, those that are remembered, and the virtual ones.
final class DeviceRegistry {
    private let deviceStore: DeviceStore
    /// Cameras that were there at the last search, by `uniqueID`.
    private var present: [String: CameraFacts] = [:]
    /// Microphones likewise.
    private var microphones: [String: MicrophoneFacts] = [:]
    /// Known cameras and microphones that are not there, the one that has been away for longest first.
    private var absent: [String] = []
    /// A search has succeeded: what is not known now is not there.
    private(set) var hasSearched = false

    /// So many cameras that are not there are known at most.
    static let maximumAbsent = 64

    /// What configuration and command line say about devices.
    struct Wishes {
        var aliases: [String: String]
        /// By device id or `uniqueID`.
        var positions: [String: DevicePosition]
        var virtualCameras: Int
        var virtualMicrophones = 0
        /// What each of them is like; those beyond are plain.
        var virtualProfiles: [VirtualProfile] = []
        /// Made of something else than a test picture.
        var others: [ManagedDevice.Made] = []

        /// All devices that are made.
        var made: [ManagedDevice.Made] {
            (0..<virtualCameras).map { number in
                ManagedDevice.virtual(
                    number, virtualProfiles.indices.contains(number) ? virtualProfiles[number] : .plain)
            } + (0..<virtualMicrophones).map(ManagedDevice.virtualMicrophone) + others
        }
    }

    init(_ deviceStore: DeviceStore) { self.deviceStore = deviceStore }

    /// No camera is known that was ever plugged in.
    var hasNoCamera: Bool { present.isEmpty && !absent.contains { deviceStore.table[$0]?.facts != nil } }

    /// Takes in the result of a search.
    ///
    /// - Parameter isAwaited: whether a client may wait for a device that is not there, by its id; called the first
    ///     time only.
    func found(_ survey: CameraSurvey, isAwaited: (_ uniqueID: String, _ id: String) -> Bool) {
        let gone = foundCameras(survey) + foundMicrophones(survey)
        if !hasSearched {
            hasSearched = true
            absent = deviceStore.table.entries.filter { uniqueID, entry in
                (entry.facts != nil || entry.microphone != nil) && isAwaited(uniqueID, entry.alias ?? entry.made ?? "")
            }.sorted { ($0.value.seen, $0.key) < ($1.value.seen, $1.key) }.map(\.key)
        }
        absent.removeAll { present[$0] != nil || microphones[$0] != nil }
        absent += gone
    }

    // Returns the microphones that are not there any more.
    private func foundMicrophones(_ survey: CameraSurvey) -> [String] {
        var found = survey.microphones
        // A microphone that can't be read now may still be there.
        for facts in microphones.values.sorted(by: { $0.node < $1.node }) {
            let isHidden = survey.unreadableSound.contains { $0.device == facts.device && $0.index == facts.index }
            let isSeen = found.contains { $0.device == facts.device && $0.index == facts.index && $0.bus == facts.bus }
            if isHidden, !isSeen { found.append(facts) }
        }
        let before = microphones
        microphones = [:]
        deviceStore.change { table in
            let ids = CameraIdentities.assign(found, claims: &table.claims)
            for (uniqueID, facts) in zip(ids, found) { microphones[uniqueID] = facts }
            for (uniqueID, facts) in microphones where before[uniqueID] != facts {
                let name = facts.identity(uniqueID: uniqueID).localizedName
                table.update(uniqueID, name: name, at: DeviceStore.now) {
                    $0.name = name
                    $0.microphone = facts
                    $0.seen = DeviceStore.now
                }
            }
            for (uniqueID, facts) in before where microphones[uniqueID] == nil {
                table.update(uniqueID, name: facts.cardName, at: DeviceStore.now) { $0.seen = DeviceStore.now }
            }
        }
        return before.keys.filter { microphones[$0] == nil }.sorted()
    }

    // Returns the cameras that are not there any more.
    private func foundCameras(_ survey: CameraSurvey) -> [String] {
        var cameras = survey.cameras
        // A camera that can't be read now may still be there, and its serial number is not free.
        for facts in present.values.sorted(by: { $0.node < $1.node }) {
            let isHidden = survey.unreadable.contains { $0.device == facts.device && $0.index == facts.index }
            let isSeen = cameras.contains {
                $0.device == facts.device && $0.index == facts.index && $0.bus == facts.bus
            }
            if isHidden, !isSeen { cameras.append(facts) }
        }
        let before = present
        present = [:]
        deviceStore.change { table in
            let ids = CameraIdentities.assign(cameras, claims: &table.claims)
            for (uniqueID, facts) in zip(ids, cameras) { present[uniqueID] = facts }
            for (uniqueID, facts) in present where before[uniqueID] != facts {
                table.update(uniqueID, name: facts.identity(uniqueID: uniqueID).localizedName, at: DeviceStore.now) {
                    $0.name = facts.identity(uniqueID: uniqueID).localizedName
                    $0.facts = facts
                    $0.seen = DeviceStore.now
                }
            }
            for (uniqueID, facts) in before where present[uniqueID] == nil {
                table.update(uniqueID, name: facts.card, at: DeviceStore.now) { $0.seen = DeviceStore.now }
            }
        }
        return before.keys.filter { present[$0] == nil }.sorted()
    }

    /// Cameras and microphones are not used any more. What is remembered of them stays.
    func forgetHardware() { (present, microphones, absent) = ([:], [:], []) }

    /// Forgets cameras that are not there, if there are too many: first those without alias, settings and users.
    func dropExcess(isWanted: (_ uniqueID: String) -> Bool) {
        let excess = absent.count - Self.maximumAbsent
        guard excess > 0 else { return }
        let unwanted = absent.filter { uniqueID in
            let entry = deviceStore.table[uniqueID]
            return entry?.alias == nil && entry?.committed == nil && !isWanted(uniqueID)
        }
        let dropped = Set((unwanted + absent.filter { !unwanted.contains($0) }).prefix(excess))
        absent.removeAll { dropped.contains($0) }
    }

    /// All devices, each with an id of its own.
    func devices(_ wishes: Wishes) -> [ManagedDevice] {
        let made = wishes.made
        let names = names(wishes)
        deviceStore.change { table in
            for (uniqueID, name) in names {
                let title = made.first { $0.identity.uniqueID == uniqueID }?.identity.localizedName ?? ""
                table.update(uniqueID, name: title, at: DeviceStore.now) { entry in
                    if let made = name.made { entry.made = made }
                    if !ClientSource.isSource(uniqueID) { entry.had(name.id) }
                }
            }
            table.prune(
                keeping: Set(present.keys).union(microphones.keys).union(absent).union(made.map(\.identity.uniqueID)))
        }
        func device(_ identity: DeviceIdentity, _ source: ManagedDevice.Source, isPlugged: Bool) -> ManagedDevice? {
            guard let id = names[identity.uniqueID]?.id else { return nil }
            var identity = identity
            if let position = wishes.positions[id] ?? wishes.positions[identity.uniqueID] {
                identity.position = position
            }
            return ManagedDevice(id: id, identity: identity, source: source, isPlugged: isPlugged)
        }
        let cameras = present.map { uniqueID, facts in
            device(facts.identity(uniqueID: uniqueID), .camera(facts), isPlugged: true)
        }
        let heard = microphones.map { uniqueID, facts in
            device(facts.identity(uniqueID: uniqueID), .microphone(facts), isPlugged: true)
        }
        let remembered = absent.map { uniqueID in
            let entry = deviceStore.table[uniqueID]
            if let facts = entry?.facts {
                return device(facts.identity(uniqueID: uniqueID), .camera(facts), isPlugged: false)
            }
            return entry?.microphone.flatMap { facts in
                device(facts.identity(uniqueID: uniqueID), .microphone(facts), isPlugged: false)
            }
        }
        return (cameras + heard + remembered + made.map { device($0.identity, $0.source, isPlugged: true) }).compactMap
        { $0 }
    }

    /// The `uniqueID` of the device that has this id, or for which it is reserved.
    func owner(of id: String, _ wishes: Wishes) -> String? {
        DeviceNames.owner(of: id, candidates(wishes), configured: wishes.aliases)
    }

    /// The device that has, or had, this id, and is no client's.
    func keeper(of id: String, _ wishes: Wishes) -> DeviceNames.Device? {
        DeviceNames.keeper(of: id, candidates(wishes))
    }

    /// Whether some device has this `uniqueID`, or had, as far as is remembered.
    func knows(_ uniqueID: String, _ wishes: Wishes) -> Bool {
        candidates(wishes).contains { $0.uniqueID == uniqueID }
    }

    /// Devices that have not the id that they should have.
    func collisions(_ wishes: Wishes) -> [DeviceNames.Collision] {
        DeviceNames.collisions(candidates(wishes), configured: wishes.aliases)
    }

    private func names(_ wishes: Wishes) -> [String: DeviceNames.Name] {
        DeviceNames.assign(candidates(wishes), configured: wishes.aliases)
    }

    private func candidates(_ wishes: Wishes) -> [DeviceNames.Device] {
        let made = Dictionary(wishes.made.map { ($0.identity.uniqueID, $0) }) { first, _ in first }
        let uniqueIDs = Set(deviceStore.table.entries.keys).union(present.keys).union(microphones.keys).union(made.keys)
        return uniqueIDs.map { uniqueID in
            let entry = deviceStore.table[uniqueID]
            return DeviceNames.Device(
                uniqueID: uniqueID,
                name: made[uniqueID]?.identity.localizedName ?? entry?.name ?? "",
                preferred: made[uniqueID]?.preferredID, alias: entry?.alias, made: entry?.made,
                earlier: entry?.ids ?? [],
                origin: ClientSource.isSource(uniqueID) ? .client : uniqueID.hasPrefix("replay-") ? .replay : .machine)
        }
    }
}
