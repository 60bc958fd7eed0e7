import ALSA
import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import LinuxIO
import Testing

/// Microphones as sysfs and their cards show them.
@Suite struct ALSADiscoveryTests {
    /// A machine's sysfs, with sound cards of several kinds.
    private func machine() throws -> TemporaryDirectory {
        let tree = try TemporaryDirectory()
        let hub = "devices/pci0000:00/0000:00:14.0/usb1"
        try tree.write("\(hub)/idVendor", "1d6b\n")
        try tree.write("\(hub)/idProduct", "0002\n")
        try tree.write("\(hub)/devpath", "0\n")
        try tree.write("\(hub)/1-2/1-2.4/idVendor", "046d\n")
        try tree.write("\(hub)/1-2/1-2.4/idProduct", "082d\n")
        try tree.write("\(hub)/1-2/1-2.4/devpath", "2.4\n")
        try tree.write("\(hub)/1-2/1-2.4/1-2.4:1.2/bInterfaceNumber", "02\n")
        try tree.write("\(hub)/1-2/idVendor", "05e3\n")
        try tree.write("\(hub)/1-2/devpath", "2\n")
        try tree.write("devices/pci0000:00/0000:00:1f.3/class", "0x040300\n")
        try tree.write("bus/pci/uevent", "")
        try tree.link("devices/pci0000:00/0000:00:1f.3/subsystem", to: "../../../bus/pci")
        try addCard(
            tree, 10, "C920", of: "pci0000:00/0000:00:14.0/usb1/1-2/1-2.4/1-2.4:1.2",
            nodes: ["controlC10", "pcmC10D0c"])
        try addCard(
            tree, 2, "PCH", of: "pci0000:00/0000:00:1f.3",
            nodes: ["controlC2", "pcmC2D0p", "pcmC2D0c", "pcmC2D3p", "pcmC2D2c"])
        try addCard(tree, 3, "HDMI", of: "pci0000:00/0000:00:1f.3", nodes: ["controlC3", "pcmC3D3p"])
        return tree
    }

    private func addCard(
        _ tree: TemporaryDirectory, _ number: Int, _ id: String, of device: String, nodes: [String]
    ) throws {
        try tree.write("class/sound/card\(number)/id", "\(id)\n")
        try tree.link("class/sound/card\(number)/device", to: "../../../devices/\(device)")
        for node in nodes { try tree.write("class/sound/\(node)/dev", "116:\(number)\n") }
    }

    private func card(_ card: ALSASysfsCard) -> SoundCard {
        SoundCard(
            number: card.number, id: card.id, driver: "driver", name: "A card",
            captureDevices: card.captures.map { .init(device: $0, name: "PCM \($0)", subdevices: 1) })
    }

    @Test func cardsInTheirOrder() throws {
        let tree = try machine()
        let cards = ALSASysfsCard.all(sysfs: tree.path)
        #expect(cards.map(\.number) == [2, 3, 10] && cards.map(\.id) == ["PCH", "HDMI", "C920"])
        #expect(cards.map(\.captures) == [[0, 2], [], [0]])
        #expect(cards.map(\.bus) == ["PCI:0000:00:1f.3", "PCI:0000:00:1f.3", "usb-0000:00:14.0-2.4"])
        #expect(cards[0].usb == nil)
        #expect(cards[2].usb == .init(vendor: "046d", product: "082d", serial: nil, interface: "02"))
        #expect(ALSASysfsCard.all(sysfs: "/nowhere") == [])
    }

    @Test func microphonesAreWhatCanBeRecordedFrom() throws {
        let tree = try machine()
        var asked: [Int] = []
        let (microphones, unreadable) = ALSADiscovery.survey(sysfs: tree.path) { found throws(ALSAError) in
            asked.append(found.number)
            if found.number == 10 { throw ALSAError(operation: "snd_ctl_open", device: "hw:10", code: EACCES) }
            return card(found)
        }
        #expect(asked == [2, 10])
        #expect(microphones.map(\.node) == ["/dev/snd/pcmC2D0c", "/dev/snd/pcmC2D2c"])
        #expect(microphones.map(\.pcm) == ["hw:CARD=PCH,DEV=0", "hw:CARD=PCH,DEV=2"])
        #expect(microphones.allSatisfy { $0.device == "\(tree.path)/devices/pci0000:00/0000:00:1f.3" })
        #expect(unreadable.map(\.node) == ["/dev/snd/controlC10"] && unreadable.map(\.index) == [10])
        #expect(unreadable.allSatisfy { $0.why.contains("snd_ctl_open") })
    }

    /// One that is unplugged while it is searched for is no finding, whether its card says so or not.
    @Test func cardThatGoesDuringTheSearch() throws {
        let tree = try machine()
        let (microphones, unreadable) = ALSADiscovery.survey(sysfs: tree.path) { found throws(ALSAError) in
            guard found.number == 10 else { throw ALSAError(operation: "snd_ctl_open", device: "hw", code: ENODEV) }
            tree.remove("class/sound/card10/device")
            return card(found)
        }
        #expect(microphones.isEmpty && unreadable.isEmpty)
    }

    /// What ALSA pretends is no microphone, and what can't be found isn't opened.
    @Test func aMicrophoneThatIsNotThere() throws {
        let facts = MicrophoneFacts(
            node: "/dev/snd/pcmC30D0c", pcm: "null", card: 30, cardID: "Gone", index: 0, device: "/sys/devices/gone",
            cardName: "Gone", name: "Gone", driver: "gone", bus: "platform:gone")
        let microphone = ALSAMicrophone(uniqueID: "gone", facts: facts)
        let error = #expect(throws: SourceError.self) { _ = try microphone.open() }
        #expect(error?.kind == .disconnected && error?.message.contains("platform:gone") == true)
        #expect(throws: SourceError.self) { _ = try microphone.startCapture() }
        #expect(!microphone.plug(facts))
        var moved = facts
        moved.card = 31
        #expect(microphone.plug(moved) && !microphone.plug(moved))
    }

    /// The table over a PCM that takes everything; what drivers make of it is for the kernel ring.
    @Test func formatsOfAPCMThatTakesEverything() throws {
        let formats = try ALSAFormatTable.read(try CapturePCM("null").space())
        #expect(formats.map(\.sampleFormat) == SampleFormat.allCases)
        #expect(formats.map(\.id) == formats.indices.map { "a\($0)" })
        #expect(formats.allSatisfy { $0.channels == 1...64 && $0.rates == SoundRates.usual })
        #expect(formats.allSatisfy { $0.rateRange?.contains(44101) == true })
    }
}
